"""How long the training loop takes: its epochs against bare forward, backward and step on the same batches, in turn.

python benchmarks/training.py            # the breast-cancer MLP and the 8-layer CNN, about 3 minutes
python benchmarks/training.py mlp        # one of them
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch

from postmax import losses, models
from postmax.data import Batches, Dataset
from postmax.train import RunConfig, make_config, prepare
from postmax.train.build import build
from postmax.train.optimisers import make_optimiser
from postmax.train.side_by_side import SideBySideTrainer
from postmax.train.trainer import OneSeedTrainer

BREAST_CANCER = {
    "data": {"name": "breast-cancer", "split": "random"},
    "noise": "binary:0.1,0.3",
    "model": {"hidden": [8]},
    "batch_size": 32,
    "accelerator": "cpu",
}
CNN8 = {
    "data": {"name": "random images"},
    "noise": "symmetric:0.4",
    "model": "cnn8",
    "batch_size": 128,
    "accelerator": "cpu",
}
IMAGES = 512


def bare_epoch(config: RunConfig, train: Dataset, batches: Batches) -> Callable[[int], None]:
    """An epoch as one would write it by hand: no metrics, no checks, no schedule."""
    rows = next(iter(batches.epoch(0))).inputs
    network = models.get(
        config.model.name, num_classes=train.num_classes, input_shape=rows.shape[1:], **config.model.options
    )
    if models.describe(config.model.name).channels_last:
        network = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    loss = losses.get(config.loss.name, **config.loss.options)
    optimiser = make_optimiser(config.optimiser, network.parameters())

    def epoch(number: int) -> None:
        for batch in batches.epoch(number):
            optimiser.zero_grad()
            loss(network(batch.inputs), batch.labels).backward()
            optimiser.step()

    return epoch


def compare(title: str, config: RunConfig, epochs: int) -> None:
    """Time epochs of both in turn and print the ratio of the medians."""
    built = build(config)
    trainer = built.trainer
    assert isinstance(trainer, OneSeedTrainer)
    bare = bare_epoch(config, built.data[0].train, trainer.batches)
    runs: dict[str, Callable[[int], object]] = {"bare": bare, "postmax": trainer.epoch}
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(epochs + 1):
        for name, run in runs.items():
            start = time.perf_counter()
            run(number)
            seconds[name].append(time.perf_counter() - start)
    # The first epoch warms up.
    middle = {name: statistics.median(values[1:]) for name, values in seconds.items()}
    steps = len(trainer.batches)
    print(
        f"| {title} | {steps / middle['bare']:.1f} | {steps / middle['postmax']:.1f} | "
        f"{middle['postmax'] / middle['bare']:.3f} |",
        flush=True,
    )


def stacked(seeds: int, epochs: int) -> None:
    """How many steps of single seeds a second the same loop makes when it trains several seeds side by side."""
    config = make_config({**BREAST_CANCER, "seeds": list(range(seeds))})
    trainer = build(config).trainer
    assert isinstance(trainer, OneSeedTrainer | SideBySideTrainer)
    trainer.epoch(0)
    start = time.perf_counter()
    for number in range(1, epochs + 1):
        trainer.epoch(number)
    each = (time.perf_counter() - start) / (epochs * len(trainer.batches) * seeds)
    print(f"| breast-cancer MLP, {seeds} seeds side by side | – | {1 / each:.1f} | – |", flush=True)


def random_images(count: int = IMAGES) -> Dataset:
    """Images of CIFAR's shape: what is in them does not change how long they take."""
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randint(256, (count, 3, 32, 32), dtype=torch.uint8, generator=generator)
    return Dataset("random images", pixels, torch.arange(count) % 10, tuple("0123456789"))


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", default=["mlp", "cnn8"], help="mlp and/or cnn8")
    args = parser.parse_args()
    print("| | bare steps/s | postmax steps/s | time of an epoch, ratio |\n|---|---:|---:|---:|")
    if "mlp" in args.what:
        torch.set_num_threads(1)
        compare("breast-cancer MLP", make_config(BREAST_CANCER), 60)
        for seeds in (1, 5, 10, 20):
            stacked(seeds, 30)
    if "cnn8" in args.what:
        # The readers of the catalogue are left out: the loop gets its rows from here.
        images = random_images()
        prepare.load_rows = lambda _: (images, images)  # type: ignore[assignment]
        compare("8-layer CNN, 512 images", make_config(CNN8), 6)


if __name__ == "__main__":
    main()
