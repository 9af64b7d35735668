"""What a table is made of: panels, rows, columns, and the sizes at which it can be run."""

from __future__ import annotations

from itertools import product
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field


class Section(BaseModel):
    """A part of a YAML file: unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Part(Section):
    """A panel, and what rows and columns have in common.

    Attributes:
        name: The heading.
        set: Dotted keys of the configuration, with the values they take here.
        at: More of them, by the name of the only scale they are for; put in after `set`. A row may also name a group of
            columns, whose values come last.
    """

    name: str = Field(min_length=1)
    set: dict[str, Any] = {}
    at: dict[str, dict[str, Any]] = {}

    def changes(self, *places: str | None) -> tuple[tuple[str, Any], ...]:
        """Keys and values in the order in which they are put in: those of `set`, then those of each place."""
        found = (self.set, *(self.at.get(place, {}) for place in places if place is not None))
        return tuple(pair for part in found for pair in part.items())


class Line(Part):
    """What rows and columns have in common.

    Attributes:
        optional: Run only when asked for by name, or with "all".
    """

    optional: bool = False


AnyLine = TypeVar("AnyLine", bound=Line)


class Row(Line):
    """A row.

    Attributes:
        grid: Dotted keys of the configuration, with the values among which `postmax tune` chooses for this row.
    """

    grid: dict[str, Annotated[list[Any], Field(min_length=1)]] = {}

    @property
    def settings(self) -> tuple[dict[str, Any], ...]:
        """Every combination of the values of the grid, the last key changing first."""
        return tuple(dict(zip(self.grid, values, strict=True)) for values in product(*self.grid.values()))


class Column(Line):
    """A column.

    Attributes:
        reading: Which way of reading the network's output is shown; see `postmax.train.records.SeedResult`.
        reference: Shown for orientation, such as training without noise; it never competes for the best.
        group: What a row may name to have values of its own for this column, such as the data set.
    """

    reading: str = "model"
    reference: bool = False
    group: str | None = Field(None, min_length=1)


class Tuning(Section):
    """How rows with a grid get their settings: by noisy validation labels, before the table is run.

    Attributes:
        columns: Those that are tried.
        seeds: Those they are tried with, none of which is in the table.
        budget: The most settings any row may try, so that no method gets more attempts than another.
    """

    columns: tuple[str, ...] = Field(min_length=1)
    seeds: tuple[int, ...] = Field(min_length=1)
    budget: int = Field(ge=1)


class Scale(Section):
    """One size at which the table can be run.

    Attributes:
        seeds: How many, counted from 0, or which.
        stack: How many seeds one run trains side by side.
        set: Dotted keys of the configuration, with the values they take at this scale.
        note: What a reader of the results should know about it.
        comparable: Whether the paper's figures are for the same network and data: if not, no difference is shown.
        tuning: How the settings of rows with a grid are chosen; None if they are not.
        tuned_by: Another table whose chosen settings count here, at the scale of the same name, for rows of the same
            name: what both have in common is then run once.
        rows: Which of the table's rows there are at this scale; None for all.
        columns: The same of columns.
    """

    seeds: Annotated[int, Field(ge=1)] | tuple[int, ...]
    stack: int = Field(1, ge=1)
    set: dict[str, Any] = {}
    note: str = ""
    comparable: bool = True
    tuning: Tuning | None = None
    tuned_by: str | None = None
    rows: tuple[str, ...] | None = Field(None, min_length=1)
    columns: tuple[str, ...] | None = Field(None, min_length=1)

    @property
    def seed_numbers(self) -> tuple[int, ...]:
        """All seeds."""
        return tuple(range(self.seeds)) if isinstance(self.seeds, int) else self.seeds
