"""The questions about how torch runs the code are answered as torch itself would answer them."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import forward_ad

import postmax as pm
from postmax.errors import LabelError, NotFiniteError
from postmax.losses.numerics.eager import is_batched, plain_eager, under_vmap

LOGITS, LABELS = torch.randn(4, 3, generator=torch.Generator().manual_seed(0)), torch.tensor([0, 1, 2, 0])


class Kernel(torch.autograd.Function):
    """A kernel like those of the losses: without setup_context and without a rule for forward mode."""

    @staticmethod
    def forward(ctx, x):
        return x.sum()

    @staticmethod
    def backward(ctx, grad):
        return grad


def usable(x):
    """Whether torch runs the kernel on this input."""
    try:
        Kernel.apply(x)
    except RuntimeError:
        return False
    return True


def test_plain_eager_agrees_with_torch():
    found = []

    def watched(x):
        found.append((plain_eager(), usable(x)))
        return x.sum()

    x = torch.ones(3, requires_grad=True)
    watched(x)
    torch.func.grad(watched)(x.detach())
    torch.func.vmap(watched)(torch.ones(2, 3))
    torch.func.jvp(watched, (x.detach(),), (x.detach(),))
    with forward_ad.dual_level():
        watched(forward_ad.make_dual(x, torch.ones(3)))
    watched(x)
    assert found == [(True, True), *[(False, False)] * 4, (True, True)]


def test_a_compiled_graph_is_not_plain_eager():
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: x + float(plain_eager()), fullgraph=True, backend="aot_eager")
    assert compiled(torch.zeros(1)).item() == 0


def test_under_vmap():
    found = []

    def watched(x):
        found.append(under_vmap())
        return x.sum()

    watched(torch.ones(2))
    torch.func.grad(watched)(torch.ones(2))
    torch.func.vmap(torch.func.grad(watched))(torch.ones(2, 2))
    torch.func.grad(lambda x: torch.func.vmap(watched)(x).sum())(torch.ones(2, 2))
    assert found == [False, False, True, True]


def test_is_batched():
    found = []
    x = torch.ones(3, requires_grad=True)

    class Watch(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            found.append(is_batched(grad))
            return grad

    torch.autograd.grad(Watch.apply(x), x, torch.ones(3))
    torch.autograd.grad(Watch.apply(x), x, torch.eye(3), is_grads_batched=True)
    y = Watch.apply(x)
    torch.func.vmap(lambda v: torch.autograd.grad(y, x, v, retain_graph=True)[0])(torch.eye(3))
    assert found == [False, True, True]


@pytest.mark.parametrize("name", ["fpml", "focal", "nlnl", "nfl", "nnce"])
def test_values_are_checked_under_torch_func_grad(name):
    loss = pm.losses.get(name)
    with pytest.raises(LabelError):
        torch.func.grad(loss)(LOGITS, LABELS + 1)
    with pytest.raises(NotFiniteError):
        torch.func.grad(loss)(LOGITS * torch.nan, LABELS)


def test_fake_tensors_have_no_values_to_check():
    for name in ("fpml", "ce", "forward"):
        loss = pm.losses.get(name, transition=pm.Transition.symmetric(3, 0.2))
        with FakeTensorMode(allow_non_fake_inputs=True) as mode:
            logits = mode.from_tensor(LOGITS.clone().requires_grad_())
            value = loss(logits, mode.from_tensor(LABELS))
            value.backward()
        assert value.shape == ()
        assert logits.grad.shape == LOGITS.shape
