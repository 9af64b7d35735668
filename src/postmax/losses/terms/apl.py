"""Active + passive sums, and the weights they were published with.

Ma et al., Normalized loss functions for deep learning with noisy labels, ICML 2020 (APL).
"""

from __future__ import annotations

from postmax.losses.catalogue import register_sum
from postmax.losses.facts import Facts, Preset

_APL = Facts(symmetric=True, bounded=True, role="both", source="Ma et al. 2020")

register_sum(
    "nce+rce",
    "normalised cross-entropy + reverse cross-entropy",
    _APL,
    presets={
        "cifar10": Preset({"alpha": 1.0, "beta": 1.0}, "APL and ANL code"),
        "cifar100": Preset({"alpha": 10.0, "beta": 0.1}, "APL and ANL code (ALFs: 10, 1)"),
        "webvision": Preset({"alpha": 50.0, "beta": 0.1}, "ANL code"),
    },
)
register_sum(
    "nce+mae",
    "normalised cross-entropy + mean absolute error",
    _APL,
    presets={
        "cifar10": Preset({"alpha": 1.0, "beta": 1.0}, "APL and ANL code"),
        "cifar100": Preset({"alpha": 10.0, "beta": 0.1}, "ANL code (APL and ALFs: 10, 1)"),
    },
)
register_sum(
    "nfl+mae",
    "normalised focal loss + mean absolute error",
    _APL,
    presets={
        "cifar10": Preset({"alpha": 1.0, "beta": 1.0, "gamma": 0.5}, "APL code"),
        "cifar100": Preset({"alpha": 10.0, "beta": 1.0, "gamma": 0.5}, "APL code"),
    },
)
register_sum(
    "nfl+rce",
    "normalised focal loss + reverse cross-entropy",
    _APL,
    presets={
        "cifar10": Preset({"alpha": 1.0, "beta": 1.0, "gamma": 0.5}, "APL and ANL code"),
        "cifar100": Preset({"alpha": 10.0, "beta": 0.1, "gamma": 0.5}, "APL and ANL code (ALFs: 10, 1)"),
    },
)
