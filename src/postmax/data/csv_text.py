"""Read a CSV file as raw text, so that one cell can be changed while all other bytes stay the same.

The `csv` module returns the values of cells, but not how they were quoted. This module reads the same dialect (doubled
quotes and line breaks inside quotes), and keeps the raw text of every cell.
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
    """A CSV file with its cells as raw text.

    Attributes:
        header: The names of the columns.
        rows: The raw cells of each row.
        endings: The line ending of each line, that of the header first.
        raw_header: The first line as it is in the file, with its byte-order mark if it has one.
        tail: Blank lines at the end of the file.
        delimiter: The character between cells.
    """

    header: tuple[str, ...]
    rows: list[list[str]]
    endings: list[str]
    raw_header: str
    tail: str
    delimiter: str

    def column(self, index: int) -> list[str]:
        """Return the values of a column, without quotes."""
        return [unquote(row[index]) for row in self.rows]

    def to_text(self) -> str:
        """Return the text of the file."""
        lines = [self.raw_header, *(self.delimiter.join(row) for row in self.rows)]
        return "".join(part for pair in zip(lines, self.endings, strict=True) for part in pair) + self.tail


def read_csv_text(path: str | Path) -> CsvTable:
    """Read a CSV file whose first line names the columns.

    Raises:
        DataError: If the file is not UTF-8, a quote is never closed, or a line and the header differ in their number of
            cells.
    """
    path = existing_file(path)
    text = _decode(path.read_bytes(), path)
    body = text.rstrip("\r\n")
    # The last line keeps its own ending. Blank lines after it are the tail.
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
    """Return the value of a raw cell.

    Example:
        >>> unquote('"say ""hi"" now"')
        'say "hi" now'
    """
    if not raw.startswith('"'):
        return raw
    match = _quoted_part(raw)
    return raw[1 : match - 1].replace('""', '"') + raw[match:]


def quote(value: str, delimiter: str, *, like: str = "") -> str:
    """Return a value as a raw cell. It is quoted if it must be, or if the cell that it replaces was quoted.

    Example:
        >>> quote("a,b", ","), quote("a", ","), quote("a", ",", like='"c"')
        ('"a,b"', 'a', '"a"')
    """
    if like.startswith('"') or value == "" or any(c in value for c in (delimiter, '"', "\r", "\n")):
        return '"' + value.replace('"', '""') + '"'
    return value


def _quoted_part(raw: str) -> int:
    """Return the position after the quote that closes a cell."""
    position = 1
    while (position := raw.index('"', position) + 1) < len(raw) and raw[position] == '"':
        position += 1
    return position


def _records(text: str, position: int, delimiter: str, path: Path | str) -> Iterator[tuple[list[str], str]]:
    """Return the raw cells and the ending of each line."""
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
                # Cells before the next quote are split at once. Only the cell with the quote is parsed.
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
    """Return the delimiter that gives the header the most cells, and among equals one that gives all lines as many."""

    def cuts(delimiter: str) -> tuple[int, bool]:
        lengths: list[int] = []
        # With a wrong delimiter a quote can seem unclosed. A quote that really is unclosed is found again later.
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
        raise DataError(f"{path} contains zero bytes, so it is not a CSV file.")
    if not text.strip("\ufeff\r\n"):
        raise DataError(f"{path} is empty.")
    return text
