"""How many arithmetic operations a training takes."""

from __future__ import annotations

from collections.abc import Sequence

from postmax import models
from postmax.data.shrinking import epochs_of_sides, shrunk_size, side_at
from postmax.train.config import RunConfig

# Forward once, backward to the inputs of each layer and to its weights.
_PASSES = 3


def training_flops(config: RunConfig, rows: int, input_shape: Sequence[int], num_classes: int) -> int:
    """Return the floating-point operations of a training of one network, by the rule of `postmax.models.flops`.

    Evaluation and the estimate of the noise are not counted. Backward counts as twice the forward pass, also for the
    first layer, which computes no gradient of its inputs.

    Args:
        config: The configuration of the run.
        rows: How many rows it trains on.
        input_shape: The shape of one row.
        num_classes: How many classes there are.

    Example:
        >>> from postmax.train import make_config
        >>> small = [[0.4, 18], [0.7, 24]]
        >>> run = {"model": {"name": "fast"}, "epochs": 12, "data": {"name": "cifar10", "small": small}}
        >>> f"{training_flops(make_config(run), 50_000, (3, 32, 32), 10):.2g}"
        '6.6e+13'
    """
    network = models.get(config.model.name, num_classes=num_classes, input_shape=input_shape, **config.model.options)
    total = 0
    for epoch, count in epochs_of_sides(config.data.small, config.epochs).items():
        shape = tuple(input_shape)
        if len(shape) == 3:
            shape = (shape[0], *shrunk_size(shape[1:], side_at(config.data.small, epoch / config.epochs)))
        total += count * models.flops(network, shape)
    return _PASSES * rows * total
