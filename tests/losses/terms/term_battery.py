"""The battery of `LossTester` for loss terms, and references to compare them with."""

from functools import cache, partial

import mpmath
import pytest
from loss_tester import LossTester

import postmax as pm

_SLOW = "check_compiled_for_any_batch_size"
mp = mpmath.mp.clone()
mp.dps = 40


def softmax(row):
    """Probabilities of a row of logits, to 40 digits and without underflow."""
    weights = [mp.exp(mp.mpf(z)) for z in row]
    return [w / sum(weights) for w in weights]


def term(name, **options):
    """The term of a named loss."""
    return pm.losses.get(name, **options).term


def term_tester(name, reference, *, class_weights=True, **options):
    """The battery for a loss that is made of terms.

    Args:
        name: Its name in `postmax.losses.get`.
        reference: The loss of a label, from a list of mpmath probabilities and the label (and, if the loss mixes rows,
            the distribution of the labels of the other rows).
        class_weights: Whether the loss takes class weights.
        options: Options of the loss.
    """
    found = term(name, **options)

    @cache
    def of_row(row, label, *others):
        return reference(softmax(row), label, *others)

    return LossTester(
        partial(pm.losses.get, name, **options),
        partial(pm.functional.term_loss, term=found),
        of_row,
        mixes_rows=found.mixes_rows,
        class_weights=class_weights,
    )


def every_check(testers, *, compiled=None, without=(), infinite_if_masked=()):
    """Parametrize a test by name and check.

    Args:
        testers: The testers by name.
        compiled: The names that are also compiled, which takes most of the time; all by default.
        without: Checks to leave out.
        infinite_if_masked: The names of losses that are infinite by their formula if a class has a logit of −∞.
    """
    first = next(iter(testers))
    cases = [
        # Compiling for any batch size takes seconds. Beyond the first loss it runs in `make test-all` only.
        pytest.param(name, check, marks=pytest.mark.slow if check == _SLOW and name != first else ())
        for name in testers
        for check in LossTester.checks()
        if check not in without
        and (check != "check_masked_classes" or name not in infinite_if_masked)
        and (compiled is None or name in compiled or "compiled" not in check)
    ]
    return pytest.mark.parametrize(("name", "check"), cases)
