"""Read a CSV file in blocks of rows, so that it may be larger than the memory, in the dialect of `csv_text`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from postmax.data.csv_text import UnclosedQuote, guess_delimiter, note_ragged, records_of, refuse_comment, unquote
from postmax.data.problems import Problems
from postmax.data.text_encoding import codec_of, decoded
from postmax.files import existing_file
from postmax.row_names import RowNames

# The encoding and the separator are found in the first part of a file.
_HEAD, _BYTES_AT_ONCE = 1 << 16, 1 << 20
# A quote that is not closed within so many characters is a mistake, and not a cell.
_LONGEST_ROW = 64 << 20

_Record = tuple[list[str], str, int]


@dataclass(frozen=True)
class CsvBlock:
    """Some rows of a CSV file, one after the other.

    Attributes:
        header: The names of the columns.
        rows: The raw cells of each row.
        lines: The line of the file in which each row begins.
    """

    header: tuple[str, ...]
    rows: Sequence[Sequence[str]]
    lines: Sequence[int]

    @property
    def names(self) -> RowNames:
        """How messages call the rows."""
        return RowNames("line", self.lines)

    def column(self, place: int) -> list[str]:
        """Return the values of a column, without quotes."""
        return [unquote(row[place]) for row in self.rows]


def csv_blocks(path: Path, encoding: str | None, rows_at_once: int, problems: Problems) -> Iterator[CsvBlock]:
    """Yield all rows of a file, and one empty block if there are none. Only a few blocks are in memory at a time.

    Args:
        path: The file.
        encoding: The encoding of the text. None for UTF-8, or for UTF-16 with a byte-order mark.
        rows_at_once: How many rows a block has; the last one may have fewer.
        problems: Gets what is wrong. Lines with too many or too few cells are noted and left out.
    """
    header: tuple[str, ...] | None = None
    waiting: list[_Record] = []
    for record in _without_blank_end(_records(path, encoding, problems)):
        if header is None:
            if record[0] == [""]:
                problems.stop("line 1 is blank, but it must name the columns.")
            header = tuple(unquote(cell).strip() for cell in record[0])
            continue
        waiting.append(record)
        if len(waiting) == rows_at_once:
            yield _block(header, waiting, problems)
            waiting = []
    if header is None:
        problems.stop("it is empty.")
    if waiting or record[2] == 1:  # a header alone
        yield _block(header, waiting, problems)


def _block(header: tuple[str, ...], records: list[_Record], problems: Problems) -> CsvBlock:
    note_ragged(records, len(header), problems)
    whole = [(cells, line) for cells, _, line in records if len(cells) == len(header)]
    return CsvBlock(header, [cells for cells, _ in whole], [line for _, line in whole])


def _without_blank_end(records: Iterator[_Record]) -> Iterator[_Record]:
    """Leave out the blank lines at the end of a file."""
    blank: list[_Record] = []
    for record in records:
        if record[0] == [""]:
            blank.append(record)
            continue
        yield from blank
        blank = []
        yield record


def _records(path: Path, encoding: str | None, problems: Problems) -> Iterator[_Record]:
    """Yield the raw cells of each row, its ending, and its line. A row is given when the next one has begun."""
    text, line, least = "", 1, 0
    with existing_file(path).open("rb") as file:
        head = file.read(_HEAD)
        file.seek(0)
        codec = codec_of(head, encoding, problems)
        beginning = _whole_lines(head, codec)
        refuse_comment(beginning, problems)
        delimiter = guess_delimiter(beginning)
        for more in decoded(iter(lambda: file.read(_BYTES_AT_ONCE), b""), codec, encoding, problems):
            text += more
            if more and len(text) < least:
                continue
            found: list[_Record] = []
            try:
                for record in records_of(text, 0, delimiter):
                    found.append(record)  # noqa: PERF402  (if a quote is not closed, the rows before it count)
            except UnclosedQuote as error:
                if not more or len(text) > _LONGEST_ROW:
                    problems.stop(f"line {line - 1 + int(str(error))} opens a quote that is never closed.")
            else:
                # The last row may go on in the next block, and so may its line break.
                found = found[:-1] if more else found
            # A row that fills several blocks is looked at again when there is twice as much of it.
            least = 0 if found else 2 * len(text)
            used = sum(len(delimiter.join(cells)) + len(ending) for cells, ending, _ in found)
            yield from ((cells, ending, line - 1 + place) for cells, ending, place in found)
            line += _line_breaks(text[:used])
            text = text[used:]


def _whole_lines(head: bytes, codec: str) -> str:
    """Return the text with which a file begins, without a line that goes on behind it."""
    text = head.decode(codec, errors="ignore").removeprefix("\ufeff")
    return text if len(head) < _HEAD else text[: max(text.rfind("\n"), text.rfind("\r")) + 1] or text


def _line_breaks(text: str) -> int:
    return text.count("\n") + text.count("\r") - text.count("\r\n")
