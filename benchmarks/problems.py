"""Small problems with label noise, by words: data sets, transition matrices, and networks of any depth.

Data: "gauss:K:d:spread" (Gaussian classes), "spiral:K", "embed:K:spread" (like the features of a frozen network), and
"digits". Noise: "pair:0.4", "sym:0.4", "asym:0.4" (every second class is confused with the next one), and "cond:20", a
random matrix with that condition number (with few classes less, if none of the family has as much).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache

import torch
from sklearn.datasets import load_digits
from torch import Tensor

import postmax as pm

TEST_ROWS = 2000
DIGITS_FOR_TRAINING = 1297


@dataclass(frozen=True)
class Problem:
    """Stacked over seeds: standardised features, noisy training labels, and test rows with true labels."""

    inputs: Tensor  # (S, N, features)
    labels: Tensor  # (S, N)
    test_inputs: Tensor  # (S, M, features)
    test_labels: Tensor  # (S, M)


def num_classes(data: str) -> int:
    """Return the number of classes of a data set."""
    return 10 if data == "digits" else int(data.split(":")[1])


@lru_cache(maxsize=4)
def problem(data: str, noise: str, rows: int, seeds: tuple[int, ...]) -> Problem:
    """Return one draw of the data and of the noise for each seed."""
    matrix = transition(noise, num_classes(data)).matrix
    parts = []
    for seed in seeds:
        x, y = _draw(data, rows + TEST_ROWS, torch.Generator().manual_seed(777 + seed))
        train = min(rows, DIGITS_FOR_TRAINING) if data == "digits" else rows
        x = (x - x[:train].mean(0)) / x[:train].std(0).clamp_min(1e-3)
        generator = torch.Generator().manual_seed(555 + seed)
        noisy = torch.multinomial(matrix[y[:train]], 1, generator=generator).squeeze(1)
        parts.append((x[:train], noisy, x[train:], y[train:]))
    return Problem(*(torch.stack(column) for column in zip(*parts, strict=True)))


def _draw(data: str, rows: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    kind, *options = data.split(":")
    if kind == "digits":
        features, labels = (torch.as_tensor(a) for a in load_digits(return_X_y=True))
        order = torch.randperm(len(labels), generator=generator)
        return features.float()[order], labels[order]
    classes = int(options[0])
    if kind == "spiral":
        y = torch.randint(0, classes, (rows,), generator=generator)
        radius = torch.rand(rows, generator=generator) ** 0.5
        angle = 2 * math.pi * (y / classes + 0.8 * radius) + 0.05 * torch.randn(rows, generator=generator)
        return torch.stack([radius * angle.cos(), radius * angle.sin()], 1) * 3, y
    size, spread = (16, float(options[1])) if kind == "embed" else (int(options[1]), float(options[2]))
    centres = torch.randn(classes, size, generator=generator) * spread
    y = torch.randint(0, classes, (rows,), generator=generator)
    x = centres[y] + torch.randn(rows, size, generator=generator)
    if kind == "gauss":
        return x, y
    hidden = torch.randn(size, 256, generator=generator) / 4
    return (x @ hidden + 0.3 * torch.randn(rows, 256, generator=generator)).relu(), y


@lru_cache(maxsize=64)
def transition(noise: str, classes: int) -> pm.Transition:
    """Return the transition matrix that the words describe."""
    kind, _, value = noise.partition(":")
    if kind == "pair":
        return pm.Transition.pair(classes, float(value))
    if kind == "sym":
        return pm.Transition.symmetric(classes, float(value))
    identity = torch.eye(classes, dtype=torch.float64)
    if kind == "asym":
        matrix = identity.clone()
        for i in range(0, classes - 1, 2):
            matrix[i, i], matrix[i, i + 1] = 1 - float(value), float(value)
        return pm.Transition(matrix)
    draws = torch.rand(classes, classes, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    random = draws.clamp_min(1e-9).log().square()
    random = random / random.sum(1, keepdim=True)
    low, high = 0.0, 1.0
    for _ in range(60):  # the condition number grows with the share of the random matrix, until it is singular
        share = (low + high) / 2
        mixed = share * random + (1 - share) * identity
        low, high = (low, share) if torch.linalg.cond(mixed) > float(value) else (share, high)
    mixed = low * random + (1 - low) * identity
    return pm.Transition(mixed / mixed.sum(1, keepdim=True))


class StackedNetwork(torch.nn.Module):
    """One network for each seed, with ReLU between its layers, initialised as `nn.Linear` is, from the seed alone.

    Args:
        seeds: The seeds.
        widths: The number of inputs, of units in each hidden layer, and of outputs.
    """

    def __init__(self, seeds: tuple[int, ...], widths: tuple[int, ...]) -> None:
        super().__init__()
        generators = [torch.Generator().manual_seed(10_000 + seed) for seed in seeds]
        self.layers = torch.nn.ParameterList()
        for inputs, outputs in itertools.pairwise(widths):
            for rows in (inputs, 1):  # the weights, then the bias
                draws = [torch.rand(rows, outputs, generator=g) for g in generators]
                self.layers.append(torch.nn.Parameter((torch.stack(draws) * 2 - 1) / inputs**0.5))

    def forward(self, x: Tensor) -> Tensor:
        """(S, B, inputs) to (S, B, outputs)."""
        layers = list(self.layers)
        for place in range(0, len(layers), 2):
            x = torch.baddbmm(layers[place + 1], x.relu() if place else x, layers[place])
        return x


def hidden_widths(network: str) -> tuple[int, ...]:
    """Return the widths of "linear", "64" or "256x256"."""
    return () if network == "linear" else tuple(int(width) for width in network.split("x"))
