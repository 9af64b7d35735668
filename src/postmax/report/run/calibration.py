"""Calibration in numbers: how sure the predictions are, and how often they are right."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from postmax.report.numbers import per_cent, signed
from postmax.report.pictures.reliability import calibration_error
from postmax.train.records import Reliability, RunResult


@dataclass(frozen=True)
class CalibrationRow:
    """One reading, as texts: the mean confidence, the accuracy, their difference, and the calibration error."""

    label: str
    confidence: str
    accuracy: str
    verdict: str
    error: str


def calibration_row(result: RunResult, reading: str, label: str, *, labels_may_be_wrong: bool) -> CalibrationRow:
    """Return the calibration of one reading, as mean and standard deviation over the seeds.

    All numbers come from the same bins, so they belong to the same epoch: the one that is selected for the model.

    Args:
        result: The result of the run.
        reading: The name of the reading in the result.
        label: What the page calls the reading.
        labels_may_be_wrong: Whether the test labels may be wrong. A well calibrated network looks too sure then, so
            there is no verdict.
    """
    bins = [seed["readings"][reading]["reliability"] for seed in result["seeds"]]
    confidence = [_mean(one, one["confidence"]) for one in bins]
    accuracy = [_mean(one, one["accuracy"]) for one in bins]
    gap = 100 * (statistics.fmean(confidence) - statistics.fmean(accuracy))
    verdict = "about right" if abs(gap) < 1 else "too sure" if gap > 0 else "not sure enough"
    return CalibrationRow(
        label=label,
        confidence=per_cent(confidence),
        accuracy=per_cent(accuracy),
        verdict=f"{signed(gap, 1)} points" + ("" if labels_may_be_wrong else f": {verdict}"),
        error=per_cent(list(map(calibration_error, bins))),
    )


def epochs_differ(result: RunResult, rule: str) -> bool:
    """Return whether a reading has its result from another epoch than the model: the oracle chooses for each reading.

    Args:
        result: The result of the run.
        rule: The selection rule in the result, such as "noisy_val".
    """
    readings: list[dict[str, Any]] = [dict(seed["readings"]) for seed in result["seeds"]]
    return any(len({one[rule]["epoch"] for one in seed.values()}) > 1 for seed in readings)


def _mean(bins: Reliability, values: Sequence[float]) -> float:
    """Return the mean of a value of the bins, over the rows in them."""
    rows = sum(bins["count"])
    return sum(n * value for n, value in zip(bins["count"], values, strict=True)) / rows if rows else 0.0
