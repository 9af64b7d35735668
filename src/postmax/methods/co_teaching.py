"""Co-teaching: two networks, each trained on the rows that the other one finds easy.

Han et al., Co-teaching: Robust training of deep neural networks with extremely noisy labels, NeurIPS 2018.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch import Tensor

from postmax.losses import Loss
from postmax.methods.catalogue import register
from postmax.methods.facts import Facts, Preset
from postmax.methods.method import Epoch, Method, Setup, Step
from postmax.methods.parts.batch_losses import refuse_batch_loss
from postmax.methods.parts.clean_rows import smallest
from postmax.methods.parts.forgetting import forgetting
from postmax.methods.parts.late_beta import late_beta_of
from postmax.methods.parts.pair import two_networks


class CoTeaching(Method):
    """Train each of two networks on the rows of a batch that have the smallest losses under the other network.

    Networks learn right labels before wrong ones, so a small loss is a sign of a right label. Two networks make
    different mistakes, so that neither confirms its own. The first network gives the answers.

    The loss that selects rows is the loss of the run.

    Args:
        setup: What the loop offers.
        forget_rate: The share of each batch that is left out in the end. Published as the share of wrong labels. None
            estimates that share.
        ramp_epochs: Over how many epochs the left-out share rises from 0 to `forget_rate`. None for 5 % of the
            training, but at least 10 epochs or a quarter of the training.
        late_beta: The first decay rate of Adam in the last part of the training, published as 0.1. None for no change.
            It does nothing to other optimisers.
        late_epochs: How many epochs that last part has. None for 60 % of the training.
    """

    name = "co-teaching"

    def __init__(
        self,
        setup: Setup,
        *,
        forget_rate: float | None = None,
        ramp_epochs: int | None = None,
        late_beta: float | None = None,
        late_epochs: int | None = None,
    ) -> None:
        super().__init__(setup)
        refuse_batch_loss(self.name, setup.loss)
        self._late_beta = late_beta_of(setup, late_beta, late_epochs)
        self._forgetting = forgetting(setup, forget_rate, ramp_epochs)
        self._networks, self._optimisers = two_networks(setup)
        self.answer = self._networks[0]

    def epoch(self, run: Epoch) -> Iterator[Step]:
        """Go once through all rows."""
        loss = self.loss.at(run.share)
        self._late_beta.set_in(run.number, self._optimisers)
        for batch in run.batches():
            logits = [network(batch.inputs) for network in self._networks]
            losses = [loss(outputs, batch.labels) for outputs in logits]
            chosen = self._choose(run.number, loss, logits, losses)
            values = [found[rows].mean() for found, rows in zip(losses, chosen, strict=True)]
            for value, optimiser in zip(values, self._optimisers, strict=True):
                run.update(value, optimiser)
            mean = (values[0].detach() + values[1].detach()) / 2
            yield Step(mean, batch.rows, logits[0], {"kept": len(chosen[0]) / len(batch.rows)})

    def _choose(
        self,
        epoch: int,
        loss: Loss,  # noqa: ARG002  (methods that derive from this one predict with it)
        logits: Sequence[Tensor],  # noqa: ARG002
        losses: Sequence[Tensor],
    ) -> tuple[Tensor, Tensor]:
        """Return the positions in the batch from which the first and the second network learn."""
        return easy_for_the_other(losses[0], losses[1], self._forgetting.kept(epoch))


def easy_for_the_other(first: Tensor, second: Tensor, kept: float) -> tuple[Tensor, Tensor]:
    """Return the positions of the rows from which each of two networks learns: those with small losses of the other.

    Args:
        first: The losses of the rows under the first network, (B,).
        second: The same under the second network.
        kept: The share of the rows to choose; at least one row is chosen.

    Example:
        >>> import torch
        >>> easy_for_the_other(torch.tensor([0.1, 2.0]), torch.tensor([3.0, 0.2]), 0.5)
        (tensor([1]), tensor([0]))
    """
    return smallest(second, kept), smallest(first, kept)


TRAINING = {
    "epochs": 200,
    "batch_size": 128,
    "optimiser.name": "adam",
    "optimiser.lr": 0.001,
    "schedule.name": "late-linear",
    "schedule.milestones": [80],
    "data.augment": "none",
}
"""How co-teaching was trained on CIFAR, and later methods after it."""

_SOURCE = "Han et al. 2018, released code"

register(
    "co-teaching",
    CoTeaching,
    "two networks, each trained on the rows with small losses under the other",
    Facts(
        idea="Networks learn right labels before wrong ones, so a small loss is a sign of a right label. Two networks "
        "make different mistakes. So each learns from the rows that the other one finds easy.",
        source="Han et al., Co-teaching: Robust training of deep neural networks with extremely noisy labels, NeurIPS "
        "2018",
        networks=2,
        deviations="The released code divides the mean loss of the chosen rows once more by their number, which makes "
        "the steps of SGD tiny; postmax does not. It leaves rows out from the first epoch on, where postmax still uses "
        "all. It must be told the share of wrong labels, which postmax estimates. It trains without augmentation and "
        "normalisation. SL-PML learns slowly, and rows are left out before it has learnt them: on digits with 40 % "
        "symmetric noise it was better alone (93 to 94 %, three seeds) than in co-teaching (88 to 92 %).",
        estimates_unless="forget_rate",
    ),
    presets={
        "cifar10": Preset({"late_beta": 0.1}, _SOURCE, TRAINING),
        "cifar100": Preset({"late_beta": 0.1, "late_epochs": 100}, _SOURCE, TRAINING | {"schedule.milestones": [100]}),
    },
)
