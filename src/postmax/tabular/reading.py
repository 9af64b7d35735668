"""Read rows and labels as users of scikit-learn give them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, column_or_1d, validate_data
from torch import Tensor

from postmax.errors import InputError
from postmax.registry import unknown_name
from postmax.tabular.columns import array_columns, frame_columns, is_frame

Array = npt.NDArray[Any]


def read_rows(estimator: Any, rows: Any, *, reset: bool) -> tuple[list[Array], list[str], set[int]]:
    """Return the columns of rows, what messages call them, and the places of those that are categories.

    Args:
        estimator: What is fitted. It gets `n_features_in_` and `feature_names_in_`, and has `categorical_features`.
        rows: An array, a sparse matrix, or a data frame.
        reset: Whether these are the rows that it is fitted to; otherwise they must have the same columns.

    Raises:
        ValueError: If they have other columns, or are not numbers.
    """
    categorical: set[int] = set()
    if is_frame(rows):
        validate_data(estimator, X=rows, reset=reset, skip_check_array=True)
        if len(rows) == 0:
            raise InputError("the data frame has 0 sample(s); at least 1 is needed.")
        columns, names, from_type = frame_columns(rows)
        categorical.update(from_type)
        plain = list(rows.columns)
    else:
        found = validate_data(
            estimator, X=rows, reset=reset, accept_sparse="csr", dtype="numeric", ensure_all_finite="allow-nan"
        )
        columns, names = array_columns(found.toarray() if hasattr(found, "toarray") else found)
        plain = list(range(len(columns)))
    wanted = estimator.categorical_features
    if wanted is not None and not isinstance(wanted, str):
        categorical |= _places(wanted, plain)
    return columns, names, categorical


def read_labels(labels: Any, rows: int, sample_weight: Any) -> tuple[Array, Tensor]:
    """Return labels as an array, and float32 weights.

    Raises:
        ValueError: If they are not one label and one weight for each row, or not classes.
    """
    if labels is None:
        raise InputError("requires y to be passed, but the target y is None.")
    found = column_or_1d(labels.to_numpy() if hasattr(labels, "to_numpy") else labels, warn=True)
    _check_all_there(found)
    check_classification_targets(found)
    if len(found) != rows:
        raise InputError(f"inconsistent numbers of samples: {rows} rows, but {len(found)} labels.")
    weights = _check_sample_weight(sample_weight, found[:, None], ensure_non_negative=True)
    return found, torch.from_numpy(weights.astype(np.float32))


def _check_all_there(labels: Array) -> None:
    """Check that no label is missing: None, NaN or pandas' NA. NaN among numbers is left to scikit-learn."""
    if labels.dtype != object:
        return
    missing = [
        i for i, label in enumerate(labels) if label is None or type(label).__name__ == "NAType" or label != label
    ]
    if missing:
        raise InputError(
            f"Input y contains NaN: {len(missing)} of {len(labels)} labels are missing, the first one at index "
            f"{missing[0]}. Leave these rows out, for example with X[y.notna()], y[y.notna()]."
        )


def encode_first(labels: Array, weights: Tensor) -> tuple[Array, Tensor]:
    """Return the classes of labels, sorted, and class indices.

    Raises:
        InputError: If fewer than two classes have rows with a weight.
    """
    classes, codes = np.unique(labels, return_inverse=True)
    present = np.unique(labels[weights.numpy() > 0])
    if len(present) < 2:
        name = repr(present.tolist()[0]) if len(present) else "none"
        raise InputError(f"a classifier needs labels of two classes or more; there is {len(present)} class: {name}.")
    return classes, torch.from_numpy(codes.astype(np.int64))


def encode_more(labels: Array, classes: Array) -> Tensor:
    """Return class indices of labels, for classes that are known.

    Raises:
        InputError: If a label is not one of them.
    """
    unknown = np.setdiff1d(labels, classes)
    if len(unknown):
        raise InputError(f"the label {unknown.tolist()[0]!r} is not one of the classes of the first rows.")
    return torch.from_numpy(np.searchsorted(classes, labels).astype(np.int64))


def _places(features: Any, columns: list[Any]) -> set[int]:
    """Return the places of columns that are given by names, places or a mask."""
    wanted = np.asarray(features)
    if wanted.dtype == bool:
        return set(np.flatnonzero(wanted).tolist())
    found = set()
    for name in wanted.tolist():
        if name in columns:
            found.add(columns.index(name))
        elif isinstance(name, int) and 0 <= name < len(columns):
            found.add(name)
        else:
            raise unknown_name("column", str(name), [str(column) for column in columns])
    return found
