"""The standard method: one network that minimises one loss."""

from __future__ import annotations

from collections.abc import Iterator

from postmax.methods.catalogue import register
from postmax.methods.facts import Facts
from postmax.methods.method import Epoch, Method, Setup, Step


class Standard(Method):
    """Minimise the loss of the labels as they are given. If anything is done about label noise, the loss does it."""

    one_network_one_loss = True

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.answer = setup.network()
        self._optimiser = setup.optimiser(list(self.answer.parameters()))

    def epoch(self, run: Epoch) -> Iterator[Step]:
        """Go once through all rows."""
        loss = self.loss.at(run.share)
        for batch in run.batches():
            logits = self.answer(batch.inputs)
            value = loss(logits, batch.labels).mean()
            run.update(value, self._optimiser)
            yield Step(value, batch.rows, logits)


register(
    "standard",
    Standard,
    "one network trained with one loss",
    Facts(
        idea="Minimise the loss of the labels as they are given. If anything is done about wrong labels, the loss does "
        "it.",
        source="the usual training of a classifier",
    ),
)
