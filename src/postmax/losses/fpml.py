"""f-divergence posterior maximisation (f-PML): the Module, the function and the loss term."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from postmax.divergences import Divergence
from postmax.errors import InputError
from postmax.links import Link
from postmax.losses.catalogue import register
from postmax.losses.contract import check_logits, class_dim
from postmax.losses.contract_loss import ContractLoss
from postmax.losses.facts import Facts
from postmax.losses.kernels import DistributionKernel, DistributionKernelForwardAD, LabelKernel
from postmax.losses.numerics.eager import plain_eager
from postmax.losses.objective import Objective
from postmax.losses.options import check_contract, check_num_classes
from postmax.losses.reduction import RowLoss, reduced_loss
from postmax.losses.term import LabelledLogits, Term
from postmax.losses.term_loss import TermLoss
from postmax.transition import Transition
from postmax.transition.matrix import Matrix


class FPMLLoss(ContractLoss):
    """f-divergence posterior maximisation: a drop-in for `nn.CrossEntropyLoss` that can remove label noise.

    For a label distribution q and scores T = f'(D) the loss of a row is `−Σ_i q_i T_i + c·Σ_i f*(T_i)`. For every
    divergence its minimum is at c·D = P(label | x), so the logits carry a posterior. Use `posterior` and `predict` to
    get it, not a softmax of your own.

    Shapes, targets, class weights, ignored rows, reductions and label smoothing are those of `nn.CrossEntropyLoss`, and
    `FPMLLoss("kl", "softmax")` *is* cross-entropy. It does more in these respects: labels may have any integer dtype,
    ignored rows may hold NaN, half precision is computed in float32, and on the CPU NaN logits and labels out of range
    raise an error. A single class is refused.

    Args:
        divergence: A name of `postmax.divergences.names()`, a family member such as "sl:0.5", or a `Divergence`.
        link: A name of `postmax.links.names()` or a `Link`. The default is "sigmoid", and "softmax" for the forward
            and factored corrections, which need it.
        transition: The label noise, for the corrections.
        correction: How the noise is removed, for any invertible matrix.
            "objective" trains on row ỹ of P⁻¹ in place of the one-hot label, unbiased (up to a factor unless floor=0).
            It is for two classes, or for rows of P⁻¹ that sum up to less than 3 in absolute value. From 8 on there is
            a `PostmaxWarning`, because "forward" was better in every measurement;
            "posterior" trains as if there were no noise and applies P⁻ᵀ in `posterior` and `predict`;
            "forward" trains PᵀD against the noisy labels, so that D is the clean posterior;
            "factored" does both, for P = S·U: "objective" for U, which are labels drawn at random for every class,
            and "forward" for the confusions S that are left (`Transition.factors`).
            Symmetric noise below (K−1)/K needs no correction.
        passive_weight: The weight c of the penalty.
        floor: The posterior below which slopes are bounded and negative label weights (of the objective and factored
            corrections) have no influence; see `docs/objective-correction.md`. The default is 0.4/K for these two, for
            "factored" times the least that any class can reach in SᵀD, and otherwise 0, which means no floor.
            Posteriors are then reliable above the floor only. The floor also sets the scale of the loss.
        weight: One weight for each class, as in `nn.CrossEntropyLoss`; for the objective correction one for each true
            class. The other corrections refuse it.
        ignore_index: The label of rows to leave out.
        reduction: "mean", "sum" or "none".
        label_smoothing: The share of the label that is spread over all classes (over all true classes, with a
            correction).
        num_classes: The number of classes that logits must have; None if any number will do.

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

    row_loss: FPMLRowLoss

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
        objective = Objective.build(divergence, link, transition, correction, passive_weight, floor)
        super().__init__(
            FPMLRowLoss(objective, num_classes),
            num_classes,
            weight=weight,
            ignore_index=ignore_index,
            reduction=reduction,
            label_smoothing=label_smoothing,
        )
        objective.check_weight(weight)
        check_num_classes(num_classes, objective.num_classes)
        objective.warn_if_far_behind()

    @property
    def objective(self) -> Objective:
        """The divergence, the link and the correction of the loss."""
        return self.row_loss.objective

    @property
    def transition(self) -> Transition | None:
        """The label noise that the correction removes, or None without a correction."""
        return self.objective.transition

    @property
    def corrects_posterior(self) -> bool:
        """Whether the noise is removed after training, in `posterior`: with correction="posterior"."""
        return self.objective.correction == "posterior"

    @property
    def when_it_diverges(self) -> str:
        """Why a training with this loss may diverge and what to do; see `Loss`."""
        return self.objective.when_it_diverges

    def posterior(self, logits: Tensor, *, normalize: bool = True) -> Tensor:
        """Return P(class | x) for every class, in the shape of `logits`, in float32 for half precision.

        With a correction the class is the true one. Without a correction it is the label as it was given: under
        symmetric noise the most probable class is still the right one, but its probability is that of the noisy label.

        Args:
            logits: The output of the network, (C), (N, C) or (N, C, d1, …, dk).
            normalize: Return probabilities: c·D divided by its sum and, after the posterior correction, projected onto
                the simplex. If False, return the estimate itself, whose sum is one only as far as the network has
                learnt it.
        """
        return self.of_rows(partial(self.objective.posterior, normalize=normalize), logits)

    def logits_of(self, posterior: Tensor) -> Tensor:
        """Return logits whose posterior is the given one."""
        return self.of_rows(self.objective.logits_of, posterior)

    def label_posterior(self, logits: Tensor) -> Tensor:
        """Return P(label as given | x), noise included, in the shape of `logits`."""
        return self.of_rows(self.objective.label_posterior, logits)

    def predict(self, logits: Tensor) -> Tensor:
        """Return the most probable class, with the class dimension removed."""
        if self.corrects_posterior:
            return super().predict(logits)  # the projection keeps the order of the classes
        check_logits(logits, self.row_loss.num_classes)
        return logits.argmax(class_dim(logits))  # every link is increasing

    def summable(self) -> TermLoss:
        """Return this loss in the form in which it can be weighed and added to others.

        Raises:
            InputError: If the correction replaces the labels, or changes what label smoothing means.
        """
        correction = self.objective.correction
        if self.objective.replaces_labels:
            raise InputError(
                f"FPMLLoss with the {correction} correction cannot be part of a sum: it replaces each label by weights "
                'of all classes, which the other terms would not see. Use correction="forward" or "posterior".'
            )
        if self.label_smoothing and correction is not None:
            raise InputError(
                f"FPMLLoss with the {correction} correction smooths over true classes, the other terms of a sum smooth "
                "over labels: leave out label_smoothing."
            )
        return TermLoss(FPMLTerm(self.objective), num_classes=self.num_classes, **self.contract)

    def extra_repr(self) -> str:
        """Return the parts and options of the loss, for `repr`."""
        o = self.objective
        parts = [f"divergence={o.divergence.name!r}", f"link={o.link.name!r}"]
        if o.correction is not None:
            parts += [f"correction={o.correction!r}", f"transition={o.transition!r}"]
        return ", ".join([*parts, *self.shown(passive_weight=(o.passive_weight, 1.0), floor=(o.floor, 0.0))])


