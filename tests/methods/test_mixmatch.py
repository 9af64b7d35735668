"""MixMatch against a loop over mixtures, written from the paper."""

import pytest
import torch
from torch import nn

import postmax as pm
from postmax import losses
from postmax.data import mixup
from postmax.methods.parts.mixmatch import Aim, guess, mix_and_match, one_sidedness
from postmax.methods.parts.targets import as_labels

LABELLED, UNLABELLED, CLASSES = 3, 2, 4


def random_aim(rows, generator, views=2):
    targets = torch.rand(rows, CLASSES, generator=generator)
    inputs = [torch.randn(rows, 5, generator=generator) for _ in range(views)]
    return Aim(inputs, targets / targets.sum(1, keepdim=True))


@pytest.mark.parametrize("per_row", [False, True])
def test_against_a_loop(per_row):
    generator = torch.Generator().manual_seed(0)
    labelled, unlabelled = random_aim(LABELLED, generator), random_aim(UNLABELLED, generator)
    network = nn.Linear(5, CLASSES)
    found = mix_and_match(
        losses.get("ce", reduction="none"),
        network,
        labelled,
        unlabelled,
        4.0,
        torch.Generator().manual_seed(1),
        per_row=per_row,
    )
    rows = [
        (view[row], aim.targets[row])
        for aim in (labelled, unlabelled)
        for view in aim.views
        for row in range(len(view))
    ]
    drawn = mixup(
        torch.zeros(len(rows), 1),
        torch.zeros(len(rows), 1),
        4.0,
        torch.Generator().manual_seed(1),
        per_sample=per_row,
        at_least_half=True,
    )
    assert (drawn.weight >= 0.5).all()
    assert (len(drawn.weight.unique()) > 1) == per_row
    fits, misses = [], []
    for row, (inputs, targets) in enumerate(rows):
        share, (other_inputs, other_targets) = drawn.weight[row], rows[int(drawn.partner[row])]
        p = network(share * inputs + (1 - share) * other_inputs).softmax(-1)
        q = share * targets + (1 - share) * other_targets
        if row < 2 * LABELLED:
            fits.append(-sum(q[k] * p[k].log() for k in range(CLASSES)))
        else:
            misses += [(p[k] - q[k]) ** 2 for k in range(CLASSES)]
    torch.testing.assert_close(found.labelled, torch.stack(fits))
    torch.testing.assert_close(found.unlabelled, torch.stack(misses).mean())
    assert len(found.posterior) == len(found.targets) == len(rows)


def test_without_unlabelled_rows():
    generator = torch.Generator().manual_seed(0)
    found = mix_and_match(
        losses.get("sl-pml", reduction="none"), nn.Linear(5, 4), random_aim(3, generator), None, 4.0, generator
    )
    assert found.unlabelled == 0
    assert found.labelled.shape == (6,)


def test_a_guess_is_the_sharpened_mean_of_posteriors_of_the_loss():
    loss = losses.get("gan-pml", reduction="none")
    logits = [torch.tensor([[1.0, -1.0, 0.0]]), torch.tensor([[0.0, 2.0, -3.0]])]
    p = [0.0, 0.0, 0.0]
    for view in logits:
        d = [float(torch.sigmoid(z)) for z in view[0]]  # the link of f-PML
        p = [mean + entry / sum(d) / 2 for mean, entry in zip(p, d, strict=True)]
    squares = [entry**2 for entry in p]
    torch.testing.assert_close(guess(loss, logits, 0.5), torch.tensor([[entry / sum(squares) for entry in squares]]))


def test_one_sided_answers_have_a_finite_penalty():
    posterior = torch.tensor([[1.0, 0.0], [1.0, 0.0]], requires_grad=True)
    value = one_sidedness(posterior)
    value.backward()
    assert value > 10
    assert posterior.grad.isfinite().all()


@pytest.mark.parametrize("correction", ["forward", "posterior", "objective"])
def test_a_corrected_loss_is_told_which_labels_cleaned_rows_would_have(correction):
    """The posterior of the true class that fits best is the target itself. The noise is not removed a second time."""
    loss = pm.FPMLLoss(
        "sl", transition=pm.Transition.binary(0.1, 0.3), correction=correction, floor=0.0, reduction="none"
    )
    target = torch.tensor([[0.8, 0.2]])
    logits = loss.logits_of(target).requires_grad_() if correction != "objective" else None
    if logits is None:
        logits = losses.get("sl-pml", reduction="none").logits_of(target).requires_grad_()
    (slope,) = torch.autograd.grad(loss(logits, as_labels(loss, target)).sum(), logits)
    torch.testing.assert_close(loss.posterior(logits.detach()), target, rtol=1e-4, atol=1e-5)
    assert slope.abs().max() < 1e-5
