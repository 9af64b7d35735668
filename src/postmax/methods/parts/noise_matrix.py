"""The transition matrix of a method: given, or estimated from what a network has learnt."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from postmax import estimation
from postmax.data import Dataset
from postmax.errors import InputError
from postmax.estimation import Evidence, TransitionEstimator, needs_features
from postmax.estimation.counts import prior_behind
from postmax.losses import Loss
from postmax.methods.method import Epoch, Setup
from postmax.methods.parts.calibration import calibrated

_GIVEN, _CROSS_FIT = "given", "cross-fit"
_IDENTITY_SHARES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
_LARGEST_CONDITION = 1000.0
_FEWEST_ROWS = 3
_HELD_OUT, _FEWEST_HELD_OUT = 0.1, 30


class NoiseMatrix:
    """The matrix T of the label noise. It starts as the identity matrix, and it survives a restart.

    Args:
        setup: What the loop offers.
        method: The name of the method, for messages.
        estimator: Where the matrix comes from: "given" is the noise that the setting `transition` names, "cross-fit" is
            the estimate from small networks that are trained before the run. Every other name is an estimator of
            `postmax.estimation`, which looks at a network of the method.
        network: The network that an estimator will look at.

    Attributes:
        matrix: T, (K, K), float64.
        is_known: Whether T is known before the training.
        shown: The numbers of the rows that the network may be trained on before an estimator looks at it. The others
            decide how sure of itself it should be: a network that has memorised wrong labels would show no noise.
    """

    def __init__(self, setup: Setup, method: str, estimator: str, network: nn.Module) -> None:
        classes = setup.train.num_classes
        self._labels = setup.train.labels
        self._inputs = _comparable(setup.train)
        self._estimator: TransitionEstimator | None = None
        self._wants_features = False
        self._held_out, self.shown = _parts(setup)
        self.matrix = setup.state("transition", torch.eye(classes, dtype=torch.float64))
        # The share of wrong labels, and the share of the identity matrix that was mixed in.
        self._facts = setup.state("noise", torch.zeros(2, dtype=torch.float64))
        self.is_known = estimator in (_GIVEN, _CROSS_FIT)
        if estimator == _GIVEN:
            self._set(setup.transition().matrix)
        elif estimator == _CROSS_FIT:
            self._set(setup.estimate().transition.matrix)
        else:
            self._estimator = _named(estimator)
            self._wants_features = needs_features(self._estimator)
            if self._wants_features and self._inputs is None and not hasattr(network, "features"):
                raise InputError(
                    f"{method}: the estimator {estimator} compares the features of rows, and the network has no "
                    "method `features`: choose another method.estimator, such as dual-t."
                )

    @property
    def noise_rate(self) -> float:
        """The share of wrong labels that the matrix means."""
        return float(self._facts[0])

    @property
    def values(self) -> dict[str, float]:
        """What a method reports about the matrix; see `postmax.methods.Step`."""
        return {"estimated_noise": self.noise_rate, "identity_share": float(self._facts[1])}

    def estimate(self, run: Epoch, network: nn.Module, loss: Loss) -> None:
        """Set the matrix to what the estimator finds in the posteriors, or in the features, of all training rows.

        The posteriors are calibrated first, because estimators take them for the probabilities of the given labels.

        Args:
            run: The present epoch.
            network: A network that was trained on the labels as they are given.
            loss: The loss that it was trained with.
        """
        if self._estimator is None or len(self._labels) < _FEWEST_ROWS:
            return
        classes = len(self.matrix)
        labels = self._labels.cpu()
        posterior = calibrated(loss.posterior(run.evaluate(network).double()).cpu(), labels, self._held_out.cpu())
        features = self._features(run, network) if self._wants_features else None
        evidence = Evidence(labels, tuple(range(classes)), posterior, features, seed=0)
        self._set(self._estimator.solve(self._estimator.rows(evidence), classes).matrix)

    def _features(self, run: Epoch, network: nn.Module) -> Tensor:
        """Return rows that can be compared: those of a table or of embeddings as they are, images by the network."""
        if self._inputs is not None:
            return self._inputs.float().cpu()
        return run.evaluate(_Features(network)).flatten(1).float().cpu()

    @torch.no_grad()
    def _set(self, found: Tensor) -> None:
        matrix, share = invertible(found.double().cpu())
        rate = float(prior_behind(matrix, self._labels.cpu()) @ (1 - matrix.diagonal()))
        self.matrix.copy_(matrix)
        self._facts.copy_(torch.tensor([rate, share], dtype=torch.float64))


def invertible(matrix: Tensor) -> tuple[Tensor, float]:
    """Return a matrix that can be inverted well, and the share of the identity matrix that was mixed in for that.

    Example:
        >>> matrix, share = invertible(torch.full((2, 2), 0.5))
        >>> matrix, share
        (tensor([[0.5050, 0.4950],
                [0.4950, 0.5050]]), 0.01)
    """
    keeps = torch.eye(len(matrix), dtype=matrix.dtype)
    for share in _IDENTITY_SHARES:
        mixed = (1 - share) * matrix + share * keeps
        if torch.linalg.cond(mixed) <= _LARGEST_CONDITION:
            return mixed, share
    return keeps, 1.0


def _comparable(train: Dataset) -> Tensor | None:
    """Return the rows if they are features already; None for images."""
    inputs = train.inputs
    return inputs if isinstance(inputs, Tensor) and inputs.is_floating_point() and inputs.dim() == 2 else None


def _parts(setup: Setup) -> tuple[Tensor, Tensor]:
    """Return the rows that are held out, and the other ones. Few rows are in both parts."""
    count = len(setup.train)
    order = torch.randperm(count, generator=setup.generator("held out")).to(setup.device)
    held_out = int(_HELD_OUT * count)
    return (order[:held_out], order[held_out:]) if held_out >= _FEWEST_HELD_OUT else (order, order)


class _Features(nn.Module):
    """A network that ends before its last layer."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, inputs: Tensor) -> Tensor:
        features: Tensor = self.network.features(inputs)  # type: ignore[operator]
        return features


def _named(estimator: str) -> TransitionEstimator:
    try:
        return estimation.get(estimator)
    except InputError as error:
        raise InputError(f"method.estimator: {error} Or: {_GIVEN}, {_CROSS_FIT}.") from error
