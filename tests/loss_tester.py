"""One battery of checks for every loss that keeps the contract of `nn.CrossEntropyLoss`: see `LossTester`."""

import copy
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck, gradgradcheck
from torch.nn.functional import one_hot
from torch.testing import assert_close

CLASSES = 3
SHAPES = ((3,), (4, 3), (2, 3, 2), (2, 3, 1, 2), (2, 3, 1, 2, 1, 2))
WEIGHT = torch.tensor([0.5, 2.0, 1.25], dtype=torch.float64)
REDUCTIONS = ("none", "mean", "sum")
FEW = settings(max_examples=15, deadline=None, derandomize=True, database=None)
LABELS = st.lists(st.integers(0, CLASSES - 1), min_size=1, max_size=6)
EXTREME = torch.tensor(list(product((1e4, -1e4), repeat=CLASSES)), dtype=torch.float64)
NARROW = (torch.float32, torch.bfloat16, torch.float16)
# Checks that compare rows in one company with the same rows in another.
INDEPENDENT_ROWS = ("check_large_batch", "check_repetition_equals_weight")
# Half precision is rounded once, on the way out; float32 is what everything is computed in.
RTOL = {torch.float64: 1e-10, torch.float32: 1e-5, torch.bfloat16: 8e-3, torch.float16: 1e-3}


def close(actual, expected, dtype=torch.float64, atol=None):
    """Tensors or sequences of them, equal to the tolerance of `dtype`; infinities must agree and NaN never does."""
    assert_close(actual, expected, rtol=RTOL[dtype], atol=atol or (1e-12 if dtype == torch.float64 else 2e-6))


def make_logits(*shape, seed=0, dtype=torch.float64):
    """Logits in (−3, 3): small enough for steep losses to stay within float16."""
    return (6 * torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) - 3).to(dtype)


def make_labels(logits):
    first_class = logits.select(0 if logits.ndim == 1 else 1, 0)
    return torch.arange(first_class.numel()).reshape(first_class.shape) % CLASSES


def value_and_gradient(loss, logits, target):
    """The loss and its gradient in the logits, every row of an unreduced loss counting once."""
    logits = logits.detach().requires_grad_()
    value = loss(logits, target)
    return value.detach(), torch.autograd.grad(value, logits, torch.ones_like(value))[0]


def for_all(*strategies):
    """Try the decorated function at once, on examples of the strategies."""
    return lambda holds: FEW(given(*strategies)(holds))()


