"""L_DMI against the published formula, and what a loss of a whole batch owes its rows."""

import math

import pytest
import torch
from loss_tester import EXTREME, make_logits, value_and_gradient
from torch.autograd import gradcheck, gradgradcheck
from torch.nn.functional import one_hot
from torch.testing import assert_close

import postmax as pm
from postmax.errors import InputError

LOGITS = make_logits(9, 3)
LABELS = torch.tensor([0, 1, 2, 2, 1, 0, 2, 2, 1])


def published(logits, q):
    """With the determinant of three classes written out."""
    (a, b, c), (d, e, f), (g, h, i) = q.T @ logits.softmax(1)
    determinant = a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)
    return -(determinant.abs() + 0.001).log()


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("soft", [False, True])
def test_value_and_gradient(smoothing, soft):
    q = make_logits(9, 3, seed=1).softmax(1) if soft else one_hot(LABELS, 3).double()
    smooth = (1 - smoothing) * q + smoothing / 3
    expected = value_and_gradient(published, LOGITS, smooth)
    loss = pm.losses.get("dmi", label_smoothing=smoothing)
    assert_close(value_and_gradient(loss, LOGITS, q if soft else LABELS), expected)
    assert_close(pm.functional.dmi_loss(LOGITS, q if soft else LABELS, label_smoothing=smoothing), expected[0])


def test_reductions():
    labels = torch.where(LABELS == 1, -100, LABELS)
    labels[1] = 1
    value = pm.losses.DMILoss()(LOGITS, labels)
    kept = labels >= 0
    rows = pm.losses.DMILoss(reduction="none")(LOGITS, labels)
    assert_close(rows, torch.where(kept, value, 0.0))
    assert_close(pm.losses.DMILoss(reduction="sum")(LOGITS, labels), value * kept.sum())
    assert_close(pm.losses.DMILoss(ignore_index=7)(LOGITS, torch.where(kept, labels, 7)), value)


def test_ignored_rows_may_hold_anything():
    labels, logits = LABELS.clone(), LOGITS.clone()
    labels[[3, 5]], logits[3], logits[5] = -100, torch.nan, torch.inf
    kept = labels >= 0
    for reduction in ("mean", "sum"):
        loss = pm.losses.DMILoss(reduction=reduction)
        value, gradient = value_and_gradient(loss, logits, labels)
        assert_close((value, gradient[kept]), value_and_gradient(loss, logits[kept], labels[kept]))
        assert not gradient[~kept].any()


def test_nothing_to_average():
    ignored = torch.full((9,), -100)
    assert pm.losses.DMILoss()(LOGITS, ignored).isnan()
    assert pm.losses.DMILoss(reduction="sum")(LOGITS, ignored) == 0
    assert pm.losses.DMILoss(reduction="none")(LOGITS, ignored).tolist() == [0.0] * 9


def test_pixels_are_rows():
    images = make_logits(2, 3, 2, 3)
    labels = torch.arange(12).reshape(2, 2, 3) % 3
    rows = images.movedim(1, -1).reshape(-1, 3)
    assert_close(pm.losses.DMILoss()(images, labels), pm.losses.DMILoss()(rows, labels.flatten()))
    assert pm.losses.DMILoss(reduction="none")(images, labels).shape == labels.shape


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("labels", [[0, 0, 1, 1], [2, 2, 2, 2]])
def test_a_missing_class_teaches_nothing(labels, dtype):
    logits = make_logits(4, 3).to(dtype)
    value, gradient = value_and_gradient(pm.losses.DMILoss(), logits, torch.tensor(labels))
    assert_close(value, torch.tensor(-math.log(1e-3), dtype=dtype))
    assert not gradient.any()


def test_equal_predictions():
    value, gradient = value_and_gradient(pm.losses.DMILoss(), torch.zeros(9, 3), LABELS)
    assert value.item() == pytest.approx(-math.log(1e-3), rel=1e-6)
    assert gradient.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_low_precision_and_extreme_logits(dtype):
    loss = pm.losses.DMILoss()
    logits = LOGITS.to(dtype)
    exact = value_and_gradient(loss, logits.double(), LABELS)
    assert_close(value_and_gradient(loss, logits, LABELS), tuple(t.to(dtype) for t in exact))
    for labels in (torch.arange(8) % 3, torch.tensor([0, 2, 1, 0, 1, 0, 2, 1])):
        value, gradient = value_and_gradient(loss, EXTREME.to(dtype), labels)
        assert value.isfinite()
        assert gradient.isfinite().all()
        assert_close(value, loss(EXTREME, labels).to(dtype))


