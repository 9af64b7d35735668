"""Where the objective correction falls behind: random settings, each trained with every correction.

python benchmarks/objective_limits.py             # the table of docs/objective-correction.md, ~25 minutes on one core
python benchmarks/objective_limits.py --why       # one problem: learning rates, networks and divergences, ~5 minutes
python benchmarks/objective_limits.py --tried     # what was tried to mend it, ~3 minutes
python benchmarks/objective_limits.py --design    # the settings that were looked at first, ~40 minutes

Each result is a line of --out as soon as it is there. A run that is stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from problems import StackedNetwork, hidden_widths, num_classes, problem, transition

import postmax as pm
from postmax.errors import PostmaxWarning
from postmax.transition.constant import Constant

NOISES = (
    *("pair:0.2", "pair:0.3", "pair:0.4", "pair:0.45", "asym:0.4", "sym:0.4", "sym:0.6"),
    *("cond:1.5", "cond:5", "cond:20", "cond:50"),
)
TRAININGS = (
    *(("linear", "sgd", 0.05), ("64", "sgd", 0.01), ("64", "sgd", 0.1), ("256x256", "sgd", 0.02)),
    *(("256x256", "sgd", 0.2), ("512x512x512", "sgd", 0.02), ("256x256", "adam", 0.001), ("64", "adam", 0.005)),
    *(("64", "sgd", 0.5), ("512x512x512", "sgd", 0.1), ("64", "sgd", 0.005)),
)
# The problems on which the question was studied, and those on which the answer was judged, once.
DESIGN = (
    *("gauss:2:10:0.7", "gauss:5:10:1", "gauss:10:20:1", "gauss:10:2:4", "gauss:50:50:0.8"),
    *("spiral:5", "digits", "embed:10:0.8"),
)
JUDGED = (
    *("gauss:3:5:1.2", "gauss:8:30:0.7", "gauss:20:40:0.8", "spiral:3", "embed:20:1.0", "digits"),
    *("gauss:10:50:0.6", "gauss:2:4:1"),
)
LOSSES = ("CE", "forward", "factored", "posterior", "objective")
BATCH, MOMENTUM = 128, 0.9
BINS = ((0, 2), (2, 3), (3, 8), (8, 15), (15, float("inf")))


@dataclass(frozen=True)
class Setting:
    """Everything about a training but its loss."""

    data: str
    rows: int
    noise: str
    network: str
    optimiser: str
    lr: float
    weight_decay: float
    epochs: int
    first_seed: int
    seeds: int

    @property
    def matrix(self) -> pm.Transition:
        """The noise."""
        return transition(self.noise, num_classes(self.data))


def random_settings(problems: tuple[str, ...], count: int, seed: int, first_seed: int) -> list[Setting]:
    """Return different settings, drawn at random."""
    rng, found = random.Random(seed), dict[Setting, None]()  # noqa: S311  (nothing is secret here)
    while len(found) < count:
        data = rng.choice(problems)
        many, noise = num_classes(data) >= 20, rng.choice(NOISES)
        if num_classes(data) == 2 and noise == "sym:0.6":
            continue  # more than half of the labels would be wrong
        network, optimiser, lr = rng.choice(TRAININGS)
        large = network == "512x512x512"
        decay = rng.choice([0.0, 0.0, 5e-4])
        epochs = 20 if large else rng.choice([20, 40] if many else [20, 40, 40, 100])
        rows = 1500 if large else 4000 if many else 2000
        seeds = 1 if large else 3
        found[Setting(data, rows, noise, network, optimiser, lr, decay, epochs, first_seed, seeds)] = None
    return list(found)


def make_loss(name: str, noise: pm.Transition, divergence: str = "gan") -> pm.FPMLLoss:
    """Return the loss of a column, which returns the loss of each row."""
    if name == "CE":
        return pm.FPMLLoss("kl", "softmax", reduction="none")
    correction, _, change = name.partition(", ")
    link = "softmax" if change == "softmax" else None
    floor = 2 / noise.num_classes if change == "floor 2/K" else None
    loss = pm.FPMLLoss(divergence, link, transition=noise, correction=correction, floor=floor, reduction="none")
    if change in ("P⁻¹ / ‖·‖₂", "P⁻¹"):  # the default is P⁻¹ divided by its largest absolute row sum
        scale = noise.inverse.square().sum(1).mean().sqrt() if "/" in change else 1.0
        objective = replace(loss.objective, label_matrix=Constant(noise.inverse / scale))
        loss.row_loss = replace(loss.row_loss, objective=objective)
    return loss


def train(setting: Setting, loss: pm.FPMLLoss) -> dict[str, list[float]]:
    """Return for each seed: test accuracy, the best one of all epochs, and the share of labels that is predicted."""
    seeds = tuple(range(setting.first_seed, setting.first_seed + setting.seeds))
    data = problem(setting.data, setting.noise, setting.rows, seeds)
    widths = (data.inputs.shape[2], *hidden_widths(setting.network), num_classes(setting.data))
    network = StackedNetwork(seeds, widths)
    parameters, lr, decay = network.parameters(), setting.lr, setting.weight_decay
    optimiser: torch.optim.Optimizer
    if setting.optimiser == "sgd":
        optimiser = torch.optim.SGD(parameters, lr=lr, momentum=MOMENTUM, weight_decay=decay)
    else:
        optimiser = torch.optim.Adam(parameters, lr=lr, weight_decay=decay)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, setting.epochs)
    generators = [torch.Generator().manual_seed(20_000 + seed) for seed in seeds]
    lanes = torch.arange(len(seeds)).unsqueeze(1)
    best, accuracy = torch.zeros(len(seeds)), torch.zeros(len(seeds))

    def agreement(inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            logits = network(inputs).flatten(0, 1).nan_to_num(0.0, 1e4, -1e4)
        return (loss.predict(logits).view_as(labels) == labels).float().mean(1)

    for _ in range(setting.epochs):
        order = torch.stack([torch.randperm(data.inputs.shape[1], generator=g) for g in generators])
        for index in order.split(BATCH, dim=1):
            optimiser.zero_grad()
            logits = network(data.inputs[lanes, index]).flatten(0, 1)
            kept = logits.isfinite().all(-1)  # a seed that has diverged must not stop the others
            rows = loss(logits.nan_to_num(0.0, 1e4, -1e4), data.labels[lanes, index].flatten())
            (torch.where(kept, rows, 0.0).sum() / index.shape[1]).backward()
            optimiser.step()
        schedule.step()
        accuracy = agreement(data.test_inputs, data.test_labels)
        best = torch.maximum(best, accuracy)
    fitted = agreement(data.inputs, data.labels)
    return {"accuracy": accuracy.tolist(), "best": best.tolist(), "fitted": fitted.tolist()}


class Results:
    """Results in a file of JSON lines. What is there already is not trained again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        lines = path.read_text().splitlines() if path.exists() else []
        self._known: dict[str, dict[str, list[float]]] = {}
        for line in map(json.loads, lines):
            self._known[json.dumps(line["run"])] = line["result"]

    def get(self, setting: Setting, name: str, divergence: str = "gan") -> dict[str, list[float]]:
        """Return the result of a setting with a loss."""
        run = {**asdict(setting), "loss": name, "divergence": divergence}
        if (key := json.dumps(run)) not in self._known:
            self._known[key] = train(setting, make_loss(name, setting.matrix, divergence))
            with self._path.open("a") as file:
                file.write(json.dumps({"run": run, "result": self._known[key]}) + "\n")
        return self._known[key]

    def accuracy(self, setting: Setting, name: str) -> float:
        """Return the mean test accuracy after the last epoch, in per cent."""
        return 100 * statistics.fmean(self.get(setting, name)["accuracy"])


