"""What a finished run leaves of its models: a model file for each seed, and what the method has learnt besides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from safetensors.torch import save as to_bytes
from torch import Tensor

from postmax import plugins
from postmax.data.row_form import RowForm
from postmax.errors import InputError
from postmax.methods.parts.answers import LABEL_NOISE, Composition, at_stage
from postmax.runs.folder import RunFolder
from postmax.runs.model_file import SavedModel
from postmax.runs.pixels import Pixels
from postmax.train.build import Built
from postmax.train.config import RunConfig
from postmax.train.prepare import SeedData


def save_weights(run: RunFolder, config: RunConfig, built: Built, weights: Sequence[dict[str, Tensor]]) -> None:
    """Write one model file for each seed, with the weights of the selected epoch."""
    for part, state in zip(built.data, weights, strict=True):
        model = _model(config, built, part, state)
        run.write(model.file_name, model.to_bytes())


def save_learnt(run: RunFolder, built: Built) -> None:
    """Write what the method of each seed has learnt besides its answer; nothing if that is nothing."""
    for lane, part in enumerate(built.data):
        learnt = {key: tensor.detach().cpu().contiguous() for key, tensor in built.trainer.learnt(lane).items()}
        if learnt:
            name = "learnt.safetensors" if len(built.data) == 1 else f"learnt-seed{part.seed}.safetensors"
            run.write(name, to_bytes(learnt))


def _model(config: RunConfig, built: Built, part: SeedData, state: dict[str, Tensor]) -> SavedModel:
    composition: Composition | None = None
    why_not = ""
    try:
        composition, state = at_stage(built.trainer.composition(), state)
    except InputError as error:
        why_not = f"{config.method.name}: {error}"
    rows, options = _rows(config, part), {"name": config.model.name, **config.model.options}
    about: dict[str, Any] = {
        "method": config.method.model_dump(),
        "networks": built.trainer.networks,
        "selection": config.selection,
        "run_id": config.run_id,
        "plugins": list(plugins.described()),
    }
    return SavedModel(
        classes=part.train.classes,
        rows=rows,
        scaling=part.scaling,
        pixels=_pixels(built, rows),
        network=options,
        answer=composition,
        weights={name: tensor for name, tensor in state.items() if "/" not in name},
        loss=config.loss.model_dump(),
        transition=None if part.transition is None else part.transition.matrix,
        label_noise=state.get(LABEL_NOISE),
        precision=config.precision,
        seed=part.seed,
        seeds=config.seeds,
        about=about,
        why_not=why_not,
    )


def _rows(config: RunConfig, part: SeedData) -> RowForm:
    """Return what the rows are, and how files of them are read."""
    own = config.data.path is not None
    return RowForm(
        shape=tuple(part.train.inputs[torch.tensor([0])].shape[1:]),
        table=part.train.table,
        missing=config.data.missing,
        decimal=config.data.decimal,
        encoding=config.data.encoding,
        size=config.data.size if own else None,
    )


def _pixels(built: Built, rows: RowForm) -> Pixels | None:
    """Return how images are cropped and normalised for the network; None for features."""
    weak = built.views.weak
    return None if weak is None else Pixels.of(weak, rows.shape[0])
