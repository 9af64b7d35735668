"""Active + negative sums, and the weights they were published with.

Ye et al., Active negative loss functions for learning with noisy labels, NeurIPS 2023 (ANL). They are trained
without weight decay, but with a multiple of the sum of the absolute values of all parameters added to the loss.
"""

from __future__ import annotations

from postmax.losses.catalogue import register_sum
from postmax.losses.facts import Facts, Preset

_ANL = Facts(symmetric=True, bounded=True, role="both", source="Ye et al. 2023")


def _preset(alpha: float, beta: float, l1: float) -> Preset:
    return Preset({"alpha": alpha, "beta": beta}, "ANL code", training={"l1": l1, "weight_decay": 0.0})


register_sum(
    "anl-ce",
    "normalised cross-entropy + normalised negative cross-entropy",
    _ANL,
    parts=("nce", "nnce"),
    weights=(5.0, 5.0),
    presets={
        "cifar10": _preset(5.0, 5.0, 5e-5),
        "cifar100": _preset(10.0, 1.0, 5e-7),
        "webvision": _preset(20.0, 1.0, 5e-6),
    },
)
register_sum(
    "anl-fl",
    "normalised focal loss + normalised negative focal loss",
    _ANL,
    parts=("nfl", "nnfl"),
    weights=(5.0, 5.0),
    presets={"cifar10": _preset(5.0, 5.0, 5e-5), "cifar100": _preset(10.0, 1.0, 5e-7)},
)
