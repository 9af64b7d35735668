"""Find tables by name: those that come with postmax, and those that other packages register."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from postmax.errors import DataError, InputError, UnknownNameError
from postmax.registry import Registry, nearest, unknown_name
from postmax.tables.spec import TableSpec
from postmax.train.explanation import explain
from postmax.train.settings import read_yaml, set_key

_SHIPPED = Path(__file__).resolve().parent / "definitions"
_registered: Registry[Path] = Registry("table")


def register(path: str | Path) -> str:
    """Add a table, so that it is found by name like the tables of postmax.

    The file is read when the table is loaded. Settings that were tuned for the table are found in
    `tuned/<table>-<scale>.yaml` beside the file.

    Args:
        path: The YAML file of the table. The name of the table is the name of the file without its ending.

    Returns:
        The name of the table, in lower case.

    Raises:
        DataError: If there is no such file.
        InputError: If the ending is not .yaml, or another table has this name.
    """
    found = Path(path).expanduser().resolve()
    name = found.stem.lower()
    if found.suffix not in (".yaml", ".yml"):
        raise InputError(f"{path}: the file of a table ends in .yaml.")
    if not found.is_file():
        raise DataError(f"{path}: there is no such file, so the table {name!r} cannot be registered.")
    taken = _file_of(name)
    if taken is None:
        _registered.add(found, name)
    elif taken != found:
        raise InputError(f"the table name {name!r} is taken by {taken}; give {found} another file name.")
    return name


def names() -> tuple[str, ...]:
    """Return the names of all tables, in alphabetical order.

    Example:
        >>> "breast-cancer" in names()
        True
    """
    return tuple(sorted([*(path.stem for path in _SHIPPED.glob("*.yaml")), *_registered.names()]))


def summary(name: str) -> str:
    """Return one line that says what a table shows.

    Example:
        >>> summary("breast-cancer")
        'Breast cancer with binary label noise'
    """
    return load(name).title


def load(name: str | Path) -> TableSpec:
    """Return a table by its name, or a table of your own by the path of its YAML file.

    A text counts as a path if it ends in .yaml or has a folder in it. A file in the current folder can therefore not
    hide a table of the same name.

    Raises:
        InputError: If the name or a key of the file is unknown (the message suggests the nearest), or a value is not
            allowed.
        DataError: If the file is missing or is not YAML.

    Example:
        >>> load("breast-cancer").compare
        'columns'
    """
    path = _path_of(name)
    return make(read_yaml(path), name=path.stem, where=str(path))


def _path_of(name: str | Path) -> Path:
    """Return the file of a table that is given by its name or its path; see `load`."""
    given = str(name)
    path = Path(given).expanduser() if _is_path(given) else _file_of(given)
    if path is None:
        raise UnknownNameError(f"{unknown_name('table', given, names())}{_file_with_ending(given)}")
    if _is_path(given) and not path.exists():
        raise DataError(_no_such_file(path))
    return path


def _file_with_ending(name: str) -> str:
    """Return a hint if a table of the user was meant, and its ending was forgotten."""
    found = [f"{name}{ending}" for ending in (".yaml", ".yml") if Path(f"{name}{ending}").is_file()]
    return f" For your own table, give the whole name of the file: {found[0]}." if found else ""


def _no_such_file(path: Path) -> str:
    """Return that a file is missing, and what may have been meant."""
    if _file_of(path.stem) is not None:
        return f"{path}: there is no such file. The table that comes with postmax is called {path.stem.lower()}."
    beside = [other.name for other in sorted(path.parent.glob("*.y*ml"))]
    near = nearest(path.name, beside)
    hint = "" if near is None else f" Did you mean {str(path.with_name(near))!r}?"
    return f"{path}: there is no such file.{hint}"


def make(content: dict[str, Any], *, name: str, where: str = "the table") -> TableSpec:
    """Build a table from plain values.

    Args:
        content: The content of a YAML file.
        name: The name of the table.
        where: Where the content comes from; error messages begin with it.

    Raises:
        InputError: If keys are missing or unknown, values are not allowed, parts contradict each other, or a scale
            takes its run or its settings from a table that does not exist. The message lists all of them at once.
    """
    content = _with_lent_runs({"name": name, **content}, where)
    try:
        spec = TableSpec.model_validate(content)
    except ValidationError as error:
        hint = "Every key of a table is explained in docs/own-table.md."
        raise InputError(f"{where}: {explain(error, TableSpec, content)}\n{hint}") from None
    for scale, size in spec.scales.items():
        _check_lender(size.tuned_by, f"{where}: scales.{scale}.tuned_by")
    return spec


def _check_lender(name: str | None, where: str) -> None:
    if name is not None and not _is_path(name) and _file_of(name) is None:
        raise InputError(f"{where}: there is no table {name!r}, only {', '.join(names())}.")


def _with_lent_runs(content: dict[str, Any], where: str) -> dict[str, Any]:
    """Return the content of a table whose scales set what the `run` of another table says, and then their own `set`."""
    scales = content.get("scales")
    if not isinstance(scales, Mapping):
        return content
    return {
        **content,
        "scales": {name: _with_lent_run(size, f"{where}: scales.{name}") for name, size in scales.items()},
    }


def _with_lent_run(size: Any, where: str) -> Any:
    lender = size.get("run_of") if isinstance(size, Mapping) else None
    own = size.get("set", {}) if isinstance(size, Mapping) else None
    if not isinstance(lender, str) or not isinstance(own, Mapping):
        return size  # whatever else is wrong with it is found by the checks of a table
    _check_lender(lender, f"{where}.run_of")
    # Only the `run` of the other table counts, so it does not matter what that table takes from a third one.
    lent = read_yaml(_path_of(lender)).get("run")
    together: dict[str, Any] = {}
    for key, value in (*(lent.items() if isinstance(lent, Mapping) else ()), *own.items()):
        set_key(together, str(key), value)
    return {**size, "set": together}


def shipped_settings_file(spec: TableSpec, scale: str) -> Path | None:
    """Return the file of tuned settings that comes with a table for one of its scales, or None if there is none.

    A table of your own may have the name of another table. It is not that table, so it gets None.
    """
    definition = _file_of(spec.name)
    if definition is None or load(spec.name) != spec:
        return None
    path = definition.parent / "tuned" / f"{spec.name}-{scale}.yaml"
    return path if path.is_file() else None


def _file_of(name: str) -> Path | None:
    """Return the YAML file of a table by its name; None if there is no such table."""
    shipped = _SHIPPED / f"{name.lower()}.yaml"
    if shipped.is_file():
        return shipped
    return _registered.get(name) if name in _registered else None


def _is_path(name: str) -> bool:
    path = Path(name).expanduser()
    return len(path.parts) != 1 or path.suffix in (".yaml", ".yml")
