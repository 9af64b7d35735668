"""Labels as people write them in a file: numbers or text, with white space around them."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from postmax.data.number_text import Decimal

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,14})(\.[0-9]+)?")
_COMMA_NUMBER = re.compile(_NUMBER.pattern.replace(r"\.", ","))


def label_values(texts: npt.NDArray[Any], decimal: Decimal = ".") -> npt.NDArray[Any]:
    """Return labels as numbers if all texts are numbers, so that 10 comes after 9. Otherwise return the texts.

    Empty texts are missing numbers if there are other ones.

    Example:
        >>> label_values(np.array(["10", "9"], dtype=object))
        array([10,  9])
        >>> label_values(np.array(["007", "9"], dtype=object))
        array(['007', '9'], dtype=object)
        >>> label_values(np.array(["1,5", ""], dtype=object), ",")
        array([1.5, nan])
    """
    pattern = _NUMBER if decimal == "." else _COMMA_NUMBER
    numbers = [pattern.fullmatch(text) for text in texts if text]
    if not numbers or not all(numbers):
        return texts
    if len(numbers) == len(texts) and not any(number and number[1] for number in numbers):
        return texts.astype(np.int64)
    return np.array([float(text.replace(",", ".")) if text else np.nan for text in texts])


def stripped(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return labels without white space around them, so that " cat" and "cat" are the same class."""
    if values.dtype.kind == "U":
        return np.char.strip(values)
    if values.dtype != object:
        return values
    return np.array([value.strip() if isinstance(value, str) else value for value in values], dtype=object)


def spelling(name: str) -> str:
    """Return what is left of a label without upper and lower case and white space. Labels that agree in it are alike.

    Example:
        >>> spelling("Deep  Red "), spelling("deepred")
        ('deepred', 'deepred')
    """
    return "".join(unicodedata.normalize("NFC", name).casefold().split())


def alike(names: Iterable[str]) -> list[list[str]]:
    """Return the names that differ only in upper and lower case or white space, in groups of two or more.

    Example:
        >>> alike(["Adelie", "gentoo", "adelie"])
        [['Adelie', 'adelie']]
    """
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(spelling(name), []).append(name)
    return [group for group in groups.values() if len(group) > 1]


def merged(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return labels in which names that differ only in upper and lower case or white space are one: the most frequent.

    Example:
        >>> merged(np.array(["Red", "red", "Red", None], dtype=object)).tolist()
        ['Red', 'Red', 'Red', None]
    """
    if values.dtype.kind not in "OU":
        return values
    counts = Counter(value for value in values.tolist() if isinstance(value, str))
    # Of equally frequent names the first in the order of text is taken, so that the order of rows says nothing.
    usual = {name: max(sorted(group), key=counts.__getitem__) for group in alike(counts) for name in group}
    return np.array([usual.get(v, v) if isinstance(v, str) else v for v in values.tolist()], dtype=object)
