"""Judge networks on rows that they were not trained on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from postmax.data import Batches, Dataset, Views
from postmax.errors import NotFiniteError
from postmax.train.lanes import LaneBatches
from postmax.train.metrics import Scores, score
from postmax.train.predictions import Readings
from postmax.train.records import EpochRecord

ROWS_AT_ONCE = 500

Function = Callable[[Tensor], Tensor]


class Evaluator:
    """The held-out rows of every seed.

    Args:
        test: The test rows of each seed.
        validation: The validation rows of each seed, with noisy labels; None if there are none.
        seeds: The seeds.
        views: The views of the rows. The view "none" is judged.
        device: Where the networks are.
        also: The test rows of other data sets, by name.
    """

    def __init__(
        self,
        test: Sequence[Dataset],
        validation: Sequence[Dataset] | None,
        seeds: Sequence[int],
        views: Views,
        device: torch.device,
        also: Mapping[str, Sequence[Dataset]] | None = None,
    ) -> None:
        def batches(parts: Sequence[Dataset]) -> LaneBatches:
            return LaneBatches(parts, seeds, ROWS_AT_ONCE, augment=views, view="none", shuffle=False, device=device)

        self._test = {"": batches(test)} | {name: batches(parts) for name, parts in (also or {}).items()}
        self._validation = None if validation is None else batches(validation)

    def judge(
        self, answer: Function, readings: Readings, label_posterior: Function, records: list[EpochRecord]
    ) -> dict[str, Scores]:
        """Add accuracy and calibration to the records of an epoch.

        Args:
            answer: Gives outputs (S, B, K) for inputs (S, B, …). Its networks are in evaluation mode.
            readings: Turns outputs into posteriors (S, B, K), by the name of the reading.
            label_posterior: Turns outputs into posteriors of the labels as given, noise included.
            records: One for each seed.

        Returns:
            The scores on the test rows, by the name of the reading. Readings on the rows of another data set have the
            name of that data set, with the name of the reading behind it where that is not "model".

        Raises:
            NotFiniteError: If the outputs are not finite.
        """
        found: dict[str, Scores] = {}
        for data_set, rows in self._test.items():
            outputs, labels = _outputs(answer, rows)
            for reading, posterior in readings(outputs).items():
                name = reading_name(reading, data_set)
                found[name] = score(posterior, labels)
                prefix = "" if name == "model" else f"{name}_"
                _add(records, f"{prefix}test_accuracy", found[name].accuracy)
                _add(records, f"{prefix}calibration_error", found[name].calibration_error)
        if self._validation is not None:
            # Validation labels are noisy, so the posterior of noisy labels is what they can judge.
            outputs, labels = _outputs(answer, self._validation)
            _add(records, "val_accuracy", score(label_posterior(outputs), labels).accuracy)
        return found


def reading_name(reading: str, data_set: str = "") -> str:
    """Return the name of a reading in records and results. Without a data set it is on the run's own test rows.

    Example:
        >>> reading_name("model"), reading_name("model", "cifar10"), reading_name("uncorrected", "cifar10")
        ('model', 'cifar10', 'cifar10-uncorrected')
    """
    if not data_set:
        return reading
    return data_set if reading == "model" else f"{data_set}-{reading}"


@torch.no_grad()
def outputs_of(network: nn.Module, batches: Batches) -> Tensor:
    """Return the outputs (N, K) of a network for all rows of a data set, in row order."""
    return torch.cat([network(batch.inputs) for batch in batches.epoch(0)])


@torch.no_grad()
def _outputs(answer: Function, batches: LaneBatches) -> tuple[Tensor, Tensor]:
    parts = [(answer(batch.inputs), batch.labels) for batch in batches.epoch(0)]
    outputs, labels = (torch.cat(column, 1) for column in zip(*parts, strict=True))
    if not outputs.isfinite().all():
        raise NotFiniteError("the outputs for held-out rows are not finite")
    return outputs, labels


def _add(records: list[Any], name: str, values: list[float]) -> None:
    for record, value in zip(records, values, strict=True):
        record[name] = value
