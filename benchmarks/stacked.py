"""Many seeds of one small experiment at once: scikit-learn data, an unregularised two-layer MLP, noisy labels.

The networks of all seeds are stacked and trained by batched matrix products. SGD acts elementwise and every seed has
its own split, noise, initialisation and batch order, so this equals training them one after the other, only faster.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from problems import StackedNetwork
from sklearn.datasets import load_breast_cancer, load_digits, make_blobs
from torch import Tensor

import postmax as pm

HIDDEN, EPOCHS, BATCH, LEARNING_RATE, MOMENTUM = 32, 100, 32, 0.02, 0.9
HELD_OUT = 0.2
DATASETS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "digits": lambda: load_digits(return_X_y=True),
    "100 blobs": lambda: make_blobs(3000, n_features=24, centers=100, cluster_std=4.0, random_state=0)[:2],
}


@dataclass(frozen=True)
class Splits:
    """Stacked over seeds: standardised features, noisy training labels, clean held-out labels."""

    train_x: Tensor  # (S, N, features)
    train_y: Tensor  # (S, N)
    held_out_x: Tensor  # (S, M, features)
    held_out_y: Tensor  # (S, M)
    noise_rate: float
    sha256: str


@lru_cache(maxsize=8)
def load(dataset: str, noise: pm.Transition, seeds: tuple[int, ...], validation: bool) -> Splits:
    """One split for each seed: 20 % test, or with `validation` 20 % of the other 80 %, and the test part unseen."""
    features, labels = (torch.as_tensor(a) for a in DATASETS[dataset]())
    parts = []
    for seed in seeds:
        generator = torch.Generator().manual_seed(seed)
        order = torch.randperm(len(labels), generator=generator)
        cut = round(HELD_OUT * len(order))
        held_out, train = order[:cut], order[cut:]
        if validation:
            cut = round(HELD_OUT * len(train))
            held_out, train = train[:cut], train[cut:]
        x = features[train].float()
        mean, std = x.mean(0), x.std(0).clamp_min(1e-3)
        noisy = torch.multinomial(noise.matrix[labels[train]], 1, generator=generator).squeeze(1)
        clean_part = (features[held_out].float() - mean) / std
        parts.append(((x - mean) / std, noisy, clean_part, labels[held_out], labels[train]))
    train_x, train_y, held_x, held_y, true_y = (torch.stack(column) for column in zip(*parts, strict=True))
    digest = hashlib.sha256(train_y.to(torch.uint8).numpy().tobytes()).hexdigest()
    return Splits(train_x, train_y, held_x, held_y, float((train_y != true_y).double().mean()), digest)


def accuracies(
    loss: pm.FPMLLoss, dataset: str, noise: pm.Transition, seeds: tuple[int, ...], *, validation: bool = False
) -> Tensor:
    """The held-out accuracy in per cent after the last epoch, one for each seed. `loss` has reduction "none"."""
    data = load(dataset, noise, seeds, validation)
    model = StackedNetwork(seeds, (data.train_x.shape[2], HIDDEN, noise.num_classes))
    optimiser = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, EPOCHS)
    generators = [torch.Generator().manual_seed(20_000 + seed) for seed in seeds]
    rows = data.train_x.shape[1]
    for _ in range(EPOCHS):
        order = torch.stack([torch.randperm(rows, generator=g) for g in generators])
        for index in order.split(BATCH, dim=1):
            x = data.train_x.gather(1, index.unsqueeze(-1).expand(-1, -1, data.train_x.shape[2]))
            y = data.train_y.gather(1, index)
            optimiser.zero_grad()
            logits = model(x)
            losses = torch.where(logits.isfinite().all(-1).flatten(), loss(_finite(logits), y.flatten()), 0.0)
            (losses.sum() / index.shape[1]).backward()
            optimiser.step()
        schedule.step()
    with torch.no_grad():
        logits = model(data.held_out_x)
        predicted = loss.predict(_finite(logits)).view_as(data.held_out_y)
        return (predicted == data.held_out_y).double().mean(1) * 100


def _finite(logits: Tensor) -> Tensor:
    """(S·B, K) with zeros where a diverged network gives NaN: its seed is lost, the others must go on."""
    return logits.flatten(0, 1).nan_to_num(0.0, 1e4, -1e4)
