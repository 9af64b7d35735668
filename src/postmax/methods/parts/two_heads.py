"""Networks with two heads: the primary head learns from trusted labels alone, the pseudo head from guesses too.

Wrong guesses then reach the shared features a little, and the primary head, which makes the guesses, not at all. It is
how the networks of ProMix learn, once rows are selected.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from postmax.data import Batch, fmix, mixup
from postmax.losses import Loss
from postmax.methods.method import Setup
from postmax.methods.parts.debiasing import margins
from postmax.methods.parts.features import with_features
from postmax.methods.parts.targets import as_labels, one_hot, sharpen
from postmax.models import Network

_PRIMARY, _PSEUDO = 0, 1
_FMIX_ALPHA = 1.0
# FMix takes features and images.
_FMIX_DIMENSIONS = (2, 4)
# One row cannot be mixed with another, and batch normalisation cannot use it.
_FEWEST = 2

Heads = tuple[Tensor, Tensor]
"""The logits of the primary head and of the pseudo head."""


@dataclass(frozen=True)
class Learner:
    """A network with its two heads, and the class priors of its predictions for selected and for other rows.

    Attributes:
        network: The network; its last layer is the primary head.
        pseudo_head: The second head, which takes the same features.
        selected_prior: The running mean of the posteriors of selected rows, (K,).
        other_prior: The same of all other rows.
    """

    network: Network
    pseudo_head: nn.Module
    selected_prior: Tensor
    other_prior: Tensor

    @classmethod
    def make(cls, setup: Setup, method: str, place: int) -> Learner:
        """Return a new learner, with uniform priors.

        Args:
            setup: What the loop offers.
            method: The name of the method, for messages.
            place: The number of the learner, which no other learner of the method has.

        Raises:
            InputError: If the network does not say what its features are.
        """
        network, classes = with_features(setup.network(), method), setup.train.num_classes
        uniform = torch.full((classes,), 1 / classes)
        return cls(
            network,
            setup.module(f"pseudo head {place}", lambda: nn.Linear(network.fc.in_features, classes)),
            setup.state(f"prior of selected rows {place}", uniform),
            setup.state(f"prior of other rows {place}", uniform),
        )

    def heads(self, inputs: Tensor) -> Heads:
        """Return what both heads say about inputs (B, …)."""
        features = self.network.features(inputs)
        return self.network.fc(features), self.pseudo_head(features)


class Selection(NamedTuple):
    """The rows of a batch that are trained as labelled ones, and what their labels are.

    Attributes:
        rows: A mask (B,).
        labels: The labels (B,): guessed ones where they were guessed, and else those that are given.
        guessed: A mask (B,) of the rows whose labels were guessed.
    """

    rows: Tensor
    labels: Tensor
    guessed: Tensor


class Weights(NamedTuple):
    """How much the parts of the objective count in an epoch.

    Attributes:
        extra: The weight of strong views and mixtures.
        guesses: The weight of guesses in the training of the pseudo head.
    """

    extra: float
    guesses: float


class Fit(NamedTuple):
    """Logits that shall fit targets.

    Attributes:
        logits: (B, K), at least one row.
        targets: Distributions of the true class, (B, K).
        weight: How much the mean of their losses counts.
    """

    logits: Tensor
    targets: Tensor
    weight: float


@dataclass(frozen=True)
class TwoHeads:
    """The objective of a learner for one batch.

    Attributes:
        debiasing: The power of the priors, by which classes are preferred.
        temperature: The temperature at which guesses are sharpened.
        alpha: The parameter of mixup's Beta distribution.
        shared_mixtures: Whether both heads learn from the same mixtures.
    """

    debiasing: float
    temperature: float
    alpha: float
    shared_mixtures: bool

    def objective(
        self,
        loss: Loss,
        learner: Learner,
        batch: Batch,
        weak: Heads,
        selection: Selection,
        guesses: Tensor,
        weights: Weights,
        generator: torch.Generator,
    ) -> Tensor | None:
        """Return what a learner minimises, a scalar; None if there is nothing to learn.

        Args:
            loss: The loss of the epoch.
            learner: The learner.
            batch: The rows, in a weak and a strong view.
            weak: What the learner says about the weak view.
            selection: The rows that are trained as labelled ones.
            guesses: The posteriors of the primary head without its preference for some classes, (B, K).
            weights: How much the parts of the objective count.
            generator: The source of random numbers of the mixtures.
        """
        rows, others = selection.rows, ~selection.rows
        learns = bool(rows.any())
        learns_guesses = weights.guesses > 0 and bool(others.any())
        if not learns and not learns_guesses:
            return None
        strong = learner.heads(batch.views[1])
        values = []
        if learns:
            targets = one_hot(selection.labels[rows], guesses.shape[1])
            fits = [
                Fit(logits[rows], targets, weight)
                for heads, weight in ((weak, 1.0), (strong, weights.extra))
                for logits in heads
            ]
            fits += self._mixtures(learner, batch.inputs[rows], targets, weights.extra, generator)
            values.append(self._misfit(loss, fits, learner.selected_prior))
        if learns_guesses:
            targets = sharpen(guesses[others], self.temperature)
            fits = [
                Fit(heads[_PSEUDO][others], targets, weights.guesses * weight)
                for heads, weight in ((weak, 1.0), (strong, weights.extra))
            ]
            values.append(self._misfit(loss, fits, learner.other_prior))
        return torch.stack(values).sum()

    def _mixtures(
        self, learner: Learner, inputs: Tensor, targets: Tensor, weight: float, generator: torch.Generator
    ) -> list[Fit]:
        """Return mixtures of selected rows; there are none if there are not two rows to mix."""
        if len(inputs) < _FEWEST:
            return []
        fits = []
        for places in ((_PRIMARY, _PSEUDO),) if self.shared_mixtures else ((_PRIMARY,), (_PSEUDO,)):
            mixtures = [mixup(inputs, targets, self.alpha, generator, at_least_half=True)]
            if inputs.dim() in _FMIX_DIMENSIONS:
                mixtures.append(fmix(inputs, targets, _FMIX_ALPHA, generator))
            for mixed in mixtures:
                logits = learner.heads(mixed.inputs)
                fits += [Fit(logits[place], mixed.targets, weight) for place in places]
        return fits

    def _misfit(self, loss: Loss, fits: list[Fit], prior: Tensor) -> Tensor:
        """Return the weighted sum of the mean losses of all fits, with the margins of a prior."""
        # One call for all fits takes a fraction of the time of a call for each.
        logits, targets = (torch.cat(parts) for parts in zip(*(fit[:2] for fit in fits), strict=True))
        shares = torch.tensor([fit.weight / len(fit.logits) for fit in fits for _ in fit.logits])
        losses = loss(logits + margins(loss, logits, prior, self.debiasing), as_labels(loss, targets))
        value: Tensor = (losses * shares.to(losses)).sum()
        return value
