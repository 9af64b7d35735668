"""Measure what every method costs beside `standard`, and write docs/results/methods-cost.json and docs/methods.md.

python benchmarks/methods_cost.py             # measures the methods that are not in the file yet
python benchmarks/methods_cost.py elr sop     # measures these again
python benchmarks/methods_cost.py --all       # measures all of them, in a few minutes of one core
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import methods_page
import numpy as np
import torch

from postmax import methods
from postmax.data import Dataset
from postmax.estimation import TransitionEstimate
from postmax.files import atomic_write
from postmax.train import make_config
from postmax.train.build import build
from postmax.transition import Transition

RATE = 0.4
EPOCHS = 24
TRAINING: dict[str, Any] = {
    "noise": f"symmetric:{RATE}",
    "loss": "ce",
    "optimiser": {"lr": 0.05},
    "epochs": EPOCHS,
    "save_model": False,
    "accelerator": "cpu",
}
FEATURES: dict[str, Any] = {
    "data": {"name": "digits", "split": "random", "train_rows": 720},
    "model": {"name": "mlp", "hidden": [256, 256]},
    "batch_size": 128,
}
IMAGES: dict[str, Any] = {
    "data": {"augment": "crop-flip"},
    "model": {"name": "small", "width": 8},
    "batch_size": 128,
}
ROWS_OF_IMAGES, SIDE, CLASSES = 400, 16, 10
# Forward once, backward twice: how `postmax.train.work` counts a pass with a gradient.
_WITH_GRADIENT = 3


class Cost(NamedTuple):
    """What a training has taken.

    Attributes:
        passes: How many rows went through a network.
        operations: The arithmetic operations of these passes.
        seconds: The processor time.
        epochs: How many epochs there were.
    """

    passes: int
    operations: int
    seconds: float
    epochs: int


def pretended_estimate(train: Dataset) -> TransitionEstimate:
    """Return the noise without estimating it: it is estimated once for all runs, and is no part of a training."""
    transition = Transition.symmetric(train.num_classes, RATE)
    between = (RATE, RATE)
    return TransitionEstimate(
        transition=transition,
        prior=torch.full((train.num_classes,), 1 / train.num_classes, dtype=torch.float64),
        noise_rate=RATE,
        interval=(transition.matrix, transition.matrix),
        sampling_interval=between,
        noise_rate_interval=between,
        level=0.95,
        method="fpml",
        classes=tuple(train.classes),
        rows=len(train),
        unidentified={},
    )


def cost_of(method: str, content: dict[str, Any]) -> Cost:
    """Train with a method and its default options, and return what it took, without the evaluation on test rows."""
    config = make_config({**TRAINING, **content, "method": method})
    trainer = build(config, estimate=pretended_estimate).trainer
    passes, operations, epoch = 0, 0, 0
    start = time.process_time()
    for epoch in range(config.epochs):
        (record,) = trainer.epoch(epoch)
        passes, operations = passes + record["passes"], operations + record["operations"]
        if trainer.is_over:
            break
    return Cost(passes, operations, time.process_time() - start, epoch + 1)


def multiples(found: Cost, standard: Cost) -> dict[str, float]:
    """Return the cost of an epoch as multiples of that of `standard`."""
    longer = standard.epochs / found.epochs
    passes, operations = longer * found.passes / standard.passes, longer * found.operations / standard.operations
    # Passes with a gradient count as three in the operations, so both numbers together say how many they are.
    with_gradient = (_WITH_GRADIENT * operations - passes) / (_WITH_GRADIENT - 1)
    seconds = longer * found.seconds / standard.seconds
    shares = {"passes": passes, "with_gradient": with_gradient, "operations": operations, "seconds": seconds}
    return {name: float(f"{value:.3g}") for name, value in shares.items()}


def beside_standard(name: str, content: dict[str, Any]) -> dict[str, float]:
    """Return the cost of a method as multiples of that of `standard`, which is trained before and after it."""
    before = cost_of("standard", content)
    if name == "standard":  # a second training would only show how much the time varies
        return multiples(before, before)
    found, after = cost_of(name, content), cost_of("standard", content)
    return multiples(found, before._replace(seconds=fmean((before.seconds, after.seconds))))


def images(folder: Path) -> dict[str, Any]:
    """Write images whose brightness tells the class, and return the settings of a training on them."""
    generator, labels = np.random.default_rng(0), np.arange(ROWS_OF_IMAGES) % CLASSES
    pixels = generator.integers(0, 100, (ROWS_OF_IMAGES, SIDE, SIDE, 3)) + 15 * labels[:, None, None, None]
    path = folder / "images.npz"
    np.savez(path, x=pixels.astype(np.uint8), y=labels)
    return {**IMAGES, "data": {**IMAGES["data"], "path": str(path)}}


def measure(names: Sequence[str]) -> None:
    """Measure methods one after the other. The file is written after each."""
    with tempfile.TemporaryDirectory() as folder:
        cost_of("standard", FEATURES)  # the first run in a process takes longer
        for name in names:
            facts = methods.describe(name).facts
            content = images(Path(folder)) if facts is not None and facts.images_only else FEATURES
            known = {**methods_page.costs(), name: beside_standard(name, content)}
            with atomic_write(methods_page.COSTS) as file:
                lines = (f"{json.dumps(key)}: {json.dumps(known[key])}" for key in sorted(known))
                file.write(("{\n" + ",\n".join(lines) + "\n}\n").encode())
            print(name, known[name], flush=True)


def main() -> None:
    """Measure what was asked for, and write the page."""
    torch.set_num_threads(1)
    given = sys.argv[1:]
    known = methods_page.costs()
    missing = [name for name in methods.names() if name not in known]
    measure(methods.names() if given == ["--all"] else given or missing)
    methods_page.main()


if __name__ == "__main__":
    main()
