"""Costs by name, with what is known about them and the settings they were published with."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from postmax.costs.base import Cost, Role
from postmax.errors import InputError
from postmax.registry import Registry, import_modules, unknown_name

PRESETS = ("cifar10", "cifar100", "webvision")


@dataclass(frozen=True)
class Facts:
    """What a person choosing a loss wants to know.

    Attributes:
        symmetric: Σ_k cost_k is the same for every prediction, which makes symmetric noise harmless.
        bounded: No label costs more than some constant.
        role: As the literature classifies it (Ma et al. 2020), by how a loss is written and not by its gradient:
            "active" losses have a term for the label alone, "passive" ones have terms for other classes, which
            they make less probable. MAE and RCE are passive there, as sums over all classes, though they come to a
            multiple of 1 − p of the label; AUL, AGCE and AEL are written in p and so count as active,
            though AUL with q = 1 is MAE.
        needs: What has to be known beside the labels.
        source: Where it was published.
    """

    symmetric: bool
    bounded: bool
    role: Role
    source: str
    needs: str = "nothing"


@dataclass(frozen=True)
class Preset:
    """Published settings for a data set.

    Attributes:
        options: Of the cost.
        source: Where they come from.
        training: What was changed in training beside the loss, such as {"l1": 5e-5, "weight_decay": 0.0}.
    """

    options: Mapping[str, Any]
    source: str
    training: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Entry:
    """A named cost.

    Attributes:
        build: Makes it; its parameters are the options.
        summary: What it is, in a line.
        facts: What is known about it.
        presets: Published settings by data set.
    """

    build: Callable[..., Cost]
    summary: str
    facts: Facts
    presets: Mapping[str, Preset]


_COSTS: Registry[Entry] = Registry("loss")


def register(
    name: str,
    build: Callable[..., Cost],
    summary: str,
    facts: Facts,
    *,
    presets: Mapping[str, Preset] | None = None,
    aliases: tuple[str, ...] = (),
) -> None:
    """Make a cost known under `name`.

    A module of `postmax.costs` that calls this is found by itself: one file adds a loss.
    """
    _COSTS.add(Entry(build, summary, facts, presets or {}), name, aliases=aliases)


def register_sum(
    name: str,
    summary: str,
    facts: Facts,
    *,
    parts: tuple[str, str] | None = None,
    weights: tuple[float, float] = (1.0, 1.0),
    presets: Mapping[str, Preset] | None = None,
    aliases: tuple[str, ...] = (),
) -> None:
    """Make `alpha · active + beta · passive` known under `name`; the parts are named in it unless given.

    `weights` are alpha and beta for those who give none.
    """
    alpha, beta = weights
    register(
        name,
        functools.partial(weighted_sum, parts or tuple(name.split("+")), alpha=alpha, beta=beta),
        summary,
        facts,
        presets=presets,
        aliases=aliases,
    )


def weighted_sum(parts: tuple[str, ...], *, alpha: float = 1.0, beta: float = 1.0, **options: Any) -> Cost:
    """`alpha · first + beta · second`; an option goes to every part that has it."""
    _check_weights(alpha=alpha, beta=beta)
    costs = []
    for part in parts:
        known = option_names(part)
        costs.append(get(part, **{key: value for key, value in options.items() if key in known}))
    first, second = costs
    return alpha * first + beta * second


def _check_weights(**weights: object) -> None:
    for name, value in weights.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
            raise InputError(f"{name} is the weight of a part, a finite number ≥ 0, got {value!r}.")


def get(name: str, *, preset: str | None = None, **options: Any) -> Cost:
    """The cost called `name`; "a+b" is the sum of any two.

    Args:
        name: One of `names()`, or two of them joined by "+".
        preset: "cifar10", "cifar100" or "webvision": the settings published for that data set.
        options: Options of the cost; they win over the preset.

    Raises:
        InputError: If there is no such name, option or preset; the nearest known one is named.

    Example:
        >>> get("gce", q=0.5)
        GCE(q=0.5)
        >>> get("nce+rce", alpha=10, beta=0.1).terms[0]
        (10.0, NCE())
    """
    found = entry(name)
    known = option_names(name)
    for option in options:
        if option not in known:
            raise unknown_name(f"option of the loss {name}", option, known)
    return found.build(**{**published(name, preset).options, **options} if preset is not None else options)


def published(name: str, preset: str) -> Preset:
    """The settings a loss was published with for a data set.

    Raises:
        InputError: If there are none.
    """
    found = entry(name)
    if preset not in PRESETS:
        raise unknown_name("preset", preset, PRESETS)
    if preset in found.presets:
        return found.presets[preset]
    if not option_names(name):
        return Preset({}, "there is nothing to set")
    have = ", ".join(found.presets) or "none"
    raise InputError(f"no settings of {name} were published for {preset} (there are: {have}); give its options.")


def option_names(name: str) -> tuple[str, ...]:
    """The options of a cost."""
    build = entry(name).build
    if isinstance(build, functools.partial) and build.func is weighted_sum:
        parts = (option_names(part) for part in build.args[0])
        return tuple(dict.fromkeys(("alpha", "beta", *(option for part in parts for option in part))))
    return tuple(inspect.signature(build).parameters)


def entry(name: str) -> Entry:
    """What is known under `name`."""
    _discover()
    try:
        return _COSTS.get(name)
    except InputError:
        parts = tuple(part.strip() for part in str(name).split("+"))
        if len(parts) != 2 or not all(parts):
            raise
        a, b = (entry(part) for part in parts)
        for part in parts:
            taken = [option for option in ("alpha", "beta") if option in option_names(part)]
            if taken:
                raise InputError(
                    f"{name} cannot be made by name: alpha and beta are the weights of a sum, and {part} has "
                    f"{' and '.join(taken)} of its own. Use 2 * pm.costs.get({parts[0]!r}) + "
                    f"pm.costs.get({parts[1]!r}), with the options of each."
                ) from None
        needs = dict.fromkeys(part.facts.needs for part in (a, b) if part.facts.needs != "nothing")
        facts = Facts(
            symmetric=a.facts.symmetric and b.facts.symmetric,
            bounded=a.facts.bounded and b.facts.bounded,
            role=a.facts.role if a.facts.role == b.facts.role else "both",
            source="a sum of your own",
            needs="; ".join(needs) or "nothing",
        )
        return Entry(functools.partial(weighted_sum, parts), f"{parts[0]} + {parts[1]}", facts, {})


def names() -> tuple[str, ...]:
    """The names `get` knows."""
    _discover()
    return _COSTS.names()


@functools.cache
def _discover() -> None:
    """Import every module of this package, so that each registers its cost."""
    import_modules("postmax.costs")
