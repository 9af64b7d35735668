"""Rows that are far from all other rows."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import torch

from postmax.auditing.catalogue import register
from postmax.auditing.judged import Judged, Numbers
from postmax.checking import Finding

_NEIGHBOUR, _FEW_ROWS, _COMPARED, _CHUNK = 10, 50, 4_000, 500
# Distances grow exponentially rare beyond this quantile. What is rarer than this chance among all rows is an outlier.
_QUANTILE, _CHANCE, _LEAST_TIMES = 0.9, 0.007, 1.5


def find(data: Judged) -> Iterator[Finding]:
    """Yield the rows whose distance to their tenth neighbour is beyond all that the other rows make likely."""
    if len(data.codes) < _FEW_ROWS or not data.features.shape[1]:
        return
    distance = to_neighbour(data.features)
    rows = beyond(distance)
    if not len(rows):
        return
    what = "row is" if len(rows) == 1 else "rows are"
    text = f"{len(rows):,} {what} far from all others, such as {data.some(rows)}."
    remedy = "Look whether a value was mistyped, or whether the row belongs to the data at all."
    yield Finding("outliers", text, remedy, rows=data.at(rows), severity="note")


def to_neighbour(features: Numbers) -> Numbers:
    """Return the distance of each row to its tenth neighbour. Of many rows, a random part are neighbours."""
    rows = torch.from_numpy(features).float()
    generator = torch.Generator().manual_seed(0)
    compared = torch.randperm(len(rows), generator=generator)[:_COMPARED].sort().values
    found = []
    for part in torch.arange(len(rows)).split(_CHUNK):
        distance = torch.cdist(rows[part], rows[compared])
        distance[part[:, None] == compared[None]] = torch.inf  # a row is not its own neighbour
        found.append(distance.kthvalue(min(_NEIGHBOUR, len(compared) - 1), dim=1).values)
    return torch.cat(found).double().numpy()


def beyond(distance: Numbers) -> npt.NDArray[np.int64]:
    """Return the rows whose distance is much beyond those of the others, the farthest first.

    Where the density falls like that of a normal distribution, or like a power, the logarithm of the distance has an
    exponential tail. Its scale is the median excess over the 90 % quantile, which a few outliers do not change.

    Example:
        >>> usual = np.random.default_rng(0).lognormal(size=1000, sigma=0.3)
        >>> beyond(usual), beyond(np.append(usual, [9.0, 90.0]))
        (array([], dtype=int64), array([1001, 1000]))
    """
    middle = np.median(distance)
    if middle <= 0:
        return np.zeros(0, np.int64)
    size = np.log(np.maximum(distance, middle))
    start = np.quantile(size, _QUANTILE)
    scale = np.median(size[size > start] - start) / math.log(2) if (size > start).any() else 0.0
    beyond_usual = float(scale) * math.log((1 - _QUANTILE) * len(size) / _CHANCE)
    # Rows on a grid have few different distances, so that the tail has no scale.
    limit = start + max(beyond_usual, math.log(_LEAST_TIMES))
    rows = np.flatnonzero(size > limit)
    found: npt.NDArray[np.int64] = rows[np.argsort(-size[rows], kind="stable")]
    return found


register("outliers", find, order=10)
