"""The battery of `LossTester` for costs, and references to compare them with."""

from functools import cache, partial

import mpmath
import pytest
from loss_tester import LossTester

import postmax as pm

mp = mpmath.mp.clone()
mp.dps = 40

# Costs in which the log-probability of every class counts, and which are ±∞ by their formula where one is −∞.
INFINITE_IF_MASKED = {"cores", "label-smoothing", "negative-label-smoothing", "unbiased", "natarajan"}


def softmax(row):
    """Probabilities of a row of logits, to 40 digits and without underflow."""
    weights = [mp.exp(mp.mpf(z)) for z in row]
    return [w / sum(weights) for w in weights]


def cost_tester(name, reference, *, class_weights=True, **options):
    """The battery for a cost.

    Args:
        name: What `postmax.losses.get` calls it.
        reference: The price of a label, from a list of mpmath probabilities and the label (and, if the cost mixes rows,
            how the labels of the other rows are distributed).
        class_weights: Whether the cost takes them.
        options: Options of the cost.
    """
    cost = pm.costs.get(name, **options)

    @cache
    def of_row(row, label, *others):
        return reference(softmax(row), label, *others)

    return LossTester(
        partial(pm.losses.get, name, **options),
        partial(pm.functional.cost_loss, cost=cost),
        of_row,
        mixes_rows=cost.mixes_rows,
        class_weights=class_weights,
    )


def every_check(testers, *, compiled=None, without=()):
    """Parametrize a test by name and check; compiling takes the time, so only the names in `compiled` are (or all)."""
    cases = [
        (name, check)
        for name in testers
        for check in LossTester.checks()
        if check not in without
        and (check != "check_masked_classes" or name not in INFINITE_IF_MASKED)
        and (compiled is None or name in compiled or "compiled" not in check)
    ]
    return pytest.mark.parametrize(("name", "check"), cases)
