"""Columns of dates."""

from __future__ import annotations

from collections.abc import Iterator

from postmax.checking.catalogue import register
from postmax.checking.examined import Examined
from postmax.checking.finding import Finding
from postmax.checking.values import are_dates


def find(data: Examined) -> Iterator[Finding]:
    """Yield the columns of dates."""
    for name, values in data.columns.items():
        if data.named and are_dates(values):
            example = next(value for value in values.tolist() if value is not None and value == value)
            shown = f"{example:.0f}" if isinstance(example, float) else example
            text = f"C{data.called(name)[1:]} holds dates, such as {shown!r}, which are read as names or large numbers."
            remedy = f"Turn them into numbers, such as days since the first one. {data.without([name])}"
            yield Finding("dates", text, remedy, (name,), severity="note")


register("dates", find, order=60)
