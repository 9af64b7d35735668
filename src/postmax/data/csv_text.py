"""CSV as text: where the cells are, so that one can be changed and all others kept to the byte.

The `csv` module tells what cells mean, but forgets how they were quoted. This reads the same dialect (quotes doubled
inside quotes, line breaks inside quotes) and keeps the raw text of every cell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from postmax.data.files import existing_file
from postmax.errors import DataError

_DELIMITERS = (",", ";", "\t", "|")
_LINE_WITHOUT_QUOTES = re.compile(r'([^\r\n"]*)(\r\n|\r|\n|\Z)')
_UP_TO_QUOTE = re.compile(r'[^"\r\n]*')
_LINE_END = re.compile(r"\r\n|\r|\n|\Z")


@dataclass(frozen=True)
class CsvTable:
    """A CSV file, its cells as raw text.

    Attributes:
        header: The names of the columns.
        rows: The raw cells of each row.
        endings: How each line ended, the header's first.
        raw_header: The first line as it stands, with a byte-order mark if there was one.
        tail: Blank lines at the end.
        delimiter: What separates cells.
    """

    header: tuple[str, ...]
    rows: list[list[str]]
    endings: list[str]
    raw_header: str
    tail: str
    delimiter: str

    def column(self, index: int) -> list[str]:
        """The values of a column, unquoted."""
        return [unquote(row[index]) for row in self.rows]

    def to_text(self) -> str:
        """The file again."""
        lines = [self.raw_header, *(self.delimiter.join(row) for row in self.rows)]
        return "".join(part for pair in zip(lines, self.endings, strict=True) for part in pair) + self.tail


def read_csv_text(path: str | Path) -> CsvTable:
    """Read a CSV file whose first line names the columns.

    Raises:
        DataError: If it is not UTF-8, a quote is never closed, or a line has another number of cells than the header.
    """
    path = existing_file(path)
    text = _decode(path.read_bytes(), path)
    body = text.rstrip("\r\n")
    # The last line keeps its own ending; further blank lines are the tail.
    ending = _LINE_END.match(text, len(body))
    body = text[: ending.end() if ending else None]
    mark = "\ufeff" if body.startswith("\ufeff") else ""
    delimiter = _guess_delimiter(body[len(mark) :], path)
    lines = _records(body, len(mark), delimiter, path)
    cells, first_ending = next(lines, ([""], ""))
    rows, endings = [], [first_ending]
    for number, (row, end) in enumerate(lines, 1):
        if len(row) != len(cells):
            what = "is blank" if row == [""] else f"has {len(row)} cells, the header has {len(cells)}"
            raise DataError(f"{path}: row {number} (counted after the header) {what}.")
        rows.append(row)
        endings.append(end)
    header = tuple(unquote(cell).strip() for cell in cells)
    return CsvTable(header, rows, endings, mark + delimiter.join(cells), text[len(body) :], delimiter)


def unquote(raw: str) -> str:
    """What a raw cell means.

    Example:
        >>> unquote('"say ""hi"" now"')
        'say "hi" now'
    """
    if not raw.startswith('"'):
        return raw
    match = _quoted_part(raw)
    return raw[1 : match - 1].replace('""', '"') + raw[match:]


def quote(value: str, delimiter: str, *, like: str = "") -> str:
    """A value as a raw cell: quoted if it must be, or if the cell it replaces was.

    Example:
        >>> quote("a,b", ","), quote("a", ","), quote("a", ",", like='"c"')
        ('"a,b"', 'a', '"a"')
    """
    if like.startswith('"') or value == "" or any(c in value for c in (delimiter, '"', "\r", "\n")):
        return '"' + value.replace('"', '""') + '"'
    return value


def _quoted_part(raw: str) -> int:
    """Where the quotes that open a cell are closed."""
    position = 1
    while (position := raw.index('"', position) + 1) < len(raw) and raw[position] == '"':
        position += 1
    return position


def _records(text: str, position: int, delimiter: str, path: Path | str) -> Iterator[tuple[list[str], str]]:
    """The raw cells of each line and how it ended."""
    rest = rf"[^{re.escape(delimiter)}\r\n]*"
    cell = re.compile(rf'"[^"]*(?:""[^"]*)*+"{rest}|(?!"){rest}')
    row = 0
    while position < len(text):
        plain = _LINE_WITHOUT_QUOTES.match(text, position)
        if plain:
            yield plain[1].split(delimiter), plain[2]
            position = plain.end()
        else:
            cells: list[str] = []
            while True:
                # Cells up to the next quote are cut all at once; only the one it lies in needs a closer look.
                run = _UP_TO_QUOTE.match(text, position)
                *whole, begun = run[0].split(delimiter) if run else [""]
                cells += whole
                found = cell.match(text, (run.end() if run else position) - len(begun))
                if found is None:
                    raise DataError(f"{path}: row {row} (the header is row 0) opens a quote that is never closed.")
                cells.append(found[0])
                position = found.end() + 1
                if not text.startswith(delimiter, found.end()):
                    break
            ending = _LINE_END.match(text, found.end())
            yield cells, ending[0] if ending else ""
            position = ending.end() if ending else len(text)
        row += 1


def _guess_delimiter(text: str, path: Path) -> str:
    """The delimiter that cuts the header into most cells; of several, one that cuts the next lines alike."""

    def cuts(delimiter: str) -> tuple[int, bool]:
        lengths: list[int] = []
        # An unclosed quote may be there only because the delimiter is another; if not, it is found again later.
        with suppress(DataError):
            lengths += (len(cells) for cells, _ in islice(_records(text, 0, delimiter, path), 5))
        return next(iter(lengths), 0), len(set(lengths)) == 1

    return max(_DELIMITERS, key=cuts)


def _decode(data: bytes, path: Path) -> str:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{path} is not UTF-8: byte 0x{data[error.start]:02x} in line {line}. Save it as UTF-8 first "
            "(spreadsheets: “CSV UTF-8”)."
        ) from error
    if "\0" in text:
        raise DataError(f"{path} contains zero bytes; it is no CSV file.")
    if not text.strip("\ufeff\r\n"):
        raise DataError(f"{path} is empty.")
    return text