def test_many_classes_do_not_overflow():
    logits, labels = 20 * torch.eye(200).repeat(10, 1), torch.arange(200).repeat(10)  # the determinant is 1e200
    assert pm.losses.DMILoss()(logits, labels).item() == pytest.approx(-200 * math.log(10), rel=1e-4)


def test_derivatives():
    logits, q = LOGITS.clone().requires_grad_(), make_logits(9, 3, seed=1).softmax(1).requires_grad_()
    for reduction in ("mean", "none"):
        loss = pm.losses.DMILoss(reduction=reduction)
        assert gradcheck(loss, (logits, LABELS), check_forward_ad=True)
        assert gradcheck(loss, (logits, q), check_forward_ad=True)
        assert gradgradcheck(loss, (logits, LABELS))


def test_transforms():
    loss = pm.losses.DMILoss()
    batches, labels = make_logits(4, 9, 3), LABELS.expand(4, -1).contiguous()
    labels[3] = 0  # a class is missing in one of them
    expected = torch.stack([value_and_gradient(loss, z, y)[1] for z, y in zip(batches, labels, strict=True)])
    assert_close(torch.func.vmap(torch.func.grad(loss))(batches, labels), expected)
    torch._dynamo.reset()
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    assert_close(value_and_gradient(compiled, batches[0], LABELS), value_and_gradient(loss, batches[0], LABELS))


def test_noise_shifts_the_loss():
    # Up to the 0.001: the determinant of the noise is a factor for all predictions.
    noise = pm.Transition([[0.7, 0.2, 0.1], [0.0, 0.8, 0.2], [0.3, 0.0, 0.7]])
    logits, clean = make_logits(3000, 3), torch.arange(3000) % 3
    for z in (logits, 2 * logits, logits + 3 * one_hot(clean, 3)):
        shift = pm.losses.DMILoss()(z, noise.matrix[clean]) - pm.losses.DMILoss()(z, clean)
        assert shift.item() == pytest.approx(-math.log(torch.linalg.det(noise.matrix).abs()), abs=1e-4)


def test_it_waits_for_a_warm_up():
    loss = pm.losses.get("dmi", label_smoothing=0.1, reduction="none")
    before = loss.at(0.49)
    expected = torch.nn.functional.cross_entropy(LOGITS, LABELS, label_smoothing=0.1, reduction="none")
    assert_close(before(LOGITS, LABELS), expected)
    assert loss.at(0.5) is loss.at(1) is loss


def test_what_it_says_about_itself():
    loss = pm.losses.get("l-dmi", start=0.25, reduction="sum")
    assert repr(loss) == "DMILoss(start=0.25, reduction='sum')"
    assert loss.mixes_rows
    assert pm.losses.describe("dmi").bounded
    assert_close(loss.posterior(LOGITS), LOGITS.softmax(1))
    assert torch.equal(loss.label_posterior(LOGITS), loss.posterior(LOGITS))
    assert loss.transition is None
    assert loss.posterior(LOGITS.half()).dtype == torch.float32
    images = make_logits(2, 3, 4)
    assert torch.equal(loss.predict(images), images.argmax(1))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weight": torch.ones(3)}, "dmi takes no class weights"),
        ({"start": 3}, "start is a share of the training"),
        ({"reduction": "median"}, "reduction must be one of"),
        ({"label_smoothing": 2}, "label_smoothing"),
    ],
)
def test_options_that_make_no_sense(options, message):
    with pytest.raises(InputError, match=message):
        pm.losses.get("dmi", **options)
    if "start" not in options:
        with pytest.raises(InputError, match=message):
            pm.functional.dmi_loss(LOGITS, LABELS, **options)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_matrices_that_are_singular_but_for_rounding_have_finite_gradients(dtype):
    logits = torch.tensor([[-18.0, 255, -234], [-38, 491, -447], [-62, 843, -766]], dtype=dtype).requires_grad_()
    loss = pm.losses.get("dmi")(logits, torch.tensor([1, 2, 0]))
    (gradient,) = torch.autograd.grad(loss, logits)
    assert loss.item() == pytest.approx(-math.log(1e-3))
    assert gradient.isfinite().all()
