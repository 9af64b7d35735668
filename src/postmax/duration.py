"""Durations in words."""

from __future__ import annotations

import math


def in_words(seconds: float | None) -> str:
    """Return a duration as a short text for people.

    Args:
        seconds: The duration. None, NaN and infinity mean that it is not known.

    Example:
        >>> in_words(4.2), in_words(95), in_words(3 * 3600 + 120), in_words(None)
        ('4 s', '1 min 35 s', '3 h 2 min', '?')
    """
    if seconds is None or not math.isfinite(seconds):
        return "?"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    if whole < 48 * 3600:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"
