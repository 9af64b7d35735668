"""Count how many epochs of each strategy on images cost as much as eight of ProMix, for the table `strategies`.

    python benchmarks/equal_compute.py

Every row of the scale `equal-compute` is trained on a fifth of the images of CIFAR-10 with a narrow network, for as
many epochs as it has at the scale `pixels`. Evaluation is not counted. Needs CIFAR-10 and CIFAR-10N; takes minutes.
"""

from __future__ import annotations

from methods_cost import cost_of

from postmax import tables
from postmax.tables.jobs import jobs

ROWS, WIDTH, COLUMN, STANDARD = 10_000, 8, "worst", "ProMix"


def operations() -> dict[str, float]:
    """Return the operations of an epoch of each row of the table."""
    found = {}
    for job in jobs(tables.load("strategies"), "pixels", columns=[COLUMN], seeds=1):
        content = job.config.model_dump()
        content["data"]["train_rows"], content["model"]["width"] = ROWS, WIDTH
        cost = cost_of(content["method"], content)
        found[job.placements[0].row] = cost.operations / cost.epochs
        print(f"{job.placements[0].row}: {cost.operations:.3g} operations in {cost.epochs} epochs", flush=True)
    return found


def main() -> None:
    """Print the epochs of each row."""
    found = operations()
    for row, count in found.items():
        print(f"{row:20}{count / found['CE']:6.2f} times CE   {8 * found[STANDARD] / count:5.1f} epochs")


if __name__ == "__main__":
    main()
