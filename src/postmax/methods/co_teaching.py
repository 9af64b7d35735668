"""Co-teaching: two networks, each trained on the rows that the other one finds easy.

Han et al., Co-teaching: Robust training of deep neural networks with extremely noisy labels, NeurIPS 2018.
"""

from __future__ import annotations

from collections.abc import Iterator

from postmax.methods.catalogue import register
from postmax.methods.method import Epoch, Method, Setup, Step
from postmax.methods.parts.batch_losses import refuse_batch_loss
from postmax.methods.parts.clean_rows import smallest
from postmax.methods.parts.options import check_number
from postmax.methods.parts.pair import two_networks
from postmax.methods.parts.ramps import ramp


class CoTeaching(Method):
    """Train each of two networks on the rows of a batch that have the smallest losses under the other network.

    Networks learn right labels before wrong ones, so a small loss is a sign of a right label. Two networks make
    different mistakes, so that neither confirms its own. The first network gives the answers.

    The loss that selects rows is the loss of the run. Two things differ from the published code. It divides the mean
    loss of the selected rows once more by their number. And it leaves out rows from the first epoch on, where this
    method still uses all rows in the first epoch (unless `ramp_epochs` is 0 or 1).

    Args:
        setup: What the loop offers.
        forget_rate: The share of each batch that is left out in the end. Published as the noise rate, which must be
            known or estimated.
        ramp_epochs: Over how many epochs the left-out share rises from 0 to `forget_rate`.
    """

    def __init__(self, setup: Setup, *, forget_rate: float = 0.2, ramp_epochs: int = 10) -> None:
        super().__init__(setup)
        check_number(least=0, below=1, forget_rate=forget_rate)
        check_number(least=0, whole=True, ramp_epochs=ramp_epochs)
        refuse_batch_loss("co-teaching", setup.loss)
        self._forget_rate, self._ramp_epochs = forget_rate, ramp_epochs
        self._networks, self._optimisers = two_networks(setup)
        self.answer = self._networks[0]

    def epoch(self, run: Epoch) -> Iterator[Step]:
        """Go once through all rows."""
        loss = self.loss.at(run.share)
        kept = 1 - self._forget_rate * ramp(run.number, 0, self._ramp_epochs - 1)
        for batch in run.batches():
            logits = [network(batch.inputs) for network in self._networks]
            first, second = (loss(outputs, batch.labels) for outputs in logits)
            for_second, for_first = smallest(first, kept), smallest(second, kept)
            values = first[for_first].mean(), second[for_second].mean()
            for value, optimiser in zip(values, self._optimisers, strict=True):
                run.update(value, optimiser)
            mean = (values[0].detach() + values[1].detach()) / 2
            yield Step(mean, batch.rows, logits[0], {"kept": len(for_first) / len(batch.rows)})


register("co-teaching", CoTeaching, "two networks, each trained on the rows with small losses under the other")
