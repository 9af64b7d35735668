"""The transition matrix of class-conditional label noise."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import torch
from torch import Tensor

from postmax.errors import InputError
from postmax.labels import class_indices
from postmax.transition.checks import Matrix, checked_class_count, checked_matrix, checked_rate
from postmax.transition.corruption import draw_labels
from postmax.transition.full_precision import full_product
from postmax.transition.noisy_labels import NoisyLabels
from postmax.transition.published import flips_of, rates_of
from postmax.transition.simplex import project_onto_simplex

__all__ = ["Matrix", "Transition"]

_SINGULAR = 1e12
_ROUNDING = 1e-9


class Transition:
    """P[i, j] = P(noisy label = j | true label = i), a validated row-stochastic matrix in float64.

    Args:
        matrix: K×K, rows summing to one to within 1e-6 (they are then normalised exactly), entries in [0, 1].
        definition: Its description in results. The constructors below set it.

    Raises:
        InputError: If the matrix is not square with K ≥ 2, not finite, has negative entries or rows that do not sum
            to one. The message names the row.

    Example:
        >>> noise = Transition([[0.7, 0.3], [0.1, 0.9]])
        >>> noise
        Transition(K=2, noise rate 20.0% under equal classes, condition number 1.8)
        >>> noisy_posterior = torch.tensor([0.34, 0.66])
        >>> noise.correct(noisy_posterior)
        tensor([0.4000, 0.6000])
    """

    def __init__(self, matrix: Matrix | Transition, *, definition: str | None = None) -> None:
        if isinstance(matrix, Transition):
            definition = definition or matrix.definition
            matrix = matrix.matrix
        self.matrix: Tensor = checked_matrix(matrix)
        self.definition: str = definition or f"a matrix, K={self.num_classes}"

    # ---- Constructors ----

    @classmethod
    def identity(cls, num_classes: int) -> Transition:
        """Return the identity matrix: no noise."""
        return cls(
            torch.eye(checked_class_count(num_classes), dtype=torch.float64), definition=f"no noise, K={num_classes}"
        )

    @classmethod
    def symmetric(cls, num_classes: int, eta: float, *, include_true_class: bool = False) -> Transition:
        """Return symmetric noise: a share `eta` of the labels is replaced by a random class, all equally likely.

        The literature uses two definitions. By default the new class is one of the wrong classes, so that a share `eta`
        of the labels is wrong. With `include_true_class` (DivideMix, ELR, SOP) it is any of the K classes, so that a
        share of η·(K − 1)/K is wrong.
        """
        k, eta = checked_class_count(num_classes), checked_rate("eta", eta)
        others = eta / k if include_true_class else eta / (k - 1)
        matrix = torch.full((k, k), others, dtype=torch.float64).fill_diagonal_(1 - (k - 1) * others)
        meaning = "included" if include_true_class else "excluded"
        return cls(matrix, definition=f"symmetric, eta={eta:g}, true class {meaning}, K={k}")

    @classmethod
    def complementary(cls, num_classes: int) -> Transition:
        """Return complementary labels: the label is one of the *wrong* classes, all equally likely.

        Such a label says which class a row does not have. It is symmetric noise of 100 %. Although no label is right,
        the matrix can be inverted.
        """
        k = checked_class_count(num_classes)
        matrix = torch.full((k, k), 1 / (k - 1), dtype=torch.float64).fill_diagonal_(0)
        return cls(matrix, definition=f"complementary, K={k}")

    @classmethod
    def uniform_off_diagonal(cls, e: Sequence[float] | Tensor | str) -> Transition:
        """Return the noise model of the paper: P[i, j] = e_j for all i ≠ j, so P = (1 − Σe)·I + 1·eᵀ.

        `"low"` and `"high"` are the paper's matrices for CIFAR-10 (18.0% and 53.1% wrong labels).
        """
        name = f" ({e})" if isinstance(e, str) else ""
        e = rates_of(e) if isinstance(e, str) else e
        e = torch.as_tensor(e, dtype=torch.float64)
        if e.ndim != 1:
            raise InputError(f"uniform_off_diagonal needs one rate for each class, got shape {tuple(e.shape)}.")
        k = checked_class_count(len(e))
        for j, rate in enumerate(e.tolist()):
            checked_rate(f"e[{j}]", rate)
        diagonal = 1 - (e.sum() - e)
        if (diagonal < 0).any():
            i = int(diagonal.argmin())
            raise InputError(
                f"uniform_off_diagonal: the rates other than e[{i}] sum to {1 - diagonal[i].item():.4g} > 1, so class "
                f"{i} would keep its label with a negative probability."
            )
        rates = ", ".join(f"{rate:g}" for rate in e.tolist())
        return cls(e.repeat(k, 1).diagonal_scatter(diagonal), definition=f"uniform off-diagonal{name}, e=[{rates}]")

    @classmethod
    def binary(cls, e0: float, e1: float) -> Transition:
        """Return noise for two classes, as in the paper: e0 = P(noisy 0 | true 1), e1 = P(noisy 1 | true 0)."""
        e0, e1 = checked_rate("e0", e0), checked_rate("e1", e1)
        return cls([[1 - e1, e1], [e0, 1 - e0]], definition=f"binary, e0={e0:g}, e1={e1:g}")

    @classmethod
    def pair(cls, num_classes: int, eta: float) -> Transition:
        """Return pair noise: every class i flips to i + 1, and the last one to 0, with probability `eta`."""
        k = checked_class_count(num_classes)
        flipped = cls.flips(k, {i: (i + 1) % k for i in range(k)}, eta)
        return cls(flipped, definition=f"pair flip, eta={eta:g}, K={k}")

    @classmethod
    def flips(cls, num_classes: int, targets: dict[int, int], eta: float) -> Transition:
        """Return noise where each class i in `targets` flips to `targets[i]` with probability `eta`; others stay."""
        k, eta = checked_class_count(num_classes), checked_rate("eta", eta)
        matrix = torch.eye(k, dtype=torch.float64)
        for source, target in targets.items():
            if not (0 <= source < k and 0 <= target < k) or source == target:
                raise InputError(f"flips: {source}→{target} is not a flip between two of the {k} classes 0…{k - 1}.")
            matrix[source, source], matrix[source, target] = 1 - eta, eta
        arrows = ", ".join(f"{source}→{target}" for source, target in targets.items())
        return cls(matrix, definition=f"flips, eta={eta:g}, {arrows}, K={k}")

    @classmethod
    def asymmetric(cls, dataset: str, eta: float) -> Transition:
        """Return the asymmetric noise of the literature for `"cifar10"`, `"cifar100"` or `"cifar100-superclass"`.

        CIFAR-10: truck→automobile, bird→airplane, cat↔dog, deer→horse, each with probability `eta`, so that η/2 of all
        labels are wrong. CIFAR-100: within blocks of five consecutive class indices each class flips to the next, which
        is what all published results use (the blocks are alphabetical, not the true superclasses). With
        `"cifar100-superclass"` each class flips to the next of the five in its true superclass.
        """
        return cls(cls.flips(*flips_of(dataset), eta), definition=f"asymmetric {dataset}, eta={eta:g}")

    # ---- Properties ----

    @property
    def num_classes(self) -> int:
        """K."""
        return int(self.matrix.shape[0])

    def noise_rate(self, prior: Sequence[float] | Tensor | None = None) -> float:
        """Return the share of wrong labels when the true classes have frequencies `prior` (equal ones by default)."""
        wrong = 1 - self.matrix.diagonal()
        if prior is None:
            return float(wrong.mean())
        weights = torch.as_tensor(prior, dtype=torch.float64)
        if weights.shape != wrong.shape or (weights < 0).any() or not weights.sum() > 0:
            raise InputError(
                f"the prior must hold {self.num_classes} non-negative frequencies, got shape {tuple(weights.shape)}"
                f"{' with a negative or zero total' if weights.shape == wrong.shape else ''}."
            )
        return float((weights * wrong).sum() / weights.sum())

    @cached_property
    def uniform_rates(self) -> Tensor | None:
        """The vector e if the noise is uniform off the diagonal (P[i, j] = e_j for i ≠ j), else None."""
        k = self.num_classes
        off_diagonal = self.matrix.masked_fill(torch.eye(k, dtype=torch.bool), 0.0)
        e = off_diagonal.sum(0) / (k - 1)
        spread = (off_diagonal - e * (1 - torch.eye(k, dtype=torch.float64))).abs().max()
        return e if spread <= 1e-9 else None

    @cached_property
    def factors(self) -> tuple[Transition, Transition]:
        """(S, U) with P = S·U: first confusions S, then random labels U that do not depend on the class.

        U keeps a label with probability 1 − Σe, and otherwise draws one from e, for every class alike. The vector e is
        as large as possible, so that each column of S has a zero.

        Example:
            >>> confusions, random = Transition([[0.5, 0.5, 0.0], [0.25, 0.75, 0.0], [0.25, 0.5, 0.25]]).factors
            >>> random.uniform_rates
            tensor([0.2500, 0.5000, 0.0000], dtype=torch.float64)
            >>> confusions.matrix[0]
            tensor([1., 0., 0.], dtype=torch.float64)
        """
        e = self.matrix.amin(0)
        kept = 1 - e.sum()
        if kept < _ROUNDING:
            raise InputError("the transition matrix has rows that are almost equal. Such noise cannot be undone.")
        random = kept * torch.eye(self.num_classes, dtype=torch.float64) + e
        confusions = (self.matrix - e) / kept
        confusions[confusions < _ROUNDING] = 0.0  # equal rates may differ in the last digit
        return (
            Transition(confusions, definition=f"confusions of {self.definition}"),
            Transition(random, definition=f"random labels of {self.definition}"),
        )

    @cached_property
    def condition_number(self) -> float:
        """The ratio of the largest to the smallest singular value: the inverse can amplify errors this much."""
        return float(torch.linalg.cond(self.matrix))

    @cached_property
    def inverse(self) -> Tensor:
        """P⁻¹ in float64; its rows sum to one and some of its entries are negative.

        Raises:
            InputError: If the matrix is singular, because some classes cannot be told apart after the noise.
        """
        if not self.condition_number < _SINGULAR:
            raise InputError(
                f"the transition matrix is singular (condition number {self.condition_number:.3g}): after this noise "
                f"some classes cannot be told apart, so it cannot be undone.{self._why_singular()}"
            )
        inverse: Tensor = torch.linalg.inv(self.matrix)
        return inverse

    def _why_singular(self) -> str:
        e = self.uniform_rates
        return "" if e is None else f" The rates e sum to {float(e.sum()):.4g}; they must stay below one."

    def require_recoverable(self) -> Transition:
        """Return this matrix if the conditions of the paper for correcting it hold.

        Raises:
            InputError: If it is singular, or uniform off the diagonal with Σe ≥ 1 (two classes: e0 + e1 ≥ 1; symmetric:
                η ≥ (K − 1)/K): a noisy label is then no better than, or worse than, a random one.
        """
        e = self.uniform_rates
        if e is not None and float(e.sum()) >= 1 - 1e-9:
            total, k = float(e.sum()), self.num_classes
            if k == 2:
                condition = f"e0 + e1 = {total:.4g}, which must stay below 1"
            elif float(e.max() - e.min()) <= 1e-9:
                condition = (
                    f"symmetric noise η = {self.noise_rate():.4g}, which must stay below (K−1)/K = {1 - 1 / k:.4g}"
                )
            else:
                condition = f"Σe = {total:.4g}, which must stay below 1"
            raise InputError(
                f"this noise cannot be corrected: {condition}. At this rate a label says nothing about the true "
                "class, and above it the order of the classes is reversed."
            )
        self.inverse  # noqa: B018  (raises if singular)
        return self

    # ---- Operations ----

    def corrupt(self, labels: Tensor | Sequence[int], seed: int = 0, *, exact: bool = True) -> NoisyLabels:
        """Return noisy labels. The same seed gives the same labels on every platform and in every version.

        Args:
            labels: (N,) class indices 0…K−1; `postmax.encode_labels` makes them from names.
            seed: A whole number ≥ 0.
            exact: Whether the counts of each class match the matrix to rounding, as in most published label files.
                Otherwise each row is drawn on its own, and the realised rate varies around the nominal one.

        Example:
            >>> noisy = Transition.pair(3, 0.5).corrupt([0, 0, 1, 1, 2, 2], seed=0)
            >>> noisy.matrix
            tensor([[0.5000, 0.5000, 0.0000],
                    [0.0000, 0.5000, 0.5000],
                    [0.5000, 0.0000, 0.5000]], dtype=torch.float64)
        """
        clean = class_indices(labels, self.num_classes)
        return NoisyLabels(
            labels=draw_labels(clean, self.matrix, seed, exact=exact),
            clean=clean,
            num_classes=self.num_classes,
            definition=self.definition,
            seed=seed,
            exact=exact,
            nominal=self.matrix,
        )

    def corrupt_posterior(self, posterior: Tensor) -> Tensor:
        """Return the posterior of the noisy label, Pᵀp, from the posterior of the true one (classes last)."""
        return self._multiplied(posterior, self.matrix).to(posterior.dtype)

    def correct(self, posterior: Tensor, *, project: bool = True) -> Tensor:
        """Return the posterior of the true label, P⁻ᵀp, from the posterior of the noisy one (classes last).

        Args:
            posterior: (…, K) probabilities of the noisy label.
            project: Whether to return the nearest probability vector. Without it the result can have negative entries.
                The projection keeps the order of the classes.
        """
        corrected = self._multiplied(posterior, self.inverse)
        return (project_onto_simplex(corrected) if project else corrected).to(posterior.dtype)

    def _multiplied(self, posterior: Tensor, matrix: Tensor) -> Tensor:
        if not posterior.is_floating_point() or posterior.ndim == 0 or posterior.shape[-1] != self.num_classes:
            raise InputError(
                f"expected probabilities of shape (…, {self.num_classes}), got {posterior.dtype} of shape "
                f"{tuple(posterior.shape)}."
            )
        return full_product(posterior, matrix)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Transition) and torch.equal(self.matrix, other.matrix)

    def __hash__(self) -> int:
        return hash(self.matrix.numpy().tobytes())

    def __repr__(self) -> str:
        return (
            f"Transition(K={self.num_classes}, noise rate {self.noise_rate():.1%} under equal classes, "
            f"condition number {self.condition_number:.2g})"
        )
