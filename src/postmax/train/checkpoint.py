"""The state of a run in one file: tensors, a few plain values, and a checksum over all of it.

The file is written aside, reaches the disk, and takes its name; the one before is kept as `.previous`. Nothing in it is
ever executed.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor
from torch.optim import Optimizer

from postmax.errors import DataError
from postmax.files import atomic_write

NAME, PREVIOUS = "checkpoint.safetensors", "checkpoint.previous.safetensors"
_FORMAT = "postmax checkpoint 1"


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
    current = folder / NAME
    content = to_bytes(tensors, metadata)
    with atomic_write(current) as file:
        file.write(content)
        file.flush()
        if current.exists():
            _keep(current, folder / PREVIOUS)


def load(folder: Path, *, previous: bool = False) -> Checkpoint | None:
    """The checkpoint of a run, or None if it has none yet.

    Args:
        folder: The folder of the run.
        previous: The one before the last.

    Raises:
        DataError: If it is damaged; the message says what is left.
    """
    path = folder / (PREVIOUS if previous else NAME)
    if not path.exists():
        return None
    try:
        return _read(path)
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        older = folder / PREVIOUS
        hope = "There is no older one; start again with --restart."
        if not previous and older.exists():
            hope = "The one before it is kept: go on from there with --previous."
        raise DataError(f"{path} is damaged ({error}). {hope}") from error


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


def _keep(current: Path, previous: Path) -> None:
    """A second name for the current file, put in place of the older one in a single step."""
    aside = previous.with_name(f".{previous.name}.{os.getpid()}")
    aside.unlink(missing_ok=True)
    try:
        os.link(current, aside)
    except OSError:  # a file system without second names
        shutil.copyfile(current, aside)
    aside.replace(previous)
    aside.unlink(missing_ok=True)  # where both were names of one file already, renaming did nothing


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
