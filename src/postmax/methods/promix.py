"""ProMix: two networks learn from as many clean rows as they can find, and two heads keep guesses apart from labels.

Wang, Xiao, Dong, Feng and Zhao, ProMix: Combating label noise via maximizing clean sample utility, IJCAI 2023.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from postmax.losses import Loss
from postmax.methods.catalogue import register
from postmax.methods.facts import Facts, Preset
from postmax.methods.method import Epoch, Method, Setup, Step
from postmax.methods.parts.batch_losses import refuse_batch_loss
from postmax.methods.parts.clean_rows import smallest_of_each_class
from postmax.methods.parts.corrections import refuse_partial_posterior
from postmax.methods.parts.debiasing import follow_prior, reweighted
from postmax.methods.parts.ensemble import MeanOutputs
from postmax.methods.parts.noise_rate import noise_rate
from postmax.methods.parts.options import check_number
from postmax.methods.parts.phases import early_epochs, phase_epochs
from postmax.methods.parts.posteriors import entropy
from postmax.methods.parts.pull import pull
from postmax.methods.parts.ramps import ramp
from postmax.methods.parts.two_heads import Learner, Selection, TwoHeads, Weights

_VIEWS = ("weak", "strong")
# The published shares of rows are about 0.9 of the share of right labels, which is estimated here.
_CAUTION = 0.9
_SHARES = (0.2, 0.95)
# The prior is published with a momentum of 0.9999 in 600 epochs of 196 steps: it remembers this share of the training.
_MEMORY = 10_000 / (600 * 196)


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


class _Now(NamedTuple):
    """What is the same for all batches of an epoch.

    Attributes:
        loss: The loss of the epoch.
        weights: How much the parts of the objective count.
        guessing: Whether rows get guessed labels.
        generator: The source of random numbers of the mixtures.
    """

    loss: Loss
    weights: Weights
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
        warmup_epochs: How many epochs come before the first selection. By default the published share, 10 of 600, but
            at least 10 or a quarter of the training: losses of networks that have learnt nothing select nothing.
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
        warmup_penalty: The weight of the negative entropy of predictions in the warm-up, for cross-entropy; published
            as 1 for asymmetric noise and 0 otherwise. For other losses it is multiplied by how strongly they pull.
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
        refuse_partial_posterior(setup)
        least = early_epochs(10, setup.epochs)
        self._warmup_epochs = phase_epochs(warmup_epochs, 10 / 600, setup.epochs, least=least)
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
            right = 1 - noise_rate(setup, None, "start_share", example=0.5)
            start_share = min(max(_CAUTION * right, _SHARES[0]), _SHARES[1])
        end_share = start_share if end_share is None else end_share
        check_number(above=0, start_share=start_share, end_share=end_share)
        self._shares = (start_share, end_share)
        self._confidence, self._debiasing, self._prior_momentum = confidence, debiasing, prior_momentum
        self._pseudo_weight, self._largest_share = pseudo_weight, largest_share
        self._warmup_penalty = warmup_penalty
        self._labels, self._classes = setup.train.labels, classes
        self._heads = TwoHeads(debiasing, temperature, alpha, shared_mixtures)
        self._learners = tuple(Learner.make(setup, "promix", place) for place in (0, 1))
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
        penalty = self._warmup_penalty * pull(loss, self._classes)
        for batch in run.batches():
            outputs = [learner.heads(batch.inputs) for learner in self._learners]
            value = torch.stack([loss(logits, batch.labels).mean() for heads in outputs for logits in heads]).sum()
            if penalty:
                unsure = torch.stack([entropy(loss.posterior(logits)).mean() for heads in outputs for logits in heads])
                value = value - penalty * unsure.sum()
            run.update(value, self._optimiser)
            yield Step(value, batch.rows, outputs[0][0])

    def _progress(self, run: Epoch, loss: Loss) -> Iterator[Step]:
        now = self._now(run, loss)
        share = self._shares[0] + now.weights.extra * (self._shares[1] - self._shares[0])
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
                term = self._heads.objective(
                    loss, learner, batch, weak[place], selections[place], guesses[0], now.weights, now.generator
                )
                terms += [] if term is None else [term]
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
        weights = Weights(ramp(run.number, 0, self._ramp_epochs), weight)
        return _Now(loss, weights, guessing, run.generator("mixtures"))

    def _selection(self, now: _Now, labels: Tensor, trusted: Tensor, guesses: tuple[Tensor, Tensor]) -> Selection:
        """Return what one network is trained on: rows with trusted labels, and late also rows with guessed ones."""
        mine, others = guesses
        guessed = torch.zeros_like(trusted)
        if now.guessing:
            room = int(self._largest_share * len(trusted)) - int(trusted.sum())
            guessed = agreed(mine, others, self._confidence, ~trusted, room)
        return Selection(trusted | guessed, torch.where(guessed, mine.argmax(1), labels), guessed)


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
            "Numbers of epochs and the memory of the prior are shares of the training; the warm-up has at least 10 "
            "epochs or a quarter of the training. The share of rows with small losses is 0.9 of the share of right "
            "labels, which is estimated; the published constants (presets) are also below that share, because sure "
            "labels are added in each batch. The strong view has two random operations and a square of fixed size "
            "blanked; published are three operations and a square of random size. FMix has its own mask for each row, "
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
