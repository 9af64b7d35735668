"""Train on rows in the way that the settings of `FPMLClassifier` ask for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from postmax.errors import InputError
from postmax.tabular.candidates import candidates, fold_count, repeat_count
from postmax.tabular.given_noise import noise_of
from postmax.tabular.learning import Learnt, LossChoice, learn
from postmax.tabular.networks import BUILDERS
from postmax.tabular.strategies import OnEngine, SideBySide, check_outputs, network_maker
from postmax.tabular.training import Folds, Rows
from postmax.transition import Transition

_STANDARD = "standard"

Say = Callable[[str], None]


def learn_rows(
    settings: Any,
    rows: Rows,
    classes: tuple[str | int, ...],
    seed: int,
    say: Say,
    start: Sequence[Any] = (),
) -> Learnt:
    """Train networks, find the noise, and remove it; see `postmax.tabular.learning.learn`.

    Args:
        settings: An object with the settings of the classifier as attributes.
        rows: The training rows.
        classes: The names of the classes.
        seed: The seed of everything random.
        say: Gets lines about the progress.
        start: A stack of networks for each shape, from which training goes on.

    Raises:
        InputError: If settings do not fit together.
    """
    generator = torch.Generator().manual_seed(seed)
    side_by_side = is_lane_network(settings.network) and settings.method is None
    repeats = repeat_count(len(rows)) if side_by_side else 1
    folds = Folds.make(rows.labels, fold_count(settings.n_folds, len(rows)), repeats, generator)
    noise = noise_of(settings.noise, classes)

    def beside(network: str, start: Sequence[Any] = ()) -> SideBySide:
        tried = candidates(network, **training_settings(settings))
        return SideBySide(rows, folds, tried, seed, bool(settings.early_stopping), say, start)

    def plain_posterior() -> Tensor:
        say("networks that know no noise:")
        return beside("auto")(LossChoice().make(None, None), _no_estimate).label_posterior

    return learn(
        beside(settings.network, start) if side_by_side else _engine(settings, rows, folds, seed, noise, say),
        plain_posterior,
        rows.labels,
        classes,
        LossChoice(settings.loss, settings.divergence, dict(settings.loss_options or {})),
        noise,
        settings.correction,
        is_plain=settings.loss is None and settings.method in (None, _STANDARD),
        seed=seed,
    )


def is_lane_network(network: Any) -> bool:
    """Return whether networks of this name can be trained side by side."""
    return isinstance(network, str) and (network == "auto" or network in BUILDERS)


def training_settings(settings: Any) -> dict[str, Any]:
    """Return the settings that change how a network is trained; None where the candidate has its own."""
    return {name: getattr(settings, name) for name in ("max_iter", "batch_size", "learning_rate", "weight_decay")}


def _engine(settings: Any, rows: Rows, folds: Folds, seed: int, noise: Any, say: Say) -> OnEngine:
    from postmax.tabular.engine import EngineSettings, check_method  # noqa: PLC0415  (it takes long to import)

    method = settings.method or _STANDARD
    check_method(method)
    if not bool((rows.weights == 1).all()):
        raise InputError(
            "sample_weight is for networks that are trained side by side; a method, or a network of your own, does "
            "not know it."
        )
    how = EngineSettings(
        method,
        dict(settings.method_options or {}),
        settings.max_iter,
        settings.batch_size,
        3e-3 if settings.learning_rate is None else settings.learning_rate,
        1e-2 if settings.weight_decay is None else settings.weight_decay,
        seed % 2**31,
        bool(settings.early_stopping),
    )
    make = network_maker(settings.network, rows.features.shape[1])
    check_outputs(make, rows.features.shape[1], rows.num_classes)
    given = noise if isinstance(noise, Transition) else None
    return OnEngine(rows, folds, how, make, given, say, settings.n_jobs)


def _no_estimate() -> Any:
    raise AssertionError("networks that are trained side by side ask for no estimate")
