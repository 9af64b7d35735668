"""Decide which rows are probably labelled right, from the loss of each row."""

from __future__ import annotations

import math
import warnings

import torch
from torch import Tensor

from postmax.errors import NotFiniteError
from postmax.extras import need

# A product such as 0.7 · 100 / 10 is a little more than 7 in floating point, and must not be rounded up to 8. And
# (1 − 0.8) · 10 is a little less than 2, and must not be rounded down to 1.
_ROUNDING = 1e-9


def smallest(losses: Tensor, share: float) -> Tensor:
    """Return the positions of the rows with the smallest losses.

    Args:
        losses: The loss of each row, (B,).
        share: The share of the rows to select, from 0 to 1. It is rounded down, but at least one row is selected.

    Example:
        >>> smallest(torch.tensor([0.3, 0.1, 0.2]), 0.7)
        tensor([1, 2])
    """
    count = max(1, int(share * len(losses) + _ROUNDING))
    return losses.detach().argsort(stable=True)[:count]


def smallest_of_each_class(losses: Tensor, labels: Tensor, share: float, classes: int) -> Tensor:
    """Return a mask (N,) of the rows with the smallest losses among those with the same label.

    Of each label the same number of rows is selected, `share` of N / K rounded up, or all rows if it has fewer. So hard
    classes are not left out.

    Args:
        losses: The loss of each row, (N,).
        labels: The label of each row, (N,).
        share: The share of the rows to select, above 0, if all labels are equally frequent.
        classes: K.

    Example:
        >>> smallest_of_each_class(torch.tensor([3.0, 1.0, 2.0, 9.0]), torch.tensor([0, 0, 0, 1]), 0.5, 2)
        tensor([False,  True, False,  True])
    """
    count = math.ceil(share * len(losses) / classes - _ROUNDING)
    # Rows in the order of their labels, and of their losses where these are equal. No loop over the classes: a thousand
    # classes would take a thousand passes over all rows.
    order = losses.detach().argsort(stable=True)
    order = order[labels[order].argsort(stable=True)]
    ordered = labels[order]
    first = torch.searchsorted(ordered, torch.arange(classes, device=labels.device))
    rank = torch.arange(len(labels), device=labels.device) - first[ordered]
    return torch.zeros_like(labels, dtype=torch.bool).scatter_(0, order, rank < count)


def clean_probability(losses: Tensor) -> Tensor:
    """Return how probable it is that each row has a right label, from a mixture of two normal distributions.

    Rows with right labels have small losses, rows with wrong labels large ones. The mixture is fitted to the losses,
    scaled to [0, 1], and a row belongs to the component with the smaller mean with the returned probability. The
    settings of the fit are those of DivideMix.

    Args:
        losses: The loss of each row, (N,).

    Returns:
        The probabilities, (N,), float32. If all losses are equal, there is no reason to doubt any label, and all are 1.

    Raises:
        NotFiniteError: If a loss is NaN or infinite.

    Example:
        >>> clean_probability(torch.tensor([0.0, 0.1, 0.05, 3.0, 3.1, 2.9])).round()
        tensor([1., 1., 1., 0., 0., 0.])
    """
    values = losses.detach().cpu().double()
    if not values.isfinite().all():
        raise NotFiniteError(f"{int((~values.isfinite()).sum())} of {len(values)} rows have a loss that is not finite.")
    low, high = values.min(), values.max()
    if high == low:
        return torch.ones_like(losses, dtype=torch.float32)
    scaled = ((values - low) / (high - low)).numpy().reshape(-1, 1)
    mixture = need("sklearn.mixture", "data").GaussianMixture(
        n_components=2, max_iter=10, tol=1e-2, reg_covar=5e-4, random_state=0
    )
    with warnings.catch_warnings():
        # Ten iterations are the published setting. Whether they have converged is not a question here.
        warnings.simplefilter("ignore")
        mixture.fit(scaled)
    found = mixture.predict_proba(scaled)[:, mixture.means_.argmin()]
    return torch.from_numpy(found).to(losses.device, torch.float32)
