"""Nearest neighbours by cosine similarity, in chunks that fit in memory."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from postmax.progress import Stage, tell

_CHUNK_ELEMENTS = 2**26


def nearest_neighbours(features: Tensor, count: int) -> Tensor:
    """Return (N, count) positions of the nearest other rows. A row with duplicates is not its own neighbour either."""
    unit = F.normalize(features - features.mean(0), dim=1)
    n = len(unit)
    found = torch.empty(n, count, dtype=torch.int64)
    for rows in torch.arange(n).split(max(1, _CHUNK_ELEMENTS // n)):
        similarity = unit[rows] @ unit.T
        similarity[torch.arange(len(rows)), rows] = -torch.inf
        found[rows] = similarity.topk(count, 1).indices
        tell(Stage("finding neighbours", int(rows[-1]) + 1, n, "rows"))
    return found
