"""Symmetric cross-entropy: cross-entropy + reverse cross-entropy.

It is symmetric in its two distributions, but not in labels.

Wang et al., Symmetric cross entropy for robust learning with noisy labels, ICCV 2019.
"""

from __future__ import annotations

from postmax.losses.catalogue import register_sum
from postmax.losses.facts import Facts, Preset

register_sum(
    "sce",
    "symmetric cross-entropy: cross-entropy + reverse cross-entropy",
    Facts(symmetric=False, bounded=False, role="both", source="Wang et al. 2019"),
    parts=("ce", "rce"),
    weights=(0.1, 1.0),
    presets={
        "cifar10": Preset({"alpha": 0.1, "beta": 1.0}, "Wang et al. 2019, APL and ANL code (ALFs: 1, 1)"),
        "cifar100": Preset({"alpha": 6.0, "beta": 0.1}, "Wang et al. 2019, APL and ANL code (ALFs: 1, 1)"),
        "webvision": Preset({"alpha": 10.0, "beta": 1.0}, "ANL code"),
    },
    aliases=("symmetric-cross-entropy",),
)
