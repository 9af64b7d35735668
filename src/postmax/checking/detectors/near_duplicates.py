"""Rows that are nearly equal: copies that were rounded, scaled or compressed."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from postmax.checking.catalogue import register
from postmax.checking.examined import Codes, Examined
from postmax.checking.features import encoded
from postmax.checking.finding import Finding

_ROWS, _FEW_ROWS, _WIDEST = 4_000, 50, 128
_SIDE = 8
# A row is nearly equal to another one if chance brings rows so near to each other so seldom, and in no case beyond.
_CHANCE, _FARTHEST = 0.002, 0.1
_MANY, _MORE = 0.02, 3


def find(data: Examined) -> Iterator[Finding]:
    """Yield that many rows are much nearer to another row than that one is to a third. Exact copies do not count."""
    _, first = np.unique(data.hashes, return_index=True)
    if len(first) < _FEW_ROWS or not (data.features or data.images is not None):
        return
    rows = np.sort(first)
    features = _features(data, rows)
    if features is None:
        return
    rows, features = _slab(rows, features)
    near, partner = nearly_equal(features)
    if len(near) <= _MANY * len(rows) + _MORE:
        return
    share = f"{len(near) / len(rows):.0%}".replace("%", " %")
    example = np.sort(rows[[int(near[0]), int(partner[0])]])
    text = (
        f"About {share} of the rows are nearly equal to another row, such as {data.some(example)}. Copies that are "
        "held out are known from training."
    )
    remedy = "If they are copies, keep one of each."
    yield Finding("near duplicates", text, remedy, rows=data.at(rows[near.numpy()]), severity="note")


def nearly_equal(features: Tensor) -> tuple[Tensor, Tensor]:
    """Return the rows that have a neighbour much nearer than the next one, and these neighbours.

    How near rows come to each other by chance depends on the dimension in which they lie. It is estimated from the
    distances to the second and the third neighbour, which copies do not change.
    """
    distance, place = torch.empty(len(features), 3), torch.empty(len(features), 3, dtype=torch.int64)
    for part in torch.arange(len(features)).split(500):
        found = torch.cdist(features[part], features, compute_mode="donot_use_mm_for_euclid_dist")
        found[torch.arange(len(part)), part] = torch.inf
        distance[part], place[part] = found.topk(3, largest=False)
    first, second, third = distance.double().clamp_min(1e-12).unbind(1)
    spread = float((third / second).log().median())
    dimension = max(0.5, 0.5 * math.log(2) / max(spread, 1e-3))
    limit = min(_FARTHEST, _CHANCE ** (1 / dimension))
    near = (first < limit * second).nonzero()[:, 0]
    return near, place[near, 0]


def _features(data: Examined, rows: Codes) -> Tensor | None:
    if data.images is not None:
        grey = data.images[torch.from_numpy(rows)].float().mean(1, keepdim=True)
        small = torch.nn.functional.adaptive_avg_pool2d(grey, _SIDE).flatten(1)
        return (small - small.mean(0)) / small.std(0).clamp_min(1e-6)
    features = encoded(data, rows)
    return features if features.shape[1] > 1 else None  # in one dimension, rows are near each other by nature


def _slab(rows: Codes, features: Tensor) -> tuple[Codes, Tensor]:
    """Return rows that are alike in one direction, so that copies stay together, and with fewer features."""
    generator = torch.Generator().manual_seed(0)
    if features.shape[1] > _WIDEST:
        features = features @ torch.randn(features.shape[1], _WIDEST, generator=generator) / math.sqrt(_WIDEST)
    if len(rows) > _ROWS:
        order = (features @ torch.randn(features.shape[1], generator=generator)).argsort()
        start = (len(order) - _ROWS) // 2
        chosen = order[start : start + _ROWS]
        rows, features = rows[chosen.numpy()], features[chosen]
    return rows, features


register("near duplicates", find, order=110)
