"""Find numbers that are written with another decimal sign than the one that was said. They would become categories."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import numpy as np
import numpy.typing as npt

from postmax.data.columns import Columns
from postmax.data.number_text import Decimal, is_missing, numbers
from postmax.data.problems import Problems
from postmax.wording import advice

_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+(?:[eE][+-]?[0-9]+)?")
_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2}(?:,[0-9]{3})+")
_ONE_WAY = "Write all numbers of the file in one way."


def with_clear_decimals(
    columns: Columns, categorical: Collection[str], decimal: Decimal, problems: Problems
) -> tuple[Decimal, Columns]:
    """Note columns whose numbers have the other decimal sign. They would become categories.

    Returns:
        The decimal sign and the columns with which to go on, so that all other problems are found too.
    """
    texts = {name: values for name, values in columns.items() if name not in categorical}
    found = {name: other for name, values in texts.items() if (other := _other_decimal(values, decimal)) is not None}
    pointed = next((name for name, values in texts.items() if _has_decimal_point(values)), None) if found else None
    left, go_on = dict(columns), decimal
    for name, (shown, certain) in found.items():
        sign = "decimal points" if decimal == "," else "decimal commas" if certain else "commas"
        problem = f"column {name!r} holds numbers with {sign}, such as {shown!r}"
        if decimal == "." and certain and pointed is None:
            problems.add(f"{problem}.", decimal=",")
            go_on = ","
            continue
        del left[name]
        if decimal == ",":
            problems.add(f"{problem}, but the decimal sign is said to be the comma. {_ONE_WAY}")
        elif pointed is not None:
            problems.add(f"{problem}, but those of column {pointed!r} have a decimal point. {_ONE_WAY}")
        else:
            option = advice(python='decimal=","', command="--decimal ,")
            problems.add(
                f"{problem}. If they are decimal commas, say {option} and if they separate thousands, write the "
                "numbers without them."
            )
    return go_on, left


def _has_decimal_point(values: npt.NDArray[Any]) -> bool:
    """Return whether values are texts of numbers, and some of them have a decimal point."""
    texts = values.dtype.kind not in "fiub" and any(text is not None and "." in text for text in values)
    return texts and numbers(values) is not None


def _other_decimal(values: npt.NDArray[Any], decimal: Decimal) -> tuple[str, bool] | None:
    """Return a value that shows that numbers are written with the other decimal sign; None if they are not.

    The second entry says whether the values can only be read in this way. It is False if commas may separate thousands.

    Example:
        >>> _other_decimal(np.array(["1,5", "2"], dtype=object), ".")
        ('1,5', True)
        >>> _other_decimal(np.array(["1,500", "2"], dtype=object), ".")
        ('1,500', False)
        >>> _other_decimal(np.array(["red", "2"], dtype=object), ".")
    """
    other = "," if decimal == "." else "."
    if values.dtype.kind in "fiub" or not any(v is not None and other in v for v in values):
        return None
    texts = [v.strip() for v in values if not is_missing(v)]
    if decimal == ",":
        point = next((text for text in texts if "." in text), None)
        return None if point is None or numbers(values) is None else (point, True)
    comma = [text for text in texts if _COMMA.fullmatch(text) or _THOUSANDS.fullmatch(text)]
    others = np.array([text for text in texts if "," not in text], dtype=object)
    if not comma or len(comma) + len(others) < len(texts) or numbers(others) is None:
        return None
    return comma[0], not all(_THOUSANDS.fullmatch(text) for text in comma) and numbers(values, ",") is not None
