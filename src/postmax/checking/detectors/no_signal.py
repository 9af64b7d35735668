"""Features from which the labels cannot be told."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from postmax.checking.catalogue import register
from postmax.checking.examined import Codes, Examined
from postmax.checking.features import encoded
from postmax.checking.finding import CANNOT_TELL, Finding
from postmax.estimation.crossfit import folds_of
from postmax.losses import FPMLLoss
from postmax.tabular.candidates import DEFAULTS, fold_count
from postmax.tabular.committee import fit_committee
from postmax.tabular.training import Folds, Rows

_ROWS, _FEW_ROWS, _PARTS = 5_000, 30, 3
_CLASSES, _FEW_OF_CLASS = 50, 6
# A larger linear model says no more about whether there is anything to tell.
_WIDEST = 512
_LEVEL, _CLEAR = 0.05, 3.5
_RIDGE = 0.1


def find(data: Examined) -> Iterator[Finding]:
    """Yield that the features foresee labels of rows that were held out no better than the shares of the classes do.

    Images are not judged, because a model of single pixels says little about them.
    """
    if data.images is not None or not data.features:
        return
    rows = _some_rows(data)
    if rows is None:
        return
    features = encoded(data, rows)
    if features.shape[1] == 0:
        return
    _, codes = np.unique(data.codes[rows], return_inverse=True)
    chance = p_value(_narrowed(features), torch.from_numpy(codes.astype(np.int64)))
    if chance <= _LEVEL:
        return
    text = (
        f"Simple models tell nothing from the features of {len(rows):,} rows: linear and additive models foresee "
        f"labels that are held out no better than the shares of the classes do (p = {chance:.2f})."
    )
    remedy = "Unless networks find more, any noise rate or accuracy is a guess: give other features, or more rows."
    yield Finding(CANNOT_TELL, text, remedy)


def p_value(features: Tensor, labels: Tensor) -> float:
    """Return how often labels in random order would be foreseen as well as these, by models that did not see them.

    The rows are divided into three parts, and each part is foreseen by models of the other two. A ridge regression on
    the features and their sizes is asked first. If its answer is not clear, linear and additive networks are trained,
    and the better of both answers counts, doubled because there are two.

    Args:
        features: float32 (N, d), scaled.
        labels: int64 (N,), class indices without gaps.
    """
    classes = int(labels.max()) + 1
    generator = torch.Generator().manual_seed(0)
    part = folds_of(labels, generator, _PARTS)
    first = surprise(_by_ridge(features, labels, part, classes), labels, part)
    if first >= _CLEAR:
        return _upper_tail(first)
    second = surprise(_by_networks(features, labels, part, classes, generator), labels, part)
    return min(1.0, 2 * _upper_tail(max(first, second)))


def surprise(scores: Tensor, labels: Tensor, part: Tensor) -> float:
    """Return how many standard deviations the sum of the scores of the labels is above that of labels in random order.

    If labels do not depend on features, their order within a part is random, whatever the models learnt: a poor model
    makes the test weak, but not wrong. Mean and variance over all orders are those of Hoeffding's combinatorial central
    limit theorem. What one part says about another one is nearly what the other one says about it, so the variance of
    the sum over parts may be twice the sum of the variances, and is taken to be.

    Args:
        scores: float64 (N, K), what the models say for each class.
        labels: int64 (N,).
        part: (N,) the part of each row.
    """
    total, variance = 0.0, 0.0
    for number in range(_PARTS):
        own, given = scores[part == number], labels[part == number]
        shares = torch.bincount(given, minlength=own.shape[1]).double() / len(given)
        centred = own - (own @ shares)[:, None]
        centred = centred - centred.mean(0)
        total += float(centred.gather(1, given[:, None]).sum())
        variance += float((centred**2 @ shares).sum() * len(given) / (len(given) - 1))
    return total / (2 * variance) ** 0.5 if variance > 0 else 0.0


def _upper_tail(deviations: float) -> float:
    return 0.5 * math.erfc(deviations / math.sqrt(2))


def _by_ridge(features: Tensor, labels: Tensor, part: Tensor, classes: int) -> Tensor:
    size = features.abs()
    wide = torch.cat([features, size - size.mean(0), torch.ones(len(features), 1)], 1).double()
    target = torch.nn.functional.one_hot(labels, classes).double()
    scores = torch.zeros(len(labels), classes, dtype=torch.float64)
    for number in range(_PARTS):
        held = part == number
        seen = wide[~held]
        gram = seen.T @ seen + _RIDGE * len(seen) * torch.eye(seen.shape[1], dtype=torch.float64)
        weights = torch.linalg.solve(gram, seen.T @ (target[~held] - target[~held].mean(0)))
        scores[held] = wide[held] @ weights
    return scores


def _by_networks(features: Tensor, labels: Tensor, part: Tensor, classes: int, generator: torch.Generator) -> Tensor:
    """Return log((1 + p/share)/2) for each class: how much better than its share a class is foreseen, and bounded."""
    loss = FPMLLoss("kl", "softmax", reduction="none")
    scores = torch.zeros(len(labels), classes, dtype=torch.float64)
    for number in range(_PARTS):
        held = part == number
        seen = labels[~held]
        rows = Rows(features[~held], seen, torch.ones(len(seen)), classes)
        folds = Folds.make(seen, fold_count(None, len(seen)), 1, generator)
        fitted = fit_committee([*DEFAULTS["linear"], *DEFAULTS["additive"]], rows, folds, loss, seed=number)
        shares = torch.bincount(seen, minlength=classes).double() / len(seen)
        scores[held] = (0.5 + 0.5 * fitted.committee.label_posterior(features[held]) / shares).log()
    return scores


def _narrowed(features: Tensor) -> Tensor:
    """Return at most so many features: random directions of the others."""
    if features.shape[1] <= _WIDEST:
        return features
    turn = torch.randn(features.shape[1], _WIDEST, generator=torch.Generator().manual_seed(0))
    narrowed: Tensor = features @ turn / features.shape[1] ** 0.5
    return narrowed


def _some_rows(data: Examined) -> Codes | None:
    """Return rows of the frequent classes, at most so many, without copies; None if they are too few for a test."""
    rows = np.random.default_rng(0).permutation(_without_copies(data))
    counts = np.bincount(data.codes[rows], minlength=len(data.classes))
    frequent = [code for code in np.argsort(-counts, kind="stable")[:_CLASSES] if counts[code] >= _FEW_OF_CLASS]
    rows = rows[np.isin(data.codes[rows], frequent)][:_ROWS]
    left = np.bincount(data.codes[rows], minlength=1)
    enough = len(rows) >= _FEW_ROWS and (left >= _FEW_OF_CLASS).sum() > 1
    return rows[left[data.codes[rows]] >= _FEW_OF_CLASS] if enough else None


def _without_copies(data: Examined) -> Codes:
    """Return rows without copies. Equal rows of columns with few different values are no copies, and stay."""
    _, group = np.unique(data.hashes, return_inverse=True)
    _, group, size = np.unique(group * len(data.classes) + data.codes, return_inverse=True, return_counts=True)
    order = np.argsort(group, kind="stable")
    number = np.empty(len(group), np.int64)  # which of the equal rows with its label a row is
    number[order] = np.arange(len(group)) - np.repeat(np.cumsum(size) - size, size)
    rows = np.flatnonzero(number < (size // np.gcd.reduce(size))[group])
    _, first = np.unique(data.hashes[rows], return_index=True)
    return rows[np.sort(first)] if 2 * len(first) >= len(rows) else rows


register("no signal", find, order=5)
