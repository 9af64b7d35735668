"""Several small networks as one: the folds of a cross-fit are trained together by batched matrix products."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from postmax.estimation.threads import SMALL_NETWORK, one_thread
from postmax.progress import Stage, tell

_HIDDEN, _DROPOUT, _RATE, _DECAY, _EXTRA_RATE = 128, 0.5, 3e-3, 1.0, 1e-2
_EPOCHS, _MIN_STEPS, _BATCH = 20, 600, 256


class Copies(nn.Module):
    """`copies` independent networks d → 128 → K on standardised features."""

    def __init__(self, copies: int, features: Tensor, num_classes: int, generator: torch.Generator) -> None:
        super().__init__()
        self.generator = generator
        d = features.shape[1]
        self.mean, std = features.mean(0), features.std(0)
        # A constant column carries no information, and rounding errors in its deviation must not be amplified.
        self.scale = torch.where(std > 1e-6 * features.abs().amax(0).clamp_min(1e-30), 1 / std, 0.0)
        self.inner = nn.Parameter(torch.randn(copies, d, _HIDDEN, generator=generator) * math.sqrt(2 / d))
        self.inner_bias = nn.Parameter(torch.zeros(copies, 1, _HIDDEN))
        outer = torch.randn(copies, _HIDDEN, num_classes, generator=generator)
        self.outer = nn.Parameter(outer * 0.1 / math.sqrt(_HIDDEN))
        self.outer_bias = nn.Parameter(torch.zeros(copies, 1, num_classes))

    @property
    def size(self) -> int:
        """How many parameters one of the copies has."""
        return sum(parameter.numel() for parameter in self.parameters()) // len(self.inner)

    def forward(self, rows: Tensor) -> Tensor:
        """Return logits (copies, B, K) of (copies, B, d) rows."""
        hidden = torch.relu(torch.baddbmm(self.inner_bias, (rows - self.mean) * self.scale, self.inner))
        if self.training:
            kept = torch.rand(hidden.shape, generator=self.generator) >= _DROPOUT
            hidden = hidden * kept / (1 - _DROPOUT)
        return torch.baddbmm(self.outer_bias, hidden, self.outer)


class Steps(NamedTuple):
    """How a training is divided: rows in a batch, batches in an epoch, and epochs."""

    batch: int
    batches: int
    epochs: int


def steps_for(rows: int) -> Steps:
    """Return how networks are trained on this many rows."""
    batch = min(_BATCH, max(8, rows // 8), rows)
    batches = rows // batch
    return Steps(batch, batches, max(_EPOCHS, math.ceil(_MIN_STEPS / batches)))


def train(
    network: Copies,
    features: Tensor,
    labels: Tensor,
    rows: Tensor,
    loss: Callable[[Tensor, Tensor], Tensor],
    extra: Iterable[nn.Parameter] = (),
    *,
    what: str = "training networks",
    most_steps: int | None = None,
) -> None:
    """Train copy c on the rows `rows[c]`. After each epoch it tells how far it is.

    Args:
        network: The copies.
        features: (N, d).
        labels: (N,) class indices.
        rows: (copies, n) the rows of each copy.
        loss: A function of logits (B·copies, K) and labels.
        extra: Parameters of the loss that are trained too, without weight decay.
        what: What the work is called when its progress is told.
        most_steps: Stop after this many steps, to measure how long they take.
    """
    copies, n = rows.shape
    batch, batches, epochs = steps_for(n)
    optimiser = torch.optim.AdamW(network.parameters(), lr=_RATE, weight_decay=_DECAY)
    for parameter in extra:
        optimiser.add_param_group({"params": [parameter], "lr": _EXTRA_RATE, "weight_decay": 0.0})
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, [group["lr"] for group in optimiser.param_groups], total_steps=epochs * batches, pct_start=0.2
    )
    network.train()
    with one_thread(network.size < SMALL_NETWORK):
        for epoch in range(epochs):
            order = torch.stack([torch.randperm(n, generator=network.generator) for _ in range(copies)])
            for step, chosen in enumerate(order[:, : batches * batch].split(batch, 1), epoch * batches):
                if step == most_steps:
                    return
                index = rows.gather(1, chosen)
                optimiser.zero_grad()
                # The mean over all copies divides the gradient of each copy by their number: it is multiplied again.
                (copies * loss(network(features[index]).flatten(0, 1), labels[index].flatten())).backward()
                optimiser.step()
                schedule.step()
            tell(Stage(what, epoch + 1, epochs, "epochs"))
    network.eval()
