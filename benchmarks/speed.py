"""Measure forward + backward of f-PML against cross-entropy and against the same loss written in the obvious way.

All losses take turns in one process, so that other programs on the machine slow all of them down alike. The printed
numbers are ratios of medians. Peak memory counts every byte allocated during forward and backward beyond the logits.

    python benchmarks/speed.py [--seconds 8]
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import time
from collections.abc import Callable

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # the profiler would log every start and stop

import torch
import torch.nn.functional as F
from torch import Tensor

import postmax as pm

Loss = Callable[[Tensor, Tensor], Tensor]
SHAPES = [(128, 10), (512, 100), (1024, 1000), (256, 21841)]


def obvious(name: str) -> Loss:
    """Return the objective as it is written in the paper, differentiated by autograd."""

    def kl(z: Tensor, y: Tensor) -> Tensor:
        t = z + 1
        return (torch.exp(t - 1).sum(1) - t.gather(1, y[:, None]).squeeze(1)).mean()

    def gan(z: Tensor, y: Tensor) -> Tensor:
        t = F.logsigmoid(z)
        return (-torch.log(1 - torch.exp(t)).sum(1) - t.gather(1, y[:, None]).squeeze(1)).mean()

    def sl(z: Tensor, y: Tensor) -> Tensor:
        t = -torch.sigmoid(-z)
        return (-(torch.log(-t) + t + 1).sum(1) - t.gather(1, y[:, None]).squeeze(1)).mean()

    return {"kl": kl, "gan": gan, "sl": sl}[name]


def two_batches(name: str) -> Loss:
    """Return the loss with its label term on one batch and its penalty on another, as in the authors' earlier code.

    Only the loss is timed; the second pass of the network comes on top.
    """
    score: dict[str, Callable[[Tensor], Tensor]] = {
        "kl": lambda z: z + 1,
        "gan": F.logsigmoid,
        "sl": lambda z: -torch.sigmoid(-z),
    }
    penalty: dict[str, Callable[[Tensor], Tensor]] = {
        "kl": torch.exp,
        "gan": F.softplus,
        "sl": lambda z: F.softplus(z) - torch.sigmoid(z),
    }

    def loss(z: Tensor, y: Tensor) -> Tensor:
        other = z.flip(0)  # stands for the logits of the second batch
        active = score[name](z).gather(1, y[:, None]).mean()
        return penalty[name](other).sum(1).mean() - active

    return loss


def contenders() -> dict[str, Loss]:
    """Return all losses that are timed, cross-entropy first."""
    losses: dict[str, Loss] = {"cross-entropy": F.cross_entropy}
    for name in ("kl", "gan", "sl"):
        losses[f"{name} FPMLLoss"] = pm.FPMLLoss(name, "exp")
        losses[f"{name} FPMLLoss, sigmoid link"] = pm.FPMLLoss(name)
        losses[f"{name} obvious"] = obvious(name)
        losses[f"{name} two batches"] = two_batches(name)
    return losses


def step(loss: Loss, z: Tensor, y: Tensor) -> None:
    """Run one forward and one backward pass."""
    z.grad = None
    loss(z, y).backward()


def time_all(losses: dict[str, Loss], z: Tensor, y: Tensor, seconds: float) -> dict[str, float]:
    """Return the median seconds of a step for each loss, measured in turns."""
    times: dict[str, list[float]] = {name: [] for name in losses}
    for loss in losses.values():
        step(loss, z, y)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times["cross-entropy"]) < 15:
        for name, loss in losses.items():
            for _ in range(5):
                start = time.perf_counter()
                step(loss, z, y)
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def peak_memory(loss: Loss, z: Tensor, y: Tensor) -> int:
    """Return the largest number of bytes in use during a step, beyond those in use before it."""
    z.grad = None
    with torch.profiler.profile(profile_memory=True, activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        step(loss, z, y)
    assert profile.profiler is not None
    events = [e for e in profile.profiler.kineto_results.events() if e.name() == "[memory]"]
    changes: list[int] = [e.nbytes() for e in sorted(events, key=lambda e: e.start_ns())]
    return max(itertools.accumulate(changes))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=8.0, help="time spent on each shape (default: 8)")
    args = parser.parse_args()
    losses = contenders()
    times, memory = {}, {}
    for shape in SHAPES:
        torch.manual_seed(0)
        z = torch.randn(shape, requires_grad=True)
        y = torch.randint(0, shape[1], shape[:1])
        times[shape] = time_all(losses, z, y, args.seconds)
        memory[shape] = {name: peak_memory(loss, z, y) for name, loss in losses.items()}
    head = " | ".join(f"{n}×{k}" for n, k in SHAPES)
    base = "cross-entropy"
    print(
        f"torch {torch.__version__}, float32, {torch.get_num_threads()} threads; forward + backward; "
        "time and (peak memory) as a ratio to cross-entropy\n"
    )
    print(f"| loss | {head} |\n|---|" + "---|" * len(SHAPES))
    absolute = " | ".join(f"{times[s][base] * 1e6:.0f} µs ({memory[s][base] / 1e6:.2g} MB)" for s in SHAPES)
    print(f"| F.cross_entropy | {absolute} |")
    for name in losses:
        if name == base:
            continue
        cells = [f"{times[s][name] / times[s][base]:.2f} ({memory[s][name] / memory[s][base]:.2f})" for s in SHAPES]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
