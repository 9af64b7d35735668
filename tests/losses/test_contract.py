"""Bad input: what is refused, by which error, and whether the message helps."""

import pytest
import torch

import postmax as pm
from postmax.errors import InputError, LabelError, NotFiniteError

LOGITS, LABELS = torch.zeros(2, 3), torch.tensor([0, 2])
NOISE = [[0.8, 0.1, 0.1], [0.0, 0.9, 0.1], [0.1, 0.2, 0.7]]


def raises_with(*words, error=InputError):
    """The block raises `error`, and its message holds the words in this order."""
    return pytest.raises(error, match=".*".join(map(str, words)))


@pytest.mark.parametrize(
    ("logits", "words"),
    [
        (torch.zeros(2, 3, dtype=torch.int64), ["logits must be floating point", "torch.int64", r"\(2, 3\)"]),
        (torch.zeros(2, 3, dtype=torch.complex64), ["logits must be floating point", "torch.complex64"]),
        (torch.tensor(0.5), [r"\(C\), \(N, C\)", r"shape \(\)"]),
        ([[0.0, 1.0, 2.0]], ["logits must be a tensor", "list"]),
        (torch.zeros(2, 1), ["at least two classes", r"\(2, 1\)", "have 1"]),
        (torch.zeros(1), ["at least two classes", r"\(1,\)"]),
    ],
)
def test_logits_are_checked(logits, words):
    with raises_with(*words):
        pm.FPMLLoss("gan")(logits, LABELS)


@pytest.mark.parametrize(
    "target",
    [
        torch.tensor([0.0, 2.0]),
        torch.tensor([False, True]),
        torch.tensor([0, 1], dtype=torch.complex64),
        torch.tensor([0, 1, 2]),
        torch.tensor(0),
        torch.zeros(2, 3, dtype=torch.int64),
        torch.zeros(3, 2),
        torch.zeros(2, 3, 1),
    ],
    ids=lambda target: f"{target.dtype}{list(target.shape)}",
)
def test_targets_of_the_wrong_kind_or_shape(target):
    expected = [r"integers\) of shape \(2,\)", r"floating point\) of shape \(2, 3\)", f"got {target.dtype} of shape"]
    with raises_with(*expected):
        pm.FPMLLoss("gan")(LOGITS, target)


def test_targets_for_images_leave_the_class_dimension_out():
    with raises_with(r"shape \(2, 4, 5\)", r"probabilities .* of shape \(2, 3, 4, 5\)", r"\(2, 5, 4\)"):
        pm.FPMLLoss("gan")(torch.zeros(2, 3, 4, 5), torch.zeros(2, 5, 4, dtype=torch.int64))


def test_target_must_be_a_tensor():
    with raises_with("target must be a tensor", "list"):
        pm.FPMLLoss("gan")(LOGITS, [0, 2])


@pytest.mark.parametrize("label", [3, -1, -99, 255])
@pytest.mark.parametrize("options", [{}, {"weight": torch.ones(3)}, {"label_smoothing": 0.1}, {"ignore_index": 1}])
def test_labels_out_of_range(label, options):
    labels = torch.tensor([[0, 1], [label, 2]])
    with raises_with(f"label {label}", r"\(1, 0\)", "3 classes", error=LabelError) as caught:
        pm.FPMLLoss("gan", **options)(torch.zeros(2, 3, 2), labels)
    assert isinstance(caught.value, IndexError)
    assert isinstance(caught.value, ValueError)


def test_ignore_index_is_no_label_out_of_range():
    value = pm.FPMLLoss("gan", ignore_index=255)(LOGITS, torch.tensor([0, 255]))
    assert torch.equal(value, pm.FPMLLoss("gan")(LOGITS[:1], LABELS[:1]))


@pytest.mark.parametrize("divergence", ["kl", "gan"])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_nan_logits(divergence, reduction):
    logits = torch.tensor([[0.0, 1.0, 2.0], [0.0, torch.nan, 2.0]])
    with raises_with(
        "1 of 2 rows of logits hold NaN", r"\(1,\)", "diverged, or its inputs hold NaN", error=NotFiniteError
    ):
        pm.FPMLLoss(divergence, reduction=reduction)(logits, LABELS)


@pytest.mark.parametrize(
    ("target", "options"),
    [
        (LABELS.int(), {}),
        (torch.tensor([-100, 2]), {}),
        (torch.eye(3)[:2], {}),
        (LABELS, {"weight": torch.ones(3)}),
        (LABELS, {"label_smoothing": 0.1}),
        (LABELS, {"ignore_index": 1}),
        (LABELS, {"transition": NOISE, "correction": "objective"}),
    ],
)
def test_nan_logits_are_reported_with_every_option(target, options):
    logits = torch.tensor([[0.0, 1.0, 2.0], [0.0, torch.nan, 2.0]])
    with raises_with("rows of logits hold NaN", error=NotFiniteError):
        pm.FPMLLoss("gan", **options)(logits, target)


def test_infinite_logits_are_no_nan_logits():
    logits = torch.tensor([[0.0, -torch.inf, 0.0], [0.0, 0.0, torch.inf]])
    expected = torch.nn.functional.cross_entropy(logits, LABELS, reduction="none")
    assert torch.equal(pm.FPMLLoss("kl", "softmax", reduction="none")(logits, LABELS).isnan(), expected.isnan())


