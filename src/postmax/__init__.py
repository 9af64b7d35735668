"""postmax: good classifiers from wrong labels.

Importing this package loads nothing else. Each name is loaded when it is first used: `postmax.FPMLLoss` needs torch and
numpy, `postmax.data` and other packages need extras. So `postmax --help` answers at once.
"""

import importlib
from typing import TYPE_CHECKING, Any

from postmax.version import __version__

if TYPE_CHECKING:
    from postmax import auditing as auditing
    from postmax import checking as checking
    from postmax import data as data
    from postmax import divergences, functional, links, losses
    from postmax import errors as errors
    from postmax import estimation as estimation
    from postmax import labels as labels
    from postmax import methods as methods
    from postmax import models as models
    from postmax import plugins as plugins
    from postmax import registry as registry
    from postmax import tables as tables
    from postmax import transition as transition
    from postmax.auditing import Audit, audit
    from postmax.checking import check
    from postmax.errors import InputError
    from postmax.estimation import TransitionEstimate, estimate_transition
    from postmax.estimator import FPMLClassifier
    from postmax.labels import encode_labels
    from postmax.loading import load
    from postmax.losses import FPMLLoss
    from postmax.runs import Predictor
    from postmax.transition import NoisyLabels, Transition

__all__ = [
    "Audit",
    "FPMLClassifier",
    "FPMLLoss",
    "InputError",
    "NoisyLabels",
    "Predictor",
    "Transition",
    "TransitionEstimate",
    "__version__",
    "audit",
    "check",
    "divergences",
    "encode_labels",
    "estimate_transition",
    "functional",
    "links",
    "load",
    "losses",
]

_MODULES = (
    *(
        "auditing",
        "checking",
        "data",
        "divergences",
        "errors",
        "estimation",
        "functional",
        "labels",
        "links",
        "losses",
        "methods",
        "models",
    ),
    *("plugins", "registry", "tables", "transition"),
)
_HOMES = {
    "Audit": "postmax.auditing",
    "FPMLClassifier": "postmax.estimator",
    "FPMLLoss": "postmax.losses",
    "InputError": "postmax.errors",
    "NoisyLabels": "postmax.transition",
    "Predictor": "postmax.runs",
    "Transition": "postmax.transition",
    "TransitionEstimate": "postmax.estimation",
    "audit": "postmax.auditing",
    "check": "postmax.checking",
    "encode_labels": "postmax.labels",
    "estimate_transition": "postmax.estimation",
    "load": "postmax.loading",
}


def __getattr__(name: str) -> Any:
    """Import a module or a name when it is first used."""
    if name in _MODULES:
        return importlib.import_module(f"postmax.{name}")
    if name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
        globals()[name] = value  # the next use finds it without this function
        return value
    raise AttributeError(f"module 'postmax' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
