"""Label Wave: stop when predictions begin to change more often again, which needs no held-out labels.

Yuan, Feng and Liu, Early stopping against label noise without validation data, ICLR 2024.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from postmax.methods.catalogue import register
from postmax.methods.facts import Facts
from postmax.methods.method import Epoch, Method, Setup, Step
from postmax.methods.parts.options import check_number
from postmax.methods.parts.phases import phase_epochs
from postmax.methods.parts.teacher import follow

_WINDOW_SHARE, _PATIENCE_SHARE = 0.025, 0.025
_FEWEST_EPOCHS = 3


class LabelWave(Method):
    """Train with the loss of the run, and stop at the first minimum of the number of changed predictions.

    In each epoch the method counts the rows whose predicted class is another one than in the epoch before. While the
    network learns what the classes have in common, predictions settle, and the count falls. When it begins to memorise
    wrong labels, the count rises. The count is averaged over a few epochs. The method keeps the weights of the epoch
    with the smallest mean, and stops as soon as the mean has been clearly above that for some epochs.

    The learning rate stays constant. If it fell, predictions would change less and less whatever the labels are, and
    the count would not rise. If no rise is seen, as with clean labels, the answer is the network of the last epoch.

    Args:
        setup: What the loop offers.
        window_epochs: Over how many epochs the count is averaged. By default 2.5 % of the training, at least 3 epochs.
        patience_epochs: For how many epochs the mean must be above its minimum. By default 2.5 % of the training, at
            least 3 epochs.
        margin: How far it must then be above its minimum, as a share of the minimum.
        scheduled: Whether the learning rate follows the schedule of the run after all.
    """

    def __init__(
        self,
        setup: Setup,
        *,
        window_epochs: int | None = None,
        patience_epochs: int | None = None,
        margin: float = 0.05,
        scheduled: bool = False,
    ) -> None:
        super().__init__(setup)
        self._window = phase_epochs(window_epochs, _WINDOW_SHARE, setup.epochs, least=_FEWEST_EPOCHS)
        self._patience = phase_epochs(patience_epochs, _PATIENCE_SHARE, setup.epochs, least=_FEWEST_EPOCHS)
        for name, given in (("window_epochs", window_epochs), ("patience_epochs", patience_epochs)):
            if given is not None:
                check_number(least=1, whole=True, **{name: given})
        check_number(least=0, margin=margin)
        self._margin, self._epochs = margin, setup.epochs
        self._network, self.answer = setup.network(), setup.network()
        follow(self.answer, self._network, 0)
        self._optimiser = setup.optimiser(list(self._network.parameters()), scheduled=scheduled)
        # One more than the class that was predicted last; 0 for a row that was not seen yet.
        self._predicted = setup.row_state("predicted", dtype=torch.int64)
        self._changes = setup.state("changes", torch.zeros(setup.epochs))
        self._over = setup.state("over", torch.zeros((), dtype=torch.bool))

    @property
    def is_over(self) -> bool:
        """Whether a rise of the changes has been seen."""
        return bool(self._over)

    def epoch(self, run: Epoch) -> Iterator[Step]:
        """Go once through all rows, and count the predictions that have changed."""
        loss = self.loss.at(run.share)
        changed = compared = 0
        for index, batch in enumerate(run.batches()):
            logits = self._network(batch.inputs)
            value = loss(logits, batch.labels).mean()
            run.update(value, self._optimiser)
            before, now = self._predicted[batch.rows], loss.predict(logits.detach()) + 1
            self._predicted[batch.rows] = now
            changed += int(((before != now) & (before > 0)).sum())
            compared += int((before > 0).sum())
            values = {}
            if index == run.steps - 1:
                self._judge(run.number, changed / max(1, compared))
                values = {"changed": changed / max(1, compared), "rise_seen": float(self._over)}
            yield Step(value, batch.rows, logits, values)

    def learnt(self) -> dict[str, Tensor]:
        """Return the share of predictions that changed in each epoch; 0 in the first, where none can change."""
        return {"changes": self._changes}

    def _judge(self, number: int, changed: float) -> None:
        """Decide at the end of an epoch whether its weights are kept, and whether the training is over."""
        self._changes[number] = changed
        # The first epoch has nothing to compare with.
        means = moving_means(self._changes[1 : number + 1], self._window)
        self._over.fill_(has_risen(means, self._patience, self._margin))
        is_last = number == self._epochs - 1
        is_smallest = not len(means) or int(means.argmin()) == len(means) - 1
        if not self._over and (is_smallest or is_last):
            follow(self.answer, self._network, 0)


def moving_means(counts: Tensor, window: int) -> Tensor:
    """Return the mean of each run of `window` counts, in order; nothing if there are fewer counts.

    Example:
        >>> moving_means(torch.tensor([4.0, 2.0, 3.0, 4.0]), 2)
        tensor([3.0000, 2.5000, 3.5000])
    """
    return counts.unfold(0, window, 1).mean(-1) if len(counts) >= window else counts[:0]


def has_risen(means: Tensor, patience: int, margin: float) -> bool:
    """Return whether the smallest mean is at least `patience` epochs old, and the last one is clearly above it.

    Example:
        >>> means = torch.tensor([3.0, 2.0, 2.1, 2.5])
        >>> has_risen(means, 2, 0.1), has_risen(means, 3, 0.1), has_risen(means, 2, 0.5)
        (True, False, False)
    """
    if not len(means):
        return False
    lowest = int(means.argmin())
    return len(means) - 1 - lowest >= patience and bool(means[-1] > (1 + margin) * means[lowest])


register(
    "label-wave",
    LabelWave,
    "one network that stops when its predictions begin to change more often again",
    Facts(
        idea="While a network learns what is right, its predictions for training rows settle. When it begins to "
        "memorise wrong labels, they change more often again. Training stops there, without any held-out labels.",
        source="Yuan, Feng and Liu, Early stopping against label noise without validation data, ICLR 2024",
        remembers="the class that was predicted last",
        posterior="The predicted class is that of the posterior of the loss.",
        deviations="The released code counts changed predictions but has no rule to stop; the width of the mean, the "
        "patience and the margin are our choice. The first epoch, in which nothing can change, does not count.",
    ),
)
