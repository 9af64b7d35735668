"""What a model's out-of-sample probabilities say about the true classes, and about the noise in the labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
from torch import Tensor

from postmax.auditing.calibrated import calibrated
from postmax.auditing.known_posterior import KnownPosterior
from postmax.errors import InputError
from postmax.estimation import TransitionEstimate, estimate_transition
from postmax.tabular.learning import estimated_noise
from postmax.tabular.noise import without_noise
from postmax.transition import Transition

Numbers = npt.NDArray[np.float64]
Of = Literal["label", "class"]
# A model may say 0 where it means "hardly ever".
_LEAST = 1e-9
_REPLICATES = 20
_AS_MUCH = 0.9


class Opinion(NamedTuple):
    """What a model says about each row.

    Attributes:
        posterior: P(true class | row), (N, K).
        noise: P(label | true class).
        estimate: The estimate of the noise; None if it was given.
    """

    posterior: Numbers
    noise: Transition
    estimate: TransitionEstimate | None


def opinion(
    probabilities: Tensor, labels: Tensor, classes: Sequence[str | int], *, of: Of = "label", seed: int = 0
) -> Opinion:
    """Return the posterior of the true class, and the noise, from probabilities of rows that a model did not see.

    Probabilities of the label as given show the noise. It is estimated from them and removed from them, and what
    remains is calibrated. Of a full matrix and the simplest noise that the labels allow, the simplest is taken if it
    explains nearly as many wrong labels: few rows cannot tell K² numbers. If it explains fewer, the noise is not
    symmetric, though these rows are too few to prove it.

    Probabilities of the true class are taken as they are. Labels that disagree with them show the noise: its matrix is
    that of maximum likelihood.

    Args:
        probabilities: (N, K).
        labels: (N,) class indices.
        classes: The names of the classes.
        of: "label" or "class".
        seed: The seed of the interval.

    Raises:
        InputError: If `of` is something else.
    """
    if of not in get_args(Of):
        raise InputError(f"of is 'label', for probabilities of the label as given, or 'class', not {of!r}.")
    sure = probabilities.double().clamp_min(_LEAST)
    sure = sure / sure.sum(1, keepdim=True)
    names = tuple(classes)
    if of == "class":
        found = estimate_transition(
            sure, labels, classes=names, method=KnownPosterior(), replicates=_REPLICATES, seed=seed
        )
        return Opinion(sure.numpy(), found.transition, found)
    found = estimate_transition(sure, labels, classes=names, replicates=_REPLICATES, seed=seed)
    simplest = estimated_noise(sure, labels, names, symmetric=False, seed=seed)
    if simplest.noise_rate >= _AS_MUCH * found.noise_rate:
        found = simplest
    clean = without_noise(sure, found.transition)
    return Opinion(calibrated(clean, labels, found.matrix).numpy(), found.transition, found)


def known_noise(posterior: Tensor, labels: Tensor, noise: Transition) -> Opinion:
    """Return the calibrated posterior of the true class, if the noise is known."""
    return Opinion(calibrated(posterior.double(), labels, noise.matrix).numpy(), noise, None)
