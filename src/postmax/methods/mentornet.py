"""MentorNet with its predefined curriculum: rows are weighed by how their losses compare with a moving percentile.

Jiang et al., MentorNet: Learning data-driven curriculum for very deep neural networks on corrupted labels, ICML 2018.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from postmax.methods.catalogue import register
from postmax.methods.facts import Facts, Preset
from postmax.methods.method import Epoch, Method, Setup, Step
from postmax.methods.parts.batch_losses import refuse_batch_loss
from postmax.methods.parts.noise_rate import noise_rate as rate_of_noise
from postmax.methods.parts.options import check_number
from postmax.methods.parts.phases import phase_epochs
from postmax.methods.parts.pull import pull

# Published: all rows count in the first 18 % of the training, and weights are soft in the last 10 %.
_WARMUP_SHARE, _SOFT_SHARE = 0.18, 0.1


class MentorNet(Method):
    """Train one network, with a weight for each row that says how its loss compares with a moving percentile.

    The percentile is that of the losses of a batch, below which the right labels should lie. Its moving mean ℓ̄ follows
    the training. The weight of a row with the loss ℓ has three forms in turn: 1 for all rows; 1 if ℓ ≤ ℓ̄ and 0
    otherwise; and 1 − (ℓ − ℓ̄)/γ, limited to 0…1. Besides, some rows of each batch are left out at random.

    This curriculum is the formula that the published MentorNet, a small network, was trained to imitate.

    Args:
        setup: What the loop offers.
        noise_rate: The share of wrong labels. The percentile is 1 − `noise_rate`. None estimates that share.
        warmup_epochs: How many epochs give all rows the weight 1. None for 18 % of the training.
        soft_epochs: How many epochs at the end have soft weights. None for 10 % of the training.
        softness: The excess γ of the loss at which a soft weight becomes 0, for cross-entropy. For other losses it is
            multiplied by how strongly they pull: a bounded loss such as SL-PML never exceeds the percentile by 1.
        memory: The share of the old value in the moving mean of the percentile.
        early_dropout: The share of a batch that is left out at random in the warm-up.
        late_dropout: The same share after the warm-up.
    """

    def __init__(
        self,
        setup: Setup,
        *,
        noise_rate: float | None = None,
        warmup_epochs: int | None = None,
        soft_epochs: int | None = None,
        softness: float = 1.0,
        memory: float = 0.5,
        early_dropout: float = 0.5,
        late_dropout: float = 0.05,
    ) -> None:
        super().__init__(setup)
        lengths = {"warmup_epochs": warmup_epochs, "soft_epochs": soft_epochs}
        check_number(least=0, whole=True, **{name: value for name, value in lengths.items() if value is not None})
        check_number(above=0, softness=softness)
        check_number(least=0, below=1, memory=memory, early_dropout=early_dropout, late_dropout=late_dropout)
        refuse_batch_loss("mentornet", setup.loss)
        self._percentile = 1 - rate_of_noise(setup, noise_rate, "noise_rate")
        self._warmup_epochs = phase_epochs(warmup_epochs, _WARMUP_SHARE, setup.epochs)
        self._soft_start = setup.epochs - phase_epochs(soft_epochs, _SOFT_SHARE, setup.epochs)
        self._softness, self._memory, self._classes = softness, memory, setup.train.num_classes
        self._early_dropout, self._late_dropout = early_dropout, late_dropout
        # NaN says that no batch was seen yet.
        self._moving = setup.state("moving percentile", torch.tensor(torch.nan))
        self.answer = setup.network()
        self._optimiser = setup.optimiser(list(self.answer.parameters()))

    def epoch(self, run: Epoch) -> Iterator[Step]:
        """Go once through all rows."""
        loss = self.loss.at(run.share)
        warm = run.number < self._warmup_epochs
        soft = run.number >= self._soft_start
        softness = self._softness * pull(loss, self._classes) if soft else None
        dropout = self._early_dropout if warm else self._late_dropout
        generator = run.generator("dropout")
        for batch in run.batches():
            logits = self.answer(batch.inputs)
            losses = loss(logits, batch.labels)
            self._follow(losses.detach())
            weights = torch.ones_like(losses) if warm else weights_of(losses.detach() - self._moving, softness)
            dropped = torch.randperm(len(losses), generator=generator)[: int(dropout * len(losses))]
            weights = weights.index_fill(0, dropped.to(weights.device), 0.0)
            # Weights may all be 0. The loss and its gradient are then 0 too.
            value = (weights * losses).sum() / weights.sum().clamp_min(1)
            run.update(value, self._optimiser)
            yield Step(value, batch.rows, logits, {"weight": float(weights.mean())})

    def _follow(self, losses: Tensor) -> None:
        """Move ℓ̄ towards the percentile of the losses of a batch; the first batch sets it."""
        found = losses.quantile(self._percentile).to(self._moving)
        moved = self._memory * self._moving + (1 - self._memory) * found
        self._moving.copy_(torch.where(self._moving.isnan(), found, moved))


def weights_of(excess: Tensor, softness: float | None) -> Tensor:
    """Return the weight of each row from the excess ℓ − ℓ̄ of its loss, (B,).

    Args:
        excess: By how much the loss of the row exceeds the moving percentile.
        softness: The excess at which the weight becomes 0; None for weights of 0 and 1 alone.

    Example:
        >>> excess = torch.tensor([-1.0, 0.0, 0.25, 2.0])
        >>> weights_of(excess, None), weights_of(excess, 1.0)
        (tensor([1., 1., 0., 0.]), tensor([1.0000, 1.0000, 0.7500, 0.0000]))
    """
    if softness is None:
        return (excess <= 0).to(excess.dtype)
    return (1 - excess / softness).clamp(0, 1)


_SOURCE = "Jiang et al. 2018, released code"
_TRAINING = {
    "epochs": 100,
    "batch_size": 128,
    "optimiser.name": "sgd",
    "optimiser.lr": 0.1,
    "optimiser.momentum": 0.9,
    "optimiser.weight_decay": 2e-4,
    "schedule.name": "step",
    "schedule.milestones": [50, 64, 77],
}

register(
    "mentornet",
    MentorNet,
    "one network that gives rows with large losses no weight, by a curriculum in three steps",
    Facts(
        idea="Rows count as long as their losses are below a percentile that follows the training. A curriculum begins "
        "with all rows, goes on with these rows, and ends with soft weights. Some rows are left out at random.",
        source="Jiang et al., MentorNet: Learning data-driven curriculum for very deep neural networks on corrupted "
        "labels, ICML 2018",
        deviations="This is the predefined curriculum as a formula; the released code trains a small network to "
        "imitate it. The data-driven curriculum needs clean labels and is left out. The percentile comes from the "
        "estimated share of wrong labels; published are 0.75, and 0.5 for 80 % noise. The weighted losses are divided "
        "by the sum of the weights, not by the size of the batch. The moving percentile starts with that of the first "
        "batch, not with 0. The excess at which soft weights become 0 is multiplied by how strongly the loss pulls, "
        "compared with cross-entropy.",
        estimates_unless="noise_rate",
    ),
    presets={
        "cifar10": Preset({"noise_rate": 0.25}, _SOURCE, _TRAINING),
        "cifar100": Preset({"noise_rate": 0.25}, _SOURCE, _TRAINING),
        "cifar10-symmetric-0.8": Preset({"noise_rate": 0.5}, _SOURCE, _TRAINING),
        "cifar100-symmetric-0.8": Preset({"noise_rate": 0.5}, _SOURCE, _TRAINING),
    },
)
