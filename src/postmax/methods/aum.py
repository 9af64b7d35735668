"""AUM: rows whose label never wins by a clear margin are left out, and a fresh network learns from the others.

Pleiss, Zhang, Elenberg and Weinberger, Identifying mislabeled data using the area under the margin ranking, NeurIPS
2020.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from postmax import losses
from postmax.errors import InputError
from postmax.losses import Loss
from postmax.methods.catalogue import register
from postmax.methods.facts import Facts, Preset
from postmax.methods.method import Epoch, Method, Setup, Step
from postmax.methods.parts.options import check_number
from postmax.methods.parts.outputs import FirstOutputs
from postmax.methods.parts.phases import phase_epochs, share_of_span
from postmax.methods.parts.posteriors import log_posterior
from postmax.methods.parts.stages import Stages

# Published: two runs of 150 epochs, then 300 epochs on the rows that are kept.
_MARGIN_SHARE = 150 / 600
_RUNS = 2
# Batch normalisation cannot use a single row, so one row counts as none.
_FEWEST = 2


class AUM(Method):
    """Train two networks to measure the margin of each label, then a third one on the rows that are kept.

    The margin of a row is the log posterior of its label minus the largest one of the other classes. Its mean over all
    steps of a training is the area under the margin (AUM). It is small for a wrong label, because similar rows speak
    against it.

    How small is too small? Some *threshold rows* get a class that does not exist, so their labels are surely wrong. A
    row is flagged if its AUM is below nearly all threshold rows. There are two trainings with different threshold rows.
    A row is left out if it is flagged in each training in which it had its own label. The best row of each class always
    stays.

    The margin of log posteriors is the margin of logits for losses with a softmax. For other losses, such as f-PML, it
    still rises and falls with the posterior.

    Args:
        setup: What the loop offers.
        margin_epochs: How many epochs each of the two trainings has. None for 25 % of the training. It is shortened if
            nothing would be left for the third network.
        percentile: The share of the threshold rows whose AUM a row must exceed.
    """

    def __init__(self, setup: Setup, *, margin_epochs: int | None = None, percentile: float = 0.99) -> None:
        super().__init__(setup)
        if margin_epochs is not None:
            check_number(least=0, whole=True, margin_epochs=margin_epochs)
        check_number(above=0, below=1, percentile=percentile)
        length = min(phase_epochs(margin_epochs, _MARGIN_SHARE, setup.epochs), (setup.epochs - 1) // _RUNS)
        self._percentile, self._start = percentile, _RUNS * length
        self._spans = [(run * length, (run + 1) * length) for run in range(_RUNS)] if length else []
        self._spans.append((self._start, setup.epochs))
        self._labels, self._classes = setup.train.labels, setup.train.num_classes
        self._margin_loss = with_one_more_class(setup.loss, self._classes)
        order = torch.randperm(len(self._labels), generator=setup.generator("threshold rows"))
        count = max(1, len(order) // (self._classes + 1))
        self._threshold_rows = [order[run * count : (run + 1) * count].to(setup.device) for run in range(_RUNS)]
        self._margins = setup.row_state("sum of margins", (_RUNS,))
        self._seen = setup.row_state("steps", (_RUNS,))
        measuring = [setup.network(outputs=self._classes + 1) for _ in self._spans[:-1]]
        last = setup.network()
        self._networks = [*measuring, last]
        # The loop records the learning rate of the first optimiser, so that of the last network is made first.
        learning = setup.optimiser(list(last.parameters()), "kept", span=self._spans[-1])
        # Published with a constant rate: a falling one would let the networks memorise wrong labels.
        self._optimisers = [
            setup.optimiser(list(network.parameters()), f"margins {run}", scheduled=False)
            for run, network in enumerate(measuring)
        ]
        self._optimisers.append(learning)
        self._stage = setup.state("stage", torch.tensor(0))
        self.answer: nn.Module = Stages(
            [*(FirstOutputs(network, self._classes) for network in measuring), last], self._stage
        )

    def epoch(self, run: Epoch) -> Iterator[Step]:
        """Train the network of the present stage."""
        stage = sum(run.number >= start for start, _ in self._spans) - 1
        share = share_of_span(run.number, self._spans[stage])
        self._stage.fill_(stage)
        if run.number < self._start:
            return self._measure(run, self._margin_loss.at(share), stage)
        return self._learn(run, self.loss.at(share), stage)

    def learnt(self) -> dict[str, Tensor]:
        """Return the AUM of each row, from the trainings in which it had its own label, and which rows were kept."""
        return {"area_under_margin": self._areas(), "kept": self._kept()}

    def _measure(self, run: Epoch, loss: Loss, stage: int) -> Iterator[Step]:
        """Train a network on labels and threshold rows, and add up the margins."""
        labels = self._labels.index_fill(0, self._threshold_rows[stage], self._classes)
        for batch in run.batches():
            logits, wanted = self._networks[stage](batch.inputs), labels[batch.rows]
            value = loss(logits, wanted).mean()
            run.update(value, self._optimisers[stage])
            with torch.no_grad():
                self._margins[batch.rows, stage] += margins(log_posterior(loss, logits), wanted)
                self._seen[batch.rows, stage] += 1
            yield Step(value, batch.rows, logits[:, : self._classes])

    def _learn(self, run: Epoch, loss: Loss, stage: int) -> Iterator[Step]:
        """Train the last network on the rows that are kept."""
        kept = self._kept().nonzero()[:, 0]
        for batch in run.batches(kept):
            logits = self._networks[stage](batch.inputs)
            value = loss(logits, batch.labels).mean()
            run.update(value, self._optimisers[stage])
            yield Step(value, batch.rows, logits, {"kept": len(kept) / len(self._labels)})

    def _own_label(self) -> Tensor:
        """Return in which of the two trainings each row had its own label, (N, 2)."""
        own = torch.ones_like(self._seen, dtype=torch.bool)
        for run, rows in enumerate(self._threshold_rows):
            own[rows, run] = False
        return own

    def _areas(self) -> Tensor:
        """Return the AUM of each row over all steps in which it had its own label, (N,)."""
        own = self._own_label()
        return (self._margins * own).sum(1) / (self._seen * own).sum(1).clamp_min(1)

    def _kept(self) -> Tensor:
        """Return which rows the last network learns from, (N,)."""
        areas, seen = self._margins / self._seen.clamp_min(1), self._seen > 0
        # A row that was never seen has no margin: its label is not doubted, and it is no threshold.
        flagged = [
            seen[:, run] & below_threshold(areas[:, run], areas[rows[seen[rows, run]], run], self._percentile)
            for run, rows in enumerate(self._threshold_rows)
        ]
        kept = ~(torch.stack(flagged, 1) | ~self._own_label()).all(1)
        kept |= best_of_each_class(self._areas(), self._labels, self._classes)
        return kept if kept.sum() >= _FEWEST else torch.ones_like(kept)


def margins(log_p: Tensor, labels: Tensor) -> Tensor:
    """Return by how much each label exceeds the best other class, (B,).

    Args:
        log_p: The log posterior, (B, K).
        labels: The labels, (B,).

    Example:
        >>> margins(torch.tensor([[3.0, 1.0, 0.0], [3.0, 1.0, 0.0]]), torch.tensor([0, 1]))
        tensor([ 2., -2.])
    """
    given = labels[:, None]
    others = log_p.scatter(1, given, -torch.inf).amax(1)
    return log_p.gather(1, given)[:, 0] - others


def below_threshold(areas: Tensor, threshold_areas: Tensor, percentile: float) -> Tensor:
    """Return which rows have a smaller AUM than more than a share 1 − `percentile` of the threshold rows.

    Example:
        >>> below_threshold(torch.tensor([0.0, 3.5, 4.0]), torch.tensor([1.0, 2.0, 3.0, 4.0]), 0.75)
        tensor([ True, False, False])
    """
    ordered = threshold_areas.sort().values
    larger = len(ordered) - torch.searchsorted(ordered, areas.contiguous(), right=True)
    return larger > (1 - percentile) * len(ordered)


def best_of_each_class(areas: Tensor, labels: Tensor, classes: int) -> Tensor:
    """Return a mask of the rows that have the largest AUM of their label.

    Example:
        >>> best_of_each_class(torch.tensor([1.0, 3.0, -2.0]), torch.tensor([0, 0, 1]), 3)
        tensor([False,  True,  True])
    """
    best = torch.full((classes,), -torch.inf, dtype=areas.dtype, device=areas.device)
    return areas == best.scatter_reduce(0, labels, areas, "amax")[labels]


def with_one_more_class(loss: Loss, classes: int) -> Loss:
    """Return the loss with which a network can learn one class more.

    A loss that is made for a fixed number of classes, such as one that knows the noise, cannot. Cross-entropy takes its
    place.
    """
    try:
        loss(torch.zeros(2, classes + 1), torch.tensor([0, classes]))
    except InputError:
        return losses.get("ce", reduction="none")
    return loss


_SOURCE = "Pleiss et al. 2020, released code"
_TRAINING = {
    "epochs": 600,
    "batch_size": 256,
    "optimiser.name": "sgd",
    "optimiser.lr": 0.1,
    "optimiser.momentum": 0.9,
    "optimiser.nesterov": True,
    "optimiser.weight_decay": 1e-4,
    "schedule.name": "step",
    "schedule.milestones": [150, 225],
}

register(
    "aum",
    AUM,
    "two networks measure the margins of labels, a third one learns from rows with large margins",
    Facts(
        idea="During training, a right label wins against other classes by a clear margin, because similar rows help "
        "it. Rows with a class that does not exist show how small the margins of wrong labels are. A fresh network "
        "learns from the rows with larger margins.",
        source="Pleiss et al., Identifying mislabeled data using the area under the margin ranking, NeurIPS 2020",
        networks=3,
        remembers="the sum of its margins, and how often it was seen",
        posterior="the margin, which is that of log posteriors",
        deviations="The margin is that of log posteriors, which for a softmax is that of logits. There are N/(K + 1) "
        "threshold rows for K classes; the released code takes N/K, which for two classes is half of all rows. Margins "
        "count from the first epoch on. The best row of each class is kept. All three networks use the batch size of "
        "the run; published are 64 for the first two and 256 for the third.",
    ),
    presets={name: Preset({"percentile": 0.99}, _SOURCE, _TRAINING) for name in ("cifar10", "cifar100")},
)
