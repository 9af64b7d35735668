"""Which network, learning rate and weight decay for breast cancer? Chosen on validation splits, by no test accuracy.

python benchmarks/breast_cancer_choice.py coarse    # 10 seeds, a wide grid
python benchmarks/breast_cancer_choice.py refined   # 10 seeds, around the best of it
python benchmarks/breast_cancer_choice.py fine      # 40 seeds, the settings that were left, every cell of the choice
python benchmarks/breast_cancer_choice.py ceiling   # 40 seeds, what other classifiers reach without noise
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import torch
from objective_correction import CLEAN, NOISES, cell
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC
from stacked import BATCH, EPOCHS, HELD_OUT, MOMENTUM
from torch import Tensor

import postmax as pm
from postmax import data
from postmax.data.splitting import stratified_mask

DIVERGENCES = ("kl", "sl", "gan")
CORRECTIONS = ("none", "posterior", "objective", "forward")
CLEAN_COLUMN = "no noise"
COLUMNS = (*CORRECTIONS, CLEAN_COLUMN)
# Test accuracy (%) in the paper, in the order of DIVERGENCES; at [0.2, 0.4] its JS, which trains exactly like GAN.
PAPER = {
    ("[0.1, 0.3]", "none"): (92.1, 92.1, 93.0),
    ("[0.1, 0.3]", "posterior"): (95.6, 95.6, 95.6),
    ("[0.1, 0.3]", "objective"): (95.6, 95.6, 94.7),
    ("[0.2, 0.4]", "none"): (90.4, 87.7, 89.0),
    ("[0.2, 0.4]", "posterior"): (92.2, 91.3, 92.2),
    ("[0.2, 0.4]", "objective"): (94.7, 93.9, 94.7),
    ("", CLEAN_COLUMN): (98.2, 98.2, 98.2),
}
VALIDATION_SPLIT = 100_000  # added to a seed, so that the two splits of a seed are drawn from different numbers

Cell = tuple[str, str, str]  # noise, column, divergence
Results = dict[Cell, Tensor]


@dataclass(frozen=True)
class Shape:
    """What the networks of one stack have in common."""

    hidden: tuple[int, ...] = ()
    activation: str = "relu"
    dropout: float = 0.0

    def __str__(self) -> str:
        name = "-".join(map(str, (30, *self.hidden, 2)))
        if self.hidden:
            name += f" {self.activation}"
        return f"{name}, dropout {self.dropout:g}" if self.dropout else name


@dataclass(frozen=True)
class Setting:
    """One candidate."""

    shape: Shape
    learning_rate: float
    weight_decay: float

    def __str__(self) -> str:
        return f"{self.shape} | {self.learning_rate:g} | {self.weight_decay:g}"


def grid(shapes: Sequence[Shape], rates: Sequence[float], decays: Sequence[float]) -> list[Setting]:
    """All combinations."""
    return [Setting(*parts) for parts in itertools.product(shapes, rates, decays)]


COARSE = grid(
    [Shape(), Shape((8,)), Shape((32,)), Shape((32,), "tanh"), Shape((32, 32))],
    [0.005, 0.02, 0.1],
    [0.0, 1e-2, 5e-2, 1e-1, 2e-1],
)
# Around the best of it: smooth networks of other widths and depths, dropout, smaller steps of the weight decay.
REFINED = grid(
    [
        *(Shape((width,), "tanh") for width in (8, 16, 32, 128)),
        Shape((32, 32), "tanh"),
        Shape((32,), "tanh", 0.5),
        Shape((8,)),
        Shape(),
    ],
    [0.02],
    [3e-3, 1e-2, 2e-2],
)
# The choice first: its cells are printed one by one.
FINE = [
    Setting(Shape((8,), "tanh"), 0.02, 1e-2),
    Setting(Shape((8,), "tanh"), 0.02, 3e-3),
    Setting(Shape((16,), "tanh"), 0.02, 1e-2),
]
STAGES = {"coarse": (COARSE, 10), "refined": (REFINED, 10), "fine": (FINE, 40)}


@lru_cache(maxsize=4)
def splits(noise: pm.Transition, seeds: tuple[int, ...]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Training and validation features and labels, stacked over seeds. Validation labels are the clean ones."""
    table = data.load("breast-cancer", split="all")
    features, labels = table.inputs[torch.arange(len(table))], table.labels
    parts = []
    for seed in seeds:
        rows = (~stratified_mask(labels, HELD_OUT, seed=seed)).nonzero()[:, 0]
        held_out = stratified_mask(labels[rows], HELD_OUT, seed=seed + VALIDATION_SPLIT)
        train, validation = rows[~held_out], rows[held_out]
        mean, std = features[train].mean(0), features[train].std(0)
        noisy = noise.corrupt(labels[train], seed=seed).labels
        parts.append(((features[train] - mean) / std, noisy, (features[validation] - mean) / std, labels[validation]))
    train_x, train_y, held_out_x, held_out_y = (torch.stack(column) for column in zip(*parts, strict=True))
    return train_x, train_y, held_out_x, held_out_y


