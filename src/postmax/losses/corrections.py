"""The forward and backward corrections of cross-entropy, by the names under which they are known.

Patrini et al., Making deep neural networks robust to label noise: A loss correction approach, CVPR 2017.
"""

from __future__ import annotations

from typing import Unpack

from postmax.losses.catalogue import register
from postmax.losses.facts import Facts
from postmax.losses.fpml import FPMLLoss
from postmax.losses.options import Contract
from postmax.transition import Transition
from postmax.transition.matrix import Matrix


def forward_correction(
    *, transition: Transition | Matrix, num_classes: int | None = None, **contract: Unpack[Contract]
) -> FPMLLoss:
    """−log (Pᵀp)_y: the softmax p of the true class is sent through the noise and then compared with the label."""
    return FPMLLoss("kl", "softmax", transition=transition, correction="forward", num_classes=num_classes, **contract)


def backward_correction(
    *, transition: Transition | Matrix, num_classes: int | None = None, **contract: Unpack[Contract]
) -> FPMLLoss:
    """Σ_j P⁻¹[y, j]·(−log p_j): an unbiased estimate of the cross-entropy of the true label.

    The loss "unbiased" with cross-entropy as its base is the same, apart from two options. Class weights are those of
    the true classes here; there they are refused. Label smoothing spreads over true classes here, over labels there.
    """
    return FPMLLoss(
        "kl", "softmax", transition=transition, correction="objective", floor=0.0, num_classes=num_classes, **contract
    )


_FACTS = Facts(
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
    _FACTS,
    aliases=("forward-correction",),
)
register(
    "backward",
    backward_correction,
    "backward correction of cross-entropy: Σ_j P⁻¹[y, j]·(−log p_j)",
    _FACTS,
    aliases=("backward-correction",),
)
