"""The files beside result.json that say more about a run: its data, its confusions, and the noise it estimated.

Runs of older versions of postmax do not have them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

from postmax.estimation import TransitionEstimate
from postmax.runs.checkpoint import DamagedRun
from postmax.runs.folder import RunFolder
from postmax.train.build import Built
from postmax.train.describe import FORMAT as DATA_FORMAT
from postmax.train.describe import describe_data
from postmax.train.records import DataRecord, SeedConfusions

_DATA, _CONFUSIONS = "data.json", "confusions.json"
_CONFUSIONS_FORMAT = "postmax confusions 1"


def write_details(run: RunFolder, built: Built, confusions: Sequence[SeedConfusions]) -> None:
    """Write data.json, confusions.json and, for each seed that estimated its noise, a transition file."""
    _write(run, _DATA, describe_data(built.data))
    _write(run, _CONFUSIONS, {"format": _CONFUSIONS_FORMAT, "seeds": confusions})
    for part in built.data:
        if part.estimate is not None:
            _write(run, _transition_name(part.seed, len(built.data)), part.estimate.to_dict())


def read_data(run: RunFolder) -> DataRecord | None:
    """Return what the rows of a run are; None if the run did not record it.

    Raises:
        DamagedRun: If the file is damaged.
    """
    return cast("DataRecord | None", _read(run, _DATA, DATA_FORMAT))


def read_confusions(run: RunFolder) -> list[SeedConfusions]:
    """Return the confusions of each seed; an empty list if the run did not record them.

    Raises:
        DamagedRun: If the file is damaged.
    """
    found = _read(run, _CONFUSIONS, _CONFUSIONS_FORMAT)
    return [] if found is None else cast("list[SeedConfusions]", found["seeds"])


def read_estimates(run: RunFolder, seeds: Sequence[int]) -> list[TransitionEstimate]:
    """Return the estimate of the noise of each seed; an empty list if the run did not estimate it.

    Raises:
        DataError: If a file is damaged.
    """
    paths = [run.path / _transition_name(seed, len(seeds)) for seed in seeds]
    return [TransitionEstimate.load(path) for path in paths if path.exists()]


def _transition_name(seed: int, seeds: int) -> str:
    return "transition.json" if seeds == 1 else f"transition-seed{seed}.json"


def _write(run: RunFolder, name: str, content: Any) -> None:
    # One line: with a line for each number, as in result.json, the files would be several times as large.
    run.write(name, json.dumps(content, allow_nan=False).encode() + b"\n")


def _read(run: RunFolder, name: str, form: str) -> dict[str, Any] | None:
    path = run.path / name
    if not path.exists():
        return None
    try:
        content: dict[str, Any] = json.loads(path.read_bytes())
        found = content["format"]
    except (ValueError, TypeError, KeyError) as error:
        raise DamagedRun(f"{path} is damaged ({error}). Delete {run.path} to run it again.") from error
    if found != form:
        raise DamagedRun(f"{path} is not a {form!r}. Delete {run.path} to run it again.")
    return content
