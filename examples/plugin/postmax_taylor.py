"""A postmax plugin: importing this module makes a loss and a model known by name.

Install it beside postmax, and both names work everywhere, also on the command line:

    pip install ./examples/plugin
    postmax train digits noise=symmetric:0.4 loss=taylor-ce loss.order=4 model=linear

Without installing it, name the module: `postmax --import postmax_taylor train …`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from postmax import losses, models
from postmax.errors import InputError


@dataclass(frozen=True)
class TaylorCrossEntropy(losses.Term):
    """The first terms of the Taylor series of cross-entropy: Σ_{k ≤ order} (1 − p)^k / k for the label's probability p.

    One term is the mean absolute error, which is robust; all terms are cross-entropy, which learns quickly.
    Feng, Shu, Lin, Lv, Li and An, Can cross entropy loss be robust to label noise?, IJCAI 2020.
    """

    order: int = 2

    def __post_init__(self) -> None:
        if self.order < 1:
            raise InputError(f"order is the number of terms of the series, at least 1; got {self.order}.")

    def __call__(self, inputs: losses.LabelledLogits) -> Tensor:
        """Return the loss of each requested label."""
        wrong = -inputs.label_log_p.expm1()  # 1 − p, accurate for p close to one
        total = wrong
        for k in range(2, self.order + 1):
            total = total + wrong**k / k
        return total


class Linear(models.Network):
    """One linear layer: multinomial logistic regression on the flattened inputs."""

    def __init__(self, input_shape: Sequence[int], num_classes: int) -> None:
        super().__init__()
        size = 1
        for side in input_shape:
            size *= side
        self.fc = nn.Linear(size, num_classes)

    def features(self, inputs: Tensor) -> Tensor:
        """Return the flattened inputs."""
        return inputs.flatten(1)


losses.register("taylor-ce", TaylorCrossEntropy, "cross-entropy cut off after some terms of its Taylor series")
models.register("linear", Linear, summary="one linear layer on the flattened inputs")
