"""The model files of a finished run: weights, and everything that is needed to use them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from safetensors.torch import save as to_bytes
from torch import Tensor

from postmax.runs.folder import RunFolder
from postmax.train.build import Built
from postmax.train.config import RunConfig

# A name that no weight of a network can have.
TRANSITION = "postmax/transition"


def save_weights(run: RunFolder, config: RunConfig, built: Built, weights: Sequence[dict[str, Tensor]]) -> None:
    """Write one safetensors file for each seed. Its header describes the network, its inputs and its outputs."""
    for part, state in zip(built.data, weights, strict=True):
        about = {
            "format": "postmax model 2",
            "model": config.model.model_dump(),
            "method": config.method.model_dump(),
            "networks": built.trainer.networks,
            "loss": config.loss.model_dump(),
            "classes": list(part.train.classes),
            "features": None if part.scaling is None else part.scaling._asdict(),
            "pixels": _pixels(built),
            "selection": config.selection,
            "run_id": config.run_id,
            "seed": part.seed,
        }
        name = _name("model", part.seed, len(weights))
        tensors = {key: tensor.detach().cpu().contiguous() for key, tensor in state.items()}
        if part.transition is not None:
            tensors[TRANSITION] = part.transition.matrix
        # The header has one entry. The order of several entries would differ from time to time.
        run.write(name, to_bytes(tensors, {"postmax": json.dumps(about)}))


def save_learnt(run: RunFolder, built: Built) -> None:
    """Write what the method of each seed has learnt besides its answer; nothing if that is nothing."""
    for lane, part in enumerate(built.data):
        learnt = {key: tensor.detach().cpu().contiguous() for key, tensor in built.trainer.learnt(lane).items()}
        if learnt:
            run.write(_name("learnt", part.seed, len(built.data)), to_bytes(learnt))


def _name(what: str, seed: int, seeds: int) -> str:
    return f"{what}.safetensors" if seeds == 1 else f"{what}-seed{seed}.safetensors"


def _pixels(built: Built) -> dict[str, object] | None:
    """Return how images are cropped and normalised for the network; None for features."""
    weak = built.views.weak
    if weak is None or weak.statistics is None:
        return None
    statistics = weak.statistics
    return {"crop": weak.crop, "mean": statistics.mean, "std": statistics.std}
