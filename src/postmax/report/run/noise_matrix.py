"""The transition matrix of a run: known, assumed or estimated, and how sure each of its entries is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from postmax.estimation import TransitionEstimate
from postmax.report.class_matrix import ClassMatrix, class_matrix
from postmax.report.content import NoiseMatrix
from postmax.train.records import RunResult

_LARGEST = 15

_Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Flip:
    """An entry beside the diagonal: how often a true class gets another label, and how sure that is."""

    true: str
    label: str
    share: str
    spread: str


@dataclass(frozen=True)
class MatrixPart:
    """A transition matrix on the page.

    Attributes:
        title: What it is.
        about: How sure the entries are, in words; empty if they are exact.
        table: The matrix as a table; None if it is too large.
        picture: The matrix for a picture; None if it is too large for a table and a sentence says all there is to see.
        largest: The largest entries beside the diagonal, where the matrix is too large for a table.
    """

    title: str
    about: str
    table: ClassMatrix | None
    picture: NoiseMatrix | None
    largest: tuple[Flip, ...]


@dataclass(frozen=True)
class _Matrix:
    """The entries with what stands below each of them: an interval, a standard deviation, or nothing."""

    values: _Numbers
    about: str = ""
    interval: tuple[_Numbers, _Numbers] | None = None
    std: _Numbers | None = None

    def spread(self, i: int, j: int) -> str:
        if self.interval is not None:
            low, high = (bound[i, j] for bound in self.interval)
            return f"{100 * low:.1f}–{100 * high:.1f}"
        return "" if self.std is None else f"± {100 * self.std[i, j]:.1f}"


def matrix_part(result: RunResult, estimates: Sequence[TransitionEstimate], *, estimated: bool) -> MatrixPart | None:
    """Return the transition matrix of a run; None if there is none. Where the seeds have their own, it is the mean.

    Args:
        result: The result of the run.
        estimates: The estimate of each seed; empty if there is none, or the run did not record it.
        estimated: Whether the matrix was estimated.
    """
    matrix = _matrix(result, estimates)
    if matrix is None:
        return None
    classes = tuple(result["classes"])
    name = "Estimated transition matrix" if estimated else "Transition matrix"
    return _part(name if matrix.std is None else f"{name}, mean of {len(result['seeds'])} estimates", matrix, classes)


def estimate_part(estimate: TransitionEstimate) -> MatrixPart:
    """Return the matrix of a single estimate."""
    return _part("Estimated transition matrix", _of_estimate(estimate), tuple(map(str, estimate.classes)))


def _part(title: str, matrix: _Matrix, classes: tuple[str, ...]) -> MatrixPart:
    shares = matrix.values.tolist()

    def words(i: int, j: int) -> tuple[str, str]:
        return f"{100 * shares[i][j]:.1f}", matrix.spread(i, j)

    table = class_matrix(title, "true class ↓ label →", classes, shares, words)
    largest = _largest(matrix, classes) if table is None else ()
    picture = NoiseMatrix(title, classes, tuple(map(tuple, shares))) if table or largest else None
    return MatrixPart(title, matrix.about, table, picture, largest)


def _matrix(result: RunResult, estimates: Sequence[TransitionEstimate]) -> _Matrix | None:
    found = [one.matrix.tolist() for one in estimates] or [s["transition"] for s in result["seeds"] if s["transition"]]
    if not found:
        return None
    values = np.array(found)
    if (values != values[0]).any():
        about = f" Each number is the mean of {len(values)} estimates, one for each seed."
        return _Matrix(values.mean(0), f"{about} Below it is their standard deviation.", std=values.std(0, ddof=1))
    return _of_estimate(estimates[0]) if estimates else _Matrix(values[0])


def _of_estimate(estimate: TransitionEstimate) -> _Matrix:
    low, high = (bound.numpy() for bound in estimate.interval)
    about = f" Below each number is its {100 * estimate.level:.0f} % interval."
    if is_symmetric(estimate):
        about += (
            " All wrong labels of a class are taken to be equally likely, and all classes to be equally noisy, because "
            "the rows do not tell more. Where that is not so, the intervals are too narrow."
        )
    return _Matrix(np.array(estimate.matrix.tolist()), about, (low, high))


def is_symmetric(estimate: TransitionEstimate) -> bool:
    """Return whether an estimate is symmetric noise: one rate for all classes, spread evenly over the other ones."""
    matrix = np.array(estimate.matrix.tolist())
    beside = matrix[~np.eye(len(matrix), dtype=bool)]
    return bool(np.ptp(beside) < 1e-9)


def _largest(matrix: _Matrix, classes: Sequence[str]) -> tuple[Flip, ...]:
    """Return the largest entries beside the diagonal; none if all are equal, as with symmetric noise."""
    beside = matrix.values[~np.eye(len(classes), dtype=bool)]
    if np.ptp(beside) < 1e-9:
        return ()
    wrong = matrix.values - np.diag(matrix.values.diagonal())
    order = np.argsort(-wrong, axis=None, kind="stable")[:_LARGEST]
    pairs = [divmod(int(place), len(classes)) for place in order]
    return tuple(
        Flip(classes[i], classes[j], f"{100 * wrong[i, j]:.1f} %", matrix.spread(i, j))
        for i, j in pairs
        if wrong[i, j] > 0
    )
