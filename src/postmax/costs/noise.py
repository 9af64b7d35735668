"""The label noise as an option of a cost."""

from __future__ import annotations

from postmax.costs.base import Cost
from postmax.costs.catalogue import get, option_names
from postmax.errors import InputError
from postmax.registry import resolve
from postmax.transition import Transition
from postmax.transition.matrix import Matrix


def known_noise(name: str, transition: Transition | Matrix | None) -> Transition:
    """The transition matrix a cost needs, if it is there and can be undone."""
    if transition is None:
        raise InputError(f"the cost {name} needs the label noise: pass transition=pm.Transition(matrix).")
    noise = transition if isinstance(transition, Transition) else Transition(transition)
    return noise.require_recoverable()


def no_weights(name: str) -> InputError:
    """The error for class weights beside a cost that is told the noise."""
    return InputError(
        f"class weights cannot be combined with the cost {name}: they would weigh the noisy labels, and the posterior "
        'of the true ones would be wrong. The loss "backward" weighs true classes.'
    )


def base_cost(base: str | Cost) -> Cost:
    """The cost another one is made of; by its name only if it needs no noise."""
    if isinstance(base, str) and "transition" in option_names(base):
        raise InputError(
            f"the base cost {base} needs the label noise, which does not reach it by its name: pass "
            f'base=pm.costs.get("{base}", transition=…).'
        )
    return resolve(base, Cost, get)  # type: ignore[type-abstract]
