"""A training step in torch's two memory formats for images, side by side.

Forward and backward of a batch of random images. The two formats take turns, so that whatever else the machine
does hits both alike; what counts is the ratio within a round.

    python benchmarks/channels_last.py [--rounds 7] [--batch 128] [--side 32] [--threads 1] [--models small cnn8 …]
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from postmax import models


def step(network: nn.Module, images: Tensor, labels: Tensor) -> float:
    """Processor seconds of forward and backward; unlike those of the clock they go on only while this program runs."""
    start = time.process_time()
    network.zero_grad()
    F.cross_entropy(network(images), labels).backward()
    return time.process_time() - start


def compare(name: str, shape: tuple[int, ...], rounds: int) -> str:
    """A row of the table."""
    images, labels = torch.randn(shape), torch.arange(shape[0]) % 10
    seconds: dict[torch.memory_format, list[float]] = {}
    networks = {}
    for layout in (torch.contiguous_format, torch.channels_last):
        torch.manual_seed(0)
        network = models.get(name, num_classes=10, input_shape=shape[1:])
        # A batch comes in the plain layout, so turning it belongs to the step; only the weights are turned once.
        network.to(memory_format=layout)  # type: ignore[call-overload]  # torch documents this, its types do not
        networks[layout] = network.train()
        seconds[layout] = []
        step(networks[layout], images, labels)
    for _ in range(rounds):
        for layout, network in networks.items():
            seconds[layout].append(step(network, images, labels))
    plain, last = seconds.values()
    ratios = sorted(mine / its for mine, its in zip(plain, last, strict=True))
    spread = f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} – {ratios[-1]:.2f})"
    middle = [f"{1e3 * statistics.median(values):,.0f}" for values in (plain, last)]
    return f"| {name} | {middle[0]} | {middle[1]} | {spread} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7, help="turns of each format (default: 7)")
    parser.add_argument("--batch", type=int, default=128, help="images of a step (default: 128)")
    parser.add_argument("--side", type=int, default=32, help="height and width of an image (default: 32)")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch; their seconds add up (default: 1)")
    parser.add_argument("--models", nargs="+", default=["small", "cnn8", "resnet18"], help="networks to compare")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    print(f"torch {torch.__version__}, {args.threads} threads, {args.rounds} rounds, ", end="")
    print(f"{args.batch} images of {args.side}×{args.side}\n")
    print("| network | plain, ms | channels_last, ms | plain / channels_last: median (least – most) |")
    print("|---|---|---|---|")
    for name in args.models:
        print(compare(name, (args.batch, 3, args.side, args.side), args.rounds), flush=True)


if __name__ == "__main__":
    main()
