"""Rows drawn again, or weighed at random, by how probably their label is the true one.

Bae, Shin, Na, Jang, Song and Moon, Dirichlet-based per-sample weighting by transition matrix for noisy label learning,
ICLR 2024 (DWS, and its limit RENT).
"""

from __future__ import annotations

import torch
from torch import Tensor

from postmax.losses import Loss
from postmax.methods.catalogue import register
from postmax.methods.facts import Facts, Preset
from postmax.methods.method import Epoch, Setup
from postmax.methods.parts.corrections import importance, refuse_mixed_rows, true_posterior
from postmax.methods.parts.options import check_number
from postmax.methods.two_stage import TwoStage

_DRAWS = 128
# Weights of 0 alone could not be drawn from.
_LEAST_WEIGHT, _LARGEST_WEIGHT = 1e-6, 1e3


class RENT(TwoStage):
    """Train on rows that are drawn again from each batch, with the probabilities p_y/(pT)_y.

    A label that the network doubts is rarely drawn. If the estimated noise is about 0, all rows have the same weight.
    Drawing would then only leave out a third of the rows, so the method trains on the rows as they are.

    Args:
        setup: What the loop offers.
        estimator: Where the noise comes from; see `TwoStage`.
        estimation_epochs: The length of the first stage; see `TwoStage`.
        fresh: Whether the second stage starts with a new network; see `TwoStage`.
        least_noise: The share of wrong labels below which nothing is drawn.
    """

    def __init__(
        self,
        setup: Setup,
        name: str = "rent",
        *,
        estimator: str = "anchor-97",
        estimation_epochs: int | None = None,
        fresh: bool | None = None,
        least_noise: float = 0.02,
    ) -> None:
        super().__init__(setup, name, estimator=estimator, estimation_epochs=estimation_epochs, fresh=fresh)
        refuse_mixed_rows(name, setup.loss)
        check_number(least=0, below=1, least_noise=least_noise)
        self._least_noise = least_noise

    def corrected(self, run: Epoch, loss: Loss, logits: Tensor, labels: Tensor, place: int) -> Tensor:
        """Return the loss of each row, times its random weight."""
        losses: Tensor = loss(logits, labels)
        if self._noise.noise_rate < self._least_noise:
            return losses
        posterior = true_posterior(loss, logits.detach())
        weights = importance(posterior, labels, self._noise.matrix, _LARGEST_WEIGHT).clamp_min(_LEAST_WEIGHT).cpu()
        drawn = self.random_weights(weights, run.generator(f"weights {place}"))
        return drawn.to(losses) * losses

    def random_weights(self, weights: Tensor, generator: torch.Generator) -> Tensor:
        """Return random weights with a mean of 1 over the batch, (B,)."""
        return times_drawn(weights, generator)


class DWS(RENT):
    """Weigh the rows of each batch by the mean of random weights from a Dirichlet distribution around p_y/(pT)_y.

    Args:
        setup: What the loop offers.
        estimator: Where the noise comes from; see `TwoStage`.
        estimation_epochs: The length of the first stage; see `TwoStage`.
        fresh: Whether the second stage starts with a new network; see `TwoStage`.
        least_noise: The share of wrong labels below which all rows count alike.
        alpha: How close the random weights are to their means. With a large value this is importance reweighting, with
            a small one the rows are drawn.
    """

    def __init__(
        self,
        setup: Setup,
        *,
        estimator: str = "anchor-97",
        estimation_epochs: int | None = None,
        fresh: bool | None = None,
        least_noise: float = 0.02,
        alpha: float = 10.0,
    ) -> None:
        super().__init__(
            setup,
            "dws",
            estimator=estimator,
            estimation_epochs=estimation_epochs,
            fresh=fresh,
            least_noise=least_noise,
        )
        check_number(above=0, alpha=alpha)
        self._alpha = alpha

    def random_weights(self, weights: Tensor, generator: torch.Generator) -> Tensor:
        """Return random weights with a mean of 1 over the batch, (B,)."""
        return dirichlet_weights(weights, self._alpha, generator)


def times_drawn(weights: Tensor, generator: torch.Generator) -> Tensor:
    """Return how often each of B rows is drawn, in B draws with replacement and with these weights.

    Example:
        >>> times_drawn(torch.tensor([0.0, 1.0]), torch.Generator().manual_seed(0))
        tensor([0., 2.])
    """
    drawn = torch.multinomial(weights, len(weights), replacement=True, generator=generator)
    return torch.bincount(drawn, minlength=len(weights)).to(weights.dtype)


def dirichlet_weights(weights: Tensor, alpha: float, generator: torch.Generator, draws: int = _DRAWS) -> Tensor:
    """Return B times the mean of some draws from the Dirichlet distribution with the parameters alpha·weights/Σweights.

    Example:
        >>> dirichlet_weights(torch.tensor([1.0, 3.0]), 1e6, torch.Generator().manual_seed(0)).round(decimals=1)
        tensor([0.5000, 1.5000])
    """
    shape = (alpha * weights / weights.sum()).double().expand(draws, -1)
    # As logarithms of Gamma(a + 1)·U^(1/a): for small a all Gamma variables of a draw may underflow to 0.
    gamma = torch._standard_gamma((shape + 1).contiguous(), generator=generator)
    uniform = 1 - torch.rand(shape.shape, generator=generator, dtype=torch.float64)  # it is never 0
    drawn = (gamma.log() + uniform.log() / shape).softmax(1)
    return (len(weights) * drawn.mean(0)).to(weights.dtype)


_SOURCE = (
    "Bae, Shin, Na, Jang, Song, Moon: Dirichlet-based per-sample weighting by transition matrix for noisy label "
    "learning. ICLR 2024"
)
_TRAINING = {"epochs": 210, "batch_size": 128, "optimiser.name": "adam", "optimiser.lr": 0.001}
_DEVIATIONS = (
    "The noise is estimated as in the other methods in two stages; the released code takes a row at the 3 % rank among "
    "the rows of a label. Where the estimated noise is about 0, all rows are used. The weights are kept above 0."
)
_PUBLISHED = {"estimator": "anchor-97", "estimation_epochs": 10, "fresh": False}

register(
    "rent",
    RENT,
    "a first network shows the noise; then rows are drawn by how probably their label is right",
    Facts(
        idea="The noise is estimated from a first network. Then as many rows as a batch has are drawn from it again, "
        "those with a doubtful label rarely. Drawing brings more randomness into the training than weighing, and this "
        "helps.",
        source=_SOURCE,
        networks=2,
        posterior="The noise is estimated from posteriors, and they give the probabilities of the rows.",
        deviations=_DEVIATIONS,
        uses_transition=True,
    ),
    presets={"cifar10": Preset(_PUBLISHED, f"{_SOURCE}; released code", _TRAINING)},
)
register(
    "dws",
    DWS,
    "a first network shows the noise; then rows have random weights around the probability of their label",
    Facts(
        idea="The noise is estimated from a first network. Then the weights of the rows of a batch are drawn from a "
        "Dirichlet distribution whose mean are the weights of importance reweighting.",
        source=_SOURCE,
        networks=2,
        posterior="The noise is estimated from posteriors, and they give the weights of the rows.",
        deviations=_DEVIATIONS,
        uses_transition=True,
    ),
    presets={"cifar10": Preset({**_PUBLISHED, "alpha": 10.0}, f"{_SOURCE}; released code", _TRAINING)},
)
