"""The estimator of postmax: the matrix and the calibration that best explain labels that the network has not seen."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from postmax.errors import InputError
from postmax.estimation.catalogue import register
from postmax.estimation.confident import ConfidentJoint
from postmax.estimation.counts import count_pairs, keep_unseen, normalise_rows
from postmax.estimation.estimator import RowTensors, Solution
from postmax.estimation.evidence import Evidence
from postmax.estimation.similarity import share_that_follows_similarity
from postmax.estimation.unmix import unmix
from postmax.losses import FPMLLoss
from postmax.progress import Stage, tell
from postmax.transition import Transition

_STEPS, _WARM_STEPS, _TOLERANCE = 200, 40, 1e-7
_CHUNK_ELEMENTS = 2**22
_UNMIXED_AGAIN = 10**9
# The fit must have one optimum also where the data do not determine it. Scores of few distinct values cannot tell soft
# posteriors from noise, so log a has a wide prior that prefers clear rows. Each row of T gets a tenth of a label that
# is spread over all classes.
_TEMPERATURE_MEAN, _TEMPERATURE_SPREAD = 1.0, 1.0
_PSEUDO_COUNT = 0.1


@dataclass(frozen=True)
class PosteriorLikelihood:
    """Maximum likelihood of P(label | x) = Σ_i D_i(x)·T[i, label] with D = softmax(a·s(x) + b); the default.

    The scores s are out-of-sample log-posteriors of f-PML. Anchor points rely on the extreme predictions of the
    network. Here the network only has to order the rows, because the temperature a and the biases b turn its scores
    into the clean posterior. All rows count, not only the extreme ones. Probabilities that a user gives are unmixed
    first (`postmax.estimation.unmix`). With features or images, networks are cross-fitted twice. The first estimate is
    used to train the second networks with the forward correction, so that their scores are those of the true class.

    Labels and scores alone cannot tell whether a doubtful row is ambiguous or mislabelled. The likelihood assumes noise
    that depends on the true class only, so it takes all doubtful rows for ambiguous. The confident joint takes many of
    them for mislabelled. People confuse similar classes, and most often where the picture is doubtful. Therefore the
    confident joint is mixed in. Its share is larger, the more the noise of the clear rows follows the similarity of the
    classes (`postmax.estimation.similarity`).

    Args:
        class_conditional: Whether the noise is known to depend on the true class only. Then the confident joint is not
            mixed in.
    """

    class_conditional: bool = False

    def rows(self, evidence: Evidence) -> RowTensors:
        """Return scores (N, K) and labels. For given probabilities there is a third tensor, which marks them as mixed.

        Unmixing uses the labels, so it is repeated for every draw of rows, unless that would take minutes.
        """
        labels, k, cross_fit = evidence.labels, evidence.num_classes, evidence.cross_fit
        if cross_fit is None and len(labels) * k**2 <= _UNMIXED_AGAIN:
            return evidence.out_of_sample, labels, torch.ones_like(labels, dtype=torch.bool)
        scores = unmix(evidence.out_of_sample, labels).clamp_min(1e-300).log()
        if cross_fit is None:
            return scores, labels
        first = fit(scores, labels)
        try:
            forward = FPMLLoss("kl", "softmax", transition=Transition(first.matrix), correction="forward")
        except InputError:
            # Scores with little information can give a matrix that cannot be inverted. Then the first scores are used.
            return scores, labels
        what = "cross-fitting networks with the first estimate"
        return cross_fit(labels, k, loss=forward, seed=evidence.seed, what=what), labels

    def solve(self, rows: RowTensors, num_classes: int, start: Solution | None = None) -> Solution:
        """Return the matrix of the likelihood, mixed with the confident joint if the noise follows similarity."""
        scores, labels, *mixed = rows
        given = scores.clamp_min(1e-300).log() if mixed else scores
        if mixed:
            scores = unmix(scores, labels).clamp_min(1e-300).log()
        found = fit(scores, labels, () if start is None else start.state)
        clean = clean_posterior(scores, found.state)
        bounds = self._bounds(found, clean, given, labels, start)
        # If the labels can be explained without noise, the pattern of the noise has no meaning.
        if self.class_conditional or bounds[0] == 0:
            return found._replace(bounds=bounds)
        share = share_that_follows_similarity(found.matrix, clean)
        counted = ConfidentJoint().solve((clean @ found.matrix, labels), num_classes)
        joint = (1 - share) * found.prior[:, None] * found.matrix + share * counted.prior[:, None] * counted.matrix
        return Solution(normalise_rows(joint), joint.sum(1), bounds, found.state)

    def _bounds(
        self, found: Solution, clean: Tensor, given: Tensor, labels: Tensor, start: Solution | None
    ) -> tuple[float, float]:
        """Return the noise rate if no doubtful row is mislabelled, and if all of them are.

        The first is the noise rate of the fit, or 0 if the labels can be explained without noise as well.
        """
        if start is None:
            likelihood = (clean * found.matrix.T[labels]).sum(1).clamp_min(1e-300).log().sum()
            needed = explained_without_noise(given, labels) < float(likelihood) - _worth_of(found.matrix)
        else:
            needed = start.bounds is None or start.bounds[0] > 0
        return found.noise_rate if needed else 0.0, float((clean.argmax(1) != labels).double().mean())


def explained_without_noise(scores: Tensor, labels: Tensor) -> float:
    """Return the largest log-likelihood of the labels under softmax(a·s + b), that is, if no label is wrong."""
    log_a = torch.zeros((), dtype=torch.float64, requires_grad=True)
    bias = torch.zeros(scores.shape[1], dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([log_a, bias], max_iter=_WARM_STEPS, line_search_fn="strong_wolfe")

    def objective() -> Tensor:
        optimiser.zero_grad()
        value = F.cross_entropy(log_a.exp() * scores + bias, labels)
        value.backward()
        return value.detach()

    optimiser.step(objective)
    return -float(objective()) * len(labels)


def _worth_of(matrix: Tensor) -> float:
    """Return by how much a matrix must improve the log-likelihood to be significant at 95 %.

    It is half of the quantile of χ² with K(K − 1) degrees of freedom, in the approximation of Wilson and Hilferty.
    """
    freedom = len(matrix) * (len(matrix) - 1)
    spread = 2 / (9 * freedom)
    return 0.5 * freedom * (1 - spread + 1.645 * math.sqrt(spread)) ** 3


def clean_posterior(scores: Tensor, state: tuple[Tensor, ...]) -> Tensor:
    """Return P(true class | x) of a fit."""
    log_a, bias, _ = state
    return (log_a.exp() * scores + bias).softmax(1)


def fit(scores: Tensor, labels: Tensor, start: tuple[Tensor, ...] = ()) -> Solution:
    """Fit log a, b and log T by L-BFGS, from the counts of (most probable class, label) or from the state `start`."""
    k = scores.shape[1]
    steps = _WARM_STEPS if start else _STEPS
    from_counts = not start
    if from_counts:
        counted = count_pairs(scores.argmax(1), labels, k) + 1 / k
        start = (torch.zeros(()), torch.zeros(k), normalise_rows(counted).log())
    log_a, bias, log_t = parameters = [part.double().clone() for part in start]
    optimiser = torch.optim.LBFGS(
        parameters, max_iter=steps, history_size=10, line_search_fn="strong_wolfe", tolerance_change=_TOLERANCE
    )

    calls = itertools.count(1)

    def objective() -> Tensor:
        if from_counts:  # the fits of the bootstrap, which start from a solution, are counted there
            tell(Stage("fitting the matrix", next(calls), unit="steps"))
        value, gradients, _ = _negative_log_likelihood(scores, labels, log_a, bias, log_t)
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        return value

    optimiser.step(objective)
    _, _, prior = _negative_log_likelihood(scores, labels, log_a, bias, log_t)
    return Solution(keep_unseen(log_t.softmax(1), labels), prior, state=(log_a, bias, log_t))


def _negative_log_likelihood(
    scores: Tensor, labels: Tensor, log_a: Tensor, bias: Tensor, log_t: Tensor
) -> tuple[Tensor, list[Tensor], Tensor]:
    """Return value, gradients (log a, b, log T before normalisation) and prior, summed over chunks of rows.

    With r the posterior of the true class given x and the label, ∂/∂(a·s + b) = D − r, and ∂/∂log T[i, j] is the
    number of labels j that i is expected to have under T, less the number it has.
    """
    n, k = scores.shape
    a, t = log_a.exp(), log_t.softmax(1)
    beyond = (log_a - _TEMPERATURE_MEAN) / _TEMPERATURE_SPREAD
    value = 0.5 * beyond**2 - _PSEUDO_COUNT / k * log_t.log_softmax(1).sum()
    grad_a, grad_b = beyond / _TEMPERATURE_SPREAD, torch.zeros_like(bias)
    moved = torch.full_like(t, _PSEUDO_COUNT / k)
    prior = torch.zeros_like(bias)
    for s, y in zip(scores.split(_CHUNK_ELEMENTS // k + 1), labels.split(_CHUNK_ELEMENTS // k + 1), strict=True):
        clean = (a * s + bias).softmax(1)
        joint = clean * t.T[y]
        total = joint.sum(1, keepdim=True).clamp_min(1e-300)
        true = joint / total
        value = value - total.log().sum()
        excess = clean - true
        grad_a = grad_a + a * (excess * s).sum()
        grad_b = grad_b + excess.sum(0)
        moved.index_add_(1, y, true.T)
        prior = prior + true.sum(0)
    grad_t = t * moved.sum(1, keepdim=True) - moved
    return value / n, [grad_a / n, grad_b / n, grad_t / n], prior / n


register("fpml", PosteriorLikelihood(), aliases=("posterior-likelihood",), order=1)
register(
    "fpml-class",
    PosteriorLikelihood(class_conditional=True),
    summary="The default estimator for noise that is known to depend on the true class only.",
    aliases=("fpml-class-conditional",),
    order=2,
)
