"""Train lanes on the rows outside of their fold, and judge them on the rows of their fold, whose labels are noisy too.

The rows of its own fold show when a lane begins to learn wrong labels by heart: then its loss on them rises. So the
weights that were best there are kept. That needs no clean label, because a posterior that fits noisy labels best is
that of noisy labels, whatever the noise is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from postmax.errors import DivergedError
from postmax.estimation.crossfit import folds_of
from postmax.estimation.threads import one_thread
from postmax.losses import Loss
from postmax.progress import Stage, tell
from postmax.tabular.networks import LaneNetwork, make

_MOST_BATCH, _FEWEST_BATCH, _BATCHES = 256, 16, 8
_WARM_UP = 0.1
# Networks are judged after 2^(-i/2) of all steps. They stop if so many judgements in a row were worse than the best.
_JUDGEMENTS, _PATIENCE = 14, 4
# Held-out rows are judged in parts, so that their pieces do not fill the memory.
_NUMBERS_AT_ONCE = 2**24
# Products of numbers in a step, below which one thread is enough.
_SMALL_STEP = 2**27


@dataclass(frozen=True)
class Rows:
    """The training rows.

    Attributes:
        features: float32 (N, d).
        labels: int64 (N,).
        weights: float32 (N,), with mean 1.
        num_classes: K.
    """

    features: Tensor
    labels: Tensor
    weights: Tensor
    num_classes: int

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Folds:
    """Which rows each lane is trained on, and which are held out.

    Attributes:
        train: (L, n).
        held: (L, m). A fold with a row less than others has its first row twice.
        count: How many folds all rows are divided into; L is a multiple of it.
    """

    train: Tensor
    held: Tensor
    count: int

    @classmethod
    def make(cls, labels: Tensor, count: int, repeats: int, generator: torch.Generator) -> Folds:
        """Divide rows into folds, and again in another way for each further repeat. Labels are spread evenly."""
        folds = [folds_of(labels, generator, count) for _ in range(repeats)]
        train = [(fold != number).nonzero()[:, 0] for fold in folds for number in range(count)]
        held = [(fold == number).nonzero()[:, 0] for fold in folds for number in range(count)]
        shortest, longest = min(map(len, train)), max(map(len, held))
        # Which rows are left out to make all lanes equally long is random, so that not all of them lack the last label.
        cut = [rows[torch.randperm(len(rows), generator=generator)[:shortest]] for rows in train]
        filled = [torch.cat([rows, rows[:1].expand(longest - len(rows))]) for rows in held]
        return cls(torch.stack(cut), torch.stack(filled), count)


class Settings(NamedTuple):
    """How one candidate is trained.

    Attributes:
        kind: The network, a name in `postmax.tabular.networks.BUILDERS`.
        rate: The highest learning rate.
        decay: The weight decay, decoupled from the gradient.
        steps: The number of steps, if an epoch has fewer than that.
        epochs: The least number of epochs.
        width: The width of hidden layers.
        dropout: The share of hidden layers that is dropped.
        batch: Rows in a batch; None to choose it by the number of rows.
    """

    kind: str
    rate: float
    decay: float
    steps: int = 300
    epochs: int = 10
    width: int = 64
    dropout: float = 0.3
    batch: int | None = None

    @property
    def shape(self) -> tuple[object, ...]:
        """What lanes of one stack must have in common: all but the decay."""
        return self._replace(decay=0.0)


@dataclass(frozen=True)
class Trained:
    """Candidates of the same shape after training.

    Attributes:
        settings: The candidates, C of them.
        network: C·L lanes with their best weights, the lanes of the first candidate first.
        label_posterior: float64 (C, N, K), the posterior of the label for each row, by lanes that did not see the row.
        posterior: The same for the true class, as the loss defines it.
        scores: (C,) the mean of −log P(label) out of sample.
        history: For each judgement the step, and the score of each candidate.
        epochs: How many epochs were trained.
    """

    settings: tuple[Settings, ...]
    network: LaneNetwork
    label_posterior: Tensor
    posterior: Tensor
    scores: Tensor
    history: tuple[tuple[int, tuple[float, ...]], ...]
    epochs: int


def train(
    settings: Sequence[Settings],
    rows: Rows,
    folds: Folds,
    loss: Loss,
    seed: int,
    *,
    stop_early: bool = True,
    start: LaneNetwork | None = None,
) -> Trained:
    """Train candidates of the same shape, all folds of all of them side by side.

    Args:
        settings: The candidates.
        rows: The training rows.
        folds: The rows of the lanes.
        loss: The loss, with reduction "none".
        seed: The seed of initial weights, order and dropout.
        stop_early: Keep the weights that were best on held-out rows; otherwise those of the last step.
        start: Networks whose weights are where training starts, if they have the same shape.

    Raises:
        DivergedError: If all candidates give numbers that are not finite.
    """
    training = _Training(settings, rows, folds, loss, seed, stop_early, start)
    with one_thread(training.is_small):
        return training.run()


class _Training:
    """The state of one training."""

    def __init__(
        self,
        settings: Sequence[Settings],
        rows: Rows,
        folds: Folds,
        loss: Loss,
        seed: int,
        stop_early: bool,
        start: LaneNetwork | None,
    ) -> None:
        first = settings[0]
        self.settings, self.rows, self.folds, self.loss, self.stop_early = (
            tuple(settings),
            rows,
            folds,
            loss,
            stop_early,
        )
        self.generator = torch.Generator().manual_seed(seed)
        lanes, n = folds.train.shape
        hidden = {} if first.kind in ("linear", "additive") else {"width": first.width, "dropout": first.dropout}
        total = lanes * len(settings)
        self.network = make(first.kind, total, rows.features, rows.num_classes, self.generator, **hidden)
        if start is not None and _shapes(start) == _shapes(self.network):
            self.network.load_state_dict(start.state_dict())
        self.network.generator = self.generator
        self.decay = torch.tensor([one.decay for one in settings]).repeat_interleave(lanes)[:, None, None]
        self.batch = min(n, first.batch or min(_MOST_BATCH, max(_FEWEST_BATCH, n // _BATCHES)))
        self.batches = n // self.batch
        self.epochs = max(first.epochs, math.ceil(first.steps / self.batches))
        self.rate = first.rate
        # fused, because a step of a small network is mostly overhead
        self.optimiser = torch.optim.Adam(self.network.parameters(), lr=first.rate, fused=True)
        self.weights = [p for name, p in self.network.named_parameters() if name.endswith("weight")]
        shape = (len(settings), len(rows), rows.num_classes)
        self.label_posterior, self.posterior = (torch.zeros(shape, dtype=torch.float64) for _ in range(2))
        self.scores = torch.full((len(settings),), torch.inf, dtype=torch.float64)
        self.best = {name: value.clone() for name, value in self.network.state_dict().items()}
        self.history: list[tuple[int, tuple[float, ...]]] = []

    @property
    def is_small(self) -> bool:
        """Whether a step is so short that a second thread would slow it down, much so on a busy machine."""
        return self.batch * sum(weight[0].numel() for weight in self.weights) * self.network.lanes < _SMALL_STEP

    def run(self) -> Trained:
        total = self.epochs * self.batches
        judged = {math.ceil(total * 2 ** (-i / 2)) for i in range(_JUDGEMENTS)}
        step, worse, epochs = 0, 0, 0
        for epochs in range(1, self.epochs + 1):
            tell(Stage(f"training {self.settings[0].kind} networks", epochs - 1, self.epochs, "epochs"))
            for chosen in self._order().split(self.batch, 1):
                self._step(chosen, step / total)
                step += 1
                if step in judged:
                    worse = 0 if self._judge(step, last=step == total) else worse + 1
            if self.stop_early and worse >= _PATIENCE:
                break
        tell(Stage(f"training {self.settings[0].kind} networks", self.epochs, self.epochs, "epochs"))
        if not self.scores.isfinite().any():
            raise DivergedError(
                f"the training of {self.settings[0].kind} networks diverged: their loss on held-out rows is not "
                "finite. Try a smaller learning_rate."
            )
        self.network.load_state_dict(self.best)
        self.network.eval()
        self.network.generator = None
        self.network.requires_grad_(False)
        return Trained(
            self.settings,
            self.network,
            self.label_posterior,
            self.posterior,
            self.scores,
            tuple(self.history),
            epochs,
        )

    def _order(self) -> Tensor:
        """Return the rows of an epoch, (lanes, batches · batch), in a new random order for each fold."""
        train = self.folds.train
        order = torch.rand(train.shape, generator=self.generator).argsort(1)[:, : self.batches * self.batch]
        return train.gather(1, order).repeat(len(self.settings), 1)

    def _step(self, chosen: Tensor, share: float) -> None:
        waxing = min(1.0, (share + 1e-3) / _WARM_UP)
        waning = 0.5 * (1 + math.cos(math.pi * max(0.0, share - _WARM_UP) / (1 - _WARM_UP)))
        rate = self.rate * waxing * waning
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.network.train()
        logits = self.network(self.rows.features[chosen])
        losses = self.loss(logits.flatten(0, 1), self.rows.labels[chosen].flatten()).view_as(chosen)
        self.optimiser.zero_grad()
        # Lanes do not share weights, so the gradient of the sum over lanes is that of each lane.
        (losses * self.rows.weights[chosen]).mean(1).sum().backward()
        self.optimiser.step()
        with torch.no_grad():
            for weight in self.weights:
                weight.mul_(1 - rate * self.decay)

    @torch.no_grad()
    def _judge(self, step: int, *, last: bool) -> bool:
        """Judge all lanes on their held-out rows. Return whether a candidate is better than before."""
        self.network.eval()
        held, lanes = self.folds.held, len(self.folds.held)
        size = max(1, _NUMBERS_AT_ONCE // (self.network.lanes * max(self.network.inputs, self.settings[0].width)))
        some = [rows.repeat(len(self.settings), 1) for rows in held.split(size, 1)]
        logits = torch.cat([self.network(self.rows.features[rows]) for rows in some], 1).double()
        found = []
        for reading in (self.loss.label_posterior, self.loss.posterior):
            parts = reading(logits.flatten(0, 1)).view(len(self.settings), lanes, held.shape[1], -1)
            found.append(self._in_row_order(parts))
        labels, rows = self.rows.labels, torch.arange(len(self.rows))
        likelihood = found[0][:, rows, labels].clamp_min(1e-12).log()
        scores = -(likelihood * self.rows.weights).mean(1)
        self.history.append((step, tuple(scores.tolist())))
        better = scores < self.scores if self.stop_early else scores.isfinite() & torch.tensor(True)
        self.scores[better] = scores[better]
        self.label_posterior[better], self.posterior[better] = found[0][better], found[1][better]
        by_lane = better.repeat_interleave(lanes)
        for name, parameter in self.network.named_parameters():
            self.best[name][by_lane] = parameter[by_lane]
        return bool(better.any()) or last

    def _in_row_order(self, parts: Tensor) -> Tensor:
        """Return (C, N, K) from the values (C, L, m, K) of held-out rows: the mean over repeats."""
        total = torch.zeros(len(parts), len(self.rows), parts.shape[-1], dtype=parts.dtype)
        for start in range(0, parts.shape[1], self.folds.count):
            lanes = slice(start, start + self.folds.count)
            one = torch.zeros_like(total)
            one[:, self.folds.held[lanes].flatten()] = parts[:, lanes].flatten(1, 2)
            total += one
        return total / (parts.shape[1] // self.folds.count)


def _shapes(network: LaneNetwork) -> list[tuple[int, ...]]:
    return [tuple(value.shape) for value in network.state_dict().values()]
