"""Print matrices as text."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text
from torch import Tensor

_WHOLE_UP_TO = 20
_CONFUSIONS = 15


def print_matrix(matrix: Tensor, classes: Sequence[str | int], *, counts: Tensor | None = None) -> None:
    """Print the whole matrix in per cent for up to twenty classes, otherwise its largest entries off the diagonal."""
    console = Console(width=None if Console().is_terminal else 200, highlight=False)
    console.print(_whole(matrix, classes, counts) if len(classes) <= _WHOLE_UP_TO else _largest(matrix, classes))


def printable(words: object) -> str:
    """Return words about data without control characters for the terminal, which a file may hold."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "�" for letter in str(words))


def _whole(matrix: Tensor, classes: Sequence[str | int], counts: Tensor | None) -> Table:
    table = Table(box=box.SIMPLE_HEAD, title="P(label | true class), %", title_justify="left")
    table.add_column(Text("true \\ label"))
    for name in classes:
        table.add_column(Text(_short(name)), justify="right")
    if counts is not None:
        table.add_column(Text("rows"), justify="right")
    for i, row in enumerate(matrix.tolist()):
        cells = [Text(_percent(value), style="bold" if i == j else "") for j, value in enumerate(row)]
        extra = [] if counts is None else [Text(f"{int(counts[i])}")]
        table.add_row(Text(_short(classes[i])), *cells, *extra)
    return table


def _largest(matrix: Tensor, classes: Sequence[str | int]) -> Table:
    k = len(classes)
    off = matrix.nan_to_num().clone().fill_diagonal_(0)
    table = Table(
        box=box.SIMPLE_HEAD, title=f"The {_CONFUSIONS} largest confusions of {k} classes", title_justify="left"
    )
    for name in ("true class", "label", "%"):
        table.add_column(Text(name), justify="right" if name == "%" else "left")
    for place in off.flatten().topk(_CONFUSIONS).indices.tolist():
        i, j = divmod(place, k)
        if off[i, j] > 0:
            table.add_row(Text(_short(classes[i])), Text(_short(classes[j])), Text(_percent(float(off[i, j]))))
    return table


def _percent(value: float) -> str:
    if value != value:
        return "–"
    if value < 0.0005:
        return "·"
    return f"{100 * value:.1f}"


def _short(name: str | int) -> str:
    text = printable(name)
    return text if len(text) <= 12 else f"{text[:11]}…"
