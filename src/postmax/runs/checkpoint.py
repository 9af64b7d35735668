"""The checkpoint of a run: tensors, plain values and a checksum over all of them, in one safetensors file.

A new checkpoint is written to a temporary file, reaches the disk, and only then takes its name. The one before it is
kept as `checkpoint.previous.safetensors`. Reading a checkpoint never executes anything in it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor

from postmax.errors import DataError
from postmax.files import atomic_write, second_name
from postmax.runs import remedies
from postmax.train.state import State

NAME, PREVIOUS = "checkpoint.safetensors", "checkpoint.previous.safetensors"
_FORMAT, _OLD_FORMAT = "postmax checkpoint 2", "postmax checkpoint 1"


class DamagedRun(DataError):  # noqa: N818  (the name says what happened)
    """A file of one run is damaged, so that this run cannot continue. Other runs are not affected."""


@dataclass(frozen=True)
class Checkpoint:
    """Everything that a run needs to continue.

    Attributes:
        epoch: How many epochs are done.
        tensors: Named tensors, on any device.
        values: Plain values.
    """

    epoch: int
    tensors: Mapping[str, Tensor]
    values: Mapping[str, Any] = field(default_factory=dict)

    def part(self, name: str) -> dict[str, Tensor]:
        """Return the tensors whose names start with `name/`, without that prefix."""
        return State(self.tensors).part(name)


def save(folder: Path, checkpoint: Checkpoint) -> None:
    """Write the checkpoint of a run, and keep the one before it.

    Raises:
        DataError: If it cannot be written. The one before is untouched then.
    """
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in checkpoint.tensors.items()}
    values = json.dumps({"epoch": checkpoint.epoch, **checkpoint.values}, sort_keys=True)
    metadata = {"format": _FORMAT, "values": values, "sha256": digest(tensors, values)}
    with atomic_write(folder / NAME, previous=folder / PREVIOUS) as file:
        file.write(to_bytes(tensors, metadata))


def load(folder: Path) -> Checkpoint | None:
    """Return the checkpoint of a run, or None if it has none yet.

    Raises:
        DamagedRun: If it is damaged, or of an older version of postmax. The message says how to continue.
    """
    path = folder / NAME
    if not path.exists():
        return None
    return _checked(path, remedies.go_back(folder) if (folder / PREVIOUS).exists() else remedies.start_again(folder))


def go_back(folder: Path) -> None:
    """Check the checkpoint before the last one, and make it the last one.

    Raises:
        DamagedRun: If there is none, or it cannot be read either. Nothing has changed then.
    """
    path = folder / PREVIOUS
    if not path.exists():
        raise DamagedRun(f"{folder} has no checkpoint before the last one. {remedies.start_again(folder)}")
    _checked(path, remedies.start_again(folder))
    second_name(path, folder / NAME)


def _checked(path: Path, remedy: str) -> Checkpoint:
    """Return the checkpoint in a file. If the file is damaged, the error ends with the remedy."""
    try:
        return _read(path)
    except DamagedRun:
        raise
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise DamagedRun(f"{path} is damaged ({error}). {remedy}") from error


def _read(path: Path) -> Checkpoint:
    # The header may claim any size. safetensors compares it with the size of the file before it reads.
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata() or {}
        if metadata.get("format") == _OLD_FORMAT:
            # The checkpoint before it is as old, so going back to that one would not help.
            raise DamagedRun(
                f"{path} was written by an older version of postmax and cannot be continued. "
                f"{remedies.start_again(path.parent)}"
            )
        if metadata.get("format") != _FORMAT:
            raise ValueError(f"it is not a {_FORMAT!r}")
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (the file is not a dictionary)
    if digest(tensors, metadata["values"]) != metadata["sha256"]:
        raise ValueError("its checksum is wrong")
    values = json.loads(metadata["values"])
    return Checkpoint(values.pop("epoch"), tensors, values)


def digest(tensors: Mapping[str, Tensor], values: str) -> str:
    """Return the SHA-256 of plain values, as text, and of tensors on the CPU with their names, types and shapes."""
    found = hashlib.sha256(values.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        found.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()
