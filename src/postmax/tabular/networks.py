"""Networks for tables, many of the same shape side by side. Each is one *lane* of a stack, with weights of its own.

A small network spends its time on the overhead of each call, not on arithmetic. So twenty lanes in one call, as batched
matrix products, take little more time than one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

_BLOCKS = 2
# A column of numbers becomes at most so many pieces, and all columns together at most so many.
_MOST_PIECES, _MOST_ENCODED = 8, 1024


class LaneLinear(nn.Module):
    """A linear layer for each lane: from (S, B, d) to (S, B, k)."""

    def __init__(self, lanes: int, inputs: int, outputs: int, generator: torch.Generator, gain: float = 1.0) -> None:
        super().__init__()
        weight = torch.randn(lanes, inputs, outputs, generator=generator)
        self.weight = nn.Parameter(weight * gain / math.sqrt(inputs))
        self.bias = nn.Parameter(torch.zeros(lanes, 1, outputs))

    def forward(self, rows: Tensor) -> Tensor:
        """Return the outputs of every lane."""
        return torch.baddbmm(self.bias, rows, self.weight)


class PiecewiseLinear(nn.Module):
    """Numbers as pieces: how far a number has come through each interval between quantiles of its column, from 0 to 1.

    A linear layer on top is then any continuous function that is linear between the quantiles, so that a network
    learns thresholds and plateaus as easily as slopes. Columns of few distinct values have one piece between each two.

    Args:
        size: How many pieces all columns have together. `fit` finds out where they are.
    """

    low: Tensor
    scale: Tensor
    column: Tensor
    centre: Tensor

    def __init__(self, size: int) -> None:
        super().__init__()
        for name in ("low", "scale", "centre"):
            self.register_buffer(name, torch.zeros(size))
        self.register_buffer("column", torch.zeros(size, dtype=torch.int64))

    @classmethod
    def fit(cls, features: Tensor) -> PiecewiseLinear:
        """Return the pieces between the quantiles of rows (N, d)."""
        pieces = max(1, min(_MOST_PIECES, _MOST_ENCODED // features.shape[1]))
        low, high, column = [], [], []
        for number, values in enumerate(features.T):
            edges = _edges(values, pieces)
            low.append(edges[:-1])
            high.append(edges[1:])
            column += [number] * (len(edges) - 1)
        found = cls(len(column))
        found.low = torch.cat(low)
        found.scale = 1 / (torch.cat(high) - found.low)
        found.column = torch.tensor(column, dtype=torch.int64)
        found.centre = found(features).mean(0)
        return found

    @property
    def size(self) -> int:
        """How many pieces all columns have together."""
        return len(self.low)

    def forward(self, rows: Tensor) -> Tensor:
        """Return the pieces (…, size) of rows (…, d)."""
        return ((rows[..., self.column] - self.low) * self.scale).clamp(0, 1) - self.centre


class LaneNetwork(nn.Module):
    """The base of all networks here: (S, B, d) or (B, d), the same rows for all lanes, to logits (S, B, K).

    Args:
        lanes: S.
        inputs: d, if the rows are not encoded.
        encode: Encodes the rows; None to take them as they are.

    Attributes:
        form: What `blank` needs to make a network of the same shape.
        dropout: The share of each hidden layer that is dropped in training.
        generator: Where dropout draws from; None outside of training, so that networks can be pickled.
    """

    dropout: float = 0.0
    generator: torch.Generator | None = None

    form: Mapping[str, Any]

    def __init__(self, lanes: int, inputs: int, encode: PiecewiseLinear | None) -> None:
        super().__init__()
        self.lanes = lanes
        self.encode = encode
        self.inputs = inputs if encode is None else encode.size

    def forward(self, rows: Tensor) -> Tensor:
        """Return the logits of every lane."""
        encoded = rows if self.encode is None else self.encode(rows)
        return self.outputs(encoded if encoded.dim() == 3 else encoded.expand(self.lanes, -1, -1))

    def outputs(self, rows: Tensor) -> Tensor:
        """Return the logits of encoded rows (S, B, inputs)."""
        raise NotImplementedError

    def dropped(self, hidden: Tensor) -> Tensor:
        """Return a hidden layer with dropout, in training."""
        if not self.training or not self.dropout:
            return hidden
        kept = torch.rand(hidden.shape, generator=self.generator) >= self.dropout
        return hidden * kept / (1 - self.dropout)


class Linear(LaneNetwork):
    """A linear model of the features, or of their pieces: then each feature has a curve of its own."""

    def __init__(
        self, lanes: int, inputs: int, num_classes: int, generator: torch.Generator, encode: PiecewiseLinear | None
    ) -> None:
        super().__init__(lanes, inputs, encode)
        self.last = LaneLinear(lanes, self.inputs, num_classes, generator, 0.01)

    def outputs(self, rows: Tensor) -> Tensor:
        """Return the logits of encoded rows."""
        logits: Tensor = self.last(rows)
        return logits


class Perceptron(LaneNetwork):
    """Two hidden layers."""

    def __init__(
        self,
        lanes: int,
        inputs: int,
        num_classes: int,
        generator: torch.Generator,
        encode: PiecewiseLinear | None,
        *,
        width: int,
        dropout: float,
    ) -> None:
        super().__init__(lanes, inputs, encode)
        self.dropout = dropout
        self.first = LaneLinear(lanes, self.inputs, width, generator, math.sqrt(2))
        self.second = LaneLinear(lanes, width, width, generator, math.sqrt(2))
        self.last = LaneLinear(lanes, width, num_classes, generator, 0.1)

    def outputs(self, rows: Tensor) -> Tensor:
        """Return the logits of encoded rows."""
        hidden = self.dropped(torch.relu(self.first(rows)))
        logits: Tensor = self.last(self.dropped(torch.relu(self.second(hidden))))
        return logits


class Residual(LaneNetwork):
    """The pieces of all numbers, blocks of two layers that are added to their input, and a linear model beside them."""

    def __init__(
        self,
        lanes: int,
        inputs: int,
        num_classes: int,
        generator: torch.Generator,
        encode: PiecewiseLinear | None,
        *,
        width: int,
        dropout: float,
    ) -> None:
        super().__init__(lanes, inputs, encode)
        self.dropout = dropout
        gain = math.sqrt(2)
        self.first = LaneLinear(lanes, self.inputs, width, generator, gain)
        self.inner = nn.ModuleList(LaneLinear(lanes, width, width, generator, gain) for _ in range(_BLOCKS))
        self.outer = nn.ModuleList(LaneLinear(lanes, width, width, generator, 0.1) for _ in range(_BLOCKS))
        self.last = LaneLinear(lanes, width, num_classes, generator, 0.1)
        self.linear = LaneLinear(lanes, self.inputs, num_classes, generator, 0.01)

    def outputs(self, rows: Tensor) -> Tensor:
        """Return the logits of encoded rows."""
        hidden: Tensor = self.first(rows)
        for inner, outer in zip(self.inner, self.outer, strict=True):
            hidden = hidden + self.dropped(outer(torch.relu(inner(_normalised(hidden)))))
        logits: Tensor = self.last(self.dropped(torch.relu(_normalised(hidden)))) + self.linear(rows)
        return logits


BUILDERS: dict[str, Callable[..., LaneNetwork]] = {
    "linear": Linear,
    "additive": Linear,
    "mlp": Perceptron,
    "residual": Residual,
}
_IN_PIECES = ("additive", "residual")


def make(
    kind: str, lanes: int, features: Tensor, num_classes: int, generator: torch.Generator, **options: Any
) -> LaneNetwork:
    """Return new networks with random weights.

    Args:
        kind: A name in `BUILDERS`.
        lanes: How many of them.
        features: (N, d), the rows whose quantiles are the borders of pieces.
        num_classes: K.
        generator: Where random weights come from.
        options: The width and the dropout of networks with hidden layers.
    """
    in_pieces = kind in _IN_PIECES and bool((features.std(0) > 0).any())
    encode = PiecewiseLinear.fit(features) if in_pieces else None
    network = BUILDERS[kind](lanes, features.shape[1], num_classes, generator, encode, **options)
    pieces = None if encode is None else encode.size
    network.form = {
        "kind": kind,
        "lanes": lanes,
        "inputs": features.shape[1],
        "pieces": pieces,
        "classes": num_classes,
        "options": options,
    }
    return network


def blank(form: Mapping[str, Any]) -> LaneNetwork:
    """Return networks of this form, whose weights and pieces are still to be loaded."""
    encode = None if form["pieces"] is None else PiecewiseLinear(form["pieces"])
    kind, options = BUILDERS[form["kind"]], form["options"]
    network = kind(form["lanes"], form["inputs"], form["classes"], torch.Generator(), encode, **options)
    network.form = form
    return network


def _normalised(hidden: Tensor) -> Tensor:
    return F.layer_norm(hidden, hidden.shape[-1:])


def _edges(values: Tensor, pieces: int) -> Tensor:
    """Return the borders of the pieces of a column, rising; a single border for a constant column."""
    distinct: Tensor = values.unique()
    if len(distinct) <= pieces + 1:
        return distinct
    quantiles: Tensor = values.quantile(torch.linspace(0, 1, pieces + 1)).unique()
    return quantiles
