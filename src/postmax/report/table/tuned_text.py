"""Tuned settings in Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from postmax.train.settings import as_overrides

HEADING = "Settings chosen on noisy validation"


def tuned_to_markdown(tuned: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a section with the tuned settings of each row; empty if nothing was tuned."""
    if not tuned:
        return ""
    lines = [f"## {HEADING}", "", "| row | settings |", "|---|---|"]
    lines += [
        f"| {_plain(row)} | `{_plain(as_overrides(settings)).replace('`', chr(39))}` |"
        for row, settings in tuned.items()
    ]
    return "\n".join([*lines, ""])


def _plain(text: str) -> str:
    """Return a text that stays inside one cell of a Markdown table."""
    return " ".join(text.split()).replace("|", r"\|")
