"""What a table is: the runs of each cell, the scales at which it can be run, and the values that the paper reports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from postmax.errors import InputError, UnknownNameError
from postmax.registry import unknown_name, unknown_names
from postmax.tables.consistency import at_scale, contradictions
from postmax.tables.parts import AnyLine, Column, Part, Row, Scale, Section
from postmax.wording import advice


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
        if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
            raise ValueError(f"{', '.join(map(repr, twice))} is there twice")
        return parts

    @model_validator(mode="after")
    def _fits_together(self) -> TableSpec:
        if found := contradictions(self):
            raise ValueError(*found)
        return self

    def scale(self, name: str) -> Scale:
        """Return the scale called `name`.

        Raises:
            InputError: If there is no such scale; the message suggests the nearest.
        """
        if name not in self.scales:
            first = next(iter(self.scales))
            how = advice(python=f'such as "{first}"', command=f"such as --scale {first}")
            unknown = unknown_name(f"scale of {self.name}", name, self.scales)
            raise UnknownNameError(f"{unknown} Choose one of them, {how}.")
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
        return _chosen("row", self.rows, wanted, at_scale(self.rows, self.scale(scale).rows), scale)

    def chosen_columns(self, scale: str, wanted: Iterable[str] | None = None) -> tuple[Column, ...]:
        """Return the columns that are run at a scale; see `chosen_rows`."""
        return _chosen("column", self.columns, wanted, at_scale(self.columns, self.scale(scale).columns), scale)

    def reported_value(self, panel: str, row: str, column: str) -> float | None:
        """Return the value that the paper reports for a cell, or None if it does not report one."""
        return self.reported.get(panel, {}).get(row, {}).get(column)


def _chosen(
    kind: str, parts: Sequence[AnyLine], wanted: Iterable[str] | None, available: Sequence[AnyLine], scale: str
) -> tuple[AnyLine, ...]:
    if wanted is None:
        return tuple(part for part in available if not part.optional)
    given = [name.strip() for name in wanted if name.strip()]
    chosen = {name.lower() for name in given}
    known = [part.name.lower() for part in parts]
    if wrong := [name for name in dict.fromkeys(given) if name.lower() not in ("all", *known)]:
        raise unknown_names(kind, wrong, (part.name for part in parts))
    if not given:
        raise InputError(f"no {kind} is named; name one or more of {', '.join(part.name for part in parts)}, or all.")
    for part in parts:
        if part.name.lower() in chosen and part not in available:
            names = ", ".join(line.name for line in available)
            raise InputError(f"there is no {kind} {part.name!r} at scale {scale}; there are {names}.")
    return tuple(part for part in available if "all" in chosen or part.name.lower() in chosen)
