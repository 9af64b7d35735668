"""postmax: good classifiers from wrong labels.

Importing this package loads torch and numpy, nothing else.
"""

from postmax import costs, divergences, functional, links, losses
from postmax.errors import InputError
from postmax.estimation import TransitionEstimate, estimate_transition
from postmax.labels import encode_labels
from postmax.losses import FPMLLoss
from postmax.transition import NoisyLabels, Transition
from postmax.version import __version__

__all__ = [
    "FPMLLoss",
    "InputError",
    "NoisyLabels",
    "Transition",
    "TransitionEstimate",
    "__version__",
    "costs",
    "divergences",
    "encode_labels",
    "estimate_transition",
    "functional",
    "links",
    "losses",
]
