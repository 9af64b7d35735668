"""The state of a run in one file: tensors, a few plain values, and a checksum over all of it.

The file is written aside, reaches the disk, and takes its name; the one before is kept as `.previous`. Nothing in it is
ever executed.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor
from torch.optim import Optimizer

from postmax.errors import DataError
from postmax.files import atomic_write, second_name

NAME, PREVIOUS = "checkpoint.safetensors", "checkpoint.previous.safetensors"
_FORMAT = "postmax checkpoint 1"


_NO_HOPE = "Start again with --restart."


class DamagedRun(DataError):  # noqa: N818  (says what it is)
    """A file of a run is damaged: the run cannot go on from there, others can."""


@dataclass(frozen=True)
class Checkpoint:
    """What it takes to go on.

    Attributes:
        epoch: Epochs that are done.
        tensors: Named tensors, on any device.
        values: Plain values.
    """

    epoch: int
    tensors: dict[str, Tensor]
    values: dict[str, Any] = field(default_factory=dict)

    def part(self, name: str) -> dict[str, Tensor]:
        """The tensors under `name/`, without that."""
        prefix = f"{name}/"
        return {key.removeprefix(prefix): tensor for key, tensor in self.tensors.items() if key.startswith(prefix)}


def save(folder: Path, checkpoint: Checkpoint) -> None:
    """Write the checkpoint of a run; the one before stays as `.previous`.

    Raises:
        DataError: If it cannot be written; then the one before is untouched.
    """
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in checkpoint.tensors.items()}
    values = json.dumps({"epoch": checkpoint.epoch, **checkpoint.values}, sort_keys=True)
    metadata = {"format": _FORMAT, "values": values, "sha256": _digest(tensors, values)}
    with atomic_write(folder / NAME, previous=folder / PREVIOUS) as file:
        file.write(to_bytes(tensors, metadata))


def load(folder: Path) -> Checkpoint | None:
    """The checkpoint of a run, or None if it has none yet.

    Raises:
        DamagedRun: If it is damaged; the message says what is left.
    """
    path = folder / NAME
    if not path.exists():
        return None
    hope = "The one before it is kept: go on from there with --previous."
    return _checked(path, hope if (folder / PREVIOUS).exists() else _NO_HOPE)


def go_back(folder: Path) -> None:
    """Make the checkpoint before the last the last one; before that it is checked.

    Raises:
        DamagedRun: If there is none, or it is damaged too; then nothing has changed.
    """
    path = folder / PREVIOUS
    if not path.exists():
        raise DamagedRun(f"{folder} has no checkpoint before the last. {_NO_HOPE}")
    _checked(path, _NO_HOPE)
    second_name(path, folder / NAME)


def _checked(path: Path, hope: str) -> Checkpoint:
    try:
        return _read(path)
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise DamagedRun(f"{path} is damaged ({error}). {hope}") from error


def _read(path: Path) -> Checkpoint:
    # The header may name any size; safetensors checks it against the file before it reads.
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata() or {}
        if metadata.get("format") != _FORMAT:
            raise ValueError(f"it is no {_FORMAT!r}")
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (it is no dictionary)
    if _digest(tensors, metadata["values"]) != metadata["sha256"]:
        raise ValueError("its checksum is wrong")
    values = json.loads(metadata["values"])
    return Checkpoint(values.pop("epoch"), tensors, values)


def _digest(tensors: dict[str, Tensor], values: str) -> str:
    digest = hashlib.sha256(values.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def optimiser_state(optimiser: Optimizer) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The state of an optimiser as named tensors and plain values. Learning rates are not state here."""
    tensors, values = {}, {}
    for number, entries in optimiser.state_dict()["state"].items():
        for name, value in entries.items():
            if isinstance(value, Tensor):
                tensors[f"{number}/{name}"] = value
            else:
                values[f"{number}/{name}"] = value
    return tensors, values


def restore_optimiser(optimiser: Optimizer, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
    """Put the state back that `optimiser_state` took."""
    state: dict[int, dict[str, Any]] = {}
    for key, value in (*tensors.items(), *values.items()):
        number, _, name = key.partition("/")
        state.setdefault(int(number), {})[name] = value
    optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})
    for parameter, entries in optimiser.state.items():
        for name, value in entries.items():
            # A fused step goes through weights and state in the order of their memory, which must be the same.
            if isinstance(value, Tensor) and value.shape == parameter.shape:
                entries[name] = torch.empty_like(parameter, dtype=value.dtype).copy_(value)
