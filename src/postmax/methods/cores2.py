"""CORES²: a sieve of rows that gets finer while the network becomes confident, then learning without the other labels.

Cheng et al., Learning with instance-dependent label noise: A sample sieve approach, ICLR 2021.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from postmax.data import Batch
from postmax.data.views import VIEW_NAMES
from postmax.losses import Loss
from postmax.methods.catalogue import register
from postmax.methods.facts import Facts, Preset
from postmax.methods.method import Epoch, Method, Setup, Step
from postmax.methods.parts.batch_losses import refuse_batch_loss
from postmax.methods.parts.options import check_number
from postmax.methods.parts.phases import phase_epochs, share_of_span
from postmax.methods.parts.posteriors import relative_entropy
from postmax.methods.parts.pull import pull
from postmax.methods.parts.ramps import ramp
from postmax.methods.parts.stages import Stages
from postmax.registry import unknown_name

# Published: β is 0 for 10 of 100 epochs and rises for 30, rows are left out after 30, and the sieve after 40 is final.
_WARMUP_SHARE, _RAMP_SHARE, _UNSIEVED_SHARE, _CONSISTENCY_SHARE = 0.1, 0.3, 0.3, 0.6
# Published: 240 rows without labels beside 320 with labels.
_UNLABELLED_SHARE = 240 / 320
# Batch normalisation cannot use a single row, so one row counts as none.
_FEWEST = 2
# The published floor under probabilities. All classes that a confident network excludes become equally surprising, so
# that none of them passes the sieve.
_FLOOR = 1e-8
# Values that are equal up to rounding count as equal.
_ROUNDING = 1e-6


class Cores2(Method):
    """Sieve out rows whose label is more surprising than a label drawn at random, then learn from them without labels.

    The surprise of a label k is −log p_k, with the posterior p of the loss of the run.

    1. A network minimises the loss of the run minus β times a reward for confidence. The reward is the mean surprise of
       all labels, weighted by how frequent they are. It makes the network decide against labels that do not fit. After
       some epochs, only rows that pass the sieve are used: those whose label is at most as surprising as all labels on
       average. A class of which too few rows pass keeps all its rows.
    2. A fresh network is trained on the rows that pass the sieve in the end. The other rows have no label any more: the
       posterior of a strong view must be that of the weak view.

    The loss `cores` is the first phase without the sieve. Do not use it here, it would reward confidence twice.

    Args:
        setup: What the loop offers.
        beta: The weight of the reward after its rise, for cross-entropy. For other losses it is multiplied by how
            strongly they pull.
        warmup_epochs: How many epochs come before the rise. None for 10 % of the training.
        ramp_epochs: Over how many epochs the weight rises. None for 30 % of the training.
        unsieved_epochs: How many epochs use all rows. None for 30 % of the training.
        consistency_epochs: How many epochs the second phase has; 0 for none. None for 60 % of the training.
        consistency_weight: The weight of the rows without labels, for cross-entropy. For other losses it is multiplied
            by how strongly they pull.
        view: The name of the strong view.
    """

    def __init__(
        self,
        setup: Setup,
        *,
        beta: float = 2.0,
        warmup_epochs: int | None = None,
        ramp_epochs: int | None = None,
        unsieved_epochs: int | None = None,
        consistency_epochs: int | None = None,
        consistency_weight: float = 0.9,
        view: str = "strong",
    ) -> None:
        super().__init__(setup)
        check_number(least=0, beta=beta, consistency_weight=consistency_weight)
        lengths = {
            "warmup_epochs": warmup_epochs,
            "ramp_epochs": ramp_epochs,
            "unsieved_epochs": unsieved_epochs,
            "consistency_epochs": consistency_epochs,
        }
        check_number(least=0, whole=True, **{name: value for name, value in lengths.items() if value is not None})
        if view not in VIEW_NAMES:
            raise unknown_name("view", view, VIEW_NAMES)
        refuse_batch_loss("cores2", setup.loss)
        epochs = setup.epochs
        self._beta, self._consistency_weight, self._views = beta, consistency_weight, ("weak", view)
        self._warmup_epochs = phase_epochs(warmup_epochs, _WARMUP_SHARE, epochs)
        self._ramp_epochs = phase_epochs(ramp_epochs, _RAMP_SHARE, epochs)
        self._unsieved_epochs = phase_epochs(unsieved_epochs, _UNSIEVED_SHARE, epochs)
        change = epochs - min(phase_epochs(consistency_epochs, _CONSISTENCY_SHARE, epochs), epochs - 1)
        self._spans = [(0, change), (change, epochs)] if change < epochs else [(0, epochs)]
        self._networks = [setup.network() for _ in self._spans]
        # The loop records the learning rate of the first optimiser, so that of the last network is made first.
        self._optimisers = {
            phase: setup.optimiser(
                list(self._networks[phase].parameters()), f"phase {phase + 1}", span=self._spans[phase]
            )
            for phase in reversed(range(len(self._spans)))
        }
        self._labels, self._classes = setup.train.labels, setup.train.num_classes
        self._unlabelled_size = max(1, round(_UNLABELLED_SHARE * setup.batch_size))
        self._label_counts = setup.state("labels that passed", self._count(self._labels))
        self._passed = setup.row_state("passed", dtype=torch.bool)
        self._stage = setup.state("stage", torch.tensor(0))
        self.answer: nn.Module = Stages(self._networks, self._stage)

    def epoch(self, run: Epoch) -> Iterator[Step]:
        """Train the network of the present phase."""
        stage = sum(run.number >= start for start, _ in self._spans) - 1
        loss = self.loss.at(share_of_span(run.number, self._spans[stage]))
        if stage == 0:
            return self._sieve(run, loss)
        if run.number == self._spans[1][0]:
            self._divide(self.loss.posterior(run.evaluate(self._networks[0])))
        self._stage.fill_(stage)
        return self._consistency(run, loss)

    def _sieve(self, run: Epoch, loss: Loss) -> Iterator[Step]:
        """Train on the rows that pass, and count their labels for the reward of the next epoch."""
        beta = self._beta * ramp(run.number, self._warmup_epochs, self._ramp_epochs)
        reward = beta * pull(loss, self._classes)
        sieves = run.number >= self._unsieved_epochs
        not_learnt = self._not_learnt(self._label_counts)
        counts = self._label_counts if self._label_counts.any() else self._count(self._labels)
        prior, used = counts / counts.sum(), torch.zeros_like(counts)
        for batch in run.batches():
            logits = self._networks[0](batch.inputs)
            surprise = surprises(loss.posterior(logits))
            passed = torch.ones_like(batch.labels, dtype=torch.bool)
            if sieves:
                passed = passes(surprise, batch.labels) | not_learnt[batch.labels]
            losses = loss(logits, batch.labels) - reward * (surprise * prior.to(surprise)).sum(-1)
            # If no row passes, the loss is 0 and so is its gradient.
            value = losses[passed].sum() / passed.sum().clamp_min(1)
            run.update(value, self._optimisers[0], rate=1 / (1 + beta))
            used += self._count(batch.labels[passed])
            yield Step(value, batch.rows, logits, {"passed": float(passed.float().mean())})
        self._label_counts.copy_(used)

    def _divide(self, posterior: Tensor) -> None:
        """Remember which rows pass the sieve in the end."""
        passed = passes(surprises(posterior), self._labels)
        not_learnt = self._not_learnt(self._count(self._labels[passed]))
        self._passed.copy_(passed | not_learnt[self._labels])

    def _not_learnt(self, passed: Tensor) -> Tensor:
        """Return the classes (K,) of which fewer rows passed than labels drawn at random would be right: 1/K of them.

        A network that does not know a class yet would sieve out all of its rows, and never get to know it.
        """
        return passed * self._classes < self._count(self._labels)

    def _consistency(self, run: Epoch, loss: Loss) -> Iterator[Step]:
        """Train on the labels of the rows that passed, and on two views of the others."""
        labelled, others = (rows.nonzero()[:, 0] for rows in (self._passed, ~self._passed))
        if len(labelled) < _FEWEST:  # without labels there would be nothing to learn from
            labelled, others = torch.arange(len(self._passed), device=self._passed.device), others[:0]
        unlabelled: Iterator[Batch] | None = None
        if len(others):
            unlabelled = run.batches(
                others, views=self._views, size=self._unlabelled_size, stream="unlabelled", endless=True
            )
        share = {"passed": len(labelled) / len(self._passed)}
        weight = self._consistency_weight * pull(loss, self._classes)
        for batch in run.batches(labelled, stream="labelled"):
            parts = [batch.inputs]
            rows = batch.rows
            if unlabelled is not None:
                other = next(unlabelled)
                parts += other.views
                rows = torch.cat([rows, other.rows])
            # One pass for all parts: batch normalisation then sees the same rows for all of them.
            logits = self._networks[1](torch.cat(parts))
            value = loss(logits[: len(batch.rows)], batch.labels).mean()
            if unlabelled is not None:
                weak, strong = loss.posterior(logits[len(batch.rows) :]).chunk(2)
                value = value + weight * relative_entropy(weak.detach(), strong).mean()
            run.update(value, self._optimisers[1])
            yield Step(value, rows, logits[: len(rows)], share)

    def _count(self, labels: Tensor) -> Tensor:
        """Return how often each class is a label, as float64 (K,)."""
        return labels.bincount(minlength=self._classes).double()


def surprises(posterior: Tensor) -> Tensor:
    """Return −log p_k of each class k, (B, K), with the published floor under probabilities.

    Example:
        >>> surprises(torch.tensor([[1.0, 0.5, 0.0]]))
        tensor([[-0.0000,  0.6931, 18.4207]])
    """
    return -(posterior + _FLOOR).log()


def passes(surprise: Tensor, labels: Tensor) -> Tensor:
    """Return which rows pass the sieve: those whose label is at most as surprising as all labels on average.

    Args:
        surprise: −log p_k of each class, (B, K).
        labels: The given labels, (B,).

    Example:
        >>> passes(torch.tensor([[0.1, 3.0, 3.0], [0.1, 3.0, 3.0], [1.1, 1.1, 1.1]]), torch.tensor([0, 1, 1]))
        tensor([ True, False,  True])
    """
    mean = surprise.detach().mean(-1)
    own = surprise.detach().gather(-1, labels[:, None])[:, 0]
    return own - mean <= _ROUNDING * (1 + mean.abs())


_SOURCE = "Cheng et al. 2021, released code"
_TRAINING = {
    "epochs": 1600,
    "optimiser.name": "sgd",
    "optimiser.lr": 0.001,
    "optimiser.weight_decay": 5e-4,
    "optimiser.clip_norm": 5,
    "schedule.name": "cosine",
    "model.name": "resnet34",
}

register(
    "cores2",
    Cores2,
    "a sieve of rows that gets finer while confidence is rewarded, then consistency of the rows without labels",
    Facts(
        idea="A network that is rewarded for confidence decides against labels that do not fit. Labels that are more "
        "surprising than a label drawn at random are left out. In the end a fresh network learns from the labels that "
        "are left, and gives two views of all other rows the same posterior.",
        source="Cheng et al., Learning with instance-dependent label noise: A sample sieve approach, ICLR 2021",
        networks=2,
        remembers="whether the row has passed the sieve",
        posterior="the reward for confidence, the sieve, and the consistency of two views",
        deviations="The released code stops with an error if no row of a batch passes; postmax makes a step without a "
        "gradient. It divides the rows as they passed in a training step, with augmentation, after 40 of 100 epochs; "
        "postmax divides them once more without augmentation. The second phase of the released code has 1600 epochs "
        "of its own; here it is 60 % of the training. A class of which less than 1/K of the "
        "rows pass keeps all its rows. The learning rate is the same in both phases; published are 0.1 with batches of "
        "64 rows for the first one and 0.001 with batches of 320 for the second one. The reward and the consistency "
        "are multiplied by how strongly the loss pulls, compared with cross-entropy.",
    ),
    presets={
        "cifar10": Preset({"view": "policy"}, _SOURCE, _TRAINING),
        "cifar100": Preset({"view": "policy"}, _SOURCE, _TRAINING),
        "cifar10-first-phase": Preset(
            {"consistency_epochs": 0},
            _SOURCE,
            {
                "epochs": 100,
                "batch_size": 64,
                "optimiser.name": "sgd",
                "optimiser.lr": 0.1,
                "optimiser.momentum": 0.0,
                "schedule.name": "step",
                "schedule.milestones": [50],
                "model.name": "resnet34",
            },
        ),
    },
)
