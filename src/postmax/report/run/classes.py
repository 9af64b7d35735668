"""The results of each class: precision, recall, F1, and which classes are taken for which."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from postmax.report.class_matrix import MOST_CLASSES, ClassMatrix, class_matrix
from postmax.report.numbers import from_to, one_per_cent
from postmax.train.records import DataRecord, SeedConfusions

# With more classes the weakest come first, and the whole table can be opened below them.
MOST_ROWS = 30
_WEAKEST = 15
_LARGEST, _LARGEST_BESIDE_MATRIX = 15, 8


@dataclass(frozen=True)
class ClassRow:
    """One class of the table, as texts, and its F1 as a share for the bar."""

    name: str
    train: str
    test: str
    precision: str
    recall: str
    f1: str
    share: float


@dataclass(frozen=True)
class Confused:
    """A class that is taken for another: how many rows, and which part of all rows with this label."""

    label: str
    predicted: str
    rows: int
    share: str


@dataclass(frozen=True)
class ClassResults:
    """The results of each class for one reading, under the rule of the headline.

    Attributes:
        mean_f1: The mean of F1 over the classes, which counts rare classes as much as common ones.
        rows: All classes, in their order.
        weakest: The classes with the lowest F1, where there are too many to show all; otherwise empty.
        matrix: The confusion matrix; None if there are too many classes.
        shares: The same in shares of each row, for a picture.
        largest: The largest confusions.
        errors: How many test rows are predicted wrongly, over all seeds.
    """

    mean_f1: str
    rows: tuple[ClassRow, ...]
    weakest: tuple[ClassRow, ...]
    matrix: ClassMatrix | None
    shares: tuple[tuple[float, ...], ...]
    largest: tuple[Confused, ...]
    errors: int


def class_results(
    classes: Sequence[str],
    confusions: Sequence[SeedConfusions],
    data: DataRecord | None,
    reading: str,
    rule: str,
    *,
    own_rows: bool = True,
) -> ClassResults | None:
    """Return the results of each class, from the counts of all seeds together; None if a seed did not record them.

    Args:
        classes: The names of the classes.
        confusions: What each seed recorded.
        data: The rows of each class.
        reading: The reading.
        rule: The selection rule, such as "noisy_val".
        own_rows: Whether the reading is on the test rows of the run, and not on those of another data set.
    """
    found = [seed["readings"].get(reading, {}).get(rule) for seed in confusions]
    if not found or None in found:
        return None
    counts = np.zeros((len(classes), len(classes)), dtype=np.int64)
    for one in found:
        for label, predicted, count in one["cells"] if one else ():
            counts[label, predicted] += count
    hits, of_label, of_prediction = counts.diagonal(), counts.sum(1), counts.sum(0)
    precision, recall = _shares(hits, of_prediction), _shares(hits, of_label)
    f1 = _shares(2 * hits, of_label + of_prediction)
    test = _range(data, "test", len(classes)) if own_rows and data else [str(rows) for rows in of_label]
    train = _range(data, "train", len(classes)) if data else [""] * len(classes)
    rows = tuple(
        ClassRow(name, train[i], test[i], _text(precision[i]), _text(recall[i]), _text(f1[i]), _known(f1[i]))
        for i, name in enumerate(classes)
    )
    order = sorted(range(len(rows)), key=lambda i: rows[i].share)
    shares = np.nan_to_num(_shares(counts, of_label[:, None]))
    return ClassResults(
        mean_f1=one_per_cent(statistics.fmean(_known(value) for value in f1 if not np.isnan(value))),
        rows=rows,
        weakest=tuple(rows[i] for i in order[:_WEAKEST]) if len(rows) > MOST_ROWS else (),
        matrix=_matrix(classes, counts, shares),
        shares=tuple(map(tuple, shares.tolist())),
        largest=_largest(classes, counts, shares),
        errors=int(counts.sum() - hits.sum()),
    )


def _shares(part: npt.NDArray[np.int64], whole: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return a part of each whole; NaN where the whole is empty."""
    with np.errstate(invalid="ignore"):
        return np.where(whole > 0, part / np.maximum(whole, 1), np.nan)


def _known(share: float) -> float:
    return 0.0 if np.isnan(share) else float(share)


def _text(share: float) -> str:
    return "–" if np.isnan(share) else one_per_cent(share)


def _range(data: DataRecord, part: str, classes: int) -> list[str]:
    """Return the rows of each class; where the seeds differ, the fewest and the most."""
    seeds = [seed[part] for seed in data["seeds"]]  # type: ignore[literal-required]
    return [from_to([seed[i] for seed in seeds]) for i in range(classes)]


def _matrix(
    classes: Sequence[str], counts: npt.NDArray[np.int64], shares: npt.NDArray[np.float64]
) -> ClassMatrix | None:
    def words(i: int, j: int) -> tuple[str, str]:
        return (str(counts[i, j]), one_per_cent(shares[i, j])) if counts[i, j] else ("", "")

    return class_matrix("Confusion matrix", "label ↓ predicted →", classes, shares.tolist(), words)


def _largest(
    classes: Sequence[str], counts: npt.NDArray[np.int64], shares: npt.NDArray[np.float64]
) -> tuple[Confused, ...]:
    wrong = counts - np.diag(counts.diagonal())
    most = _LARGEST if len(classes) > MOST_CLASSES else _LARGEST_BESIDE_MATRIX
    order = np.argsort(-wrong, axis=None, kind="stable")[:most]
    pairs = (divmod(int(place), len(classes)) for place in order)
    return tuple(
        Confused(classes[i], classes[j], int(wrong[i, j]), one_per_cent(shares[i, j]))
        for i, j in pairs
        if wrong[i, j] > 0
    )
