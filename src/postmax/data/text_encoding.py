"""Turn the bytes of a text file into text, and say what to do if they are not text, or of another encoding."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from encodings.aliases import aliases
from itertools import chain
from typing import NoReturn

from postmax.data.problems import Problems
from postmax.errors import InputError
from postmax.registry import near_names
from postmax.wording import advice

# UTF-32 comes first, because its mark begins with that of UTF-16.
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_OTHER_FILES = {
    b"PK\x03\x04": "a zip archive or a spreadsheet such as .xlsx. Save the spreadsheet as CSV",
    b"\xd0\xcf\x11\xe0": "an old spreadsheet or document (.xls, .doc). Save it as CSV",
    b"PAR1": "a Parquet file. Give it a name that ends in .parquet",
    b"ARROW1": "an Arrow file. Give it a name that ends in .arrow",
    b"\x1f\x8b": "compressed with gzip. Unpack it first",
    b"BZh": "compressed with bzip2. Unpack it first",
    b"\xfd7zXZ": "compressed with xz. Unpack it first",
    b"\x93NUMPY": "a numpy array. Give it a name that ends in .npy",
    b"%PDF": "a PDF document. Give a CSV file",
    b"SQLite": "an SQLite database. Export the data as CSV",
    b"\x89PNG": "an image. Give a CSV file",
}
# Files of text that are no tables, by their first characters in lower case.
_OTHER_TEXTS = {
    b"<!doctype html": "a web page (HTML). Download the file itself",
    b"<html": "a web page (HTML). Download the file itself",
    b"<?xml": "XML. Save it as CSV",
    b"[{": "JSON. Save it as CSV",
    b'{"': "JSON. Save it as CSV",
}
_USUAL = ("utf-8", "utf-16", "cp1252", "latin-1", "mac-roman", "shift-jis", "gb18030")


def check_encoding(name: str | None) -> None:
    """Check that Python knows a text encoding.

    Raises:
        InputError: If it is unknown. The message names the nearest ones.

    Example:
        >>> check_encoding("cp1253x")
        Traceback (most recent call last):
        ...
        postmax.errors.InputError: encoding 'cp1253x' is unknown. Near names: cp1253, ...
    """
    if name is None or _is_known(name):
        return
    close = near_names(name.replace("-", "_"), {*aliases, *aliases.values()}, most=8)
    near = [alias for alias in close if _is_known(alias)][:4]
    names = f"Near names: {', '.join(near)}" if near else f"Usual names: {', '.join(_USUAL)}"
    raise InputError(f"encoding {name!r} is unknown. {names}.")


def decode(data: bytes, encoding: str | None, problems: Problems) -> tuple[str, str]:
    """Return the text of a file with its byte-order mark, and the codec that turns it back into the same bytes.

    Args:
        data: The content of the file.
        encoding: The name of the encoding. None for UTF-8, or for UTF-16 and UTF-32 with a byte-order mark.
        problems: Gets what is wrong.
    """
    codec = codec_of(data, encoding, problems)
    try:
        text = data.decode(codec)
    except UnicodeDecodeError as error:
        _stop_at(error, data, codec, encoding, problems)
    if "\0" in text:
        problems.stop(f"it contains zero characters, so it is not {encoding or codec} text.")
    return text, codec


def decoded(blocks: Iterable[bytes], codec: str, encoding: str | None, problems: Problems) -> Iterator[str]:
    """Yield the text of a file that is read in blocks of any size, and an empty text at the end of the file.

    Its byte-order mark is left out.

    Args:
        blocks: The content of the file.
        codec: What `codec_of` has found.
        encoding: The name of the encoding, if it was given.
        problems: Gets what is wrong.
    """
    decoder, line, mark = codecs.getincrementaldecoder(codec)(), 1, "\ufeff"
    for data in chain(blocks, (b"",)):
        try:
            text = decoder.decode(data, final=not data)
        except UnicodeDecodeError as error:
            _stop_at(error, error.object, codec, encoding, problems, line)
        if "\0" in text:
            line += text.count("\n", 0, text.index("\0"))
            problems.stop(f"line {line} contains zero bytes, so it is not a text file.")
        line += text.count("\n") + (text.count("\r") if "\n" not in text else 0)
        if text or not data:  # else only a part of a character was read
            yield text.removeprefix(mark)
            mark = ""


def codec_of(data: bytes, encoding: str | None, problems: Problems) -> str:
    """Return the codec of a file that begins with these bytes, if it is a text file."""
    check_encoding(encoding)
    codec = _codec(data, encoding)
    other = next((what for magic, what in _OTHER_FILES.items() if data.startswith(magic)), None)
    if other is not None:
        problems.stop(f"it is not a text file but {other}.")
    beginning = data[:100].removeprefix(codecs.BOM_UTF8).lstrip().lower()
    other = next((what for magic, what in _OTHER_TEXTS.items() if beginning.startswith(magic)), None)
    if other is not None:
        problems.stop(f"it is not a table but {other}.")
    if encoding is None and codec == "utf-8" and b"\0" in data:
        wide = _wide_codec(data)
        if wide is not None:
            problems.stop("it is not UTF-8 but looks like UTF-16 without a byte-order mark.", encoding=wide)
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        problems.stop(f"line {line} contains zero bytes, so it is not a text file.")
    return codec


def _codec(data: bytes, encoding: str | None) -> str:
    """Return a codec that keeps a byte-order mark as a character, so that it is written back."""
    marked = next((codec for mark, codec in _MARKS.items() if data.startswith(mark)), None)
    name = codecs.lookup(encoding or marked or "utf-8").name
    if name in ("utf-16", "utf-32"):
        return marked if marked is not None and marked.startswith(name) else f"{name}-le"
    return "utf-8" if name == "utf-8-sig" else name


def _stop_at(
    error: UnicodeDecodeError, data: bytes, codec: str, encoding: str | None, problems: Problems, first_line: int = 1
) -> NoReturn:
    before = data[: error.start].decode(codec, errors="replace")
    line = first_line + before.count("\n") + (before.count("\r") if "\n" not in before else 0)
    what = f"line {line} is not {(encoding or codec).upper()}: byte 0x{data[error.start]:02x}."
    fitting = next((name for name in ("utf-8", "cp1252", "latin-1") if name != codec and _fits(data, name)), None)
    if fitting is None:
        option = advice(python='encoding="…"', command="--encoding NAME")
        problems.stop(f"{what} If it is a text file, name its encoding: {option}.")
    problems.stop(what, encoding=fitting)


def _fits(data: bytes, codec: str) -> bool:
    try:
        text = data.decode(codec)
    except UnicodeDecodeError:
        return False
    # Control characters are a sign that the bytes are not text in this encoding.
    return not any((c < " " and c not in "\t\r\n\f") or "\x7f" <= c < "\xa0" for c in text)


def _wide_codec(data: bytes) -> str | None:
    """Return the codec of UTF-16 without a mark: every other byte of most letters is zero."""
    for codec, zeros in (("utf-16-le", data[1::2]), ("utf-16-be", data[::2])):
        if 2 * zeros.count(0) > len(zeros) and _fits(data, codec):
            return codec
    return None


def _is_known(name: str) -> bool:
    try:
        return "".encode(name) is not None
    except (LookupError, ValueError):  # unknown, not an encoding of text, or not a name
        return False