def fpml_loss(
    logits: Tensor,
    target: Tensor,
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
) -> Tensor:
    """Return the f-PML loss `−Σ_i q_i T_i + c·Σ_i f*(T_i)` of logits and targets. See `postmax.FPMLLoss`.

    In a training loop use the Module: it inverts and checks the transition matrix once, this function at every call.

    Example:
        >>> logits, labels = torch.tensor([[2.0, -1.0, 0.5]]), torch.tensor([0])
        >>> fpml_loss(logits, labels, "kl", "softmax") == torch.nn.functional.cross_entropy(logits, labels)
        tensor(True)
    """
    check_contract(weight=weight, ignore_index=ignore_index, reduction=reduction, label_smoothing=label_smoothing)
    objective = Objective.build(divergence, link, transition, correction, passive_weight, floor)
    objective.check_weight(weight)
    return reduced_loss(
        FPMLRowLoss(objective),
        logits,
        target,
        weight=weight,
        ignore_index=ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )


@dataclass(frozen=True)
class FPMLRowLoss(RowLoss):
    """The losses of rows for an f-PML objective."""

    objective: Objective
    given_classes: int | None = None

    @property
    def num_classes(self) -> int | None:
        """The number of classes, if it was given or a transition matrix fixes it."""
        return self.objective.num_classes if self.given_classes is None else self.given_classes

    def takes_labels(self) -> bool:
        """Return whether the kernel for class indices can be used: labels are kept, and torch can run the kernel."""
        return not self.objective.replaces_labels and plain_eager()

    def of_labels(self, rows: Tensor, labels: Tensor, keep: Tensor | None, reduction: str) -> Tensor:  # noqa: ARG002  (rows are independent)
        """Return the loss of each row's label, or the mean or sum of these losses."""
        objective = self.objective
        losses: Tensor = LabelKernel.apply(  # type: ignore[no-untyped-call]
            objective.log_ratio(rows), labels, objective.kernel, objective.passive_weight, reduction
        )
        return losses

    def of_distributions(self, rows: Tensor, q: Tensor, weight: Tensor | None, keep: Tensor | None) -> Tensor:  # noqa: ARG002  (rows are independent)
        """Return the row losses of label distributions, from which the noise is removed if the correction says so."""
        objective = self.objective
        q = objective.label_weights(q)
        if weight is not None:
            q = q * weight
        kernel = DistributionKernel if torch.compiler.is_compiling() else DistributionKernelForwardAD
        mass = objective.passive_weight * q.sum(-1)
        losses: Tensor = kernel.apply(  # type: ignore[no-untyped-call]
            objective.log_ratio(rows), q, mass, objective.kernel, objective.log_floor
        )
        return losses

    def background(self, rows: Tensor) -> Tensor:
        """Return the distribution of the labels if the true classes were uniform."""
        return self.objective.background(rows)


