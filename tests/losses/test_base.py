"""What every loss can do: the protocol on which other rooms rely."""

import pytest
import torch

import postmax as pm
from postmax.losses import Loss

NOISE = pm.Transition([[0.7, 0.2, 0.1], [0.0, 0.8, 0.2], [0.3, 0.0, 0.7]])
LOGITS = 2 * torch.randn(6, 3, generator=torch.Generator().manual_seed(0))


def every_loss(noise=NOISE):
    two = pm.Transition.binary(0.1, 0.3)
    return {name: pm.losses.get(name, transition=two if name == "natarajan" else noise) for name in pm.losses.names()}


@pytest.mark.parametrize("name", pm.losses.names())
def test_every_loss_follows_the_protocol(name):
    loss = every_loss()[name]
    logits = LOGITS[:, :2] if name == "natarajan" else LOGITS
    assert isinstance(loss, Loss)
    assert isinstance(loss.mixes_rows, bool)
    assert (loss.transition is not None) == pm.losses.needs_transition(name, {})
    assert loss.corrects_posterior is False
    for found in (loss.posterior(logits), loss.label_posterior(logits)):
        torch.testing.assert_close(found.sum(1), torch.ones(6))
    assert loss.predict(logits).shape == (6,)
    expected = loss.posterior(logits)
    if loss.transition is not None:
        expected = expected @ loss.transition.matrix.float()
    if loss.complementary:
        expected = expected @ pm.Transition.complementary(3).matrix.float()
    torch.testing.assert_close(loss.label_posterior(logits), expected)
    for half in (torch.float16, torch.bfloat16):
        assert loss.label_posterior(logits.to(half)).dtype == torch.float32


@pytest.mark.parametrize("correction", ["objective", "posterior", "forward", "factored"])
@pytest.mark.parametrize("name", ["kl", "gan", "sl"])
def test_label_posterior_of_corrections(name, correction):
    loss = pm.FPMLLoss(name, transition=NOISE, correction=correction, passive_weight=2.0)
    assert loss.transition == NOISE
    assert loss.corrects_posterior == (correction == "posterior")
    if correction == "posterior":
        expected = pm.FPMLLoss(name, passive_weight=2.0).posterior(LOGITS)
    else:
        expected = loss.posterior(LOGITS) @ NOISE.matrix.float()
    assert torch.equal(loss.label_posterior(LOGITS), expected)


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (pm.FPMLLoss("neyman"), "loss.floor=0.05"),
        (pm.FPMLLoss("neyman", floor=0.05), ""),
        (pm.losses.get("ce") + pm.FPMLLoss("rkl", "softmax"), "loss.floor=0.05"),
        (pm.losses.get("peer") + 2 * pm.losses.get("peer", alpha=0.5), "loss.alpha=0.2"),
        (pm.losses.get("negative-label-smoothing"), "loss.rate=-0.2"),
        (pm.losses.get("label-smoothing"), ""),
        (pm.losses.get("ce"), ""),
        (pm.losses.get("dmi"), "loss.start"),
    ],
)
def test_what_losses_say_about_diverging(loss, words):
    said = loss.when_it_diverges
    assert (said == "") == (words == "")
    assert words == "" or said.count(words) == 1


@pytest.mark.parametrize("name", ["forward", "dmi", "ce", "fpml", "unbiased"])
def test_posteriors_have_the_shape_of_the_logits(name):
    images = torch.randn(2, 3, 4, 5, generator=torch.Generator().manual_seed(0))
    loss = every_loss()[name]
    rows = images.movedim(1, -1).reshape(-1, 3)
    for function in (loss.posterior, loss.label_posterior):
        found = function(images)
        assert found.shape == images.shape
        torch.testing.assert_close(found.movedim(1, -1).reshape(-1, 3), function(rows))
