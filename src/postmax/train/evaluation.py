"""Judging a network on rows it was not trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from postmax.data import Augment, Dataset
from postmax.errors import InputError
from postmax.methods import Method
from postmax.train.metrics import Scores, score
from postmax.train.records import EpochRecord
from postmax.train.side_by_side import LaneBatches

_ROWS_AT_ONCE = 500


class NotFiniteError(InputError):
    """A network gives no numbers any more."""


class Evaluator:
    """Held-out rows of every seed: test rows with labels to be judged by, validation rows with noisy ones.

    Args:
        test: Test rows.
        validation: Validation rows, if there are any.
        seeds: As many as there are entries in each.
        augment: What images go through in training; without what is random about it here.
        device: Where the networks are.
        also: Test rows of other data sets, by name.
    """

    def __init__(
        self,
        test: Sequence[Dataset],
        validation: Sequence[Dataset] | None,
        seeds: Sequence[int],
        augment: Augment | None,
        device: torch.device,
        also: Mapping[str, Sequence[Dataset]] | None = None,
    ) -> None:
        still = None if augment is None else augment.evaluation()

        def batches(parts: Sequence[Dataset]) -> LaneBatches:
            return LaneBatches(parts, seeds, _ROWS_AT_ONCE, augment=still, shuffle=False, device=device)

        self._test = {"": batches(test)} | {name: batches(parts) for name, parts in (also or {}).items()}
        self._validation = None if validation is None else batches(validation)

    def judge(self, module: nn.Module, method: Method, records: list[EpochRecord]) -> dict[str, Scores]:
        """Add accuracy and calibration to the records of an epoch.

        Args:
            module: What to call for logits.
            method: What the logits mean.
            records: One for each seed.

        Returns:
            The scores of every reading on the test rows. Those on rows of another data set are readings under its name,
            with the name of the reading behind it where that is not "model".

        Raises:
            NotFiniteError: If the networks give no numbers any more.
        """
        module.eval()
        found: dict[str, Scores] = {}
        for data_set, rows in self._test.items():
            logits, labels = _logits(module, rows)
            for reading, posterior in method.readings(logits).items():
                name = reading_name(reading, data_set)
                found[name] = score(posterior, labels)
                prefix = "" if name == "model" else f"{name}_"
                _add(records, f"{prefix}test_accuracy", found[name].accuracy)
                _add(records, f"{prefix}calibration_error", found[name].calibration_error)
        if self._validation is not None:
            # These labels are noisy, so what is judged by them is what the networks say about noisy labels.
            logits, labels = _logits(module, self._validation)
            _add(records, "val_accuracy", score(method.label_posterior(logits), labels).accuracy)
        return found


def reading_name(reading: str, data_set: str = "") -> str:
    """What a reading is called in records and results; without a data set it is on the run's own test rows.

    Example:
        >>> reading_name("model"), reading_name("model", "cifar10"), reading_name("uncorrected", "cifar10")
        ('model', 'cifar10', 'cifar10-uncorrected')
    """
    if not data_set:
        return reading
    return data_set if reading == "model" else f"{data_set}-{reading}"


@torch.no_grad()
def _logits(module: nn.Module, batches: LaneBatches) -> tuple[Tensor, Tensor]:
    parts = [(module(batch.inputs), batch.labels) for batch in batches.epoch(0)]
    logits, labels = (torch.cat(column, 1) for column in zip(*parts, strict=True))
    if not logits.isfinite().all():
        raise NotFiniteError("the network gives no finite numbers for rows it was not trained on")
    return logits, labels


def _add(records: list[Any], name: str, values: list[float]) -> None:
    for record, value in zip(records, values, strict=True):
        record[name] = value
