"""Whether the parts of a table fit together. Each check yields every problem that it finds, as a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from postmax.tables.parts import AnyLine, Part, Row, Scale, Tuning
from postmax.train.settings import set_key, single_keys, with_overrides

if TYPE_CHECKING:
    from postmax.tables.spec import TableSpec


def contradictions(spec: TableSpec) -> list[str]:
    """Return everything in which the parts of a table contradict each other."""
    checks = (_reported_values_have_cells, _groups_are_not_scales, _places_exist, _scales_have_lines, _borrows, _tuning)
    return [problem for check in checks for problem in check(spec)]


def at_scale(parts: Sequence[AnyLine], names: Sequence[str] | None) -> tuple[AnyLine, ...]:
    """Return the rows or columns that a scale has; a scale that names none has all of them."""
    return tuple(part for part in parts if names is None or part.name in names)


def _missing(kind: str, names: Sequence[str] | Mapping[str, Any], parts: Sequence[Part]) -> Iterator[str]:
    known = [part.name for part in parts]
    for name in names:
        if name not in known:
            yield f"{kind} {name!r} is not among {', '.join(known)}"


def _reported_values_have_cells(spec: TableSpec) -> Iterator[str]:
    yield from _missing("reported: panel", spec.reported, spec.panels)
    for rows in spec.reported.values():
        yield from _missing("reported: row", rows, spec.rows)
        for columns in rows.values():
            yield from _missing("reported: column", columns, spec.columns)


def _groups(spec: TableSpec) -> set[str]:
    return {column.group for column in spec.columns if column.group is not None}


def _groups_are_not_scales(spec: TableSpec) -> Iterator[str]:
    for name in sorted(_groups(spec) & set(spec.scales)):
        yield f"{name!r} is a scale and a group of columns; call them differently"


def _places_exist(spec: TableSpec) -> Iterator[str]:
    kinds: tuple[tuple[str, Sequence[Part], list[str]], ...] = (
        ("panel", spec.panels, []),
        ("row", spec.rows, sorted(_groups(spec))),
        ("column", spec.columns, []),
    )
    single = _single_columns(spec)
    for kind, parts, groups in kinds:
        known = [*spec.scales, *groups]
        for part in parts:
            for place in part.at:
                if place in known or (kind == "row" and place in single):
                    continue
                hint = f", nor a column at a scale, such as {single[0]!r}" if kind == "row" and "/" in place else ""
                yield f"{kind} {part.name!r}, at: {place!r} is not among {', '.join(known)}{hint}"


def _single_columns(spec: TableSpec) -> list[str]:
    """Return the names by which rows can set values for one column at one scale."""
    return [
        column.place(scale) for scale, size in spec.scales.items() for column in at_scale(spec.columns, size.columns)
    ]


def _scales_have_lines(spec: TableSpec) -> Iterator[str]:
    for name, size in spec.scales.items():
        yield from _missing(f"scales.{name}: row", size.rows or (), spec.rows)
        yield from _missing(f"scales.{name}: column", size.columns or (), spec.columns)


def _borrows(spec: TableSpec) -> Iterator[str]:
    for name, size in spec.scales.items():
        if size.tuned_by is not None and size.tuned_by.lower() == spec.name.lower():
            yield f"scales.{name}.tuned_by: a table cannot borrow from itself; give a tuning section, or leave it out"


def _tuning(spec: TableSpec) -> Iterator[str]:
    for name, size in spec.scales.items():
        if size.tuning is None:
            continue
        where, budget = f"scales.{name}.tuning", size.tuning.budget
        yield from _missing(f"{where}: column", size.tuning.columns, at_scale(spec.columns, size.columns))
        if common := sorted(set(size.tuning.seeds) & set(size.seed_numbers)):
            yield f"{where}: seed {common[0]} is one of the table's own; tune with others"
        for row in spec.rows:
            if len(row.settings) > budget:
                yield f"row {row.name!r} has {len(row.settings)} settings, more than {where}.budget"
            for key in _taken_from_grid(size.tuning, row):
                yield f"{where}.set: {key} is chosen for row {row.name!r} by its grid; leave it out of one of them"
        if "seeds" in size.tuning.set:
            yield f"{where}.set: seeds are not a setting here; give {where}.seeds"
        if not _validation_share(spec, size):
            yield f"{where} chooses by validation rows; set data.validation_share, for example 0.1"


def _taken_from_grid(tuning: Tuning, row: Row) -> Iterator[str]:
    """Yield the keys that the trials would set although the row's grid chooses them."""
    tried = set(single_keys((key, value) for key, values in row.grid.items() for value in values))
    for key in single_keys(tuning.set.items()):
        if any(key == other or other.startswith(f"{key}.") or key.startswith(f"{other}.") for other in tried):
            yield key


def _validation_share(spec: TableSpec, size: Scale) -> Any:
    content = with_overrides(spec.run, ())
    for part in (size.set, size.tuning.set if size.tuning is not None else {}):
        for key, value in part.items():
            set_key(content, key, value)
    data = content.get("data")
    return data.get("validation_share") if isinstance(data, Mapping) else None
