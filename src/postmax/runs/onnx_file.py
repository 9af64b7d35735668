"""A trained model as an ONNX file: from unscaled rows to the posterior of the true class, for any number of rows."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from postmax.errors import InputError
from postmax.extras import need
from postmax.files import atomic_write
from postmax.runs.example_rows import example_rows
from postmax.runs.trained import Trained
from postmax.version import __version__

if TYPE_CHECKING:
    from postmax.runs.predictor import Predictor

INPUT, OUTPUT = "rows", "probabilities"
# Numbers of rows that are compared: one, and one that the exporter has not seen.
_COMPARED = (1, 300)
_SEEN = 7
_TOLERANCE = 1e-4


class _Mean(nn.Module):
    """The mean posterior of all seeds, on the CPU and in float32."""

    def __init__(self, models: list[Trained]) -> None:
        super().__init__()
        self.models = nn.ModuleList(models)

    @classmethod
    def of(cls, predictor: Predictor) -> _Mean:
        return cls([model.afresh() for model in predictor.models]).eval()

    def forward(self, rows: Tensor) -> Tensor:
        found = torch.stack([model(rows) for model in self.models])
        return found[0] if len(self.models) == 1 else found.mean(0)


def write_onnx(predictor: Predictor, path: Path) -> tuple[int, float]:
    """Write the file, and compare it with the model in onnxruntime first.

    Returns:
        The number of rows that were compared, and the largest difference of a probability.

    Raises:
        InputError: If the model cannot be exported, or if the file gives other probabilities.
        MissingDependency: If a package is not installed.
    """
    for package in ("onnx", "onnxscript", "onnxruntime"):
        need(package, "export")
    # The exporter gets a module of its own: what it computes has no values, and losses keep some of what they compute.
    first = predictor.models[0].afresh()
    content = _with_metadata(_exported(_Mean.of(predictor), example_rows(first, _SEEN)), predictor)
    module = _Mean.of(predictor)
    rows = (example_rows(first, count, missing=0.05) for count in _COMPARED)
    difference = max(_difference(content, module, some) for some in rows)
    if not difference <= _TOLERANCE:
        raise InputError(
            f"the ONNX file would give other probabilities than the model: they differ by up to {difference:.2g}. It "
            "was not written."
        )
    with atomic_write(path) as file:
        file.write(content)
    return sum(_COMPARED), difference


def _exported(module: nn.Module, rows: Tensor) -> bytes:
    try:
        with _quiet(), torch.no_grad():
            program = torch.onnx.export(
                module,
                (rows,),
                input_names=[INPUT],
                output_names=[OUTPUT],
                dynamic_shapes=({0: torch.export.Dim("count")},),
                dynamo=True,
                verbose=False,
            )
    except Exception as error:  # the exporter raises errors of many kinds
        reason = str(error).strip().partition("\n")[0]
        raise InputError(f"this model cannot be exported to ONNX: {reason}") from error
    if program is None:
        raise InputError("this model cannot be exported to ONNX: torch gave no program.")
    content: bytes = program.model_proto.SerializeToString()
    return content


def _with_metadata(content: bytes, predictor: Predictor) -> bytes:
    """Return the file with the names of classes and features in its metadata."""
    onnx: Any = need("onnx", "export")
    model = onnx.load_from_string(content)
    model.producer_name, model.producer_version = "postmax", __version__
    about = {"classes": predictor.classes_.tolist(), "features": predictor.features}
    for name, value in about.items():
        if value is not None:
            model.metadata_props.add(key=name, value=json.dumps(value, ensure_ascii=False))
    onnx.checker.check_model(model)
    found: bytes = model.SerializeToString()
    return found


def _difference(content: bytes, module: nn.Module, rows: Tensor) -> float:
    runtime: Any = need("onnxruntime", "export")
    session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
    (found,) = session.run([OUTPUT], {INPUT: rows.numpy()})
    with torch.no_grad():
        expected = module(rows).numpy()
    return float(np.abs(found - expected).max()) if found.shape == expected.shape else float("inf")


@contextmanager
def _quiet() -> Iterator[None]:
    """The exporter warns about packages that are not installed and not needed."""
    logger = logging.getLogger("torch.onnx")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)
