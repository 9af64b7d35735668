"""Optimisers by their configuration, and what is done to gradients before a step."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.optim import SGD, Adam, AdamW, Optimizer

from postmax.errors import InputError
from postmax.train.config import OptimiserConfig


def make_optimiser(config: OptimiserConfig, parameters: Iterable[Tensor], *, fused: bool = True) -> Optimizer:
    """The optimiser. `fused` computes a step in one call, which matters to small networks.

    Raises:
        InputError: If its settings make no sense together.
    """
    try:
        if config.name == "sgd":
            return SGD(
                parameters,
                lr=config.lr,
                momentum=config.momentum,
                nesterov=config.nesterov,
                weight_decay=config.weight_decay,
                fused=fused,
            )
        kind = Adam if config.name == "adam" else AdamW
        return kind(parameters, lr=config.lr, betas=config.betas, weight_decay=config.weight_decay, fused=fused)
    except ValueError as error:
        raise InputError(f"optimiser {config.name}: {error}.") from error


def set_rate(optimiser: Optimizer, rate: float) -> None:
    """The learning rate of the next step."""
    for group in optimiser.param_groups:
        group["lr"] = rate


@torch.no_grad()
def add_l1(parameters: Iterable[Tensor], weight: float) -> None:
    """Add the gradient of weight·Σ|θ|, which is that of each lane alone, to those of the loss."""
    for parameter in parameters:
        if parameter.grad is None:  # the loss does not know it, the term does
            parameter.grad = torch.zeros_like(parameter)
        parameter.grad.add_(parameter.sign(), alpha=weight)


def clip_lanes(parameters: Iterable[Tensor], max_norm: float) -> None:
    """Scale the gradient of each lane, the leading dimension, down to `max_norm`: no seed feels another's gradient."""
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    norms = torch.stack([gradient.reshape(len(gradient), -1).square().sum(1) for gradient in gradients]).sum(0).sqrt()
    scale = (max_norm / (norms + 1e-6)).clamp(max=1.0)
    for gradient in gradients:
        gradient.mul_(scale.view(-1, *(1,) * (gradient.dim() - 1)))
