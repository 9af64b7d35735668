"""Weighing and adding losses, and what a sum of losses knows."""

import copy
import pickle

import pytest
import torch
from loss_tester import LossTester, value_and_gradient
from torch.testing import assert_close

import postmax as pm
from postmax.errors import InputError

NOISE = pm.Transition([[0.7, 0.2, 0.1], [0.0, 0.8, 0.2], [0.3, 0.0, 0.7]])
LOGITS = 2 * torch.randn(8, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
LABELS = torch.arange(8) % 3
TARGETS = {
    "labels": LABELS,
    "ignored": torch.where(LABELS == 1, -100, LABELS),
    "distributions": LOGITS.flip(0).softmax(1),
}


def fpml(**options):
    return pm.FPMLLoss("sl", **options)


SUMS = {
    "5 nce + 5 mae": lambda **o: ((5, pm.losses.get("nce", **o)), (5, pm.losses.get("mae", **o))),
    "ce + sl-pml": lambda **o: ((1, pm.losses.get("ce", **o)), (0.5, fpml(**o))),
    "softmax f-PML": lambda **o: ((2, pm.FPMLLoss("gan", "softmax", passive_weight=2.0, **o)), (1, fpml(**o))),
    "forward": lambda **o: (
        (1, pm.losses.get("gce", **o)),
        (3, pm.FPMLLoss("sl", transition=NOISE, correction="forward", **o)),
    ),
    "posterior": lambda **o: ((1, fpml(transition=NOISE, correction="posterior", **o)), (1, pm.losses.get("ce", **o))),
}


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_a_sum_is_the_sum(name, target, reduction):
    (a, first), (b, second) = SUMS[name](reduction=reduction)
    ours = value_and_gradient(a * first + b * second, LOGITS, TARGETS[target])
    parts = [value_and_gradient(loss, LOGITS, TARGETS[target]) for loss in (first, second)]
    assert_close(ours, tuple(a * x + b * y for x, y in zip(*parts, strict=True)))


CHECKS = (
    "check_value_against_naive_loop",
    "check_first_derivatives",
    "check_second_derivatives",
    "check_low_precision",
    "check_ignored_rows_may_hold_anything",
    "check_nothing_to_average",
    "check_compiled",
    "check_per_sample_gradients",
    "check_jvp_jacobian_and_hessian",
    "check_graph_can_be_used_again",
    "check_copies_compute_the_same",
)


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", SUMS)
def test_a_sum_has_the_contract_of_a_loss(name, check):
    def make(**options):
        (a, first), (b, second) = SUMS[name](**options)
        return a * first + b * second

    def alone(row, label):
        (a, first), (b, second) = SUMS[name](reduction="none")
        rows, labels = torch.tensor([row], dtype=torch.float64), torch.tensor([label])
        return float(a * first(rows, labels) + b * second(rows, labels))

    plain = name not in {"forward", "posterior"}  # these refuse class weights, and label smoothing in a sum
    getattr(LossTester(make, make, alone, soft_targets=plain, class_weights=plain), check)()


def test_sums_know_what_their_parts_know():
    ce, plain = pm.losses.get("ce"), pm.losses.get("fpml")
    corrected = pm.FPMLLoss("sl", transition=NOISE, correction="posterior")
    for loss, alone in ((ce + plain, plain), (2 * corrected + ce, corrected)):
        assert torch.equal(loss.posterior(LOGITS), alone.posterior(LOGITS))
        assert torch.equal(loss.label_posterior(LOGITS), alone.label_posterior(LOGITS))
        assert torch.equal(loss.predict(LOGITS), alone.predict(LOGITS))
        assert (loss.transition, loss.corrects_posterior) == (alone.transition, alone.corrects_posterior)
    assert (pm.losses.get("peer") + ce).mixes_rows
    assert (pm.losses.get("peer") + ce).at(0).term == (ce + ce).term
    assert (pm.losses.get("ce", num_classes=3) + ce).num_classes == 3


def test_sums_of_sums():
    nce, mae, ce = (pm.losses.get(name) for name in ("nce", "mae", "ce"))
    nested = 2 * (nce + 3 * mae) + ce
    assert nested.term == (2 * nce + 6 * mae + ce).term
    assert_close(nested(LOGITS, LABELS), 2 * nce(LOGITS, LABELS) + 6 * mae(LOGITS, LABELS) + ce(LOGITS, LABELS))
    for twin in (copy.deepcopy(nested), pickle.loads(pickle.dumps(nested))):
        assert twin.term == nested.term
        assert torch.equal(twin(LOGITS, LABELS), nested(LOGITS, LABELS))


def test_python_can_add_up_losses():
    nce, mae = pm.losses.get("nce"), pm.losses.get("mae")
    assert sum([nce, mae]).term == (nce + mae).term
    with pytest.raises(TypeError, match="unsupported operand"):
        1 + nce
    with pytest.raises(InputError, match="dmi cannot be part of a sum"):
        sum([pm.losses.get("dmi")])


def test_a_product_has_the_options_but_not_the_hooks_of_its_loss():
    options = {"weight": torch.tensor([1.0, 2.0, 3.0]), "ignore_index": 2, "reduction": "sum", "label_smoothing": 0.1}
    loss = pm.losses.get("ce", num_classes=3, **options)
    twice, calls = 2 * loss, []
    twice.register_forward_hook(lambda *_: calls.append("twice"))
    assert torch.equal(twice(LOGITS, LABELS), 2 * loss(LOGITS, LABELS))
    assert calls == ["twice"]
    assert twice.contract == loss.contract
    assert twice.num_classes == 3


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ({"reduction": "sum"}, {}, "same reduction, but they have 'sum' and 'mean'"),
        ({"label_smoothing": 0.1}, {}, "same label_smoothing, but they have 0.1 and 0.0"),
        ({"ignore_index": 7}, {}, "same ignore_index"),
        ({"weight": torch.ones(3)}, {}, "same weight"),
        ({"weight": torch.ones(3)}, {"weight": torch.tensor([1.0, 1.0, 2.0])}, "same weight"),
        ({"num_classes": 3}, {"num_classes": 4}, "num_classes is 3"),
    ],
)
def test_shared_options_must_agree(first, second, message):
    with pytest.raises(InputError, match=message):
        pm.losses.get("nce", **first) + pm.losses.get("mae", **second)
    both = pm.losses.get("nce", **first) + pm.losses.get("mae", **first)
    for option, value in first.items():
        assert getattr(both, option) is value


