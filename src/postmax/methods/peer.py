"""Peer loss: agreement with labels of other rows is agreement by chance, and is subtracted.

Liu and Guo, Peer loss functions: Learning from noisy labels without knowing noise rates, ICML 2020.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch import Tensor

from postmax.losses import Loss
from postmax.methods.catalogue import register
from postmax.methods.facts import Facts, Preset
from postmax.methods.method import Epoch, Method, Setup, Step
from postmax.methods.parts.corrections import (
    losses_of_posterior,
    refuse_known_noise,
    refuse_mixed_rows,
    refuse_partial_posterior,
    true_posterior,
)
from postmax.methods.parts.options import check_number
from postmax.methods.parts.peers import both_outputs, with_peers
from postmax.methods.parts.ramps import checked_points, piecewise


class Peer(Method):
    """Minimise the loss of the run, minus α times its value for rows paired with the labels of other rows.

    A network that repeats wrong labels agrees with the labels of other rows too: as far as it just follows how frequent
    the labels are. The subtraction takes the gain from such agreement away. In expectation the objective has the same
    minimum with noisy labels as with clean ones, for classes of equal size and noise that treats them alike.

    The pairs are drawn anew in each epoch. Rows and labels of the pairs come in orders that do not depend on each
    other. The learning rate is divided by 1 + α, because the two parts together have a larger gradient.

    Args:
        setup: What the loop offers.
        alpha: How α changes: points [share of the training, α], between which it is linear.
        margin: The share of a uniform distribution that is mixed into the posterior of the pairs. It bounds the part
            that is subtracted, which could grow without end otherwise. A loss that is very steep for small
            probabilities, such as f-PML with the divergence rkl or jeffreys, needs about 0.01.
    """

    def __init__(
        self,
        setup: Setup,
        *,
        alpha: Sequence[Sequence[float]] = ((0.1, 0.0), (0.4, 1.0)),
        margin: float = 1e-4,
    ) -> None:
        super().__init__(setup)
        check_number(above=0, below=1, margin=margin)
        refuse_known_noise("peer", setup.loss)
        refuse_mixed_rows("peer", setup.loss)
        refuse_partial_posterior(setup)
        self._alpha, self._margin = checked_points(alpha, "alpha"), margin
        self._labels = setup.train.labels
        self.answer = setup.network()
        self._optimiser = setup.optimiser(list(self.answer.parameters()))

    def epoch(self, run: Epoch) -> Iterator[Step]:
        """Go once through all rows, and through as many pairs as soon as α is above 0."""
        loss, alpha = self.loss.at(run.share), piecewise(self._alpha, run.share)
        values = {"alpha": alpha}
        if alpha == 0:
            for batch in run.batches():
                logits = self.answer(batch.inputs)
                value = loss(logits, batch.labels).mean()
                run.update(value, self._optimiser)
                yield Step(value, batch.rows, logits, values)
            return
        for found in with_peers(run, self._labels):
            batch = found.batch
            logits, others = both_outputs(self.answer, found)
            subtracted = peer_losses(loss, others, found.labels, self._margin)
            value = loss(logits, batch.labels).mean() - alpha * subtracted.mean()
            run.update(value, self._optimiser, rate=1 / (1 + alpha))
            yield Step(value, batch.rows, logits, values)


def peer_losses(loss: Loss, logits: Tensor, labels: Tensor, margin: float) -> Tensor:
    """Return the bounded loss of each pair of a row and a label, (B,).

    Args:
        loss: The loss of the run, with reduction "none".
        logits: The outputs for the rows of the pairs, (B, K).
        labels: The labels of the pairs, (B,).
        margin: The share of a uniform distribution that is mixed into the posterior.

    Example:
        >>> import torch
        >>> from postmax import losses
        >>> logits = torch.tensor([[0.0, -500.0]])  # without a margin the loss of the label 1 would be 500
        >>> peer_losses(losses.get("ce", reduction="none"), logits, torch.tensor([1]), 0.02).exp()
        tensor([100.0000])
    """
    return losses_of_posterior(loss, true_posterior(loss, logits), labels, margin).to(logits.dtype)


_PUBLISHED = "Liu and Guo 2020; the schedule of the released code for several classes"
# The published α is given for 340 epochs, and the training ends after 300 of them.
_UNIFORM = [(20, 0.0), (40, 0.1), (40, 1.0), (90, 2.0), (140, 2.5), (240, 3.3), (300, 4.32)]
_SPARSE = [(20, 0.0), (40, 1.0), (90, 2.0), (140, 5.0), (240, 10.0), (300, 16.0)]
_TRAINING = {
    "epochs": 300,
    "model.name": "preact-resnet18",
    "optimiser.name": "sgd",
    "optimiser.lr": 0.1,
    "optimiser.momentum": 0.9,
    "optimiser.weight_decay": 1e-4,
    "schedule.name": "step",
    "schedule.milestones": [40, 80, 120, 160, 200, 240, 280],
}


def _shares(points: Sequence[tuple[float, float]], epochs: int) -> list[list[float]]:
    return [[epoch / epochs, alpha] for epoch, alpha in points]


register(
    "peer",
    Peer,
    "the loss of the labels minus that of labels of other rows, which takes agreement by chance away",
    Facts(
        idea="A network that has learnt nothing but how frequent the labels are agrees with the labels of other rows "
        "as well as with its own. This agreement by chance is subtracted from the loss. So what is left to learn is "
        "what the rows say about their labels, and noise cannot be learnt from rows.",
        source="Liu and Guo, Peer loss functions: Learning from noisy labels without knowing noise rates, ICML 2020",
        posterior="The part that is subtracted is the loss of a posterior that is kept away from 0, so that it is "
        "bounded for every loss.",
        deviations="Any loss takes the place of cross-entropy. The released code adds 1e-5 to probabilities in both "
        "parts; here only the part that is subtracted is bounded, by a share of 1e-4 of a uniform distribution, which "
        "is the same for ten classes. The momentum is kept from epoch to epoch; the released code makes a new "
        "optimiser in each. By default α rises to 1 between 10 % and 40 % of the training; the published schedules, "
        "which differ with the noise, are presets. The last network is judged; the released code takes the best one on "
        "noisy labels that are held out.",
    ),
    presets={
        "cifar10-uniform": Preset({"alpha": _shares(_UNIFORM, 300)}, _PUBLISHED, _TRAINING),
        "cifar10-sparse": Preset({"alpha": _shares(_SPARSE, 300)}, _PUBLISHED, _TRAINING),
        "cifar100-uniform": Preset(
            {"alpha": _shares([(100, 0.0), (100, 0.95)], 250)},
            _PUBLISHED,
            {**_TRAINING, "epochs": 250, "optimiser.weight_decay": 5e-4, "schedule.milestones": [60, 100]},
        ),
    },
)
