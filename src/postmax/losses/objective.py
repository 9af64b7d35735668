"""The f-PML objective with its corrections: everything about the loss that does not depend on the data."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field

from torch import Tensor

from postmax import divergences, links
from postmax.divergences import Divergence, KullbackLeibler
from postmax.errors import InputError, PostmaxWarning
from postmax.links import Link
from postmax.losses.kernels import CrossEntropyKernel
from postmax.losses.options import check_numbers
from postmax.losses.reduction import uniform
from postmax.registry import unknown_name
from postmax.transition import Transition
from postmax.transition.constant import Constant
from postmax.transition.matrix import Matrix
from postmax.transition.mixture import LogMixture
from postmax.wording import advice

CORRECTIONS = ("objective", "posterior", "forward", "factored")
_IN_THE_MODEL = ("forward", "factored")
_FLOOR_OF_UNIFORM = 0.4
# ‖P⁻¹‖ from which the objective correction was behind the forward correction in all of 41 settings with three or more
# classes; see docs/objective-correction.md.
_FAR_BEHIND = 8.0


@dataclass(frozen=True)
class Objective:
    """One member of the f-PML class, with or without a correction. Make it with `Objective.build`.

    Attributes:
        divergence: The f that defines the score and the penalty of the loss.
        link: The map from logits to log D.
        transition: The label noise, if a correction uses it.
        correction: None, "objective", "posterior", "forward" or "factored".
        passive_weight: The weight c of the penalty. The posterior is c·D.
        floor: The posterior below which slopes are bounded and negative label weights have no influence; 0 for neither.
        kernel: The divergence used for computing: tempered below the floor, simplified where D sums to one.
        mixture: The part of the noise through which the model is sent, if there is one.
        label_matrix: The matrix that removes noise from the labels, if there is one.
        noisy_uniform: The distribution of the labels if the true classes were uniform, if noise is known.
    """

    divergence: Divergence
    link: Link
    transition: Transition | None
    correction: str | None
    passive_weight: float
    floor: float
    kernel: Divergence = field(repr=False, compare=False)
    mixture: LogMixture | None = field(repr=False, compare=False)
    label_matrix: Constant | None = field(repr=False, compare=False)
    noisy_uniform: Constant | None = field(repr=False, compare=False)

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
        """Return the objective for names or values of its parts, after checking that they fit together."""
        if isinstance(divergence, Tensor):
            raise InputError("the first argument is the divergence; pass class weights by name, as weight=….")
        check_numbers(passive_weight=passive_weight, floor=0.0 if floor is None else floor)
        f = divergences.get(divergence)
        if correction is not None and correction not in CORRECTIONS:
            raise unknown_name("correction", correction, CORRECTIONS)
        resolved = _checked_link(link, correction)
        noise = _checked_noise(transition, correction)  # after the names: a matrix does not mend a misspelt one
        if not (math.isfinite(passive_weight) and passive_weight > 0):
            raise InputError(f"passive_weight must be a positive number, got {passive_weight}.")
        modelled, removed = _parts(noise, correction)
        if floor is None:
            floor = _default_floor(modelled, removed)
        if not 0 <= floor < min(1.0, passive_weight):
            raise InputError(
                "floor is the smallest posterior that is resolved; it must lie in [0, 1) and below passive_weight, "
                f"got {floor} with passive_weight = {passive_weight}."
            )
        return cls(
            f,
            resolved,
            noise,
            correction,
            float(passive_weight),
            float(floor),
            kernel=_kernel(f, resolved, floor / passive_weight),
            mixture=None if modelled is None else LogMixture(modelled.matrix),
            label_matrix=None if removed is None else _label_matrix(removed, stabilised=floor > 0),
            noisy_uniform=None if noise is None else Constant(noise.matrix.mean(0)),
        )

    def check_weight(self, weight: Tensor | None) -> None:
        """Raise an error if class weights would count noisy labels and so give a wrong corrected posterior."""
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
        """The floor as a value of s = log D, if there is one."""
        return math.log(self.floor / self.passive_weight) if self.floor > 0 else None

    @property
    def replaces_labels(self) -> bool:
        """Whether `label_weights` differ from the labels."""
        return self.label_matrix is not None

    def warn_if_far_behind(self) -> None:
        """Warn where the objective correction is known to be far behind the forward correction."""
        if self.correction != "objective" or self.transition is None or self.transition.num_classes < 3:
            return
        size = _size(self.transition.inverse)
        if size >= _FAR_BEHIND:
            forward = advice(python='correction="forward"', command="loss.correction=forward")
            warnings.warn(
                f"the objective correction weighs labels by the inverse of the noise, whose rows sum up to {size:.0f} "
                f"in absolute value: it learns slowly or memorises. Use {forward}: from {_FAR_BEHIND:g} on it was "
                "better in every measurement with three or more classes (docs/objective-correction.md).",
                PostmaxWarning,
                stacklevel=3,
            )

    @property
    def when_it_diverges(self) -> str:
        """Why a training may diverge and what to do; see `Loss.when_it_diverges`."""
        if self.floor > 0:
            return ""
        if self.correction == "objective":
            return (
                "Without a floor the negative label weights of the objective correction reward ever smaller "
                "posteriors, so that the loss has no lower bound. Use loss=fpml with loss.correction=forward, or with "
                "loss.correction=objective and no loss.floor, which then has a default."
            )
        return "A floor under the posterior bounds the gradient of confident mistakes: loss.floor=0.05."

    def log_ratio(self, rows: Tensor) -> Tensor:
        """Return s = log D for the *training* labels, from logits (…, C).

        A link that gives probabilities models the posterior c·D, so D is that probability divided by c.
        """
        s = self.link.log_ratio(rows)
        if self.mixture is not None:
            s = self.mixture(s)
        if self.link.gives_probabilities and self.passive_weight != 1:
            s = s - math.log(self.passive_weight)
        return s

    def label_weights(self, q: Tensor) -> Tensor:
        """Return the label weights for training: q, or q·P⁻¹ up to a factor if noise is removed from the labels."""
        return q if self.label_matrix is None else q @ self.label_matrix.like(q)

    def background(self, like: Tensor) -> Tensor:
        """Return the distribution (C) towards which label smoothing moves: the labels if true classes were uniform.

        After the noise is removed from the labels this distribution is uniform, as it is without noise.
        """
        return uniform(like) if self.noisy_uniform is None else self.noisy_uniform.like(like)

    def posterior(self, rows: Tensor, *, normalize: bool = True) -> Tensor:
        """Return P(true class | x) for logits (…, C) in working precision; see `FPMLLoss.posterior`."""
        modelled = self._modelled_posterior(rows, normalize=normalize)
        if self.correction == "posterior" and self.transition is not None:
            return self.transition.correct(modelled, project=normalize)
        return modelled

    def logits_of(self, posterior: Tensor) -> Tensor:
        """Return logits (…, C) whose posterior is the given one."""
        if self.correction == "posterior" and self.transition is not None:
            posterior = self.transition.corrupt_posterior(posterior)
        log_d = posterior.log()
        return self.link.logits(log_d if self.link.gives_probabilities else log_d - math.log(self.passive_weight))

    def label_posterior(self, rows: Tensor) -> Tensor:
        """Return P(label as given | x) for logits (…, C): the posterior before the noise is removed from it."""
        modelled = self._modelled_posterior(rows)
        if self.correction == "posterior" or self.transition is None:
            return modelled
        return self.transition.corrupt_posterior(modelled)

    def _modelled_posterior(self, rows: Tensor, *, normalize: bool = True) -> Tensor:
        """Return c·D, before a posterior correction, divided by its sum if `normalize` is True."""
        log_d = self.link.log_ratio(rows)
        if normalize:
            return log_d.softmax(-1)
        return log_d.exp() * (1.0 if self.link.gives_probabilities else self.passive_weight)


def _kernel(divergence: Divergence, link: Link, floor: float) -> Divergence:
    if isinstance(divergence, KullbackLeibler):  # its slope is constant, so tempering would change nothing
        return CrossEntropyKernel() if link.normalised else divergence
    return divergence.tempered(floor) if floor > 0 else divergence


def _label_matrix(removed: Transition, *, stabilised: bool) -> Constant:
    """Return P⁻¹. If stabilised, divide it by ‖P⁻¹‖∞, so that no row pulls harder than an ordinary label does.

    A constant factor changes no minimum of the loss.
    """
    inverse = removed.inverse
    return Constant(inverse / _size(inverse) if stabilised else inverse)


def _size(inverse: Tensor) -> float:
    """Return ‖P⁻¹‖∞, the largest sum of the absolute values in a row."""
    return float(inverse.abs().sum(1).max())


def _parts(noise: Transition | None, correction: str | None) -> tuple[Transition | None, Transition | None]:
    """Return the noise through which the model is sent, and the noise that is removed from the labels.

    Each is None if there is no such noise.
    """
    if noise is None or correction == "posterior":
        return None, None
    if correction == "forward":
        return noise, None
    if correction == "objective":
        return None, noise
    confusions, random = (None if part.noise_rate() == 0 else part for part in noise.factors)
    return confusions, random


def _default_floor(modelled: Transition | None, removed: Transition | None) -> float:
    """Return a share of the uniform posterior that every class can reach through the modelled noise."""
    if removed is None:
        return 0.0
    reach = 1.0 if modelled is None else float(modelled.matrix.amax(0).min())
    return reach * _FLOOR_OF_UNIFORM / removed.num_classes


def _checked_link(link: str | Link | None, correction: str | None) -> Link:
    if link is None:
        link = "softmax" if correction in _IN_THE_MODEL else links.DEFAULT
    resolved = links.get(link)
    if correction in _IN_THE_MODEL and not resolved.normalised:
        raise InputError(
            f"the {correction} correction mixes probabilities, so it needs the softmax link, got {resolved.name!r}."
        )
    return resolved


def _checked_noise(transition: Transition | Matrix | None, correction: str | None) -> Transition | None:
    if correction is None:
        if transition is not None:
            raise InputError(
                f"a transition matrix was given, but no correction that uses it; choose one of {CORRECTIONS}."
            )
        return None
    if transition is None:
        raise InputError(f"correction={correction!r} needs the noise: pass transition=pm.Transition(matrix).")
    noise = transition if isinstance(transition, Transition) else Transition(transition)
    return noise.require_recoverable()
