"""Registries: values that are found by name, with a helpful error when the name is wrong."""

from __future__ import annotations

import difflib
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterable, Mapping
from types import CodeType
from typing import Any, Generic, TypeVar

from postmax import plugins
from postmax.errors import InputError, UnknownNameError

T = TypeVar("T")
LAST = 1000
# How alike two names must be, from 0 to 1, for the one to be suggested instead of the other.
_ALIKE = 0.5
# The names that Python gives to the code of a module, and IPython 8 to the code of a cell.
_TOP_LEVEL = ("<module>", "<cell line: ")


class Registry(Generic[T]):
    """A map from names and aliases to values.

    Names are compared without regard to case, spaces, `-` and `_`.

    Each catalogue of postmax (losses, models, data sets, …) is a thin layer around one registry. The registry does what
    they have in common:

    * It imports the modules of its package before the first lookup, so that each module can register what it defines.
      One new file is then enough to add a value.
    * It loads the installed plugins when a name is unknown, and looks again.
    * It refuses a name that is taken, and says which module took it.

    Args:
        kind: What the values are called in error messages, such as "model".
        package: The package whose modules register values. None if nothing is to be imported.

    Example:
        >>> colours: Registry[int] = Registry("colour")
        >>> colours.add(0xFF0000, "red", aliases=("scarlet",))
        16711680
        >>> colours.get("Scarlet") == colours.get("red")
        True
        >>> colours.get("rad")
        Traceback (most recent call last):
        ...
        postmax.errors.UnknownNameError: unknown colour 'rad'. Did you mean 'red'? Known: red.
    """

    def __init__(self, kind: str, package: str | None = None) -> None:
        self.kind = kind
        self._package = package
        self._discovered = package is None
        self._values: dict[str, T] = {}
        self._names: dict[str, str] = {}
        self._owners: dict[str, str] = {}
        self._order: dict[str, int] = {}
        self._codes: dict[str, CodeType] = {}
        self._refusals: dict[str, str] = {}

    def add(self, value: T, name: str, *, aliases: Iterable[str] = (), order: int = LAST) -> T:
        """Register `value` under `name` and `aliases`, and return it.

        Args:
            value: The value.
            name: Its name.
            aliases: Other names, which `names` does not list.
            order: Its place in `names`. Values with the same place are listed in the order of registration.

        Raises:
            InputError: If one of the names is taken. The message names the module that took it. Only a cell of a
                notebook that runs again may take its name again.
        """
        owner, code = _module_that_runs()
        if not self._is_own(owner):
            # A value from elsewhere must not take the name of a value of postmax that is not imported yet.
            self._discover()
        keys = {_key(alias): alias for alias in (name, *aliases)}
        for key, alias in keys.items():
            if key in self._names and not self._runs_again(self._names[key], name, owner, code):
                by = self._owners[self._names[key]]
                raise InputError(
                    f"the {self.kind} name {alias!r} is taken by {by}, so {owner} cannot register it. "
                    "Choose another name."
                )
        # The aliases of a value that is replaced go with it.
        for key in [key for key, known in self._names.items() if known == name]:
            del self._names[key]
        self._names.update(dict.fromkeys(keys, name))
        self._values[name] = value
        self._owners[name] = owner
        self._order[name] = order
        self._codes[name] = code
        return value

    def _runs_again(self, known: str, name: str, owner: str, code: CodeType) -> bool:
        """Return whether a cell of a notebook runs again, so that it may replace what it registered before.

        Each run of a cell compiles its code anew. A script that registers a name twice is one code, and is refused.
        """
        return known == name and owner == self._owners[known] == "__main__" and code is not self._codes[known]

    def refuse(self, reason: str, *names: str) -> None:
        """Answer a lookup of these names with `reason` instead of "unknown"."""
        self._refusals.update((_key(name), reason) for name in names)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._find(name) is not None

    def get(self, name: str) -> T:
        """Return the value called `name`.

        Raises:
            InputError: If the name is unknown or refused. The message suggests the nearest known name.
        """
        return self._values[self.name_of(name)]

    def name_of(self, name: object) -> str:
        """Return the name under which a name or alias was registered.

        Raises:
            InputError: If the name is unknown or refused. The message suggests the nearest known name.
        """
        found = self._find(name) if isinstance(name, str) else None
        if found is not None:
            return found
        if isinstance(name, str) and _key(name) in self._refusals:
            raise InputError(f"{self.kind} {name!r} is refused: {self._refusals[_key(name)]}")
        raise unknown_name(self.kind, name, self._values)

    def names(self) -> tuple[str, ...]:
        """Return all names without aliases, by their place and then in the order of registration."""
        self._discover()
        return tuple(sorted(self._values, key=self._order.__getitem__))

    def owner(self, name: str) -> str:
        """Return the name of the module that registered `name`."""
        return self._owners[self.name_of(name)]

    def is_builtin(self, name: str) -> bool:
        """Return whether `name` was registered by postmax itself, and not by a plugin or a user's program."""
        return self._is_own(self.owner(name))

    def _find(self, name: str) -> str | None:
        self._discover()
        key = _key(name)
        if key not in self._names and key not in self._refusals:
            plugins.load_entry_points()
        return self._names.get(key)

    def _discover(self) -> None:
        if self._discovered or self._package is None:
            return
        self._discovered = True
        try:
            import_modules(self._package)
        except BaseException:
            self._discovered = False
            raise

    def _is_own(self, module: str) -> bool:
        return module == self._package or module.startswith(f"{self._package or 'postmax'}.")


