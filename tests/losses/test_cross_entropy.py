"""KL with the softmax link is cross-entropy: on every case torch itself tests, in value and in gradient."""

import functools
import warnings

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

import postmax as pm

OPINFO_CASES, MODULE_CASES, ERROR_CASES = 21, 105, 7


@functools.cache
def torch_cases():
    """torch's own sample inputs: (OpInfo, ModuleInfo, ModuleInfo errors)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the import only: the internals use what torch has deprecated
        from torch.testing._internal.common_methods_invocations import op_db  # noqa: PLC0415
        from torch.testing._internal.common_modules import module_db  # noqa: PLC0415
    (op,) = (op for op in op_db if op.name == "nn.functional.cross_entropy")
    (module,) = (module for module in module_db if module.module_cls is torch.nn.CrossEntropyLoss)
    if module.module_error_inputs_func is None:
        pytest.skip(f"torch {torch.__version__} has no cases of errors of its own")
    options = {"device": "cpu", "dtype": torch.float64, "requires_grad": True}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return (
            list(op.sample_inputs(**options)),
            module.module_inputs_func(module, training=True, **options),
            module.module_error_inputs_func(module, training=True, **options),
        )


def assert_same_function(ours, theirs, *inputs):
    """Equal values, and equal gradients in every input that requires one."""
    leaves = [x for x in inputs if x.requires_grad]
    values = ours(*inputs), theirs(*inputs)
    assert_close(*values, rtol=1e-12, atol=1e-12)
    direction = torch.linspace(0.5, 1.5, values[1].numel(), dtype=values[1].dtype).reshape(values[1].shape)
    for gradients in zip(*(torch.autograd.grad(value, leaves, direction) for value in values), strict=True):
        assert_close(*gradients, rtol=1e-12, atol=1e-12)


def test_torch_has_the_cases_we_count_on():
    counts = tuple(map(len, torch_cases()))
    assert counts == (OPINFO_CASES, MODULE_CASES, ERROR_CASES), (
        f"torch {torch.__version__} tests cross-entropy on {counts} inputs; adjust the numbers at the top of this file."
    )


@pytest.mark.parametrize("case", range(OPINFO_CASES))
def test_equals_cross_entropy_on_opinfo(case):
    sample = torch_cases()[0][case]
    ours = functools.partial(pm.functional.fpml_loss, divergence="kl", link="softmax", **sample.kwargs)
    theirs = functools.partial(F.cross_entropy, **sample.kwargs)
    assert_same_function(ours, theirs, sample.input, *sample.args)


@pytest.mark.parametrize("case", range(MODULE_CASES))
def test_equals_cross_entropy_on_moduleinfo(case):
    sample = torch_cases()[1][case]
    options, inputs = sample.constructor_input.kwargs, sample.forward_input.args
    assert not sample.constructor_input.args
    assert_same_function(pm.FPMLLoss("kl", "softmax", **options), torch.nn.CrossEntropyLoss(**options), *inputs)


@pytest.mark.parametrize("case", range(ERROR_CASES))
def test_refuses_what_cross_entropy_refuses(case):
    sample = torch_cases()[2][case]
    inputs = sample.module_error_input
    with pytest.raises(sample.error_type) as theirs:
        torch.nn.CrossEntropyLoss(**inputs.constructor_input.kwargs)(*inputs.forward_input.args)
    with pytest.raises(sample.error_type) as ours:
        pm.FPMLLoss("kl", "softmax", **inputs.constructor_input.kwargs)(*inputs.forward_input.args)
    assert isinstance(ours.value, theirs.type)


@pytest.mark.parametrize("target", [torch.tensor([0, 0, 0]), torch.eye(3)[[0, 0, 0]]])
def test_confident_predictions_keep_their_digits(target):
    logits = torch.tensor([[14.0, 0.0, 0.0], [16.0, 1.0, -1.0], [0.5, -14.0, -13.0]])
    loss = pm.functional.fpml_loss(logits, target, "kl", "softmax", reduction="none")
    expected = F.cross_entropy(logits, target, reduction="none")
    assert ((expected > 1e-7) & (expected < 1e-5)).all()
    assert_close(loss, expected, rtol=1e-6, atol=0.0)


@pytest.mark.parametrize("garbage", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_ignored_rows_do_not_leak_where_torch_does(garbage, reduction):
    labels = torch.tensor([2, -100, 0])
    logits = torch.tensor([[0.3, -1.0, 0.5], [garbage] * 3, [1.5, 0.2, -0.7]], requires_grad=True)
    loss = pm.functional.fpml_loss(logits, labels, "kl", "softmax", reduction=reduction)
    loss.backward()

    kept = logits.detach()[[0, 2]].requires_grad_()
    expected = F.cross_entropy(kept, labels[[0, 2]], reduction=reduction)
    expected.backward()
    assert_close(loss, expected)
    assert_close(logits.grad[[0, 2]], kept.grad)
    assert torch.equal(logits.grad[1], torch.zeros(3))
