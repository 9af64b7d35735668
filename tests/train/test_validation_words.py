"""Problems of a file in our own words: every one of them, with its place, and never in the words of a library."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, ValidationError

from postmax.train.validation_words import in_one_text, meaning, problems


class Inner(BaseModel, extra="forbid"):
    """An entry.

    Attributes:
        name: What it is called,
            in one line.
        size: How large it is.
    """

    name: str = Field(min_length=1)
    size: float | None = Field(None, gt=0, lt=9, allow_inf_nan=False)


class Special(Inner):
    """An entry that has a kind.

    Attributes:
        kind: Which kind.
    """

    kind: Literal["a", "b"]
    flag: bool = False


class Whole(BaseModel, extra="forbid"):
    """Everything."""

    entries: tuple[Special, ...] = Field(min_length=1)
    by_name: dict[str, Inner] = {}
    number: Annotated[int, Field(ge=1)] | tuple[int, ...] = 1
    rest: dict[str, dict[str, float]] = {}


def found(**content: Any) -> list[str]:
    with pytest.raises(ValidationError) as error:
        Whole.model_validate(content)
    return problems(error.value, Whole, content)


ENTRY = {"name": "x", "kind": "a"}


@pytest.mark.parametrize(
    ("content", "sentences"),
    [
        ({}, ["entries is missing: it has no default."]),
        ({"entries": []}, ["entries: expected 1 or more entries, got []."]),
        ({"entries": 3}, ["entries: expected a list, got 3."]),
        ({"entries": ["x"]}, ["entries.#1: expected keys and values, got 'x'."]),
        (
            {"entries": [ENTRY, {"name": "y"}, {"kind": "c"}]},
            [
                "entries.y.kind is missing: which kind.",
                "entries.#3.name is missing: what it is called, in one line.",
                "entries.#3.kind: expected 'a' or 'b', got 'c'.",
            ],
        ),
        ({"entries": [{**ENTRY, "name": ""}]}, ["entries.#1.name: expected text that is not empty, got ''."]),
        ({"entries": [{**ENTRY, "flag": "perhaps"}]}, ["entries.x.flag: expected true or false, got 'perhaps'."]),
        ({"entries": [{**ENTRY, "size": 0}]}, ["entries.x.size: expected more than 0, got 0."]),
        ({"entries": [{**ENTRY, "size": 9}]}, ["entries.x.size: expected less than 9, got 9."]),
        ({"entries": [{**ENTRY, "size": float("inf")}]}, ["entries.x.size: expected a finite number, got inf."]),
        ({"entries": [ENTRY], "number": 0}, ["number: expected 1 or more, or a list, got 0."]),
        ({"entries": [ENTRY], "number": 1.5}, ["number: expected a whole number, or a list, got 1.5."]),
        (
            {"entries": [ENTRY], "by_name": {"z": {"name": "z", "sise": 1, "other": 2}}},
            [
                "unknown key 'by_name.z.sise'. Did you mean 'by_name.z.size'? Known here: name, size.",
                "unknown key 'by_name.z.other'. Known here: name, size.",
            ],
        ),
        ({"entries": [ENTRY], "rest": {"a": {"b": "c"}}}, ["rest.a.b: expected a number, got 'c'."]),
        ({"entries": [ENTRY], "rest": {1: {}}}, ["rest.1: expected text (put numbers in quotes), got 1."]),
    ],
)
def test_every_problem_is_one_sentence(content, sentences):
    assert found(**content) == sentences


def test_one_problem_is_a_sentence_and_several_are_a_list():
    assert in_one_text(["a is missing."], "x.yaml") == "x.yaml: a is missing."
    assert in_one_text(["a is missing.", "b is missing."], "x.yaml").splitlines() == [
        "x.yaml has 2 problems:",
        "  a is missing.",
        "  b is missing.",
    ]


def test_long_values_are_cut():
    (sentence,) = found(entries=[ENTRY], number="x" * 500)
    assert len(sentence) < 150
    assert sentence.endswith("…" + ".")


def test_a_meaning_is_found_in_the_model_that_defines_the_field():
    assert meaning(Special, "size") == "how large it is."
    assert meaning(Special, "flag") == ""
