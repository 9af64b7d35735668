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

from postmax.data.problems import Problems
from postmax.data.text_encoding import decode
from postmax.files import existing_file
from postmax.row_names import RowNames

_DELIMITERS = (",", ";", "\t", "|")
_LINE_WITHOUT_QUOTES = re.compile(r'([^\r\n"]*)(\r\n|\r|\n|\Z)')
_UP_TO_QUOTE = re.compile(r'[^"\r\n]*')
_LINE_END = re.compile(r"\r\n|\r|\n|\Z")
_LINE_BREAK = re.compile(r"\r\n|\r|\n")


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
        lines: The line of the file in which each row begins, as an editor counts: the header is line 1.
        codec: The encoding of the file.
    """

    header: tuple[str, ...]
    rows: list[list[str]]
    endings: list[str]
    raw_header: str
    tail: str
    delimiter: str
    lines: list[int]
    codec: str

    def column(self, index: int) -> list[str]:
        """Return the values of a column, without quotes."""
        return [unquote(row[index]) for row in self.rows]

    def to_text(self) -> str:
        """Return the text of the file."""
        lines = [self.raw_header, *(self.delimiter.join(row) for row in self.rows)]
        return "".join(part for pair in zip(lines, self.endings, strict=True) for part in pair) + self.tail


class UnclosedQuote(Exception):  # noqa: N818  (it is caught here)
    """A quote that is never closed; the argument is its line."""


def read_csv_text(path: str | Path, *, encoding: str | None = None) -> CsvTable:
    """Read a CSV file whose first line names the columns.

    Args:
        path: The file.
        encoding: The encoding of the text. None for UTF-8, or for UTF-16 with a byte-order mark.

    Raises:
        DataError: If the file is not text in this encoding, a quote is never closed, or lines and the header differ in
            their number of cells.
    """
    with Problems(path) as problems:
        return parse_csv(existing_file(path).read_bytes(), encoding, problems)


def parse_csv(content: bytes, encoding: str | None, problems: Problems) -> CsvTable:
    """Return the bytes of a CSV file as a table. Lines with too many or too few cells are noted and left out."""
    text, codec = decode(content, encoding, problems)
    if not text.strip("\ufeff\r\n \t"):
        problems.stop("it is empty.")
    body = text.rstrip("\r\n")
    # The last line keeps its own ending. Blank lines after it are the tail.
    ending = _LINE_END.match(text, len(body))
    body = text[: ending.end() if ending else None]
    mark = "\ufeff" if body.startswith("\ufeff") else ""
    refuse_comment(body[len(mark) :], problems)
    delimiter = guess_delimiter(body[len(mark) :])
    try:
        (header, first_ending, _), *records = records_of(body, len(mark), delimiter)
    except UnclosedQuote as error:
        problems.stop(f"line {error} opens a quote that is never closed.")
    if header == [""] and records:
        problems.stop("line 1 is blank, but it must name the columns.")
    note_ragged(records, len(header), problems)
    whole = [record for record in records if len(record[0]) == len(header)]
    return CsvTable(
        header=tuple(unquote(cell).strip() for cell in header),
        rows=[cells for cells, _, _ in whole],
        endings=[first_ending, *(end for _, end, _ in whole)],
        raw_header=mark + delimiter.join(header),
        tail=text[len(body) :],
        delimiter=delimiter,
        lines=[line for _, _, line in whole],
        codec=codec,
    )


def note_ragged(records: list[tuple[list[str], str, int]], width: int, problems: Problems) -> None:
    """Note the rows that do not have as many cells as the header."""
    ragged: dict[int, list[int]] = {}
    for cells, _, line in records:
        if len(cells) != width:
            ragged.setdefault(0 if cells == [""] else len(cells), []).append(line)
    for count, lines in ragged.items():
        names = RowNames("line", lines).some(range(len(lines)))
        one = len(lines) == 1
        blank, other = f"{'is' if one else 'are'} blank", f"{'has' if one else 'have'} {count} cell{'s' * (count > 1)}"
        what = f"{other}, the header has {width}" if count else blank
        problems.add(f"{names} {what}{'' if one else f' ({len(lines)} such lines)'}.")


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


def records_of(text: str, position: int, delimiter: str) -> Iterator[tuple[list[str], str, int]]:
    """Return the raw cells of each row, its ending, and the line of the file in which it begins."""
    rest = rf"[^{re.escape(delimiter)}\r\n]*"
    cell = re.compile(rf'"[^"]*(?:""[^"]*)*+"{rest}|(?!"){rest}')
    line = 1
    while position < len(text):
        plain = _LINE_WITHOUT_QUOTES.match(text, position)
        if plain:
            yield plain[1].split(delimiter), plain[2], line
            position = plain.end()
            line += 1
        else:
            cells: list[str] = []
            start = position
            while True:
                # Cells before the next quote are split at once. Only the cell with the quote is parsed.
                run = _UP_TO_QUOTE.match(text, position)
                *whole, begun = run[0].split(delimiter) if run else [""]
                cells += whole
                found = cell.match(text, (run.end() if run else position) - len(begun))
                if found is None:
                    opening = run.end() if run else position
                    raise UnclosedQuote(line + len(_LINE_BREAK.findall(text, start, opening)))
                cells.append(found[0])
                position = found.end() + 1
                if not text.startswith(delimiter, found.end()):
                    break
            ending = _LINE_END.match(text, found.end())
            yield cells, ending[0] if ending else "", line
            position = ending.end() if ending else len(text)
            line += len(_LINE_BREAK.findall(text, start, position))


def refuse_comment(text: str, problems: Problems) -> None:
    """Note that the first line is a comment, which would be taken for the only column."""
    first, *others = _LINE_BREAK.split(text, maxsplit=2)
    separated = any(delimiter in first for delimiter in _DELIMITERS)
    if first.startswith(("#", "//", "%")) and not separated and any(d in "".join(others[:1]) for d in _DELIMITERS):
        problems.stop(f"line 1 looks like a comment ({first[:40]!r}), but it must name the columns. Delete the line.")


def guess_delimiter(text: str) -> str:
    """Return the delimiter that gives the header the most cells, and among equals one that gives all lines as many."""

    def cuts(delimiter: str) -> tuple[int, bool]:
        lengths: list[int] = []
        # With a wrong delimiter a quote can seem unclosed. A quote that really is unclosed is found again later.
        with suppress(UnclosedQuote):
            lengths += (len(cells) for cells, _, _ in islice(records_of(text, 0, delimiter), 5))
        return next(iter(lengths), 0), len(set(lengths)) == 1

    return max(_DELIMITERS, key=cuts)
