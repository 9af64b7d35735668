"""Judge labels by the out-of-sample probabilities of any model."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from postmax.auditing.known_posterior import KnownPosterior
from postmax.errors import InputError
from postmax.estimation import TransitionEstimate, estimate_transition
from postmax.estimation.evidence import Evidence
from postmax.tabular.learning import estimated_noise
from postmax.tabular.noise import without_noise

Numbers = npt.NDArray[np.float64]
Of = Literal["label", "class"]
# A model may say 0 where it means "hardly ever".
_LEAST = 1e-9


class Opinion(NamedTuple):
    """What a model says about each row.

    Attributes:
        posterior: P(true class | row), (N, K).
        estimate: The noise in the labels.
    """

    posterior: Numbers
    estimate: TransitionEstimate


def opinion(evidence: Evidence, of: Of, seed: int) -> Opinion:
    """Return the posterior of the true class, and the noise, from probabilities of rows that a model did not see.

    Probabilities of the label as given show the noise: it is estimated from them, and removed from them. Probabilities
    of the true class have no noise in them. The labels they disagree with show it: the matrix is that of maximum
    likelihood.

    Args:
        evidence: Probabilities and labels, checked.
        of: "label" or "class".
        seed: The seed of the interval.

    Raises:
        InputError: If `of` is something else.
    """
    if of not in get_args(Of):
        raise InputError(f"of is 'label', for probabilities of the label as given, or 'class', not {of!r}.")
    assert evidence.probabilities is not None  # noqa: S101  (the caller gives them)
    sure = evidence.probabilities.clamp_min(_LEAST)
    sure = sure / sure.sum(1, keepdim=True)
    if of == "label":
        estimate = estimated_noise(sure, evidence.labels, evidence.classes, symmetric=False, seed=seed)
        return Opinion(without_noise(sure, estimate.transition).numpy(), estimate)
    estimate = estimate_transition(
        sure, evidence.labels, classes=evidence.classes, method=KnownPosterior(), replicates=50, seed=seed
    )
    return Opinion(sure.numpy(), estimate)
