"""What a run leaves behind, as plain values."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class Evaluation(TypedDict):
    """One look at the held-out rows; shares lie in [0, 1]."""

    epoch: int
    accuracy: float
    calibration_error: float


class Reliability(TypedDict):
    """Held-out rows in equal bins of confidence, after the selected epoch; empty bins have 0 everywhere."""

    count: list[int]
    confidence: list[float]
    accuracy: list[float]


class Reading(TypedDict):
    """What one way of reading the network's output gives, under every selection rule that applies."""

    last: Evaluation
    oracle: Evaluation
    noisy_val: NotRequired[Evaluation]
    reliability: Reliability


class NoiseRecord(TypedDict):
    """The noise a seed was trained with: proof that two methods saw the same labels."""

    rows: int
    rate: float | None  # None where the truth is not known
    sha256: str


class SeedResult(TypedDict):
    """One seed of a run.

    Readings: "model" is the answer; posterior correction adds "uncorrected", and `data.also_test` the same on the test
    rows of each data set it names: "ilsvrc12-mini", "ilsvrc12-mini-uncorrected".
    """

    seed: int
    noise: NoiseRecord
    transition: (
        list[list[float]] | None
    )  # what a correction took as the noise, else what the labels went through; K ≤ 100
    readings: dict[str, Reading]


class RunResult(TypedDict):
    """The content of result.json."""

    format: int
    run_id: str
    classes: list[str]
    parameters: int
    train_rows: int
    test_rows: int
    epochs: int
    steps: int
    selection: str
    seconds: float
    seeds: list[SeedResult]
    environment: dict[str, str]


class EpochRecord(TypedDict):
    """One line of metrics.jsonl: one epoch of one seed. Shares lie in [0, 1]; what was not measured is absent.

    Train accuracies are of the predictions made while training, before each step.
    """

    epoch: int
    seed: int
    loss: float
    lr: float
    train_accuracy: float  # agreement with the given labels
    right_labels_learnt: NotRequired[float]  # the same on the rows whose label is right
    wrong_labels_learnt: NotRequired[float]  # and on those whose label is wrong: memorisation
    wrong_labels_recovered: NotRequired[float]  # wrongly labelled rows for which the true class is predicted
    val_accuracy: NotRequired[float]  # on noisy validation labels
    test_accuracy: NotRequired[float]
    calibration_error: NotRequired[float]
    uncorrected_test_accuracy: NotRequired[float]
    uncorrected_calibration_error: NotRequired[float]
    seconds: float  # of the whole epoch, all seeds together
