"""MLNT: a network learns to stay the same after a step on labels that were made wrong on purpose.

Li, Wong, Zhao and Kankanhalli, Learning to learn from noisy labeled data, CVPR 2019.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call

from postmax.data import Batch
from postmax.errors import InputError
from postmax.losses import Loss
from postmax.methods.catalogue import register
from postmax.methods.facts import Facts
from postmax.methods.method import Epoch, Method, Setup, Step
from postmax.methods.parts.decay import average_decay
from postmax.methods.parts.options import check_number
from postmax.methods.parts.phases import phase_epochs
from postmax.methods.parts.posteriors import relative_entropy
from postmax.methods.parts.pull import pull
from postmax.methods.parts.ramps import gentle_ramp
from postmax.methods.parts.teacher import follow

# Published for one epoch of 31 250 steps: a teacher from step 500 on, and the full weight of its term from step 2000.
_WARMUP, _RAMP = 500 / 31_250, 1500 / 31_250
# The published decay of 0.999 remembers 1000 of these steps.
_REMEMBERED = 1000 / 31_250


class MLNT(Method):
    """Train a network so that a step on wrong labels would change its predictions little.

    For each batch, several sets of wrong labels are made: some rows get the label of a row that is near to them in the
    batch. The network makes one trial step on each set. The posteriors after the trial step must still be those of a
    teacher, a moving average of the weights that wrong labels have hardly touched. This term is added to the loss of
    the given labels. The teacher gives the answer.

    Args:
        setup: What the loop offers.
        trials: How many sets of wrong labels are made for each batch. The time of a step grows with it.
        wrong_share: The share of the rows of a batch that get the label of a neighbour.
        neighbours: From how many nearest rows of the batch that label comes; fewer if the batch has fewer rows.
        trial_rate: The learning rate of a trial step, for cross-entropy. The default is the published one. For other
            losses it is divided by how strongly they pull, so that a trial step goes as far. Where the network itself
            moves much faster, such a step changes no prediction and helps little: beside optimiser.lr=0.1, 1 was
            better.
        second_order: Whether the gradient also goes through the gradient of the trial step, as published. This takes
            about twice the time. By default a trial step is a fixed move of the weights.
        weight: The weight of the term in the end, for cross-entropy. For other losses it is multiplied by how strongly
            they pull.
        warmup_epochs: How many epochs come before the term; the teacher is a copy of the network in them. By default
            1.6 % of the training, and at least one epoch.
        ramp_epochs: Over how many epochs after that the weight of the term rises. By default 4.8 % of the training.
        decay: The decay of the teacher. By default it remembers 3 % of the training.
    """

    def __init__(
        self,
        setup: Setup,
        *,
        trials: int = 10,
        wrong_share: float = 0.5,
        neighbours: int = 10,
        trial_rate: float = 0.02,
        second_order: bool = False,
        weight: float = 1.0,
        warmup_epochs: int | None = None,
        ramp_epochs: int | None = None,
        decay: float | None = None,
    ) -> None:
        super().__init__(setup)
        check_number(least=1, whole=True, trials=trials, neighbours=neighbours)
        check_number(above=0, below=1, wrong_share=wrong_share)
        check_number(above=0, trial_rate=trial_rate)
        check_number(least=0, weight=weight)
        if not isinstance(second_order, bool):
            raise InputError(f"method.second_order must be true or false, got {second_order!r}.")
        self._warmup_epochs = phase_epochs(warmup_epochs, _WARMUP, setup.epochs)
        self._ramp_epochs = phase_epochs(ramp_epochs, _RAMP, setup.epochs)
        check_number(least=0, whole=True, warmup_epochs=self._warmup_epochs, ramp_epochs=self._ramp_epochs)
        self._trials, self._wrong_share, self._neighbours = trials, wrong_share, neighbours
        self._trial_rate, self._second_order, self._weight = trial_rate, second_order, weight
        self._classes = setup.train.num_classes
        self._decay = average_decay(setup, decay, _REMEMBERED, "decay")
        self._network, self.answer = setup.network(), setup.network()
        if not hasattr(self.answer, "features"):
            raise InputError(
                "the method mlnt compares the features of rows, and this network has no method `features`: derive it "
                "from postmax.models.Network."
            )
        follow(self.answer, self._network, 0.0)
        self._optimiser = setup.optimiser(list(self._network.parameters()))

    def epoch(self, run: Epoch) -> Iterator[Step]:
        """Go once through all rows."""
        loss, generator = self.loss.at(run.share), run.generator("wrong labels")
        warm_up, strength = run.number < self._warmup_epochs, pull(loss, self._classes)
        self.answer.eval()
        for index, batch in enumerate(run.batches()):
            logits = self._network(batch.inputs)
            value = loss(logits, batch.labels).mean()
            weight, change = 0.0, 0.0
            if not warm_up and len(batch.rows) > 1:
                time = run.number + index / run.steps - self._warmup_epochs
                weight = strength * self._weight * gentle_ramp(time, self._ramp_epochs)
                trials = self._change_in_trials(loss, batch, self._trial_rate / strength, generator)
                value, change = value + weight * trials, float(trials.detach())
            run.update(value, self._optimiser)
            follow(self.answer, self._network, 0.0 if warm_up else self._decay)
            yield Step(value, batch.rows, logits, {"teacher_weight": weight, "change_in_trials": change})

    def _change_in_trials(self, loss: Loss, batch: Batch, rate: float, generator: torch.Generator) -> Tensor:
        """Return the mean KL(teacher ‖ network after a trial step at this rate) over the rows and the trials."""
        with torch.no_grad():
            wanted = loss.posterior(self.answer(batch.inputs))
            near = nearest(self.answer.features(batch.inputs), self._neighbours)  # type: ignore[operator]
        found = []
        for _ in range(self._trials):
            wrong = neighbour_labels(batch.labels, near, self._wrong_share, generator)
            moved = trial_step(loss, self._network, batch.inputs, wrong, rate, second_order=self._second_order)
            after = loss.posterior(_outputs(self._network, moved, batch.inputs))
            found.append(relative_entropy(wanted, after).mean())
        return torch.stack(found).mean()


def nearest(features: Tensor, count: int) -> Tensor:
    """Return the positions of the nearest other rows of each row, (B, min(count, B − 1)).

    Example:
        >>> nearest(torch.tensor([[0.0], [1.0], [5.0]]), 1)
        tensor([[1],
                [0],
                [1]])
    """
    # Differences are exact where rows are close. Products of features, which are faster, are not.
    distances = torch.cdist(features.float(), features.float(), compute_mode="donot_use_mm_for_euclid_dist")
    distances.fill_diagonal_(math.inf)
    return distances.topk(min(count, len(features) - 1), largest=False).indices


def neighbour_labels(labels: Tensor, near: Tensor, share: float, generator: torch.Generator) -> Tensor:
    """Return labels (B,) in which a share of the rows has the label of one of its neighbours, drawn at random.

    Args:
        labels: The given labels, (B,).
        near: The positions of the neighbours of each row, (B, k).
        share: The share of the rows that get another label; at least one row does.
        generator: Draws the rows and their neighbours.

    Example:
        >>> near = torch.tensor([[1], [0]])
        >>> neighbour_labels(torch.tensor([3, 4]), near, 0.5, torch.Generator().manual_seed(0))
        tensor([4, 4])
    """
    count = max(1, int(share * len(labels)))
    rows = torch.randperm(len(labels), generator=generator)[:count].to(labels.device)
    places = torch.randint(near.shape[1], (count,), generator=generator).to(labels.device)
    changed = labels.clone()
    changed[rows] = labels[near[rows, places]]
    return changed


def trial_step(
    loss: Loss, network: nn.Module, inputs: Tensor, labels: Tensor, rate: float, *, second_order: bool
) -> dict[str, Tensor]:
    """Return the weights of a network after a step of plain gradient descent, by name. The network stays as it is.

    Args:
        loss: The loss of the run.
        network: The network.
        inputs: Rows, (B, …).
        labels: Their labels, (B,).
        rate: The learning rate.
        second_order: Whether the returned weights depend on the present ones through the gradient too, and not only
            through the place where the step starts.
    """
    weights = {name: weight for name, weight in network.named_parameters() if weight.requires_grad}
    value = loss(_outputs(network, weights, inputs), labels).mean()
    slopes: Sequence[Tensor | None] = torch.autograd.grad(
        value, list(weights.values()), create_graph=second_order, allow_unused=True
    )
    return {
        name: weight if slope is None else weight - rate * slope
        for (name, weight), slope in zip(weights.items(), slopes, strict=True)
    }


def _outputs(network: nn.Module, weights: Mapping[str, Tensor], inputs: Tensor) -> Tensor:
    """Return the outputs of a network with other weights. Its statistics of batch normalisation stay as they are."""
    copies = {name: buffer.clone() for name, buffer in network.named_buffers()}
    outputs: Tensor = functional_call(network, {**weights, **copies}, (inputs,))
    return outputs


register(
    "mlnt",
    MLNT,
    "one network that learns to keep its predictions after a trial step on wrong labels",
    Facts(
        idea="Before each step, the network tries steps on labels that were made wrong on purpose. It learns weights "
        "for which such steps change its posteriors little, compared with a teacher.",
        source="Li, Wong, Zhao and Kankanhalli, Learning to learn from noisy labeled data, CVPR 2019",
        posterior="The posterior after a trial step is compared with that of the teacher.",
        deviations="By default the gradient does not go through the gradient of the trial step, which halves the time; "
        "method.second_order=true does as published. Neighbours are found with the features of the teacher; the "
        "released code takes a network that was trained before. KL is a sum over the classes; the released code also "
        "divides by K. Trial steps leave the statistics of batch normalisation alone. The teacher answers; the "
        "released code takes the better of both on clean labels. The phases are shares of the training. The rate of a "
        "trial step is divided by how strongly the loss pulls, compared with cross-entropy, and the weight of the term "
        "is multiplied by it.",
    ),
)
