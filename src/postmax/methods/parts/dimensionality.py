"""How many dimensions the features of rows have, seen from their nearest neighbours."""

from __future__ import annotations

import torch
from torch import Tensor

# Two rows at the same place would have a distance of 0, whose logarithm is infinite. It is the published floor.
_FLOOR = 1e-8
# If nearly all neighbours of a row are equally far away, they say nothing about a dimension.
_LEAST_SPREAD = 1e-3
# Of fewer neighbours, the estimate has no finite variance.
FEWEST_NEIGHBOURS = 4
_LARGEST_SHARE = 1 / 4


def local_dimensions(features: Tensor, neighbours: int) -> Tensor:
    """Return the local intrinsic dimensionality (LID) of each row, estimated from its nearest other rows.

    In a space of m dimensions, the number of rows within a distance r of a row grows like r^m. With the distances
    r_1 ≤ … ≤ r_k to its k nearest neighbours, the maximum-likelihood estimate of m is −k / Σ log(r_j / r_k).

    Amsaleg et al., Estimating local intrinsic dimensionality, KDD 2015.

    Args:
        features: The features of some rows, (n, d).
        neighbours: k. It is lowered to a quarter of the rows, so that neighbours are near, but not below 4.

    Returns:
        The estimates, float64, for those rows that have one. A row has none if its k neighbours are all at the same
        distance, as for equal rows. With fewer than five rows no row has one.

    Example:
        >>> found = local_dimensions(torch.tensor([[0.0], [1.0], [2.0], [4.0], [8.0]]), 20)
        >>> found[0]  # −4 / (log(1/8) + log(2/8) + log(4/8) + log(8/8))
        tensor(0.9618, dtype=torch.float64)
    """
    count = min(neighbours, max(FEWEST_NEIGHBOURS, int(_LARGEST_SHARE * len(features))))
    if len(features) <= count:
        return torch.empty(0, dtype=torch.float64, device=features.device)
    points = features.double()
    # Differences are exact where rows are close. Products of features, which are faster, are not.
    distances = torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist")
    distances.fill_diagonal_(torch.inf)
    nearest = distances.topk(count, largest=False).values
    largest = nearest[:, -1:]
    spread = -(nearest / largest.clamp_min(torch.finfo(points.dtype).tiny)).clamp_min(_FLOOR).log().mean(1)
    known = (largest[:, 0] > 0) & (spread > _LEAST_SPREAD)
    return 1 / spread[known]


def mean_dimension(features: Tensor, neighbours: int, group: int) -> float:
    """Return the mean LID of rows, or 0 if no row has an estimate.

    The neighbours of a row are looked for in its group alone: the first rows, the next ones, and so on.

    Args:
        features: The features of some rows, (n, d).
        neighbours: How many nearest neighbours of a row count.
        group: How many rows a group has, at most. All groups are about equally large.

    Example:
        >>> mean_dimension(torch.zeros(300, 2), 20, 128)
        0.0
    """
    groups = features.tensor_split(-(-len(features) // group))
    found = torch.cat([local_dimensions(part, neighbours) for part in groups])
    return float(found.mean()) if len(found) else 0.0
