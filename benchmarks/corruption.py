"""Seconds to corrupt labels: this library against the per-sample loop of the published code, in one run.

    python benchmarks/corruption.py

The rival is written here after what the public noise scripts do: one `numpy` multinomial draw for each label.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch

from postmax import Transition

SHAPES = ((50_000, 10), (50_000, 100), (1_000_000, 1000), (10_000_000, 1000))
# The loop takes minutes for millions of labels; its time for so many is scaled up, which flatters no one: it is linear.
LOOP_ROWS = 20_000


def per_sample_loop(labels: npt.NDArray[np.int64], matrix: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """One multinomial draw a label, as published scripts do it."""
    random = np.random.RandomState(0)
    noisy = labels.copy()
    for row, label in enumerate(labels):
        noisy[row] = random.multinomial(1, matrix[label], 1)[0].argmax()
    return noisy


def seconds(run: Callable[[], object], repeats: int = 3) -> float:
    """The fastest of a few runs."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return min(times)


def main() -> None:
    """Print the table."""
    print("| labels | K | loop, s | independent, s | exact, s | loop / independent | loop / exact |")
    print("|---|---|---|---|---|---|---|")
    for rows, k in SHAPES:
        noise = Transition.symmetric(k, 0.4)
        labels = torch.arange(rows) % k
        matrix, few = noise.matrix.numpy(), labels[:LOOP_ROWS].numpy()
        loop = seconds(lambda: per_sample_loop(few, matrix), repeats=1) * rows / LOOP_ROWS  # noqa: B023
        independent = seconds(lambda: noise.corrupt(labels, 0, exact=False))  # noqa: B023
        exact = seconds(lambda: noise.corrupt(labels, 0))  # noqa: B023
        print(
            f"| {rows:,} | {k} | {loop:.2f} | {independent:.3f} | {exact:.3f} "
            f"| {loop / independent:.0f} | {loop / exact:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
