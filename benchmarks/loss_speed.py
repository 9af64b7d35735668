"""Measure forward + backward of every named loss with its default settings, against `F.cross_entropy`.

Each turn times cross-entropy and then the loss, so that other programs on the machine slow both down alike. The printed
number is the median of the ratios of all turns. Targets are class indices. Losses that need the label noise get 40 %
symmetric noise.

For one thread the processor time is measured, which other programs hardly change. For several threads the wall-clock
time is measured; the machine should then do nothing else.

    python benchmarks/loss_speed.py [name ...] [--turns 25] [--threads 1 2]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

import postmax as pm

Loss = Callable[[Tensor, Tensor], Tensor]
# (rows, classes) and how many steps are timed at once: few, so that most turns are not interrupted.
SHAPES = {(128, 10): 3, (1024, 1000): 1}
TWO_CLASSES_ONLY = "natarajan"


def make(name: str, classes: int) -> Loss:
    """Return the loss of this name."""
    return pm.losses.get(name, transition=pm.Transition.symmetric(classes, 0.4))


def seconds(loss: Loss, z: Tensor, y: Tensor, steps: int) -> float:
    """Return the seconds that a number of steps forward and backward takes."""
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    start = clock()
    for _ in range(steps):
        z.grad = None
        loss(z, y).backward()
    return clock() - start


def ratios(names: tuple[str, ...], shape: tuple[int, int], turns: int) -> dict[str, float]:
    """Return the median over all turns of the time of each loss divided by that of cross-entropy."""
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(shape, generator=generator).requires_grad_()
    y = torch.randint(0, shape[1], shape[:1], generator=generator)
    losses = {name: make(name, shape[1]) for name in names}
    for loss in (F.cross_entropy, *losses.values()):
        seconds(loss, z, y, 2)
    found: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(turns):
        for name, loss in losses.items():
            base = seconds(F.cross_entropy, z, y, SHAPES[shape])
            found[name].append(seconds(loss, z, y, SHAPES[shape]) / base)
    return {name: statistics.median(values) for name, values in found.items()}


def table(names: tuple[str, ...], turns: int, threads: list[int]) -> Iterator[str]:
    """Yield the lines of the table."""
    measured = []
    for number in threads:
        torch.set_num_threads(number)
        measured += [ratios(names, shape, turns) for shape in SHAPES]
    cases = [f"{n}×{k}, {t} thread{'s' if t > 1 else ''}" for t in threads for n, k in SHAPES]
    yield "| loss | " + " | ".join(cases) + " |"
    yield "|---|" + "---:|" * len(cases)
    for name in names:
        yield f"| {name} | " + " | ".join(f"{ratio[name]:.2f}" for ratio in measured) + " |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=25, help="how often each loss is timed (default: 25)")
    parser.add_argument("--threads", type=int, nargs="+", help="numbers of threads (default: 1 and torch's own)")
    parser.add_argument("names", nargs="*", help="losses to time (default: all)")
    args = parser.parse_args()
    names = tuple(args.names) or tuple(name for name in pm.losses.names() if name != TWO_CLASSES_ONLY)
    print(*table(names, args.turns, args.threads or sorted({1, torch.get_num_threads()})), sep="\n")


if __name__ == "__main__":
    main()