@pytest.mark.parametrize("weight", [torch.ones(2), torch.ones(4)])
def test_weight_of_the_wrong_length(weight):
    for target in (LABELS, torch.eye(3)[:2]):
        with raises_with("weight", "3 classes", rf"\({len(weight)},\)"):
            pm.FPMLLoss("gan", weight=weight)(LOGITS, target)


def test_probabilities_leave_nothing_to_ignore():
    with raises_with("ignore_index = 1", "not supported", "probabilities"):
        pm.FPMLLoss("gan", ignore_index=1)(LOGITS, torch.eye(3)[:2])


@pytest.mark.parametrize("correction", ["objective", "forward", "posterior", "factored"])
def test_transition_of_the_wrong_size(correction):
    with raises_with(r"\(2, 4\)", "4 classes", "made for 3"):
        pm.FPMLLoss("kl", transition=NOISE, correction=correction)(torch.zeros(2, 4), LABELS)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"reduction": "average"}, ["reduction", "'none', 'mean', 'sum'", "'average'"]),
        ({"label_smoothing": 1.5}, ["label_smoothing", "between 0.0 and 1.0", "1.5"]),
        ({"label_smoothing": -0.1}, ["label_smoothing", "-0.1"]),
        ({"label_smoothing": float("nan")}, ["label_smoothing", "nan"]),
        ({"weight": torch.ones(3, 1)}, ["weight", "each class", r"\(3, 1\)"]),
        ({"weight": torch.tensor([1, 2, 3])}, ["weight", "float", "torch.int64"]),
        ({"divergence": "helinger"}, ["unknown divergence 'helinger'", "Did you mean 'hellinger'"]),
        ({"divergence": "tv"}, ["refused", "not strictly convex"]),
        ({"divergence": "sl:big"}, ["sl:big", "must be a number", "'big'"]),
        ({"divergence": "kl:2"}, ["'kl' takes no parameter"]),
        ({"divergence": 3}, ["Divergence or its name", "int"]),
        ({"link": "sofmax"}, ["unknown link 'sofmax'", "Did you mean 'softmax'"]),
        ({"transition": NOISE, "correction": "foward"}, ["unknown correction", "Did you mean 'forward'"]),
        ({"correction": "foward"}, ["^unknown correction 'foward'", "Did you mean 'forward'"]),
        ({"correction": "foward", "link": "exp"}, ["^unknown correction 'foward'"]),
        ({"correction": "forward", "link": "sofmax"}, ["^unknown link 'sofmax'", "Did you mean 'softmax'"]),
        ({"correction": "forward", "divergence": "helinger"}, ["^unknown divergence 'helinger'"]),
        ({"transition": NOISE}, ["no correction", "objective", "posterior", "forward"]),
        ({"correction": "posterior"}, ["'posterior' needs the noise", "pm.Transition"]),
        ({"transition": NOISE, "correction": "forward", "link": "exp"}, ["forward", "needs the softmax link", "'exp'"]),
        ({"passive_weight": 0.0}, ["passive_weight must be a positive number", "0.0"]),
        ({"passive_weight": -1.0}, ["passive_weight", "-1.0"]),
        ({"passive_weight": float("inf")}, ["passive_weight", "inf"]),
        ({"floor": -0.1}, ["floor", r"\[0, 1\)", "-0.1"]),
        ({"floor": 1.0}, ["floor", "1.0"]),
        ({"floor": 0.5, "passive_weight": 0.4}, ["floor", "below passive_weight", "0.5", "0.4"]),
    ],
    ids=lambda value: ",".join(f"{k}={v}" for k, v in value.items())[:50] if isinstance(value, dict) else "",
)
def test_options_are_refused_at_construction_and_by_the_function(options, words):
    with raises_with(*words):
        pm.FPMLLoss(**options)
    with raises_with(*words):
        pm.functional.fpml_loss(LOGITS, LABELS, **options)


def test_weight_must_be_a_tensor():
    with raises_with("weight"):
        pm.FPMLLoss("gan", weight=[1.0, 2.0, 3.0])


@pytest.mark.parametrize("logits", [[[1.0, 2.0]], None, LOGITS.numpy()], ids=type)
def test_posterior_and_predict_want_tensors(logits):
    for method in (pm.FPMLLoss().posterior, pm.FPMLLoss().predict):
        with raises_with("logits must be a tensor"):
            method(logits)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"label_smoothing": "a"}, "label_smoothing must be a number"),
        ({"passive_weight": "1"}, "passive_weight must be a number"),
        ({"floor": "a"}, "floor must be a number"),
        ({"ignore_index": 1.5}, "ignore_index must be an integer"),
        ({"divergence": torch.ones(3)}, "weight="),
    ],
)
def test_options_of_the_wrong_type(options, words):
    with raises_with(words):
        pm.FPMLLoss(**options)


def test_compiled_loss_notices_labels_out_of_range():
    torch._dynamo.reset()
    loss = torch.compile(pm.FPMLLoss(), fullgraph=True, backend="aot_eager")
    with pytest.raises(RuntimeError, match="out of bounds"):
        loss(torch.zeros(2, 3), torch.tensor([0, 7]))
