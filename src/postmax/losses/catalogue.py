"""Losses by name: f-PML in its forms, and every cost."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, Unpack

from torch import Tensor

from postmax import costs
from postmax.costs.catalogue import entry as cost_entry
from postmax.costs.catalogue import option_names as cost_options
from postmax.errors import InputError
from postmax.functional.rows import Contract
from postmax.losses.base import Loss
from postmax.losses.cost import CostLoss
from postmax.losses.dmi import DMILoss
from postmax.losses.fpml import FPMLLoss
from postmax.registry import Registry, unknown_name
from postmax.transition import Transition
from postmax.transition.matrix import Matrix

_CONTRACT = tuple(Contract.__annotations__)


class PosteriorLoss(Protocol):
    """A loss that knows what the logits it trains mean."""

    def __call__(self, logits: Tensor, target: Tensor, /) -> Tensor:
        """The loss."""
        ...

    def posterior(self, logits: Tensor, /) -> Tensor:
        """P(class | x)."""
        ...

    def predict(self, logits: Tensor, /) -> Tensor:
        """The most probable class."""
        ...


@dataclass(frozen=True)
class Entry:
    """A named loss: how it is made, what it is in a line, and what a person choosing it wants to know."""

    build: Callable[..., Loss]
    summary: str
    facts: costs.Facts | None = None


_LOSSES: Registry[Entry] = Registry("loss")


def register(
    name: str,
    build: Callable[..., Loss],
    summary: str,
    *,
    facts: costs.Facts | None = None,
    aliases: tuple[str, ...] = (),
) -> None:
    """Make a loss known under `name` that is not a cost; its options are the keyword arguments of `build`.

    A loss that says what a label costs belongs into `postmax.costs`, where one file adds it.
    """
    _LOSSES.add(Entry(build, summary, facts), name, aliases=aliases)


def get(
    name: str,
    *,
    preset: str | None = None,
    num_classes: int | None = None,
    transition: Transition | None = None,
    **options: Any,
) -> Loss:
    """The loss called `name`.

    Args:
        name: One of `names()`; two costs joined by "+" are their sum.
        preset: "cifar10", "cifar100" or "webvision": the settings published for that data set.
        num_classes: How many classes the logits must have, if they are to be checked.
        transition: The label noise, for losses and corrections that use it; others pass over it.
        options: Options of the loss, which win over the preset, and weight, ignore_index, reduction, label_smoothing.

    Raises:
        InputError: If there is no such loss or option; the nearest known one is named.

    Example:
        >>> get("fpml", divergence="sl")
        FPMLLoss(divergence='sl', link='sigmoid')
        >>> get("gce", preset="cifar10", reduction="sum")
        CostLoss(GCE(q=0.7), reduction='sum')
        >>> get("fpml", divergense="sl")
        Traceback (most recent call last):
        ...
        postmax.errors.InputError: unknown option of the loss fpml 'divergense'. Did you mean 'divergence'? ...
    """
    known = option_names(name)
    for option in options:
        if option not in known:
            raise unknown_name(f"option of the loss {name}", option, known)
    if needs_transition(name, options):
        if transition is None:
            which = f" with correction={options['correction']!r}" if "correction" in options else ""
            raise InputError(f"the loss {name}{which} needs the label noise: pass transition=pm.Transition(matrix).")
        options["transition"] = transition
    special = _special(name)
    if special is None:
        contract = {key: options.pop(key) for key in _CONTRACT if key in options}
        return CostLoss(costs.get(name, preset=preset, **options), num_classes=num_classes, **contract)
    if preset is not None:
        raise _nothing_published(name)
    if num_classes is not None:
        if "num_classes" not in inspect.signature(special.build).parameters:
            raise InputError(f"the loss {name} cannot check num_classes.")
        options["num_classes"] = num_classes
    return special.build(**options)


def needs_transition(name: str, options: dict[str, Any]) -> bool:
    """Whether a loss with these options uses the label noise."""
    special = _special(name)
    if special is None:
        return "transition" in cost_options(name)
    parameters = inspect.signature(special.build).parameters
    if "transition" not in parameters:
        return False
    return "correction" not in parameters or options.get("correction") is not None


def option_names(name: str) -> tuple[str, ...]:
    """What can be set: options of the loss itself, and those all losses share with `nn.CrossEntropyLoss`."""
    special = _special(name)
    if special is None:
        own = cost_options(name)
        return (*(option for option in own if option != "transition"), *_CONTRACT)
    parameters = inspect.signature(special.build).parameters.values()
    named = [p.name for p in parameters if p.kind is not p.VAR_KEYWORD and p.name not in ("transition", "num_classes")]
    return (*named, *(_CONTRACT if any(p.kind is p.VAR_KEYWORD for p in parameters) else ()))


def names() -> tuple[str, ...]:
    """The names `get` knows."""
    return (*_LOSSES.names(), *costs.names())


def summary(name: str) -> str:
    """What a loss is, in a line."""
    special = _special(name)
    return cost_entry(name).summary if special is None else special.summary


def describe(name: str) -> costs.Facts | None:
    """Whether a loss is symmetric, bounded, active or passive, what it needs to know, and where it was published."""
    special = _special(name)
    return cost_entry(name).facts if special is None else special.facts


def preset(name: str, data_set: str) -> costs.Preset:
    """The settings a loss was published with for "cifar10", "cifar100" or "webvision", with their source."""
    if _special(name) is not None:
        raise _nothing_published(name)
    return costs.published(name, data_set)


def _nothing_published(name: str) -> InputError:
    return InputError(f"{name} has no published settings by data set; give its options.")


def _special(name: str) -> Entry | None:
    """The loss of this name that is not a cost; None for costs.

    Raises:
        InputError: If there is neither.
    """
    try:
        return _LOSSES.get(name)
    except InputError:
        try:
            cost_entry(name)
        except InputError:
            if "+" not in str(name):
                raise unknown_name("loss", name, names()) from None
            for part in name.split("+"):
                if _is_no_cost(part):
                    raise InputError(f"{part.strip()} is no cost, and only costs can be added: {name}.") from None
            raise
        return None


def _is_no_cost(name: str) -> bool:
    try:
        _LOSSES.get(name)
    except InputError:
        return False
    return True


_FPML = "f-divergence posterior maximisation"
_SOURCE = "the f-PML paper"
_NOISE = "nothing; the noise, to correct for it"
register(
    "fpml",
    FPMLLoss,
    f"{_FPML}: any divergence, link and correction",
    facts=costs.Facts(
        symmetric=False, bounded=False, role="both", source=_SOURCE, needs="the noise, to correct for it"
    ),
    aliases=("pml",),
)
for _divergence in ("kl", "gan", "sl", "js"):
    register(
        f"{_divergence}-pml",
        partial(FPMLLoss, _divergence),
        f"{_FPML} with {_divergence.upper()}",
        # With the default link D ≤ 1, where SL is the one of them whose score and penalty both stay finite.
        facts=costs.Facts(symmetric=False, bounded=_divergence == "sl", role="both", source=_SOURCE, needs=_NOISE),
    )


def forward_correction(
    *, transition: Transition | Matrix, num_classes: int | None = None, **contract: Unpack[Contract]
) -> FPMLLoss:
    """−log (Pᵀp)_y: the softmax p of the true class is sent through the noise before it meets the label."""
    return FPMLLoss("kl", "softmax", transition=transition, correction="forward", num_classes=num_classes, **contract)


def backward_correction(
    *, transition: Transition | Matrix, num_classes: int | None = None, **contract: Unpack[Contract]
) -> FPMLLoss:
    """Σ_j P⁻¹[y, j]·(−log p_j): an unbiased estimate of the cross-entropy of the true label.

    The cost "unbiased" with cross-entropy as its base is the same loss, apart from two options: class weights are those
    of the true classes here and refused there; label smoothing spreads over true classes here and over labels there.
    """
    return FPMLLoss(
        "kl", "softmax", transition=transition, correction="objective", floor=0.0, num_classes=num_classes, **contract
    )


_PATRINI = costs.Facts(
    symmetric=False,
    bounded=False,
    role="both",
    source="Patrini et al., Making deep neural networks robust to label noise: A loss correction approach, CVPR 2017",
    needs="the transition matrix",
)
register(
    "forward",
    forward_correction,
    "forward correction of cross-entropy: −log (Pᵀp)_y",
    facts=_PATRINI,
    aliases=("forward-correction",),
)
register(
    "backward",
    backward_correction,
    "backward correction of cross-entropy: Σ_j P⁻¹[y, j]·(−log p_j)",
    facts=_PATRINI,
    aliases=("backward-correction",),
)
register(
    "dmi",
    DMILoss,
    "determinant-based mutual information −log(|det M| + 0.001) of a batch, after a warm-up",
    facts=costs.Facts(symmetric=False, bounded=True, role="both", source="Xu et al. 2019"),
    aliases=("l-dmi",),
)
