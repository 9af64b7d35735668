"""Rows that are there several times, and copies whose labels disagree."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from postmax.checking.catalogue import register
from postmax.checking.examined import Codes, Examined
from postmax.checking.finding import Finding

_FEW_ROWS, _MANY = 10, 0.01
# So many different rows are not all there equally often by chance.
_FEW_DIFFERENT = 20
# Equal rows are said if there are several times as many as chance makes, and some more.
_TIMES, _MORE = 3.0, 2.0
_REMEDY = "Keep one of each, for example with drop_duplicates() of pandas."


def find(data: Examined) -> Iterator[Finding]:
    """Yield that rows are copies of others, unless that is to be expected of columns with few different values."""
    if len(data) < _FEW_ROWS or not (data.features or data.images is not None):
        return
    _, group, size = np.unique(data.hashes, return_inverse=True, return_counts=True)
    if len(size) == len(data):
        return
    _, labelled, labelled_size = np.unique(
        group * len(data.classes) + data.codes, return_inverse=True, return_counts=True
    )
    yield from _copies(data, labelled, labelled_size)
    yield from _disagreeing(data, group, size, labelled, labelled_size)


def _copies(data: Examined, group: Codes, size: Codes) -> Iterator[Finding]:
    times = int(np.gcd.reduce(size))
    if times > 1 and len(size) >= _FEW_DIFFERENT:
        text = (
            f"Every row is there {times} times or more: {len(data):,} rows, of which {len(size):,} are different. "
            "Copies that are held out are known from training."
        )
        yield Finding("duplicates", text, _REMEDY, rows=data.at(np.flatnonzero(group == group[0])))
        return
    pairs = float((size * (size - 1.0)).sum() / 2)
    if pairs <= _TIMES * expected_pairs(data, data.codes) + _MORE:
        return
    copies = len(data) - len(size)
    first = np.flatnonzero(group == np.argmax(size))
    text = (
        f"{copies:,} of {len(data):,} rows are copies of another row with the same label, such as {data.some(first)}. "
        "Copies that are held out are known from training."
    )
    severity = "problem" if copies >= _MANY * len(data) else "note"
    yield Finding("duplicates", text, _REMEDY, rows=data.at(first), severity=severity)  # type: ignore[arg-type]


def _disagreeing(data: Examined, group: Codes, size: Codes, labelled: Codes, labelled_size: Codes) -> Iterator[Finding]:
    most = np.zeros(len(size), np.int64)
    np.maximum.at(most, group, labelled_size[labelled])
    wrong = size - most
    pairs = float((size * (size - 1.0)).sum() / 2 - (labelled_size * (labelled_size - 1.0)).sum() / 2)
    if pairs <= _TIMES * expected_pairs(data, np.zeros_like(data.codes)) + _MORE:
        return
    rows = np.flatnonzero(wrong[group] > 0)
    example = np.flatnonzero(group == group[rows[0]])
    text = (
        f"{len(rows):,} rows have the same features as another row, but labels that disagree, such as "
        f"{data.some(example)}. So at least {wrong.sum():,} labels ({wrong.sum() / len(data):.1%}) are wrong, or the "
        "features do not tell the classes apart."
    )
    remedy = "Correct their labels, or add the column that tells them apart."
    yield Finding("disagreeing duplicates", text.replace("%", " %"), remedy, rows=data.at(rows))


def expected_pairs(data: Examined, within: Codes) -> float:
    """Return how many pairs of equal rows chance makes, if the columns know nothing of each other within a group.

    Args:
        data: The rows.
        within: (N,) the group of each row.
    """
    if data.images is not None:
        return 0.0
    _, groups, rows = np.unique(within, return_inverse=True, return_counts=True)
    with np.errstate(divide="ignore"):
        chance = np.log(rows * (rows - 1.0) / 2)
        for values in data.features.values():
            plain = values if values.dtype.kind == "f" else values.astype(str)
            different, codes = np.unique(plain, return_inverse=True)
            key, count = np.unique(groups * len(different) + codes, return_counts=True)
            equal = np.bincount(key // len(different), count * (count - 1.0), len(rows))
            chance = chance + np.log(equal / np.maximum(rows * (rows - 1.0), 1))
    return float(np.exp(chance).sum())


register("duplicates", find, order=100)