def report(settings: list[Setting], results: Results) -> None:
    """Print the accuracies by the size of the inverse matrix, and every setting."""
    # The small networks come first, so that a run that is stopped leaves most of the settings.
    for setting in sorted(settings, key=lambda s: sum(hidden_widths(s.network))):
        accuracies = {name: results.accuracy(setting, name) for name in LOSSES}
        print(setting, {name: round(value, 1) for name, value in accuracies.items()}, flush=True)
    print("\nTest accuracy (%), last epoch, mean ± std over settings of three seeds, or one for the largest network.\n")
    print(f"| classes | ‖P⁻¹‖ | settings | {' | '.join(LOSSES)} | objective − forward, worst | > 5 behind forward |")
    print("|---|---|---:|" + "---:|" * (len(LOSSES) + 2))
    for title, group in _groups(settings):
        found = {name: [results.accuracy(s, name) for s in group] for name in LOSSES}
        behind = [a - b for a, b in zip(found["objective"], found["forward"], strict=True)]
        cells = [f"{statistics.fmean(v):.1f} ± {statistics.pstdev(v):.1f}" for v in found.values()]
        share = f"{sum(b < -5 for b in behind)} of {len(group)}"
        print(f"| {title} | {len(group)} | {' | '.join(cells)} | {min(behind):+.1f} | {share} |")


