"""Mixup against a loop, the distribution of its weights, and the way into the loss."""

import pytest
import torch
from scipy import stats

import postmax as pm
from postmax.data.mixtures import beta
from postmax.data.mixup import mixup
from postmax.errors import InputError, LabelError


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("per_sample", [False, True])
@pytest.mark.parametrize("shape", [(9, 4), (9, 3, 5, 5)], ids=["features", "images"])
def test_is_the_mixture_of_each_row_and_its_partner(shape, per_sample):
    inputs, labels = torch.randn(shape, generator=generator(1)), torch.arange(9) % 4
    mixed = mixup(inputs, labels, 0.8, generator(), num_classes=4, per_sample=per_sample)
    for i in range(9):
        j, weight = int(mixed.partner[i]), mixed.weight[i]
        torch.testing.assert_close(mixed.inputs[i], weight * inputs[i] + (1 - weight) * inputs[j])
        target = torch.zeros(4)
        target[labels[i]] += weight
        target[labels[j]] += 1 - weight
        torch.testing.assert_close(mixed.targets[i], target)
    assert sorted(mixed.partner.tolist()) == list(range(9))
    assert len(mixed.weight.unique()) == (9 if per_sample else 1)


@pytest.mark.parametrize("alpha", [0.2, 1.0, 4.0, 75.0])
def test_weights_follow_the_beta_distribution(alpha):
    drawn = beta(alpha, 20_000, generator())
    assert stats.kstest(drawn.numpy(), stats.beta(alpha, alpha).cdf).pvalue > 0.001


def test_small_weights_follow_the_beta_distribution_of_a_small_alpha():
    """Only below one half: float64 has no numbers between 1 − 1e-16 and 1, where a twelfth of them should be."""
    drawn = beta(0.05, 20_000, generator())
    small = drawn[drawn < 0.5]
    assert stats.binomtest(len(small), 20_000).pvalue > 0.001
    assert stats.kstest(small.numpy(), lambda x: 2 * stats.beta(0.05, 0.05).cdf(x)).pvalue > 0.001


def test_weights_of_a_tiny_alpha_are_numbers():
    drawn = beta(1e-4, 2000, generator())
    assert ((drawn >= 0) & (drawn <= 1)).all()
    assert 0.4 < float(drawn.mean()) < 0.6


def test_mixup_draws_its_weights_from_that_distribution_and_from_the_generator():
    inputs, labels = torch.zeros(4000, 1), torch.zeros(4000, dtype=torch.int64)
    weights = mixup(inputs, labels, 0.3, generator(), num_classes=1, per_sample=True).weight
    assert stats.kstest(weights.double().numpy(), stats.beta(0.3, 0.3).cdf).pvalue > 0.001
    torch.manual_seed(1)
    again = mixup(inputs, labels, 0.3, generator(), num_classes=1, per_sample=True).weight
    other = mixup(inputs, labels, 0.3, generator(1), num_classes=1, per_sample=True).weight
    assert torch.equal(weights, again)
    assert not torch.equal(weights, other)


def test_a_row_can_be_kept_the_larger_part():
    inputs, labels = torch.zeros(500, 1), torch.zeros(500, dtype=torch.int64)
    plain = mixup(inputs, labels, 1.0, generator(), num_classes=1, per_sample=True).weight
    larger = mixup(inputs, labels, 1.0, generator(), num_classes=1, per_sample=True, at_least_half=True).weight
    torch.testing.assert_close(larger, torch.maximum(plain, 1 - plain))


def test_label_distributions_are_mixed_as_they_are():
    targets = torch.softmax(torch.randn(6, 3, generator=generator()), 1)
    mixed = mixup(torch.randn(6, 2), targets, 1.0, generator())
    weight = mixed.weight[:, None]
    torch.testing.assert_close(mixed.targets, weight * targets + (1 - weight) * targets[mixed.partner])


def test_loss_of_mixed_targets_is_the_mixture_of_losses():
    labels = torch.tensor([0, 1, 2, 1, 0])
    mixed = mixup(torch.randn(5, 2), labels, 1.0, generator(), num_classes=3)
    logits = torch.randn(5, 3, generator=generator(2))
    loss = pm.FPMLLoss("sl", reduction="none")
    expected = mixed.weight * loss(logits, labels) + (1 - mixed.weight) * loss(logits, labels[mixed.partner])
    torch.testing.assert_close(loss(logits, mixed.targets), expected)


@pytest.mark.parametrize(
    ("inputs", "targets", "options", "message"),
    [
        (torch.zeros(2, 1), torch.tensor([0, 1]), {"alpha": 0.0}, "positive"),
        (torch.zeros(2, 1), torch.tensor([0, 1]), {"alpha": float("nan")}, "positive"),
        (torch.zeros(2, 1), torch.tensor([0, 1]), {"num_classes": None}, "needs num_classes"),
        (torch.zeros(3, 1), torch.tensor([0, 1]), {}, "3 inputs and 2 targets"),
        (torch.zeros(2, 1, dtype=torch.uint8), torch.tensor([0, 1]), {}, "normalise images first"),
        (torch.zeros(2, 1), torch.tensor([0.0, 1.0]), {}, "class indices"),
    ],
)
def test_errors_say_what_is_wrong(inputs, targets, options, message):
    with pytest.raises(InputError, match=message):
        mixup(inputs, targets, **{"alpha": 1.0, "num_classes": 2} | options)


@pytest.mark.parametrize("label", [-100, 2])
def test_labels_out_of_range_are_refused(label):
    with pytest.raises(LabelError):
        mixup(torch.zeros(2, 1), torch.tensor([0, label]), 1.0, num_classes=2)
