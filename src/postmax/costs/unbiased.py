"""An unbiased estimator, from noisy labels, of what a cost would be for the true ones.

Natarajan, Dhillon, Ravikumar and Tewari, Learning with noisy labels, NeurIPS 2013 (two classes);
van Rooyen and Williamson, A theory of learning with corrupted labels, JMLR 2018 (any number of them).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from torch import Tensor

from postmax.costs.base import Cost, Rows
from postmax.costs.catalogue import Facts, register
from postmax.costs.noise import base_cost, known_noise, no_weights
from postmax.errors import InputError
from postmax.transition import Transition
from postmax.transition.constant import Constant
from postmax.transition.matrix import Matrix


@dataclass(frozen=True)
class Unbiased(Cost):
    """Σ_j P⁻¹[y, j]·base_j, whose mean over the noisy label y is the base cost of the true one.

    With cross-entropy as its base this is the loss "backward", apart from two options: that one takes class weights, of
    the true classes, while they are refused here; and its label smoothing spreads over true classes, not over labels.

    Some entries of P⁻¹ are negative: with an unbounded base such as cross-entropy the cost of a row has no lower bound.

    Args:
        transition: The label noise P, a `Transition` or its matrix.
        base: The cost to estimate, or its name.
    """

    transition: Transition | Matrix | None = None
    base: str | Cost = "ce"
    _noise: Transition = field(init=False, repr=False, compare=False)
    _base: Cost = field(init=False, repr=False, compare=False)
    _weights: Constant = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        noise = known_noise("unbiased", self.transition)
        base = base_cost(self.base)
        if base.num_classes not in (None, noise.num_classes):
            raise InputError(f"the noise is for {noise.num_classes} classes, the base cost for {base.num_classes}.")
        object.__setattr__(self, "transition", noise)
        object.__setattr__(self, "_noise", noise)
        object.__setattr__(self, "_base", base)
        object.__setattr__(self, "_weights", Constant(noise.inverse.T.contiguous()))

    @property
    def mixes_rows(self) -> bool:  # type: ignore[override]
        """Whether the base cost does."""
        return self._base.mixes_rows

    @property
    def num_classes(self) -> int:
        """K."""
        return self._noise.num_classes

    def __call__(self, rows: Rows) -> Tensor:
        """The price of each label asked for."""
        prices = self._base(Rows(rows.logits, None, rows.others))
        return rows.of(prices @ self._weights.like(prices))

    @property
    def reading(self) -> object:
        """The noise, and how the base cost reads logits."""
        return "noisy", self._noise, self._base.reading

    def posterior(self, logits: Tensor) -> Tensor:
        """That of the base cost: of the true class."""
        return self._base.posterior(logits)

    def label_posterior(self, logits: Tensor) -> Tensor:
        """The posterior sent through the noise."""
        return self._noise.corrupt_posterior(self.posterior(logits))

    def refuse_weights(self) -> None:
        """They would weigh noisy labels."""
        raise no_weights("unbiased")

    def at(self, share: float) -> Cost:
        """The base cost at this share of the training, estimated."""
        base = self._base.at(share)
        return self if base is self._base else replace(self, base=base)


def natarajan(transition: Transition | Matrix | None = None, base: str | Cost = "ce") -> Unbiased:
    """The estimator for two classes, as published; cross-entropy on two logits is the logistic loss of the paper."""
    cost = Unbiased(transition, base)
    if cost.num_classes != 2:
        raise InputError(
            f"natarajan is for two classes, the noise has {cost.num_classes}; the same estimator for any number is "
            'called "unbiased".'
        )
    return cost


register(
    "unbiased",
    Unbiased,
    "unbiased estimator of any base cost, from the inverse of the noise",
    Facts(
        symmetric=False,
        bounded=False,
        role="both",
        source="van Rooyen & Williamson 2018",
        needs="the transition matrix",
    ),
)
register(
    "natarajan",
    natarajan,
    "unbiased estimator of a base cost for two classes",
    Facts(symmetric=False, bounded=False, role="both", source="Natarajan et al. 2013", needs="the transition matrix"),
)