@dataclass(frozen=True)
class FPMLTerm(Term):
    """f-PML as a term of a sum, computed with the same kernels as `FPMLLoss`. The labels must not be replaced."""

    objective: Objective

    @property
    def num_classes(self) -> int | None:
        """The number of classes, if a transition matrix fixes it."""
        return self.objective.num_classes

    @property
    def transition(self) -> Transition | None:
        """The label noise that the correction removes, or None without a correction."""
        return self.objective.transition

    @property
    def corrects_posterior(self) -> bool:
        """Whether the noise is removed in `posterior`."""
        return self.objective.correction == "posterior"

    @property
    def meaning(self) -> object:
        """The link and the noise; None if the posterior is the softmax."""
        o = self.objective
        if o.correction == "forward":  # its link is the softmax
            return "noisy", o.transition, None
        if o.link.normalised and o.correction is None:
            return None
        return "f-PML", o.link, o.transition

    @property
    def when_it_diverges(self) -> str:
        """Why a training with this term may diverge and what to do; see `Loss`."""
        return self.objective.when_it_diverges

    def __call__(self, inputs: LabelledLogits) -> Tensor:
        """Return the loss (…, m) of each requested label."""
        o = self.objective
        if inputs.labels is None:
            s = o.log_ratio(inputs.logits)
            return o.passive_weight * o.kernel.penalty_sum(s).unsqueeze(-1) - o.kernel.score(s)
        labels, row_loss = inputs.labels.squeeze(-1), FPMLRowLoss(o)
        if row_loss.takes_labels():
            return row_loss.of_labels(inputs.logits, labels, None, "none").unsqueeze(-1)
        q = torch.zeros_like(inputs.logits).scatter(-1, inputs.labels, 1.0)  # one_hot fails under vmap
        return row_loss.of_distributions(inputs.logits, q, None, None).unsqueeze(-1)

    def posterior(self, logits: Tensor) -> Tensor:
        """Return P(class | x) for logits (…, C)."""
        return self.objective.posterior(logits)

    def logits_of(self, posterior: Tensor) -> Tensor:
        """Return logits (…, C) whose posterior is the given one."""
        return self.objective.logits_of(posterior)

    def label_posterior(self, logits: Tensor) -> Tensor:
        """Return P(label as given | x) for logits (…, C)."""
        return self.objective.label_posterior(logits)

    def refuse_weights(self) -> None:
        """Raise an error if class weights would count noisy labels."""
        if self.objective.correction is not None:
            self.objective.check_weight(torch.ones(1))


_SUMMARY = "f-divergence posterior maximisation"
_SOURCE = "the f-PML paper"
register(
    "fpml",
    FPMLLoss,
    f"{_SUMMARY}: any divergence, link and correction",
    Facts(symmetric=False, bounded=False, role="both", source=_SOURCE, needs="the noise, to correct for it"),
    aliases=("pml",),
)
for _divergence in ("kl", "gan", "sl", "js"):
    register(
        f"{_divergence}-pml",
        partial(FPMLLoss, _divergence),
        f"{_SUMMARY} with {_divergence.upper()}",
        # With the default link D is at most 1. There, SL is the only one whose score and penalty both stay finite.
        Facts(
            symmetric=False,
            bounded=_divergence == "sl",
            role="both",
            source=_SOURCE,
            needs="nothing; the noise, to correct for it",
        ),
    )
