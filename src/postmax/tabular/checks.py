"""Checks of the settings of `FPMLClassifier`, before anything is trained."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from postmax.errors import InputError
from postmax.registry import unknown_name
from postmax.tabular.learning import CORRECTIONS
from postmax.tabular.networks import BUILDERS

_COUNTS = {"max_iter": 1, "batch_size": 1, "n_folds": 2}
# Each fold trains as many networks as there are candidates.
_MOST = {"n_folds": 50}
_NUMBERS = {"learning_rate": "above 0", "weight_decay": "0 or more"}


def check_settings(settings: Any) -> None:
    """Check what can be checked without rows.

    Args:
        settings: An object with the settings of the classifier as attributes.

    Raises:
        InputError: If a setting has a wrong type or value. The message names it.
    """
    if settings.correction not in CORRECTIONS:
        raise unknown_name("correction", str(settings.correction), CORRECTIONS)
    _check_network(settings.network)
    for name, least in _COUNTS.items():
        value = getattr(settings, name)
        if value is not None and not (_is_number(value, Integral) and value >= least):
            raise InputError(f"{name} must be a whole number, {least} or more, or None; got {value!r}.")
        if value is not None and value > _MOST.get(name, value):
            raise InputError(f"{name} is at most {_MOST[name]}, because each fold is a training; got {value}.")
    for name, allowed in _NUMBERS.items():
        value = getattr(settings, name)
        if value is None:
            continue
        if not _is_number(value, Real) or value < 0 or (value == 0 and allowed == "above 0"):
            raise InputError(f"{name} must be a number, {allowed}, or None; got {value!r}.")
    if settings.loss is None and settings.loss_options:
        raise InputError("loss_options are the options of a loss that is given by name: give loss as well.")
    estimator = settings.estimator
    if estimator is not None and not (hasattr(estimator, "fit") and hasattr(estimator, "get_params")):
        raise InputError(
            f"estimator must be a scikit-learn classifier, such as HistGradientBoostingClassifier(); got {estimator!r}."
        )


def _check_network(network: Any) -> None:
    if not isinstance(network, str) or network == "auto" or network in BUILDERS:
        return
    from postmax import models  # noqa: PLC0415  (it takes long to import)

    if network not in models.names():
        raise unknown_name("network", network, tuple(dict.fromkeys(("auto", *BUILDERS, *models.names()))))


def _is_number(value: Any, kind: type) -> bool:
    """Say whether a value is a number; true and false, and NaN, are none."""
    return isinstance(value, kind) and not isinstance(value, bool) and value == value
