"""A table of the paper as data: what to run for each cell, at which scale, and what was reported."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from postmax.errors import InputError
from postmax.registry import unknown_name
from postmax.train.config import explain
from postmax.train.settings import read_yaml

_FOLDER = Path(__file__).resolve().parent.parent / "protocols"


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Part(_Section):
    """A panel, and what rows and columns have in common.

    Attributes:
        name: The heading.
        set: Dotted keys of the configuration, with the values they take here.
    """

    name: str = Field(min_length=1)
    set: dict[str, Any] = {}


class Row(Part):
    """A row.

    Attributes:
        optional: Run only when asked for by name, or with "all".
    """

    optional: bool = False


class Column(Row):
    """A column.

    Attributes:
        reading: Which way of reading the network's output is shown; see `postmax.train.result.SeedResult`.
        reference: Shown for orientation, such as training without noise; it never competes for the best.
    """

    reading: str = "model"
    reference: bool = False


class Scale(_Section):
    """One size at which the table can be run.

    Attributes:
        seeds: How many, counted from 0, or which.
        stack: How many seeds one run trains side by side.
        set: Dotted keys of the configuration, with the values they take at this scale.
        note: What a reader of the results should know about it.
        comparable: Whether the paper's figures are for the same network and data: if not, no difference is shown.
    """

    seeds: Annotated[int, Field(ge=1)] | tuple[int, ...]
    stack: int = Field(1, ge=1)
    set: dict[str, Any] = {}
    note: str = ""
    comparable: bool = True


class Protocol(_Section):
    """A table: the configuration of a cell is `run`, changed by its scale, panel, row and column, in this order.

    Attributes:
        name: What the file is called.
        title: What the table is called.
        about: What it shows, in a sentence or two.
        source: Where the figures come from.
        compare: Whether the best is sought along "rows" (within each column) or "columns" (within each row).
        run: The configuration that all cells share.
        scales: The sizes at which it can be run.
        panels: One or more; each has all rows and columns.
        rows: From top to bottom.
        columns: From left to right.
        figures: What the paper reports, in per cent, by panel, row and column.
    """

    name: str
    title: str
    about: str = ""
    source: str = ""
    compare: Literal["rows", "columns"] = "rows"
    run: dict[str, Any]
    scales: dict[str, Scale] = Field(min_length=1)
    panels: tuple[Part, ...] = Field(min_length=1)
    rows: tuple[Row, ...] = Field(min_length=1)
    columns: tuple[Column, ...] = Field(min_length=1)
    figures: dict[str, dict[str, dict[str, float]]] = {}

    @field_validator("panels", "rows", "columns")
    @classmethod
    def _named_once(cls, parts: tuple[Part, ...]) -> tuple[Part, ...]:
        names = [part.name.lower() for part in parts]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"{twice[0]!r} is there twice")
        return parts

    @model_validator(mode="after")
    def _figures_have_cells(self) -> Protocol:
        for panel, rows in self.figures.items():
            _exact("figures: panel", panel, self.panels)
            for row, columns in rows.items():
                _exact("figures: row", row, self.rows)
                for column in columns:
                    _exact("figures: column", column, self.columns)
        return self

    def scale(self, name: str) -> Scale:
        """The scale called `name`.

        Raises:
            InputError: If there is none; the nearest is named.
        """
        if name not in self.scales:
            raise unknown_name(f"scale of {self.name}", name, self.scales)
        return self.scales[name]

    def figure(self, panel: str, row: str, column: str) -> float | None:
        """What the paper reports for a cell, if it does."""
        return self.figures.get(panel, {}).get(row, {}).get(column)


def _exact(kind: str, name: str, parts: Sequence[Part]) -> None:
    known = [part.name for part in parts]
    if name not in known:
        raise ValueError(f"{kind} {name!r} is not among {', '.join(known)}")


def names() -> tuple[str, ...]:
    """The tables that come with postmax.

    Example:
        >>> "breast-cancer" in names()
        True
    """
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.yaml")))


def load(name: str | Path) -> Protocol:
    """A table that comes with postmax, by name, or one of your own, by the path of its YAML file.

    Raises:
        InputError: If the name or a key of the file is unknown (the nearest is named), or a value makes no sense.
        DataError: If the file is missing or no YAML.

    Example:
        >>> load("breast-cancer").compare
        'columns'
    """
    given = str(name)
    path = Path(given).expanduser()
    # A file called like a table must not shadow it, so a path is what looks like one.
    if len(path.parts) == 1 and path.suffix not in (".yaml", ".yml"):
        path = _FOLDER / f"{given.lower()}.yaml"
        if not path.is_file():
            raise unknown_name("table", given, names())
    return make(read_yaml(path), name=path.stem, where=str(path))


def make(content: dict[str, Any], *, name: str, where: str = "the protocol") -> Protocol:
    """A protocol from plain values.

    Raises:
        InputError: If a key is unknown (the nearest known one is named) or a value makes no sense.
    """
    try:
        return Protocol.model_validate({"name": name, **content})
    except ValidationError as error:
        raise InputError(f"{where}: {explain(error, Protocol)}") from None


def chosen(kind: str, parts: Sequence[Row], wanted: Iterable[str] | None) -> tuple[Row, ...]:
    """The rows or columns asked for, in the order of the table: by name, "all", or all that are not optional.

    Raises:
        InputError: If a name is unknown; the nearest is named.
    """
    if wanted is None:
        return tuple(part for part in parts if not part.optional)
    asked = {name.strip().lower() for name in wanted}
    known = [part.name.lower() for part in parts]
    for name in sorted(asked - {"all", *known}):
        raise unknown_name(kind, name, known)
    if not asked:
        raise InputError(f"no {kind} is asked for; name one or more of {', '.join(known)}, or all.")
    return tuple(part for part in parts if "all" in asked or part.name.lower() in asked)
