"""From rows with noisy labels to a model, the noise, and the probability that each label is right."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from postmax import losses
from postmax.errors import InputError
from postmax.estimation import TransitionEstimate, estimate_transition
from postmax.losses import FPMLLoss, Loss
from postmax.tabular.noise import SimplestNoise, without_noise
from postmax.transition import Transition

_REPLICATES = 20
IN_THE_LOSS = ("objective", "forward", "factored")
CORRECTIONS = ("auto", "none", "posterior", *IN_THE_LOSS)


class Model(Protocol):
    """What predicts: features to posteriors, float64 (N, K)."""

    def posterior(self, features: Tensor, /) -> Tensor:
        """Return P(true class | x), as far as the loss removes the noise."""
        ...

    def label_posterior(self, features: Tensor, /) -> Tensor:
        """Return P(label as given | x)."""
        ...


@dataclass(frozen=True)
class FirstFit:
    """A model, and what it says about the rows it was trained on.

    Attributes:
        model: The model.
        label_posterior: float64 (N, K), the posterior of the label, by networks that did not see the row.
        posterior: The same for the true class.
        history: One entry for each time a network was judged.
        epochs: How many epochs were trained.
        networks: The networks that were trained, by shape, from which training can go on.
        shares: The kind of each network that was tried, and how much it counts; empty if all count the same.
    """

    model: Model
    label_posterior: Tensor
    posterior: Tensor
    history: tuple[dict[str, Any], ...] = ()
    epochs: int = 1
    networks: tuple[nn.Module, ...] = ()
    shares: tuple[tuple[str, float], ...] = ()


class MadeLoss(NamedTuple):
    """How a loss was made.

    Attributes:
        choice: Which loss it is.
        correction: Its correction; None if it removes no noise.
        removed: The noise that it removes.
    """

    choice: LossChoice
    correction: str | None
    removed: Transition | None


@dataclass(frozen=True)
class Learnt:
    """The result of learning.

    Attributes:
        fit: The model that was trained last.
        noise: The noise that is believed in; None if the labels are taken to be right.
        estimate: The estimate that `noise` comes from; None if it was given.
        undone: The noise that is removed from the model's posterior of the label; None if none is, or if the loss has
            removed it.
        posterior: float64 (N, K), the posterior of the true class out of sample.
        loss: The loss, and how it was made: with which correction, and which noise it removes.
    """

    fit: FirstFit
    noise: Transition | None
    estimate: TransitionEstimate | None
    undone: Transition | None
    posterior: Tensor
    loss: MadeLoss

    def without_rows(self) -> Learnt:
        """Return what is needed to predict, without what is kept for each training row."""
        empty = self.posterior[:0]
        fit = replace(self.fit, label_posterior=empty, posterior=empty, history=(), networks=())
        return replace(self, fit=fit, posterior=empty)

    def predict(self, features: Tensor) -> Tensor:
        """Return P(true class | x), float64 (N, K)."""
        if self.undone is None:
            return self.fit.model.posterior(features)
        return without_noise(self.fit.model.label_posterior(features), self.undone)


@dataclass(frozen=True)
class LossChoice:
    """Which loss is minimised.

    Attributes:
        loss: The name of a loss, a loss, or None for f-PML with `divergence`.
        divergence: The divergence of f-PML; "auto" for KL with softmax, which is cross-entropy.
        options: Options of a loss that is given by name.
    """

    loss: str | Loss | None = None
    divergence: Any = "auto"
    options: Mapping[str, Any] = field(default_factory=dict)

    def make(self, correction: str | None, noise: Transition | None) -> Loss:
        """Return the loss, with reduction "none".

        Args:
            correction: A correction of the loss itself; None if the loss removes no noise.
            noise: The noise that it removes.

        Raises:
            InputError: If the parts do not fit together.
        """
        if isinstance(self.loss, Loss):
            return self.loss
        if self.loss is not None:
            if correction is not None and "correction" not in losses.option_names(self.loss):
                raise InputError(
                    f"correction={correction!r} is done inside f-PML, and loss={self.loss!r} does not know it: leave "
                    "out the loss, or use correction='posterior'."
                )
            options = dict(self.options) if correction is None else {**self.options, "correction": correction}
            return losses.get(self.loss, transition=noise, reduction="none", **options)
        if self.divergence == "auto":
            return FPMLLoss("kl", "softmax", transition=noise, correction=correction, reduction="none")
        return FPMLLoss(self.divergence, transition=noise, correction=correction, reduction="none")

    @property
    def needs_noise(self) -> bool:
        """Whether a loss that is given by name cannot be made without the noise."""
        return isinstance(self.loss, str) and losses.needs_transition(self.loss, dict(self.options))


def learn(
    train: Callable[[Loss, Callable[[], TransitionEstimate]], FirstFit],
    plain_posterior: Callable[[], Tensor],
    labels: Tensor,
    classes: tuple[str | int, ...],
    loss: LossChoice,
    noise: Transition | str | None,
    correction: str,
    *,
    is_plain: bool,
    seed: int,
) -> Learnt:
    """Train, find the noise, and remove it.

    Without a correction in the loss one training is enough: its out-of-sample posteriors show the noise, which is then
    removed from the posterior. A loss or a strategy that must know the noise is trained after the noise was estimated.

    Args:
        train: Trains a model with a loss. It also gets a function that estimates the noise, for strategies that ask.
        plain_posterior: Trains networks that know no noise, and returns their out-of-sample posteriors of the label.
        labels: The labels, (N,).
        classes: The names of the classes.
        loss: The loss.
        noise: A transition; "estimate", "symmetric", or None for labels that are right.
        correction: One of `CORRECTIONS`.
        is_plain: Whether `train` learns the posterior of the labels as they are given, if the loss removes no noise.
            Then the noise shows in its own posteriors, and can be removed from them.
        seed: The seed of the estimate's interval.
    """
    in_the_loss = correction if correction in IN_THE_LOSS else None
    in_training = in_the_loss is not None or loss.needs_noise
    # An option that cannot be used is found before networks are trained for the estimate.
    loss.make(in_the_loss, Transition.identity(len(classes)) if in_training else None)
    found: list[TransitionEstimate] = []

    def estimate(posterior: Callable[[], Tensor] = plain_posterior) -> TransitionEstimate:
        if not found:
            found.append(estimated_noise(posterior(), labels, classes, symmetric=noise == "symmetric", seed=seed))
        return found[0]

    if in_training and noise is None:
        what = f"correction={in_the_loss!r}" if in_the_loss else f"loss={loss.loss!r}"
        raise InputError(
            f"{what} needs the noise, and noise=None says that the labels are right: use noise='estimate', or give a "
            "matrix."
        )
    given = noise if isinstance(noise, Transition) else None
    removed = (given or estimate().transition) if in_training else None
    fit = train(loss.make(in_the_loss, removed), estimate)
    if isinstance(noise, str):
        known: Transition | None = estimate((lambda: fit.label_posterior) if is_plain else plain_posterior).transition
    else:
        known = given
    asked = correction == "posterior" or (correction == "auto" and is_plain)
    undone = known if asked and not in_training else None
    posterior = fit.posterior if undone is None else without_noise(fit.label_posterior, undone)
    made = MadeLoss(loss, in_the_loss, removed)
    return Learnt(fit, known, found[0] if isinstance(noise, str) else None, undone, posterior, made)


def estimated_noise(
    posterior: Tensor, labels: Tensor, classes: tuple[str | int, ...], *, symmetric: bool, seed: int
) -> TransitionEstimate:
    """Return the noise that out-of-sample posteriors of the label show."""
    found = estimate_transition(
        posterior / posterior.sum(1, keepdim=True),
        labels,
        method=SimplestNoise(symmetric=symmetric),
        classes=classes,
        replicates=_REPLICATES,
        seed=seed,
    )
    return with_rate_in_cells(found)


def with_rate_in_cells(estimate: TransitionEstimate) -> TransitionEstimate:
    """Return an estimate of symmetric noise whose cells have the interval of its rate. Others are returned as they are.

    The interval of the rate contains what labels cannot tell. By bootstrap alone, cells would seem to be surer than the
    rate that they come from.
    """
    if not all(map(math.isfinite, estimate.noise_rate_interval)):
        return estimate
    k = len(estimate.classes)
    off = ~torch.eye(k, dtype=torch.bool)
    if (estimate.matrix[off] != estimate.matrix[0, 1]).any():
        return estimate
    bounds = [Transition.symmetric(k, min(rate, 1.0)).matrix for rate in estimate.noise_rate_interval]
    low, high = estimate.interval
    return replace(
        estimate,
        interval=(torch.minimum(low, torch.minimum(*bounds)), torch.maximum(high, torch.maximum(*bounds))),
    )
