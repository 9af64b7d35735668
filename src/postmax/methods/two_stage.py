"""Correction in two stages: a first network shows the noise of the labels, a second one is trained without it.

Patrini, Rozza, Menon, Nock and Qu, Making deep neural networks robust to label noise: A loss correction approach, CVPR
2017 (forward, backward). Liu and Tao, Classification with noisy labels by importance reweighting, TPAMI 2016. Yao et
al., Dual T: Reducing estimation error for transition matrix in label-noise learning, NeurIPS 2020. Zhu, Song and Liu,
Clusterability as an alternative to anchor points when learning with noisy labels, ICML 2021 (HOC).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from postmax.losses import Loss
from postmax.methods.catalogue import register
from postmax.methods.facts import Facts, Preset
from postmax.methods.method import Epoch, Method, Setup, Step
from postmax.methods.parts.corrections import (
    backward_losses,
    forward_losses,
    importance,
    refuse_known_noise,
    refuse_mixed_rows,
    refuse_partial_posterior,
    true_posterior,
)
from postmax.methods.parts.noise_matrix import NoiseMatrix
from postmax.methods.parts.options import check_number
from postmax.methods.parts.phases import phase_epochs, share_of_span
from postmax.methods.parts.stages import Stages

_ESTIMATION_SHARE = 0.5
# A new network needs a training of its own. In fewer epochs it is better to go on with the first one.
_EPOCHS_OF_A_NEW_NETWORK = 20


class TwoStage(Method):
    """Train on the labels as they are, estimate their noise T, and train with a loss that is corrected for T.

    The posterior of the second stage is that of the true class. A subclass says what the corrected loss is.

    Args:
        setup: What the loop offers.
        name: The name of the method, for messages.
        estimator: Where T comes from; see `postmax.methods.parts.noise_matrix.NoiseMatrix`. If it is "given" or
            "cross-fit", T is known before the training and there is no first stage.
        estimation_epochs: The length of the first stage; by default half of the training.
        fresh: Whether the second stage starts with a new network. Otherwise it goes on with the first one, which may
            have memorised wrong labels. By default it does if it has 20 epochs or more.
    """

    def __init__(
        self, setup: Setup, name: str, *, estimator: str, estimation_epochs: int | None, fresh: bool | None
    ) -> None:
        super().__init__(setup)
        refuse_known_noise(name, setup.loss)
        if estimation_epochs is not None:
            check_number(least=1, whole=True, estimation_epochs=estimation_epochs)
        first = setup.network()
        self._noise = NoiseMatrix(setup, name, estimator, first)
        # Without a first stage there is nothing to estimate from, and a training of one epoch has none.
        length = phase_epochs(estimation_epochs, _ESTIMATION_SHARE, setup.epochs)
        self._start = 0 if self._noise.is_known else min(length, setup.epochs - 1)
        self._epochs = setup.epochs
        self._end = self.end_of_second_stage()
        wanted = self._end - self._start >= _EPOCHS_OF_A_NEW_NETWORK if fresh is None else fresh
        self._fresh = wanted and self._start > 0
        self._networks: list[nn.Module] = [first, setup.network()] if self._fresh else [first]
        self._optimisers = self._make_optimisers(setup)
        self._stage = setup.state("stage", torch.tensor(0))
        self.answer = Stages(self._networks, self._stage)

    def _make_optimisers(self, setup: Setup) -> list[Optimizer]:
        """Return an optimiser for each network. Each has a part of the training with a schedule of its own."""
        if not self._fresh:
            return [setup.optimiser(list(self._networks[0].parameters()), span=(0, self._end))]
        first, second = (list(network.parameters()) for network in self._networks)
        return [
            setup.optimiser(first, span=(0, self._start)),
            setup.optimiser(second, "corrected", span=(self._start, self._end)),
        ]

    def end_of_second_stage(self) -> int:
        """Return the epoch after the last one of the second stage; a subclass may go on with a third stage."""
        return self._epochs

    @abstractmethod
    def corrected(self, run: Epoch, loss: Loss, logits: Tensor, labels: Tensor, place: int) -> Tensor:
        """Return the corrected loss of each row of a batch, (B,). `place` is the number of the batch in its epoch."""

    def epoch(self, run: Epoch) -> Iterator[Step]:
        """Go once through all rows, in the first stage or in the second one."""
        if run.number < self._start:
            yield from self._plain_epoch(run)
            return
        if run.number == self._start:
            if self._start > 0:
                self._noise.estimate(run, self._networks[0], self._loss_at(run.number - 1))
                self._stage.fill_(len(self._networks) - 1)
            self.noise_is_known()
        yield from self._corrected_epoch(run)

    def noise_is_known(self) -> None:
        """Prepare what the correction needs besides the matrix. It is called once, before the second stage."""

    def _plain_epoch(self, run: Epoch) -> Iterator[Step]:
        loss = self._loss_at(run.number)
        for batch in run.batches(self._noise.shown):
            logits = self._networks[0](batch.inputs)
            value = loss(logits, batch.labels).mean()
            run.update(value, self._optimisers[0])
            yield Step(value, batch.rows, logits)

    def _corrected_epoch(self, run: Epoch) -> Iterator[Step]:
        loss, values = self._loss_at(run.number), self._noise.values
        for place, batch in enumerate(run.batches()):
            logits = self._networks[-1](batch.inputs)
            value = self.corrected(run, loss, logits, batch.labels, place).mean()
            run.update(value, self._optimisers[-1])
            yield Step(value, batch.rows, logits, values)

    def _loss_at(self, number: int) -> Loss:
        """Return the loss of an epoch. A new network gets a loss that changes over time from its beginning on.

        The first network sees only the beginning of such a loss: in its later course, its posterior may say which label
        is the most probable one, but not how probable it is, and the noise is estimated from that.
        """
        begin = self._start if self._fresh and number >= self._start else 0
        return self.loss.at(share_of_span(number, (begin, self._epochs)))

    def learnt(self) -> dict[str, Tensor]:
        """Return the transition matrix with which the loss was corrected."""
        return {"transition": self._noise.matrix}

    def label_noise(self) -> Tensor:
        """Return the transition matrix with which the loss was corrected."""
        return self._noise.matrix

    def label_posterior(self, outputs: Tensor) -> Tensor:
        """Return the posterior of the labels as they are given: that of the true class, sent through the noise."""
        return (true_posterior(self.loss, outputs) @ self._noise.matrix).to(outputs.dtype)


class Forward(TwoStage):
    """Compare the posterior of the true class, sent through the noise, with the labels.

    Args:
        setup: What the loop offers.
        name: The name of the method, for messages.
        estimator: Where the noise comes from; see `TwoStage`.
        estimation_epochs: The length of the first stage; see `TwoStage`.
        fresh: Whether the second stage starts with a new network; see `TwoStage`.
    """

    def __init__(
        self,
        setup: Setup,
        name: str = "two-stage-forward",
        *,
        estimator: str = "anchor-97",
        estimation_epochs: int | None = None,
        fresh: bool | None = None,
    ) -> None:
        super().__init__(setup, name, estimator=estimator, estimation_epochs=estimation_epochs, fresh=fresh)
        refuse_partial_posterior(setup)

    def corrected(self, run: Epoch, loss: Loss, logits: Tensor, labels: Tensor, place: int) -> Tensor:  # noqa: ARG002
        """Return the loss of each row, for the posterior of its label."""
        return forward_losses(loss, logits, labels, self._noise.matrix)


def dual_t(
    setup: Setup, *, estimator: str = "dual-t", estimation_epochs: int | None = None, fresh: bool | None = None
) -> Forward:
    """Return the forward correction with a matrix that is the product of two, each of which is easier to estimate."""
    return Forward(setup, "dual-t", estimator=estimator, estimation_epochs=estimation_epochs, fresh=fresh)


def hoc_forward(
    setup: Setup, *, estimator: str = "hoc", estimation_epochs: int | None = None, fresh: bool | None = None
) -> Forward:
    """Return the forward correction with a matrix from the labels of rows that have similar features."""
    return Forward(setup, "hoc-forward", estimator=estimator, estimation_epochs=estimation_epochs, fresh=fresh)


class Reweighting(TwoStage):
    """Weigh the loss of each row by p_y/(pT)_y: how much rarer its label would be without noise.

    No gradient flows through the weights.

    Args:
        setup: What the loop offers.
        name: The name of the method, for messages.
        estimator: Where the noise comes from; see `TwoStage`.
        estimation_epochs: The length of the first stage; see `TwoStage`.
        fresh: Whether the second stage starts with a new network; see `TwoStage`.
        largest_weight: A bound for the weights.
    """

    def __init__(
        self,
        setup: Setup,
        name: str = "two-stage-reweighting",
        *,
        estimator: str = "anchor-97",
        estimation_epochs: int | None = None,
        fresh: bool | None = None,
        largest_weight: float = 10.0,
    ) -> None:
        super().__init__(setup, name, estimator=estimator, estimation_epochs=estimation_epochs, fresh=fresh)
        refuse_mixed_rows(name, setup.loss)
        check_number(above=0, largest_weight=largest_weight)
        self._largest_weight = largest_weight

    def corrected(self, run: Epoch, loss: Loss, logits: Tensor, labels: Tensor, place: int) -> Tensor:  # noqa: ARG002
        """Return the weighted loss of each row."""
        posterior = true_posterior(loss, logits.detach())
        weights = importance(posterior, labels, self._noise.matrix, self._largest_weight)
        losses: Tensor = loss(logits, labels)
        return weights.to(losses.dtype) * losses


class Backward(TwoStage):
    """Train on the sum of the losses of all labels, weighed by T⁻¹, which estimates the loss of the true label.

    Some weights are negative. A floor keeps the network from making classes with negative weights ever less probable,
    because an unbounded loss would never stop falling.

    Args:
        setup: What the loop offers.
        estimator: Where the noise comes from; see `TwoStage`.
        estimation_epochs: The length of the first stage; see `TwoStage`.
        fresh: Whether the second stage starts with a new network; see `TwoStage`.
        floor: The probability below which a negative weight has no influence, times the number of classes. 0 is the
            plain estimator.
    """

    def __init__(
        self,
        setup: Setup,
        *,
        estimator: str = "anchor-97",
        estimation_epochs: int | None = None,
        fresh: bool | None = None,
        floor: float = 0.4,
    ) -> None:
        name = "two-stage-backward"
        super().__init__(setup, name, estimator=estimator, estimation_epochs=estimation_epochs, fresh=fresh)
        refuse_mixed_rows(name, setup.loss)
        check_number(least=0, below=1, floor=floor)
        self._floor = floor / setup.train.num_classes
        self._inverse = setup.state("inverse", self._noise.matrix)
        if floor:
            refuse_partial_posterior(setup)

    def corrected(self, run: Epoch, loss: Loss, logits: Tensor, labels: Tensor, place: int) -> Tensor:  # noqa: ARG002
        """Return the estimated loss of the true label of each row."""
        return backward_losses(loss, logits, labels, self._inverse, self._floor)

    def noise_is_known(self) -> None:
        """Invert the matrix."""
        self._inverse.copy_(torch.linalg.inv(self._noise.matrix))


_PATRINI = (
    "Patrini, Rozza, Menon, Nock, Qu: Making deep neural networks robust to label noise: A loss correction approach. "
    "CVPR 2017"
)
_STEPS_OF_PATRINI = {"batch_size": 128, "optimiser.lr": 0.1, "optimiser.momentum": 0.9, "schedule.name": "step"}
# Both stages have the published number of epochs, and both have the published schedule.
_PATRINI_PRESETS = {
    "cifar10": Preset(
        {"estimator": "anchor-97"},
        f"{_PATRINI}; released code",
        {"epochs": 240, "optimiser.weight_decay": 1e-4, "schedule.milestones": (40, 80), **_STEPS_OF_PATRINI},
    ),
    "cifar100": Preset(
        {"estimator": "anchor"},
        f"{_PATRINI}; released code",
        {"epochs": 300, "optimiser.weight_decay": 1e-3, "schedule.milestones": (80, 120), **_STEPS_OF_PATRINI},
    ),
}
_FIRST_STAGE = (
    "The first stage and the second one share the epochs of the run. The released code goes back to the epoch that is "
    "best on a tenth of the rows, which are held out; here these rows decide how sure the last posterior should be. A "
    "run of fewer than 40 epochs goes on with the first network. A matrix that can hardly be inverted is mixed with a "
    "little of the identity matrix; the metric identity_share says how much."
)
_IN_BOTH = "The noise is estimated from posteriors, and the correction changes posteriors."
_facts = partial(Facts, networks=2, posterior=_IN_BOTH, uses_transition=True)

register(
    "two-stage-forward",
    Forward,
    "a first network shows the noise; a second one is trained with the forward correction",
    _facts(
        idea="A network is trained on the labels as they are. Rows that surely belong to a class show which labels "
        "this class gets. A new network is then trained so that its posterior, sent through this noise, fits the "
        "labels.",
        source=_PATRINI,
        deviations=f"{_FIRST_STAGE} The search for anchors does not change the probabilities of later classes.",
    ),
    presets=_PATRINI_PRESETS,
)
register(
    "dual-t",
    dual_t,
    "the forward correction with a matrix that is the product of two",
    _facts(
        idea="The noise from the true class to the label is the product of two matrices: from the true class to the "
        "predicted one, and from the predicted class to the label. The second one can simply be counted. A new network "
        "is trained with the forward correction for the product.",
        source="Yao, Liu, Han, Gong, Deng, Niu, Sugiyama: Dual T: Reducing estimation error for transition matrix in "
        "label-noise learning. NeurIPS 2020",
        deviations=f"{_FIRST_STAGE} The rows of both matrices sum to one; in the released code they do not, and a "
        "class that is never predicted has a row of zeros.",
    ),
    presets={
        "cifar10": Preset(
            {"estimator": "dual-t"},
            "Yao et al., NeurIPS 2020; released code",
            {"optimiser.lr": 0.01, "optimiser.momentum": 0.0, "optimiser.weight_decay": 1e-4},
        )
    },
)
register(
    "hoc-forward",
    hoc_forward,
    "the forward correction with a matrix from the labels of similar rows",
    _facts(
        idea="Rows with similar features mostly have the same true class. How often a row and its two nearest "
        "neighbours have the same label therefore shows the noise. A new network is trained with the forward "
        "correction for it.",
        source="Zhu, Song, Liu: Clusterability as an alternative to anchor points when learning with noisy labels. "
        "ICML 2021",
        deviations="Rows of a table or embeddings are compared as they are, images by the features of the first "
        "network. The matrix is fitted to all rows by maximum likelihood, not to samples by gradient descent. The "
        "forward correction takes the logarithm of the posterior once; the released code applies a softmax to "
        "probabilities.",
    ),
)
register(
    "two-stage-reweighting",
    Reweighting,
    "a first network shows the noise; then the loss of each row is weighed by p_y/(pT)_y",
    _facts(
        idea="A network is trained on the labels as they are, and the noise is estimated from it. Then each row has "
        "the weight with which its label would occur among labels without noise. Rows whose label the network doubts "
        "weigh little.",
        source="Liu, Tao: Classification with noisy labels by importance reweighting. TPAMI 2016. Xia et al.: Are "
        "anchor points really indispensable in label-noise learning? NeurIPS 2019",
        posterior="The noise is estimated from posteriors, and they give the weights.",
        deviations=f"{_FIRST_STAGE} The weights have an upper bound.",
    ),
    presets={
        "cifar10": Preset(
            {"estimator": "anchor-97", "estimation_epochs": 20, "fresh": False},
            "Xia et al., NeurIPS 2019; released code",
            {
                "epochs": 220,
                "schedule.name": "step",
                "schedule.milestones": (60, 100),
                "batch_size": 128,
                "optimiser.lr": 0.01,
                "optimiser.momentum": 0.9,
                "optimiser.weight_decay": 1e-4,
            },
        )
    },
)
register(
    "two-stage-backward",
    Backward,
    "a first network shows the noise; then the losses of all labels are weighed by its inverse",
    _facts(
        idea="A network is trained on the labels as they are, and the noise is estimated from it. Then the losses of "
        "all labels are added with the weights of the inverse matrix. The mean of this sum over wrong and right "
        "labels is the loss of the true label. Some weights are negative, so a network that can memorise single labels "
        "needs a loss with a bound, such as SL-PML.",
        source=_PATRINI,
        posterior="The noise is estimated from posteriors, and the floor is a probability.",
        deviations=f"{_FIRST_STAGE} The released code bounds all probabilities by 1e-7. Here only classes with "
        "negative weights have a bound, which is higher, so that the loss has a minimum.",
    ),
    presets=_PATRINI_PRESETS,
)
