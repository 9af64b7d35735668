"""postmax: good classifiers from wrong labels.

Importing this package loads torch and numpy, nothing else.
"""

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

from postmax import divergences, functional, links, losses
from postmax.errors import InputError
from postmax.estimation import TransitionEstimate, estimate_transition
from postmax.labels import encode_labels
from postmax.losses import FPMLLoss
from postmax.transition import NoisyLabels, Transition
from postmax.version import __version__

if TYPE_CHECKING:
    from postmax import data as data
    from postmax import estimation as estimation
    from postmax import methods as methods
    from postmax import models as models
    from postmax import tables as tables

__all__ = [
    "FPMLLoss",
    "InputError",
    "NoisyLabels",
    "Transition",
    "TransitionEstimate",
    "__version__",
    "divergences",
    "encode_labels",
    "estimate_transition",
    "functional",
    "links",
    "losses",
]

_IMPORTED_WHEN_USED = ("data", "methods", "models", "tables")


def __getattr__(name: str) -> ModuleType:
    """Import `postmax.data`, `postmax.models` and other heavy packages when they are first used."""
    if name in _IMPORTED_WHEN_USED:
        return importlib.import_module(f"postmax.{name}")
    raise AttributeError(f"module 'postmax' has no attribute {name!r}")
