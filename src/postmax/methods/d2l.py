"""D2L: when the dimensionality of the features begins to rise, labels are mixed with predictions.

Ma, Wang, Houle, Zhou, Erfani, Xia, Wijewickrema and Bailey, Dimensionality-driven learning with noisy labels, ICML
2018.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from postmax.methods.catalogue import register
from postmax.methods.facts import Facts, Preset
from postmax.methods.method import Epoch, Method, Setup, Step
from postmax.methods.parts.dimensionality import FEWEST_NEIGHBOURS, mean_dimension
from postmax.methods.parts.features import with_features
from postmax.methods.parts.options import check_number
from postmax.methods.parts.phases import phase_epochs
from postmax.methods.parts.targets import one_hot
from postmax.methods.parts.teacher import follow

# Published for CIFAR-10: the turning point is looked for after 40 of 120 epochs, over a window of 5.
_EPOCHS, _WARMUP, _WINDOW = 120, 40, 5
_FEWEST_EPOCHS = 3
_ROWS, _GROUP = 1280, 128
# A rise by rounding errors is none. They matter if the features never change, as those of a linear model.
_ROUNDING = 1e-9
# The features change suddenly when the learning rate falls to half or less in one epoch.
_CUT = 0.5


class D2L(Method):
    """Watch the dimensionality of the features, and mix labels with predictions from its turning point on.

    At the beginning of each epoch, the local intrinsic dimensionality (LID) of the features of some training rows is
    estimated from their nearest neighbours. While the network learns what the classes have in common, the features of
    a class come together, and the dimensionality falls. When it memorises wrong labels, the dimensionality rises.

    1. Up to the turning point, the network learns the given labels with the loss of the run.
    2. The turning point is the first epoch whose dimensionality is above the mean of the epochs just before it by more
       than two standard deviations. The network goes back to its weights of the epoch before.
    3. From then on a label is mixed with the predicted class: the target is α·1_y + (1 − α)·1_predicted, with α =
       exp(−share of the training that is over · dimensionality / its smallest value so far).

    If there is no turning point, as with clean labels, the network learns the given labels to the end.

    Args:
        setup: What the loop offers.
        warmup_epochs: How many epochs come before the window in which the turning point is looked for. By default a
            third of the training.
        window_epochs: With how many epochs before it an epoch is compared. By default 4 % of the training, and at least
            3 epochs.
        neighbours: How many nearest neighbours of a row count, at least 4. It is lowered to a quarter of the rows that
            are compared with each other, which are up to 128.
        deviations: How many standard deviations the dimensionality must rise.
    """

    def __init__(
        self,
        setup: Setup,
        *,
        warmup_epochs: int | None = None,
        window_epochs: int | None = None,
        neighbours: int = 20,
        deviations: float = 2.0,
    ) -> None:
        super().__init__(setup)
        self._warmup_epochs = phase_epochs(warmup_epochs, _WARMUP / _EPOCHS, setup.epochs)
        self._window = phase_epochs(window_epochs, _WINDOW / _EPOCHS, max(setup.epochs, 4), least=_FEWEST_EPOCHS)
        check_number(least=0, whole=True, warmup_epochs=self._warmup_epochs)
        check_number(least=2, whole=True, window_epochs=self._window)
        check_number(least=FEWEST_NEIGHBOURS, whole=True, neighbours=neighbours)
        check_number(least=0, deviations=deviations)
        self._neighbours, self._deviations = neighbours, deviations
        self._classes, rows = setup.train.num_classes, len(setup.train.labels)
        # The same rows in each epoch: another dimensionality then means that the network is another one. The loop would
        # leave out a last batch of a single row.
        count = min(rows, _ROWS)
        order = torch.randperm(rows, generator=setup.generator("measured rows"))
        self._measured = order[: count - (count > 1 and count % _GROUP == 1)].to(setup.device)
        self._network, self._before = with_features(setup.network(), "d2l"), setup.network()
        follow(self._before, self._network, 0)
        self.answer = self._network
        self._optimiser = setup.optimiser(list(self._network.parameters()))
        # What was measured at the beginning of each epoch; 0 for an epoch without a measurement.
        self._dimensions = setup.state("dimensions", torch.zeros(setup.epochs, dtype=torch.float64))
        self._rates = setup.state("learning rates", torch.zeros(setup.epochs, dtype=torch.float64))
        self._turned = setup.state("turned", torch.zeros((), dtype=torch.bool))

    def epoch(self, run: Epoch) -> Iterator[Step]:
        """Measure the dimensionality, and go once through all rows."""
        loss, turned_before = self.loss.at(run.share), bool(self._turned)
        self._dimensions[run.number] = self._measure(run)
        seen = self._dimensions[: run.number + 1]
        if not turned_before:
            self._look_for_the_turning_point(run.number, seen)
        trust = label_trust(run.share, seen) if self._turned else 1.0
        values = {"dimension": float(seen[-1]), "label_trust": trust, "turned": float(self._turned)}
        for batch in run.batches():
            logits = self._network(batch.inputs)
            targets = batch.labels
            if self._turned:
                targets = mixed_labels(loss.label_posterior(logits.detach()), batch.labels, trust)
            value = loss(logits, targets).mean()
            run.update(value, self._optimiser)
            yield Step(value, batch.rows, logits, values)
        self._rates[run.number] = self._optimiser.param_groups[0]["lr"]

    def learnt(self) -> dict[str, Tensor]:
        """Return the dimensionality at the beginning of each epoch; 0 where none could be measured."""
        return {"dimensions": self._dimensions.float()}

    @torch.no_grad()
    def _measure(self, run: Epoch) -> float:
        """Return the mean dimensionality of the features of some rows, which are the same in each epoch."""
        self._network.eval()
        rows, features = [], []
        for batch in run.batches(self._measured, views=("none",), size=_GROUP, stream="dimensionality"):
            rows.append(batch.rows)
            features.append(self._network.features(batch.inputs))
        self._network.train()
        # Back to the order of the measured rows, so that the groups are the same in each epoch too.
        place = torch.cat(rows).argsort()[self._measured.argsort().argsort()]
        return mean_dimension(torch.cat(features)[place], self._neighbours, _GROUP)

    def _look_for_the_turning_point(self, number: int, dimensions: Tensor) -> None:
        """Decide at the beginning of an epoch whether it is the turning point, and go back by an epoch if so."""
        if number >= self._warmup_epochs + self._window and not was_cut(self._rates[:number]):
            self._turned.fill_(has_turned(dimensions, self._window, self._deviations))
        if self._turned:
            follow(self._network, self._before, 0)
            self._optimiser.state.clear()  # the momentum would lead back to where the network came from
        else:
            follow(self._before, self._network, 0)


def has_turned(dimensions: Tensor, window: int, deviations: float) -> bool:
    """Return whether the last dimensionality is clearly above the mean of those just before it.

    Args:
        dimensions: The dimensionality of each epoch up to now; 0 where none could be measured.
        window: With how many epochs before it the last one is compared.
        deviations: How many standard deviations of these it must be above their mean.

    Example:
        >>> falling = torch.tensor([4.0, 3.0, 2.0])  # mean 3, standard deviation 0.82
        >>> [has_turned(torch.cat([falling, torch.tensor([last])]), 3, 2) for last in (4.5, 4.7)]
        [False, True]
    """
    earlier, last = dimensions[-1 - window : -1], dimensions[-1]
    if len(earlier) < window or not (dimensions[-1 - window :] > 0).all():
        return False
    mean = earlier.mean()
    return bool(last - mean > deviations * earlier.std(correction=0) + _ROUNDING * mean)


def was_cut(rates: Tensor, epochs: int = _FEWEST_EPOCHS) -> bool:
    """Return whether the learning rate fell to half or less, from one epoch to the next, in the last epochs.

    Args:
        rates: The learning rate of each epoch up to now.
        epochs: How many epochs ago this matters.

    Example:
        >>> rates = torch.tensor([0.1, 0.1, 0.01, 0.01, 0.01, 0.01])
        >>> [was_cut(rates[:count]) for count in range(7)]
        [False, False, False, True, True, True, False]
    """
    return bool((rates[1:] <= _CUT * rates[:-1])[-epochs:].any())


def label_trust(share: float, dimensions: Tensor) -> float:
    """Return the weight α of a given label in its target: exp(−share · last dimensionality / smallest one).

    Args:
        share: The share of the training that is over.
        dimensions: The dimensionality of each epoch up to now; 0 where none could be measured.

    Example:
        >>> round(label_trust(0.5, torch.tensor([3.0, 2.0, 4.0])), 4) == round(math.exp(-0.5 * 4 / 2), 4)
        True
    """
    known = dimensions[dimensions > 0]
    ratio = float(known[-1] / known.min()) if len(known) else 1.0
    return math.exp(-share * ratio)


def mixed_labels(posterior: Tensor, labels: Tensor, trust: float) -> Tensor:
    """Return the targets of rows, (B, K): given labels, mixed with the most probable classes.

    Args:
        posterior: (B, K), of the labels as they are given.
        labels: The given labels, (B,).
        trust: The weight of the given labels, from 0 to 1.

    Example:
        >>> mixed_labels(torch.tensor([[0.9, 0.1], [0.2, 0.8]]), torch.tensor([1, 1]), 0.75)
        tensor([[0.2500, 0.7500],
                [0.0000, 1.0000]])
    """
    classes = posterior.shape[-1]
    return trust * one_hot(labels, classes) + (1 - trust) * one_hot(posterior.argmax(-1), classes)


_SOURCE = "Ma et al. 2018, released code"
_TRAINING = {
    "batch_size": 128,
    "optimiser.name": "sgd",
    "optimiser.lr": 0.1,
    "optimiser.momentum": 0.9,
    "schedule.name": "step",
}

register(
    "d2l",
    D2L,
    "one network whose labels are mixed with predictions once the dimensionality of its features rises",
    Facts(
        idea="While a network learns what is right, the features of a class come together in few dimensions. When it "
        "begins to memorise wrong labels, the number of dimensions rises. From there on, labels are mixed with the "
        "predicted classes, the more so the longer the training is and the higher the dimensionality.",
        source="Ma et al., Dimensionality-driven learning with noisy labels, ICML 2018",
        posterior="The predicted class is that of the posterior. Where the loss removes noise, it is the posterior "
        "with the noise, because this is what such a loss takes as labels.",
        deviations="The same rows are measured in each epoch, so that the measure does not change by chance; the "
        "released code draws new ones. No turning point is seen within three epochs of a sudden fall of the learning "
        "rate, which changes the dimensionality too. At the turning point the network goes back by one epoch; the "
        "released code loads the weights that it already has. Rows whose neighbours are all equally far away are left "
        "out; the released code gives NaN for equal rows. All losses of postmax take the place of cross-entropy; the "
        "released code uses SCE. Without a turning point, the method is plain training.",
    ),
    presets={
        "mnist": Preset({"warmup_epochs": 5, "window_epochs": 5}, _SOURCE),
        "svhn": Preset({"warmup_epochs": 20, "window_epochs": 5}, _SOURCE),
        "cifar10": Preset(
            {"warmup_epochs": 40, "window_epochs": 5},
            _SOURCE,
            {**_TRAINING, "epochs": 120, "schedule.milestones": [40, 80]},
        ),
        "cifar100": Preset(
            {"warmup_epochs": 60, "window_epochs": 5},
            _SOURCE,
            {**_TRAINING, "epochs": 200, "schedule.milestones": [80, 120]},
        ),
    },
)
