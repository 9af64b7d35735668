"""Label noise as a matrix: what it is, how to put it into labels, and how to take it out of a posterior."""

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