@dataclass(frozen=True)
class LossTester:
    """The checks, for one loss; run `getattr(tester, check)()` for every `check` in `LossTester.checks()`.

    Attributes:
        make: Builds the Module from contract options: weight, ignore_index, reduction, label_smoothing.
        function: The same loss as a function of logits, target and contract options.
        reference: The loss of one class for one row of logits (a tuple of floats), by a formula of its own. If the loss
            overflows float64 for logits of ±1e4, what this returns must not (mpmath numbers do not).
        soft_targets: Whether probability targets and label smoothing are supported.
        mixes_rows: Whether rows meet in the loss. The reference is then also given how the labels of the other rows
            that count are distributed (a tuple of floats); leave out checks in `INDEPENDENT_ROWS`.
        class_weights: Whether class weights are taken; leave out `check_repetition_equals_weight` if not.
    """

    make: Callable[..., torch.nn.Module]
    function: Callable[..., torch.Tensor]
    reference: Callable[[tuple[float, ...], int], float]
    soft_targets: bool = True
    mixes_rows: bool = False
    class_weights: bool = True

    @classmethod
    def checks(cls):
        return [name for name in vars(cls) if name.startswith("check_")]

    @property
    def weight(self):
        return WEIGHT if self.class_weights else None

    def naive(self, logits, target, *, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0):
        """The contract in plain Python, one row and one class after the other."""
        indices = not target.is_floating_point()
        logits, target = (t.movedim(1, -1) if 1 < t.ndim == logits.ndim else t for t in (logits, target))
        targets = target.reshape((-1,) if indices else (-1, CLASSES)).tolist()
        w, losses, divisor = [1.0] * CLASSES if weight is None else weight.tolist(), [], 0.0
        labels = [[float(i == y) for i in range(CLASSES)] if indices else y for y in targets]
        spread = [[(1 - label_smoothing) * q + label_smoothing / CLASSES for q in label] for label in labels]
        counts = [n for n, y in enumerate(targets) if not indices or y != ignore_index]
        for n, row in enumerate(logits.reshape(-1, CLASSES).tolist()):
            loss, mixed = 0.0, ()
            if n in counts:
                divisor += w[targets[n]] if indices else 1.0
                if self.mixes_rows:
                    others = [spread[m] for m in counts if m != n] or [[0.0] * CLASSES]
                    mixed = (tuple(sum(column) / len(others) for column in zip(*others, strict=True)),)
                for i, q in enumerate(spread[n]):
                    loss += w[i] * q * self.reference(tuple(row), i, *mixed) if q else 0.0
            losses.append(float(loss))
        losses = torch.tensor(losses, dtype=torch.float64).reshape(logits.shape[:-1])
        return losses if reduction == "none" else losses.sum() / (1.0 if reduction == "sum" else divisor)

    def plain_targets(self, logits):
        probabilities = make_logits(*logits.shape, seed=1).softmax(0 if logits.ndim == 1 else 1)
        return (make_labels(logits), probabilities)[: 1 + self.soft_targets]

    def targets(self, logits):
        """Every kind of target the loss takes: indices with ignored rows and without, probabilities."""
        labels = make_labels(logits)
        return (torch.where(labels == 1, -100, labels), *self.plain_targets(logits))

    def options(self):
        weights, smoothings = (None, WEIGHT)[: 1 + self.class_weights], (0.0, 0.15)[: 1 + self.soft_targets]
        for weight, smoothing, reduction in product(weights, smoothings, REDUCTIONS):
            yield {"weight": weight, "label_smoothing": smoothing, "reduction": reduction}

    def check_value_against_naive_loop(self):
        for shape, options in product(SHAPES, self.options()):
            logits = make_logits(*shape)
            for target in self.targets(logits):
                close(self.make(**options)(logits, target), self.naive(logits, target, **options))
            options, labels = options | {"ignore_index": 1}, make_labels(logits)  # noqa: PLW2901
            close(self.make(**options)(logits, labels), self.naive(logits, labels, **options))

    def check_first_derivatives(self):
        logits = make_logits(1, CLASSES, 2).requires_grad_()
        everything = {"weight": self.weight, "label_smoothing": 0.15 * self.soft_targets}
        for target, options in product(self.targets(logits), [everything, *({"reduction": r} for r in REDUCTIONS)]):
            inputs = logits, target.requires_grad_(target.is_floating_point())
            assert gradcheck(self.make(**options), inputs, check_forward_ad=True, check_batched_grad=True)

    def check_second_derivatives(self):
        logits = make_logits(2, CLASSES).requires_grad_()
        for target, reduction in product(self.targets(logits), ("mean", "none")):
            inputs = logits, target.requires_grad_(target.is_floating_point())
            assert gradgradcheck(self.make(reduction=reduction), inputs, check_batched_grad=True)

    def check_derivatives_at_zero_probability(self):
        if self.soft_targets:
            inputs = make_logits(2, CLASSES).requires_grad_(), torch.eye(CLASSES)[:2].double().requires_grad_()
            assert gradcheck(self.make(), inputs, check_forward_ad=True)
            assert gradgradcheck(self.make(), inputs)

    def check_low_precision(self):
        for dtype, reduction in product(NARROW, ("mean", "none")):
            logits, loss = make_logits(5, CLASSES, dtype=dtype), self.make(reduction=reduction)
            for target in self.targets(logits):
                exact = value_and_gradient(loss, logits.double(), target)
                close(value_and_gradient(loss, logits, target), tuple(t.to(dtype) for t in exact), dtype)

    def check_small_gradients_of_confident_mistakes(self):
        # Where formulas with expm1, clamp or an added epsilon lose the gradient without a NaN to show for it.
        logits = torch.tensor([[-m, 0.0, 0.5] for m in (10.0, 20.0, 50.0, 100.0)], dtype=torch.float64)
        labels, loss = torch.zeros(4, dtype=torch.int64), self.make(reduction="sum")
        for dtype in NARROW:
            gradient, exact = (value_and_gradient(loss, z, labels)[1] for z in (logits.to(dtype), logits))
            close(gradient, exact.to(dtype), dtype, atol=torch.finfo(dtype).smallest_normal)

    def check_autocast(self):
        logits = make_logits(5, CLASSES, dtype=torch.bfloat16)
        for target in self.targets(logits):
            expected, gradient = value_and_gradient(self.make(), logits.float(), target)
            leaf = logits.detach().requires_grad_()
            with torch.autocast("cpu", torch.bfloat16):
                value = self.make()(leaf, target)
            # The backward pass is outside, as torch recommends: inside, torch computes matrix products in bfloat16.
            close(value.detach(), expected, torch.float32)
            close(torch.autograd.grad(value.sum(), leaf)[0], gradient.bfloat16(), torch.bfloat16)

    def check_extreme_logits(self):
        # The exact value, rounded to the dtype: where that is ∞ the loss is beyond the dtype's range in truth as well.
        for dtype in NARROW:
            logits, labels = EXTREME.to(dtype), torch.zeros(len(EXTREME), dtype=torch.int64)
            loss = self.make(reduction="none")
            for target in (labels, one_hot(labels, CLASSES).to(dtype))[: 1 + self.soft_targets]:
                value, gradient = value_and_gradient(loss, logits, target)
                close(value, self.naive(logits.double(), labels, reduction="none").to(dtype), dtype)
                close(gradient, value_and_gradient(loss, logits.double(), target)[1].to(dtype), dtype)

    def check_masked_classes(self):
        # A logit of −∞ takes its class out, as for cross-entropy: the loss is what it tends to, without any gradient.
        for masked, dtype in product(([2], [1, 2]), (torch.float64, torch.float32)):
            logits, labels = make_logits(4, CLASSES, dtype=dtype), torch.arange(4) % (CLASSES - len(masked))
            logits[:, masked] = -torch.inf
            limit = self.naive(logits.double().clamp_min(-1e30), labels, reduction="none").to(dtype)
            for target in (labels, one_hot(labels, CLASSES).to(dtype))[: 1 + self.soft_targets]:
                value, gradient = value_and_gradient(self.make(reduction="none"), logits, target)
                close(value, limit, dtype)
                assert gradient.isfinite().all()
                assert not gradient[:, masked].any()

    def check_large_batch(self):
        # Large inputs may be computed in blocks, by other formulas than small ones.
        logits, labels = make_logits(30_000, 11, dtype=torch.float32), torch.arange(30_000) % 11
        logits[::9999, :2] = torch.tensor([30.0, -30.0])
        some, loss = torch.arange(0, len(logits), 101), self.make(reduction="none")
        expected = value_and_gradient(loss, logits[some], labels[some])
        for d in ((), (2,)):
            batch = logits.reshape(-1, *d, 11).movedim(-1, 1)
            value, gradient = value_and_gradient(loss, batch, labels.reshape(-1, *d))
            actual = value.flatten()[some], gradient.movedim(1, -1).reshape(-1, 11)[some]
            close(actual, expected, torch.float32)

    def check_ignored_rows_may_hold_anything(self):
        logits, labels = make_logits(6, CLASSES), torch.tensor([0, -100, 1, -100, -100, 2])
        kept = labels >= 0
        logits[~kept] = torch.tensor([torch.nan, torch.inf, -torch.inf], dtype=torch.float64).unsqueeze(-1)
        for options in self.options():
            value, gradient = value_and_gradient(self.make(**options), logits, labels)
            expected = value_and_gradient(self.make(**options), logits[kept], labels[kept])
            close((value[kept] if value.ndim else value, gradient[kept]), expected)
            assert not gradient[~kept].any()
            assert not value.ndim or not value[~kept].any()

    def check_nothing_to_average(self):
        ignored = [(make_logits(*shape), torch.full_like(make_labels(make_logits(*shape)), -100)) for shape in SHAPES]
        empty = [torch.zeros(shape) for shape in ((0, 3), (0, 3, 2), (2, 3, 0))]
        empty = [(logits, target) for logits in empty for target in self.plain_targets(logits)]
        for (logits, target), options in product(ignored + empty, self.options()):
            value, gradient = value_and_gradient(self.make(**options), logits, target)
            if options["reduction"] == "mean":
                assert value.isnan().tolist() is True
            else:
                rows = logits.select(0 if logits.ndim == 1 else 1, 0)
                assert torch.equal(value, torch.zeros_like(rows if options["reduction"] == "none" else rows.sum()))
                assert torch.equal(gradient, torch.zeros_like(logits))

    def check_compiled(self, backend="aot_eager", dynamic=False):
        loss = self.make(weight=self.weight)

        def mixup(logits, targets):
            return 0.3 * loss(logits, targets[0]) + 0.7 * loss(logits, targets[-1])

        torch._dynamo.reset()
        compiled = torch.compile(mixup, fullgraph=True, dynamic=dynamic, backend=backend)
        for logits in (make_logits(4, CLASSES), make_logits(7, CLASSES))[: 1 + dynamic]:
            inputs = logits, self.plain_targets(logits)
            close(value_and_gradient(compiled, *inputs), value_and_gradient(mixup, *inputs))

    def check_compiled_for_any_batch_size(self):
        self.check_compiled(dynamic=True)

    def check_per_sample_gradients(self):
        logits = make_logits(5, CLASSES)
        for target, weight in product(self.plain_targets(logits), (None, WEIGHT)[: 1 + self.class_weights]):
            loss = self.make(weight=weight)
            one_by_one = [value_and_gradient(loss, z, y)[1] for z, y in zip(logits, target, strict=True)]
            close(torch.func.vmap(torch.func.grad(loss))(logits, target), torch.stack(one_by_one))

    def check_jvp_jacobian_and_hessian(self):
        logits, direction, loss = make_logits(4, CLASSES), make_logits(4, CLASSES, seed=2), self.make()
        for target in self.targets(logits):
            value, gradient = value_and_gradient(loss, logits, target)
            of_logits = partial(loss, target=target)
            close(torch.func.jvp(of_logits, (logits,), (direction,)), (value, (gradient * direction).sum()))
            close(torch.func.jacrev(of_logits)(logits), gradient)
            close(torch.func.hessian(of_logits)(logits), torch.autograd.functional.hessian(of_logits, logits))

    def check_module_equals_function(self):
        logits = make_logits(4, CLASSES, 2)
        for target, options in product(self.targets(logits), self.options()):
            assert torch.equal(self.make(**options)(logits, target), self.function(logits, target, **options))

    def check_copies_compute_the_same(self):
        narrow, ones = (WEIGHT.float(), torch.ones(CLASSES)) if self.class_weights else (None, None)
        logits, loss = make_logits(4, CLASSES), self.make(weight=narrow, reduction="sum")
        loaded = self.make(weight=ones, reduction="sum")
        loaded.load_state_dict(loss.state_dict())
        expected = self.naive(logits, make_labels(logits), weight=self.weight, reduction="sum")
        for twin in (loaded, copy.deepcopy(loss), pickle.loads(pickle.dumps(loss)), loss.to(torch.float64)):
            close(twin(logits, make_labels(logits)), expected)
        if self.class_weights:
            assert loss.state_dict()["weight"].dtype == torch.float64

    def check_graph_can_be_used_again(self):
        logits = make_logits(4, CLASSES).requires_grad_()
        for target, reduction in product(self.targets(logits), REDUCTIONS):
            loss = self.make(reduction=reduction)
            value, expected = 3 * loss(logits, target).sum(), value_and_gradient(loss, logits, target)[1]
            passes = [torch.autograd.grad(value, logits, create_graph=i == 1, retain_graph=True)[0] for i in range(3)]
            passes += torch.autograd.grad(value + loss(logits, target).sum(), logits)
            close([gradient.detach() for gradient in passes], [n * expected for n in (3, 3, 3, 4)])

    def check_memory_layout(self):
        logits = make_logits(4, CLASSES, 2, 2)
        for target, options in product(self.targets(logits), self.options()):
            expected = value_and_gradient(self.make(**options), logits, target)
            for strided in (logits.mT.contiguous().mT, logits.contiguous(memory_format=torch.channels_last)):
                inputs = strided, target.mT.contiguous().mT, WEIGHT
                assert not any(t.is_contiguous() for t in inputs[:2])
                before = [t.clone() for t in inputs]
                close(value_and_gradient(self.make(**options), *inputs[:2]), expected)
                assert all(map(torch.equal, before, inputs))

    def check_label_dtypes(self):
        logits, labels = make_logits(4, CLASSES), torch.tensor([0, -100, 1, 2])
        for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.uint16):
            close(self.make()(logits[[0, 2, 3]], labels[[0, 2, 3]].to(dtype)), self.naive(logits, labels))
        close(self.make()(logits, labels.to(torch.int8)), self.naive(logits, labels))

    def check_order_does_not_matter(self):
        @for_all(st.permutations(range(CLASSES)), st.permutations(range(4)), st.integers(0, 99))
        def holds(classes, rows, seed):
            logits, classes, rows = make_logits(4, CLASSES, seed=seed), torch.tensor(classes), torch.tensor(rows)
            value, gradient = value_and_gradient(self.make(weight=self.weight), logits, make_labels(logits))
            labels = classes.argsort()[make_labels(logits)[rows]]
            weight = WEIGHT[classes] if self.class_weights else None
            actual = value_and_gradient(self.make(weight=weight), logits[rows][:, classes], labels)
            close(actual, (value, gradient[rows][:, classes]))

    def check_one_hot_equals_index(self):
        @for_all(LABELS, st.sampled_from(list(self.options())))
        def holds(labels, options):
            labels, logits, loss = torch.tensor(labels), make_logits(len(labels), CLASSES), self.make(**options)
            if self.soft_targets and (options["weight"] is None or options["reduction"] != "mean"):
                soft = value_and_gradient(loss, logits, one_hot(labels, CLASSES).double())
                close(soft, value_and_gradient(loss, logits, labels))

    def check_repetition_equals_weight(self):
        @for_all(LABELS, st.integers(0, CLASSES - 1))
        def holds(labels, doubled):
            labels, logits = torch.tensor(labels), make_logits(len(labels), CLASSES)
            rows = torch.arange(len(labels)).repeat_interleave(torch.where(labels == doubled, 2, 1))
            weight = torch.tensor([1.0 + (i == doubled) for i in range(CLASSES)], dtype=torch.float64)
            for reduction in ("mean", "sum"):
                repeated = self.make(reduction=reduction)(logits[rows], labels[rows])
                close(self.make(reduction=reduction, weight=weight)(logits, labels), repeated)
