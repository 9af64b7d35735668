"""Options of loss terms that hold something larger than a number: the label noise and a base loss."""

from __future__ import annotations

from postmax.errors import InputError
from postmax.losses.base import Loss
from postmax.losses.catalogue import get, needs_transition
from postmax.losses.term import Term
from postmax.losses.term_loss import TermLoss
from postmax.transition import Transition
from postmax.transition.matrix import Matrix


def known_noise(name: str, transition: Transition | Matrix | None) -> Transition:
    """Return the label noise that the loss `name` needs, after checking that it is given and can be removed."""
    if transition is None:
        raise InputError(f"the loss {name} needs the label noise: pass transition=pm.Transition(matrix).")
    noise = transition if isinstance(transition, Transition) else Transition(transition)
    return noise.require_recoverable()


def no_weights(name: str) -> InputError:
    """Return the error for class weights in a loss that knows the noise."""
    return InputError(
        f"class weights cannot be combined with the loss {name}: they would weigh the noisy labels, and the posterior "
        'of the true ones would be wrong. The loss "backward" weighs true classes.'
    )


def base_term(base: str | Term | Loss) -> Term:
    """Return the term of a loss, which is given by name, as a loss or as a term.

    A loss that needs the label noise cannot be given by name, because the noise does not reach it.
    """
    if isinstance(base, Term):
        return base
    if isinstance(base, str):
        if needs_transition(base, {}):
            raise InputError(
                f"the base loss {base} needs the label noise, which does not reach it by its name: pass "
                f'base=pm.losses.get("{base}", transition=…).'
            )
        base = get(base)
    if not isinstance(base, Loss):
        raise InputError(f"expected a loss or its name, got {type(base).__name__}.")
    loss = base.summable()
    if not isinstance(loss, TermLoss) or loss.weight is not None or loss.shown():
        raise InputError("the base of a loss is a loss without options of nn.CrossEntropyLoss; give them to the whole.")
    return loss.term
