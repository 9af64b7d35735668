"""Complementary labels: each risk against a loop, what it is on average, and runs from labels that are all wrong."""

import math

import pytest
import torch
from small_runs import small_config

import postmax as pm
from postmax.errors import InputError
from postmax.methods.complementary import (
    RISKS,
    class_risks,
    class_weights,
    forward_losses,
    label_shares,
    reads_softmax,
    row_weights,
)
from postmax.methods.parts.label_losses import losses_of_labels
from postmax.train.build import build

LOGITS = 2 * torch.randn(8, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
LABELS = torch.tensor([0, 1, 1, 1, 1, 1, 0, 1])  # nobody says "not 2"
LOSSES = ("ce", "gce", "mae", "sl-pml", "gan-pml", "sharpened-pml")


def rows_of(name, **options):
    return pm.losses.get(name, reduction="none", **options)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("name", LOSSES)
def test_the_losses_of_all_labels(name, smoothing):
    loss = rows_of(name, label_smoothing=smoothing)
    expected = torch.stack([loss(LOGITS, torch.full((8,), j)) for j in range(3)], 1)
    torch.testing.assert_close(losses_of_labels(loss, LOGITS.clone().requires_grad_()), expected)


@pytest.mark.parametrize("name", LOSSES)
def test_forward_is_the_negative_log_of_what_the_posterior_leaves(name):
    loss = rows_of(name)
    others = [sum(p[j] for j in range(3) if j != y) for p, y in zip(loss.posterior(LOGITS), LABELS, strict=True)]
    torch.testing.assert_close(forward_losses(loss, LOGITS, LABELS), -torch.stack(others).log())


def test_forward_is_exact_for_logits_of_any_size():
    logits = torch.tensor([[1e4, 0.0, 0.0], [-1e4, 1.0, 0.0]], requires_grad=True)
    value = forward_losses(rows_of("ce"), logits, torch.tensor([0, 0]))
    (gradient,) = torch.autograd.grad(value.sum(), logits)
    torch.testing.assert_close(value.detach(), torch.tensor([1e4 - math.log(2), 0.0]))
    torch.testing.assert_close(gradient, torch.tensor([[1.0, -0.5, -0.5], [0.0, 0.0, 0.0]]))


@pytest.mark.parametrize(
    ("name", "expected"),
    [({"name": "ce"}, True), ({"name": "mae"}, True), ({"name": "fpml", "link": "softplus"}, False)],
)
def test_which_losses_read_a_softmax(name, expected):
    assert reads_softmax(rows_of(**name), 4) is expected


@pytest.mark.parametrize("name", ["ce", "gce", "sl-pml"])
def test_the_risks_of_the_classes_against_a_loop(name):
    loss = rows_of(name)
    risks = class_risks(loss, LOGITS, LABELS, pm.Transition.complementary(3).inverse, torch.ones(8))
    for j in range(3):
        of_j = loss(LOGITS, torch.full((8,), j)).tolist()
        accused = sum(value for value, y in zip(of_j, LABELS.tolist(), strict=True) if y == j)
        assert float(risks[j]) == pytest.approx(sum(of_j) / 8 - 2 * accused / 8)


def test_labels_count_by_their_share_of_all_rows():
    """The published formula: the mean over the rows of each label, weighed by the share of this label."""
    shares, loss = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64), rows_of("ce")
    weights = row_weights(LABELS, shares)
    risks = class_risks(loss, LOGITS, LABELS, pm.Transition.complementary(3).inverse, weights)
    for j in range(3):
        of_j = loss(LOGITS, torch.full((8,), j))
        means = {k: float(of_j[k == LABELS].mean()) for k in (0, 1)}
        expected = 0.5 * means[0] + 0.3 * means[1] - (2 * float(shares[j]) * means[j] if j < 2 else 0)
        assert float(risks[j]) == pytest.approx(expected)


