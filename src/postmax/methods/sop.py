"""Sparse over-parametrisation: each row learns how its own label is wrong.

Liu, Zhu, Qu and You, Robust training under label noise by over-parameterization, ICML 2022 (SOP).
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from postmax.methods.catalogue import register
from postmax.methods.method import Epoch, Method, Setup, Step
from postmax.methods.parts.options import check_number
from postmax.methods.parts.targets import one_hot

_INITIAL = 1e-8
# The published floor under probabilities from which the noise of a row was subtracted.
_FLOOR = 1e-4


class SOP(Method):
    """Train a network together with noise variables u and v of each row, which explain a wrong label.

    The posterior p of the network, plus U = u² at the given label, minus V = v² at the other classes, must fit the
    given label. A row with a wrong label is fitted by its own U and V, so the network need not memorise it. U and V
    start near 0 and learn with plain gradient descent at a constant rate; nothing else is done to them.

    The fit is the loss of the run, given the logits of the changed posterior. The second term of the published
    objective moves U and V towards the difference between the given label and the predicted class.

    Args:
        setup: What the loop offers.
        lr_u: The learning rate of u. Published as 10 for CIFAR-10 and 1 for CIFAR-100.
        lr_v: The learning rate of v. Published as 10 for symmetric and 100 for asymmetric noise.
    """

    def __init__(self, setup: Setup, *, lr_u: float = 10.0, lr_v: float = 10.0) -> None:
        super().__init__(setup)
        check_number(above=0, lr_u=lr_u, lr_v=lr_v)
        self._classes = setup.train.num_classes
        setup.loss.logits_of(torch.full((1, self._classes), 1 / self._classes))  # refuses a loss that cannot do it
        self.answer = setup.network()
        self._u = _noise_variables(setup, "u", 1)
        self._v = _noise_variables(setup, "v", self._classes)
        self._optimisers = (
            setup.optimiser(list(self.answer.parameters())),
            _plain_descent(setup, self._u, "u", lr_u),
            _plain_descent(setup, self._v, "v", lr_v),
        )

    def epoch(self, run: Epoch) -> Iterator[Step]:
        """Go once through all rows."""
        loss = self.loss.at(run.share)
        for batch in run.batches():
            logits = self.answer(batch.inputs)
            given = one_hot(batch.labels, self._classes)
            added, taken = self._noise(batch.rows, given)
            posterior = loss.posterior(logits)
            explained = (posterior + added - taken.detach()).clamp_min(_FLOOR)
            fit = loss(loss.logits_of(explained / explained.sum(-1, keepdim=True)), batch.labels).mean()
            predicted = one_hot(posterior.argmax(-1), self._classes)
            mismatch = (predicted + added - taken - given).square().sum(-1).mean()
            value = fit + mismatch
            run.update(value, *self._optimisers)
            yield Step(value, batch.rows, logits)

    def _noise(self, rows: Tensor, given: Tensor) -> tuple[Tensor, Tensor]:
        """Return U and V of some rows, (B, K) each."""
        added = (self._u[rows].square() * given).clamp(0, 1)
        taken = (self._v[rows].square() * (1 - given)).clamp(0, 1)
        return added, taken


def _noise_variables(setup: Setup, name: str, size: int) -> Tensor:
    """Return per-row state (N, size) of tiny random numbers that can be learnt."""
    state = setup.row_state(name, (size,))
    start = torch.empty(state.shape).normal_(0, _INITIAL, generator=setup.generator(name))
    return state.copy_(start).requires_grad_()


def _plain_descent(setup: Setup, state: Tensor, name: str, lr: float) -> torch.optim.Optimizer:
    """Return an optimiser that does nothing but subtract the gradient times a constant rate."""
    return setup.optimiser(
        [state], name, kind="sgd", lr=lr, momentum=0.0, weight_decay=0.0, scheduled=False, regularised=False
    )


register("sop", SOP, "one network, and noise variables of each row that explain its wrong label")
