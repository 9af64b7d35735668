"""Complementary labels: the label of a row is a class that the row does not have.

Yu, Liu, Gong and Tao, Learning with biased complementary labels, ECCV 2018. Ishida, Niu, Menon and Sugiyama,
Complementary-label learning for arbitrary losses and models, ICML 2019.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from postmax.errors import InputError
from postmax.losses import Loss
from postmax.losses.numerics.odds import log_p_and_rest_of
from postmax.methods.catalogue import register
from postmax.methods.facts import Facts
from postmax.methods.method import Epoch, Method, Setup, Step
from postmax.methods.parts.corrections import backward_losses, refuse_known_noise, refuse_mixed_rows
from postmax.methods.parts.label_losses import losses_of_labels
from postmax.methods.parts.posteriors import safe_log
from postmax.transition import Transition

FORWARD, UNBIASED, NON_NEGATIVE, ASCENT = RISKS = ("forward", "unbiased", "non-negative", "gradient-ascent")


class ComplementaryLabels(Method):
    """Learn from labels that say which class a row does *not* have. All wrong classes are equally likely labels.

    - "forward" minimises −log(1 − p) of the label's probability p, which the loss of the run reads from the logits.
    - The others estimate the risk of the loss of the run, class by class: r_j is the mean of P⁻¹[label, j]·loss_j over
      a batch, where P is the noise that makes such labels. Its expectation is the mean of loss_j over the rows of class
      j, times the share of these rows. "unbiased" minimises the sum of all r_j. In this mean, rows have weights that
      give each label its share among all training rows: in a small batch the shares of the labels differ by chance,
      and K − 1 multiplies that.
    - An r_j below 0 is a sign of overfitting, because a risk cannot be negative. "non-negative" leaves such classes out
      of the sum. "gradient-ascent" makes a step that raises their r_j, and changes nothing else.

    The gradients of "forward" are about K − 1 times smaller than those of cross-entropy, because a label says less.
    Adam makes up for that; SGD needs a larger learning rate.

    Args:
        setup: What the loop offers.
        risk: What is minimised: "forward", "unbiased", "non-negative" or "gradient-ascent".
    """

    def __init__(self, setup: Setup, *, risk: str = FORWARD) -> None:
        super().__init__(setup)
        if risk not in RISKS:
            raise InputError(f"method.risk must be one of {', '.join(RISKS)}, got {risk!r}.")
        refuse_known_noise("complementary", setup.loss)
        if risk != FORWARD:
            refuse_mixed_rows("complementary", setup.loss)
        self._risk = risk
        self._noise = Transition.complementary(setup.train.num_classes)
        self._shares = label_shares(setup.train.labels, setup.train.num_classes)
        self.answer = setup.network()
        self._optimiser = setup.optimiser(list(self.answer.parameters()))

    def epoch(self, run: Epoch) -> Iterator[Step]:
        """Go once through all rows."""
        loss = self.loss.at(run.share)
        for batch in run.batches():
            logits = self.answer(batch.inputs)
            if self._risk == FORWARD:
                value = forward_losses(loss, logits, batch.labels).mean()
            else:
                value = self._estimated(loss, logits, batch.labels)
            run.update(value, self._optimiser)
            excluded = (loss.predict(logits.detach()) == batch.labels).double().mean()
            accuracy = 1 - (self._noise.num_classes - 1) * float(excluded)
            yield Step(value, batch.rows, logits, {"estimated_accuracy": accuracy})

    def _estimated(self, loss: Loss, logits: Tensor, labels: Tensor) -> Tensor:
        """Return Σ_j w_j·r_j. The weights w follow from the signs of the r_j, and carry no gradient."""
        inverse = self._noise.inverse.to(logits.device)
        classes, rows = torch.ones_like(inverse[0]), row_weights(labels, self._shares)
        if self._risk != UNBIASED:
            classes = class_weights(class_risks(loss, logits, labels, inverse, rows), self._risk)
        losses = backward_losses(loss, logits, labels, inverse * classes)
        return (rows.to(losses.dtype) * losses).mean()

    def label_noise(self) -> Tensor:
        """Return the noise of complementary labels."""
        return self._noise.matrix

    def label_posterior(self, outputs: Tensor) -> Tensor:
        """Return the posterior of the labels as they are given, (1 − p)/(K − 1)."""
        return self._noise.corrupt_posterior(self.loss.posterior(outputs))


def forward_losses(loss: Loss, logits: Tensor, labels: Tensor) -> Tensor:
    """Return −log(1 − p) of each row, (B,), for the posterior probability p of its label.

    If the posterior is the softmax of the logits, value and gradient are exact for all logits. Otherwise 1 − p is
    never below the smallest number of float64.

    Args:
        loss: Any loss. Only its posterior matters.
        logits: (B, K).
        labels: (B,), classes that the rows do not have.

    Example:
        >>> import postmax as pm
        >>> forward_losses(pm.losses.get("ce"), torch.tensor([[1e4, 0.0, 0.0]]), torch.tensor([0]))
        tensor([9999.3066])
    """
    log_p = logits if reads_softmax(loss, logits.shape[1]) else safe_log(loss.posterior(logits.double()))
    return -log_p_and_rest_of(log_p, labels[:, None])[1].squeeze(1).to(logits.dtype)


def reads_softmax(loss: Loss, num_classes: int) -> bool:
    """Return whether the posterior of a loss is the softmax of the logits. It is tried out, as any loss is allowed.

    Example:
        >>> import postmax as pm
        >>> reads_softmax(pm.losses.get("gce"), 3), reads_softmax(pm.FPMLLoss("kl", "softplus"), 3)
        (True, False)
    """
    logits = 3 * torch.arange(2 * num_classes, dtype=torch.float64).sin().reshape(2, num_classes)
    return torch.allclose(loss.posterior(logits), logits.softmax(-1), rtol=1e-9, atol=1e-12)


def label_shares(labels: Tensor, num_classes: int) -> Tensor:
    """Return the share of each class among labels (B,), (K,).

    Example:
        >>> label_shares(torch.tensor([0, 2, 2, 2]), 3)
        tensor([0.2500, 0.0000, 0.7500], dtype=torch.float64)
    """
    return torch.bincount(labels, minlength=num_classes).double() / len(labels)


def row_weights(labels: Tensor, shares: Tensor) -> Tensor:
    """Return weights of rows, (B,), with which each label that occurs has its share among all training rows.

    Example:
        >>> row_weights(torch.tensor([0, 1, 1, 1]), torch.tensor([0.5, 0.5], dtype=torch.float64))
        tensor([2.0000, 0.6667, 0.6667, 0.6667], dtype=torch.float64)
    """
    return shares[labels] / label_shares(labels, len(shares))[labels]


def class_risks(loss: Loss, logits: Tensor, labels: Tensor, inverse: Tensor, weights: Tensor) -> Tensor:
    """Return r_j = mean of weight·P⁻¹[label, j]·loss_j over the rows, (K,), without a gradient.

    Example:
        >>> import postmax as pm
        >>> inverse = Transition.complementary(2).inverse
        >>> loss = pm.losses.get("ce", reduction="none")
        >>> class_risks(loss, torch.tensor([[0.0, 0.0]]), torch.tensor([1]), inverse, torch.ones(1))
        tensor([0.6931, 0.0000], dtype=torch.float64)
    """
    return (weights[:, None] * inverse[labels] * losses_of_labels(loss, logits)).mean(0)


def class_weights(risks: Tensor, risk: str) -> Tensor:
    """Return the weights with which the risks of the classes are minimised.

    Example:
        >>> class_weights(torch.tensor([2.0, -1.0]), "non-negative")
        tensor([1., 0.])
        >>> class_weights(torch.tensor([2.0, -1.0]), "gradient-ascent")
        tensor([ 0., -1.])
        >>> class_weights(torch.tensor([2.0, 1.0]), "gradient-ascent")
        tensor([1., 1.])
    """
    negative = (risks < 0).to(risks)
    if risk == NON_NEGATIVE or not negative.any():
        return 1 - negative
    return 0 - negative


register(
    "complementary",
    ComplementaryLabels,
    "learn from labels that say which class a row does not have",
    Facts(
        idea="The label of a row is a class that the row does not have. The network learns to give this class a small "
        "probability, or to minimise an estimate of the usual risk that can be computed from such labels.",
        source="Yu, Liu, Gong, Tao: Learning with biased complementary labels. ECCV 2018. Ishida, Niu, Menon, "
        "Sugiyama: Complementary-label learning for arbitrary losses and models. ICML 2019",
        posterior="With risk=forward, its probability of the label is made small. The other risks are made of the "
        "loss itself.",
        deviations="The released code takes the logarithm of 1 − p, which is −∞ where p rounds to 1; here it is "
        "computed from the logits of the other classes. In the released code a step of gradient ascent is "
        "multiplied by the number of rows with that label; here all steps have one size.",
        complementary=True,
    ),
)
