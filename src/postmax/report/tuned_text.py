"""Tuned settings as text: short, and in Markdown."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

HEADING = "Settings chosen on noisy validation"


def in_short(settings: Mapping[str, Any]) -> str:
    """As one would write them on a command line.

    Example:
        >>> in_short({"optimiser.lr": 0.1, "loss": {"name": "gce", "q": 0.7}})
        'optimiser.lr=0.1 loss={"name": "gce", "q": 0.7}'
    """
    return " ".join(f"{key}={_value(value)}" for key, value in settings.items())


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def tuned_to_markdown(tuned: Mapping[str, Mapping[str, Any]]) -> str:
    """A section with the settings of each row; empty where nothing was tuned."""
    if not tuned:
        return ""
    lines = [f"## {HEADING}", "", "| row | settings |", "|---|---|"]
    lines += [
        f"| {_plain(row)} | `{_plain(in_short(settings)).replace('`', chr(39))}` |" for row, settings in tuned.items()
    ]
    return "\n".join([*lines, ""])


def _plain(text: str) -> str:
    """Text that stays in its cell."""
    return " ".join(text.split()).replace("|", r"\|")
