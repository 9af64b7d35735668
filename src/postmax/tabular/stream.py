"""Learning from rows that come in parts, in one pass."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from postmax.errors import InputError
from postmax.estimation import TransitionEstimate
from postmax.losses import Loss
from postmax.tabular.committee import Committee
from postmax.tabular.learning import IN_THE_LOSS, FirstFit, Learnt, LossChoice, MadeLoss, estimated_noise
from postmax.tabular.networks import LaneNetwork, make
from postmax.tabular.noise import without_noise
from postmax.tabular.training import Rows, Settings
from postmax.transition import Transition

_SEEDS, _BATCH = 5, 32
# The noise is estimated from so many rows at most, the last ones, and from no fewer than so many for each class.
_RECENT, _FEWEST = 2000, 20


@dataclass
class Stream:
    """Networks that see each row once, with what they said about the last rows before they saw their labels.

    Attributes:
        networks: Stacks of networks.
        weights: The weights of their lanes in the committee.
        optimisers: One for each stack; it moves the networks at a constant rate.
        batch: Rows in a batch.
        classes: The names of the classes.
        loss: The loss.
        noise: What the user says about the noise.
        generator: The order of rows, and dropout.
        recent: (n, K), the posteriors of the label for the last rows.
        labels: (n,), their labels.
        passes: How many parts were learnt from.
    """

    networks: list[LaneNetwork]
    weights: list[Tensor]
    optimisers: list[torch.optim.Optimizer]
    batch: int
    classes: tuple[Any, ...]
    loss: LossChoice
    noise: Transition | str | None
    generator: torch.Generator
    recent: Tensor
    labels: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.int64))
    passes: int = 0

    @classmethod
    def start(
        cls,
        settings: Settings,
        features: Tensor,
        classes: tuple[Any, ...],
        loss: LossChoice,
        noise: Transition | str | None,
        seed: int,
        committee: Committee | None = None,
    ) -> Stream:
        """Return networks that learn on: those of a committee, or new ones.

        Args:
            settings: How they are trained, and what new networks are.
            features: (N, d), rows whose quantiles new networks use.
            classes: The names of the classes.
            loss: The loss.
            noise: What the user says about the noise.
            seed: The seed of everything random.
            committee: Networks that have learnt already; None for new ones.
        """
        generator = torch.Generator().manual_seed(seed)
        if committee is None:
            linear = settings.kind in ("linear", "additive")
            hidden = {} if linear else {"width": settings.width, "dropout": settings.dropout}
            networks = [make(settings.kind, _SEEDS, features, len(classes), generator, **hidden)]
            weights = [torch.full((_SEEDS,), 1 / _SEEDS)]
        else:
            networks = [
                copy.deepcopy(network).float().requires_grad_(True)
                for network in committee.networks
                if isinstance(network, LaneNetwork)
            ]
            weights = committee.weights
        optimisers: list[torch.optim.Optimizer] = [
            torch.optim.AdamW(network.parameters(), lr=settings.rate, weight_decay=settings.decay)
            for network in networks
        ]
        recent = torch.zeros(0, len(classes), dtype=torch.float64)
        stream = cls(networks, weights, optimisers, settings.batch or _BATCH, classes, loss, noise, generator, recent)
        stream.passes = int(committee is not None)
        return stream

    def learn(self, rows: Rows, correction: str) -> Learnt:
        """Predict rows, and then go through them once.

        Raises:
            InputError: If the loss must know noise that is not given.
        """
        given = self.noise if isinstance(self.noise, Transition) else None
        in_the_loss = correction if correction in IN_THE_LOSS else None
        in_training = in_the_loss is not None or self.loss.needs_noise
        if in_training and given is None:
            raise InputError("partial_fit corrects the loss only for noise that is given: noise=matrix.")
        made = MadeLoss(self.loss, in_the_loss, given if in_training else None)
        loss = self.loss.make(made.correction, made.removed)
        before = self._committee(loss).label_posterior(rows.features)
        if self.passes:  # networks that have seen nothing say nothing
            self.recent = torch.cat([self.recent, before])[-_RECENT:]
            self.labels = torch.cat([self.labels, rows.labels])[-_RECENT:]
        self._pass(rows, loss)
        estimate = self._estimate()
        known = given if estimate is None else estimate.transition
        plain = self.loss.loss is None
        undone = known if correction != "none" and not in_training and plain else None
        fit = FirstFit(self._committee(loss), before, before, epochs=self.passes)
        return Learnt(fit, known, estimate, undone, without_noise(before, undone), made)

    def _estimate(self) -> TransitionEstimate | None:
        enough = len(self.labels) >= _FEWEST * len(self.classes)
        if not isinstance(self.noise, str) or not enough or len(self.labels.unique()) < 2:
            return None
        symmetric = self.noise == "symmetric"
        return estimated_noise(self.recent, self.labels, self.classes, symmetric=symmetric, seed=0)

    def _committee(self, loss: Loss) -> Committee:
        networks = [copy.deepcopy(network).eval().requires_grad_(False) for network in self.networks]
        return Committee(networks, self.weights, loss)

    def _pass(self, rows: Rows, loss: Loss) -> None:
        for network, optimiser in zip(self.networks, self.optimisers, strict=True):
            network.train()
            network.generator = self.generator
            order = torch.stack([torch.randperm(len(rows), generator=self.generator) for _ in range(network.lanes)])
            for chosen in order.split(self.batch, 1):
                logits = network(rows.features[chosen])
                losses = loss(logits.flatten(0, 1), rows.labels[chosen].flatten()).view_as(chosen)
                optimiser.zero_grad()
                # Lanes do not share weights, so the gradient of the sum over lanes is that of each lane.
                (losses * rows.weights[chosen]).mean(1).sum().backward()
                optimiser.step()
            network.generator = None
        self.passes += 1
