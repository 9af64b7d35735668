"""A matrix as a table on a page: every cell has a number that can be copied, and a colour behind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

# Larger matrices are drawn as a picture, with their largest entries in a list.
MOST_CLASSES = 20


@dataclass(frozen=True)
class MatrixCell:
    """One cell.

    Attributes:
        text: What it says; empty if there is nothing to say.
        below: A second line, in small letters.
        strength: How strong its colour is, from 0 to 1.
        right: Whether it lies on the diagonal: the class is right there, and wrong elsewhere.
    """

    text: str
    below: str
    strength: float
    right: bool


@dataclass(frozen=True)
class ClassMatrix:
    """A matrix whose rows and columns are classes.

    Attributes:
        name: What it is, for readers who cannot see it.
        corner: What rows and columns are.
        classes: The names of the classes.
        rows: The cells.
    """

    name: str
    corner: str
    classes: tuple[str, ...]
    rows: tuple[tuple[MatrixCell, ...], ...]


def class_matrix(
    name: str,
    corner: str,
    classes: Sequence[str],
    shares: Sequence[Sequence[float]],
    words: Callable[[int, int], tuple[str, str]],
) -> ClassMatrix | None:
    """Return a matrix of shares as a table; None if it has too many classes.

    Args:
        name: What it is.
        corner: What rows and columns are.
        classes: The names of the classes.
        shares: A share from 0 to 1 for each cell, which gives its colour.
        words: Returns the text of the cell in a row and a column, and its second line.
    """
    if len(classes) > MOST_CLASSES:
        return None
    return ClassMatrix(
        name,
        corner,
        tuple(classes),
        tuple(
            tuple(MatrixCell(*words(i, j), strength=round(share**0.5, 3), right=i == j) for j, share in enumerate(row))
            for i, row in enumerate(shares)
        ),
    )
