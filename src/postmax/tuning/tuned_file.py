"""The file of tuned settings: write it, and add rows to it while other processes may do the same."""

from __future__ import annotations

from pathlib import Path

import yaml

from postmax.errors import InputError
from postmax.files import atomic_write
from postmax.locks import hold
from postmax.tables.spec import TableSpec
from postmax.tables.tuned import SHARED_BY_ROWS, Tuned, read_tuned


def write_tuned(tuned: Tuned, path: Path) -> None:
    """Write the file. It is replaced as a whole, never in part.

    Raises:
        DataError: If it cannot be written.
    """
    head = (
        f"# Chosen by `postmax tune {tuned.table} --scale {tuned.scale}` on noisy validation labels, never on test.\n"
    )
    text = yaml.safe_dump(tuned.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=120)
    with atomic_write(path) as file:
        file.write((head + text).encode())


def merged(now: Tuned, before: Tuned) -> Tuned:
    """Return the rows of `now`, and those rows of `before` that `now` does not have.

    Raises:
        InputError: If the rows of `before` were chosen in another way: one file can say only once how that was done.
    """
    others = [name for name in before.rows if name not in now.rows]
    for key in ("table", "scale", *SHARED_BY_ROWS) if others else ():
        old, new = getattr(before, key), getattr(now, key)
        if old != new:
            raise InputError(
                f"the rows that the file has already ({', '.join(others)}) were tuned with another {key} ({old!r}, now "
                f"{new!r}): tune them too, or write to another folder."
            )
    return now.model_copy(update={"rows": {**before.only(others).rows, **now.rows}})


def rows_to_keep(path: Path, now: Tuned, spec: TableSpec) -> Tuned:
    """Return what a file says about rows that are not tuned now.

    Args:
        path: The file. It need not exist yet.
        now: What is tuned now, whether it is chosen already or not.
        spec: The table.

    Raises:
        DataError: If the file cannot be read.
        InputError: If the file holds something else, or its rows were chosen with other runs than the table has now.
    """
    nothing = now.only(())
    if not path.exists():
        return nothing
    before = read_tuned(path)
    kept = before.only(name for name in before.rows if name not in now.rows)
    if not kept.rows:
        return nothing
    merged(now, kept)  # its message says best what is different
    return kept.checked(spec, now.scale)


def add_to_file(tuned: Tuned, path: Path, spec: TableSpec) -> None:
    """Write what was chosen, and keep what the file says about other rows.

    The file is read again first, because other processes may have added rows to it in the meantime.

    Raises:
        DataError: If the file cannot be read or written.
        InputError: If the other rows were chosen with other runs than the table has now.
    """
    # The file itself is replaced when it is written, so another file carries the lock.
    with hold(path.with_name(f".{path.name}.lock"), wait=True):
        write_tuned(merged(tuned, rows_to_keep(path, tuned, spec)), path)
