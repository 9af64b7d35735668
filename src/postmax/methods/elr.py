"""Early-learning regularisation: the network must not forget what it believed before it began to memorise.

Liu, Niles-Weed, Razavian and Fernandez-Granda, Early-learning regularization prevents memorization of noisy labels,
NeurIPS 2020 (ELR).
"""

from __future__ import annotations

from collections.abc import Iterator

from postmax.methods.catalogue import register
from postmax.methods.facts import Facts, Preset
from postmax.methods.method import Epoch, Method, Setup, Step
from postmax.methods.parts.early_learning import early_learning, remember
from postmax.methods.parts.options import check_number
from postmax.methods.parts.pull import pull


class ELR(Method):
    """Minimise the loss of the run plus a term that pulls each row towards the mean of its earlier predictions.

    A network learns right labels first, and memorises wrong ones later. The target t of a row is an exponential moving
    average of the posteriors p that the network had for it. The objective of a row is loss + weight · log(1 − ⟨t, p⟩).
    The second term cancels the gradient of a label that contradicts the target. It is negative, and so the objective
    may be negative too.

    Args:
        setup: What the loop offers.
        memory: The share of the old target that is kept when a row is seen again, β in the paper.
        weight: The weight of the second term, λ in the paper, for cross-entropy. For other losses it is multiplied by
            how strongly they pull.
    """

    def __init__(self, setup: Setup, *, memory: float = 0.7, weight: float = 3.0) -> None:
        super().__init__(setup)
        check_number(least=0, below=1, memory=memory)
        check_number(least=0, weight=weight)
        self._memory, self._weight, self._classes = memory, weight, setup.train.num_classes
        self.answer = setup.network()
        self._optimiser = setup.optimiser(list(self.answer.parameters()))
        self._targets = setup.row_state("targets", (self._classes,))

    def epoch(self, run: Epoch) -> Iterator[Step]:
        """Go once through all rows."""
        loss = self.loss.at(run.share)
        weight = self._weight * pull(loss, self._classes)
        for batch in run.batches():
            logits = self.answer(batch.inputs)
            posterior = loss.posterior(logits)
            targets = remember(self._targets, batch.rows, posterior, self._memory)
            agreement = early_learning(targets, posterior).mean()
            value = loss(logits, batch.labels).mean() + weight * agreement
            run.update(value, self._optimiser)
            overruled = (targets.argmax(-1) != batch.labels).float().mean()
            yield Step(value, batch.rows, logits, {"overruled": float(overruled)})


_CODE = "Liu et al. 2020, released code"
_TRAINING = {"model": "resnet34", "batch_size": 128, "optimiser.lr": 0.02, "optimiser.weight_decay": 1e-3}

register(
    "elr",
    ELR,
    "one network that is pulled towards its own earlier predictions",
    Facts(
        idea="A network learns right labels before it memorises wrong ones. Each row remembers the mean of its earlier "
        "predictions, and a term in the objective keeps the network near it.",
        source="Liu, Niles-Weed, Razavian and Fernandez-Granda, Early-learning regularization prevents memorization of "
        "noisy labels, NeurIPS 2020",
        remembers="a mean of earlier posteriors, K numbers",
        posterior="The remembered predictions are posteriors of the loss, and the term compares posteriors.",
        deviations="The released code also cuts the probabilities of the network at 1e-4, where they then have no "
        "gradient. Here only the remembered targets are cut, which is enough to keep the term finite. The weight of "
        "the term is multiplied by how strongly the loss pulls, compared with cross-entropy. ELR keeps what the "
        "network believes from the first epoch on. SL-PML at a high learning rate predicts a single class for a few "
        "epochs, and recovers; with ELR it does not, so it needs a lower rate.",
    ),
    presets={
        "cifar10-symmetric": Preset(
            {"memory": 0.7, "weight": 3.0},
            _CODE,
            {**_TRAINING, "epochs": 150, "schedule.name": "restarts", "schedule.period": 10, "schedule.final": 0.05},
        ),
        "cifar10-asymmetric": Preset(
            {"memory": 0.9, "weight": 1.0},
            _CODE,
            {
                **_TRAINING,
                "epochs": 120,
                "schedule.name": "step",
                "schedule.milestones": (40, 80),
                "schedule.gamma": 0.01,
            },
        ),
        "cifar100": Preset(
            {"memory": 0.9, "weight": 7.0},
            _CODE,
            {
                **_TRAINING,
                "epochs": 150,
                "schedule.name": "step",
                "schedule.milestones": (80, 120),
                "schedule.gamma": 0.01,
            },
        ),
    },
)