@cache
def batches(rows: int, seeds: tuple[int, ...]) -> list[Tensor]:
    """(S, B) indices for every step: a fresh permutation in each epoch, the last batch short."""
    generators = [torch.Generator().manual_seed(20_000 + seed) for seed in seeds]
    epochs = (torch.stack([torch.randperm(rows, generator=g) for g in generators]) for _ in range(EPOCHS))
    return [index for order in epochs for index in order.split(BATCH, dim=1)]


class StackedNetworks(torch.nn.Module):
    """`copies` networks for each seed, initialised as `nn.Linear` is, from the seed alone."""

    def __init__(self, shape: Shape, seeds: tuple[int, ...], copies: int) -> None:
        super().__init__()
        self.shape = shape
        generators = [torch.Generator().manual_seed(10_000 + seed) for seed in seeds]
        self.weights, self.biases = torch.nn.ParameterList(), torch.nn.ParameterList()
        for fan_in, fan_out in itertools.pairwise((30, *shape.hidden, 2)):
            for parameters, rows in ((self.weights, fan_in), (self.biases, 1)):
                draws = torch.stack([torch.rand(rows, fan_out, generator=g) for g in generators])
                parameters.append(((draws * 2 - 1) / fan_in**0.5).repeat(copies, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        """(copies·S, B, 30) to (copies·S, B, 2)."""
        last = len(self.weights) - 1
        for depth, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = torch.baddbmm(bias, x, weight)
            if depth < last:
                x = x.tanh() if self.shape.activation == "tanh" else x.relu()
                x = torch.nn.functional.dropout(x, self.shape.dropout, self.training)
        return x


def train(loss: pm.FPMLLoss, noise: pm.Transition, settings: Sequence[Setting], seeds: tuple[int, ...]) -> Tensor:
    """Logits of the validation rows after the last epoch: (settings, S, M, 2). The settings have one shape.

    Everything acts elementwise over the stack, so this equals training every network alone with `torch.optim.SGD`.
    """
    torch.manual_seed(0)  # dropout
    train_x, train_y, held_out_x, _ = splits(noise, seeds)
    copies = len(settings)
    model = StackedNetworks(settings[0].shape, seeds, copies)
    rate, decay = (
        torch.tensor(values).repeat_interleave(len(seeds)).view(-1, 1, 1)
        for values in ([s.learning_rate for s in settings], [s.weight_decay for s in settings])
    )
    parameters = list(model.parameters())
    velocities = [torch.zeros_like(p) for p in parameters]
    steps = batches(train_x.shape[1], seeds)
    for step, index in enumerate(steps):
        x = train_x.gather(1, index.unsqueeze(-1).expand(-1, -1, train_x.shape[2])).repeat(copies, 1, 1)
        y = train_y.gather(1, index).repeat(copies, 1)
        losses = loss(model(x).flatten(0, 1), y.flatten())
        gradients = torch.autograd.grad(losses.sum() / index.shape[1], parameters)
        now = rate * (0.5 * (1 + math.cos(math.pi * step / len(steps))))
        with torch.no_grad():
            for p, gradient, velocity in zip(parameters, gradients, velocities, strict=True):
                velocity.mul_(MOMENTUM).add_(gradient).add_(decay * p)
                p.sub_(now * velocity)
    with torch.no_grad():
        logits: Tensor = model.eval()(held_out_x.repeat(copies, 1, 1))
    return logits.view(copies, len(seeds), *logits.shape[1:])


def measured(settings: Sequence[Setting], seeds: tuple[int, ...]) -> Iterator[Results]:
    """For each setting the accuracies (%) of all seeds in every cell. The settings have one shape."""
    truth = splits(CLEAN, seeds)[3]
    found: dict[Cell, Tensor] = {}

    def enter(where: Cell, loss: pm.FPMLLoss, logits: Tensor) -> None:
        predicted = loss.predict(logits.flatten(0, -2)).view(logits.shape[:-1])
        found[where] = (predicted == truth).double().mean(-1) * 100

    for name in DIVERGENCES:
        plain = pm.FPMLLoss(name, reduction="none")
        enter(("", CLEAN_COLUMN, name), plain, train(plain, CLEAN, settings, seeds))
        for title, noise in NOISES.items():
            uncorrected = train(plain, noise, settings, seeds)
            enter((title, "none", name), plain, uncorrected)
            for correction in ("posterior", "objective", "forward"):
                loss = pm.FPMLLoss(name, reduction="none", transition=noise, correction=correction)
                # The posterior correction acts after training: it has the network of "none".
                logits = uncorrected if correction == "posterior" else train(loss, noise, settings, seeds)
                enter((title, correction, name), loss, logits)
    for i in range(len(settings)):
        yield {where: accuracies[i] for where, accuracies in found.items()}


def margins(results: Results) -> dict[Cell, float]:
    """Mean minus the paper's figure, in every cell the paper has."""
    return {
        (noise, column, name): float(results[noise, column, name].mean()) - figure
        for (noise, column), figures in PAPER.items()
        for name, figure in zip(DIVERGENCES, figures, strict=True)
    }


def summary(setting: Setting, results: Results) -> str:
    """A row of the table."""
    columns = [torch.stack([r for (_, c, _), r in results.items() if c == column]) for column in COLUMNS]
    gaps = margins(results)
    worst = min((where for where in gaps if where[0]), key=gaps.__getitem__)
    shortfall = sum(min(gap, 0.0) for gap in gaps.values())
    below = sum(gap < 0 for gap in gaps.values())
    return (
        f"| {setting} | {' | '.join(cell(c) for c in columns)} | {gaps[worst]:+.1f} ({' '.join(worst)}) "
        f"| {below} | {shortfall:+.1f} |"
    )


def compare(settings: Sequence[Setting], seeds: tuple[int, ...]) -> list[tuple[Setting, Results]]:
    """Print one row for each setting."""
    print(f"Validation accuracy (%), last epoch, mean ± std over divergences, noises and n = {len(seeds)} seeds.\n")
    print("| network | learning rate | weight decay |", " | ".join(COLUMNS), end=" ")
    print("| worst noisy cell − paper | cells below | sum below |\n|---|" + "---:|" * (len(COLUMNS) + 5))
    rows = []
    for shape in dict.fromkeys(s.shape for s in settings):
        alike = [s for s in settings if s.shape == shape]
        for setting, results in zip(alike, measured(alike, seeds), strict=True):
            rows.append((setting, results))
            print(summary(setting, results), flush=True)
    return rows


def details(setting: Setting, results: Results) -> None:
    """Every cell of one setting beside the paper's figure."""
    print(f"\n{setting}\n\n| noise | column | {' | '.join(DIVERGENCES)} | paper |\n|---|---|" + "---:|" * 4)
    for noise, column in dict.fromkeys((noise, column) for noise, column, _ in results):
        figures = " / ".join(map(str, PAPER.get((noise, column), ("–",))))
        cells = " | ".join(cell(results[noise, column, name]) for name in DIVERGENCES)
        print(f"| {noise} | {column} | {cells} | {figures} |")


def ceiling(seeds: tuple[int, ...]) -> None:
    """Convex classifiers on the same splits without noise: what to expect of any setting in that column."""
    print(f"Validation accuracy (%), no noise, mean ± std over n = {len(seeds)} seeds.\n\n| classifier | |\n|---|---:|")
    candidates = {f"logistic regression, C = {c:g}": LogisticRegression(C=c, max_iter=2000) for c in (0.1, 0.3, 1, 3)}
    candidates |= {
        f"SVM, RBF, C = {c:g}, γ = {g:g}": SVC(C=c, gamma=g) for c, g in itertools.product((3, 10), (0.01, 0.03))
    }
    for name, classifier in candidates.items():
        scores = [
            100 * classifier.fit(x, y).score(held_out_x, held_out_y)
            for x, y, held_out_x, held_out_y in zip(*(part.numpy() for part in splits(CLEAN, seeds)), strict=True)
        ]
        print(f"| {name} | {cell(torch.tensor(scores))} |", flush=True)


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", choices=(*STAGES, "ceiling"))
    parser.add_argument("--seeds", type=int, help="number of seeds, from 1000 on (default: as above)")
    args = parser.parse_args()
    torch.set_num_threads(1)  # the tensors are small
    start = time.perf_counter()
    settings, count = STAGES.get(args.stage, ([], 40))
    seeds = tuple(range(1000, 1000 + (args.seeds or count)))
    if args.stage == "ceiling":
        ceiling(seeds)
    else:
        rows = compare(settings, seeds)
        if args.stage == "fine":
            details(*rows[0])
    print(f"\n{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
