"""The label noise as an option of a cost."""

from __future__ import annotations

from postmax.errors import InputError
from postmax.transition import Transition
from postmax.transition.matrix import Matrix


def known_noise(name: str, transition: Transition | Matrix | None) -> Transition:
    """The transition matrix a cost needs, if it is there and can be undone."""
    if transition is None:
        raise InputError(f"the cost {name} needs the label noise: pass transition=pm.Transition(matrix).")
    noise = transition if isinstance(transition, Transition) else Transition(transition)
    return noise.require_recoverable()
