"""Regularisation between representations: predictions must differ as much as representations do.

Cheng, Zhu, Sun and Liu, Mitigating memorization of noisy labels via regularization between representations, ICLR 2023.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from postmax.data import Batch
from postmax.losses import Loss
from postmax.methods.catalogue import register
from postmax.methods.facts import Facts, Preset
from postmax.methods.method import Epoch, Method, Setup, Step
from postmax.methods.parts.contrast import FEWEST_ROWS, head, info_nce
from postmax.methods.parts.features import with_features
from postmax.methods.parts.options import check_number
from postmax.methods.parts.pull import pull

_NAME = "representation-regularisation"
_VIEWS = ("weak", "contrast", "contrast")
_PROJECTION = 128
# A mean distance below this is that of rows that are all the same. Divided by it, tiny differences would rule.
_SMALLEST_MEAN = 1e-4


def distance_gap(posterior: Tensor, projection: Tensor) -> Tensor:
    """Return how much the distances between predictions differ from those between representations.

    Distances between predictions are Euclidean ones, and distances between representations are squared ones, as
    published. Both are divided by their mean over the pairs that differ. The gap of a pair is their smooth-L1
    difference.

    Args:
        posterior: The predictions of a batch, (B, K).
        projection: The representations of the same rows, (B, d).

    Returns:
        The mean gap over all B² pairs, a scalar. For one or two rows it is 0.

    Example:
        >>> posterior = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
        >>> distance_gap(posterior, torch.tensor([[0.0], [0.0], [3.0]]))  # the same rows are alike
        tensor(0.)
        >>> distance_gap(posterior, torch.tensor([[0.0], [3.0], [3.0]]))  # 4 of 9 pairs have a gap of |1 − 0| − 1/2
        tensor(0.2222)
    """
    return F.smooth_l1_loss(_scaled(_distances(posterior)), _scaled(_distances(projection).square()))


def _distances(rows: Tensor) -> Tensor:
    """Return the distances between all rows (B, d), as (B, B). Where two rows are equal, its gradient is 0."""
    rows = rows.float()
    return torch.cdist(rows, rows, compute_mode="donot_use_mm_for_euclid_dist")


def _scaled(distances: Tensor) -> Tensor:
    """Return distances divided by the mean of those that are not 0."""
    mean = distances.sum() / (distances > 0).sum().clamp_min(1)
    return distances / mean.clamp_min(_SMALLEST_MEAN)


class RepresentationRegularisation(Method):
    """Train one network on the labels, while its representations are learnt without labels and guide the predictions.

    Three terms are added: the loss of the run on the labels; a contrastive loss of two further views of each row, from
    which the features learn without labels; and the gap between the distances of predictions and the distances of
    representations. Rows with wrong labels lie among rows with right ones, so a prediction that follows a wrong label
    has a large gap.

    Args:
        setup: What the loop offers.
        contrast_weight: The weight of the contrastive loss, for cross-entropy. For other losses it is multiplied by how
            strongly they pull.
        gap_weight: The weight of the gap between distances; the same holds for it. The published 1 does not keep a
            network from memorising features, whose views differ little; on the digits 20 did.
        temperature: The temperature of the contrastive loss.
        warmup_epochs: How many epochs use the loss on the labels alone. Published as none for CIFAR-10.
    """

    def __init__(
        self,
        setup: Setup,
        *,
        contrast_weight: float = 1.0,
        gap_weight: float = 1.0,
        temperature: float = 0.5,
        warmup_epochs: int = 0,
    ) -> None:
        super().__init__(setup)
        check_number(least=0, contrast_weight=contrast_weight, gap_weight=gap_weight)
        check_number(above=0, temperature=temperature)
        check_number(least=0, whole=True, warmup_epochs=warmup_epochs)
        self._weights, self._temperature = (contrast_weight, gap_weight), temperature
        self._warmup_epochs, self._classes = warmup_epochs, setup.train.num_classes
        self._network = with_features(setup.network(), _NAME)
        self.answer = self._network
        width = self._network.fc.in_features
        self._head = setup.module("head", lambda: head(width, width, _PROJECTION))
        # In the warm-up the head has no gradient. An optimiser of its own keeps that apart.
        self._optimiser = setup.optimiser(list(self._network.parameters()))
        self._head_optimiser = setup.optimiser(list(self._head.parameters()), "head")

    def epoch(self, run: Epoch) -> Iterator[Step]:
        """Go once through all rows."""
        loss = self.loss.at(run.share)
        warming_up = run.number < self._warmup_epochs
        strength = pull(loss, self._classes)
        for batch in run.batches(views=_VIEWS[:1] if warming_up else _VIEWS):
            features = self._network.features(batch.inputs)
            logits = self._network.fc(features)
            value = loss(logits, batch.labels).mean()
            values, optimisers = {}, [self._optimiser]
            if not warming_up and len(batch.rows) >= FEWEST_ROWS:
                contrast, gap = self._terms(loss, batch, features, logits)
                value = value + strength * (self._weights[0] * contrast + self._weights[1] * gap)
                values = {"contrast": contrast.item(), "gap": gap.item()}
                optimisers.append(self._head_optimiser)
            run.update(value, *optimisers)
            yield Step(value, batch.rows, logits, values)

    def _terms(self, loss: Loss, batch: Batch, features: Tensor, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Return the contrastive loss and the gap of a batch, given what the network says about its first view."""
        _, *others = batch.views
        first, second = (self._head(self._network.features(view)) for view in others)
        gap = distance_gap(loss.posterior(logits), self._head(features))
        return info_nce(first, second, self._temperature), gap


register(
    _NAME,
    RepresentationRegularisation,
    "one network; predictions must differ as much as representations that are learnt without labels",
    Facts(
        idea=(
            "The features are trained on the labels and, at the same time, without labels by a contrastive loss. A "
            "regulariser makes the distances between predictions follow the distances between representations, so "
            "that a row with a wrong label is predicted as the rows around it."
        ),
        source=(
            "Cheng et al., Mitigating memorization of noisy labels via regularization between representations, "
            "ICLR 2023"
        ),
        posterior="The distances between predictions are distances between posteriors.",
        deviations=(
            "A mean distance of almost 0, as that of constant predictions, is not divided by. The weak view is the "
            "usual augmentation of the data set. The released schedule for CIFAR-100 has two epochs of a robust loss "
            "between warm-up and regularisation; here there is one loss. Both terms are multiplied by how strongly the "
            "loss pulls, compared with cross-entropy."
        ),
    ),
    presets={
        "cifar10": Preset(
            {"contrast_weight": 1.0, "gap_weight": 1.0, "temperature": 0.5, "warmup_epochs": 0},
            "Cheng et al. 2023, released code",
            training={
                "model": "resnet34",
                "epochs": 150,
                "batch_size": 256,
                "optimiser.lr": 0.1,
                "optimiser.momentum": 0.0,
                "optimiser.weight_decay": 0.0,
                "schedule.name": "step",
                "schedule.milestones": (50,),
            },
        ),
        "cifar100": Preset(
            {"contrast_weight": 1.0, "gap_weight": 1.0, "temperature": 0.5, "warmup_epochs": 21},
            "Cheng et al. 2023, released code",
            training={
                "model": "resnet34",
                "epochs": 100,
                "batch_size": 256,
                "optimiser.name": "adam",
                "optimiser.lr": 1e-3,
                "schedule.name": "constant",
            },
        ),
    },
)
