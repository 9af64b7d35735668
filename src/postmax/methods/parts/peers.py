"""Pairs of a row and a label that have nothing to do with each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from postmax.data import Batch
from postmax.methods.method import Epoch


class WithPeers(NamedTuple):
    """A batch, and as many pairs of a row and the label of another row.

    Attributes:
        batch: The batch.
        inputs: Rows from anywhere in the training set, in the shape of the inputs of the batch.
        labels: Labels from anywhere in the training set, (B,), drawn independently of these rows.
    """

    batch: Batch
    inputs: Tensor
    labels: Tensor


def with_peers(run: Epoch, labels: Tensor) -> Iterator[WithPeers]:
    """Yield the batches of an epoch over all rows, each with pairs of a row and a label.

    Rows, rows of the pairs and labels of the pairs come in three orders that do not depend on each other. So the labels
    of the pairs say nothing about their rows, and each row and each label is used once in an epoch.

    Args:
        run: The present epoch.
        labels: The labels of all training rows, (N,).
    """
    order = torch.randperm(len(labels), generator=run.generator("labels of peers")).to(labels.device)
    used = 0
    for batch, other in zip(run.batches(), run.batches(stream="peers"), strict=True):
        drawn = order[used : used + len(batch.rows)]
        used += len(batch.rows)
        yield WithPeers(batch, other.inputs, labels[drawn])


def both_outputs(network: torch.nn.Module, found: WithPeers) -> tuple[Tensor, Tensor]:
    """Return the outputs (B, K) of a network for the batch, and for the rows of the pairs.

    Both go through the network together, so that batch normalisation treats them alike.
    """
    first, second = network(torch.cat([found.batch.inputs, found.inputs])).chunk(2)
    return first, second
