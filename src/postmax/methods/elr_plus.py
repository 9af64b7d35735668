"""ELR+: two networks, each pulled towards what a slow copy of the other one believed, on mixed rows.

Liu, Niles-Weed, Razavian and Fernandez-Granda, Early-learning regularization prevents memorization of noisy labels,
NeurIPS 2020.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from postmax.data import mixup
from postmax.losses import Loss
from postmax.methods.catalogue import register
from postmax.methods.facts import Facts, Preset
from postmax.methods.method import Epoch, Method, Setup, Step
from postmax.methods.parts.early_learning import early_learning, remember
from postmax.methods.parts.ensemble import MeanOutputs
from postmax.methods.parts.options import check_number
from postmax.methods.parts.pair import two_networks
from postmax.methods.parts.phases import phase_epochs
from postmax.methods.parts.pull import pull
from postmax.methods.parts.ramps import gentle_ramp
from postmax.methods.parts.targets import one_hot
from postmax.methods.parts.teacher import follow

# 40,000 steps of 200 epochs with 352 batches each.
_TEACHER_SHARE = 40_000 / (200 * 352)
# 40,000 steps of the 250 epochs for CIFAR-100.
_WEIGHT_SHARE = 40_000 / (250 * 352)
_FEWEST_EPOCHS = 20


class ELRPlus(Method):
    """Train two networks with ELR on mixed rows. The targets of each come from a teacher of the other.

    A teacher is a copy that follows its network slowly. The target of a row is an exponential moving average of the
    posteriors that the teacher of the *other* network had for the row itself. Rows, labels and targets are then mixed
    in pairs. The objective of a mixed row is loss + weight · log(1 − ⟨t, p⟩), as in ELR. The outputs of the two
    networks are averaged to give the answer.

    Args:
        setup: What the loop offers.
        memory: The share of the old target that is kept when a row is seen again, β in the paper.
        weight: The weight of the second term, λ in the paper, for cross-entropy. For other losses it is multiplied by
            how strongly they pull.
        weight_epochs: Over how many epochs that weight rises; 0 for the whole weight from the start, as published for
            CIFAR-10. By default 45 % of the training, as published for CIFAR-100, but at least 20 epochs: in a short
            training the whole weight would hold on to what the networks believed before they had learnt anything.
        alpha: The parameter of mixup's Beta distribution.
        teacher_decay: The share of its weights that a teacher keeps in each step, in the end.
        teacher_epochs: Over how many epochs that share rises from nearly 0. By default 57 % of the training, as
            published.
        weigh_labels: Whether the mixed labels are multiplied by the targets and divided by their sum before they are
            learnt. Published for CIFAR-100.
    """

    def __init__(
        self,
        setup: Setup,
        *,
        memory: float = 0.7,
        weight: float = 3.0,
        weight_epochs: int | None = None,
        alpha: float = 1.0,
        teacher_decay: float = 0.997,
        teacher_epochs: int | None = None,
        weigh_labels: bool = False,
    ) -> None:
        super().__init__(setup)
        check_number(least=0, below=1, memory=memory, teacher_decay=teacher_decay)
        check_number(least=0, weight=weight)
        check_number(above=0, alpha=alpha)
        self._teacher_epochs = phase_epochs(teacher_epochs, _TEACHER_SHARE, setup.epochs)
        fewest = max(_FEWEST_EPOCHS, round(_WEIGHT_SHARE * setup.epochs))
        self._weight_epochs = fewest if weight_epochs is None else weight_epochs
        check_number(least=0, whole=True, weight_epochs=self._weight_epochs, teacher_epochs=self._teacher_epochs)
        self._memory = memory
        self._weight, self._alpha, self._decay, self._weigh_labels = weight, alpha, teacher_decay, weigh_labels
        self._classes = setup.train.num_classes
        self._networks, self._optimisers = two_networks(setup)
        self._teachers = setup.network(), setup.network()
        for teacher, network in zip(self._teachers, self._networks, strict=True):
            follow(teacher, network, 0)
        self._targets = tuple(setup.row_state(f"targets of network {n}", (self._classes,)) for n in (0, 1))
        self.answer = MeanOutputs(self._networks)

    def epoch(self, run: Epoch) -> Iterator[Step]:
        """Let each network in turn go once through all rows."""
        loss = self.loss.at(run.share)
        for teacher in self._teachers:
            teacher.eval()
        for place in (0, 1):
            yield from self._pass(run, loss, place)

    def _pass(self, run: Epoch, loss: Loss, place: int) -> Iterator[Step]:
        """Train one network on all rows, and let its teacher follow it."""
        network, teacher, other = self._networks[place], self._teachers[place], self._teachers[1 - place]
        generator, weight = run.generator(f"mixup {place}"), self._weight * pull(loss, self._classes)
        for index, batch in enumerate(run.batches(stream=f"network {place}")):
            time = run.number + index / run.steps
            with torch.no_grad():
                believed = loss.posterior(other(batch.inputs))
            targets = remember(self._targets[place], batch.rows, believed, self._memory)
            mixed = mixup(
                batch.inputs, one_hot(batch.labels, self._classes), self._alpha, generator, at_least_half=True
            )
            share = mixed.weight[:, None]
            targets = share * targets + (1 - share) * targets[mixed.partner]
            labels = weighed(mixed.targets, targets) if self._weigh_labels else mixed.targets
            logits = network(mixed.inputs)
            agreement = early_learning(targets, loss.posterior(logits)).mean()
            strength = weight * gentle_ramp(time, self._weight_epochs)
            value = loss(logits, labels).mean() + strength * agreement
            run.update(value, self._optimisers[place])
            follow(teacher, network, self._decay * gentle_ramp(time, self._teacher_epochs))
            overruled = (believed.argmax(-1) != batch.labels).float().mean()
            # A mixed row has no label of its own, but it is mostly the row that it is named after.
            yield Step(value, batch.rows, logits, {"overruled": float(overruled)})


def weighed(labels: Tensor, targets: Tensor) -> Tensor:
    """Return label distributions (B, K) times targets (B, K), divided by their sums.

    A label that was mixed of two classes moves to the class that the target finds more probable.

    Example:
        >>> weighed(torch.tensor([[0.5, 0.5, 0.0]]), torch.tensor([[0.6, 0.2, 0.1]]))
        tensor([[0.7500, 0.2500, 0.0000]])
    """
    product = labels * targets
    return product / product.sum(-1, keepdim=True)


_CODE = "Liu et al. 2020, released code of ELR+"
_TRAINING = {
    "model": "preact-resnet18",
    "batch_size": 128,
    "optimiser.lr": 0.02,
    "optimiser.weight_decay": 5e-4,
    "schedule.name": "step",
}
_CIFAR10 = {**_TRAINING, "epochs": 200, "schedule.milestones": (150,)}

register(
    "elr-plus",
    ELRPlus,
    "two networks, each pulled towards a slow copy of the other, on mixed rows",
    Facts(
        idea="As in ELR, each row remembers earlier predictions, and a term keeps the network near them. Here they are "
        "those of a slow copy of the other of two networks, and the networks learn from mixed rows.",
        source="Liu, Niles-Weed, Razavian and Fernandez-Granda, Early-learning regularization prevents memorization of "
        "noisy labels, NeurIPS 2020",
        networks=2,
        remembers="for each network a mean of earlier posteriors, 2·K numbers",
        posterior="The remembered predictions are posteriors of the loss, and the term compares posteriors.",
        deviations="The released code draws the noise and the validation rows for each network anew, so that the two "
        "see different labels of the same image; here both see the same labels. Only the targets are cut at 1e-4, not "
        "the probabilities of the network. Teachers also average the statistics of batch normalisation, and answer in "
        "evaluation mode. The answer is always the mean of the two networks. The weight of the term is multiplied by "
        "how strongly the loss pulls, compared with cross-entropy.",
    ),
    presets={
        "cifar10-symmetric": Preset({"memory": 0.7, "weight": 3.0, "weight_epochs": 0}, _CODE, _CIFAR10),
        "cifar10-asymmetric": Preset({"memory": 0.9, "weight": 1.0, "weight_epochs": 0}, _CODE, _CIFAR10),
        "cifar100": Preset(
            # 40,000 steps are 114 epochs of 352 batches.
            {"memory": 0.9, "weight": 7.0, "weight_epochs": 114, "teacher_epochs": 114, "weigh_labels": True},
            _CODE,
            {**_TRAINING, "epochs": 250, "schedule.milestones": (200,)},
        ),
    },
)
