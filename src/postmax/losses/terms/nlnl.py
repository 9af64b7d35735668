"""Negative learning: the network learns which classes a row does not have.

Kim et al., NLNL: Negative learning for noisy labels, ICCV 2019.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from postmax.losses.catalogue import register
from postmax.losses.facts import Facts
from postmax.losses.numerics.stable import log_rest, sum_of_others
from postmax.losses.term import LabelledLogits, Term


@dataclass(frozen=True)
class NLNL(Term):
    """The mean of −log(1 − p_k) over all classes k other than the label.

    In the paper one such class is drawn at random for every row. This is the expectation of that loss: it has the same
    minimum, no randomness, and a gradient with less variance. It is the first of the published stages; in the paper,
    selection of rows and training on pseudo-labels follow. With two classes it is cross-entropy.
    """

    def __call__(self, inputs: LabelledLogits) -> Tensor:
        """Return the loss of each requested label."""
        return sum_of_others(log_rest(inputs.log_p), inputs.labels) / (1 - inputs.num_classes)


register(
    "nlnl",
    NLNL,
    "negative learning: mean of −log(1 − p) over the other classes",
    Facts(symmetric=False, bounded=False, role="passive", source="Kim et al. 2019"),
    aliases=("negative-learning",),
)
