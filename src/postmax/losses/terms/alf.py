"""Normalised cross-entropy + an asymmetric loss, and the weights they were published with.

Zhou et al., Asymmetric loss functions for learning with noisy labels, ICML 2021 (ALFs).
"""

from __future__ import annotations

from postmax.losses.catalogue import register_sum
from postmax.losses.facts import Facts, Preset

# The sums are not symmetric, because their asymmetric parts are not.
_ALF = Facts(symmetric=False, bounded=True, role="active", source="Zhou et al. 2021")

register_sum(
    "nce+agce",
    "normalised cross-entropy + asymmetric GCE",
    _ALF,
    presets={
        "cifar10": Preset({"alpha": 1.0, "beta": 4.0, "a": 6.0, "q": 1.5}, "ALFs code"),
        "cifar100": Preset({"alpha": 10.0, "beta": 0.1, "a": 1.8, "q": 3.0}, "ALFs code"),
        "webvision": Preset({"alpha": 50.0, "beta": 0.1, "a": 2.5, "q": 3.0}, "ANL code"),
    },
)
register_sum(
    "nce+aul",
    "normalised cross-entropy + asymmetric unhinged loss",
    _ALF,
    presets={
        "cifar10": Preset({"alpha": 1.0, "beta": 4.0, "a": 6.3, "q": 1.5}, "ALFs code"),
        "cifar100": Preset({"alpha": 10.0, "beta": 0.015, "a": 6.0, "q": 3.0}, "ALFs code"),
    },
)
register_sum(
    "nce+ael",
    "normalised cross-entropy + asymmetric exponential loss",
    _ALF,
    presets={
        "cifar10": Preset({"alpha": 1.0, "beta": 4.0, "a": 5.0}, "ALFs code"),
        "cifar100": Preset({"alpha": 10.0, "beta": 0.1, "a": 1.5}, "ALFs code"),
    },
)