def _key(name: str) -> str:
    return "".join(c for c in name.lower() if c not in " -_")


def _module_that_runs() -> tuple[str, CodeType]:
    """Return the name and the code of the innermost module whose top-level code runs at this moment.

    Modules register their values while they are imported, so this is the module that registers. In a notebook or a
    script it is `__main__`.
    """
    frame = sys._getframe()
    while frame.f_back is not None and not frame.f_code.co_name.startswith(_TOP_LEVEL):
        frame = frame.f_back
    return str(frame.f_globals.get("__name__", "__main__")), frame.f_code


def import_modules(package: str) -> None:
    """Import every module of a package and of the packages in it, so that each can register what it defines."""
    for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
        importlib.import_module(module.name)


def near_names(given: str, names: Iterable[str], *, most: int) -> list[str]:
    """Return the names that are like the given one, the most similar first. Upper and lower case are the same.

    Example:
        >>> near_names("Smal", ["small", "SMALLER", "large"], most=2)
        ['small', 'SMALLER']
    """
    plain = {name.strip().lower(): name for name in names}
    return [plain[name] for name in difflib.get_close_matches(given.strip().lower(), plain, most, cutoff=_ALIKE)]


def nearest(given: str, names: Iterable[str]) -> str | None:
    """Return the name that is most like the given one; None if none is.

    Example:
        >>> nearest("specie", ["id", "Species"])
        'Species'
    """
    return next(iter(near_names(given, names, most=1)), None)


def unknown_name(kind: str, given: object, known: Iterable[str]) -> UnknownNameError:
    """Return the error for an unknown name: it tells the given name, the nearest known name, and all known names."""
    names = sorted(known)
    near = nearest(str(given), names)
    hint = "" if near is None else f" Did you mean {near!r}?"
    return UnknownNameError(f"unknown {kind} {given!r}.{hint} Known: {', '.join(names)}.")


def unknown_names(kind: str, given: Iterable[str], known: Iterable[str]) -> UnknownNameError:
    """Return one error for several unknown names, in the order in which they were given.

    Example:
        >>> print(unknown_names("row", ["kll", "sll", "x"], ["KL", "SL"]))
        unknown rows 'kll' (did you mean 'KL'?), 'sll' (did you mean 'SL'?), 'x'. Known: KL, SL.
    """
    names, wrong = tuple(known), tuple(given)
    near = ((name, nearest(name, names)) for name in wrong)
    parts = [repr(name) if meant is None else f"{name!r} (did you mean {meant!r}?)" for name, meant in near]
    several = "s" if len(wrong) > 1 else ""
    return UnknownNameError(f"unknown {kind}{several} {', '.join(parts)}. Known: {', '.join(names)}.")


def resolve(value: T | str, kind: type[T], lookup: Callable[[str], T]) -> T:
    """Return `value` itself if it is a `kind`, else the value that `lookup` finds under this name."""
    if isinstance(value, kind):
        return value
    if isinstance(value, str):
        return lookup(value)
    raise InputError(f"expected a {kind.__name__} or its name, got {type(value).__name__}.")


def options_of(build: Callable[..., Any]) -> Mapping[str, Any]:
    """Return the options of a builder, with their defaults: the keyword-only parameters of its signature.

    Example:
        >>> def build(shape, *, width=32, init="torch"): ...
        >>> dict(options_of(build))
        {'width': 32, 'init': 'torch'}
    """
    parameters = inspect.signature(build).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}


def check_options(owner: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Check that every given option is a known one.

    Args:
        owner: What has the options, such as "the loss gce"; it is named in the error.
        given: The names of the options that were given.
        known: The names of all options there are.

    Raises:
        InputError: If an option is unknown. The message suggests the nearest known option.

    Example:
        >>> check_options("small", ["widht"], ["width", "init"])
        Traceback (most recent call last):
        ...
        postmax.errors.UnknownNameError: unknown option of small 'widht'. Did you mean 'width'? Known: init, width.
    """
    known = tuple(known)
    for option in given:
        if not known:
            raise InputError(f"{owner} has no options, so {option!r} cannot be one.")
        if option not in known:
            raise unknown_name(f"option of {owner}", option, known)


def first_line(thing: object) -> str:
    """Return the first line of the docstring of a class, a function or a module: what it is, in a line.

    Example:
        >>> first_line(Registry)
        'A map from names and aliases to values.'
    """
    return (getattr(thing, "__doc__", None) or "").strip().partition("\n")[0]
