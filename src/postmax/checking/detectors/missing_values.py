"""Columns in which many values are missing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from postmax.checking.catalogue import register
from postmax.checking.examined import Examined
from postmax.checking.finding import Finding
from postmax.data.problems import in_words

_MANY, _FEW_ROWS = 0.3, 20


def find(data: Examined) -> Iterator[Finding]:
    """Yield the columns in which many values are missing."""
    for name, values in data.columns.items():
        gaps = np.isnan(values) if values.dtype.kind == "f" else np.array([v is None or not v for v in values.tolist()])
        share = float(gaps.mean()) if len(gaps) else 0.0
        # That a column of a file has no values at all is what its reader says.
        if share >= _MANY and len(data) >= _FEW_ROWS and (share < 1 or data.label is None):
            text = f"C{data.called(name)[1:]} has no value in {gaps.sum():,} of {len(data):,} rows ({share:.0%})."
            fill = f", or to keep it: {in_words({'missing': ['median']})}" if values.dtype.kind == "f" else ""
            remedy = f"{data.without([name])}{fill if data.named else ''}"
            rows = data.at(np.flatnonzero(gaps))
            yield Finding("missing values", text.replace("%", " %"), remedy, (name,), rows, "note")


register("missing values", find, order=80)
