"""What a loss term is: a formula for the loss of a label, given a row of logits.

A `TermLoss` turns a term into a Module with the contract of `nn.CrossEntropyLoss`. The loss of a label distribution q
is `Σ_i q_i·term_i`. Terms are written in ordinary tensor operations on log-probabilities, in float32 or float64, so
that value *and* derivative are accurate for every logit. A term uses no clamp, adds no small constant and never takes
the logarithm of a softmax that may be 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from postmax.errors import InputError
from postmax.transition import Transition


class LabelledLogits:
    """Rows of logits together with the requested labels: the input of a term.

    Attributes:
        logits: (…, C) in working precision, with the classes last.
        labels: (…, 1) class indices; None requests the loss of every class.
        others: (…, C) the distribution of the labels of the *other* rows of the batch; None unless a term mixes rows.
    """

    def __init__(self, logits: Tensor, labels: Tensor | None, others: Tensor | None = None) -> None:
        self.logits, self.labels, self.others = logits, labels, others
        self._log_p: Tensor | None = None
        self._label_log_p: Tensor | None = None
        self._once: dict[object, Tensor] = {}

    @property
    def num_classes(self) -> int:
        """The number of classes C."""
        return self.logits.shape[-1]

    @property
    def log_p(self) -> Tensor:
        """(…, C) the log-probabilities of all classes, computed once for all terms of a sum."""
        if self._log_p is None:
            self._log_p = self.logits.log_softmax(-1)
        return self._log_p

    @property
    def label_log_p(self) -> Tensor:
        """(…, m) the log-probabilities of the requested labels: m = 1 for class indices, m = C for every class."""
        if self._label_log_p is None:
            self._label_log_p = self.pick(self.log_p)
        return self._label_log_p

    def pick(self, values: Tensor) -> Tensor:
        """Return those of the values (…, C) that belong to the requested labels, (…, m)."""
        return values if self.labels is None else values.gather(-1, self.labels)

    def once(self, function: Callable[[LabelledLogits, float], Tensor], option: float) -> Tensor:
        """Return function(self, option), computed once for all terms of a sum."""
        key = (function, option)
        if key not in self._once:
            self._once[key] = function(self, option)
        return self._once[key]


class Term(ABC):
    """A formula for the loss of a label. Subclasses are frozen dataclasses whose fields are the options of the loss."""

    @abstractmethod
    def __call__(self, inputs: LabelledLogits) -> Tensor:
        """Return the loss (…, m) of each requested label."""

    @property
    def mixes_rows(self) -> bool:
        """Whether the loss of a row depends on the labels of other rows. If so, `LabelledLogits.others` is given."""
        return False

    @property
    def num_classes(self) -> int | None:
        """The number of classes, if an option such as a transition matrix fixes it."""
        return None

    @property
    def transition(self) -> Transition | None:
        """The label noise that the term knows and removes, or None if it knows no noise."""
        return None

    @property
    def complementary(self) -> bool:
        """Whether a label is a class that the row does *not* have."""
        return False

    @property
    def corrects_posterior(self) -> bool:
        """Whether the noise is removed in `posterior` and not in the term itself."""
        return False

    @property
    def meaning(self) -> object:
        """What logits mean to this term, as a value that can be compared; None if their softmax is the posterior."""
        return None

    @property
    def when_it_diverges(self) -> str:
        """Why a training with this term may diverge and what to do; see `Loss.when_it_diverges`."""
        return ""

    def posterior(self, logits: Tensor) -> Tensor:
        """Return P(true class | x) for logits (…, C) that were trained with this term."""
        return logits.softmax(-1)

    def logits_of(self, posterior: Tensor) -> Tensor:
        """Return logits (…, C) whose posterior is the given one.

        Raises:
            InputError: If not every posterior has such logits, or if the term has its own posterior and does not
                define this method.
        """
        if self.meaning is not None or type(self).posterior is not Term.posterior:
            raise InputError(
                f"{type(self).__name__} does not define logits_of, the inverse of its posterior. Override it; where "
                "the posterior is the softmax of the logits, return posterior.log()."
            )
        return posterior.log()

    def label_posterior(self, logits: Tensor) -> Tensor:
        """Return P(label as given | x), noise included. It differs from `posterior` where noise is removed."""
        posterior = self.posterior(logits)
        return posterior if self.transition is None else self.transition.corrupt_posterior(posterior)

    def refuse_weights(self) -> None:  # noqa: B027  (most terms take class weights)
        """Raise an error if class weights would spoil what the term knows about the noise."""

    def at(self, share: float) -> Term:  # noqa: ARG002  (most terms stay the same)
        """Return the term after this share of the training, from 0 to 1."""
        return self


@dataclass(frozen=True)
class WeightedSum(Term):
    """A weighted sum of terms, such as 5·NCE + 5·NNCE. Make it with `weighted_sum`.

    At most one meaning of the logits other than the softmax may occur among the terms. The sum then has that meaning.
    """

    terms: tuple[tuple[float, Term], ...]

    def __post_init__(self) -> None:
        sizes = {term.num_classes for _, term in self.terms} - {None}
        if len(sizes) > 1:
            raise InputError(f"the terms of a sum are for {' and '.join(map(str, sorted(sizes, key=str)))} classes.")
        if len({term.complementary for _, term in self.terms}) > 1:
            raise InputError(
                "for one term of this sum a label is a class that the row has, for another one a class that it does "
                "not have: they cannot have the same labels."
            )
        if any(term.meaning not in (None, self.meaning) for _, term in self.terms):
            raise InputError(
                "the same logits have different meanings for the terms of this sum (their noise, link, temperature or "
                "clipping differs), so there is no single posterior."
            )

    @property
    def _leader(self) -> Term:
        """The term that decides what the logits mean."""
        return next((term for _, term in self.terms if term.meaning is not None), self.terms[0][1])

    @property
    def meaning(self) -> object:
        """What the logits mean, by the term that decides it; None if their softmax is the posterior."""
        return self._leader.meaning

    @property
    def transition(self) -> Transition | None:
        """The noise that is known to the term that decides what the logits mean."""
        return self._leader.transition

    @property
    def complementary(self) -> bool:
        """Whether a label is a class that the row does *not* have, for all terms."""
        return self.terms[0][1].complementary

    @property
    def corrects_posterior(self) -> bool:
        """Whether the term that decides what the logits mean removes the noise in `posterior`."""
        return self._leader.corrects_posterior

    @property
    def mixes_rows(self) -> bool:
        """Whether any term mixes rows."""
        return any(term.mixes_rows for _, term in self.terms)

    @property
    def num_classes(self) -> int | None:
        """The number of classes of the first term that fixes it."""
        # A list and not next(…, None), which torch.compile of torch 2.6 cannot trace.
        fixed = [term.num_classes for _, term in self.terms if term.num_classes is not None]
        return fixed[0] if fixed else None

    @property
    def when_it_diverges(self) -> str:
        """What the terms say, each sentence once."""
        return " ".join(dict.fromkeys(term.when_it_diverges for _, term in self.terms if term.when_it_diverges))

    def __call__(self, inputs: LabelledLogits) -> Tensor:
        """Return the loss (…, m) of each requested label. The terms share the log-probabilities to save time."""
        (weight, first), *rest = self.terms
        total = weight * first(inputs)
        for weight, term in rest:
            total = total + weight * term(inputs)
        return total

    def posterior(self, logits: Tensor) -> Tensor:
        """Return the posterior by the term that decides what the logits mean."""
        return self._leader.posterior(logits)

    def logits_of(self, posterior: Tensor) -> Tensor:
        """Return logits whose posterior is the given one, by the term that decides what the logits mean."""
        return self._leader.logits_of(posterior)

    def label_posterior(self, logits: Tensor) -> Tensor:
        """Return the label posterior by the term that decides what the logits mean."""
        return self._leader.label_posterior(logits)

    def refuse_weights(self) -> None:
        """Raise an error if any term refuses class weights."""
        for _, term in self.terms:
            term.refuse_weights()

    def at(self, share: float) -> WeightedSum:
        """Return the sum of the terms after this share of the training; the sum itself if no term changes."""
        terms = tuple((weight, term.at(share)) for weight, term in self.terms)
        changed = any(now is not term for (_, now), (_, term) in zip(terms, self.terms, strict=True))
        return WeightedSum(terms) if changed else self


def weighted_sum(*parts: tuple[float, Term]) -> WeightedSum:
    """Return the sum of weight·term over all parts. A part that is a sum itself is taken apart.

    Example:
        >>> from postmax.losses.terms.ce import CE
        >>> weighted_sum((2, CE()), (3, weighted_sum((4, CE()))))
        WeightedSum(terms=((2.0, CE()), (12.0, CE())))
    """
    return WeightedSum(tuple((factor * weight, term) for factor, part in parts for weight, term in _terms(part)))


def _terms(term: Term) -> tuple[tuple[float, Term], ...]:
    return term.terms if isinstance(term, WeightedSum) else ((1.0, term),)
