"""Problems of a file in our own words: every one of them, with its place, and never in the words of a library."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, ValidationError, model_validator

from postmax.train.explanation import explain


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

    @model_validator(mode="after")
    def _no_threes(self) -> Whole:
        if self.number == 3:
            raise ValueError("three is not liked", "nor is it needed")
        return self


def found(content: Any, given: Any = None) -> str:
    with pytest.raises(ValidationError) as error:
        Whole.model_validate(content)
    return explain(error.value, Whole, given)


ENTRY = {"name": "x", "kind": "a"}


@pytest.mark.parametrize(
    ("content", "sentences"),
    [
        ({}, ["entries is missing: it must be a list of one or more entries."]),
        ({"entries": []}, ["entries must be a list of one or more entries, not []."]),
        ({"entries": ["x"]}, ["entries.#1 must be a section with keys such as name, size, kind, not 'x'."]),
        (
            {"entries": [ENTRY, {"name": "y"}, {"kind": "c"}]},
            [
                "entries.y.kind is missing: which kind. It must be one of a, b.",
                "entries.#3.name is missing: what it is called, in one line. It must be a text.",
                "entries.#3.kind must be one of a, b, not 'c'.",
            ],
        ),
        ({"entries": [{**ENTRY, "flag": "perhaps"}]}, ["entries.x.flag must be true or false, not 'perhaps'."]),
        ({"entries": [{**ENTRY, "size": 9}]}, ["entries.x.size must be a number above 0 and below 9, or null, not 9."]),
        (
            {"entries": [ENTRY], "number": 0},
            ["number must be a whole number of at least 1 or a list of whole numbers, not 0."],
        ),
        (
            {"entries": [ENTRY], "by_name": {"z": {"name": "z", "sise": 1, "other": 2}}},
            [
                "unknown key 'by_name.z.sise'. Did you mean 'by_name.z.size'?",
                "unknown key 'by_name.z.other'. Known: by_name.z.name, by_name.z.size.",
            ],
        ),
        ({"entries": [ENTRY], "rest": {"a": {"b": "c"}}}, ["rest.a.b must be a number, not 'c'."]),
        ({"entries": [ENTRY], "rest": {1: {}}}, ["rest.1: a key must be a text, not 1. Put it in quotes."]),
        ({"entries": [ENTRY], "number": 3}, ["three is not liked.", "nor is it needed."]),
    ],
)
def test_every_problem_is_one_sentence(content, sentences):
    first, *lines = found(content, content).splitlines()
    assert ([line.strip() for line in lines] or [first]) == sentences
    if lines:
        assert first == f"{len(sentences)} problems"


def test_without_the_values_an_entry_of_a_list_has_its_number():
    assert found({"entries": [{"name": "y"}]}).startswith("entries.#1.kind is missing: which kind.")
