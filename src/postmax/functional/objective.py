"""The f-PML objective with its corrections: everything about the loss that does not depend on the data."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from postmax import divergences, links
from postmax.divergences import Divergence, KullbackLeibler
from postmax.errors import InputError
from postmax.functional.contract import (
    autocast_enabled,
    check_logits,
    check_numbers,
    class_dim,
    classes_last,
    working_dtype,
)
from postmax.functional.kernels import CrossEntropyKernel
from postmax.functional.rows import uniform
from postmax.links import Link
from postmax.registry import unknown_name
from postmax.transition import Transition
from postmax.transition.constant import Constant
from postmax.transition.matrix import Matrix
from postmax.transition.mixture import LogMixture

CORRECTIONS = ("objective", "posterior", "forward", "factored")
_IN_THE_MODEL = ("forward", "factored")
_FLOOR_OF_UNIFORM = 0.4


@dataclass(frozen=True)
class Objective:
    """One member of the f-PML class, with or without a correction. Build it with `Objective.build`.

    Attributes:
        divergence: The f whose score and penalty the loss is made of.
        link: How logits become log D.
        transition: The label noise, if a correction uses it.
        correction: None, "objective", "posterior", "forward" or "factored".
        passive_weight: The weight c of the penalty; the posterior is c·D.
        floor: The posterior below which slopes are bounded and negative label weights stop counting; 0 for neither.
        kernel: What the loss is computed with: the divergence, tempered below the floor, simplified on the simplex.
    """

    divergence: Divergence
    link: Link
    transition: Transition | None = None
    correction: str | None = None
    passive_weight: float = 1.0
    floor: float = 0.0
    kernel: Divergence = field(init=False, repr=False, compare=False)
    _mixture: LogMixture | None = field(init=False, repr=False, compare=False, default=None)
    _label_matrix: Constant | None = field(init=False, repr=False, compare=False, default=None)
    _background: Constant | None = field(init=False, repr=False, compare=False, default=None)

    @classmethod
    def build(
        cls,
        divergence: str | Divergence,
        link: str | Link | None = None,
        transition: Transition | Matrix | None = None,
        correction: str | None = None,
        passive_weight: float = 1.0,
        floor: float | None = None,
    ) -> Objective:
        """Resolve names and defaults, and refuse what cannot work."""
        if isinstance(divergence, Tensor):
            raise InputError("the first argument is the divergence; pass class weights by name, as weight=….")
        check_numbers(passive_weight=passive_weight, floor=0.0 if floor is None else floor)
        f = divergences.get(divergence)
        noise = _checked_noise(transition, correction)
        if link is None:
            link = "softmax" if correction in _IN_THE_MODEL else links.DEFAULT
        resolved = links.get(link)
        if correction in _IN_THE_MODEL and not resolved.normalised:
            raise InputError(
                f"the {correction} correction mixes probabilities, so it needs the softmax link, got {resolved.name!r}."
            )
        if not (math.isfinite(passive_weight) and passive_weight > 0):
            raise InputError(f"passive_weight must be a positive number, got {passive_weight}.")
        if floor is None:
            floor = _default_floor(*_shares(noise, correction))
        if not 0 <= floor < min(1.0, passive_weight):
            raise InputError(
                "floor is the smallest posterior that is resolved; it must lie in [0, 1) and below passive_weight, "
                f"got {floor} with passive_weight = {passive_weight}."
            )
        return cls(f, resolved, noise, correction, float(passive_weight), float(floor))

    def __post_init__(self) -> None:
        kernel = self.divergence
        if isinstance(kernel, KullbackLeibler):  # its slope is constant: there is nothing to temper
            kernel = CrossEntropyKernel() if self.link.normalised else kernel
        elif self.floor > 0:
            kernel = kernel.tempered(self.floor / self.passive_weight)
        object.__setattr__(self, "kernel", kernel)
        modelled, removed = _shares(self.transition, self.correction)
        if modelled is not None:
            object.__setattr__(self, "_mixture", LogMixture(modelled.matrix))
        if removed is not None:
            inverse = removed.inverse
            # Stabilised, no row pulls harder than an ordinary label does; a factor moves no minimum.
            scale = inverse.abs().sum(1).max() if self.floor > 0 else 1.0
            object.__setattr__(self, "_label_matrix", Constant(inverse / scale))
        if self.transition is not None:
            object.__setattr__(self, "_background", Constant(self.transition.matrix.mean(0)))

    def check_weight(self, weight: Tensor | None) -> None:
        """Refuse class weights where they would count noisy labels and so spoil the corrected posterior."""
        if weight is not None and self.correction not in (None, "objective"):
            raise InputError(
                f"class weights cannot be combined with the {self.correction} correction: they would weigh the noisy "
                'labels, and the posterior of the true ones would be wrong. correction="objective" weighs true classes.'
            )

    @property
    def num_classes(self) -> int | None:
        """The number of classes, if a transition matrix fixes it."""
        return None if self.transition is None else self.transition.num_classes

    @property
    def log_floor(self) -> float | None:
        """The floor in terms of s = log D, if there is one."""
        return math.log(self.floor / self.passive_weight) if self.floor > 0 else None

    def log_ratio(self, rows: Tensor) -> Tensor:
        """What s = log D is for the *training* labels, given logits with the classes last.

        A link that gives probabilities models the posterior c·D, so D is that divided by c.
        """
        s = self.link.log_ratio(rows)
        if self._mixture is not None:
            s = self._mixture(s)
        if self.link.gives_probabilities and self.passive_weight != 1:
            s = s - math.log(self.passive_weight)
        return s

    @property
    def replaces_labels(self) -> bool:
        """Whether `label_weights` are other than the labels."""
        return self._label_matrix is not None

    def label_weights(self, q: Tensor) -> Tensor:
        """The label weights the loss is trained on: q, or q·P⁻¹ (up to a factor) for the noise that is removed."""
        return q if self._label_matrix is None else q @ self._label_matrix.like(q)

    def background(self, like: Tensor) -> Tensor:
        """What label smoothing smooths towards: the labels one would see if the true classes were uniform.

        Once the noise has been taken out this is uniform again, as it is without noise.
        """
        if self._background is not None:
            return self._background.like(like)
        return uniform(like)

    def posterior(self, logits: Tensor, *, normalize: bool = True) -> Tensor:
        """P(true class | x) for every class, in the shape of `logits`; see `FPMLLoss.posterior`."""
        check_logits(logits, self.num_classes)
        if autocast_enabled(logits):
            with torch.autocast(logits.device.type, enabled=False):
                return self.posterior(logits, normalize=normalize)
        raw = self._raw_posterior(logits, normalize=normalize)
        if self.correction == "posterior" and self.transition is not None:
            raw = self.transition.correct(raw, project=normalize)
        return raw.movedim(-1, class_dim(logits))

    def predict(self, logits: Tensor) -> Tensor:
        """The most probable true class; see `FPMLLoss.predict`."""
        if self.correction == "posterior":
            return self.posterior(logits).argmax(class_dim(logits))  # the projection keeps the order
        check_logits(logits, self.num_classes)
        return logits.argmax(class_dim(logits))  # every link is increasing

    def _raw_posterior(self, logits: Tensor, *, normalize: bool) -> Tensor:
        """c·D with the classes last, before the posterior correction; divided by its sum if asked for."""
        log_d = self.link.log_ratio(classes_last(logits).to(working_dtype(logits)))
        if normalize:
            return log_d.softmax(-1)
        return log_d.exp() * (1.0 if self.link.gives_probabilities else self.passive_weight)


def _shares(noise: Transition | None, correction: str | None) -> tuple[Transition | None, Transition | None]:
    """What part of the noise the model is sent through, and what part is taken out of the labels; None for no noise."""
    if noise is None or correction == "posterior":
        return None, None
    if correction == "forward":
        return noise, None
    if correction == "objective":
        return None, noise
    confusions, random = (None if part.noise_rate() == 0 else part for part in noise.factors)
    return confusions, random


def _default_floor(modelled: Transition | None, removed: Transition | None) -> float:
    """A share of the uniform posterior, and no more than what every class can reach through what is modelled."""
    if removed is None:
        return 0.0
    reach = 1.0 if modelled is None else float(modelled.matrix.amax(0).min())
    return reach * _FLOOR_OF_UNIFORM / removed.num_classes


def _checked_noise(transition: Transition | Matrix | None, correction: str | None) -> Transition | None:
    if correction is None:
        if transition is not None:
            raise InputError(
                f"a transition matrix was given, but no correction that uses it; choose one of {CORRECTIONS}."
            )
        return None
    if correction not in CORRECTIONS:
        raise unknown_name("correction", correction, CORRECTIONS)
    if transition is None:
        raise InputError(f"correction={correction!r} needs the noise: pass transition=pm.Transition(matrix).")
    noise = transition if isinstance(transition, Transition) else Transition(transition)
    return noise.require_recoverable()
