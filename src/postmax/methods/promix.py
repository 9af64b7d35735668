"""ProMix: two networks learn from as many clean rows as they can find, and two heads keep guesses apart from labels.

Wang, Xiao, Dong, Feng and Zhao, ProMix: Combating label noise via maximizing clean sample utility, IJCAI 2023.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from postmax.data import Batch, fmix, mixup
from postmax.losses import Loss
from postmax.methods.catalogue import register
from postmax.methods.facts import Facts, Preset
from postmax.methods.method import Epoch, Method, Setup, Step
from postmax.methods.parts.batch_losses import refuse_batch_loss
from postmax.methods.parts.clean_rows import smallest_of_each_class
from postmax.methods.parts.debiasing import follow_prior, margins, reweighted
from postmax.methods.parts.ensemble import MeanOutputs
from postmax.methods.parts.noise_rate import noise_rate
from postmax.methods.parts.options import check_number
from postmax.methods.parts.phases import phase_epochs
from postmax.methods.parts.posteriors import entropy
from postmax.methods.parts.ramps import ramp
from postmax.methods.parts.second_head import second_head
from postmax.methods.parts.targets import one_hot, sharpen

_VIEWS = ("weak", "strong")
_PRIMARY, _PSEUDO = 0, 1
_FMIX_ALPHA = 1.0
# FMix takes features and images.
_FMIX_DIMENSIONS = (2, 4)
# One row cannot be mixed with another, and batch normalisation cannot use it.
_FEWEST = 2
# The published shares of rows are about 0.9 of the share of right labels, which is estimated here.
_CAUTION = 0.9
_SHARES = (0.2, 0.95)
# The prior is published with a momentum of 0.9999 in 600 epochs of 196 steps: it remembers this share of the training.
_MEMORY = 10_000 / (600 * 196)

Heads = tuple[Tensor, Tensor]
"""The logits of the primary head and of the pseudo head."""


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


def matched(posterior: Tensor, labels: Tensor, confidence: float) -> Tensor:
    """Return a mask (B,) of the rows whose given label has a posterior above `confidence`.

    Example:
        >>> matched(torch.tensor([[0.95, 0.05], [0.05, 0.95]]), torch.tensor([0, 0]), 0.9)
        tensor([ True, False])
    """
    return posterior.gather(1, labels[:, None])[:, 0] > confidence


def agreed(first: Tensor, second: Tensor, confidence: float, wanted: Tensor, room: int) -> Tensor:
    """Return a mask (B,) of rows for which two posteriors (B, K) name the same class, both above `confidence`.

    Args:
        first: The posterior of one network.
        second: The posterior of the other network.
        confidence: How probable the class must be for both.
        wanted: A mask (B,) of the rows that may be taken.
        room: How many rows may be taken. The surest ones are taken first.

    Example:
        >>> first = torch.tensor([[0.9, 0.1], [0.99, 0.01], [0.1, 0.9]])
        >>> second = torch.tensor([[0.95, 0.05], [0.97, 0.03], [0.9, 0.1]])
        >>> agreed(first, second, 0.8, torch.ones(3, dtype=torch.bool), 1)
        tensor([False,  True, False])
    """
    (sure, its_class), (also_sure, other_class) = first.max(1), second.max(1)
    both = torch.minimum(sure, also_sure)
    candidates = wanted & (its_class == other_class) & (both > confidence)
    order = torch.where(candidates, both, -1.0).argsort(descending=True, stable=True)[: max(0, room)]
    taken = torch.zeros_like(candidates)
    taken[order] = True
    return taken & candidates


@dataclass(frozen=True)
class _Learner:
    """A network with its two heads, and the class priors of its predictions for selected and for other rows."""

    network: nn.Module
    pseudo_head: nn.Module
    selected_prior: Tensor
    other_prior: Tensor

    def heads(self, inputs: Tensor) -> Heads:
        features = self.network.features(inputs)  # type: ignore[operator]
        return self.network.fc(features), self.pseudo_head(features)  # type: ignore[operator]


class _Now(NamedTuple):
    """What is the same for all batches of an epoch.

    Attributes:
        loss: The loss of the epoch.
        extra: The weight of strong views and mixtures.
        guess_weight: The weight of guesses in the training of the pseudo head.
        guessing: Whether rows get guessed labels.
        generator: The source of random numbers of the mixtures.
    """

    loss: Loss
    extra: float
    guess_weight: float
    guessing: bool
    generator: torch.Generator


class ProMix(Method):
    """Train two networks on rows with small losses, on rows whose label they are sure of, and late on common guesses.

    1. For some epochs both networks are trained with the loss of the run on all labels.
    2. From then on, in each epoch, each network selects the rows of each class that have the smallest losses. In each
       batch it adds the rows whose given label it is sure of.
    3. Late in the training a batch is filled up with rows for which both networks are sure of the same class. This
       class becomes their label.
    4. Selected rows are trained in a weak and in a strong view, and as mixtures (mixup and FMix).
    5. Each network has two heads. The primary head learns from selected rows alone, and gives the answer. The pseudo
       head learns from them too and, early in the training, from guesses of the primary head for the other rows. So
       wrong guesses reach the shared features a little, and the primary head not at all.

    Networks prefer some classes. A running mean of the posteriors, π, describes that: guesses are p/π^d, and all losses
    are taken with margins (`parts/debiasing.py`) that let the network learn what π does not explain.

    f-PML_Pro of the f-PML paper is this method with an f-PML loss: `method=promix loss=sl-pml`.

    Args:
        setup: What the loop offers.
        warmup_epochs: How many epochs come before the first selection. By default the published share, 10 of 600.
        ramp_epochs: Over how many epochs the share of selected rows moves from `start_share` to `end_share`, and the
            weight of strong views and mixtures rises from 0 to 1. By default the published share, 50 of 600.
        pseudo_epochs: For how many epochs the pseudo head learns from guesses. Their weight rises up to then. By
            default the published share, 100 of 600.
        guess_epochs: In how many of the last epochs rows get guessed labels. By default the published share, 250 of
            600.
        start_share: The share of the rows that are selected for their small losses, at first. By default 0.9 of the
            share of right labels, which is estimated from the training rows, but from 0.2 to 0.95.
        end_share: The same share after the ramp; by default `start_share`.
        confidence: How probable a class must be for a network to be sure of it.
        debiasing: The power d of the prior.
        prior_momentum: How slowly the prior follows the posteriors of a batch, from 0 to below 1. By default so that it
            remembers the published share of the training.
        pseudo_weight: The largest weight of guesses in the training of the pseudo head.
        temperature: The temperature at which these guesses are sharpened.
        alpha: The parameter of mixup's Beta distribution.
        largest_share: The share of a batch up to which rows get guessed labels.
        warmup_penalty: The weight of the negative entropy of predictions in the warm-up; published as 1 for asymmetric
            noise and 0 otherwise.
        shared_mixtures: Whether both heads learn from the same mixtures. This takes 8 passes of a batch through a
            network for each step, and not 12 as published.
    """

    def __init__(
        self,
        setup: Setup,
        *,
        warmup_epochs: int | None = None,
        ramp_epochs: int | None = None,
        pseudo_epochs: int | None = None,
        guess_epochs: int | None = None,
        start_share: float | None = None,
        end_share: float | None = None,
        confidence: float = 0.99,
        debiasing: float = 0.8,
        prior_momentum: float | None = None,
        pseudo_weight: float = 0.1,
        temperature: float = 0.5,
        alpha: float = 4.0,
        largest_share: float = 0.9,
        warmup_penalty: float = 0.0,
        shared_mixtures: bool = False,
    ) -> None:
        super().__init__(setup)
        refuse_batch_loss("promix", setup.loss)
        classes, steps = setup.train.num_classes, math.ceil(len(setup.train) / setup.batch_size)
        uniform = torch.full((classes,), 1 / classes)
        setup.loss.logits_of(uniform[None])  # refuses a loss that cannot do it
        self._warmup_epochs = phase_epochs(warmup_epochs, 10 / 600, setup.epochs)
        self._ramp_epochs = phase_epochs(ramp_epochs, 50 / 600, setup.epochs)
        self._pseudo_epochs = phase_epochs(pseudo_epochs, 100 / 600, setup.epochs, least=self._warmup_epochs + 1)
        guess_epochs = phase_epochs(guess_epochs, 250 / 600, setup.epochs)
        check_number(least=0, whole=True, warmup_epochs=self._warmup_epochs, ramp_epochs=self._ramp_epochs)
        check_number(least=0, whole=True, pseudo_epochs=self._pseudo_epochs, guess_epochs=guess_epochs)
        self._first_guess = setup.epochs - guess_epochs
        if prior_momentum is None:
            prior_momentum = 1 - 1 / max(1, _MEMORY * setup.epochs * steps)
        check_number(least=0, below=1, prior_momentum=prior_momentum)
        check_number(least=0, confidence=confidence, debiasing=debiasing, pseudo_weight=pseudo_weight)
        check_number(least=0, largest_share=largest_share, warmup_penalty=warmup_penalty)
        check_number(above=0, temperature=temperature, alpha=alpha)
        if start_share is None:
            right = 1 - noise_rate(setup, None, "start_share")
            start_share = min(max(_CAUTION * right, _SHARES[0]), _SHARES[1])
        end_share = start_share if end_share is None else end_share
        check_number(above=0, start_share=start_share, end_share=end_share)
        self._shares = (start_share, end_share)
        self._confidence, self._debiasing, self._prior_momentum = confidence, debiasing, prior_momentum
        self._pseudo_weight, self._temperature, self._alpha = pseudo_weight, temperature, alpha
        self._largest_share, self._shared_mixtures = largest_share, shared_mixtures
        self._warmup_penalty = warmup_penalty
        self._labels, self._classes = setup.train.labels, classes
        self._learners = tuple(_learner(setup, place, uniform) for place in (0, 1))
        parts = [part for learner in self._learners for part in (learner.network, learner.pseudo_head)]
        self._optimiser = setup.optimiser([parameter for part in parts for parameter in part.parameters()])
        self.answer = MeanOutputs(learner.network for learner in self._learners)

    def epoch(self, run: Epoch) -> Iterator[Step]:
        """Warm both networks up, or select rows and train on them."""
        loss = self.loss.at(run.share)
        if run.number < self._warmup_epochs:
            yield from self._warm_up(run, loss)
        else:
            yield from self._progress(run, loss)

    def _warm_up(self, run: Epoch, loss: Loss) -> Iterator[Step]:
        for batch in run.batches():
            outputs = [learner.heads(batch.inputs) for learner in self._learners]
            value = torch.stack([loss(logits, batch.labels).mean() for heads in outputs for logits in heads]).sum()
            if self._warmup_penalty:
                unsure = torch.stack([entropy(loss.posterior(logits)).mean() for heads in outputs for logits in heads])
                value = value - self._warmup_penalty * unsure.sum()
            run.update(value, self._optimiser)
            yield Step(value, batch.rows, outputs[0][0])

    def _progress(self, run: Epoch, loss: Loss) -> Iterator[Step]:
        now = self._now(run, loss)
        share = self._shares[0] + now.extra * (self._shares[1] - self._shares[0])
        small = [self._small(run.evaluate(learner.network), loss, share) for learner in self._learners]
        for batch in run.batches(views=_VIEWS):
            weak = [learner.heads(batch.inputs) for learner in self._learners]
            posteriors = [loss.posterior(primary).detach() for primary, _ in weak]
            debiased = [
                reweighted(posterior, learner.other_prior, -self._debiasing)
                for posterior, learner in zip(posteriors, self._learners, strict=True)
            ]
            terms, selections = [], []
            for place, learner in enumerate(self._learners):
                trusted = small[place][batch.rows] | matched(posteriors[place], batch.labels, self._confidence)
                guesses = (debiased[place], debiased[1 - place])
                selections.append(self._selection(now, batch.labels, trusted, guesses))
                terms += self._terms(now, learner, batch, weak[place], selections[place], debiased[place])
            if not terms:  # neither network has anything to learn from this batch
                continue
            value = torch.stack(terms).sum()
            run.update(value, self._optimiser)
            for learner, posterior, selection in zip(self._learners, posteriors, selections, strict=True):
                follow_prior(learner.selected_prior, posterior[selection.rows], self._prior_momentum)
                follow_prior(learner.other_prior, posterior[~selection.rows], self._prior_momentum)
            first = selections[0]
            values = {"selected": float(first.rows.float().mean()), "guessed": float(first.guessed.float().mean())}
            yield Step(value, batch.rows, weak[0][0], values)

    def _small(self, logits: Tensor, loss: Loss, share: float) -> Tensor:
        """Return a mask (N,) of the rows whose losses are small for their class."""
        return smallest_of_each_class(loss(logits, self._labels), self._labels, share, self._classes)

    def _now(self, run: Epoch, loss: Loss) -> _Now:
        guessing = run.number >= self._first_guess
        early = run.number < self._pseudo_epochs
        weight = self._pseudo_weight * ramp(run.number, 0, self._pseudo_epochs) if early else 0.0
        return _Now(loss, ramp(run.number, 0, self._ramp_epochs), weight, guessing, run.generator("mixtures"))

    def _selection(self, now: _Now, labels: Tensor, trusted: Tensor, guesses: tuple[Tensor, Tensor]) -> Selection:
        """Return what one network is trained on: rows with trusted labels, and late also rows with guessed ones."""
        mine, others = guesses
        guessed = torch.zeros_like(trusted)
        if now.guessing:
            room = int(self._largest_share * len(trusted)) - int(trusted.sum())
            guessed = agreed(mine, others, self._confidence, ~trusted, room)
        return Selection(trusted | guessed, torch.where(guessed, mine.argmax(1), labels), guessed)

    def _terms(
        self, now: _Now, learner: _Learner, batch: Batch, weak: Heads, selection: Selection, debiased: Tensor
    ) -> list[Tensor]:
        """Return the terms of the objective of one network, each a scalar; there are none if no row is used."""
        rows, others = selection.rows, ~selection.rows
        learns = bool(rows.any())
        learns_guesses = now.guess_weight > 0 and bool(others.any())
        if not learns and not learns_guesses:
            return []
        strong = learner.heads(batch.views[1])
        terms = []
        if learns:
            targets = one_hot(selection.labels[rows], self._classes)
            for place in _PRIMARY, _PSEUDO:
                terms.append(self._fit(now.loss, weak[place][rows], targets, learner.selected_prior))
                terms.append(now.extra * self._fit(now.loss, strong[place][rows], targets, learner.selected_prior))
            terms += self._mixtures(now, learner, batch.inputs[rows], targets)
        if learns_guesses:
            guesses = sharpen(debiased[others], self._temperature)
            for logits, weight in ((weak[_PSEUDO], 1.0), (strong[_PSEUDO], now.extra)):
                fit = self._fit(now.loss, logits[others], guesses, learner.other_prior)
                terms.append(now.guess_weight * weight * fit)
        return terms

    def _mixtures(self, now: _Now, learner: _Learner, inputs: Tensor, targets: Tensor) -> list[Tensor]:
        """Return the terms of mixtures of selected rows; there are none if there are not two rows to mix."""
        if len(inputs) < _FEWEST:
            return []
        terms = []
        for places in ((_PRIMARY, _PSEUDO),) if self._shared_mixtures else ((_PRIMARY,), (_PSEUDO,)):
            mixtures = [mixup(inputs, targets, self._alpha, now.generator, at_least_half=True)]
            if inputs.dim() in _FMIX_DIMENSIONS:
                mixtures.append(fmix(inputs, targets, _FMIX_ALPHA, now.generator))
            for mixed in mixtures:
                logits = learner.heads(mixed.inputs)
                terms += [
                    now.extra * self._fit(now.loss, logits[place], mixed.targets, learner.selected_prior)
                    for place in places
                ]
        return terms

    def _fit(self, loss: Loss, logits: Tensor, targets: Tensor, prior: Tensor) -> Tensor:
        """Return the mean loss of logits with the margins of a prior."""
        value: Tensor = loss(logits + margins(loss, logits, prior, self._debiasing), targets).mean()
        return value


def _learner(setup: Setup, place: int, uniform: Tensor) -> _Learner:
    network = setup.network()
    return _Learner(
        network,
        second_head(setup, network, f"pseudo head {place}"),
        setup.state(f"prior of selected rows {place}", uniform),
        setup.state(f"prior of other rows {place}", uniform),
    )


_PAPER = "Wang et al., ProMix, IJCAI 2023; released code"
_TRAINING = {
    "epochs": 600,
    "batch_size": 256,
    "optimiser.lr": 0.05,
    "optimiser.momentum": 0.9,
    "optimiser.weight_decay": 5e-4,
    "schedule": "cosine",
}


def _preset(share: float, **options: object) -> Preset:
    common = {"start_share": share, "end_share": share, "warmup_epochs": 10, "prior_momentum": 0.9999}
    return Preset({**common, **options}, _PAPER, _TRAINING)


_OF_100_CLASSES = {"warmup_epochs": 30, "confidence": 0.95, "debiasing": 0.5}

register(
    "promix",
    ProMix,
    "two networks with two heads each, trained on as many clean rows as they can find",
    Facts(
        idea=(
            "Two networks select rows with small losses, rows whose label they are sure of, and late in the training "
            "rows on whose class both agree. Selected rows are trained in weak and strong views and as mixtures. "
            "Guesses for the other rows train a second head, so that wrong guesses do not reach the head that makes "
            "them."
        ),
        source=(
            "Wang, Xiao, Dong, Feng and Zhao, ProMix: Combating label noise via maximizing clean sample utility, "
            "IJCAI 2023"
        ),
        networks=2,
        remembers="nothing; the priors of the classes are kept for each network",
        posterior=(
            "in every choice: whether a label is matched, whether networks agree, and which guess is made. Debiasing "
            "also works on the posterior p of the loss: guesses are p/π^d, and training adds the difference between "
            "the logits of p·π^d and of p. For cross-entropy that is the published z + d·log π."
        ),
        deviations=(
            "Numbers of epochs and the memory of the prior are shares of the training. The share of rows with small "
            "losses is 0.9 of the share of right labels, which is estimated; the published constants (presets) are "
            "also below that share, because sure labels are added in each batch. FMix has its own mask for each row, "
            "and its masks look alike in all directions. The warm-up trains both heads. Its penalty is the negative "
            "entropy of the posterior, where the released code limits logits before the softmax. An empty selection "
            "leaves out its term, where the released code divides by 0."
        ),
        estimates_unless="start_share",
    ),
    presets={
        "cifar10-symmetric-20": _preset(0.7),
        "cifar10-symmetric-50": _preset(0.5),
        "cifar10-asymmetric-40": _preset(0.5, warmup_penalty=1.0),
        "cifar10n": _preset(0.5),
        "cifar100-symmetric-20": _preset(0.7, **_OF_100_CLASSES),
        "cifar100-symmetric-50": _preset(0.5, **_OF_100_CLASSES),
        "cifar100n": _preset(0.5, **_OF_100_CLASSES),
    },
)
