"""Say in plain words what is wrong with settings: which key, what is allowed, and what was given."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt, MinLen
from pydantic import BaseModel, BeforeValidator, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from postmax.registry import nearest
from postmax.wording import listed

_BOUNDS = {Ge: ("of at least", "ge"), Gt: ("above", "gt"), Le: ("of at most", "le"), Lt: ("below", "lt")}
_ONE = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
_MANY = {int: "whole numbers", float: "numbers", str: "texts"}


class _Kind(NamedTuple):
    """The type of a value, with its limits."""

    type: Any
    limits: Sequence[Any] = ()


def explain(error: ValidationError, model: type[BaseModel], content: Any = None) -> str:
    """Return all that is wrong with values that do not fit a model. For an unknown key the text names the nearest one.

    What a missing key means is said in the words of the docstring of its model, under `Attributes:`.

    Args:
        error: What pydantic found.
        model: The model that the values were meant for.
        content: The values. With them, an entry of a list is called by its name, and without by its number from #1 on.
    """
    # Of a list, pydantic counts only the entries that are right. It has explained the others.
    wrong = [
        one for one in error.errors() if one["type"] != "too_short" or len(one["input"]) < one["ctx"]["min_length"]
    ]
    found: dict[str, str] = {}
    for one in wrong:
        for text in _explain_one(one, model, content, alone=len(wrong) == 1):
            # The members of a union report the same key several times, and parts of the same value.
            found.setdefault(text.partition(", not ")[0], text)
    return listed(list(found.values()))


def _explain_one(error: ErrorDetails, model: type[BaseModel], content: Any, *, alone: bool) -> Iterator[str]:
    path, problem = error["loc"], error["type"]
    if problem == "missing" and isinstance(path[-1], int):  # a list is too short
        path, problem = path[:-1], "too_short"
    if path and path[-1] == "[key]":
        path, problem = path[:-1], "key"
    place, kind = _walk(model, path, content)
    given = "but it is empty" if error["input"] is None else f"not {_short(error['input'])}"
    if problem == "extra_forbidden":
        yield _unknown_key(place, str(path[-1]), kind, alone=alone)
    elif problem == "value_error":  # our own words; each argument of the error is a problem
        for message in error["ctx"]["error"].args:
            yield f"{place + ': ' if place else ''}{str(message).removesuffix('.')}."
    elif problem == "missing":
        means = _meaning(_walk(model, path[:-1], content)[1], str(path[-1]))
        yield f"{place} is missing: {means + ' It' if means else 'it'} must be {_in_words(kind)}."
    elif problem == "key":
        yield f"{place}: a key must be a text, {given}. Put it in quotes."
    else:
        yield f"{place} must be {_in_words(kind)}, {given}."


def _meaning(section: _Kind, field: str) -> str:
    """Return what the docstring of a model says about one of its fields; empty if it says nothing."""
    for model in (parent for member in _models(section) for parent in member.__mro__):
        text = inspect.cleandoc(model.__doc__ or "").partition("\nAttributes:\n")[2]
        if entry := re.search(rf"^    {field}: (.*(?:\n {{8}}.*)*)", text, flags=re.MULTILINE):
            words = " ".join(entry[1].split())
            return words[:1].lower() + words[1:]
    return ""


def _walk(model: type[BaseModel], path: Sequence[str | int], content: Any) -> tuple[str, _Kind]:
    """Return the dotted key of a value and its type. Parts of the path that are no keys are left out."""
    kind, place = _Kind(model), []
    for part in path:
        inner = _inside(kind, part)
        if inner is None:
            break
        in_list = isinstance(part, int) and get_origin(kind.type) is not dict
        content = _entry(content, part)
        name = content.get("name") if isinstance(content, Mapping) and in_list else None
        place.append(str(name or f"#{int(part) + 1}") if in_list else str(part))
        kind = inner
    return ".".join(place), kind


def _entry(content: Any, part: str | int) -> Any:
    try:
        return content[part]
    except (KeyError, IndexError, TypeError):
        return None


def _inside(kind: _Kind, part: str | int) -> _Kind | None:
    """Return the type of a field, or of an entry of a list or mapping; None if there is no such thing."""
    found, _ = kind
    origin, inner = get_origin(found), get_args(found)
    if origin in (Union, UnionType):
        return next((entry for member in inner if (entry := _inside(_Kind(member), part)) is not None), None)
    if origin is Annotated:
        return _inside(_Kind(inner[0], inner[1:]), part)
    if isinstance(found, type) and issubclass(found, BaseModel):
        field = found.model_fields.get(str(part))
        return None if field is None else _Kind(field.annotation, field.metadata)
    if origin is tuple and isinstance(part, int):
        return _Kind(inner[0] if inner[-1] is Ellipsis else inner[min(part, len(inner) - 1)])
    if origin is list and isinstance(part, int):
        return _Kind(inner[0])
    return _Kind(inner[1]) if origin is dict else None


def _in_words(kind: _Kind) -> str:
    """Return which values are allowed, in words."""
    found, limits = kind
    origin, inner = get_origin(found), get_args(found)
    if origin is Annotated:
        own = (part for mark in inner[1:] for part in (mark.metadata if isinstance(mark, FieldInfo) else (mark,)))
        return _in_words(_Kind(inner[0], [*limits, *own]))
    if origin in (Union, UnionType):
        words = [_in_words(_Kind(member, limits)) for member in inner if member is not NoneType]
        return " or ".join(words) + (", or null" if NoneType in inner else "")
    if origin is Literal:
        return f"one of {', '.join(str(v) if str(v)[0].isalnum() else repr(v) for v in inner)}"
    if origin in (tuple, list):
        return _list_in_words(inner, limits)
    if found in _ONE:
        return " ".join([_ONE[found], " and ".join(_bounds(limits))]).strip()
    if any(isinstance(limit, BeforeValidator) for limit in limits):
        return "a name, alone or with options"
    if isinstance(found, type) and issubclass(found, BaseModel):
        return f"a section with keys such as {', '.join(list(found.model_fields)[:3])}"
    return f"{_at_least_one(limits)}keys with values" if origin is dict else "a value"


def _list_in_words(inner: tuple[Any, ...], limits: Sequence[Any]) -> str:
    entry = get_args(inner[0])[0] if get_origin(inner[0]) is Annotated else inner[0]
    several = _MANY.get(entry, "entries")
    if inner[-1] is not Ellipsis and len(inner) > 1:
        return f"a list of {len(inner)} {several}"
    return f"a list of {_at_least_one(limits)}{several}"


def _at_least_one(limits: Sequence[Any]) -> str:
    return "one or more " if any(isinstance(limit, MinLen) and limit.min_length for limit in limits) else ""


def _bounds(limits: Sequence[Any]) -> list[str]:
    return [
        f"{word} {getattr(limit, name):g}"
        for kind, (word, name) in _BOUNDS.items()
        for limit in limits
        if isinstance(limit, kind)
    ]


def _unknown_key(place: str, key: str, section: _Kind, *, alone: bool) -> str:
    prefix = f"{place}." if place else ""
    names = [name for model in _models(section) for name in model.model_fields]
    near = nearest(key, names)
    hint = "" if near is None else f" Did you mean '{prefix}{near}'?"
    known = f" Known: {', '.join(prefix + name for name in sorted(names))}." if alone or near is None else ""
    return f"unknown key '{prefix}{key}'.{hint}{known}"


def _models(section: _Kind) -> list[type[BaseModel]]:
    members = [section.type, *get_args(section.type)]
    return [member for member in members if isinstance(member, type) and issubclass(member, BaseModel)]


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
