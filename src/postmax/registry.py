"""Things found by name, with a helpful answer when the name is wrong."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from postmax.errors import InputError

T = TypeVar("T")


def unknown_name(kind: str, given: object, known: Iterable[str]) -> InputError:
    """The error for a name nobody knows: what was given, the nearest known one, and all of them."""
    names = sorted(known)
    near = difflib.get_close_matches(str(given).lower(), names, n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return InputError(f"unknown {kind} {given!r}.{hint} Known: {', '.join(names)}.")


class Registry(Generic[T]):
    """A table from names and aliases to values.

    Names are compared without regard to case, spaces, `-` and `_`.

    Example:
        >>> colours: Registry[int] = Registry("colour")
        >>> colours.add(0xFF0000, "red", aliases=("scarlet",))
        16711680
        >>> colours.get("Scarlet") == colours.get("red")
        True
        >>> colours.get("rad")
        Traceback (most recent call last):
        ...
        postmax.errors.InputError: unknown colour 'rad'. Did you mean 'red'? Known: red.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._values: dict[str, T] = {}
        self._keys: dict[str, str] = {}
        self._refusals: dict[str, str] = {}

    @staticmethod
    def _key(name: str) -> str:
        return "".join(c for c in name.lower() if c not in " -_")

    def add(self, value: T, name: str, *, aliases: Iterable[str] = ()) -> T:
        """Register `value` under `name` and `aliases`; a name may be taken once."""
        for alias in (name, *aliases):
            key = self._key(alias)
            if key in self._keys:
                raise InputError(f"the {self.kind} name {alias!r} is taken.")
        for alias in (name, *aliases):
            self._keys[self._key(alias)] = name
        self._values[name] = value
        return value

    def refuse(self, reason: str, *names: str) -> None:
        """Answer these names with `reason` instead of "unknown"."""
        self._refusals.update((self._key(name), reason) for name in names)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._key(name) in self._keys

    def get(self, name: str) -> T:
        """The value called `name`, or an error that suggests the nearest name."""
        if not isinstance(name, str):
            raise unknown_name(self.kind, name, self._values)
        key = self._key(name)
        if key in self._keys:
            return self._values[self._keys[key]]
        if key in self._refusals:
            raise InputError(f"{self.kind} {name!r} is refused: {self._refusals[key]}")
        raise unknown_name(self.kind, name, self._values)

    def names(self) -> tuple[str, ...]:
        """All names, in the order of registration, without aliases."""
        return tuple(self._values)


def resolve(value: T | str, kind: type[T], lookup: Callable[[str], T]) -> T:
    """`value` itself if it is a `kind`, else what `lookup` finds under that name."""
    if isinstance(value, kind):
        return value
    if isinstance(value, str):
        return lookup(value)
    raise InputError(f"expected a {kind.__name__} or its name, got {type(value).__name__}.")


def import_modules(package: str) -> None:
    """Import every module of a package, so that each can register what it has: one file adds a thing."""
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
        importlib.import_module(f"{package}.{module.name}")
