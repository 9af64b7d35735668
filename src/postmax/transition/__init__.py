"""Label noise as a matrix: what it is, and how to take it back out of a posterior."""

from postmax.transition.matrix import Transition
from postmax.transition.simplex import project_onto_simplex

__all__ = ["Transition", "project_onto_simplex"]
