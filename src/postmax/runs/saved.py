"""Weights that outlive their run, with what it takes to use them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from safetensors.torch import save as to_bytes
from torch import Tensor

from postmax.runs.folder import RunFolder
from postmax.train.build import Built
from postmax.train.config import RunConfig

# No network has a weight of this name.
TRANSITION = "postmax/transition"


def save_weights(run: RunFolder, config: RunConfig, built: Built, weights: Sequence[dict[str, Tensor]]) -> None:
    """One safetensors file for each seed; its header says what network it is for and what goes in and comes out."""
    for part, state in zip(built.data, weights, strict=True):
        about = {
            "format": "postmax model 1",
            "model": config.model.model_dump(),
            "loss": config.loss.model_dump(),
            "classes": list(part.train.classes),
            "features": None if part.scaling is None else part.scaling._asdict(),
            "pixels": _pixels(built),
            "selection": config.selection,
            "run_id": config.run_id,
            "seed": part.seed,
        }
        name = "model.safetensors" if len(weights) == 1 else f"model-seed{part.seed}.safetensors"
        tensors = {key: tensor.detach().cpu().contiguous() for key, tensor in state.items()}
        if part.transition is not None:
            tensors[TRANSITION] = part.transition.matrix
        # One entry: of several, the order in the file would be another each time.
        run.write(name, to_bytes(tensors, {"postmax": json.dumps(about)}))


def _pixels(built: Built) -> dict[str, object] | None:
    """How images are brought to what the network gets."""
    if built.augment is None or built.augment.statistics is None:
        return None
    statistics = built.augment.statistics
    return {"crop": built.augment.crop, "mean": statistics.mean, "std": statistics.std}
