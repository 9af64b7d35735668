"""Priors, margins and debiased posteriors against their formulas."""

import pytest
import torch

from postmax import losses
from postmax.errors import InputError
from postmax.methods.parts.debiasing import follow_prior, margins, reweighted

PRIOR = torch.tensor([0.6, 0.3, 0.1])
LOGITS = torch.tensor([[1.0, -0.5, 2.0], [0.0, 0.0, 0.0], [-3.0, 4.0, 1.0]])


@pytest.mark.parametrize("power", [0.5, 0.8, 1.0])
def test_for_cross_entropy_margins_are_the_published_ones(power):
    loss = losses.get("ce", reduction="none")
    logits, labels = LOGITS.clone().requires_grad_(), torch.tensor([0, 1, 2])
    value = loss(logits + margins(loss, logits, PRIOR, power), labels)
    (gradient,) = torch.autograd.grad(value.sum(), logits)
    for row, label in enumerate(labels.tolist()):
        published = [float(LOGITS[row, k]) + power * float(PRIOR[k].log()) for k in range(3)]
        total = sum(2.718281828459045**z for z in published)
        p = torch.tensor([2.718281828459045**z / total for z in published])
        torch.testing.assert_close(value[row].detach(), -p[label].log(), rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(gradient[row], p - torch.eye(3)[label], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["ce", "gce", "sl-pml", "gan-pml", "sharpened-pml"])
def test_margins_change_a_posterior_as_the_prior_says(name):
    loss = losses.get(name, reduction="none")
    posterior = torch.tensor([[0.7, 0.2, 0.1], [0.2, 0.2, 0.6]])
    logits = loss.logits_of(posterior)
    found = loss.posterior(logits + margins(loss, logits, PRIOR, 0.8))
    wanted = posterior * PRIOR**0.8
    torch.testing.assert_close(found, wanted / wanted.sum(1, keepdim=True), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["ce", "gce", "sl-pml", "gan-pml", "sharpened-pml"])
def test_a_uniform_prior_changes_nothing(name):
    loss = losses.get(name, reduction="none")
    found = margins(loss, LOGITS, torch.full((3,), 1 / 3), 0.8)
    torch.testing.assert_close(found - found[:, :1], torch.zeros(3, 3), rtol=0, atol=1e-5)


@pytest.mark.parametrize("classes", [2, 10, 1000])
@pytest.mark.parametrize("name", ["ce", "sl-pml", "gan-pml"])
def test_margins_stay_finite(name, classes):
    """Logits that are far apart, and priors that are exactly 0 for all classes but one."""
    loss = losses.get(name, reduction="none")
    logits = torch.zeros(3, classes)
    logits[0, 0], logits[1, 1], logits[2] = 500.0, -500.0, 300.0
    logits.requires_grad_()
    for prior in (torch.eye(classes)[0], torch.eye(classes)[1], torch.full((classes,), 1 / classes)):
        adjusted = logits + margins(loss, logits, prior, 1.0)
        (gradient,) = torch.autograd.grad(loss(adjusted, torch.tensor([0, 1, 1])).sum(), logits)
        assert adjusted.isfinite().all()
        assert gradient.isfinite().all()
        assert reweighted(loss.posterior(logits), prior, -1.0).isfinite().all()


def test_a_loss_that_cannot_express_every_posterior():
    with pytest.raises(InputError, match="cannot express every posterior"):
        margins(losses.get("logit-clip", reduction="none"), LOGITS, PRIOR, 1.0)


def test_a_prior_without_rows_stays():
    prior = PRIOR.clone()
    follow_prior(prior, torch.empty(0, 3), 0.9)
    assert torch.equal(prior, PRIOR)
