"""Co-teaching+: co-teaching on the rows about which the two networks disagree.

Yu et al., How does disagreement help generalization against label corruption?, ICML 2019.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from postmax.losses import Loss
from postmax.methods.catalogue import register
from postmax.methods.co_teaching import TRAINING, CoTeaching, easy_for_the_other
from postmax.methods.facts import Facts, Preset
from postmax.methods.method import Setup
from postmax.methods.parts.options import check_number
from postmax.methods.parts.phases import early_epochs, phase_epochs

# Published for CIFAR-10 as 20 of 200 epochs.
_WARMUP_EPOCHS = 20
_WARMUP_SHARE = _WARMUP_EPOCHS / 200


class CoTeachingPlus(CoTeaching):
    """Train two networks by co-teaching, after some epochs only on the rows for which they predict different classes.

    The two networks of co-teaching become more and more alike, and then each confirms the mistakes of the other. Rows
    about which they disagree keep them apart. A batch without any disagreement is used as in co-teaching.

    Args:
        setup: What the loop offers.
        warmup_epochs: How many epochs of co-teaching on all rows come first. None for 10 % of the training, but
            at least 20 epochs or a quarter of the training.
        forget_rate: The share of the rows that is left out in the end, because of their losses. Published as the share
            of wrong labels. None estimates that share.
        ramp_epochs: Over how many epochs the left-out share rises from 0 to `forget_rate`. None for 5 % of the
            training, but at least 10 epochs or a quarter of the training.
        late_beta: The first decay rate of Adam in the last part of the training, published as 0.1. None for no change.
            It does nothing to other optimisers.
        late_epochs: How many epochs that last part has. None for 60 % of the training.
    """

    name = "co-teaching-plus"

    def __init__(
        self,
        setup: Setup,
        *,
        warmup_epochs: int | None = None,
        forget_rate: float | None = None,
        ramp_epochs: int | None = None,
        late_beta: float | None = None,
        late_epochs: int | None = None,
    ) -> None:
        if warmup_epochs is not None:
            check_number(least=0, whole=True, warmup_epochs=warmup_epochs)
        super().__init__(
            setup, forget_rate=forget_rate, ramp_epochs=ramp_epochs, late_beta=late_beta, late_epochs=late_epochs
        )
        least = early_epochs(_WARMUP_EPOCHS, setup.epochs)
        self._warmup_epochs = phase_epochs(warmup_epochs, _WARMUP_SHARE, setup.epochs, least=least)

    def _choose(
        self, epoch: int, loss: Loss, logits: Sequence[Tensor], losses: Sequence[Tensor]
    ) -> tuple[Tensor, Tensor]:
        """Return the positions in the batch from which the first and the second network learn."""
        kept = self._forgetting.kept(epoch)
        if epoch < self._warmup_epochs:
            return easy_for_the_other(losses[0], losses[1], kept)
        first, second = (loss.predict(outputs) for outputs in logits)
        return easy_where_they_disagree(first, second, losses[0], losses[1], kept)


def easy_where_they_disagree(
    first_class: Tensor, second_class: Tensor, first: Tensor, second: Tensor, kept: float
) -> tuple[Tensor, Tensor]:
    """Return the positions from which each of two networks learns, among the rows about which they disagree.

    Args:
        first_class: The class that the first network predicts for each row, (B,).
        second_class: The same of the second network.
        first: The losses of the rows under the first network, (B,).
        second: The same under the second network.
        kept: The share of these rows to choose; at least one row is chosen. If the networks agree about all rows, it is
            a share of all rows.

    Example:
        >>> import torch
        >>> classes = torch.tensor([0, 1, 1]), torch.tensor([1, 0, 1])
        >>> easy_where_they_disagree(*classes, torch.tensor([0.2, 0.1, 0.0]), torch.tensor([0.3, 0.4, 0.0]), 0.5)
        (tensor([0]), tensor([1]))
    """
    disputed = (first_class != second_class).nonzero()[:, 0]
    if not len(disputed):
        return easy_for_the_other(first, second, kept)
    for_first, for_second = easy_for_the_other(first[disputed], second[disputed], kept)
    return disputed[for_first], disputed[for_second]


_SOURCE = "Yu et al. 2019, released code"

register(
    "co-teaching-plus",
    CoTeachingPlus,
    "co-teaching on the rows about which the two networks disagree",
    Facts(
        idea="The two networks of co-teaching become alike. Rows for which they predict different classes keep them "
        "apart. So they learn from such rows only, and of these from the ones that the other network finds easy.",
        source="Yu et al., How does disagreement help generalization against label corruption?, ICML 2019",
        networks=2,
        posterior="the predicted classes, about which the networks agree or not",
        deviations="The released code takes the cross-entropy of a softmax as if that were logits; postmax does not. "
        "It trains on all rows of a batch without disagreement, where postmax chooses rows as co-teaching does: late "
        "in the training such batches are frequent, and wrong labels would be memorised. It never uses the first row "
        "of a batch in the second phase. What differs for co-teaching differs here too.",
        estimates_unless="forget_rate",
    ),
    presets={
        "cifar10": Preset({"late_beta": 0.1}, _SOURCE, TRAINING),
        "cifar100": Preset({"late_beta": 0.1, "warmup_epochs": 5}, _SOURCE, TRAINING),
        "mnist": Preset({"late_beta": 0.1, "warmup_epochs": 0}, _SOURCE, TRAINING),
    },
)
