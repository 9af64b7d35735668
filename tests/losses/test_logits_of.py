"""`logits_of` is the inverse of `posterior`, for every loss that can express every posterior."""

from dataclasses import dataclass

import pytest
import torch

import postmax as pm
from postmax.errors import InputError

POSTERIOR = torch.tensor([[0.7, 0.2, 0.1], [0.05, 0.9, 0.05], [1 / 3, 1 / 3, 1 / 3], [0.998, 0.001, 0.001]])
NOISE = pm.Transition([[0.8, 0.1, 0.1], [0.0, 0.9, 0.1], [0.1, 0.0, 0.9]])


@pytest.mark.parametrize("name", [name for name in pm.losses.names() if name not in ("logit-clip", "natarajan")])
def test_every_loss(name):
    loss = pm.losses.get(name, transition=NOISE)
    for share in (0.0, 0.99):
        now = loss.at(share)
        torch.testing.assert_close(now.posterior(now.logits_of(POSTERIOR)), POSTERIOR, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("passive_weight", [1.0, 0.25])
@pytest.mark.parametrize("link", pm.links.names())
def test_every_link(link, passive_weight):
    loss = pm.FPMLLoss("gan", link, passive_weight=passive_weight)
    logits = loss.logits_of(POSTERIOR)
    torch.testing.assert_close(loss.posterior(logits), POSTERIOR, rtol=1e-5, atol=1e-6)
    # Without normalisation too: the logits stand for this very posterior, not for a multiple of it.
    torch.testing.assert_close(loss.posterior(logits, normalize=False), POSTERIOR, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("correction", ["forward", "objective", "posterior", "factored"])
def test_every_correction(correction):
    loss = pm.FPMLLoss("sl", transition=NOISE, correction=correction)
    torch.testing.assert_close(loss.posterior(loss.logits_of(POSTERIOR)), POSTERIOR, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["fpml", "gce", "bi-tempered"])
def test_the_gradient_reaches_the_posterior(name):
    loss = pm.losses.get(name)
    p = POSTERIOR.double().requires_grad_()
    assert torch.autograd.gradcheck(lambda q: loss(loss.logits_of(q), torch.tensor([0, 1, 2, 0])), p)


def test_classes_in_the_second_dimension():
    loss = pm.FPMLLoss("gan")
    image = POSTERIOR.T.reshape(1, 3, 2, 2)
    torch.testing.assert_close(loss.posterior(loss.logits_of(image)), image)


def test_a_loss_that_cannot():
    with pytest.raises(InputError, match="cannot express every posterior"):
        pm.losses.get("logit-clip").logits_of(POSTERIOR)


class Twice(pm.losses.Loss):
    """A loss that takes twice the logits."""

    def forward(self, logits, target):
        return torch.nn.functional.cross_entropy(2 * logits, target)

    def posterior(self, logits):
        return (2 * logits).softmax(-1)


@dataclass(frozen=True)
class Sharp(pm.losses.Term):
    """A term that takes twice the logits, and says so."""

    def __call__(self, inputs):
        return inputs.pick(-(2 * inputs.logits).log_softmax(-1))

    @property
    def meaning(self):
        return "twice"

    def posterior(self, logits):
        return (2 * logits).softmax(-1)


class Silent(Sharp):
    """The same, but it does not say so."""

    meaning = None


@pytest.mark.parametrize("loss", [Twice(), pm.losses.TermLoss(Sharp()), pm.losses.TermLoss(Silent())])
def test_a_loss_with_its_own_posterior_must_say_how_to_invert_it(loss):
    with pytest.raises(InputError, match="does not define logits_of, the inverse of its posterior"):
        loss.logits_of(POSTERIOR)
