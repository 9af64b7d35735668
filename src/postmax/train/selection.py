"""Which epoch a result is taken from. The rule is part of the result; test data selects only under the name oracle."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from postmax.methods import Method
from postmax.train.config import RunConfig
from postmax.train.metrics import Scores
from postmax.train.records import EpochRecord, Evaluation, Reading, Reliability

RULES = {"last": "epoch", "noisy-val": "val_accuracy", "oracle": "test_accuracy"}


class Keeper:
    """What the selected epoch leaves: reliability bins and, if they are to be saved, weights, of every seed."""

    def __init__(self, config: RunConfig) -> None:
        self._criterion = RULES[config.selection]
        self._weights_wanted = config.save_model
        lanes = len(config.seeds)
        self._best = [-math.inf] * lanes
        self.reliability: list[dict[str, Reliability]] = [{} for _ in range(lanes)]
        self.weights: list[dict[str, Tensor]] = [{} for _ in range(lanes)]

    def look(self, method: Method, records: Sequence[EpochRecord], scores: Mapping[str, Scores], *, last: bool) -> None:
        """Keep what this epoch has, for the seeds for which it is the best so far; the first of equals wins."""
        if self._criterion == "epoch" and not last:
            return
        for lane, record in enumerate(records):
            value = float(record[self._criterion])  # type: ignore[literal-required]
            if value > self._best[lane]:
                self._best[lane] = value
                self.reliability[lane] = {name: found.reliability[lane] for name, found in scores.items()}
                if self._weights_wanted:
                    self.weights[lane] = {key: t.detach().clone() for key, t in method.lane_state(lane).items()}

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors and plain values for a checkpoint."""
        tensors = {f"{lane}/{key}": t for lane, kept in enumerate(self.weights) for key, t in kept.items()}
        best = [None if value == -math.inf else value for value in self._best]
        return tensors, {"best": best, "reliability": self.reliability}

    def restore(self, tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> None:
        """Put back what `state` gave."""
        self._best = [-math.inf if value is None else value for value in values["best"]]
        self.reliability = values["reliability"]
        for key, tensor in tensors.items():
            lane, _, name = key.partition("/")
            self.weights[int(lane)][name] = tensor


def summarise(records: Sequence[EpochRecord], reliability: Mapping[str, Reliability]) -> dict[str, Reading]:
    """The readings of one seed under every rule that applies, from the records of its epochs."""
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
