"""Groups of rows on which the model agrees with the labels much less than elsewhere."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from postmax.auditing.catalogue import register
from postmax.auditing.judged import Judged
from postmax.checking import Finding
from postmax.checking.values import are_dates

_FEW_ROWS, _SMALLEST, _MOST_COLUMNS = 100, 20, 300
_PARTS, _MOST_CATEGORIES = 4, 50
_LEVEL, _LESS, _SHOWN, _SAME = 0.01, 0.1, 5, 0.6

Mask = npt.NDArray[np.bool_]


class Group(NamedTuple):
    """Some rows.

    Attributes:
        column: The column that tells them from the others.
        what: What they have in common.
        rows: Which rows they are, (N,).
    """

    column: str
    what: str
    rows: Mask


def find(data: Judged) -> Iterator[Finding]:
    """Yield groups whose labels the model foresees significantly worse, by 10 points or more, the largest harm first.

    A group has one category, or numbers in one quarter of a column, or a missing value.
    """
    if len(data.codes) < _FEW_ROWS:
        return
    groups = list(groups_of(data))
    found = [(harm, group) for group in groups if (harm := harm_of(data.agrees, group.rows, len(groups))) > 0]
    shown: list[Mask] = []
    for _, group in sorted(found, key=lambda one: -one[0]):
        if any((group.rows & other).sum() > _SAME * group.rows.sum() for other in shown):
            continue  # its rows are known already
        shown.append(group.rows)
        inside, outside = data.agrees[group.rows].mean(), data.agrees[~group.rows].mean()
        text = (
            f"Where {data.data.called(group.column)} is {group.what} ({group.rows.sum():,} rows), the model agrees "
            f"with {inside:.0%} of the labels; elsewhere with {outside:.0%}."
        )
        remedy = "Look at the labels of this group, or add rows or features that explain it."
        rows = data.at(np.flatnonzero(group.rows))
        yield Finding("poor group", text.replace("%", " %"), remedy, (group.column,), rows, "note")
        if len(shown) == _SHOWN:
            return


def groups_of(data: Judged) -> Iterator[Group]:
    """Yield all groups of at least twenty rows that leave at least as many outside."""
    columns = {name: values for name, values in data.data.features.items() if not are_dates(values)}
    for name in list(columns)[:_MOST_COLUMNS]:
        for what, rows in _parts(columns[name]):
            if _SMALLEST <= rows.sum() <= len(rows) - _SMALLEST:
                yield Group(name, what, rows)


def harm_of(agrees: Mask, rows: Mask, groups: int) -> float:
    """Return how many more labels would be foreseen if the group were like the others; 0 if it is not clearly worse."""
    inside, outside = agrees[rows], agrees[~rows]
    less = float(outside.mean() - inside.mean())
    pooled = float(agrees.mean())
    deviation = math.sqrt(pooled * (1 - pooled) * (1 / len(inside) + 1 / len(outside)))
    if less < _LESS or deviation == 0:
        return 0.0
    chance = 0.5 * math.erfc(less / deviation / math.sqrt(2))
    return less * len(inside) if chance * groups < _LEVEL else 0.0


def _parts(values: npt.NDArray[Any]) -> Iterator[tuple[str, Mask]]:
    if values.dtype.kind != "f":
        names, place, count = np.unique(values.astype(str), return_inverse=True, return_counts=True)
        missing = np.array([value is None for value in values])
        for code in np.argsort(-count, kind="stable")[:_MOST_CATEGORIES]:
            name = str(names[code])[:60]
            yield repr(name), (place == code) & ~missing
    else:
        missing = ~np.isfinite(values)
        present = values[~missing]
        few = np.unique(present)
        if len(few) <= _PARTS:
            for value in few:
                yield f"{value:.4g}", values == value
        elif len(present):
            cuts = np.unique(np.quantile(present, np.linspace(0, 1, _PARTS + 1)[1:-1]))
            edges = [-np.inf, *cuts.tolist(), np.inf]
            for low, high in pairwise(edges):
                yield _between(low, high), (values > low) & (values <= high) & ~missing
    yield "missing", missing


def _between(low: float, high: float) -> str:
    if low == -np.inf:
        return f"at most {high:.4g}"
    return f"above {low:.4g}" if high == np.inf else f"above {low:.4g} and at most {high:.4g}"


register("poor groups", find, order=30)
