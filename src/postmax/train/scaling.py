"""Bringing features to what a network likes, as the training rows have it."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from postmax.data import Dataset


class Scaling(NamedTuple):
    """What is done to features, as the training rows have it: what is missing is filled in, then they are scaled.

    Attributes:
        fill: The median of each feature, in place of missing values.
        mean: What is subtracted.
        factor: What is multiplied with: 1 / deviation, and 0 for a feature that never changes.
    """

    fill: list[float]
    mean: list[float]
    factor: list[float]

    @classmethod
    def fit(cls, inputs: Tensor, *, standardise: bool) -> Scaling:
        """Measure the training rows."""
        rows = inputs.double()
        fill = _medians(rows)
        rows = torch.where(rows.isnan(), fill, rows)
        if not standardise:
            return cls(fill.tolist(), [0.0] * rows.shape[1], [1.0] * rows.shape[1])
        std = rows.std(0, correction=0)
        return cls(fill.tolist(), rows.mean(0).tolist(), torch.where(std > 0, 1 / std, 0).tolist())

    def apply(self, part: Dataset) -> Dataset:
        """The same rows, filled in and scaled."""
        rows = torch.as_tensor(part.inputs).double()
        fill, mean, factor = (rows.new_tensor(values) for values in self)
        return replace(part, inputs=((torch.where(rows.isnan(), fill, rows) - mean) * factor).float())


def _medians(rows: Tensor) -> Tensor:
    """Of each feature over the rows that have it; 0 where none has."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # numpy's about features nobody has
        return torch.from_numpy(np.nanmedian(rows.numpy(), axis=0)).nan_to_num(0.0)
