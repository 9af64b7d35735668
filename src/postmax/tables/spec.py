"""What a table is: the runs of each cell, the scales at which it can be run, and the values that the paper reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from postmax.errors import InputError
from postmax.registry import unknown_name
from postmax.tables.parts import AnyLine, Column, Part, Row, Scale, Section
from postmax.train.settings import set_key, with_overrides


class TableSpec(Section):
    """The definition of a table, as its YAML file says it.

    The configuration of a cell is `run`, changed by its scale, its panel, its row and its column, in this order.

    Attributes:
        name: The name of the file, without its ending.
        title: The heading of the table.
        about: What the table shows, in a sentence or two.
        source: Where the reported values come from.
        compare: Which cells compete for the best: the "rows" of each column, or the "columns" of each row.
        run: The configuration that all cells share.
        scales: The sizes at which the table can be run, by name.
        panels: One or more panels. Each of them has all rows and columns.
        rows: The rows, from top to bottom.
        columns: The columns, from left to right.
        reported: The values that the paper reports, in per cent, by panel, row and column.
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
    reported: dict[str, dict[str, dict[str, float]]] = Field(default_factory=dict)

    @field_validator("panels", "rows", "columns")
    @classmethod
    def _named_once(cls, parts: tuple[Part, ...]) -> tuple[Part, ...]:
        names = [part.name.lower() for part in parts]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"{twice[0]!r} is there twice")
        return parts

    @model_validator(mode="after")
    def _reported_values_have_cells(self) -> TableSpec:
        for panel, rows in self.reported.items():
            _check_name("reported: panel", panel, self.panels)
            for row, columns in rows.items():
                _check_name("reported: row", row, self.rows)
                for column in columns:
                    _check_name("reported: column", column, self.columns)
        return self

    @model_validator(mode="after")
    def _places_exist(self) -> TableSpec:
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
                _check_name(f"scales.{name}: row", row, self.rows)
            for column in size.columns or ():
                _check_name(f"scales.{name}: column", column, self.columns)
        return self

    @model_validator(mode="after")
    def _no_table_borrows_from_itself(self) -> TableSpec:
        for name, size in self.scales.items():
            if size.tuned_by is not None and size.tuned_by.lower() == self.name.lower():
                raise ValueError(
                    f"scales.{name}.tuned_by: a table cannot borrow from itself; give a tuning section, or leave it out"
                )
        return self

    @model_validator(mode="after")
    def _tuning_is_fair(self) -> TableSpec:
        for name, size in self.scales.items():
            if size.tuning is None:
                continue
            where, budget = f"scales.{name}.tuning", size.tuning.budget
            for column in size.tuning.columns:
                _check_name(f"{where}: column", column, _at_scale(self.columns, size.columns))
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
        """Return the scale called `name`.

        Raises:
            InputError: If there is no such scale; the message suggests the nearest.
        """
        if name not in self.scales:
            raise unknown_name(f"scale of {self.name}", name, self.scales)
        return self.scales[name]

    def chosen_rows(self, scale: str, wanted: Iterable[str] | None = None) -> tuple[Row, ...]:
        """Return the rows that are run at a scale, in the order of the table.

        Args:
            scale: The name of a scale.
            wanted: Names of rows, in upper or lower case; "all" for every row. Without it, all rows that are not
                optional.

        Raises:
            InputError: If a name is unknown (the message suggests the nearest), or the scale does not have the row.
        """
        return _chosen("row", self.rows, wanted, _at_scale(self.rows, self.scale(scale).rows), scale)

    def chosen_columns(self, scale: str, wanted: Iterable[str] | None = None) -> tuple[Column, ...]:
        """Return the columns that are run at a scale; see `chosen_rows`."""
        return _chosen("column", self.columns, wanted, _at_scale(self.columns, self.scale(scale).columns), scale)

    def reported_value(self, panel: str, row: str, column: str) -> float | None:
        """Return the value that the paper reports for a cell, or None if it does not report one."""
        return self.reported.get(panel, {}).get(row, {}).get(column)


def _check_name(kind: str, name: str, parts: Sequence[Part]) -> None:
    known = [part.name for part in parts]
    if name not in known:
        raise ValueError(f"{kind} {name!r} is not among {', '.join(known)}")


def _at_scale(parts: Sequence[AnyLine], names: Sequence[str] | None) -> tuple[AnyLine, ...]:
    """Return the rows or columns that a scale has; a scale that names none has all of them."""
    return tuple(part for part in parts if names is None or part.name in names)


def _chosen(
    kind: str, parts: Sequence[AnyLine], wanted: Iterable[str] | None, available: Sequence[AnyLine], scale: str
) -> tuple[AnyLine, ...]:
    if wanted is None:
        return tuple(part for part in available if not part.optional)
    given = {name.strip().lower() for name in wanted}
    known = [part.name.lower() for part in parts]
    for name in sorted(given - {"all", *known}):
        raise unknown_name(kind, name, known)
    if not given:
        raise InputError(f"no {kind} is named; name one or more of {', '.join(known)}, or all.")
    for part in parts:
        if part.name.lower() in given and part not in available:
            names = ", ".join(line.name for line in available)
            raise InputError(f"there is no {kind} {part.name!r} at scale {scale}; there are {names}.")
    return tuple(part for part in available if "all" in given or part.name.lower() in given)
