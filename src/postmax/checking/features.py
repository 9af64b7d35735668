"""Columns as scaled features, for detectors that compare rows or train on them."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from postmax.checking.examined import Codes, Examined
from postmax.checking.values import are_dates
from postmax.tabular.columns import Encoder


def encoded(data: Examined, rows: Codes) -> Tensor:
    """Return the features of some rows, float32 (n, d): without columns of dates or of names of rows.

    Infinite numbers count as missing.
    """
    columns = [
        np.where(np.isfinite(values), values, np.nan) if values.dtype.kind == "f" else values
        for values in (column[rows] for column in data.features.values() if not are_dates(column))
    ]
    if not columns:
        return Tensor(len(rows), 0)
    _, features = Encoder.fit(columns, [str(place) for place in range(len(columns))])
    return features
