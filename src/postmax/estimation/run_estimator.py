"""The function that estimates a transition matrix with any estimator, and adds intervals."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from torch import Tensor

from postmax.errors import InputError
from postmax.estimation.bootstrap import bootstrap
from postmax.estimation.catalogue import DEFAULT, get, names
from postmax.estimation.crossfit import CrossFit
from postmax.estimation.estimate import TransitionEstimate
from postmax.estimation.estimator import TransitionEstimator
from postmax.estimation.evidence import gather_evidence
from postmax.estimation.identify import unidentified
from postmax.estimation.threads import SMALL_TABLE, one_thread
from postmax.labels import EncodedLabels, class_indices, encode_labels
from postmax.progress import Listener, listening
from postmax.row_names import INDICES, RowNames
from postmax.transition import Transition


def estimate_transition(
    probabilities: Any = None,
    labels: Any = None,
    *,
    features: Any = None,
    cross_fit: CrossFit | None = None,
    method: str | TransitionEstimator = DEFAULT,
    num_classes: int | None = None,
    classes: Sequence[str | int] | None = None,
    replicates: int = 100,
    level: float = 0.95,
    seed: int = 0,
    progress: Listener | None = None,
    row_names: RowNames = INDICES,
) -> TransitionEstimate:
    """Return the transition matrix of the noise in `labels`, with intervals.

    Args:
        probabilities: (N, K), P(label | x) from a model that was not trained on the row, columns in the order of the
            sorted classes. A network that has memorised its training rows would show no noise in them.
        labels: (N,) noisy labels: names or numbers, which may have gaps.
        features: (N, d). Needed by `hoc`, `volmin`, `tv` and `cycle`. For the others,
            probabilities are cross-fitted from them.
        cross_fit: A function that trains networks, for rows that are not features; see `postmax.estimation.CrossFit`.
        method: A name from `postmax.estimation.names()`, or an estimator such as `AnchorPoints(percentile=95)`.
        num_classes: K, if there are classes that do not occur among the labels.
        classes: The names of all classes. The labels are then names or indices into them.
        replicates: The number of bootstrap replicates, at least 2. Fewer are drawn for many classes, to save memory.
        level: The level of the intervals.
        seed: The seed of everything random.
        progress: A function that gets a `postmax.progress.Stage` now and then: what is done, and how far it is. For
            example `progress=print`. The estimate does not depend on it.
        row_names: How messages call the rows of probabilities and features; by their index if nothing else is said.

    Raises:
        InputError: If an estimate is not possible. The message says what is wrong and where.

    Example:
        >>> import torch
        >>> x = torch.linspace(-4, 4, 4000)
        >>> clean = torch.stack([x, -x], 1).softmax(1)
        >>> truth = (torch.rand(4000, generator=torch.Generator().manual_seed(0)) > clean[:, 0]).long()
        >>> noise = Transition.binary(0.1, 0.3)
        >>> estimate = estimate_transition(noise.corrupt_posterior(clean), noise.corrupt(truth, seed=0).labels)
        >>> [[round(entry, 1) for entry in row] for row in estimate.matrix.tolist()]
        [[0.7, 0.3], [0.1, 0.9]]
    """
    if replicates < 2 or not 0 < level < 1:
        raise InputError(f"an interval needs 2 or more replicates and a level in (0, 1), got {replicates} and {level}.")
    if classes is not None:
        num_classes = len(classes)
        labels = None if labels is None else EncodedLabels(_indices(labels, classes), tuple(classes))
    evidence = gather_evidence(probabilities, labels, features, num_classes, seed, row_names, cross_fit)
    name, estimator = _named(method)
    k = evidence.num_classes
    with nullcontext() if progress is None else listening(progress):
        rows = estimator.rows(evidence)
        with one_thread(len(evidence.labels) * k < SMALL_TABLE):
            solution = estimator.solve(rows, k)
            drawn = bootstrap(estimator, rows, solution, k, replicates, seed)
    interval = drawn.interval(drawn.matrices, level)
    low, high = (float(end) for end in drawn.interval(drawn.noise_rates, level))
    bottom, top = low, high
    if drawn.bounds is not None:
        lower, upper = drawn.interval(drawn.bounds, level)
        bottom, top = min(low, float(lower[0])), max(high, float(upper[1]))
    return TransitionEstimate(
        transition=Transition(solution.matrix, definition=f"estimated by {name} from {len(evidence.labels)} rows"),
        prior=solution.prior,
        noise_rate=solution.noise_rate,
        interval=interval,
        sampling_interval=(low, high),
        noise_rate_interval=(bottom, top),
        level=level,
        method=name,
        classes=evidence.classes,
        rows=len(evidence.labels),
        unidentified=unidentified(solution, interval, evidence.labels, evidence.classes),
    )


def _named(method: str | TransitionEstimator) -> tuple[str, TransitionEstimator]:
    """Return what the estimator is called in results, and the estimator."""
    if isinstance(method, str):
        return method, get(method)
    if not hasattr(method, "solve"):
        raise InputError(
            f"method is a name ({', '.join(names())}) or an estimator such as AnchorPoints(), not {method!r}."
        )
    return type(method).__name__, method


def _indices(labels: Any, classes: Sequence[str | int]) -> Tensor:
    """Return class indices for labels that are names of `classes` or indices into them."""
    encoded = encode_labels(labels)
    if isinstance(encoded.classes[0], str):
        return encode_labels(labels, classes=classes).codes
    if len(set(classes)) != len(classes):
        raise InputError("the list of classes names one of them twice.")
    return class_indices(labels, len(classes))
