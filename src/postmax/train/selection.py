"""The rules by which the epoch of a result is selected.

The rule is part of every result. Test rows select an epoch only under the rule with the name "oracle".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor

from postmax.train.config import RunConfig
from postmax.train.metrics import Scores
from postmax.train.records import EpochRecord, Evaluation, Reading, Reliability
from postmax.train.state import State

# By the name of the rule: the entry of an epoch's record that must be highest.
CRITERIA = {"last": "epoch", "noisy-val": "val_accuracy", "oracle": "test_accuracy"}


class Keeper:
    """Keeps the reliability bins of the selected epoch for each seed and, if the run saves its model, the weights."""

    def __init__(self, config: RunConfig) -> None:
        self._criterion = CRITERIA[config.selection]
        self._weights_wanted = config.save_model
        lanes = len(config.seeds)
        self._best = [-math.inf] * lanes
        self.reliability: list[dict[str, Reliability]] = [{} for _ in range(lanes)]
        self.weights: list[dict[str, Tensor]] = [{} for _ in range(lanes)]

    def look(
        self,
        weights: Callable[[int], Mapping[str, Tensor]],
        records: Sequence[EpochRecord],
        scores: Mapping[str, Scores],
        *,
        last: bool,
    ) -> None:
        """Keep what this epoch gives for each seed for which it is the best so far. Of equals, the first one is kept.

        Args:
            weights: Returns the weights of a seed, by its place in the run.
            records: The record of the epoch for each seed.
            scores: The scores on held-out rows, by reading.
            last: Whether this is the last epoch.
        """
        if self._criterion == "epoch" and not last:
            return
        for lane, record in enumerate(records):
            value = float(record[self._criterion])  # type: ignore[literal-required]
            if value > self._best[lane]:
                self._best[lane] = value
                self.reliability[lane] = {name: found.reliability[lane] for name, found in scores.items()}
                if self._weights_wanted:
                    self.weights[lane] = {key: t.detach().clone() for key, t in weights(lane).items()}

    def save(self) -> State:
        """Return what a checkpoint must know."""
        tensors = {f"{lane}/{key}": t for lane, kept in enumerate(self.weights) for key, t in kept.items()}
        best = [None if value == -math.inf else value for value in self._best]
        return State(tensors, {"best": best, "reliability": self.reliability})

    def restore(self, tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> None:
        """Put back what `save` returned."""
        self._best = [-math.inf if value is None else value for value in values["best"]]
        self.reliability = values["reliability"]
        for key, tensor in tensors.items():
            lane, _, name = key.partition("/")
            self.weights[int(lane)][name] = tensor


def summarise(records: Sequence[EpochRecord], reliability: Mapping[str, Reliability]) -> dict[str, Reading]:
    """Return the readings of one seed under every rule that applies, from the records of its epochs."""
    judged: list[Any] = [record for record in records if "test_accuracy" in record]
    readings: dict[str, Reading] = {}
    for name, bins in reliability.items():
        prefix = "" if name == "model" else f"{name}_"
        accuracy = f"{prefix}test_accuracy"

        def evaluation(record: Any, prefix: str = prefix) -> Evaluation:
            return {
                "epoch": record["epoch"],
                "accuracy": record[f"{prefix}test_accuracy"],
                "calibration_error": record[f"{prefix}calibration_error"],
            }

        reading: Reading = {
            "last": evaluation(judged[-1]),
            "oracle": evaluation(max(judged, key=lambda record: record[accuracy])),
            "reliability": bins,
        }
        if "val_accuracy" in judged[-1]:
            reading["noisy_val"] = evaluation(max(judged, key=lambda record: record["val_accuracy"]))
        readings[name] = reading
    return readings
