"""A table of the paper as data: what to run for each cell, at which scale, and what was reported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from postmax.errors import InputError
from postmax.registry import unknown_name
from postmax.tables.parts import AnyLine, Column, Part, Row, Scale, Section
from postmax.train.config import explain
from postmax.train.settings import read_yaml, set_key, with_overrides

_FOLDER = Path(__file__).resolve().parent / "definitions"


class Protocol(Section):
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
    figures: dict[str, dict[str, dict[str, float]]] = Field(default_factory=dict)

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

    @model_validator(mode="after")
    def _places_exist(self) -> Protocol:
        groups = {column.group for column in self.columns if column.group is not None}
        if both := sorted(groups & set(self.scales)):
            raise ValueError(f"{both[0]!r} is a scale and a group of columns; call them differently")
        kinds: tuple[tuple[str, Sequence[Part], set[str]], ...] = (
            ("panel", self.panels, set()),
            ("row", self.rows, groups),
            ("column", self.columns, set()),
        )
        for kind, parts, more in kinds:
            for part in parts:
                for place in part.at:
                    if place not in self.scales and place not in more:
                        known = ", ".join([*self.scales, *sorted(more)])
                        raise ValueError(f"{kind} {part.name!r}, at: {place!r} is not among {known}")
        for name, size in self.scales.items():
            for row in size.rows or ():
                _exact(f"scales.{name}: row", row, self.rows)
            for column in size.columns or ():
                _exact(f"scales.{name}: column", column, self.columns)
        return self

    @model_validator(mode="after")
    def _lenders_exist(self) -> Protocol:
        for name, size in self.scales.items():
            lender, where = size.tuned_by, f"scales.{name}.tuned_by"
            if lender is None:
                continue
            if lender.lower() == self.name.lower():
                raise ValueError(f"{where}: a table cannot borrow from itself; say how to tune it, or nothing")
            if not _is_path(lender) and lender.lower() not in names():
                raise ValueError(f"{where}: there is no table {lender!r}, only {', '.join(names())}")
        return self

    @model_validator(mode="after")
    def _tuning_is_fair(self) -> Protocol:
        for name, size in self.scales.items():
            if size.tuning is None:
                continue
            where, budget = f"scales.{name}.tuning", size.tuning.budget
            for column in size.tuning.columns:
                _exact(f"{where}: column", column, self._having(self.columns, size.columns))
            if common := sorted(set(size.tuning.seeds) & set(size.seed_numbers)):
                raise ValueError(f"{where}: seed {common[0]} is one of the table's own; tune with others")
            for row in self.rows:
                if len(row.settings) > budget:
                    raise ValueError(f"row {row.name!r} has {len(row.settings)} settings, more than {where}.budget")
            if not self._validation_share(size):
                raise ValueError(f"{where} chooses by validation rows; set data.validation_share, for example 0.1")
        return self

    def _validation_share(self, size: Scale) -> Any:
        content = with_overrides(self.run, ())
        for key, value in size.set.items():
            set_key(content, key, value)
        data = content.get("data")
        return data.get("validation_share") if isinstance(data, Mapping) else None

    def scale(self, name: str) -> Scale:
        """The scale called `name`.

        Raises:
            InputError: If there is none; the nearest is named.
        """
        if name not in self.scales:
            raise unknown_name(f"scale of {self.name}", name, self.scales)
        return self.scales[name]

    def chosen_rows(self, scale: str, wanted: Iterable[str] | None = None) -> tuple[Row, ...]:
        """The rows asked for at a scale, in the order of the table: by name, "all", or all that are not optional.

        Raises:
            InputError: If a name is unknown (the nearest is named), or there is no such row at this scale.
        """
        return chosen("row", self.rows, wanted, self._having(self.rows, self.scale(scale).rows), scale)

    def chosen_columns(self, scale: str, wanted: Iterable[str] | None = None) -> tuple[Column, ...]:
        """The columns asked for; see `chosen_rows`."""
        return chosen("column", self.columns, wanted, self._having(self.columns, self.scale(scale).columns), scale)

    @staticmethod
    def _having(parts: Sequence[AnyLine], names: Sequence[str] | None) -> tuple[AnyLine, ...]:
        return tuple(part for part in parts if names is None or part.name in names)

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


def tuned_file(table: str, scale: str) -> Path:
    """Where the settings that were chosen for a table at a scale are, if they come with postmax."""
    return _FOLDER / "tuned" / f"{table}-{scale}.yaml"


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
    if not _is_path(given):
        path = _FOLDER / f"{given.lower()}.yaml"
        if not path.is_file():
            raise unknown_name("table", given, names())
    return make(read_yaml(path), name=path.stem, where=str(path))


def _is_path(name: str) -> bool:
    """A file called like a table must not shadow it, so a path is what looks like one."""
    path = Path(name).expanduser()
    return len(path.parts) != 1 or path.suffix in (".yaml", ".yml")


def make(content: dict[str, Any], *, name: str, where: str = "the protocol") -> Protocol:
    """A protocol from plain values.

    Raises:
        InputError: If a key is unknown (the nearest known one is named) or a value makes no sense.
    """
    try:
        return Protocol.model_validate({"name": name, **content})
    except ValidationError as error:
        raise InputError(f"{where}: {explain(error, Protocol)}") from None


def chosen(
    kind: str, parts: Sequence[AnyLine], wanted: Iterable[str] | None, there: Sequence[AnyLine], scale: str
) -> tuple[AnyLine, ...]:
    """The rows or columns asked for, of those that are there at a scale; see `Protocol.chosen_rows`."""
    if wanted is None:
        return tuple(part for part in there if not part.optional)
    asked = {name.strip().lower() for name in wanted}
    known = [part.name.lower() for part in parts]
    for name in sorted(asked - {"all", *known}):
        raise unknown_name(kind, name, known)
    if not asked:
        raise InputError(f"no {kind} is asked for; name one or more of {', '.join(known)}, or all.")
    for part in parts:
        if part.name.lower() in asked and part not in there:
            names = ", ".join(line.name for line in there)
            raise InputError(f"there is no {kind} {part.name!r} at scale {scale}; there are {names}.")
    return tuple(part for part in there if "all" in asked or part.name.lower() in asked)
