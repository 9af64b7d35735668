"""What a cost is: the price of a label, given a row of logits. Robust losses are costs, and sums of costs.

A `CostLoss` turns a cost into a Module with the contract of `nn.CrossEntropyLoss`; a label distribution q costs
`Σ_i q_i cost_i`. Costs are written in ordinary tensor operations on log-probabilities, in float32 or float64, so that
value *and* derivative are accurate for every logit: no clamp, no added epsilon, no logarithm of an underflown softmax.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import torch
from torch import Tensor

from postmax.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Role = Literal["active", "passive", "both"]


class Rows:
    """Rows of logits, and the labels whose costs are asked for.

    Attributes:
        logits: (…, C) in working precision, classes last.
        labels: (…, 1) class indices; None asks for the costs of all classes.
        others: (…, C) how the labels of the *other* rows of the batch are distributed; None unless a cost mixes rows.
    """

    def __init__(self, logits: Tensor, labels: Tensor | None, others: Tensor | None = None) -> None:
        self.logits, self.labels, self.others = logits, labels, others
        self._log_p: Tensor | None = None
        self._s: Tensor | None = None
        self._once: dict[object, Tensor] = {}

    @property
    def log_p(self) -> Tensor:
        """(…, C) log-probabilities, computed once for all terms of a sum."""
        if self._log_p is None:
            self._log_p = self.logits.log_softmax(-1)
        return self._log_p

    @property
    def s(self) -> Tensor:
        """(…, m) log-probabilities of the labels asked for, with m = 1 for class indices and m = C for all."""
        if self._s is None:
            self._s = self.of(self.log_p)
        return self._s

    def once(self, function: Callable[[Rows, float], Tensor], option: float) -> Tensor:
        """function(rows, option), computed once for all terms of a sum."""
        key = (function, option)
        if key not in self._once:
            self._once[key] = function(self, option)
        return self._once[key]

    @property
    def num_classes(self) -> int:
        """C."""
        return self.logits.shape[-1]

    def of(self, values: Tensor) -> Tensor:
        """Those of the values (…, C) that belong to the labels asked for."""
        return values if self.labels is None else values.gather(-1, self.labels)


class Cost(ABC):
    """The price of a label. Subclasses are frozen dataclasses, whose fields are the options of the loss."""

    mixes_rows: ClassVar[bool] = False
    """Whether the price of a row depends on the labels of other rows (then `Rows.others` is there)."""

    @abstractmethod
    def __call__(self, rows: Rows) -> Tensor:
        """(…, m) the price of each label asked for."""

    @property
    def num_classes(self) -> int | None:
        """The number of classes, where an option such as a transition matrix fixes it."""
        return None

    @property
    def reading(self) -> object:
        """What tells `posterior` and `label_posterior` from the softmax, to be compared; None if nothing does."""
        return None

    def posterior(self, logits: Tensor) -> Tensor:
        """What logits (…, C) trained with this cost mean: P(class | x)."""
        return logits.softmax(-1)

    def label_posterior(self, logits: Tensor) -> Tensor:
        """What is expected of the labels as they are given; differs where the cost takes the noise out."""
        return self.posterior(logits)

    def refuse_weights(self) -> None:  # noqa: B027  (most costs take them)
        """Raise if class weights would spoil what the cost knows about the noise."""

    def at(self, share: float) -> Cost:  # noqa: ARG002  (most costs are the same all the time)
        """The cost after this share of the training, from 0 to 1, for those that change on the way."""
        return self

    def __add__(self, other: Cost) -> Sum:
        return Sum((*_terms(self), *_terms(other)))

    def __rmul__(self, factor: float) -> Sum:
        return Sum(tuple((factor * weight, cost) for weight, cost in _terms(self)))


@dataclass(frozen=True)
class Sum(Cost):
    """A weighted sum, such as `NCE() + RCE()` or `5 * NCE() + 5 * NNCE()`: active + passive.

    Logits are read as the term reads them that has a posterior or noise of its own; two that differ are refused.
    """

    terms: tuple[tuple[float, Cost], ...]

    def __post_init__(self) -> None:
        sizes = {cost.num_classes for _, cost in self.terms} - {None}
        if len(sizes) > 1:
            raise InputError(f"the terms of a sum are for {' and '.join(map(str, sorted(sizes, key=str)))} classes.")
        if any(cost.reading not in (None, self._reader.reading) for _, cost in self.terms):
            raise InputError(
                "the terms of a sum read the same logits in different ways (their noise, temperature or clipping "
                "differs): there is no one posterior."
            )

    @property
    def _reader(self) -> Cost:
        """The term that says what logits mean."""
        return next((cost for _, cost in self.terms if cost.reading is not None), self.terms[0][1])

    @property
    def reading(self) -> object:
        """That of the term that has one."""
        return self._reader.reading

    @property
    def mixes_rows(self) -> bool:  # type: ignore[override]
        """Whether any term does."""
        return any(cost.mixes_rows for _, cost in self.terms)

    @property
    def num_classes(self) -> int | None:
        """That of any term that fixes it."""
        return next((cost.num_classes for _, cost in self.terms if cost.num_classes is not None), None)

    def __call__(self, rows: Rows) -> Tensor:
        """The terms share the log-probabilities, which is where the time goes."""
        (weight, first), *rest = self.terms
        total = weight * first(rows)
        for weight, cost in rest:
            total = total + weight * cost(rows)
        return total

    def posterior(self, logits: Tensor) -> Tensor:
        """That of the term that has one of its own."""
        return self._reader.posterior(logits)

    def label_posterior(self, logits: Tensor) -> Tensor:
        """That of the term that has one of its own."""
        return self._reader.label_posterior(logits)

    def refuse_weights(self) -> None:
        """Raise if any term does."""
        for _, cost in self.terms:
            cost.refuse_weights()

    def at(self, share: float) -> Sum:
        """Each term at this share of the training; itself unless one changes."""
        terms = tuple((weight, cost.at(share)) for weight, cost in self.terms)
        changed = any(now is not cost for (_, now), (_, cost) in zip(terms, self.terms, strict=True))
        return Sum(terms) if changed else self


def _terms(cost: Cost) -> Iterator[tuple[float, Cost]]:
    yield from cost.terms if isinstance(cost, Sum) else ((1.0, cost),)


def positive(**options: object) -> None:
    """Refuse options that are not positive numbers, by their names."""
    for name, value in options.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < torch.inf:
            raise InputError(f"{name} must be a positive number, got {value!r}.")
