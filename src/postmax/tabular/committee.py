"""Candidates, and the committee that is made of them: the better they foresee noisy labels, the more they count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import torch
from torch import Tensor, nn

from postmax.estimation.threads import one_thread
from postmax.losses import Loss
from postmax.tabular.networks import LaneNetwork
from postmax.tabular.training import Folds, Rows, Settings, Trained, train

_ROWS_AT_ONCE = 2**22
# Products of numbers, below which one thread is enough.
_SMALL = 2**29
_STEPS = 100
# As if each candidate had foreseen one label more than it has.
_PRIOR = 1.0
# A candidate with less weight than this is not kept.
_LEAST = 0.01


class Committee(nn.Module):
    """Stacks of networks whose posteriors are averaged, computed in float64.

    In float64 a row gets the same probabilities, whatever rows come with it.

    Args:
        networks: Modules from rows (B, d) to logits (S, B, K), S lanes each.
        weights: The weights (S,) of their lanes; all of them together have the sum 1.
        loss: It says what logits mean.
    """

    def __init__(self, networks: Sequence[nn.Module], weights: Sequence[Tensor], loss: Loss) -> None:
        super().__init__()
        self.networks = nn.ModuleList(networks)
        self.loss = loss
        for number, weight in enumerate(weights):
            self.register_buffer(f"weight_{number}", weight)
        self.double().eval()

    @property
    def weights(self) -> list[Tensor]:
        """The weights of the lanes of each stack."""
        return [self.get_buffer(f"weight_{number}") for number in range(len(self.networks))]

    def posterior(self, features: Tensor) -> Tensor:
        """Return P(true class | x), float64 (N, K), as the loss defines it."""
        return self._in_parts(features)[0]

    def label_posterior(self, features: Tensor) -> Tensor:
        """Return P(label as given | x), float64 (N, K)."""
        return self._in_parts(features)[1]

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Return both posteriors, of the true class and of the label, for float64 features (B, d)."""
        of_class, of_label = torch.zeros(()), torch.zeros(())
        for network, weight in zip(self.networks, self.weights, strict=True):
            logits = network(features)
            shares, flat = weight[:, None, None], logits.flatten(0, 1)
            of_class = of_class + (shares * self.loss.posterior(flat).view(logits.shape)).sum(0)
            of_label = of_label + (shares * self.loss.label_posterior(flat).view(logits.shape)).sum(0)
        return of_class, of_label

    @torch.no_grad()
    def _in_parts(self, features: Tensor) -> tuple[Tensor, Tensor]:
        weights = sum(p.numel() for p in self.parameters())
        size = max(1, _ROWS_AT_ONCE // max(1, weights // 16 + 1), 64)
        with one_thread(weights * len(features) < _SMALL):
            of_class, of_label = zip(*(self(rows) for rows in features.double().split(size)), strict=True)
        return torch.cat(of_class), torch.cat(of_label)


@dataclass(frozen=True)
class Fitted:
    """A committee, and what it says about the rows it was trained on.

    Attributes:
        committee: The networks.
        label_posterior: float64 (N, K), the posterior of the label, by networks that did not see the row.
        posterior: The same for the true class, as the loss defines it.
        trained: All candidates that were trained, by shape.
        shares: The weight of each candidate, in the order of `trained`.
    """

    committee: Committee
    label_posterior: Tensor
    posterior: Tensor
    trained: tuple[Trained, ...]
    shares: tuple[float, ...]

    @property
    def score(self) -> float:
        """The smallest −log P(label) out of sample that a candidate reached."""
        return min(float(one.scores.min()) for one in self.trained)


def fit_committee(
    settings: Sequence[Settings],
    rows: Rows,
    folds: Folds,
    loss: Loss,
    seed: int,
    *,
    stop_early: bool = True,
    start: Sequence[LaneNetwork] = (),
) -> Fitted:
    """Train all candidates, and weigh them by how well they foresee the labels of rows that they did not see.

    Args:
        settings: The candidates. Those of the same shape follow one another.
        rows: The training rows.
        folds: The rows of the lanes.
        loss: The loss, with reduction "none".
        seed: The seed of everything random.
        stop_early: Keep the weights that were best on held-out rows.
        start: A stack of networks for each shape, from which training goes on.
    """
    shapes = [list(group) for _, group in groupby(settings, key=lambda one: one.shape)]
    trained = tuple(
        train(
            group,
            rows,
            folds,
            loss,
            seed + number,
            stop_early=stop_early,
            start=start[number] if start else None,
        )
        for number, group in enumerate(shapes)
    )
    out_of_sample = torch.cat([one.label_posterior for one in trained])
    chances = out_of_sample[:, torch.arange(len(rows)), rows.labels]
    shares = mixture(chances, rows.weights.double())
    shares = torch.where(shares < _LEAST, 0.0, shares)
    shares = shares / shares.sum()
    networks, weights, place = [], [], 0
    lanes = len(folds.train)
    for one in trained:
        own = shares[place : place + len(one.settings)]
        place += len(one.settings)
        if own.sum() > 0:
            networks.append(one.network)
            weights.append((own / lanes).repeat_interleave(lanes))
    mean = shares[:, None, None]
    return Fitted(
        Committee(networks, weights, loss),
        (mean * out_of_sample).sum(0),
        (mean * torch.cat([one.posterior for one in trained])).sum(0),
        trained,
        tuple(shares.tolist()),
    )


def mixture(chances: Tensor, weights: Tensor) -> Tensor:
    """Return the weights of a mixture that make the labels most likely, by expectation–maximisation.

    Args:
        chances: (M, N), the probability that each candidate gave to each label.
        weights: (N,) the weights of the rows.

    Example:
        >>> mixture(torch.tensor([[0.9, 0.9, 0.9], [0.5, 0.5, 0.5]]), torch.ones(3))
        tensor([0.6720, 0.3280])
    """
    shares = torch.full((len(chances),), 1 / len(chances), dtype=chances.dtype)
    for _ in range(_STEPS):
        parts = shares[:, None] * chances
        parts = parts / parts.sum(0).clamp_min(1e-300) * weights
        shares = (parts.sum(1) + _PRIOR) / (weights.sum() + _PRIOR * len(chances))
    return shares
