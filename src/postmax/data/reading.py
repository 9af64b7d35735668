"""How a file of your own is read: the options that every reader and every command has."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields
from pathlib import Path

from postmax.data.columns import is_csv
from postmax.data.number_text import Decimal
from postmax.data.table_encoder import Missing
from postmax.data.text_encoding import check_encoding
from postmax.data.typed_files import is_typed, kind_of
from postmax.errors import InputError
from postmax.wording import advice, listed

_PURPOSES = {
    "label": "names the column or the array of the labels",
    "drop": "names columns that are not features",
    "missing": "fills in numbers that a data table does not have",
    "decimal": "is for numbers that are written as text",
    "encoding": "is for text files such as CSV",
    "merge_labels": "is for the label column of a data table",
}


@dataclass(frozen=True)
class ReadingOptions:
    """How a file of your own is read.

    Attributes:
        label: The column of the labels; None for one with a usual name.
        drop: Columns that are not features.
        missing: What to do with missing numbers.
        decimal: The sign before the decimals of a number.
        encoding: The encoding of a text file; None for UTF-8, or for UTF-16 with a byte-order mark.
        merge_labels: Whether labels that differ only in upper and lower case or white space are one class, which gets
            the most frequent of their names.
    """

    label: str | None = None
    drop: tuple[str, ...] = ()
    missing: Missing = "error"
    decimal: Decimal = "."
    encoding: str | None = None
    merge_labels: bool = False

    def __post_init__(self) -> None:
        for name, allowed in (("missing", ("error", "median", "keep")), ("decimal", (".", ","))):
            value = getattr(self, name)
            if value not in allowed:
                # "keep" is for programs that handle missing numbers themselves.
                words = " or ".join(word for word in allowed if word != "keep")
                raise InputError(f"{_option(name)} is {words}, not {value!r}.")
        check_encoding(self.encoding)

    @property
    def given(self) -> list[str]:
        """The names of the options that differ from their defaults."""
        return [field.name for field in fields(self) if getattr(self, field.name) != field.default]

    def for_file(self, path: str | Path) -> ReadingOptions:
        """Return the options that have a meaning for this file, for a second file that may be of another kind.

        Example:
            >>> ReadingOptions("kind", decimal=",", encoding="cp1252").for_file("test.parquet")
            ReadingOptions(label='kind', drop=(), missing='error', decimal=',', encoding=None, merge_labels=False)
        """
        _, allowed = _kind(Path(path))
        return ReadingOptions(**{name: value for name, value in vars(self).items() if name in allowed})


def refuse_idle(where: str | Path, what: str, reading: ReadingOptions, allowed: Collection[str] = ()) -> None:
    """Refuse options that have no meaning for some data.

    Args:
        where: The data.
        what: What the data are, such as "an .npz file".
        reading: The options.
        allowed: The options that have a meaning.

    Raises:
        InputError: If another option was given.

    Example:
        >>> refuse_idle("x.npz", "an .npz file", ReadingOptions(decimal=","), allowed=["label"])
        Traceback (most recent call last):
        ...
        postmax.errors.InputError: x.npz: decimal is for numbers that are written as text, but this is an .npz file.
    """
    idle = [option for option in reading.given if option not in allowed]
    if idle:
        problems = [f"{_option(option)} {_PURPOSES[option]}, but this is {what}." for option in idle]
        raise InputError(f"{where}: {listed(problems)}")


def refuse_idle_for_file(path: str | Path, reading: ReadingOptions) -> None:
    """Refuse options that have no meaning for a file or folder of this kind.

    Raises:
        InputError: If such an option was given.
    """
    what, allowed = _kind(Path(path))
    refuse_idle(path, what, reading, allowed)


def _kind(path: Path) -> tuple[str, Collection[str]]:
    """Return what a file or folder is, and the options that have a meaning for it."""
    if is_csv(path) and not path.is_dir():
        return "a text file", tuple(_PURPOSES)
    if is_typed(path):
        return kind_of(path), ("label", "drop", "missing", "decimal", "merge_labels")
    if path.is_dir():
        return "a folder of images", ()
    if path.suffix.lower() == ".npy":
        return "an array of labels", ()
    return "an .npz file" if path.suffix.lower() == ".npz" else "a file of images", ("label",)


def _option(name: str) -> str:
    return advice(python=name, command=f"--{name.replace('_', '-')}")
