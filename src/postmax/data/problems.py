"""All problems of a file in one error, with the options that solve them."""

from __future__ import annotations

import csv
import io
import json
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self

from postmax.errors import DataError
from postmax.wording import advice, listed

_ORDER = ("label", "drop", "missing", "decimal", "encoding", "merge_labels", "unknown")
# Options that are on or off, so that nothing follows their name on the command line.
_FLAGS = ("merge_labels",)
# The options that every reader has. `unknown` is for rows that are predicted.
_USUAL = _ORDER[:-1]


class Problems:
    """What is wrong with a file. At the end of a `with` block all problems are raised as one error.

    Args:
        where: The file.
        dropped: The columns that the reader of the message drops already.
        label: What Python programs call the argument for the label column.
        options: The options that the reader has. Others are not advised.
        leave_out: Whether columns that cannot be features are left out, without an error. `left_out` has the reasons.

    Example:
        >>> with Problems("t.csv") as problems:
        ...     problems.add("column 'name' names the rows.", drop="name")
        ...     problems.add("line 3 has no age.", missing="median")
        Traceback (most recent call last):
        ...
        postmax.errors.DataError: t.csv: 2 problems
          column 'name' names the rows.
          line 3 has no age.
        Try: drop=["name"], missing="median"
    """

    def __init__(
        self,
        where: str | Path,
        dropped: Iterable[str] = (),
        *,
        label: str = "label",
        options: Collection[str] = _USUAL,
        leave_out: bool = False,
    ) -> None:
        self.where = str(where)
        self.label = label
        self.options = options
        self.found: list[str] = []
        self.remedies: list[dict[str, str]] = []
        self.dropped = list(dropped)
        self.left_out: dict[str, str] = {}
        self._leave_out = leave_out
        self._remedy: dict[str, list[str]] = {}

    def add(self, problem: str, **remedy: str) -> None:
        """Note a problem.

        Args:
            problem: A sentence that says what is wrong and where.
            remedy: Options that solve the problem: label, drop (one column), missing, decimal, encoding
                or unknown.
        """
        if self._leave_out and set(remedy) == {"drop"}:
            self.left_out[remedy["drop"]] = problem
            return
        self.found.append(problem)
        self.remedies.append({option: value for option, value in remedy.items() if option in self.options})
        for option, value in remedy.items():
            if option not in self.options:
                continue
            before = self._remedy.get(option, []) if option == "drop" else []
            self._remedy[option] = list(dict.fromkeys([*before, value]))

    def stop(self, problem: str, **remedy: str) -> NoReturn:
        """Note a problem after which the file cannot be read any further.

        Raises:
            DataError: With this problem and those that were noted before.
        """
        self.add(problem, **remedy)
        raise DataError(self._message())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.raise_found()

    def raise_found(self) -> None:
        """Raise all problems as one error, if there are any.

        Raises:
            DataError: With all of them.
        """
        if self.found:
            raise DataError(self._message())

    def _message(self) -> str:
        tried = f"\nTry: {in_words(self._remedy, self.dropped, label=self.label)}" if self._remedy else ""
        return f"{self.where}: {listed(self.found)}{tried}"


def in_words(options: Mapping[str, Sequence[str]], dropped: Iterable[str] = (), *, label: str = "label") -> str:
    """Return options of a reader as a program or a person at the command line writes them.

    Args:
        options: The values of each option: several columns for drop, one value for the others.
        dropped: Columns that are dropped already. A program must name them again, because an argument replaces the one
            that was given.
        label: What Python programs call the argument for the label column.

    Example:
        >>> in_words({"drop": ["name"], "label": ["kind"]}, dropped=["id"])
        'label="kind", drop=["id", "name"]'
        >>> from postmax.wording import command_line
        >>> with command_line():
        ...     print(in_words({"drop": ["name, first", "x"], "label": ["kind"]}, dropped=["id"]))
        --label kind --drop '"name, first",x'
    """
    order = [option for option in _ORDER if option in options]
    names = {"label": label}
    values: dict[str, Any] = {o: [*dropped, *options[o]] if o == "drop" else options[o][0] for o in order}
    return advice(
        python=", ".join(
            f"{names.get(o, o)}={True if o in _FLAGS else json.dumps(values[o], ensure_ascii=False)}" for o in order
        ),
        command=" ".join(f"--{o.replace('_', '-')}{_value(o, options[o])}" for o in order),
    )


def columns_from_text(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the names of columns in lines of CSV, as people write them after `--drop`, each name once.

    Example:
        >>> columns_from_text(["id, name", '"a, b",id', '""'])
        ('id', 'name', 'a, b', '')
    """
    rows = csv.reader(texts, skipinitialspace=True)
    return tuple(dict.fromkeys(name.strip() for row in rows for name in row))


def _value(option: str, values: Sequence[str]) -> str:
    return "" if option in _FLAGS else f" {shlex.quote(_typed(option, values))}"


def _typed(option: str, values: Sequence[str]) -> str:
    if option != "drop":
        return values[0]
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="").writerow(values)
    return buffer.getvalue()
