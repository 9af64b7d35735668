"""Columns that give the label away: copies of it, and what was only known when it was given."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from postmax.checking.catalogue import register
from postmax.checking.examined import Codes, Examined
from postmax.checking.finding import Finding
from postmax.checking.values import are_dates
from postmax.data.label_text import spelling

_ROWS, _FEW_ROWS = 20_000, 20
# The share of what chance gets wrong that a column alone gets right, above which it gives the label away.
_NEARLY_ALL = 0.98
# The same for columns with the names of the classes in them, of two classes and of more: "yes" and "no" are common.
_SAME_NAMES_OF_TWO, _SAME_NAMES = 0.6, 0.2


def find(data: Examined) -> Iterator[Finding]:
    """Yield the columns from which alone the label can be told, and those that hold the names of the classes."""
    if len(data) < _FEW_ROWS or len({*data.codes.tolist()}) < 2:
        return
    chosen = np.arange(len(data))
    if len(data) > _ROWS:
        chosen = np.random.default_rng(0).permutation(len(data))[:_ROWS]
    # A label that is written in two ways is one label.
    alike, group = np.unique([spelling(name) for name in data.classes], return_inverse=True)
    codes = group[data.codes[chosen]]
    for name, column in data.features.items():
        values = column[chosen]
        if are_dates(values):
            continue
        right = right_alone(values, codes)
        called = f"C{data.called(name)[1:]}"
        remedy = data.without([name])
        if skill(right, codes) >= _NEARLY_ALL:
            share = "all" if right.all() else f"{100 * right.mean():.1f} %"
            text = f"{called} tells the label of {share} of the rows by itself: it may be a copy of the label."
            yield Finding("leak", text, remedy, (name,))
        elif _holds_class_names(values, codes, alike.tolist()):
            text = f"{called} holds the names of the classes: it may be another version of the label."
            yield Finding("leak", text, remedy, (name,))


def right_alone(values: npt.NDArray[Any], codes: Codes) -> npt.NDArray[np.bool_]:
    """Return for each row whether the other rows with this value, or the nearest other value, tell its label.

    Example:
        >>> right_alone(np.array([1.0, 1.0, 1.0, 2.0, 2.1]), np.array([0, 0, 1, 1, 1])).tolist()
        [True, True, False, True, True]
    """
    is_number = values.dtype.kind == "f"
    plain = np.nan_to_num(values, nan=np.inf) if is_number else values.astype(str)
    different, place, rows = np.unique(plain, return_inverse=True, return_counts=True)
    if is_number and len(different) > len(values) / 2:
        return _by_neighbour(plain, codes)
    classes = int(codes.max()) + 1
    key, which, count = np.unique(place * classes + codes, return_inverse=True, return_counts=True)
    # The most frequent label of each value, and how often the next one occurs.
    order = np.lexsort((-count, key // classes))
    first = np.searchsorted(key[order] // classes, np.arange(len(different)))
    top = order[first]
    following = np.minimum(first + 1, len(order) - 1)
    has_next = (key[order[following]] // classes == np.arange(len(different))) & (following > first)
    next_count = np.where(has_next, count[order[following]], 0)
    usual = (which == top[place]) & (rows[place] > 1)
    right: npt.NDArray[np.bool_] = usual & (count[top][place] - 1 >= next_count[place])
    return right


def skill(right: npt.NDArray[np.bool_], codes: Codes) -> float:
    """Return which share of the rows that the most frequent label gets wrong is right, from 0 to 1."""
    base = np.bincount(codes).max() / len(codes)
    return float((right.mean() - base) / (1 - base)) if base < 1 else 0.0


def _by_neighbour(values: npt.NDArray[Any], codes: Codes) -> npt.NDArray[np.bool_]:
    order = np.argsort(values, kind="stable")
    sorted_values, labels = values[order], codes[order]
    with np.errstate(invalid="ignore"):
        gaps = np.nan_to_num(np.diff(sorted_values), nan=0.0)
    below, above = np.append(np.inf, gaps), np.append(gaps, np.inf)
    neighbour = np.where(below <= above, np.arange(len(values)) - 1, np.arange(len(values)) + 1)
    right = np.empty(len(values), bool)
    right[order] = labels[neighbour] == labels
    return right


def _holds_class_names(values: npt.NDArray[Any], codes: Codes, classes: list[str]) -> bool:
    if values.dtype.kind == "f":
        return False
    names = {name: code for code, name in enumerate(classes)}
    if all(name.isdecimal() for name in names):
        return False
    meant = np.array([names.get(spelling(str(value)), -1) for value in values.tolist()])
    if len({*meant.tolist()}) < 2 or (meant < 0).mean() > 0.1:
        return False
    return skill(meant == codes, codes) >= (_SAME_NAMES_OF_TWO if len(classes) == 2 else _SAME_NAMES)


register("leaks", find, order=40)
