"""The smallest fit there is: a constant. It must return the class frequencies, whatever the loss is made of."""

from itertools import product

import pytest
import torch
from finite_problem import DIVERGENCES, joint_minimiser, minimiser
from torch.testing import assert_close

import postmax as pm

FREQUENCIES = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64)
NOISE = pm.Transition([[0.8, 0.1, 0.1, 0.0], [0.0, 0.7, 0.2, 0.1], [0.05, 0.05, 0.85, 0.05], [0.25, 0.0, 0.0, 0.75]])
CORRECTIONS_AND_LINKS = [
    *product(["objective", "posterior"], pm.links.names()),
    ("forward", "softmax"),
    ("factored", "softmax"),
]
# Every class is reached from every other, and yet not at random.
DENSE = pm.Transition([[0.7, 0.1, 0.1, 0.1], [0.05, 0.75, 0.15, 0.05], [0.1, 0.1, 0.75, 0.05], [0.2, 0.05, 0.1, 0.65]])


def labels_with(frequencies, total=4000):
    counts = (frequencies * total).round().long()
    assert counts.sum() == total
    return torch.arange(len(frequencies)).repeat_interleave(counts)


def fit_constant(loss, labels):
    """Minimise the loss over one logit vector shared by all rows."""
    classes = len(FREQUENCIES)

    def objective(z):
        return loss(z.expand(len(labels), classes), labels)

    if loss.objective.link.normalised:
        return joint_minimiser(objective, (classes,))
    return minimiser(objective, (classes,))


@pytest.mark.parametrize("passive_weight", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("link", pm.links.names())
@pytest.mark.parametrize("name", DIVERGENCES)
def test_constant_fit_recovers_class_frequencies(name, link, passive_weight):
    loss = pm.FPMLLoss(name, link, passive_weight=passive_weight)
    z = fit_constant(loss, labels_with(FREQUENCIES))
    assert_close(loss.posterior(z, normalize=False), FREQUENCIES, rtol=0, atol=1e-6)
    assert_close(loss.posterior(z), FREQUENCIES, rtol=0, atol=1e-6)
    assert loss.predict(z) == 3


@pytest.mark.parametrize(("correction", "link"), CORRECTIONS_AND_LINKS)
@pytest.mark.parametrize("name", DIVERGENCES)
def test_constant_fit_on_noisy_labels_recovers_clean_frequencies(name, correction, link):
    noise = DENSE if correction == "factored" else NOISE
    loss = pm.FPMLLoss(name, link, transition=noise, correction=correction)
    z = fit_constant(loss, labels_with(FREQUENCIES @ noise.matrix))
    assert_close(loss.posterior(z), FREQUENCIES, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", DIVERGENCES)
def test_floor_moves_only_the_frequencies_below_it(name):
    """Exact wherever the posterior is above the floor; at the floor where the positive weights alone reach it."""
    floor = 0.15
    loss = pm.FPMLLoss(name, transition=NOISE, correction="objective", floor=floor)
    z = fit_constant(loss, labels_with(FREQUENCIES @ NOISE.matrix))
    assert_close(loss.posterior(z, normalize=False), FREQUENCIES.clamp_min(floor), rtol=0, atol=1e-6)
