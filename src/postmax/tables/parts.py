"""The parts of a table: panels, rows, columns, and the scales at which it can be run."""

from __future__ import annotations

from itertools import product
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field


class Section(BaseModel):
    """A section of a YAML file. Unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Part(Section):
    """A panel; also the base class of rows and columns.

    Attributes:
        name: The heading.
        set: Dotted keys of the configuration, with the values that they take in this part of the table.
        at: More keys and values, each group under the name of the scale that it is for. They are put in after `set`. A
            row may also use the name of a group of columns here, and `scale/column` for a single column at one scale;
            those values are put in after those of the scale, in this order.
    """

    name: str = Field(min_length=1)
    set: dict[str, Any] = {}
    at: dict[str, dict[str, Any]] = {}

    def changes(self, *places: str | None) -> tuple[tuple[str, Any], ...]:
        """Return the keys and values in the order in which they are put in: those of `set`, then those of each place.

        Args:
            places: Names of scales, of groups of columns, or of a column at a scale. None is ignored.
        """
        found = (self.set, *(self.at.get(place, {}) for place in places if place is not None))
        return tuple(pair for part in found for pair in part.items())


class Line(Part):
    """A row or a column.

    Attributes:
        optional: Whether it is run only if it is named, or with "all".
    """

    optional: bool = False


AnyLine = TypeVar("AnyLine", bound=Line)


class Row(Line):
    """A row of a table.

    Attributes:
        grid: Dotted keys of the configuration, with the values among which `postmax tune` chooses for this row.
    """

    grid: dict[str, Annotated[list[Any], Field(min_length=1)]] = {}

    @property
    def settings(self) -> tuple[dict[str, Any], ...]:
        """Every combination of the values of the grid. The last key changes fastest."""
        return tuple(dict(zip(self.grid, values, strict=True)) for values in product(*self.grid.values()))

    def changes_in(self, column: Column, scale: str) -> tuple[tuple[str, Any], ...]:
        """Return the keys and values of this row in a column at a scale, in the order in which they are put in."""
        return self.changes(scale, column.group, column.place(scale))


class Column(Line):
    """A column of a table.

    Attributes:
        reading: Which reading of the network's output the column shows; see `postmax.train.records.SeedResult`.
        reference: Whether the column is shown for orientation only, such as training without noise. A reference never
            competes for the best.
        group: A name that rows can use in `at` to set values for this column, such as the name of the data set.
    """

    reading: str = "model"
    reference: bool = False
    group: str | None = Field(None, min_length=1)

    def place(self, scale: str) -> str:
        """Return the name that rows use in `at` for this column at a scale.

        Example:
            >>> Column(name="80 %").place("paper")
            'paper/80 %'
        """
        return f"{scale}/{self.name}"


class Tuning(Section):
    """How the settings of rows with a grid are chosen: by noisy validation labels, before the table is run.

    Attributes:
        columns: The columns in which settings are tried.
        seeds: The seeds with which settings are tried. None of them may be a seed of the table.
        budget: The most settings that a row may try, so that all methods get the same number of attempts.
        set: Dotted keys of the configuration, with the values that they take while settings are tried, and only then,
            such as fewer epochs and a narrower network. They win over everything but the values of the grid.
    """

    columns: tuple[str, ...] = Field(min_length=1)
    seeds: tuple[int, ...] = Field(min_length=1)
    budget: int = Field(ge=1)
    set: dict[str, Any] = {}


class Scale(Section):
    """One size at which the table can be run.

    Attributes:
        seeds: How many seeds, counted from 0, or a list of seeds.
        stack: How many seeds one run trains side by side. Methods that cannot do this train one seed in each run.
        set: Dotted keys of the configuration, with the values that they take at this scale.
        note: What a reader of the results should know about this scale.
        comparable: Whether the reported values are for the same network and data. If not, no difference is shown.
        tuning: How the settings of rows with a grid are chosen; None if they are not chosen.
        run_of: Another table whose `run` is put in at this scale: after the table's own `run`, and before `set`. So
            what both say, they say in the same way.
        tuned_by: Another table whose tuned settings are used here. They are taken from its scale of the same name, for
            rows of the same name, so that what both tables have in common is run once.
        rows: The names of the rows that this scale has; None for all.
        columns: The names of the columns that this scale has; None for all.
    """

    seeds: Annotated[int, Field(ge=1)] | tuple[int, ...]
    stack: int = Field(1, ge=1)
    set: dict[str, Any] = {}
    note: str = ""
    comparable: bool = True
    tuning: Tuning | None = None
    run_of: str | None = None
    tuned_by: str | None = None
    rows: tuple[str, ...] | None = Field(None, min_length=1)
    columns: tuple[str, ...] | None = Field(None, min_length=1)

    @property
    def seed_numbers(self) -> tuple[int, ...]:
        """The seeds as a list of numbers."""
        return tuple(range(self.seeds)) if isinstance(self.seeds, int) else self.seeds
