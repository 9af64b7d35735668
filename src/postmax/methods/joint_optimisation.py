"""Joint optimisation: labels are replaced by what the network said about their rows, and a second network learns them.

Tanaka, Ikami, Yamasaki and Aizawa, Joint optimization framework for learning with noisy labels, CVPR 2018.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from postmax.errors import InputError
from postmax.losses import Loss
from postmax.methods.catalogue import register
from postmax.methods.facts import Facts, Preset
from postmax.methods.method import Epoch, Method, Setup, Step
from postmax.methods.parts.options import check_number
from postmax.methods.parts.phases import phase_epochs, share_of_span
from postmax.methods.parts.posteriors import entropy, relative_entropy
from postmax.methods.parts.pull import pull
from postmax.methods.parts.recent_mean import RecentMean
from postmax.methods.parts.stages import Stages
from postmax.methods.parts.targets import one_hot

# Published: 200 epochs of the first network, labels rewritten after 70 from the last 10 epochs, then 120 epochs of the
# second network.
_PUBLISHED_EPOCHS = 320
_FIRST, _WARMUP, _MEMORY = 200, 70, 10
_PRIORS = ("labels", "uniform")
_MEMORIES = ("exact", "gradual")


class JointOptimisation(Method):
    """Train a network and rewrite the labels in turn; then train a second network on the rewritten labels.

    1. The first network learns at a constant learning rate, which is too high to memorise wrong labels.
    2. After some epochs, at the end of each epoch, the label of each row becomes the mean of the posteriors of that row
       in the last epochs. The given label is forgotten.
    3. The second network starts anew, and learns the rewritten labels with the loss and the schedule of the run.

    Two terms keep the first network from an easy way out. One asks that the mean posterior of a batch is the prior of
    the classes; otherwise all labels could become one class. The other asks for posteriors of low entropy; otherwise
    the labels would stay undecided.

    Args:
        setup: What the loop offers.
        prior_weight: The weight of the term for the prior, for cross-entropy. For other losses both weights are
            multiplied by how strongly they pull.
        entropy_weight: The weight of the term for the entropy.
        prior: "labels" for the share of each class among the given labels, "uniform" for equal classes.
        first_epochs: How many epochs the first network is trained. By default five eighths of the training.
        warmup_epochs: How many of these epochs come before the labels are rewritten. By default 22 % of the training.
        memory_epochs: Over how many epochs posteriors are averaged. By default 3 % of the training, and at least 2.
        memory: "exact" remembers the posteriors of these epochs, N·K numbers for each. "gradual" forgets old ones
            gradually and remembers N·K numbers in all.
        first_lr: The learning rate of the first network; by default that of the run.
    """

    def __init__(
        self,
        setup: Setup,
        *,
        prior_weight: float = 1.0,
        entropy_weight: float = 0.5,
        prior: str = "labels",
        first_epochs: int | None = None,
        warmup_epochs: int | None = None,
        memory_epochs: int | None = None,
        memory: str = "exact",
        first_lr: float | None = None,
    ) -> None:
        super().__init__(setup)
        check_number(least=0, prior_weight=prior_weight, entropy_weight=entropy_weight)
        _check_choice("prior", prior, _PRIORS)
        _check_choice("memory", memory, _MEMORIES)
        self._first_epochs = phase_epochs(first_epochs, _FIRST / _PUBLISHED_EPOCHS, setup.epochs)
        self._warmup_epochs = phase_epochs(warmup_epochs, _WARMUP / _PUBLISHED_EPOCHS, setup.epochs)
        memory_epochs = phase_epochs(memory_epochs, _MEMORY / _PUBLISHED_EPOCHS, max(3, setup.epochs), least=2)
        check_number(least=0, whole=True, first_epochs=self._first_epochs, warmup_epochs=self._warmup_epochs)
        check_number(least=1, whole=True, memory_epochs=memory_epochs)
        if first_lr is not None:
            check_number(above=0, first_lr=first_lr)
        classes = setup.train.num_classes
        self._prior_weight, self._entropy_weight = prior_weight, entropy_weight
        given = one_hot(setup.train.labels, classes)
        self._prior = given.mean(0) if prior == "labels" else torch.full_like(given[0], 1 / classes)
        self._labels = setup.state("labels", given)
        self._recent = RecentMean(setup, "posteriors", classes, memory_epochs, gradual=memory == "gradual")
        self._networks = setup.network(), setup.network()
        end = max(setup.epochs, self._first_epochs + 1)
        self._spans = (0, max(1, self._first_epochs)), (self._first_epochs, end)
        first, second = (list(network.parameters()) for network in self._networks)
        self._optimisers = (
            setup.optimiser(first, "first", lr=first_lr, scheduled=False),
            setup.optimiser(second, "second", span=self._spans[1]),
        )
        self._stage = setup.state("stage", torch.tensor(0))
        self.answer = Stages(self._networks, self._stage)

    def epoch(self, run: Epoch) -> Iterator[Step]:
        """Train the network of the present stage once on all rows, and rewrite the labels if it is time."""
        stage = int(run.number >= self._first_epochs)
        loss = self.loss.at(share_of_span(run.number, self._spans[stage]))
        self._stage.fill_(stage)
        strength = pull(loss, self._labels.shape[1])
        weights = strength * self._prior_weight, strength * self._entropy_weight
        for batch in run.batches():
            logits = self._networks[stage](batch.inputs)
            labels = self._labels[batch.rows]
            if stage == 0:
                self._recent.add(batch.rows, loss.label_posterior(logits))
                value = joint_loss(loss, logits, labels, self._prior, *weights)
            else:
                value = loss(logits, labels).mean()
            run.update(value, self._optimisers[stage])
            changed = (labels.argmax(-1) != batch.labels).float().mean()
            yield Step(value, batch.rows, logits, {"labels_changed": float(changed)})
        if stage == 0 and run.number + 1 >= self._warmup_epochs:
            known = self._recent.known[:, None]
            self._labels.copy_(torch.where(known, self._recent.mean(), self._labels))

    def learnt(self) -> dict[str, Tensor]:
        """Return the rewritten label of each training row, (N, K)."""
        return {"labels": self._labels}


def joint_loss(
    loss: Loss, logits: Tensor, labels: Tensor, prior: Tensor, prior_weight: float, entropy_weight: float
) -> Tensor:
    """Return the objective of the first network for a batch.

    Args:
        loss: The loss of the run.
        logits: Outputs of the network, (B, K).
        labels: The present labels, as distributions, (B, K).
        prior: The share of each class among the labels, (K,).
        prior_weight: The weight of KL(prior ‖ mean posterior).
        entropy_weight: The weight of the mean entropy of the posteriors.
    """
    mean = loss.label_posterior(logits).mean(0)
    value = loss(logits, labels).mean()
    value = value + prior_weight * relative_entropy(prior, mean)
    total: Tensor = value + entropy_weight * entropy(loss.posterior(logits)).mean()
    return total


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InputError(f"method.{name} must be one of {', '.join(choices)}, got {value!r}.")


_TRAINING = {
    "epochs": 320,
    "batch_size": 128,
    "optimiser.lr": 0.2,
    "optimiser.momentum": 0.9,
    "optimiser.weight_decay": 1e-4,
    "schedule.name": "step",
    "schedule.milestones": [40, 80],
}

register(
    "joint-optimisation",
    JointOptimisation,
    "labels become the mean of past posteriors, and a second network learns them",
    Facts(
        idea="A network that learns at a high rate does not memorise wrong labels. So its posteriors, averaged over "
        "some epochs, take the place of the labels, and a second network learns from them.",
        source="Tanaka, Ikami, Yamasaki and Aizawa, Joint optimization framework for learning with noisy labels, CVPR "
        "2018",
        networks=2,
        remembers="its present label, and its posteriors in the last epochs",
        posterior="It becomes the labels. The terms for the prior and for the entropy use it too. Where the loss "
        "removes noise, the labels become posteriors with the noise, because this is what such a loss takes as labels.",
        deviations="The prior comes from the given labels; the released code assumes equal classes, which is wrong for "
        "rare classes. The logarithm of the mean posterior is finite for a class that is never predicted. Posteriors "
        "are averaged over the epochs that there are; the released code also averages empty places. The phases are "
        "shares of the training. The weights of the two terms are multiplied by how strongly the loss pulls, compared "
        "with cross-entropy.",
    ),
    presets={
        "cifar10-symmetric-70": Preset(
            {"prior_weight": 1.2, "entropy_weight": 0.8, "prior": "uniform", "first_lr": 0.08},
            "the paper, and its released code",
            _TRAINING,
        ),
        "cifar10-asymmetric-40": Preset(
            {"prior_weight": 0.8, "entropy_weight": 0.4, "prior": "uniform", "first_lr": 0.03},
            "the paper, and its released code",
            _TRAINING,
        ),
    },
)
