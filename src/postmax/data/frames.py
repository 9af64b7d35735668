"""Data frames of pandas, polars and pyarrow, without importing any of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from postmax.errors import DataError


def is_frame(rows: Any) -> bool:
    """Return whether rows have columns with names: a data frame of pandas or polars, a pyarrow table, or a mapping.

    Example:
        >>> is_frame({"age": [30, 40]}), is_frame(np.zeros((2, 3)))
        (True, False)
    """
    return isinstance(rows, dict) or (hasattr(rows, "columns") and hasattr(rows, "__getitem__"))


def columns_of_frame(frame: Any) -> tuple[list[str], Callable[[str], npt.NDArray[Any]]]:
    """Return the names of the columns, and a function that returns the values of one: numbers, or text and None.

    Raises:
        DataError: If two columns have the same name, columns of a dictionary have different lengths, or a column is
            neither numbers nor text.

    Example:
        >>> names, values = columns_of_frame({"age": [30, None], "colour": ["red", "blue"]})
        >>> names, values("age"), values("colour")
        (['age', 'colour'], array([30., nan]), array(['red', 'blue'], dtype=object))
    """
    found = list(frame) if isinstance(frame, dict) else _names(frame)
    names = [str(name) for name in found]
    twice = next((name for name in names if names.count(name) > 1), None) if len(set(names)) < len(names) else None
    if twice is not None:
        raise DataError(f"the data frame has two columns called {twice!r}. Rename them.")
    if isinstance(frame, dict):
        frame = _of_one_length(frame)
    place = dict(zip(names, found, strict=True))
    return names, lambda name: _values(name, frame[place[name]])


def _of_one_length(columns: dict[Any, Any]) -> dict[Any, Any]:
    """Return columns that all have one value for each row."""
    found = {}
    for name, column in columns.items():
        if isinstance(column, str | bytes) or not (hasattr(column, "__len__") or hasattr(column, "__iter__")):
            raise DataError(
                f"the data frame: column {name!r} is {column!r}, and not a list with one value for each row. For one "
                f"row write [{column!r}]."
            )
        found[name] = column if hasattr(column, "__len__") else list(column)
        if getattr(found[name], "ndim", 1) != 1:
            raise DataError(
                f"the data frame: column {name!r} has the shape {tuple(column.shape)}, but a column has one value for "
                "each row."
            )
    lengths = {name: len(column) for name, column in found.items()}
    if len(set(lengths.values())) > 1:
        (first, most), (other, fewer) = (f(lengths.items(), key=lambda entry: entry[1]) for f in (max, min))
        raise DataError(
            f"the data frame: columns have one value for each row, but {first!r} has {most} and {other!r} has {fewer}."
        )
    return found


def _names(frame: Any) -> list[Any]:
    # The `columns` of a pyarrow table are their values.
    return list(frame.column_names if hasattr(frame, "column_names") else frame.columns)


def _values(name: str, column: Any) -> npt.NDArray[Any]:
    values: npt.NDArray[Any]
    if hasattr(column, "to_numpy"):
        values = column.to_numpy()
    else:  # as objects: numpy would turn NaN among texts into the text "nan"
        values = column if isinstance(column, np.ndarray) else np.array(list(column), dtype=object)
    if values.dtype.kind in "fiub":
        return values
    if values.dtype.kind in "OUT":
        cells = [None if _is_missing(cell) else cell for cell in values.tolist()]
        if all(cell is None or isinstance(cell, str) for cell in cells):
            return np.array(cells, dtype=object)
        if all(cell is None or isinstance(cell, bool | int | float) for cell in cells):
            return np.array([np.nan if cell is None else float(cell) for cell in cells])
        odd = next(cell for cell in cells if cell is not None and not isinstance(cell, str))
        raise DataError(
            f"the data frame: column {name!r} holds text and also {odd!r} ({type(odd).__name__}). Make it one of both."
        )
    raise DataError(f"the data frame: column {name!r} is of type {values.dtype}, but features are numbers or text.")


def _is_missing(cell: Any) -> bool:
    """Return whether a cell is None, NaN, or the missing value of pandas, which is not equal to itself."""
    return cell is None or type(cell).__name__ in ("NAType", "NaTType") or (isinstance(cell, float) and cell != cell)
