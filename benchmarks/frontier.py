"""Draw docs/results/frontier.png: accuracy on clean CIFAR-10 against the operations of the training.

The points of the fast network are read from docs/results/frontier.json, which `postmax reproduce frontier --scale
pixels` wrote as table.json. The paper's networks are beside them: their operations are counted here, their accuracy is
what the paper reports.

    python benchmarks/frontier.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from matplotlib import pyplot as plt

from postmax import tables
from postmax.tables.jobs import jobs
from postmax.train import RunConfig, make_config
from postmax.train.operations import training_flops

RESULTS = Path(__file__).parent.parent / "docs" / "results"
ROWS, SHAPE, CLASSES = 50_000, (3, 32, 32), 10
# Network, epochs and accuracy as the paper reports them: SL-PML (Table 3), and CE on the clean labels of CIFAR-10N (7).
PAPER = (("cnn8", 120, 92.96), ("resnet34", 100, 92.92))


class Point(NamedTuple):
    """One training: its name, its operations and its accuracy in per cent."""

    name: str
    flops: float
    accuracy: float


def operations(config: RunConfig) -> int:
    """Return the operations of a training on CIFAR-10."""
    return training_flops(config, ROWS, SHAPE, CLASSES)


def of_the_paper() -> list[Point]:
    """Return the networks of the paper."""
    runs = ({"data": {"name": "cifar10"}, "model": name, "epochs": epochs} for name, epochs, _ in PAPER)
    made = zip(PAPER, map(make_config, runs), strict=True)
    return [Point(f"{name}, {epochs} epochs", operations(run), value) for (name, epochs, value), run in made]


def measured(path: Path = RESULTS / "frontier.json") -> dict[str, list[Point]]:
    """Return the points of each panel, in the order of their operations. Cells without a result are left out."""
    content = json.loads(path.read_text("utf-8"))["tables"][0]
    configs = {}
    for job in jobs(tables.load("frontier"), "pixels", rows=["all"], columns=["all"]):
        for place in job.placements:
            configs[place.panel, place.row, place.column] = job.config
    found: dict[str, list[Point]] = {}
    for panel in content["panels"]:
        cells = (cell for cell in panel["cells"] if cell["n"])
        points = [
            Point(
                f"{cell['row'].removeprefix('width ')}×{cell['column'].removesuffix(' epochs')}",
                operations(configs[panel["title"], cell["row"], cell["column"]]),
                cell["mean"],
            )
            for cell in cells
        ]
        found[panel["title"]] = sorted(points, key=lambda point: point.flops)
    return found


def main() -> None:
    """Draw the picture and print its points."""
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for (panel, points), marker in zip(measured().items(), "os", strict=False):
        axes.plot([p.flops for p in points], [p.accuracy for p in points], marker, label=f"fast, {panel}")
        for point in points:
            axes.annotate(point.name, point[1:], xytext=(4, -9), textcoords="offset points", fontsize=7)
            print(f"{panel}  {point.name}  {point.flops:.2e}  {point.accuracy:.2f}")
    for point in of_the_paper():
        axes.plot(point.flops, point.accuracy, "k^")
        axes.annotate(
            f"{point.name}\n(reported)", point[1:], xytext=(-6, -20), textcoords="offset points", fontsize=7, ha="right"
        )
        print(f"{point.name}  {point.flops:.2e}  {point.accuracy:.2f} (reported)")
    axes.set(xscale="log", xlabel="operations of the training", ylabel="test accuracy in %")
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    figure.savefig(RESULTS / "frontier.png", dpi=150)


if __name__ == "__main__":
    main()
