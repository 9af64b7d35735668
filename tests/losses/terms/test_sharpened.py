"""f-PML that is sharpened: against the formula in 40 digits, and against the losses it is made of."""

import pytest
import torch
from loss_tester import value_and_gradient
from term_battery import every_check, mp, term_tester

import postmax as pm
from postmax.errors import InputError

LOGITS = 3 * torch.randn(40, 6, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
LABELS = torch.arange(40) % 6


def sharpened(p, y, assumed=0.9, scale=0.5):
    brier = sum((p_k - (k == y)) ** 2 for k, p_k in enumerate(p))
    return mp.mpf(scale) * (mp.mpf(assumed) * (1 - p[y]) + (1 - mp.mpf(assumed)) / 2 * brier)


TESTERS = {"sharpened-pml": term_tester("sharpened-pml", sharpened)}
OTHER_OPTIONS = {
    "assumed=0": term_tester("sharpened-pml", lambda p, y: sharpened(p, y, 0, 3), assumed=0.0, scale=3.0),
}


@every_check(TESTERS | OTHER_OPTIONS, compiled={"sharpened-pml"})
def test_battery(name, check):
    getattr((TESTERS | OTHER_OPTIONS)[name], check)()


@pytest.mark.parametrize("divergence", ["sl:0.25", "gan", "kl"])
def test_it_begins_as_f_pml(divergence):
    first = pm.losses.get("sharpened-pml", divergence=divergence).at(0.49)
    expected = pm.FPMLLoss(divergence, "softmax")
    ours, theirs = (value_and_gradient(loss, LOGITS, LABELS) for loss in (first, expected))
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("divergence", ["sl:0.25", "gan", "js", "lecam", "pearson"])
def test_its_first_part_has_the_digits_of_f_pml(divergence, dtype):
    logits = (100 * LOGITS).to(dtype)
    logits[0, 0], logits[1] = 1e4, 0
    first = pm.losses.get("sharpened-pml", divergence=divergence, reduction="none").at(0)
    expected = pm.FPMLLoss(divergence, "softmax", reduction="none")
    for labels in (LABELS, torch.nn.functional.one_hot(LABELS, 6).to(dtype)):
        ours, theirs = (value_and_gradient(loss, logits, labels) for loss in (first, expected))
        torch.testing.assert_close(ours, theirs, rtol=2 * torch.finfo(dtype).eps, atol=1e-6)


def test_it_ends_as_the_objective_correction_for_the_noise_assumed():
    loss = pm.losses.get("sharpened-pml", assumed=0.7, scale=1.0)
    noise = pm.Transition.symmetric(6, 0.7 * 5 / 6)  # 70 % are drawn anew, a sixth of them the label they were
    corrected = pm.FPMLLoss("pearson", "softmax", transition=noise, correction="objective", floor=0.0)
    _, ours = value_and_gradient(loss.at(0.5), LOGITS, LABELS)
    _, theirs = value_and_gradient(corrected, LOGITS, LABELS)
    torch.testing.assert_close(ours, theirs * (1 - 0.7) / 2)  # the f of Pearson has a second derivative of 2


def test_without_noise_it_is_the_brier_score_and_at_last_the_absolute_error():
    p = LOGITS.softmax(1)
    brier = (p - torch.nn.functional.one_hot(LABELS, 6)).square().sum(1).mean()
    torch.testing.assert_close(pm.losses.get("sharpened-pml", assumed=0.0, scale=2.0)(LOGITS, LABELS), brier)
    nearly = pm.losses.get("sharpened-pml", assumed=1 - 1e-12, scale=1.0)(LOGITS, LABELS)
    torch.testing.assert_close(nearly, pm.losses.get("mae")(LOGITS, LABELS))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"assumed": 1}, "assumed is a share of the labels, from 0 to below 1, got 1"),
        ({"assumed": "half"}, "assumed is a share of the labels"),
        ({"scale": 0}, "scale must be a positive number"),
        ({"start": -1}, "start is a share of the training"),
        ({"divergence": "slx"}, "unknown divergence"),
    ],
)
def test_options_that_make_no_sense(options, message):
    with pytest.raises(InputError, match=message):
        pm.losses.get("sharpened-pml", **options)
