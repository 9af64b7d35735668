"""Optimisers from their configuration, what is done to gradients before a step, and their state in checkpoints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_
from torch.optim import SGD, Adam, AdamW, Optimizer

from postmax.errors import InputError
from postmax.train.config import OptimiserConfig, ScheduleConfig
from postmax.train.muon import IS_FILTERS, Muon
from postmax.train.schedules import rate

_FACTOR = "rate_factor"


@dataclass(frozen=True)
class ScheduledOptimiser:
    """An optimiser with everything that belongs to one of its steps.

    Attributes:
        optimiser: The optimiser of torch.
        parameters: The tensors that it moves.
        config: Its learning rate, L1 term and gradient clipping.
        schedule: How the learning rate changes; None for a constant one.
        span: The first epoch and the epoch after the last one of the schedule; None for all epochs.
    """

    optimiser: Optimizer
    parameters: Sequence[Tensor]
    config: OptimiserConfig
    schedule: ScheduleConfig | None
    span: tuple[int, int] | None = None

    def set_rate(self, step: int, steps_per_epoch: int, epochs: int, *, factor: float = 1.0) -> None:
        """Set the learning rate for a step of the whole training, counted from 0, times a factor."""
        if self.schedule is None:
            share = 1.0
        else:
            start, end = self.span or (0, epochs)
            place = min(max(0, step - start * steps_per_epoch), (end - start) * steps_per_epoch - 1)
            share = rate(self.schedule, place, steps_per_epoch, end - start)
        set_rate(self.optimiser, self.config.lr * share * factor)

    def forget_gradients(self) -> None:
        """Make sure that the next backward pass does not add to old gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    def step(self) -> None:
        """Add the L1 term, clip the gradient, and move the parameters."""
        if self.config.l1:
            add_l1(self.parameters, self.config.l1)
        if self.config.clip_norm is not None:
            # A gradient that is not finite shows in the next loss, and the watch reports it from there.
            clip_grad_norm_(self.parameters, self.config.clip_norm, error_if_nonfinite=False)
        self.optimiser.step()


def make_optimiser(
    config: OptimiserConfig,
    parameters: Iterable[Tensor],
    *,
    biases: Iterable[Tensor] | None = None,
    fused: bool = True,
) -> Optimizer:
    """Return the optimiser of torch that a configuration describes.

    Args:
        config: Its kind and settings.
        parameters: The tensors that it moves.
        biases: Those of them that move at the rate for biases; by default all with one dimension.
        fused: Compute a step in one call, which matters for small networks.

    Raises:
        InputError: If the settings contradict each other.
    """
    groups = _groups(config, list(parameters), biases)
    try:
        if config.name in ("sgd", "muon"):
            return (Muon if config.name == "muon" else SGD)(
                groups,
                lr=config.lr,
                momentum=config.momentum,
                nesterov=config.nesterov,
                weight_decay=config.weight_decay,
                fused=fused,
            )
        kind = Adam if config.name == "adam" else AdamW
        return kind(groups, lr=config.lr, betas=config.betas, weight_decay=config.weight_decay, fused=fused)
    except ValueError as error:
        raise InputError(f"optimiser {config.name}: {error}.") from error


def set_rate(optimiser: Optimizer, rate: float) -> None:
    """Set the learning rate of the next step. Biases and the filters of Muon have a factor of their own."""
    for group in optimiser.param_groups:
        group["lr"] = rate * group.get(_FACTOR, 1.0)


def weights_rate(optimiser: Optimizer) -> float:
    """Return the learning rate of the last step. Where biases have another one, it is that of the weights."""
    return float(optimiser.param_groups[0]["lr"])


def _groups(config: OptimiserConfig, parameters: list[Tensor], biases: Iterable[Tensor] | None) -> list[Any]:
    """Return the parameters. Those that move at a rate of their own are further groups, and the first may be empty."""
    filters = _filters(parameters) if config.name == "muon" else []
    if config.bias_rate == 1:
        biases = []
    elif biases is None:
        biases = [parameter for parameter in parameters if parameter.dim() == 1]
    fast, turned = ({id(parameter) for parameter in group} for group in (biases, filters))
    groups: list[Any] = [{"params": [p for p in parameters if id(p) not in fast | turned]}]
    if fast:
        decay = config.weight_decay / config.bias_rate
        found = [p for p in parameters if id(p) in fast]
        groups.append({"params": found, "weight_decay": decay, _FACTOR: config.bias_rate})
    if filters:
        # Muon has made a step of these parameters before SGD sees it, so SGD adds nothing of its own.
        plain = {"momentum": 0.0, "nesterov": False, "weight_decay": 0.0}
        groups.append({"params": filters, IS_FILTERS: True, _FACTOR: config.filter_rate / config.lr, **plain})
    return groups


def _filters(parameters: Sequence[Tensor]) -> list[Tensor]:
    """Return the filters of convolutions of images."""
    found = [parameter for parameter in parameters if parameter.dim() == 4]
    if not found:
        raise InputError(
            "optimiser muon moves the filters of convolutions, and this network has none: choose sgd, adam or adamw."
        )
    return found


@torch.no_grad()
def add_l1(parameters: Iterable[Tensor], weight: float) -> None:
    """Add the gradient of weight·Σ|θ| to the gradients of the loss."""
    for parameter in parameters:
        if parameter.grad is None:  # the loss does not depend on this parameter, but the L1 term does
            parameter.grad = torch.zeros_like(parameter)
        parameter.grad.add_(parameter.sign(), alpha=weight)


def optimiser_state(optimiser: Optimizer) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the state of an optimiser as named tensors and plain values. Learning rates are not part of it."""
    tensors, values = {}, {}
    for number, entries in optimiser.state_dict()["state"].items():
        for name, value in entries.items():
            if isinstance(value, Tensor):
                tensors[f"{number}/{name}"] = value
            else:
                values[f"{number}/{name}"] = value
    return tensors, values


def restore_optimiser(optimiser: Optimizer, tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> None:
    """Put back the state that `optimiser_state` returned."""
    state: dict[int, dict[str, Any]] = {}
    for key, value in (*tensors.items(), *values.items()):
        number, _, name = key.partition("/")
        state.setdefault(int(number), {})[name] = value
    optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})
    for parameter, entries in optimiser.state.items():
        for name, value in entries.items():
            # A fused step goes through weights and state in the order of their memory, so both need the same layout.
            if isinstance(value, Tensor) and value.shape == parameter.shape:
                entries[name] = torch.empty_like(parameter, dtype=value.dtype).copy_(value)
