"""Fill in missing features and scale them, by what the training rows are like."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from postmax.data import Dataset


class Scaling(NamedTuple):
    """How features are changed before a network gets them: missing values are filled in, then all are scaled.

    Attributes:
        fill: The number that replaces a missing value: the median of the feature.
        mean: The number that is subtracted.
        factor: The number that the difference is multiplied by: 1 / standard deviation, or 0 for a constant feature.
    """

    fill: list[float]
    mean: list[float]
    factor: list[float]

    @classmethod
    def fit(cls, inputs: Tensor, *, standardise: bool) -> Scaling:
        """Return the scaling that suits the training rows."""
        rows = inputs.double()
        fill = _medians(rows)
        rows = torch.where(rows.isnan(), fill, rows)
        if not standardise:
            return cls(fill.tolist(), [0.0] * rows.shape[1], [1.0] * rows.shape[1])
        std = rows.std(0, correction=0)
        return cls(fill.tolist(), rows.mean(0).tolist(), torch.where(std > 0, 1 / std, 0).tolist())

    def apply(self, part: Dataset) -> Dataset:
        """Return the same rows, filled in and scaled."""
        return replace(part, inputs=scaled(torch.as_tensor(part.inputs), self.tensors()))

    def tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return the three lists as tensors, for `scaled`."""
        fill, mean, factor = (torch.tensor(values, dtype=torch.float64) for values in self)
        return fill, mean, factor


def scaled(rows: Tensor, numbers: tuple[Tensor, Tensor, Tensor]) -> Tensor:
    """Return features (N, d), filled in and scaled by the tensors of a `Scaling`, in float32.

    Example:
        >>> scaling = Scaling(fill=[2.0], mean=[1.0], factor=[0.5])
        >>> scaled(torch.tensor([[5.0], [torch.nan]]), scaling.tensors())
        tensor([[2.0000],
                [0.5000]])
    """
    fill, mean, factor = numbers
    wide = rows.double()
    return ((torch.where(wide.isnan(), fill, wide) - mean) * factor).float()


def _medians(rows: Tensor) -> Tensor:
    """Return the median of each feature over the rows that have it; 0 if no row has it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # numpy warns about features that no row has
        return torch.from_numpy(np.nanmedian(rows.numpy(), axis=0)).nan_to_num(0.0)
