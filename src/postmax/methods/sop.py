"""Sparse over-parametrisation: each row learns how its own label is wrong.

Liu, Zhu, Qu and You, Robust training under label noise by over-parameterization, ICML 2022 (SOP and SOP+).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from postmax.losses import Loss
from postmax.methods.catalogue import register
from postmax.methods.facts import Facts, Preset
from postmax.methods.method import Epoch, Method, Setup, Step
from postmax.methods.parts.options import check_number
from postmax.methods.parts.posteriors import relative_entropy, safe_log
from postmax.methods.parts.pull import pull
from postmax.methods.parts.targets import one_hot

_INITIAL = 1e-8
# Nothing is less probable than this. In double precision, logits of such posteriors are still exact.
_FLOOR = 1e-12
# The published learning rates of noise variables are for the mean over a batch of this size.
_PUBLISHED_BATCH = 128


class SOP(Method):
    """Train a network together with noise variables u and v of each row, which explain a wrong label.

    The posterior p of the network, plus U = u² at the given label, minus V = v² at the other classes, must fit the
    given label. A row with a wrong label is fitted by its own U and V, so the network need not memorise it. U and V
    start near 0 and learn with plain gradient descent at a constant rate; nothing else is done to them. Their rates are
    for batches of 128 rows, and follow the size of the batches: a row moves its own variables by the same amount in a
    batch of any size.

    The fit is the loss of the run, given the logits of the changed posterior; see `explained_logits`. The second term
    of the published objective moves U and V towards the difference between the given label and the predicted class.

    The second term moves nothing but U and V, so it keeps its weight beside a loss that pulls less than cross-entropy.
    Then U and V mostly follow the predicted class, and a weak loss does not explain away labels that it has not learnt.

    Args:
        setup: What the loop offers.
        lr_u: The learning rate of u. Published as 10 for CIFAR-10 and 1 for CIFAR-100.
        lr_v: The learning rate of v. Published as 10 for symmetric and 100 for asymmetric noise.
    """

    def __init__(self, setup: Setup, *, lr_u: float = 10.0, lr_v: float = 10.0) -> None:
        super().__init__(setup)
        check_number(above=0, lr_u=lr_u, lr_v=lr_v)
        self._views: tuple[str, ...] = ("weak",)
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
        strength = pull(loss, self._classes)
        for batch in run.batches(views=self._views):
            views = self.answer(torch.cat(batch.views)).chunk(len(batch.views))
            logits, given = views[0], one_hot(batch.labels, self._classes)
            added, taken = self._noise(batch.rows, given)
            fit = loss(explained_logits(loss, logits, added, taken.detach()), batch.labels).mean()
            predicted = one_hot(loss.predict(logits), self._classes)
            mismatch = (predicted + added - taken - given).square().sum(-1).mean()
            value = fit + mismatch + strength * self._regulariser(loss, views, added, taken.detach())
            run.update(value, *self._optimisers)
            yield Step(value, batch.rows, logits, {"noise": float(added.detach().sum(-1).mean())})

    def _regulariser(self, loss: Loss, views: Sequence[Tensor], added: Tensor, taken: Tensor) -> Tensor | float:  # noqa: ARG002  (SOP has none)
        """Return what is added to the published objective of SOP."""
        return 0.0

    def _noise(self, rows: Tensor, given: Tensor) -> tuple[Tensor, Tensor]:
        """Return U and V of some rows, (B, K) each."""
        added = (self._u[rows].square() * given).clamp(0, 1)
        taken = (self._v[rows].square() * (1 - given)).clamp(0, 1)
        return added, taken


class SOPPlus(SOP):
    """SOP with two more terms: both views of a row must agree, and no class may be forgotten.

    The first is KL(p of the weak view ‖ p of a strong view), where the weak view is not moved. The second is the
    cross-entropy between equal shares of all classes and the mean explained posterior of a batch. Both move the
    network, so beside a loss that pulls less than cross-entropy they have as much less weight.

    Args:
        setup: What the loop offers.
        lr_u: The learning rate of u. Published as 1 for CIFAR-100.
        lr_v: The learning rate of v. Published as 10 for symmetric and 100 for asymmetric noise.
        consistency_weight: The weight of the first term.
        balance_weight: The weight of the second term. It assumes that all classes have about the same number of rows.
        view: The name of the strong view.
    """

    def __init__(
        self,
        setup: Setup,
        *,
        lr_u: float = 10.0,
        lr_v: float = 10.0,
        consistency_weight: float = 0.9,
        balance_weight: float = 0.1,
        view: str = "policy",
    ) -> None:
        super().__init__(setup, lr_u=lr_u, lr_v=lr_v)
        check_number(least=0, consistency_weight=consistency_weight, balance_weight=balance_weight)
        self._consistency_weight, self._balance_weight = consistency_weight, balance_weight
        self._views = ("weak", view)

    def _regulariser(self, loss: Loss, views: Sequence[Tensor], added: Tensor, taken: Tensor) -> Tensor:
        """Return the two further terms of SOP+."""
        weak, strong = (loss.posterior(logits) for logits in views)
        disagreement = relative_entropy(weak.detach(), strong).mean()
        imbalance = -safe_log(explained(weak, added, taken).mean(0)).mean()
        return self._consistency_weight * disagreement + self._balance_weight * imbalance


def explained(posterior: Tensor, added: Tensor, taken: Tensor) -> Tensor:
    """Return p + U − V, without negative entries and divided by its sum, for (B, K) each.

    Example:
        >>> explained(torch.tensor([[0.3, 0.7]]), torch.tensor([[0.4, 0.0]]), torch.tensor([[0.0, 0.4]]))
        tensor([[0.7000, 0.3000]])
    """
    changed = (posterior + added - taken).clamp_min(_FLOOR)
    return changed / changed.sum(-1, keepdim=True)


def explained_logits(loss: Loss, logits: Tensor, added: Tensor, taken: Tensor) -> Tensor:
    """Return the logits, moved by as much as noise moves the posterior. Without noise they stay as they are.

    They are moved by the difference between the logits of the explained posterior and those of the posterior. Where a
    posterior is the softmax of the logits, the loss is then that of the explained posterior, as published. The logits
    of f-PML carry more than a posterior: their D need not sum to 1, and learns quickly because of that. Logits made
    from the explained posterior alone would lose it, and the network would learn so slowly that U and V explain right
    labels, too.

    Args:
        loss: The loss that reads a posterior from logits.
        logits: The output of the network, (B, K).
        added: U, (B, K).
        taken: V, (B, K).

    Example:
        >>> from postmax import losses
        >>> loss, none, some = losses.get("sl-pml"), torch.zeros(1, 2), torch.tensor([[0.0, 1.0]])
        >>> explained_logits(loss, torch.tensor([[1.0, -1.0]]), none, none)
        tensor([[ 1., -1.]])
        >>> logits = loss.logits_of(torch.tensor([[0.8, 0.2]]))
        >>> loss.posterior(explained_logits(loss, logits, some, none))
        tensor([[0.4000, 0.6000]])
    """
    posterior = loss.posterior(logits.double())
    before, after = (explained(posterior, *noise) for noise in ((0 * added, 0 * taken), (added, taken)))
    return logits + (loss.logits_of(after) - loss.logits_of(before)).to(logits.dtype)


def _noise_variables(setup: Setup, name: str, size: int) -> Tensor:
    """Return per-row state (N, size) of tiny random numbers that can be learnt."""
    state = setup.row_state(name, (size,))
    start = torch.empty(state.shape).normal_(0, _INITIAL, generator=setup.generator(name))
    return state.copy_(start).requires_grad_()


def _plain_descent(setup: Setup, state: Tensor, name: str, lr: float) -> torch.optim.Optimizer:
    """Return an optimiser that does nothing but subtract the gradient times a constant rate."""
    lr = lr * setup.batch_size / _PUBLISHED_BATCH
    return setup.optimiser(
        [state], name, kind="sgd", lr=lr, momentum=0.0, weight_decay=0.0, scheduled=False, regularised=False
    )


_SOURCE = "Liu, Zhu, Qu and You, Robust training under label noise by over-parameterization, ICML 2022"
_DEVIATIONS = (
    "The learning rates of u and v are for batches of 128 rows, as published. With other batches they are multiplied "
    "by rows/128, so that one visit to a row moves its noise variables by the same amount. The released code cuts the "
    "explained posterior at 1e-4, where it then has no gradient; here the bound is 1e-12. "
)
_POSTERIOR = (
    "The noise variables are added to the posterior of the loss, and the loss gets logits that are moved by as much as "
    "the posterior was."
)
_REMEMBERS = "the noise variables u and v, 1 + K numbers"
_STEPS = {"batch_size": 128, "optimiser.lr": 0.02, "schedule.name": "step"}
_PAPER = "Liu et al. 2022"

register(
    "sop",
    SOP,
    "one network, and noise variables of each row that explain its wrong label",
    Facts(
        idea="Each row has noise variables of its own, which are added to the posterior before it is compared with the "
        "label. They learn to explain wrong labels, so that the network need not memorise them.",
        source=_SOURCE,
        remembers=_REMEMBERS,
        posterior=_POSTERIOR,
        deviations=_DEVIATIONS.strip(),
    ),
    presets={
        f"{data}-{noise}": Preset(
            {"lr_u": lr_u, "lr_v": lr_v},
            _PAPER,
            {**_STEPS, "model": "resnet34", "epochs": epochs, "schedule.milestones": steps},
        )
        for data, lr_u, epochs, steps in (("cifar10", 10.0, 120, (40, 80)), ("cifar100", 1.0, 150, (80, 120)))
        for noise, lr_v in (("symmetric", 10.0), ("asymmetric", 100.0))
    },
)
_COSINE = {
    "model": "preact-resnet18",
    "batch_size": 128,
    "epochs": 300,
    "optimiser.lr": 0.02,
    "optimiser.weight_decay": 1e-3,
    "schedule.name": "cosine",
    "schedule.final": 0.01,
}
_CODE = f"{_PAPER}, released code"
register(
    "sop-plus",
    SOPPlus,
    "SOP whose predictions agree on two views of a row and forget no class",
    Facts(
        idea="SOP with two more terms. Predictions for a weak and a strong view of a row must agree, and the mean "
        "prediction of a batch must contain all classes.",
        source=_SOURCE,
        remembers=_REMEMBERS,
        posterior=f"{_POSTERIOR} The two further terms compare posteriors.",
        deviations=_DEVIATIONS + "The two terms are multiplied by how strongly the loss pulls, compared with "
        "cross-entropy. The released code normalises the strong view of CIFAR-100 with the statistics of "
        "CIFAR-10; here both views have the same statistics.",
    ),
    presets={
        "cifar100-symmetric": Preset({"lr_u": 1.0, "lr_v": 10.0}, _CODE, _COSINE),
        "cifar100-asymmetric": Preset({"lr_u": 0.1, "lr_v": 100.0}, _CODE, _COSINE),
    },
)
