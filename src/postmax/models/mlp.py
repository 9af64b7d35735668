"""A multi-layer perceptron: fully connected layers, for rows of features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from torch import Tensor, nn

from postmax.errors import InputError
from postmax.models.catalogue import register
from postmax.models.network import Network
from postmax.models.shapes import are_counts, check_classes, check_row
from postmax.registry import unknown_name

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "silu": nn.SiLU,
    "tanh": nn.Tanh,
}


class MLP(Network):
    """Linear layers, each but the last followed by an activation.

    A hidden layer is a linear layer, batch normalisation (optional), an activation and dropout (optional).

    Args:
        input_shape: The shape of one row. Rows of any shape are flattened.
        num_classes: K.
        hidden: The widths of the hidden layers; () for a linear model.
        dropout: The share of each hidden layer that is dropped.
        batch_norm: Normalise each hidden layer before its activation.
        activation: One of `ACTIVATIONS`.

    Raises:
        InputError: If an argument has an impossible value.

    Example:
        >>> MLP((30,), 2, hidden=(16,), dropout=0.2)
        MLP(
          (body): Sequential(
            (0): Linear(in_features=30, out_features=16, bias=True)
            (1): ReLU()
            (2): Dropout(p=0.2, inplace=False)
          )
          (fc): Linear(in_features=16, out_features=2, bias=True)
        )
    """

    def __init__(
        self,
        input_shape: Sequence[int],
        num_classes: int,
        *,
        hidden: Sequence[int] = (128, 64),
        dropout: float = 0.0,
        batch_norm: bool = False,
        activation: str = "relu",
    ) -> None:
        super().__init__()
        if not are_counts(hidden):
            raise InputError(f"hidden lists the widths of the hidden layers, such as (128, 64), and not {hidden!r}.")
        if not 0 <= dropout < 1:
            raise InputError(f"dropout is the share that is dropped, from 0 to below 1; got {dropout}.")
        if activation not in ACTIVATIONS:
            raise unknown_name("activation", str(activation), ACTIVATIONS)
        width = prod(check_row(input_shape))
        layers: list[nn.Module] = []
        for size in hidden:
            layers.append(nn.Linear(width, size))
            if batch_norm:
                layers.append(nn.BatchNorm1d(size))
            layers.append(ACTIVATIONS[activation]())
            if dropout:
                layers.append(nn.Dropout(dropout))
            width = size
        self.body = nn.Sequential(*layers)
        self.fc = nn.Linear(width, check_classes(num_classes))

    def features(self, inputs: Tensor) -> Tensor:
        """Return the last hidden layer, or the row itself if there is no hidden layer."""
        hidden: Tensor = self.body(inputs.flatten(1))
        return hidden


register("mlp", MLP, summary="fully connected layers, for tables; takes rows of any shape by flattening them")
