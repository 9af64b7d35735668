"""Losses by name: the one registry of all losses."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from postmax.errors import InputError, UnknownNameError
from postmax.losses.base import Loss
from postmax.losses.facts import PRESETS, Facts, Preset, facts_of_sum
from postmax.losses.options import CONTRACT, checked_weight
from postmax.losses.term import Term, WeightedSum, weighted_sum
from postmax.losses.term_loss import TermLoss
from postmax.registry import Registry, unknown_name
from postmax.transition import Transition


@dataclass(frozen=True)
class Entry:
    """A named loss.

    Attributes:
        build: A callable that makes the loss or its term. Its parameters are the options. None for a sum.
        summary: One line that says what the loss is.
        facts: What is known about the loss.
        presets: Published settings by data set.
        parts: For a sum, the names of its two parts; otherwise empty.
        weights: For a sum, the default weights of its parts.
    """

    build: Callable[..., Term | Loss] | None
    summary: str
    facts: Facts | None
    presets: Mapping[str, Preset]
    parts: tuple[str, ...] = ()
    weights: tuple[float, float] = (1.0, 1.0)

    @property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """The parameters of the builder."""
        return {} if self.build is None else inspect.signature(self.build).parameters

    @property
    def takes_contract(self) -> bool:
        """Whether the builder itself takes options of `nn.CrossEntropyLoss`, as that of a whole loss does."""
        parameters = self.parameters.values()
        return any(p.name in CONTRACT or p.kind is p.VAR_KEYWORD for p in parameters)

    @property
    def own_options(self) -> tuple[str, ...]:
        """The options of the loss itself, without those of `nn.CrossEntropyLoss`; the noise is among them."""
        if self.parts:
            options = (option for part in self.parts for option in find(part).own_options)
            return tuple(dict.fromkeys(("alpha", "beta", *options)))
        named = (p.name for p in self.parameters.values() if p.kind is not p.VAR_KEYWORD)
        return tuple(name for name in named if name not in (*CONTRACT, "num_classes"))

    @property
    def contract_options(self) -> tuple[str, ...]:
        """The options of `nn.CrossEntropyLoss` that the loss takes."""
        parameters = self.parameters
        if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
            return CONTRACT
        makes_loss = isinstance(self.build, type) and issubclass(self.build, Loss)
        if makes_loss or self.takes_contract:
            return tuple(option for option in CONTRACT if option in parameters)
        return CONTRACT  # TermLoss takes them


_LOSSES: Registry[Entry] = Registry("loss", package="postmax.losses")


def register(
    name: str,
    build: Callable[..., Term | Loss],
    summary: str,
    facts: Facts | None = None,
    *,
    presets: Mapping[str, Preset] | None = None,
    aliases: tuple[str, ...] = (),
) -> None:
    """Make a loss known under `name`.

    A module of `postmax.losses` or `postmax.losses.terms` that calls this is found without being listed anywhere.

    Args:
        name: The name.
        build: Makes the loss: a `Term` class, a `Loss` class, or a function that returns either. Its parameters are the
            options of the loss. A `Loss` that is to be trained by `postmax train` takes `reduction`.
        summary: One line that says what the loss is.
        facts: What is known about the loss.
        presets: The settings with which it was published, by data set.
        aliases: Other names.
    """
    _LOSSES.add(Entry(build, summary, facts, presets or {}), name, aliases=aliases)


def register_sum(
    name: str,
    summary: str,
    facts: Facts | None = None,
    *,
    parts: tuple[str, str] | None = None,
    weights: tuple[float, float] = (1.0, 1.0),
    presets: Mapping[str, Preset] | None = None,
    aliases: tuple[str, ...] = (),
) -> None:
    """Make the loss `alpha·first + beta·second` known under `name`.

    Args:
        name: The name, such as "nce+rce".
        summary: One line that says what the loss is.
        facts: What is known about the loss.
        parts: The names of the two losses. By default `name` holds them, joined by "+".
        weights: The default values of alpha and beta.
        presets: The settings with which it was published, by data set.
        aliases: Other names.
    """
    parts = parts or _parts(name)
    if parts is None:
        raise InputError(f"{name!r} does not name two losses joined by '+': give them as parts=(first, second).")
    _LOSSES.add(Entry(None, summary, facts, presets or {}, parts, weights), name, aliases=aliases)


def get(
    name: str,
    *,
    preset: str | None = None,
    num_classes: int | None = None,
    transition: Transition | None = None,
    **options: Any,
) -> Loss:
    """Return the loss called `name`.

    Args:
        name: One of `names()`, or two of them joined by "+" for their sum `alpha·first + beta·second`.
        preset: "cifar10", "cifar100" or "webvision", for the settings published for that data set.
        num_classes: The number of classes that logits must have; None if any number will do.
        transition: The label noise, for losses and corrections that use it. Others do not look at it.
        options: Options of the loss, which override the preset, and weight, ignore_index, reduction, label_smoothing.

    Raises:
        InputError: If there is no such loss, option or preset. The message names the nearest known one.

    Example:
        >>> get("fpml", divergence="sl")
        FPMLLoss(divergence='sl', link='sigmoid')
        >>> get("gce", preset="cifar10", reduction="sum")
        TermLoss(GCE(q=0.7), reduction='sum')
        >>> get("fpml", divergense="sl")
        Traceback (most recent call last):
        ...
        postmax.errors.UnknownNameError: unknown option of the loss fpml 'divergense'. Did you mean 'divergence'? ...
    """
    entry, known = find(name), option_names(name)
    for option in options:
        if option not in known:
            raise unknown_name(f"option of the loss {name}", option, known)
    if preset is not None:
        options = {**published(name, preset).options, **options}
    if needs_transition(name, options) and transition is None:
        check_names(name, options)
        which = f" with correction={options['correction']!r}" if "correction" in options else ""
        raise InputError(f"the loss {name}{which} needs the label noise: pass transition=pm.Transition(matrix).")
    if not entry.takes_contract:
        contract = {key: options.pop(key) for key in CONTRACT if key in options}
        built = _build(name, options, transition)
        if isinstance(built, Term):
            return TermLoss(built, num_classes=num_classes, **contract)
        return _checked(name, built, {**contract, **({} if num_classes is None else {"num_classes": num_classes})})
    if num_classes is not None:
        if "num_classes" not in entry.parameters:
            raise _cannot_take(name, "num_classes")
        options["num_classes"] = num_classes
    return _checked(name, _build(name, options, transition), {})


def check_names(name: str, options: Mapping[str, Any]) -> None:
    """Check the name of a loss and the names in its options, such as that of a divergence, before the noise is known.

    Raises:
        UnknownNameError: If there is no such loss, option, divergence, link or correction.
    """
    try:
        get(name, transition=Transition.identity(2), **options)
    except UnknownNameError:
        raise
    except InputError:
        return  # other options may not fit two classes; they are checked when the noise is known


def names() -> tuple[str, ...]:
    """Return the names of all losses, in alphabetical order."""
    return tuple(sorted(_LOSSES.names()))


def summary(name: str) -> str:
    """Return one line that says what a loss is."""
    return find(name).summary


def describe(name: str) -> Facts | None:
    """Return the properties of a loss: symmetric, bounded, active or passive, what it needs to know, its source."""
    return find(name).facts


def published(name: str, preset: str) -> Preset:
    """Return the settings with which a loss was published for "cifar10", "cifar100" or "webvision".

    Raises:
        InputError: If there are none.
    """
    entry = find(name)
    if entry.takes_contract and not entry.presets:
        raise InputError(f"{name} has no published settings by data set; give its options.")
    if preset not in PRESETS:
        raise unknown_name("preset", preset, PRESETS)
    if preset in entry.presets:
        return entry.presets[preset]
    if not entry.own_options:
        return Preset({}, "there is nothing to set")
    have = ", ".join(entry.presets) or "none"
    raise InputError(f"no settings of {name} were published for {preset} (there are: {have}); give its options.")


def option_names(name: str) -> tuple[str, ...]:
    """Return the names of the options of a loss: its own, and those it shares with `nn.CrossEntropyLoss`."""
    entry = find(name)
    # The noise is left out, because `get` has an argument of its own for it.
    return (*(option for option in entry.own_options if option != "transition"), *entry.contract_options)


def needs_transition(name: str, options: Mapping[str, Any]) -> bool:
    """Return whether a loss with these options uses the label noise."""
    entry = find(name)
    if entry.parts:
        return any(needs_transition(part, options) for part in entry.parts)
    own = entry.own_options
    return "transition" in own and ("correction" not in own or options.get("correction") is not None)


def _build(name: str, options: Mapping[str, Any], transition: Transition | None) -> Term | Loss:
    """Return what the builder of a loss makes of its options."""
    entry = find(name)
    if entry.build is None:
        return _sum(entry, options, transition)
    noise = {"transition": transition} if needs_transition(name, options) else {}
    return entry.build(**options, **noise)


def _sum(entry: Entry, options: Mapping[str, Any], transition: Transition | None) -> WeightedSum:
    """Return `alpha·first + beta·second`. Each option goes to every part that has it."""
    defaults = zip(("alpha", "beta"), entry.weights, strict=True)
    weights = [checked_weight(name, options.get(name, default)) for name, default in defaults]
    terms = []
    for part in entry.parts:
        own = find(part).own_options
        made = _build(part, {key: value for key, value in options.items() if key in own}, transition)
        terms.append(made if isinstance(made, Term) else _term_of(part, made))
    return weighted_sum(*zip(weights, terms, strict=True))


def _term_of(name: str, loss: Loss) -> Term:
    summable = _checked(name, loss, {}).summable()
    if not isinstance(summable, TermLoss):
        raise InputError(f"the loss {name} cannot be part of a sum by name: add it with +.")
    return summable.term


def _checked(name: str, built: object, left_over: Mapping[str, object]) -> Loss:
    """Return what a builder made, after checking that it is a `Loss` and that no option is left over."""
    if not isinstance(built, Loss):
        raise InputError(
            f"the builder of the loss {name} must return a postmax.losses.Loss or a postmax.losses.Term, got "
            f"{type(built).__name__}."
        )
    for option in left_over:
        raise _cannot_take(name, option)
    return built


def _cannot_take(name: str, option: str) -> InputError:
    return InputError(f"the loss {name} does not take {option}: its builder has no parameter of that name.")


def find(name: str) -> Entry:
    """Return the entry of `name`; for two names joined by "+", an entry of their sum."""
    try:
        return _LOSSES.get(name)
    except InputError:
        both = _parts(name)
        if both is None:
            raise
        first, second = (find(part) for part in both)
        for part in both:
            taken = [option for option in ("alpha", "beta") if option in find(part).own_options]
            if taken:
                raise InputError(
                    f"{name} cannot be made by name: alpha and beta are the weights of a sum, and {part} has "
                    f"{' and '.join(taken)} of its own. Use 2 * pm.losses.get({both[0]!r}) + "
                    f"pm.losses.get({both[1]!r}), with the options of each."
                ) from None
        return Entry(None, f"{both[0]} + {both[1]}", facts_of_sum(first.facts, second.facts), {}, both)


def _parts(name: object) -> tuple[str, str] | None:
    """Return the two names that are joined by "+" in `name`; None if there are not exactly two."""
    match [part.strip() for part in str(name).split("+")]:
        case [first, second] if first and second:
            return first, second
    return None
