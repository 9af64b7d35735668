"""The ways to train on rows: many small networks side by side, or any strategy of postmax with any network."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from postmax import models
from postmax.errors import InputError
from postmax.estimation import TransitionEstimate
from postmax.extras import need
from postmax.losses import Loss
from postmax.tabular.committee import fit_committee
from postmax.tabular.learning import FirstFit
from postmax.tabular.networks import LaneNetwork
from postmax.tabular.training import Folds, Rows, Settings
from postmax.transition import Transition

Say = Callable[[str], None]


@dataclass(frozen=True)
class SideBySide:
    """Trains candidates side by side, and makes a committee of them.

    Attributes:
        rows: The training rows.
        folds: The rows of the lanes.
        settings: The candidates.
        seed: The seed of everything random.
        stop_early: Keep the weights that were best on held-out rows.
        say: Gets a line for each shape of networks.
        start: A stack of networks for each shape, from which training goes on.
    """

    rows: Rows
    folds: Folds
    settings: Sequence[Settings]
    seed: int
    stop_early: bool
    say: Say
    start: Sequence[LaneNetwork] = ()

    def __call__(self, loss: Loss, estimate: Callable[[], TransitionEstimate]) -> FirstFit:  # noqa: ARG002  (no network asks)
        """Train with a loss; see `postmax.tabular.learning.learn`."""
        fitted = fit_committee(
            self.settings, self.rows, self.folds, loss, self.seed, stop_early=self.stop_early, start=self.start
        )
        history, shares = [], iter(fitted.shares)
        for one in fitted.trained:
            weights = [next(shares) for _ in one.settings]
            self.say(
                f"{one.settings[0].kind}: loss {float(one.scores.min()):.4f} on held-out rows after {one.epochs} "
                f"epochs, {sum(weights):.0%} of the committee".replace("%", " %")
            )
            for step, scores in one.history:
                for settings, score in zip(one.settings, scores, strict=True):
                    entry = {"network": settings.kind, "weight_decay": settings.decay, "step": step}
                    history.append({**entry, "held_out_loss": score})
        return FirstFit(
            fitted.committee,
            fitted.label_posterior,
            fitted.posterior,
            tuple(history),
            max(one.epochs for one in fitted.trained),
            # a committee computes in float64, training goes on in float32
            tuple(copy.deepcopy(one.network).float() for one in fitted.trained),
            tuple(zip((one.kind for one in self.settings), fitted.shares, strict=True)),
        )


@dataclass(frozen=True)
class OnEngine:
    """Runs any strategy of postmax, once for each fold, and makes a committee of the networks.

    Attributes:
        rows: The training rows.
        folds: The rows of each run.
        settings: An `postmax.tabular.engine.EngineSettings`.
        new_network: Makes a network with so many outputs.
        given: The noise that was given; None to estimate it when a strategy asks.
        say: Gets a line for each fold.
        jobs: How many folds are trained at the same time.
    """

    rows: Rows
    folds: Folds
    settings: Any
    new_network: Callable[[int], nn.Module]
    given: Transition | None
    say: Say
    jobs: int | None

    def __call__(self, loss: Loss, estimate: Callable[[], TransitionEstimate]) -> FirstFit:
        """Train with a loss; see `postmax.tabular.learning.learn`."""
        from postmax.tabular import engine  # noqa: PLC0415  (the engine takes long to import, and few need it)

        noise = engine.KnownNoise(estimate, self.given)
        parallel = need("sklearn.utils.parallel", "train")
        # Strategies use torch's global generator, so folds run in processes, never in threads.
        answers = parallel.Parallel(n_jobs=self.jobs)(
            parallel.delayed(engine.run_fold)(self.settings, self.rows, train, held, loss, self.new_network, noise)
            for train, held in zip(self.folds.train, self.folds.held, strict=True)
        )
        history = []
        for fold, one in enumerate(answers):
            epoch = min(range(len(one.history)), key=one.history.__getitem__)
            self.say(f"fold {fold + 1}: loss {one.history[epoch]:.4f} on held-out rows in epoch {epoch + 1}")
            history += [{"fold": fold, "epoch": e + 1, "held_out_loss": s} for e, s in enumerate(one.history)]
        label_posterior, posterior = engine.held_out(self.folds, answers, self.rows)
        epochs = max(len(one.history) for one in answers)
        committee = engine.committee_of(
            answers, loss, getattr(self.new_network, "name", None), self.rows.features.shape[1]
        )
        return FirstFit(committee, label_posterior, posterior, tuple(history), epochs)


def network_maker(network: Any, features: int) -> Callable[[int], nn.Module]:
    """Return a function from a number of outputs to a new network.

    Args:
        network: The name of a model of postmax, a module (copied for each training, with new random weights where its
            parts can be reset), or a function of the number of features and of classes.
        features: d.

    Raises:
        InputError: If it is none of these.
    """
    if isinstance(network, str):
        name = "mlp" if network == "auto" else network
        models.describe(name)
        return NamedModel(name, features)
    if isinstance(network, nn.Module):
        return partial(_fresh_copy, network)
    if callable(network):
        _check_factory(network)
        return partial(_from_factory, network, features)
    raise InputError(
        f"network is a name ({', '.join(models.names())}), an nn.Module, or a function of the number of features and "
        f"of classes that makes one, not {network!r}."
    )


@dataclass(frozen=True)
class NamedModel:
    """Makes a model of postmax with so many outputs.

    Attributes:
        name: The name of the model.
        features: The number of its inputs.
    """

    name: str
    features: int

    def __call__(self, outputs: int) -> nn.Module:
        """Return a new network."""
        return models.get(self.name, num_classes=outputs, input_shape=(self.features,))


def _fresh_copy(network: nn.Module, outputs: int) -> nn.Module:  # noqa: ARG001  (the module has its outputs)
    """Return a copy of a network with new random weights, so that folds do not start from the same ones."""
    fresh = copy.deepcopy(network)
    for part in fresh.modules():
        reset = getattr(part, "reset_parameters", None)
        if callable(reset):
            reset()
    return fresh


def _check_factory(factory: Callable[..., Any]) -> None:
    try:
        inspect.signature(factory).bind(1, 2)
    except TypeError as error:
        raise InputError(
            f"network={factory!r} is called with the number of features and the number of classes: {error}."
        ) from None
    except ValueError:
        return  # a built-in without a signature


def _from_factory(factory: Callable[[int, int], nn.Module], features: int, outputs: int) -> nn.Module:
    return factory(features, outputs)


def check_outputs(make: Callable[[int], nn.Module], features: int, classes: int) -> None:
    """Check that a network takes the rows and has an output for each class.

    Raises:
        InputError: If it does not.
    """
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        network = make(classes).eval()
        try:
            outputs: Tensor = network(torch.zeros(2, features))
        except RuntimeError as error:
            raise InputError(f"the network cannot take rows of {features} features: {error}") from error
    if outputs.shape != (2, classes):
        raise InputError(
            f"the network gives outputs of the shape {tuple(outputs.shape)} for 2 rows; with {classes} classes it must "
            f"be (2, {classes}). Inputs are the {features} encoded features."
        )
