"""What is wrong with the values of a file, in our own words: all problems at once, each with its place."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

# What was expected, by pydantic's name of the problem. Words in braces are in the context of the error.
_EXPECTED = {
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "string_type": "text (put numbers in quotes)",
    "string_too_short": "text that is not empty",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "dict_type": "keys and values",
    "model_type": "keys and values",
    "model_attributes_type": "keys and values",
    "list_type": "a list",
    "tuple_type": "a list",
    "too_short": "{min_length} or more entries",
    "too_long": "{max_length} or fewer entries",
    "missing": "at least one more entry",
    "greater_than_equal": "{ge:g} or more",
    "greater_than": "more than {gt:g}",
    "less_than_equal": "{le:g} or less",
    "less_than": "less than {lt:g}",
    "literal_error": "{expected}",
    "invalid_key": "text as a key (put it in quotes)",
}


def problems(error: ValidationError, model: type[BaseModel], content: Any) -> list[str]:
    """Return every problem of some values as one sentence, in the order of the fields.

    A missing field is explained by the docstring of its model, so each model describes its fields under `Attributes:`.

    Args:
        error: What pydantic found.
        model: The model that the values do not fit.
        content: The values.

    Example:
        >>> class Scale(BaseModel, extra="forbid"):
        ...     '''A scale.
        ...
        ...     Attributes:
        ...         seeds: How many seeds.
        ...     '''
        ...
        ...     seeds: int
        >>> try:
        ...     Scale.model_validate({"seed": 1})
        ... except ValidationError as error:
        ...     problems(error, Scale, {"seed": 1})
        ['seeds is missing: how many seeds.', "unknown key 'seed'. Did you mean 'seeds'? Known here: seeds."]
    """
    found: dict[str, list[str]] = {}
    sentences: dict[str, str] = {}
    for one in error.errors():
        if one["type"] == "too_short" and len(one["input"]) >= one["ctx"]["min_length"]:
            continue  # pydantic counts only the entries that are right, and has named the others
        owner, place = _owner(model, one["loc"])
        where, key = _in_words(place, content), str(place[-1]) if place else ""
        if one["type"] == "extra_forbidden":
            sentences[where] = _unknown(key, where, owner)
        elif one["type"] == "missing" and owner is not None and key in owner.model_fields:
            sentences[where] = f"{where} is missing: {meaning(owner, key) or 'it has no default.'}"
        elif one["type"] in ("value_error", "assertion_error"):
            # A validator of ours may have found several problems; each is an argument of its error.
            for text in getattr(one.get("ctx", {}).get("error"), "args", None) or (one["msg"],):
                sentences[f"{where} {text}"] = f"{where}: {text}." if where else f"{text}."
        else:
            # A value that may be of two kinds has one problem for each kind.
            found.setdefault(where, []).append(_expected(one))
            sentences[where] = f"{where}: expected {', or '.join(dict.fromkeys(found[where]))}, got {_short(one)}."
    return list(sentences.values())


def in_one_text(found: Sequence[str], where: str) -> str:
    """Return problems as the text of one error: a sentence for one of them, a list for several.

    Example:
        >>> print(in_one_text(["title is missing.", "rows is missing."], "mine.yaml"))
        mine.yaml has 2 problems:
          title is missing.
          rows is missing.
    """
    if len(found) == 1:
        return f"{where}: {found[0]}"
    return "\n  ".join([f"{where} has {len(found)} problems:", *found])


def meaning(model: type[BaseModel], field: str) -> str:
    """Return what the docstring of a model says about one of its fields, in one line; empty if it says nothing."""
    for kind in model.__mro__:
        section = inspect.cleandoc(kind.__doc__ or "").partition("\nAttributes:\n")[2]
        if entry := re.search(rf"^    {field}: (.*(?:\n {{8}}.*)*)", section, flags=re.MULTILINE):
            text = " ".join(entry[1].split())
            return text[:1].lower() + text[1:]
    return ""


def _unknown(key: str, where: str, owner: type[BaseModel] | None) -> str:
    known = list(owner.model_fields) if owner is not None else []
    near = difflib.get_close_matches(key.lower(), known, n=1, cutoff=0.5)
    prefix = where[: len(where) - len(key)]
    hint = f" Did you mean {prefix + near[0]!r}?" if near else ""
    return f"unknown key {where!r}.{hint} Known here: {', '.join(known)}."


def _expected(one: Mapping[str, Any]) -> str:
    words = _EXPECTED.get(one["type"])
    return words.format(**one.get("ctx", {})) if words else str(one["msg"])


def _short(one: Mapping[str, Any]) -> str:
    text = repr(one["input"])
    return text if len(text) <= 60 else f"{text[:59]}…"


def _in_words(place: Sequence[int | str], content: Any) -> str:
    """Return a place as a dotted key. An entry of a list is called by its name, or by its number from #1 on."""
    parts = []
    for part in place:
        entry = _entry(content, part)
        if isinstance(part, int) and isinstance(content, list | tuple):
            name = entry.get("name") if isinstance(entry, Mapping) else None
            parts.append(name if name and isinstance(name, str) else f"#{part + 1}")
        else:
            parts.append(str(part))
        content = entry
    return ".".join(parts)


def _entry(content: Any, part: int | str) -> Any:
    try:
        return content[part]
    except (KeyError, IndexError, TypeError):
        return None


def _owner(model: type[BaseModel], loc: Sequence[int | str]) -> tuple[type[BaseModel] | None, tuple[int | str, ...]]:
    """Return the model whose field a problem is about, and the part of its place that exists in the file.

    Pydantic adds the names of types to a place where a value may be of several types.
    """
    owner: type[BaseModel] | None = None
    kind: Any = model
    used = 0
    for part in loc:
        plain = _plain(kind)
        if plain is None or part == "[key]":
            break
        used += 1
        if isinstance(plain, type) and issubclass(plain, BaseModel):
            owner = plain
            field = plain.model_fields.get(str(part))
            kind = field.annotation if field is not None else None
        else:
            owner, inner = None, [one for one in get_args(plain) if one is not Ellipsis]
            kind = inner[-1] if inner else None
    return owner, tuple(loc[:used])


def _plain(kind: Any) -> Any:
    """Return a type without annotations and without None; None if it is one of several types."""
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) in (Union, UnionType):
        rest = [one for one in get_args(kind) if one is not type(None)]
        return _plain(rest[0]) if len(rest) == 1 else None
    return kind
