"""NLNL: the network learns which classes a row does not have, then from the rows whose label it believes.

Kim, Yim, Yun and Kim, NLNL: Negative learning for noisy labels, ICCV 2019.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from postmax.losses import Loss
from postmax.losses.numerics.stable import sum_of_others
from postmax.methods.catalogue import register
from postmax.methods.facts import Facts, Preset
from postmax.methods.method import Epoch, Method, Setup, Step
from postmax.methods.parts.corrections import true_posterior
from postmax.methods.parts.options import check_number
from postmax.methods.parts.phases import phase_epochs, share_of_span
from postmax.methods.parts.posteriors import safe_log
from postmax.methods.parts.recent_mean import RecentMean
from postmax.methods.parts.stages import Stages
from postmax.methods.parts.targets import one_hot

# Published: three phases of 720 epochs, and two more of 480 epochs with networks of their own.
_PHASE, _PSEUDO_PHASE = 720, 480
# Published: the mean over the last ten epochs.
_MEMORY = 10
# Batch normalisation cannot use a single row, so one row counts as none.
_FEWEST = 2


class NLNL(Method):
    """Learn what rows are not, then learn from the rows whose label is believed.

    A label may be wrong, but a class drawn at random among the others is mostly not that of the row. So it is safer to
    learn "this row is not of class k" than "this row is of class y".

    1. Negative learning: the network minimises −log(1 − p_k) for the classes k other than the label, on all rows.
    2. Selective negative learning: the same on the rows whose label has a posterior of at least 1/K.
    3. Selective positive learning: the loss of the run, on the rows whose label has a posterior above `confidence`.

    With `pseudo`, two phases follow. In the fourth a new network learns from the rows selected last. In the fifth
    another new network learns from all rows; those that were not selected have the posterior of the fourth phase as
    their label.

    The posterior of a label is a mean over the last epochs. If hardly any row passes a selection, the one before it
    counts.

    Args:
        setup: What the loop offers.
        complements: How many classes are drawn for each row as what it is not. Their mean loss is computed exactly, so
            this is the weight of that mean. By default K − 1: each other class counts once.
        negative_epochs: How many epochs the first phase has; by default a third of the first three phases.
        selective_epochs: The same for the second phase.
        confidence: The posterior that a label needs in the third phase.
        memory_epochs: Over how many epochs the posterior is averaged; by default half of a phase, at most ten.
        pseudo: Whether the fourth and fifth phase follow. Then each takes 15 % of the training.
    """

    def __init__(
        self,
        setup: Setup,
        *,
        complements: float | None = None,
        negative_epochs: int | None = None,
        selective_epochs: int | None = None,
        confidence: float = 0.5,
        memory_epochs: int | None = None,
        pseudo: bool = False,
    ) -> None:
        super().__init__(setup)
        classes, epochs = setup.train.num_classes, setup.epochs
        complements = float(classes - 1) if complements is None else complements
        check_number(above=0, complements=complements)
        check_number(least=0, below=1, confidence=confidence)
        lengths = {"negative_epochs": negative_epochs, "selective_epochs": selective_epochs}
        check_number(least=0, whole=True, **{name: value for name, value in lengths.items() if value is not None})
        total = 3 * _PHASE + (2 * _PSEUDO_PHASE if pseudo else 0)
        self._selective_start = phase_epochs(negative_epochs, _PHASE / total, epochs)
        self._positive_start = self._selective_start + phase_epochs(selective_epochs, _PHASE / total, epochs)
        later = min(phase_epochs(None, _PSEUDO_PHASE / total, epochs), (epochs - 1) // 2) if pseudo else 0
        starts = [0, epochs - 2 * later, epochs - later] if later else [0]
        self._spans = list(zip(starts, [*starts[1:], epochs], strict=True))
        if memory_epochs is None:
            memory_epochs = max(1, min(_MEMORY, round(_PHASE / total * epochs) // 2))
        check_number(least=1, whole=True, memory_epochs=memory_epochs)
        self._memory, self._complements, self._confidence = memory_epochs, complements, confidence
        self._labels, self._classes = setup.train.labels, classes
        self._belief = RecentMean(setup, "belief", 1, memory_epochs)
        self._kept = setup.row_state("kept", dtype=torch.bool)
        self._guesses = RecentMean(setup, "guesses", classes, memory_epochs, gradual=True) if later else None
        self._networks = [setup.network() for _ in self._spans]
        # The loop records the learning rate of the first optimiser, so that of the last network is made first.
        self._optimisers = {
            stage: setup.optimiser(
                list(self._networks[stage].parameters()), f"network {stage + 1}", span=self._spans[stage]
            )
            for stage in reversed(range(len(self._spans)))
        }
        self._stage = setup.state("stage", torch.tensor(0))
        self.answer = Stages(self._networks, self._stage)

    def epoch(self, run: Epoch) -> Iterator[Step]:
        """Train the network of the present phase."""
        stage = sum(run.number >= start for start, _ in self._spans) - 1
        if stage > 0 and run.number == self._spans[stage][0]:
            self._begin(stage, run)
        return (self._select, self._learn_kept, self._learn_all)[stage](run)

    def _begin(self, stage: int, run: Epoch) -> None:
        """Remember what the network before has found out, and let the new one answer."""
        if stage == 1:
            self._kept.copy_(self._selected(self._confidence, 1 / self._classes))
        else:
            self._guess(run)
        self._stage.fill_(stage)

    def _select(self, run: Epoch) -> Iterator[Step]:
        """Learn from selected rows: what they are not, or what they are."""
        even = 1 / self._classes
        positive = run.number >= self._positive_start
        if positive:
            chosen = self._selected(self._confidence, even)
        else:
            chosen = self._selected(0.0 if run.number < self._selective_start else even)
        # The loss of the run serves in the third phase alone, so what changes in it changes within this phase.
        span = (min(self._positive_start, self._spans[0][1] - 1), self._spans[0][1])
        loss = self.loss.at(max(0.0, share_of_span(run.number, span)))
        for batch in run.batches():
            logits = self._networks[0](batch.inputs)
            picked = chosen[batch.rows]
            some, labels = logits[picked], batch.labels[picked]
            if not picked.any():  # nothing is learnt, but the rows are looked at
                value = 0 * logits.sum()
            elif positive:
                value = loss(some, labels).mean()
            else:
                value = negative_losses(self.loss, some, labels, self._complements).mean()
            run.update(value, self._optimisers[0])
            posterior = self.loss.posterior(logits.detach())
            self._belief.add(batch.rows, posterior.gather(-1, batch.labels[:, None]))
            yield Step(value, batch.rows, logits, {"selected": float(picked.float().mean())})

    def _learn_kept(self, run: Epoch) -> Iterator[Step]:
        """Train the second network on the rows that were selected last."""
        start, end = self._spans[1]
        # Guesses are averaged over the last epochs of this phase; the last one is made when the phase is over.
        if run.number > max(start, end - self._memory):
            self._guess(run)
        return self._learn(run, 1, self._kept.nonzero()[:, 0], None)

    def _learn_all(self, run: Epoch) -> Iterator[Step]:
        """Train the third network on all rows, with guessed labels for those that were not selected."""
        assert self._guesses is not None  # noqa: S101  (this phase exists only together with them)
        return self._learn(run, 2, None, pseudo_labels(self._labels, self._kept, self._guesses.mean()))

    def _learn(self, run: Epoch, stage: int, rows: Tensor | None, targets: Tensor | None) -> Iterator[Step]:
        loss = self.loss.at(share_of_span(run.number, self._spans[stage]))
        share = {"selected": float(self._kept.float().mean())}
        for batch in run.batches(rows):
            logits = self._networks[stage](batch.inputs)
            value = loss(logits, batch.labels if targets is None else targets[batch.rows]).mean()
            run.update(value, self._optimisers[stage])
            yield Step(value, batch.rows, logits, share)

    def _guess(self, run: Epoch) -> None:
        """Add what the second network believes about the labels of all rows to the mean."""
        assert self._guesses is not None  # noqa: S101  (the second network exists only together with them)
        posterior = self.loss.label_posterior(run.evaluate(self._networks[1]))
        self._guesses.add(torch.arange(len(self._labels), device=self._labels.device), posterior)

    def _selected(self, *thresholds: float) -> Tensor:
        return selected(self._belief.mean()[:, 0], *thresholds)

    def learnt(self) -> dict[str, Tensor]:
        """Return the mean posterior of the label of each row, (N,)."""
        return {"belief": self._belief.mean()[:, 0]}


def negative_losses(loss: Loss, logits: Tensor, labels: Tensor, complements: float) -> Tensor:
    """Return the mean of −log(1 − p_k) over all classes k other than the label, times a weight, (B,).

    It is what one or more other classes, drawn at random, give on average.

    Args:
        loss: The loss of the run, which knows its posterior p.
        logits: The outputs of the network, (B, K).
        labels: The given labels, (B,).
        complements: How many classes would be drawn.

    Example:
        >>> from postmax import losses
        >>> logits = torch.tensor([[0.5, 0.2, 0.3]]).log()
        >>> negative_losses(losses.get("ce"), logits, torch.tensor([0]), 2).exp()  # 1 / (0.8 · 0.7)
        tensor([1.7857])
    """
    # 1 − p is a sum over the other classes, so that it keeps its digits where p is almost 1.
    rest = sum_of_others(true_posterior(loss, logits), None)
    others = safe_log(rest).scatter(-1, labels[:, None], 0.0).sum(-1)
    return (-complements / (logits.shape[-1] - 1) * others).to(logits.dtype)


def selected(belief: Tensor, *thresholds: float) -> Tensor:
    """Return a mask (N,) of the rows whose label is believed.

    Args:
        belief: The mean posterior of the label of each row, (N,).
        thresholds: The least posterior. If it leaves fewer than two rows, the next one counts, and in the end none.

    Example:
        >>> belief = torch.tensor([0.4, 0.1, 0.3])
        >>> selected(belief, 0.3), selected(belief, 0.5, 0.2), selected(belief, 0.5)
        (tensor([ True, False,  True]), tensor([ True, False,  True]), tensor([True, True, True]))
    """
    for threshold in thresholds:
        chosen = belief >= threshold
        if int(chosen.sum()) >= _FEWEST:
            return chosen
    return torch.ones_like(belief, dtype=torch.bool)


def pseudo_labels(labels: Tensor, kept: Tensor, guesses: Tensor) -> Tensor:
    """Return a label distribution for each row, (N, K): its label if it was kept, and the guess otherwise.

    Example:
        >>> pseudo_labels(torch.tensor([0, 1]), torch.tensor([True, False]), torch.tensor([[0.3, 0.7], [0.6, 0.4]]))
        tensor([[1.0000, 0.0000],
                [0.6000, 0.4000]])
    """
    return torch.where(kept[:, None], one_hot(labels, guesses.shape[-1]), guesses)


_SOURCE = "Kim et al. 2019, released code"
_TRAINING = {
    "epochs": 2160,
    "model.name": "resnet34",
    "batch_size": 128,
    "optimiser.name": "sgd",
    "optimiser.lr": 0.02,
    "optimiser.momentum": 0.9,
    "optimiser.weight_decay": 1e-4,
}

register(
    "nlnl",
    NLNL,
    "learn which classes rows do not have, then from the rows whose label is believed",
    Facts(
        idea="That a row is not of some other class is mostly true even if its label is wrong. So the network learns "
        "what rows are not, first from all rows, then from those whose label it does not doubt. At last it learns the "
        "labels of the rows of which it is sure.",
        source="Kim, Yim, Yun and Kim, NLNL: Negative learning for noisy labels, ICCV 2019",
        remembers="the posterior of its label in the last epochs; with method.pseudo also a mean posterior and whether "
        "it was selected",
        posterior="The first two phases are trained on it, and it selects the rows. Where the loss removes noise, "
        "guessed labels have the noise that the loss expects.",
        deviations="The third phase uses the loss of the run. In the first two the mean over all other classes takes "
        "the place of classes drawn at random. By default each other class counts once; published are one drawn class "
        "for CIFAR-10 and 110 for CIFAR-100, which need thousands of epochs. Classes have equal weights; "
        "the released code weighs rare labels more, which changes the posterior. It also cuts −log(1 − p) off at "
        "1 − p = 1e-5, so that a class of which the network is quite sure is never unlearnt. If fewer than two rows "
        "are selected, the weaker selection counts. All phases have the learning rate of the run; the fourth one was "
        "published with a rate of 0.1 after 0.02.",
    ),
    presets={
        "cifar10": Preset({"complements": 1, "memory_epochs": 10}, _SOURCE, _TRAINING),
        "cifar10-pseudo": Preset(
            {"complements": 1, "memory_epochs": 10, "pseudo": True}, _SOURCE, {**_TRAINING, "epochs": 3120}
        ),
        "cifar100": Preset({"complements": 110, "memory_epochs": 10}, _SOURCE, _TRAINING),
    },
)
