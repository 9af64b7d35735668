"""Describe the rows of a run: their shape, how the columns of a table were read, and the rows of each class."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from postmax.data import Dataset
from postmax.train.prepare import SeedData
from postmax.train.records import DataRecord

FORMAT = "postmax data 1"


def describe_data(seeds: Sequence[SeedData]) -> DataRecord:
    """Return what the rows of a run are, as plain values."""
    train = seeds[0].train
    return {
        "format": FORMAT,
        "shape": list(train.inputs[torch.tensor([0])].shape[1:]),
        "table": None if train.table is None else train.table.to_dict(),
        "seeds": [
            {
                "seed": part.seed,
                "train": _counts(part.train),
                "validation": None if part.validation is None else _counts(part.validation),
                "test": _counts(part.test),
            }
            for part in seeds
        ],
    }


def _counts(part: Dataset) -> list[int]:
    return torch.bincount(part.labels, minlength=part.num_classes).tolist()
