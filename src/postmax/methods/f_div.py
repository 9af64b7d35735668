"""f-div: after a warm-up, maximise an f-divergence between rows with their labels and rows with labels of other rows.

Wei and Liu, When optimizing f-divergence is robust with label noise, ICLR 2021.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from postmax.losses.terms.f_div import rising_pair
from postmax.methods.catalogue import register
from postmax.methods.facts import Facts, Preset
from postmax.methods.method import Epoch, Method, Setup, Step
from postmax.methods.parts.options import check_number
from postmax.methods.parts.peers import both_outputs, with_peers
from postmax.methods.parts.phases import optimisers_of_phases, phase_epochs, share_of_span

_WARMUP_SHARE = 0.5


class FDivergence(Method):
    """Train with the loss of the run first, then maximise an f-divergence that says how much rows tell about labels.

    1. The network minimises the loss of the run on all labels.
    2. The network maximises the mean of g(p) for the label of each row, minus the mean of f*(g(p)) for rows that are
       paired with the labels of other rows. Here p is the posterior of that label. This is a lower bound of the
       f-divergence between both kinds of pairs. The learning rate is smaller, and its schedule starts again.

    Args:
        setup: What the loop offers.
        divergence: tv, js, kl, pearson, jeffrey, rkl, hellinger or neyman. The authors recommend the first five.
        warmup_epochs: How many epochs the first phase has; by default half of the training.
        second_rate: The learning rate of the second phase, as a share of that of the run.
    """

    def __init__(
        self,
        setup: Setup,
        *,
        divergence: str = "tv",
        warmup_epochs: int | None = None,
        second_rate: float = 0.1,
    ) -> None:
        super().__init__(setup)
        check_number(above=0, second_rate=second_rate)
        if warmup_epochs is not None:
            check_number(least=0, whole=True, warmup_epochs=warmup_epochs)
        self._reward, self._penalty = rising_pair(divergence)
        self._change = phase_epochs(warmup_epochs, _WARMUP_SHARE, setup.epochs)
        self._second_rate, self._labels = second_rate, setup.train.labels
        self.answer = setup.network()
        self._first, self._second = optimisers_of_phases(setup, self.answer, self._change)

    def epoch(self, run: Epoch) -> Iterator[Step]:
        """Go once through all rows, in the phase that it is time for."""
        return self._learn(run) if run.number < self._change else self._compare(run)

    def _learn(self, run: Epoch) -> Iterator[Step]:
        # The loss of the run serves in this phase alone, so what changes in it changes within this phase.
        loss = self.loss.at(share_of_span(run.number, (0, self._change)))
        for batch in run.batches():
            logits = self.answer(batch.inputs)
            value = loss(logits, batch.labels).mean()
            run.update(value, self._first)
            yield Step(value, batch.rows, logits)

    def _compare(self, run: Epoch) -> Iterator[Step]:
        for found in with_peers(run, self._labels):
            batch = found.batch
            logits, others = both_outputs(self.answer, found)
            own = probability_of(self.loss.posterior(logits), batch.labels)
            by_chance = probability_of(self.loss.posterior(others), found.labels)
            divergence = self._reward(own).mean() - self._penalty(by_chance).mean()
            run.update(-divergence, self._second, rate=self._second_rate)
            yield Step(-divergence, batch.rows, logits, {"divergence": float(divergence.detach())})


def probability_of(posterior: Tensor, labels: Tensor) -> Tensor:
    """Return the posterior probability of the label of each row, (B,).

    Example:
        >>> import torch
        >>> probability_of(torch.tensor([[0.2, 0.8], [0.7, 0.3]]), torch.tensor([1, 0]))
        tensor([0.8000, 0.7000])
    """
    return posterior.gather(-1, labels[:, None]).squeeze(-1)


_TRAINING = {
    "model.name": "preact-resnet18",
    "optimiser.name": "sgd",
    "optimiser.lr": 0.1,
    "optimiser.momentum": 0.9,
    "optimiser.weight_decay": 5e-4,
}

register(
    "f-div",
    FDivergence,
    "a warm-up with the loss of the run, then an f-divergence between own labels and labels of other rows",
    Facts(
        idea="An f-divergence between rows with their own labels and rows with labels of other rows says how much the "
        "rows tell about the labels. Wrong labels make it smaller. But for several divergences, noise that treats all "
        "rows alike does not change which classifier has the largest one. A warm-up with another loss comes first, "
        "because the gradient of the divergence is small for a network that knows nothing.",
        source="Wei and Liu, When optimizing f-divergence is robust with label noise, ICLR 2021",
        posterior="The divergence is computed from the posterior of the labels, so that the logits keep the meaning "
        "that they have in the warm-up.",
        deviations="Any loss serves in the warm-up. Both phases are in one run. The second one goes on with the last "
        "network of the first; the released code takes the one that is best on noisy labels that are held out, and "
        "chooses the last network in the same way. Half of the training is our choice for the warm-up. For rkl, "
        "hellinger and neyman the released g falls with p, so that labels would be unlearnt; here it rises, and the "
        "penalty of neyman is computed from g. The released code adds 1e-5 to probabilities, which these formulas do "
        "not need. Its corrections for known noise are left out.",
    ),
    presets={
        name: Preset({"divergence": "tv", "second_rate": 0.1}, "Wei and Liu 2021, released code", _TRAINING)
        for name in ("cifar10", "cifar100")
    },
)
