"""Methods by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from postmax.methods.facts import Facts, Preset
from postmax.methods.method import Method, Setup
from postmax.registry import Registry, check_options, options_of, unknown_name

_PRESET = "preset"


@dataclass(frozen=True)
class Entry:
    """A named method.

    Attributes:
        name: The name.
        build: Makes the method from a `Setup` and options.
        summary: What the method is, in one line.
        facts: What else is known about it.
        presets: Published settings, by the name of a data set or of its noise.
    """

    name: str
    build: Callable[..., Method]
    summary: str
    facts: Facts | None = None
    presets: Mapping[str, Preset] = field(default_factory=dict)

    @property
    def options(self) -> tuple[str, ...]:
        """The names of the options: the keyword-only arguments of `build`, and "preset" if there are presets."""
        return (*options_of(self.build), *([_PRESET] if self.presets else []))

    @property
    def one_network_one_loss(self) -> bool:
        """Whether several seeds can be trained side by side; see `Method.one_network_one_loss`."""
        # Only what the class says itself: a subclass may train in another way.
        own = vars(self.build) if isinstance(self.build, type) else {}
        return bool(own.get("one_network_one_loss", False))

    def check_options(self, given: Iterable[str]) -> None:
        """Check that all given names are options.

        Raises:
            InputError: If one is not; the message names the nearest option.
        """
        check_options(f"the method {self.name}", given, self.options)

    def with_preset(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options for `build`: those of the preset that is named, changed by those that are given.

        Raises:
            InputError: If there is no preset of this name; the message names the nearest one.
        """
        options = dict(given)
        name = options.pop(_PRESET, None)
        if name is None:
            return options
        if name not in self.presets:
            raise unknown_name(f"preset of the method {self.name}", name, self.presets)
        return {**self.presets[name].options, **options}


_METHODS: Registry[Entry] = Registry("method", package="postmax.methods")


def register(
    name: str,
    build: Callable[..., Method],
    summary: str,
    facts: Facts | None = None,
    *,
    presets: Mapping[str, Preset] | None = None,
) -> None:
    """Make a method known under a name.

    Files in `postmax/methods` are imported when a method is asked for, so one file is enough to add a method. Other
    packages call this function when they are imported.

    Args:
        name: The name, for `method=NAME` in a configuration.
        build: A `Method` class, or a function that takes a `Setup` and options and returns a `Method`.
        summary: What the method is, in one line.
        facts: What else is known about it.
        presets: The settings with which it was published, by data set: `method.preset=cifar10` chooses them.
    """
    _METHODS.add(Entry(name, build, summary, facts, presets or {}), name)


def get(name: str, setup: Setup, **options: Any) -> Method:
    """Return a new method.

    Raises:
        InputError: If there is no such method or option; the message names the nearest one.
    """
    entry = describe(name)
    entry.check_options(options)
    return entry.build(setup, **entry.with_preset(options))


def describe(name: str) -> Entry:
    """Return what is known about a method without building it.

    Raises:
        InputError: If there is no such method; the message names the nearest one.
    """
    return _METHODS.get(name)


def names() -> tuple[str, ...]:
    """Return the names of all methods."""
    return _METHODS.names()


def summary(name: str) -> str:
    """Return what a method is, in one line."""
    return describe(name).summary
