"""Numbers as the pages, the tables and the terminal write them."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Sequence


def mean_and_std(values: Sequence[float], digits: int) -> str:
    """Return the mean and the sample standard deviation of some values; of a single value, just the value.

    Example:
        >>> mean_and_std([95.0, 96.0], 1), mean_and_std([95.0], 1)
        ('95.5 ± 0.7', '95.0')
    """
    text = f"{statistics.fmean(values):.{digits}f}"
    return text if len(values) < 2 else f"{text} ± {statistics.stdev(values):.{digits}f}"


def per_cent(shares: Sequence[float], digits: int = 1) -> str:
    """Return the mean and the standard deviation of shares between 0 and 1, in per cent.

    Example:
        >>> per_cent([0.95, 0.96])
        '95.5 ± 0.7 %'
    """
    return f"{mean_and_std([100 * share for share in shares], digits)} %"


def signed(value: float, digits: int) -> str:
    """Return a number with its sign: a true minus sign, and ± for what is rounded to zero.

    Example:
        >>> signed(-0.25, 2), signed(0.001, 1)
        ('−0.25', '±0.0')
    """
    text = f"{value:+.{digits}f}"
    if not float(text):
        return f"±{text[1:]}"
    return text.replace("-", "−")


def from_to(values: Collection[int]) -> str:
    """Return a number, or the least and the greatest of several.

    Example:
        >>> from_to([3, 3]), from_to([5, 3, 4])
        ('3', '3–5')
    """
    return str(min(values)) if len(set(values)) == 1 else f"{min(values)}–{max(values)}"


def ranges(numbers: Sequence[int]) -> str:
    """Return increasing numbers in short.

    Example:
        >>> ranges([0, 1, 2, 5])
        '0–2, 5'
    """
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(from_to(part) for part in parts)


def one_per_cent(share: float) -> str:
    """Return one share between 0 and 1, in per cent.

    Example:
        >>> one_per_cent(0.1234)
        '12.3 %'
    """
    return per_cent([share])


def interval_per_cent(low: float, high: float) -> str:
    """Return an interval of shares between 0 and 1, in per cent.

    Example:
        >>> interval_per_cent(0.15, 0.2104)
        '15.0–21.0 %'
    """
    return f"{100 * low:.1f}–{100 * high:.1f} %"


def thousands(number: int) -> str:
    """Return a number with narrow spaces between the thousands."""
    return f"{number:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")
