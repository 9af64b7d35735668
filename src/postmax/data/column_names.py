"""Find columns by the names that people give, and say which names there are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from postmax.data.columns import Columns
from postmax.data.problems import Problems
from postmax.registry import nearest
from postmax.wording import advice

_LABEL_NAMES = ("label", "labels", "y", "target", "targets", "class")
_MANY_CLASSES = 100


def find_label(
    names: Collection[str], given: str | None, problems: Problems, columns: Callable[[], Columns] = dict
) -> str | None:
    """Return the column of the labels: the given one, the only one, or the only one with a usual name.

    If there is no such column, or several, that is noted, and the result is the column that is meant most likely, or
    None.

    Args:
        names: The names of all columns.
        given: The name that was given, or None.
        problems: Gets what is wrong.
        columns: Returns the values of columns, to guess from.

    Example:
        >>> find_label(["age", "Label"], None, Problems("example.csv"))
        'Label'
    """
    if given is not None:
        if given in names:
            return given
        near = nearest(given, names)
        problems.add(no_such_column(given, problems.label, "label", names), **({} if near is None else {"label": near}))
        return near
    found = list(names) if len(names) == 1 else [name for name in names if name.lower() in _LABEL_NAMES]
    if len(found) == 1:
        return found[0]
    likely = _likely_label(columns(), found)
    option = advice(python=f"{problems.label}=", command="--label")
    problems.add(
        f"which column holds the labels? Name one of its columns with {option}: {listing(names)}.",
        **({} if likely is None else {"label": likely}),
    )
    return likely


def note_unknown(given: Iterable[str], option: str, names: Collection[str], problems: Problems) -> None:
    """Note the columns that the file does not have."""
    for name in given:
        if name not in names:
            problems.add(no_such_column(name, option, option, names))
            problems.dropped = [other for other in problems.dropped if other != name]


def no_such_column(given: str, argument: str, option: str, names: Collection[str]) -> str:
    """Return that the file does not have a column that an argument or option names, with the nearest or all columns."""
    near = nearest(given, names)
    hint = f"Did you mean {near!r}?" if near is not None else f"Its columns are {listing(names)}."
    where = advice(python=f"{argument}=", command=f"--{option}")
    return f"there is no column {given!r}, which {where} names. {hint}"


def listing(names: Collection[str]) -> str:
    """Return names in one line. The label is often the last column, so a long list shows both ends."""
    shown = list(names)
    return ", ".join(shown if len(shown) <= 20 else [*shown[:8], "…", *shown[-8:]])


def _likely_label(columns: Columns, found: list[str]) -> str | None:
    """Return the last of the columns that could be labels: text before whole numbers, with values that repeat."""
    candidates = []
    for place, (name, values) in enumerate(columns.items()):
        kinds = {str(value).strip() for value in values.tolist()}
        if 2 <= len(kinds) <= min(_MANY_CLASSES, max(2, len(values) // 2)):
            text = not all(kind.lstrip("+-").replace(".", "", 1).replace(",", "", 1).isdecimal() for kind in kinds)
            candidates.append((name in found, text, place, name))
    return max(candidates)[3] if candidates else None
