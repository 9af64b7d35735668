"""`postmax export`: its options and help text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from postmax.cli.options import JsonFlag, Model, ModelSeed
from postmax.cli.stopping import starting


def export(
    model: Model,
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", help="The file to write: .onnx, or .safetensors with a .json beside it.", show_default=False
        ),
    ],
    seed: ModelSeed = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files that exist.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Write a trained model for programs without postmax.

    \b
    postmax export postmax-results/runs/0123456789abcdef -o model.onnx
    postmax export postmax-results/runs/0123456789abcdef -o model.safetensors

    An .onnx file takes features, or images as bytes, for any number of rows, and gives the probability of each true
    class: scaling, network and noise correction are inside. It is compared with the model before it is written.
    """  # noqa: D301  (\b keeps the lines of the examples)
    with starting():
        from postmax.cli import export as work

    work.export(model, out, seed=seed, force=force, as_json=as_json)
