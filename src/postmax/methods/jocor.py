"""JoCoR: two networks that must agree, trained on the rows with small joint losses.

Wei, Feng, Chen and An, Combating noisy labels by agreement: A joint training method with co-regularization, CVPR 2020.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from postmax.losses import Loss
from postmax.methods.catalogue import register
from postmax.methods.co_teaching import TRAINING
from postmax.methods.facts import Facts, Preset
from postmax.methods.method import Epoch, Method, Setup, Step
from postmax.methods.parts.batch_losses import refuse_batch_loss
from postmax.methods.parts.clean_rows import smallest
from postmax.methods.parts.forgetting import forgetting
from postmax.methods.parts.late_beta import late_beta_of
from postmax.methods.parts.options import check_number
from postmax.methods.parts.posteriors import relative_entropy
from postmax.methods.parts.pull import pull


class JoCoR(Method):
    """Train two networks with one joint loss, on the rows of a batch for which it is small.

    The joint loss of a row is (1 − λ)·(sum of the losses of both networks) + λ·(distance between their posteriors). It
    is small where both networks agree with the label and with each other. Two networks seldom agree on a wrong label.
    The distance is the symmetric relative entropy, KL in both directions. It is multiplied by how strongly the loss
    pulls, compared with cross-entropy: beside a weak loss such as SL-PML it would otherwise overrule the labels. The
    first network gives the answers.

    Args:
        setup: What the loop offers.
        agreement_weight: The weight λ of the distance, from 0 to below 1. The default is that of the released command
            line. Published results have up to 0.9: the labels then have little weight, and both networks learn slowly.
        forget_rate: The share of each batch that is left out in the end. Published as the share of wrong labels. None
            estimates that share.
        ramp_epochs: Over how many epochs the left-out share rises from 0 to `forget_rate`. None for 5 % of the
            training, but at least 10 epochs or a quarter of the training.
        late_beta: The first decay rate of Adam in the last part of the training, published as 0.1. None for no change.
            It does nothing to other optimisers.
        late_epochs: How many epochs that last part has. None for 60 % of the training.
    """

    def __init__(
        self,
        setup: Setup,
        *,
        agreement_weight: float = 0.1,
        forget_rate: float | None = None,
        ramp_epochs: int | None = None,
        late_beta: float | None = None,
        late_epochs: int | None = None,
    ) -> None:
        super().__init__(setup)
        check_number(least=0, below=1, agreement_weight=agreement_weight)
        refuse_batch_loss("jocor", setup.loss)
        self._weight, self._classes = agreement_weight, setup.train.num_classes
        self._late_beta = late_beta_of(setup, late_beta, late_epochs)
        self._forgetting = forgetting(setup, forget_rate, ramp_epochs)
        self._networks = setup.network(), setup.network()
        self._optimiser = setup.optimiser([p for network in self._networks for p in network.parameters()])
        self.answer = self._networks[0]

    def epoch(self, run: Epoch) -> Iterator[Step]:
        """Go once through all rows."""
        loss = self.loss.at(run.share)
        kept, strength = self._forgetting.kept(run.number), pull(loss, self._classes)
        self._late_beta.set_in(run.number, [self._optimiser])
        for batch in run.batches():
            first, second = (network(batch.inputs) for network in self._networks)
            losses = joint_loss(loss, first, second, batch.labels, self._weight, strength)
            chosen = smallest(losses, kept)
            value = losses[chosen].mean()
            run.update(value, self._optimiser)
            agreed = (loss.predict(first) == loss.predict(second)).float().mean()
            yield Step(value, batch.rows, first, {"kept": len(chosen) / len(batch.rows), "agreed": float(agreed)})


def joint_loss(
    loss: Loss, first: Tensor, second: Tensor, labels: Tensor, weight: float, strength: float = 1.0
) -> Tensor:
    """Return the joint loss of each row: what both networks lose, and how far their posteriors are apart.

    Args:
        loss: The loss of labels, with reduction "none".
        first: The logits of the first network, (B, K).
        second: The logits of the second network, (B, K).
        labels: The labels, (B,).
        weight: The weight λ of the distance; that of the losses is 1 − λ.
        strength: How strongly the loss pulls, a factor of the distance.
    """
    p, q = loss.posterior(first), loss.posterior(second)
    distance = relative_entropy(p, q) + relative_entropy(q, p)
    lost = loss(first, labels) + loss(second, labels)
    joint: Tensor = (1 - weight) * lost + weight * strength * distance
    return joint


_SOURCE = "Wei et al. 2020, released code"

register(
    "jocor",
    JoCoR,
    "two networks with one joint loss that rewards agreement, trained on the rows where it is small",
    Facts(
        idea="Two networks seldom agree on a wrong label. So both are trained with one loss that adds the distance "
        "between their posteriors to the losses of the label. Rows with a large joint loss are left out.",
        source="Wei et al., Combating noisy labels by agreement: A joint training method with co-regularization, CVPR "
        "2020",
        networks=2,
        posterior="the distance between the two networks",
        deviations="The released code must be told the share of wrong labels, which postmax estimates. For asymmetric "
        "noise of rate η on half of the classes, both are η/2. The default of λ is that of the released command line, "
        "with which short trainings learn too. The values of the published results are presets. The distance is "
        "multiplied by how strongly the loss pulls, compared with cross-entropy. As in co-teaching, SL-PML was "
        "better alone: 93 to 94 % on digits with 40 % symmetric noise, and 88 to 90 % in JoCoR (three seeds).",
        estimates_unless="forget_rate",
    ),
    presets={
        "cifar10": Preset({"agreement_weight": 0.9, "late_beta": 0.1}, _SOURCE, TRAINING),
        "cifar10-symmetric-0.8": Preset({"agreement_weight": 0.65, "late_beta": 0.1}, _SOURCE, TRAINING),
        "cifar100": Preset({"agreement_weight": 0.85, "late_beta": 0.1}, _SOURCE, TRAINING),
    },
)
