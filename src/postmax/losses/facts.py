"""What is known about a named loss: its properties and its published settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

PRESETS = ("cifar10", "cifar100", "webvision")
"""The data sets for which settings are published."""

Role = Literal["active", "passive", "both"]


@dataclass(frozen=True)
class Facts:
    """The properties of a loss that help to choose one.

    Attributes:
        symmetric: Whether the sum of the loss over all labels is the same for every prediction. Symmetric noise then
            does no harm.
        bounded: Whether the loss of a label is never above some constant.
        role: The class of the loss in the literature (Ma et al. 2020), which follows from how a loss is written and not
            from its gradient. "active" losses have a term for the label alone. "passive" losses have terms for other
            classes, which they make less probable. MAE and RCE are passive there, as sums over all classes, although
            they are a multiple of 1 − p of the label. AUL, AGCE and AEL are written in p and so are active, although
            AUL with q = 1 is MAE.
        source: Where the loss was published.
        needs: What must be known besides the labels.
    """

    symmetric: bool
    bounded: bool
    role: Role
    source: str
    needs: str = "nothing"


@dataclass(frozen=True)
class Preset:
    """The settings with which a loss was published for one data set.

    Attributes:
        options: The options of the loss.
        source: Where the settings come from.
        training: Settings of the training that were changed with the loss, such as {"l1": 5e-5, "weight_decay": 0.0}.
    """

    options: Mapping[str, Any]
    source: str
    training: Mapping[str, float] = field(default_factory=dict)


def facts_of_sum(first: Facts | None, second: Facts | None) -> Facts | None:
    """Return what follows from the facts of two losses for their sum; None if the facts of one are unknown."""
    if first is None or second is None:
        return None
    needs = dict.fromkeys(facts.needs for facts in (first, second) if facts.needs != "nothing")
    return Facts(
        symmetric=first.symmetric and second.symmetric,
        bounded=first.bounded and second.bounded,
        role=first.role if first.role == second.role else "both",
        source="a sum of your own",
        needs="; ".join(needs) or "nothing",
    )
