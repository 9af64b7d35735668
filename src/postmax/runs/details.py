"""The files beside result.json that say more about a run: its data, its confusions, and the noise it estimated.

Runs of older versions of postmax do not have them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from postmax.errors import DataError
from postmax.estimation import TransitionEstimate
from postmax.runs.checkpoint import DamagedRun
from postmax.runs.folder import RunFolder
from postmax.runs.remedies import start_again
from postmax.train.build import Built
from postmax.train.describe import FORMAT as DATA_FORMAT
from postmax.train.describe import describe_data
from postmax.train.records import DataRecord, SeedConfusions

T = TypeVar("T")
_DATA, _CONFUSIONS = "data.json", "confusions.json"
_CONFUSIONS_FORMAT = "postmax confusions 1"


def write_details(run: RunFolder, built: Built, confusions: Sequence[SeedConfusions]) -> None:
    """Write data.json, confusions.json and, for each seed that estimated its noise, a transition file."""
    _write(run, _DATA, describe_data(built.data))
    _write(run, _CONFUSIONS, {"format": _CONFUSIONS_FORMAT, "seeds": confusions})
    for part in built.data:
        if part.estimate is not None:
            _write(run, _transition_name(part.seed, len(built.data)), part.estimate.to_dict())


@dataclass(frozen=True)
class Details:
    """What the files say. What a run did not record is None or empty.

    Attributes:
        data: What the rows of the run are.
        confusions: The confusions of each seed.
        estimates: The estimate of the noise of each seed.
        damage: Which file is damaged and what to do, under the name of the attribute that is empty because of it.
    """

    data: DataRecord | None
    confusions: list[SeedConfusions]
    estimates: list[TransitionEstimate]
    damage: Mapping[str, str]


def read_details(run: RunFolder, seeds: Sequence[int]) -> Details:
    """Read all files. A damaged one does not hide the others: what it held is left out, and `damage` says why."""
    damage: dict[str, str] = {}

    def unless_damaged(name: str, read: Callable[[], T], otherwise: T) -> T:
        try:
            return read()
        except DamagedRun as error:
            damage[name] = str(error)
            return otherwise

    return Details(
        data=unless_damaged("data", lambda: read_data(run), None),
        confusions=unless_damaged("confusions", lambda: read_confusions(run), []),
        estimates=unless_damaged("estimates", lambda: read_estimates(run, seeds), []),
        damage=damage,
    )


def read_data(run: RunFolder) -> DataRecord | None:
    """Return what the rows of a run are; None if the run did not record it.

    Raises:
        DamagedRun: If the file is damaged or cannot be read.
    """
    return cast("DataRecord | None", _read(run, _DATA, DATA_FORMAT, ("shape", "table", "seeds")))


def read_confusions(run: RunFolder) -> list[SeedConfusions]:
    """Return the confusions of each seed; an empty list if the run did not record them.

    Raises:
        DamagedRun: If the file is damaged or cannot be read.
    """
    found = _read(run, _CONFUSIONS, _CONFUSIONS_FORMAT, ("seeds",))
    return [] if found is None else cast("list[SeedConfusions]", found["seeds"])


def read_estimates(run: RunFolder, seeds: Sequence[int]) -> list[TransitionEstimate]:
    """Return the estimate of the noise of each seed; an empty list if the run did not estimate it.

    Raises:
        DamagedRun: If a file is damaged or cannot be read.
    """
    paths = [run.path / _transition_name(seed, len(seeds)) for seed in seeds]
    try:
        return [TransitionEstimate.load(path) for path in paths if path.exists()]
    except (DataError, OSError) as error:
        raise DamagedRun(f"{error} {start_again(run.path)}") from error


def _transition_name(seed: int, seeds: int) -> str:
    return "transition.json" if seeds == 1 else f"transition-seed{seed}.json"


def _write(run: RunFolder, name: str, content: Any) -> None:
    # One line: with a line for each number, as in result.json, the files would be several times as large.
    run.write(name, json.dumps(content, allow_nan=False).encode() + b"\n")


def _read(run: RunFolder, name: str, form: str, keys: Sequence[str]) -> dict[str, Any] | None:
    path = run.path / name
    try:
        content: dict[str, Any] = json.loads(path.read_bytes())
        found, lacking = content["format"], [key for key in keys if key not in content]
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DamagedRun(f"{path} cannot be read ({error.strerror}). {start_again(run.path)}") from error
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise DamagedRun(f"{path} is damaged ({_reason(error)}). {start_again(run.path)}") from error
    if found != form:
        raise DamagedRun(f"{path} is not a {form!r}. {start_again(run.path)}")
    if lacking:
        raise DamagedRun(f"{path} is damaged (it has no {lacking[0]!r}). {start_again(run.path)}")
    return content


def _reason(error: Exception) -> str:
    return f"it has no {error}" if isinstance(error, KeyError) else str(error)
