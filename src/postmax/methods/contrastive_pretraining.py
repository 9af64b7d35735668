"""Contrastive pre-training: the features are learnt without labels first, so that wrong labels cannot harm them.

Ghosh and Lan, Contrastive learning improves model robustness under label noise, CVPR workshops 2021. The contrastive
learning is that of Chen et al., A simple framework for contrastive learning of visual representations, ICML 2020
(SimCLR).
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn

from postmax.methods.catalogue import register
from postmax.methods.facts import Facts, Preset
from postmax.methods.method import Epoch, Method, Setup, Step
from postmax.methods.parts.contrast import FEWEST_ROWS, head, info_nce
from postmax.methods.parts.features import with_features
from postmax.methods.parts.options import check_number
from postmax.methods.parts.phases import phase_epochs

_PRETRAINING_SHARE = 0.4
_PROJECTION = 128
_PRETRAINING_DECAY = 1e-6


class ContrastivePretraining(Method):
    """Learn features from pairs of views without labels, then train the whole network on the labels.

    1. In the first epochs the features are trained with a contrastive loss: two views of a row must be alike, and views
       of different rows must not. No label is used.
    2. The last layer starts from zero, and all weights are trained with the loss of the run. Optionally, the last layer
       is trained alone for some epochs first, so that good features are not changed by a last layer that knows nothing.

    Until the second phase the answer is the same for all rows. The schedule of the learning rate runs once for each
    phase.

    Args:
        setup: What the loop offers.
        pretraining_epochs: How many epochs the first phase has; by default 40 % of the training. At least one epoch is
            left for the second phase.
        probe_epochs: How many epochs of the second phase train the last layer alone. Published as 0. A long second
            phase of all weights memorises wrong labels after all; one of the last layer does not.
        temperature: The temperature of the contrastive loss.
        pretraining_lr: The learning rate of the first phase, which uses Adam.
    """

    def __init__(
        self,
        setup: Setup,
        *,
        pretraining_epochs: int | None = None,
        probe_epochs: int = 0,
        temperature: float = 0.5,
        pretraining_lr: float = 1e-3,
    ) -> None:
        super().__init__(setup)
        check_number(least=0, whole=True, probe_epochs=probe_epochs)
        check_number(above=0, temperature=temperature, pretraining_lr=pretraining_lr)
        if pretraining_epochs is not None:
            check_number(least=0, whole=True, pretraining_epochs=pretraining_epochs)
        pretraining = phase_epochs(pretraining_epochs, _PRETRAINING_SHARE, setup.epochs)
        self._pretraining = min(pretraining, setup.epochs - 1)
        self._probe_end = min(self._pretraining + probe_epochs, setup.epochs - 1)
        self._epochs, self._temperature = setup.epochs, temperature
        self._batch_size = max(setup.batch_size, FEWEST_ROWS)
        self._network = with_features(setup.network(), "contrastive-pretraining")
        self.answer = self._network
        last = self._network.fc
        for parameter in last.parameters():
            nn.init.zeros_(parameter)
        width = last.in_features
        self._head = setup.module("head", lambda: head(width, width, _PROJECTION))
        mine = {id(parameter) for parameter in last.parameters()}
        below = [parameter for parameter in self._network.parameters() if id(parameter) not in mine]
        self._tuning = setup.optimiser(list(self._network.parameters()), span=(self._probe_end, setup.epochs))
        self._probing = setup.optimiser(
            list(last.parameters()), "probe", span=(self._pretraining, max(self._probe_end, self._pretraining + 1))
        )
        self._contrasting = setup.optimiser(
            [*below, *self._head.parameters()],
            "contrast",
            kind="adam",
            lr=pretraining_lr,
            weight_decay=_PRETRAINING_DECAY,
            regularised=False,
            span=(0, max(1, self._pretraining)),
        )

    def epoch(self, run: Epoch) -> Iterator[Step]:
        """Go once through all rows: without labels at first, with labels from then on."""
        return self._contrast(run) if run.number < self._pretraining else self._learn(run)

    def _contrast(self, run: Epoch) -> Iterator[Step]:
        for batch in run.batches(views=("contrast", "contrast"), size=self._batch_size):
            if len(batch.rows) < FEWEST_ROWS:  # there is only one training row in all
                yield Step(torch.zeros((), device=batch.rows.device))
                continue
            first, second = (self._head(self._network.features(view)) for view in batch.views)
            value = info_nce(first, second, self._temperature)
            run.update(value, self._contrasting)
            yield Step(value, values={"contrast": value.item()})

    def _learn(self, run: Epoch) -> Iterator[Step]:
        # The loss sees labels only in this phase, so its own schedule runs over this phase.
        loss = self.loss.at((run.number - self._pretraining) / (self._epochs - self._pretraining))
        probing = run.number < self._probe_end
        if probing:
            self._network.eval()  # the statistics of batch normalisation belong to the features, which stay
        for batch in run.batches():
            logits = self._network(batch.inputs)
            value = loss(logits, batch.labels).mean()
            run.update(value, self._probing if probing else self._tuning)
            yield Step(value, batch.rows, logits)


register(
    "contrastive-pretraining",
    ContrastivePretraining,
    "features learnt without labels first, then the whole network trained on the labels",
    Facts(
        idea=(
            "Features are learnt without labels first: two views of a row must be alike, and views of other rows must "
            "not. Then the whole network is trained on the labels, from a last layer of zeros. Good features make "
            "wrong labels harder to memorise than right ones."
        ),
        source=(
            "Ghosh and Lan, Contrastive learning improves model robustness under label noise, CVPR workshops 2021; "
            "SimCLR: Chen et al., A simple framework for contrastive learning of visual representations, ICML 2020"
        ),
        deviations=(
            "Both phases are in one run; the released code starts from checkpoints of another repository. The share of "
            "the first phase is our choice. Its optimiser is Adam with the rate and weight decay that Cheng et al. "
            "(ICLR 2023) published for it. The released code fine-tunes on flipped images that are not normalised; "
            "here both phases have the normalisation of the data set, and the second one its usual augmentation."
        ),
    ),
    presets={
        "cifar": Preset(
            {"probe_epochs": 0},
            "Ghosh and Lan 2021, released code of the second phase",
            training={
                "model": "resnet50",
                "batch_size": 100,
                "optimiser.lr": 0.01,
                "optimiser.momentum": 0.9,
                "optimiser.weight_decay": 1e-4,
                "schedule.name": "cosine",
            },
        )
    },
)