def _groups(settings: list[Setting]) -> Iterator[tuple[str, list[Setting]]]:
    for two in (True, False):
        for low, high in ((0, float("inf")),) if two else BINS:
            group = [s for s in settings if (num_classes(s.data) == 2) == two and low <= norm(s.matrix) < high]
            if group:
                size = "all" if two else f"from {low}" if high == float("inf") else f"{low} to {high}"
                yield f"{'2' if two else '3 or more'} | {size}", group


def norm(noise: pm.Transition) -> float:
    """Return ‖P⁻¹‖, the largest absolute row sum."""
    return float(noise.inverse.abs().sum(1).max())


def why(results: Results) -> None:
    """Print one problem for several learning rates, networks and divergences."""
    base = Setting("gauss:10:20:1", 2000, "pair:0.4", "64", "sgd", 0.05, 0.0, 40, first_seed=2000, seeds=3)
    columns = (("CE", "gan"), ("forward", "gan"), ("objective", "gan"), ("objective", "kl"), ("objective", "sl"))
    titles = ("CE", "forward, GAN", "objective, GAN", "objective, KL", "objective, SL")
    print("Test accuracy (%), last epoch, mean ± std over 3 seeds; in brackets the best epoch, and the share of the")
    print(f"training labels that is predicted.\n\n| network | lr | {' | '.join(titles)} |\n|---|---:|" + "---:|" * 5)
    for network in ("64", "256x256"):
        for lr in (0.001, 0.01, 0.05, 0.2):
            setting = replace(base, network=network, lr=lr)
            cells = []
            for name, divergence in columns:
                found = results.get(setting, name, divergence)
                mean, best, fitted = (100 * statistics.fmean(found[key]) for key in ("accuracy", "best", "fitted"))
                std = 100 * statistics.stdev(found["accuracy"])
                cells.append(f"{mean:.0f} ± {std:.0f} ({best:.0f}, {fitted:.0f})")
            print(f"| {network} | {lr:g} | {' | '.join(cells)} |", flush=True)


def tried(results: Results) -> None:
    """Print what was tried to mend the correction, on some of the settings that were looked at first."""
    base = Setting("gauss:10:20:1", 2000, "pair:0.4", "64", "sgd", 0.1, 0.0, 40, first_seed=0, seeds=2)
    settings = (
        replace(base, noise="cond:20", lr=0.01),
        replace(base, noise="cond:20"),
        replace(base, data="digits", lr=0.01),
        replace(base, data="digits", noise="cond:5"),
        replace(base, data="spiral:5", noise="asym:0.4"),
        replace(base, data="gauss:10:2:4", lr=0.01),
        replace(base, network="256x256", lr=0.2),
        replace(base, data="gauss:10:20:0.5", network="256x256", lr=0.2),
        replace(base, data="embed:10:0.8", noise="pair:0.3", lr=0.05),
    )
    changes = ("P⁻¹ / ‖·‖₂", "P⁻¹", "floor 2/K", "softmax")
    print(f"| data, noise, network, lr | forward | objective | {' | '.join(changes)} |\n|---|" + "---:|" * 6)
    for s in settings:
        names = ("forward", "objective", *(f"objective, {change}" for change in changes))
        cells = " | ".join(f"{results.accuracy(s, name):.0f}" for name in names)
        print(f"| {s.data}, {s.noise}, {s.network}, {s.lr:g} | {cells} |", flush=True)


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--why", action="store_true", help="one problem in detail")
    parser.add_argument("--tried", action="store_true", help="what was tried to mend it")
    parser.add_argument("--design", action="store_true", help="the settings that were looked at first")
    parser.add_argument("--out", type=Path, default=Path("objective-limits.jsonl"), help="the file of results")
    args = parser.parse_args()
    torch.set_num_threads(1)  # the tensors are small
    warnings.simplefilter("ignore", PostmaxWarning)  # this is the measurement that it is about
    results = Results(args.out)
    if args.why:
        why(results)
    elif args.tried:
        tried(results)
    elif args.design:
        report(random_settings(DESIGN, 110, seed=1, first_seed=0), results)
    else:
        report(random_settings(JUDGED, 60, seed=2, first_seed=1000), results)


if __name__ == "__main__":
    main()
