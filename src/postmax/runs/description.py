"""Describe a trained model so that somebody can compute its predictions without postmax: JSON, and plain weights."""

from __future__ import annotations

from math import prod
from typing import Any

import torch
from torch import Tensor, nn

from postmax.losses import FPMLLoss, Loss
from postmax.runs.example_rows import example_rows
from postmax.runs.model_file import SavedModel
from postmax.runs.trained_model import TrainedModel

FORMAT = "postmax plain model 1"
TRANSITION = "transition"
_EXAMPLES, _LARGEST_EXAMPLE = 3, 4096
_FEATURES = (
    "A missing value is replaced by its fill. Then, in float64: (value - mean) * factor, and the result is float32."
)
_PIXELS = "Bytes are cut to the middle crop x crop pixels, if crop is given. Then (byte / 255 - mean) / std by channel."
_RATIOS = {
    "exp": "exp(output)",
    "softmax": "exp(output)",
    "sigmoid": "1 / (1 + exp(-output))",
    "softplus": "log(1 + exp(output))",
}
_CORRECTION = (
    "The normalised probabilities q are those of the label as given. Multiply the row q by the inverse of the matrix "
    f"{TRANSITION!r} in the weights (row: true class, column: label), and project the result onto the probability "
    "simplex: subtract the number for which the positive parts sum to 1."
)


def describe(saved: SavedModel) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the description of a model as plain values, and the tensors that belong to it."""
    model = TrainedModel(saved, "32-true")
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in saved.weights.items()}
    probabilities = _probabilities(model.loss, len(saved.classes))
    if "correction" in probabilities and saved.transition is not None:
        tensors[TRANSITION] = saved.transition
    table = saved.rows.table
    content: dict[str, Any] = {
        "format": FORMAT,
        "written_by": f"postmax {saved.version}",
        "classes": list(saved.classes),
        "input": {
            "shape": list(saved.rows.shape),
            "columns": None if table is None else table.to_dict()["columns"],
            "features": None if table is None else list(table.encoder.features),
        },
        "preparation": _preparation(saved),
        "network": {
            **saved.network,
            "answer": saved.answer,
            "layers": [{"name": name, "layer": str(layer)} for name, layer in _layers(model.answer)],
            "weights": {name: list(tensor.shape) for name, tensor in saved.weights.items()},
        },
        "probabilities": probabilities,
        "loss": dict(saved.loss),
    }
    if prod(saved.rows.shape) <= _LARGEST_EXAMPLE:
        content["example"] = _example(model)
    return content, tensors


def _preparation(saved: SavedModel) -> dict[str, Any]:
    if saved.scaling is not None:
        return {"rule": _FEATURES, **saved.scaling._asdict()}
    return {} if saved.pixels is None else {"rule": _PIXELS, **saved.pixels.to_dict()}


def _layers(answer: nn.Module) -> list[tuple[str, nn.Module]]:
    """Return the layers of a network with their names. In an MLP they are in the order in which they are applied."""
    return [(name, layer) for name, layer in answer.named_modules() if name and not list(layer.children())]


def _probabilities(loss: Loss, classes: int) -> dict[str, Any]:
    """Return how outputs become the posterior of the true class."""
    if isinstance(loss, FPMLLoss):
        ratio = _RATIOS.get(loss.objective.link.name)
        if ratio is None:
            return {"rule": f"By the link {loss.objective.link.name!r} of postmax; the ONNX file has it inside."}
        found = {"rule": f"d = {ratio} for each output, and the probability of a class is its d / sum of all d."}
        return found | ({"correction": _CORRECTION} if loss.corrects_posterior else {})
    outputs = 3 * torch.arange(2 * classes, dtype=torch.float64).sin().reshape(2, classes)
    if torch.allclose(loss.posterior(outputs), outputs.softmax(-1), rtol=1e-9, atol=1e-12):
        return {"rule": f"d = {_RATIOS['softmax']} for each output, and the probability is its d / sum of all d."}
    return {"rule": "By the loss of postmax; the ONNX file has it inside."}


def _example(model: TrainedModel) -> dict[str, Any]:
    """Return a few rows and their probabilities, with which a program of one's own can be checked."""
    rows = example_rows(model, _EXAMPLES)
    with torch.no_grad():
        return {"rows": rows.tolist(), "probabilities": model(rows).tolist()}
