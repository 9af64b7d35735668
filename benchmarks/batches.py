"""Augmented batches against PIL transforms of one image at a time in a DataLoader.

Both do the same to CIFAR-sized images: pad by 4, crop, flip, normalise, cut out 16×16. The DataLoader runs with 0, 1
and 2 workers, and whichever is fastest in a round is the rival. All contenders take turns, so that whatever else the
machine does hits them alike; what counts are the ratios within a round.

    python benchmarks/batches.py [--rounds 7] [--images 10000] [--threads 1]
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image, ImageOps
from torch import Tensor
from torch.utils.data import DataLoader
from torch.utils.data import Dataset as TorchDataset

from postmax.data import STATISTICS, Augment, Batches, Dataset, MappedArray

AUGMENT = Augment(padding=4, cutout=16, statistics=STATISTICS["cifar10"])
MEAN, STD = (torch.tensor(values).view(3, 1, 1) for values in (STATISTICS["cifar10"].mean, STATISTICS["cifar10"].std))
Pixels = npt.NDArray[np.uint8]


def augment_with_pil(pixels: Pixels, top: int, left: int, flip: int, row: int, column: int) -> Tensor:
    """The usual chain of transforms, for one image (H, W, C)."""
    image = ImageOps.expand(Image.fromarray(pixels), 4)
    image = image.crop((left, top, left + 32, top + 32))
    if flip:
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    tensor = torch.from_numpy(np.array(image)).permute(2, 0, 1).contiguous().to(torch.float32).div_(255)
    tensor.sub_(MEAN).div_(STD)
    tensor[:, max(row - 8, 0) : row + 8, max(column - 8, 0) : column + 8] = 0
    return tensor


class OneAtATime(TorchDataset[tuple[Tensor, int, int]]):
    """Images as torchvision keeps CIFAR, augmented when asked for."""

    def __init__(self, images: Pixels, labels: list[int]) -> None:
        self.images, self.labels = images, labels

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, i: int) -> tuple[Tensor, int, int]:
        drawn = [random.randrange(places) for places in (9, 9, 2, 32, 32)]  # noqa: S311  (no secrets here)
        return augment_with_pil(self.images[i], *drawn), self.labels[i], i


def check_that_both_do_the_same(images: Tensor) -> None:
    """With the same numbers drawn, PIL and the batch give the same pixels."""
    draw = AUGMENT.draw(images, torch.Generator().manual_seed(0))
    alone = [augment_with_pil(x.permute(1, 2, 0).numpy(), *map(int, n)) for x, *n in zip(images, *draw, strict=True)]
    torch.testing.assert_close(AUGMENT.apply(images, draw), torch.stack(alone), atol=1e-5, rtol=0)


def images_per_second(epoch: Callable[[], Iterable[Any]], images: int) -> float:
    """As many epochs as a second takes, and one at least."""
    start, seen = time.perf_counter(), 0
    while time.perf_counter() < start + 1:
        seen += sum(len(labels) for _, labels, _ in epoch())
    assert seen % images == 0
    return seen / (time.perf_counter() - start)


def contenders(dataset: Dataset, mapped: Dataset, batch_size: int) -> dict[str, Callable[[], Iterable[Any]]]:
    """What gives an epoch, by name."""
    assert isinstance(dataset.inputs, Tensor)
    alone = OneAtATime(dataset.inputs.permute(0, 2, 3, 1).contiguous().numpy(), dataset.labels.tolist())
    epochs: dict[str, Callable[[], Iterable[Any]]] = {
        "in memory": Batches(dataset, batch_size, augment=AUGMENT).__iter__,
        "streamed from a memory-mapped file": Batches(mapped, batch_size, augment=AUGMENT).__iter__,
    }
    for workers in (0, 1, 2):
        loader = DataLoader(alone, batch_size, shuffle=True, num_workers=workers, persistent_workers=workers > 0)
        epochs[f"DataLoader, {workers} workers"] = loader.__iter__
    return epochs


def report(batch_size: int, speeds: dict[str, list[float]]) -> None:
    """A row for each contender: images a second, and the ratio to the DataLoader that was fastest in the same round."""
    loaders = [values for name, values in speeds.items() if name.startswith("DataLoader")]
    fastest = [max(values) for values in zip(*loaders, strict=True)]
    for name, values in speeds.items():
        ratios = sorted(mine / its for mine, its in zip(values, fastest, strict=True))
        spread = f"{statistics.median(ratios):.2g} ({ratios[0]:.2g} – {ratios[-1]:.2g})"
        print(f"| {batch_size} | {name} | {round(statistics.median(values), -2):,.0f} | {spread} |")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7, help="turns of each contender (default: 7)")
    parser.add_argument("--images", type=int, default=10_000, help="images of an epoch (default: 10000)")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="threads of torch")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    images = torch.randint(256, (args.images, 3, 32, 32), generator=torch.Generator().manual_seed(0)).to(torch.uint8)
    check_that_both_do_the_same(images[:200])
    dataset = Dataset("made up", images, torch.arange(args.images) % 10, tuple("0123456789"))
    print(f"torch {torch.__version__}, {args.threads} threads, {args.rounds} rounds of {args.images} images\n")
    print("| batch | contender | images/s, median | times the fastest DataLoader: median (least – most) |")
    print("|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "images.npy"
        np.save(path, images.numpy())
        mapped = Dataset("made up", MappedArray(path), dataset.labels, dataset.classes)
        for batch_size in (128, 512):
            epochs = contenders(dataset, mapped, batch_size)
            for epoch in epochs.values():
                images_per_second(epoch, args.images)  # starts workers and warms caches
            speeds: dict[str, list[float]] = {name: [] for name in epochs}
            for _ in range(args.rounds):
                for name, epoch in epochs.items():
                    speeds[name].append(images_per_second(epoch, args.images))
            report(batch_size, speeds)


if __name__ == "__main__":
    main()