def test_equal_logits_have_no_negative_risk_by_chance():
    shares = torch.full((10,), 0.1, dtype=torch.float64)
    labels = torch.cat([torch.arange(10), torch.zeros(20, dtype=torch.long)])  # one label is there far too often
    inverse = pm.Transition.complementary(10).inverse
    risks = [
        class_risks(rows_of("ce"), torch.zeros(30, 10), labels, inverse, weights)
        for weights in (torch.ones(30), row_weights(labels, shares))
    ]
    assert (risks[0] < 0).any()
    assert (risks[1] > 0).all()


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("name", ["ce", "gce"])
def test_the_risks_are_right_on_average(k, name):
    """The exact mean over all labels that each row may get is the risk of each class among rows of known classes."""
    logits, loss = LOGITS[:, :1] * torch.arange(1, k + 1).double().cos(), rows_of(name)
    truth, inverse = torch.arange(8) % k, pm.Transition.complementary(k).inverse
    mean = torch.zeros(k, dtype=torch.float64)
    for row in range(8):
        for label in (j for j in range(k) if j != truth[row]):
            mean += class_risks(loss, logits[row : row + 1], torch.tensor([label]), inverse, torch.ones(1)) / (
                8 * (k - 1)
            )
    own = loss(logits, truth)
    expected = torch.stack([(own * (truth == j)).mean() for j in range(k)])
    torch.testing.assert_close(mean, expected)


def run(*settings):
    return build(small_config("method=complementary", "noise=complementary", *settings)).trainer


def on_hand_made_rows(risk, loss_name):
    """The value of one batch and its gradient, from the method itself."""
    trainer = run(f"method.risk={risk}", f"loss={loss_name}", "data.name=digits", "model.hidden=[4]", "epochs=1")
    method = trainer.method
    method._noise, method._shares = pm.Transition.complementary(3), label_shares(LABELS, 3)
    logits = LOGITS.clone().requires_grad_()
    value = method._estimated(rows_of(loss_name), logits, LABELS)
    return value.detach(), torch.autograd.grad(value, logits)[0]


@pytest.mark.parametrize("risk", ["unbiased", "non-negative", "gradient-ascent"])
def test_a_step_against_the_published_formula(risk):
    def formula(logits):
        losses = -logits.log_softmax(1)
        parts = [losses[:, j].mean() - 2 * (losses[:, j] * (j == LABELS)).mean() for j in range(3)]
        if risk == "unbiased":
            return sum(parts)
        if risk == "non-negative":
            return sum(part.clamp_min(0) for part in parts)
        return sum(-part.clamp_max(0) for part in parts) if any(part < 0 for part in parts) else sum(parts)

    logits = LOGITS.clone().requires_grad_()
    expected = formula(logits)
    value, gradient = on_hand_made_rows(risk, "ce")
    torch.testing.assert_close(value, expected.detach())
    torch.testing.assert_close(gradient, torch.autograd.grad(expected, logits)[0])


def test_some_class_has_a_negative_risk_above():
    risks = class_risks(rows_of("ce"), LOGITS, LABELS, pm.Transition.complementary(3).inverse, torch.ones(8))
    assert (risks < 0).any()
    assert (risks > 0).any()
    assert class_weights(risks, "gradient-ascent").sum() < 0


@pytest.mark.parametrize("risk", RISKS)
def test_it_learns_ten_classes_from_labels_that_are_all_wrong(risk):
    settings = ("data.name=digits", "model.hidden=[32]", "optimiser.name=adam", "optimiser.lr=0.01", "epochs=20")
    built = build(
        small_config("method=complementary", "noise=complementary", f"method.risk={risk}", "loss=ce", *settings)
    )
    for number in range(20):
        records = built.trainer.epoch(number)
    built.trainer.judge(built.evaluator, records)
    assert records[0]["test_accuracy"] > 0.4
    assert records[0]["method"]["estimated_accuracy"] > 0.4


def test_the_posterior_of_the_label_is_spread_over_the_other_classes():
    method = run("loss=ce", "data.name=digits").method
    outputs = torch.randn(4, 10)
    expected = (1 - outputs.softmax(1)) / 9
    torch.testing.assert_close(method.label_posterior(outputs), expected)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (("method.risk=backward",), "method.risk must be one of forward, unbiased, non-negative, gradient-ascent"),
        (("loss=complementary",), "choose an ordinary loss such as ce, or method=standard"),
        (("loss=forward", "transition=symmetric:0.2"), "corrected already"),
        (("loss=peer", "method.risk=unbiased"), "compares the rows of a batch"),
    ],
)
def test_what_cannot_be(settings, message):
    with pytest.raises(InputError, match=message):
        run(*settings)
