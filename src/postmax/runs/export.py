"""Write a trained model for programs without postmax: ONNX, or plain weights with a description."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors.torch import save as to_bytes

from postmax.errors import InputError
from postmax.files import atomic_write
from postmax.runs.description import describe
from postmax.runs.trained_model import TrainedModel

if TYPE_CHECKING:
    from postmax.runs.predictor import Predictor


@dataclass(frozen=True)
class Exported:
    """What was written.

    Attributes:
        files: The files.
        rows: How many rows the file was compared with the model on; 0 if it holds weights alone.
        difference: The largest difference of a probability.
    """

    files: Sequence[str]
    rows: int = 0
    difference: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return asdict(self)

    def lines(self) -> list[str]:
        """Return what a person should know, line by line."""
        checked = f"compared with the model on {self.rows} rows: probabilities differ by at most {self.difference:.1e}"
        return [*([checked] if self.rows else []), *(f"written: {file}" for file in self.files)]


def files_of(path: Path) -> list[Path]:
    """Return the files that an export writes.

    Raises:
        InputError: If the name does not say which form is wanted.

    Example:
        >>> [file.name for file in files_of(Path("model.safetensors"))]
        ['model.safetensors', 'model.json']
    """
    suffix = path.suffix.lower()
    if suffix == ".onnx":
        return [path]
    if suffix == ".safetensors":
        return [path, path.with_suffix(".json")]
    raise InputError(f"{path}: a model is exported to an .onnx file, or to a .safetensors file with a .json beside it.")


def export(predictor: Predictor, path: Path) -> Exported:
    """Write a model; see `Predictor.export`."""
    files = files_of(path)
    if len(files) == 1:
        from postmax.runs.onnx_file import write_onnx  # noqa: PLC0415  (it needs the extra "export")

        rows, difference = write_onnx(predictor, path)
        return Exported([str(path)], rows, difference)
    weights, about = files
    if len(predictor.models) > 1:
        seeds = ", ".join(map(str, predictor.seeds))
        raise InputError(f"a .safetensors file holds one model, and there are several seeds ({seeds}). Choose one.")
    model = predictor.models[0]
    if not isinstance(model, TrainedModel):
        raise InputError(
            "several kinds of networks have no description that a person would follow. Export to an .onnx file: it has "
            "all of them inside."
        )
    content, tensors = describe(model.saved)
    with atomic_write(weights) as file:
        file.write(to_bytes(tensors))
    with atomic_write(about) as file:
        file.write(json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False).encode() + b"\n")
    return Exported([str(weights), str(about)])
