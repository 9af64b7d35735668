"""Calibration in numbers: how sure the predictions are, and how often they are right."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from postmax.report.numbers import per_cent, signed
from postmax.train.records import Reliability, RunResult


@dataclass(frozen=True)
class CalibrationRow:
    """One reading, as texts: the mean confidence, the accuracy, their difference, and the calibration error."""

    label: str
    confidence: str
    accuracy: str
    verdict: str
    error: str


def calibration_row(result: RunResult, reading: str, rule: str, label: str) -> CalibrationRow:
    """Return the calibration of one reading, as mean and standard deviation over the seeds.

    Args:
        result: The result of the run.
        reading: The name of the reading in the result.
        rule: The selection rule in the result, such as "noisy_val".
        label: What the page calls the reading.
    """
    found = [seed["readings"][reading] for seed in result["seeds"]]
    confidence = [_mean_confidence(one["reliability"]) for one in found]
    chosen = [one[rule] for one in found]  # type: ignore[literal-required]
    accuracy = [one["accuracy"] for one in chosen]
    gap = 100 * (statistics.fmean(confidence) - statistics.fmean(accuracy))
    verdict = "about right" if abs(gap) < 1 else "too sure" if gap > 0 else "not sure enough"
    return CalibrationRow(
        label=label,
        confidence=per_cent(confidence),
        accuracy=per_cent(accuracy),
        verdict=f"{signed(gap, 1)} points: {verdict}",
        error=per_cent([one["calibration_error"] for one in chosen]),
    )


def _mean_confidence(bins: Reliability) -> float:
    rows = sum(bins["count"])
    return sum(n * share for n, share in zip(bins["count"], bins["confidence"], strict=True)) / rows if rows else 0.0