@pytest.mark.parametrize("correction", ["objective", "factored"])
def test_labels_that_are_replaced_cannot_be_shared(correction):
    loss = pm.FPMLLoss("sl", transition=pm.Transition.symmetric(3, 0.3), correction=correction)
    with pytest.raises(InputError, match=f"the {correction} correction cannot be part of a sum: it replaces"):
        loss + pm.losses.get("ce")


def test_what_cannot_be_part_of_a_sum():
    ce = pm.losses.get("ce")
    with pytest.raises(InputError, match="dmi cannot be part of a sum: it is one number for a whole batch"):
        ce + pm.losses.get("dmi")
    with pytest.raises(InputError, match="dmi cannot be part of a sum"):
        2 * pm.losses.get("dmi")
    with pytest.raises(InputError, match="smooths over true classes"):
        ce + pm.FPMLLoss("sl", transition=NOISE, correction="forward", label_smoothing=0.1)
    for factor in (float("nan"), float("inf"), -1, -0.5):
        with pytest.raises(InputError, match=f"weight of a part, a finite number ≥ 0, got {factor}"):
            factor * ce
        with pytest.raises(InputError, match=f"weight of a part, a finite number ≥ 0, got {factor}"):
            pm.losses.get("nce+mae", alpha=factor)
    for wrong in ("2", None, torch.nn.CrossEntropyLoss()):
        with pytest.raises(TypeError, match="unsupported operand"):
            ce + wrong
    with pytest.raises(TypeError):
        "2" * ce
    with pytest.raises(InputError, match=r"TermLoss takes a postmax\.losses\.Term, got str"):
        pm.losses.TermLoss("gce")


def test_a_base_loss_has_no_shared_options():
    with pytest.raises(InputError, match="the base of a loss is a loss without options"):
        pm.losses.get("logit-clip", base=pm.losses.get("gce", reduction="sum"))
    with pytest.raises(InputError, match="expected a loss or its name, got int"):
        pm.losses.get("logit-clip", base=3)
