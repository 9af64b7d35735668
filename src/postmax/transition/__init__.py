"""Label noise as a transition matrix: describe it, corrupt labels with it, and correct a posterior for it."""

from postmax.transition.instance import corrupt_by_features
from postmax.transition.matrix import Transition
from postmax.transition.noisy_labels import NoisyLabels
from postmax.transition.simplex import project_onto_simplex
from postmax.transition.spec import kinds, parse_noise, read_matrix

__all__ = [
    "NoisyLabels",
    "Transition",
    "corrupt_by_features",
    "kinds",
    "parse_noise",
    "project_onto_simplex",
    "read_matrix",
]
