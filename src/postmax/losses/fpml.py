"""The f-PML loss as a Module."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from postmax.costs.schedule import check_share
from postmax.divergences import Divergence
from postmax.functional.contract import check_logits, check_num_classes, check_options
from postmax.functional.fpml import ObjectiveRows
from postmax.functional.objective import Objective
from postmax.functional.rows import reduced_loss
from postmax.links import Link
from postmax.losses.base import Loss
from postmax.losses.shown import changed, changed_contract
from postmax.transition import Transition
from postmax.transition.matrix import Matrix


class FPMLLoss(Loss):
    """f-divergence posterior maximisation: a drop-in for `nn.CrossEntropyLoss` that can take label noise out.

    For a label distribution q and scores T = f'(D) the loss of a row is `−Σ_i q_i T_i + c·Σ_i f*(T_i)`. Whatever the
    divergence, its minimum is at c·D = P(label | x), so the logits carry a posterior: ask for it with `posterior` and
    `predict`, never with a softmax of your own.

    Shapes, targets, class weights, ignored rows, reductions and label smoothing are those of `nn.CrossEntropyLoss`, and
    `FPMLLoss("kl", "softmax")` *is* cross-entropy. Beyond it: any integer dtype is a label, ignored rows may hold NaN,
    half precision is computed in float32, and on the CPU NaN logits and labels out of range are reported, not returned.
    One class alone is refused.

    Args:
        divergence: A name of `postmax.divergences.names()`, a family member such as "sl:0.5", or a `Divergence`.
        link: A name of `postmax.links.names()` or a `Link`; by default "sigmoid", and "softmax" for the forward
            and factored corrections, which need it.
        transition: The label noise, for the corrections.
        correction: How the noise is removed, for any invertible matrix.
            "objective" trains on row ỹ of P⁻¹ in place of the one-hot label, unbiased (up to a factor unless floor=0);
            "posterior" trains as if there were no noise and applies P⁻ᵀ in `posterior` and `predict`;
            "forward" trains PᵀD against the noisy labels, so that D is the clean posterior;
            "factored" does both, P = S·U: "objective" for U, the labels drawn at random whatever the class, and
            "forward" for the confusions S that are left (`Transition.factors`).
            Symmetric noise below (K−1)/K needs none.
        passive_weight: The weight c of the penalty.
        floor: The posterior below which slopes are bounded and negative label weights (of the objective and factored
            corrections) stop counting; see `docs/objective-correction.md`. By default 0.4/K for these, for factored
            times the least that any class can reach in SᵀD, and 0, none, otherwise. Posteriors are then reliable above
            the floor only. It also sets the scale of the loss.
        weight: One weight for each class, as in `nn.CrossEntropyLoss`; for the objective correction one for each true
            class. The other corrections refuse it.
        ignore_index: The label of rows to leave out.
        reduction: "mean", "sum" or "none".
        label_smoothing: The share of the label spread over all classes (over all true ones, with a correction).
        num_classes: How many classes the logits must have, if they are to be checked.

    Example:
        >>> import torch, postmax as pm
        >>> noise = pm.Transition.binary(e0=0.1, e1=0.3)
        >>> loss = pm.FPMLLoss("sl", transition=noise, correction="forward")
        >>> logits = torch.tensor([[1.0, -1.0], [0.0, 0.5]], requires_grad=True)
        >>> value = loss(logits, torch.tensor([0, 1]))
        >>> value.backward()
        >>> loss.predict(logits)
        tensor([0, 1])
    """

    weight: Tensor | None

    def __init__(
        self,
        divergence: str | Divergence = "gan",
        link: str | Link | None = None,
        *,
        transition: Transition | Matrix | None = None,
        correction: str | None = None,
        passive_weight: float = 1.0,
        floor: float | None = None,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
        num_classes: int | None = None,
    ) -> None:
        super().__init__()
        check_options(reduction, label_smoothing, weight, ignore_index)
        self.objective = Objective.build(divergence, link, transition, correction, passive_weight, floor)
        self.objective.check_weight(weight)
        check_num_classes(num_classes, self.objective.num_classes)
        self.num_classes = num_classes
        self.register_buffer("weight", weight)
        self.ignore_index = ignore_index
        self.reduction = reduction
        self.label_smoothing = label_smoothing

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """The loss of `logits` (C), (N, C) or (N, C, d1, …, dk) for class indices or class probabilities."""
        return reduced_loss(
            ObjectiveRows(self.objective, self.num_classes),
            logits,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )

    def posterior(self, logits: Tensor, *, normalize: bool = True) -> Tensor:
        """P(class | x) for every class, in the shape of `logits`, float32 for half precision.

        The class is the true one with a correction. Without one it is the label as it was given: under symmetric noise
        the most probable class is still the right one, but its probability is that of the noisy label.

        Args:
            logits: What the network gives, (C), (N, C) or (N, C, d1, …, dk).
            normalize: Return probabilities: c·D divided by its sum and, after the posterior correction, projected onto
                the simplex. Without it the estimate itself, which sums to one as far as the network has learnt it.
        """
        check_logits(logits, self.num_classes)
        return self.objective.posterior(logits, normalize=normalize)

    mixes_rows = False

    @property
    def corrects_posterior(self) -> bool:  # type: ignore[override]
        return self.objective.correction == "posterior"

    def label_posterior(self, logits: Tensor) -> Tensor:
        o = self.objective
        if o.correction == "posterior":
            return replace(o, correction=None, transition=None).posterior(logits)
        found = self.posterior(logits)
        return found if o.transition is None else found @ o.transition.matrix.to(found)

    def at(self, share: float) -> FPMLLoss:
        """Itself: it is the same loss all the time, unlike some of `postmax.losses`."""
        check_share(share)
        return self

    def predict(self, logits: Tensor) -> Tensor:
        """The most probable class, with the class dimension removed."""
        check_logits(logits, self.num_classes)
        return self.objective.predict(logits)

    def extra_repr(self) -> str:
        """What the loss is made of, for `print`."""
        o = self.objective
        parts = [f"divergence={o.divergence.name!r}", f"link={o.link.name!r}"]
        if o.correction is not None:
            parts += [f"correction={o.correction!r}", f"transition={o.transition!r}"]
        parts += changed(
            passive_weight=(o.passive_weight, 1.0), floor=(o.floor, 0.0), num_classes=(self.num_classes, None)
        )
        return ", ".join([*parts, *changed_contract(self)])
