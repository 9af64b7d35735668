"""A saved classifier as a module: from rows, as a file has them, to the posterior of the true class."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from postmax import models
from postmax.errors import DataError, InputError, PostmaxWarning, UnknownNameError
from postmax.losses import Loss
from postmax.methods.parts.answers import build
from postmax.runs.remedies import missing_plugins
from postmax.runs.trained import Trained
from postmax.tabular.committee import Committee
from postmax.tabular.lanes import Lanes
from postmax.tabular.learning import LossChoice
from postmax.tabular.networks import blank
from postmax.tabular.noise import without_noise
from postmax.tabular.preparation import Preparation
from postmax.tabular.saved import SavedClassifier
from postmax.transition import Transition


class TrainedCommittee(Trained):
    """A classifier that was read from a file. It computes in float64, on the CPU.

    Args:
        saved: What was saved.

    Raises:
        InputError: If it needs something that is not here, such as a plugin.
        DataError: If the weights do not fit the networks.
    """

    any_device = False
    precision = "32-true"

    def __init__(self, saved: SavedClassifier) -> None:
        super().__init__()
        self.saved: SavedClassifier = saved
        try:
            loss = _loss(saved)
            with torch.random.fork_rng(devices=[]):  # new networks have random weights, which are replaced
                networks = [_networks(part) for part in saved.parts]
        except UnknownNameError as error:
            raise UnknownNameError(f"{error}{missing_plugins(saved.about.get('plugins') or ())}") from error
        lanes = [saved.weights[f"weight_{number}"] for number in range(len(networks))]
        self.answer: _Posteriors = _Posteriors(Committee(networks, lanes, loss), _transition(saved.undone))
        try:
            self.answer.committee.load_state_dict(dict(saved.weights))
        except (RuntimeError, KeyError) as error:
            raise DataError(
                "the weights do not fit the networks as they are in this version of postmax; the model was written by "
                f"{saved.version}. {error}"
            ) from error
        self.preparation = Preparation(saved.encoder, one_hot=saved.rows.table is not None)
        self.eval().requires_grad_(requires_grad=False)

    def afresh(self) -> TrainedCommittee:
        """Return the same model, made again, for an export.

        Raises:
            InputError: If it needs a network that is not part of it.
        """
        if self.saved.embedding is not None:
            raise InputError(
                f"this model gets the features of {self.saved.embedding.model}, which is not part of it, so it cannot "
                "be exported. `postmax predict` uses both."
            )
        return TrainedCommittee(self.saved)

    @property
    def spread(self) -> tuple[Tensor, Tensor]:
        """The mean and 1 / standard deviation of the training features."""
        return self.preparation.spread

    @property
    def is_small(self) -> bool:
        """Whether a second thread would slow it down. The network that embeds images is large."""
        return self.saved.embedding is None and super().is_small

    def prepared(self, rows: Tensor) -> Tensor:
        """Return rows encoded and scaled. Images become features first."""
        if self.saved.embedding is not None:
            rows = self.saved.embedding(rows)
        found: Tensor = self.preparation(rows)
        return found

    def posterior(self, outputs: Tensor) -> Tensor:
        """Return P(true class | row), float32."""
        return _shares(outputs[:, : len(self.saved.classes)])

    def label_posterior(self, outputs: Tensor) -> Tensor:
        """Return P(label as given | row), float32."""
        return _shares(outputs[:, len(self.saved.classes) :])


class _Posteriors(nn.Module):
    """From encoded rows to both posteriors, side by side: (B, 2·K)."""

    def __init__(self, committee: Committee, undone: Transition | None) -> None:
        super().__init__()
        self.committee = committee
        self.undone = undone

    def forward(self, features: Tensor) -> Tensor:
        of_class, of_label = self.committee(features.double())
        if self.undone is not None:
            of_class = without_noise(of_label, self.undone)
        return torch.cat([of_class, of_label], 1)


def _shares(found: Tensor) -> Tensor:
    return (found / found.sum(1, keepdim=True)).float()


def _networks(part: Mapping[str, Any]) -> nn.Module:
    """Return networks as a part of a committee describes them: lanes of one kind, or networks of postmax by name."""
    if "kind" in part:
        return blank(part)

    def make(outputs: int) -> nn.Module:
        network: nn.Module = models.get(part["network"], num_classes=outputs, input_shape=(part["inputs"],))
        return network

    return Lanes([build(answer, make) for answer in part["answers"]])


def _transition(matrix: Tensor | None) -> Transition | None:
    if matrix is None:
        return None
    transition = Transition(matrix)
    # Rows were normalised before they were saved. Doing it again could change the last digit.
    transition.matrix = matrix.double()
    return transition


def _loss(saved: SavedClassifier) -> Loss:
    choice = LossChoice(saved.loss["loss"], saved.loss["divergence"], saved.loss["options"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PostmaxWarning)  # advice for training
        return choice.make(saved.loss["correction"], _transition(saved.transition))
