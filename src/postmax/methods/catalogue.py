"""Methods by name."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from postmax.methods.method import Method, Setting
from postmax.registry import Registry, import_modules, unknown_name


@dataclass(frozen=True)
class Entry:
    """A named method: how it is made, and what it is in a line."""

    build: Callable[..., Method]
    summary: str


_METHODS: Registry[Entry] = Registry("method")


def register(name: str, build: Callable[..., Method], summary: str) -> None:
    """Make a method known under `name`; its options are the keyword arguments of `build`.

    A module of `postmax.methods` that calls this is found by itself: one file adds a method.
    """
    _METHODS.add(Entry(build, summary), name)


def get(name: str, setting: Setting, **options: Any) -> Method:
    """The method called `name`.

    Raises:
        InputError: If there is no such method or option; the nearest known one is named.
    """
    _discover()
    build = _METHODS.get(name).build
    known = list(inspect.signature(build).parameters)[1:]
    for option in options:
        if option not in known:
            raise unknown_name(f"option of the method {name}", option, known)
    return build(setting, **options)


def names() -> tuple[str, ...]:
    """The names `get` knows."""
    _discover()
    return _METHODS.names()


def summary(name: str) -> str:
    """What a method is, in a line."""
    _discover()
    return _METHODS.get(name).summary


@functools.cache
def _discover() -> None:
    """Import every module of this package, so that each registers its method."""
    import_modules("postmax.methods")
