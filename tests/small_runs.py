"""Runs of a second or less, and what is compared between two of them."""

import json
import struct
import tempfile
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file

from postmax.estimation import TransitionEstimate
from postmax.runs import execute
from postmax.runs.checkpoint import NAME, PREVIOUS, load
from postmax.train import make_config, with_overrides

BASE = {
    "data": {"name": "breast-cancer", "split": "random"},
    "noise": "symmetric:0.2",
    "model": {"hidden": [4]},
    "optimiser": {"lr": 0.05},
    "epochs": 4,
    "batch_size": 64,
}


DETAILS = ("data.json", "confusions.json", "transition*.json")


class Stopped(Exception):
    """What stops a run in a test."""


def small_config(*overrides):
    return make_config(with_overrides(BASE, overrides))


def own_config(path, *overrides):
    """The small run, on data of one's own."""
    content = {**BASE, "noise": "none", "data": {"path": str(path)}}
    return make_config(with_overrides(content, overrides))


def stop_after(config, folder, epochs):
    """Run with a checkpoint after every epoch, and stop after some; that epoch's own is not written any more."""

    def progress(state):
        if state.epoch == epochs:
            raise Stopped

    try:
        execute(config, folder, progress=progress, checkpoint_seconds=0)
    except Stopped:
        return
    raise AssertionError("the run was over before it was stopped")


def load_previous(folder):
    """The checkpoint before the last, as it would be read if one went back to it; None if there is none."""
    if not (Path(folder) / PREVIOUS).exists():
        return None
    with tempfile.TemporaryDirectory() as aside:
        (Path(aside) / NAME).write_bytes((Path(folder) / PREVIOUS).read_bytes())
        return load(Path(aside))


def timeless(content):
    """Everything but how long it took, which is never the same twice."""
    if isinstance(content, dict):
        return {key: timeless(value) for key, value in content.items() if key != "seconds"}
    return [timeless(entry) for entry in content] if isinstance(content, list) else content


def outcome(folder):
    """What a finished run has left, in a form that can be compared: result, metrics, details, weights."""
    folder = Path(folder)
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return {
        "result": timeless(json.loads((folder / "result.json").read_text())),
        "metrics": [timeless(json.loads(line)) for line in lines],
        "details": {path.name: path.read_bytes() for name in DETAILS for path in sorted(folder.glob(name))},
        "weights": {
            path.name: {
                name: (str(t.dtype), tuple(t.shape), t.numpy().tobytes()) for name, t in load_file(path).items()
            }
            for path in sorted(folder.glob("model*.safetensors"))
        },
    }


def estimate_of(transition, classes, rows=100, rate=0.2, reach=0.05):
    """An estimate with this matrix, and intervals of that reach on either side."""
    k, matrix = len(classes), transition.matrix
    return TransitionEstimate(
        transition=transition,
        prior=torch.full((k,), 1 / k, dtype=torch.float64),
        noise_rate=rate,
        interval=((matrix - reach).clamp(0, 1), (matrix + reach).clamp(0, 1)),
        sampling_interval=(rate - reach, rate + reach),
        noise_rate_interval=(rate - reach, rate + reach),
        level=0.95,
        method="fpml",
        classes=tuple(classes),
        rows=rows,
        unidentified={},
    )


def write_idx(path, array):
    array = np.asarray(array, np.uint8)
    path.write_bytes(bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes())


def image_archive(path, rows=40, side=8, channels=3):
    """An .npz of images whose brightness tells the class."""
    generator = np.random.default_rng(0)
    labels = np.arange(rows) % 3
    images = generator.integers(0, 120, (rows, side, side, channels)) + 60 * labels[:, None, None, None]
    np.savez(path, x=images.astype(np.uint8), y=labels)
    return path


def feature_archive(path, rows=60, features=5, classes=3, seed=0):
    """An .npz of features, class after class in turn, that can be told apart."""
    generator = np.random.default_rng(seed)
    labels = np.arange(rows) % classes
    np.savez(path, x=generator.normal(size=(rows, features)) + 2 * labels[:, None], y=labels)
    return path
