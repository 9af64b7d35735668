"""PENCIL: the label of each row is a distribution that is learnt together with the network.

Yi and Wu, Probabilistic end-to-end noise correction for learning with noisy labels, CVPR 2019.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from postmax.losses import Loss
from postmax.methods.catalogue import register
from postmax.methods.facts import Facts, Preset
from postmax.methods.method import Epoch, Method, Setup, Step
from postmax.methods.parts.options import check_number
from postmax.methods.parts.phases import phase_epochs
from postmax.methods.parts.posteriors import entropy, safe_log
from postmax.methods.parts.pull import pull
from postmax.methods.parts.targets import one_hot

# The published epochs of the three phases.
_WARMUP, _REWRITING, _PUBLISHED_EPOCHS = 70, 130, 320
# The published rate of 600, for a mean over 128 rows and 10 classes, as the rate of one row.
_RATE = 600 / (128 * 10)
# A larger step could overshoot: the derivative of a softmax is at most a half.
_LARGEST_RATE = 2.0
# The published logit of the given label; those of the other classes are 0.
_START = 10.0


class Pencil(Method):
    """Learn the weights of a network and the label of each row together.

    Each row has K label logits; their softmax is its label distribution d. At first d is nearly the given label.

    1. The network learns the given labels with the loss of the run, at a constant learning rate.
    2. The network and d learn together. The objective is KL(p ‖ d) of the posterior p, plus a term −log d_y that holds
       d near the given label y, plus the entropy of p. The label logits move by plain gradient descent. For the
       network, the objective is multiplied by how strongly the loss of the run pulls, compared with cross-entropy, so
       that the learning rate of the run suits this phase too.
    3. The network learns d, which does not change any more, with the loss of the run and with its schedule.

    Args:
        setup: What the loop offers.
        compatibility_weight: The weight of −log d_y. With a weight w, d settles at (p + w·1_y) / (1 + w). So the label
            of a row can only change if w is below 1.
        entropy_weight: The weight of the entropy of the posterior in the second phase.
        label_rate: The learning rate of the label logits, for each row by itself. By default the labels can move as far
            in the second phase as in the published one, where the rate is 0.47, but the rate is at most 2.
        warmup_epochs: How many epochs the first phase takes. By default 22 % of the training.
        rewriting_epochs: How many epochs the second phase takes. By default 41 % of the training.
    """

    def __init__(
        self,
        setup: Setup,
        *,
        compatibility_weight: float = 0.1,
        entropy_weight: float = 0.1,
        label_rate: float | None = None,
        warmup_epochs: int | None = None,
        rewriting_epochs: int | None = None,
    ) -> None:
        super().__init__(setup)
        check_number(least=0, compatibility_weight=compatibility_weight, entropy_weight=entropy_weight)
        self._warmup_epochs = phase_epochs(warmup_epochs, _WARMUP / _PUBLISHED_EPOCHS, setup.epochs)
        rewriting = phase_epochs(rewriting_epochs, _REWRITING / _PUBLISHED_EPOCHS, setup.epochs)
        check_number(least=0, whole=True, warmup_epochs=self._warmup_epochs, rewriting_epochs=rewriting)
        if label_rate is None:
            label_rate = min(_LARGEST_RATE, _RATE * _REWRITING / max(1, rewriting))
        check_number(least=0, label_rate=label_rate)
        self._compatibility, self._entropy, self._label_rate = compatibility_weight, entropy_weight, label_rate
        self._frozen_from = self._warmup_epochs + rewriting
        self._classes = setup.train.num_classes
        self._label_logits = setup.state("label logits", _START * one_hot(setup.train.labels, self._classes))
        self.answer = setup.network()
        weights = list(self.answer.parameters())
        end = max(setup.epochs, self._frozen_from + 1)
        self._first = setup.optimiser(weights, "first", scheduled=False)
        self._last = setup.optimiser(weights, "last", span=(self._frozen_from, end))

    def epoch(self, run: Epoch) -> Iterator[Step]:
        """Go once through all rows, in the phase that it is time for."""
        loss = self.loss.at(run.share)
        rewriting, strength = self._warmup_epochs <= run.number < self._frozen_from, pull(loss, self._classes)
        for batch in run.batches():
            logits = self.answer(batch.inputs)
            label_logits = self._label_logits[batch.rows]
            if rewriting:
                losses = rewriting_loss(loss, logits, label_logits, batch.labels, self._compatibility, self._entropy)
                value = strength * losses.mean()
            elif run.number < self._warmup_epochs:
                value = loss(logits, batch.labels).mean()
            else:
                value = loss(logits, label_logits.softmax(-1)).mean()
            run.update(value, self._last if run.number >= self._frozen_from else self._first)
            if rewriting:
                posterior = loss.label_posterior(logits.detach())
                slope = label_slope(posterior, label_logits, batch.labels, self._compatibility)
                self._label_logits[batch.rows] = label_logits - self._label_rate * slope
            changed = (label_logits.argmax(-1) != batch.labels).float().mean()
            yield Step(value, batch.rows, logits, {"labels_changed": float(changed)})

    def learnt(self) -> dict[str, Tensor]:
        """Return the label distribution of each training row, (N, K)."""
        return {"labels": self._label_logits.softmax(-1)}


def rewriting_loss(
    loss: Loss, logits: Tensor, label_logits: Tensor, given: Tensor, compatibility_weight: float, entropy_weight: float
) -> Tensor:
    """Return the objective of the second phase for each row, (B,).

    Args:
        loss: The loss of the run; only its posterior matters.
        logits: Outputs of the network, (B, K).
        label_logits: The logits of the label distributions, (B, K).
        given: The given labels, (B,).
        compatibility_weight: The weight of −log d of the given label.
        entropy_weight: The weight of the entropy of the posterior.
    """
    posterior = loss.label_posterior(logits)
    log_labels = label_logits.log_softmax(-1)
    mismatch = (posterior * (safe_log(posterior) - log_labels)).sum(-1)
    compatibility = -log_labels.gather(-1, given[:, None])[:, 0]
    return mismatch + compatibility_weight * compatibility + entropy_weight * entropy(loss.posterior(logits))


def label_slope(posterior: Tensor, label_logits: Tensor, given: Tensor, compatibility_weight: float) -> Tensor:
    """Return the derivative of the objective of each row by its label logits, (B, K).

    That of KL(p ‖ d) is d − p, and that of −log d_y is d − 1_y. It needs no second backward pass, and does not depend
    on the number of rows in the batch.

    Example:
        >>> import torch
        >>> label_slope(torch.tensor([[0.2, 0.8]]), torch.tensor([[0.0, 0.0]]), torch.tensor([0]), 0.1)
        tensor([[ 0.2500, -0.2500]])
    """
    labels = label_logits.softmax(-1)
    return labels - posterior + compatibility_weight * (labels - one_hot(given, labels.shape[-1]))


_TRAINING = {
    "epochs": 320,
    "batch_size": 128,
    "optimiser.momentum": 0.9,
    "optimiser.weight_decay": 1e-4,
}

register(
    "pencil",
    Pencil,
    "one network, and the label of each row as a distribution that is learnt with it",
    Facts(
        idea="The label of each row is a distribution that gradient descent can change. It moves towards the posterior "
        "of the network, and the network towards it.",
        source="Yi and Wu, Probabilistic end-to-end noise correction for learning with noisy labels, CVPR 2019",
        remembers="the logits of its label distribution",
        posterior="The labels move towards it in the second phase. The network learns from KL(posterior ‖ label) "
        "there, whatever the loss is. Where the loss removes noise, the posterior with the noise is compared with the "
        "label.",
        deviations="The first and third phase use the loss of the run. The term for the given label is −log d_y as in "
        "the paper; the released code takes a second softmax of d, which makes the term weak. Objectives are sums over "
        "the classes; the released code divides by K, so that its constants depend on K. So the published weights of "
        "that term do not apply, and the default is small. The learning rate of the third phase follows the schedule "
        "of the run; in the released code it becomes 0. The objective of the second phase is multiplied by how "
        "strongly the loss of the run pulls, compared with cross-entropy.",
    ),
    presets={
        "cifar10-symmetric": Preset(
            {"compatibility_weight": 0.1, "entropy_weight": 0.1, "label_rate": 500 / (128 * 10)},
            "a reimplementation (ljmiao/PENCIL) with the same compatibility term; its weight of 0.01 is times K here",
            {**_TRAINING, "optimiser.lr": 0.03},
        ),
        "cifar10-asymmetric": Preset(
            {"compatibility_weight": 0.0, "entropy_weight": 0.4, "label_rate": 4000 / (128 * 10)},
            "settings of a reimplementation that are believed to be those of the paper, for 50 % noise",
            {**_TRAINING, "optimiser.lr": 0.03},
        ),
        "cifar100": Preset(
            {"entropy_weight": 0.4, "label_rate": 1000 / (128 * 100)},
            "settings of a reimplementation that are believed to be those of the paper, for 30 % symmetric noise; "
            "without the weight of its compatibility term, which is another term",
            {**_TRAINING, "optimiser.lr": 0.35},
        ),
    },
)
