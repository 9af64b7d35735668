"""Say in plain words what is wrong with settings: which key, what is allowed, and what was given."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt, MinLen
from pydantic import BaseModel, BeforeValidator, ValidationError
from pydantic_core import ErrorDetails

from postmax.registry import unknown_name
from postmax.wording import listed

_BOUNDS = {Ge: ("of at least", "ge"), Gt: ("above", "gt"), Le: ("of at most", "le"), Lt: ("below", "lt")}
_ONE = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
_MANY = {int: "whole numbers", float: "numbers", str: "texts"}


class _Kind(NamedTuple):
    """The type of a value, with its limits."""

    type: Any
    limits: Sequence[Any] = ()


def explain(error: ValidationError, model: type[BaseModel]) -> str:
    """Return all that is wrong with values that do not fit a model. For an unknown key the text names the nearest one.

    Args:
        error: What pydantic found.
        model: The model that the values were meant for.
    """
    wrong = error.errors()
    # The members of a union report the same key several times.
    found = dict.fromkeys(_explain_one(one, model, alone=len(wrong) == 1) for one in wrong)
    return listed(list(found))


def _explain_one(error: ErrorDetails, model: type[BaseModel], *, alone: bool) -> str:
    path, problem = error["loc"], error["type"]
    if problem == "missing" and isinstance(path[-1], int):  # a list is too short
        path, problem = path[:-1], "too_short"
    place, kind = _walk(model, path)
    if problem == "extra_forbidden":
        return _unknown_key(place, str(path[-1]), kind, alone=alone)
    if problem == "value_error":  # our own words
        message = error["msg"].removeprefix("Value error, ").removesuffix(".")
        return f"{place + ': ' if place else ''}{message}."
    if problem == "missing":
        return f"{place} is missing: it must be {_in_words(kind)}."
    given = "but it is empty" if error["input"] is None else f"not {_short(error['input'])}"
    return f"{place} must be {_in_words(kind)}, {given}."


def _walk(model: type[BaseModel], path: Sequence[str | int]) -> tuple[str, _Kind]:
    """Return the dotted key of a value and its type. Parts of the path that are no keys are left out."""
    kind, place = _Kind(model), []
    for part in path:
        inner = _inside(kind, part)
        if inner is None:
            break
        place.append(str(part))
        kind = inner
    return ".".join(place), kind


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
        return _in_words(_Kind(inner[0], [*limits, *inner[1:]]))
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
    names = [f"{prefix}{name}" for name in _fields(section)]
    near = difflib.get_close_matches(f"{prefix}{key}".lower(), names, n=1, cutoff=0.5)
    if near and not alone:
        return f"unknown key '{prefix}{key}'. Did you mean '{near[0]}'?"
    return str(unknown_name("key", f"{prefix}{key}", names))


def _fields(section: _Kind) -> list[str]:
    members = [section.type, *get_args(section.type)]
    return [name for m in members if isinstance(m, type) and issubclass(m, BaseModel) for name in m.model_fields]


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
