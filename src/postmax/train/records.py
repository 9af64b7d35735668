"""The results of a run as plain values: the content of its JSON files, and of the lines of metrics.jsonl."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict


class Evaluation(TypedDict):
    """The metrics on held-out rows after one epoch. Shares lie in [0, 1]."""

    epoch: int
    accuracy: float
    calibration_error: float


class Reliability(TypedDict):
    """Held-out rows in bins of equal width by confidence, after the selected epoch. Empty bins hold zeros."""

    count: list[int]
    confidence: list[float]
    accuracy: list[float]


class Reading(TypedDict):
    """The metrics of one reading (one way to turn the network's output into predictions), by selection rule."""

    last: Evaluation
    oracle: Evaluation
    noisy_val: NotRequired[Evaluation]
    reliability: Reliability


class Confusion(TypedDict):
    """How many held-out rows have which label and which predicted class, after one epoch."""

    epoch: int
    cells: list[tuple[int, int, int]]  # label, predicted class, rows; pairs without rows are left out


class SeedConfusions(TypedDict):
    """The confusions of one seed, by reading and then by selection rule ("last", "oracle", "noisy_val")."""

    seed: int
    readings: dict[str, dict[str, Confusion]]


class RowCounts(TypedDict):
    """How many rows of each class a seed has, by their labels as given."""

    seed: int
    train: list[int]
    validation: list[int] | None
    test: list[int]


class DataRecord(TypedDict):
    """The content of data.json: what the rows are."""

    format: str
    shape: list[int]  # of one row: (features) or (channels, height, width)
    table: dict[str, Any] | None  # how the columns were read, see `TableReading.to_dict`; None if it is no table
    seeds: list[RowCounts]


class NoiseRecord(TypedDict):
    """The noise that a seed was trained with. The hash shows whether two methods saw the same labels."""

    rows: int
    rate: float | None  # the share of wrong labels; None where the truth is not known
    sha256: str


class SeedResult(TypedDict):
    """The results of one seed of a run.

    The reading "model" is the answer of the method. The posterior correction adds the reading "uncorrected". Each data
    set in `data.also_test` adds readings under its name: "ilsvrc12-mini", "ilsvrc12-mini-uncorrected".
    """

    seed: int
    noise: NoiseRecord
    transition: list[list[float]] | None  # see `SeedData.transition`; None also for more than 100 classes
    readings: dict[str, Reading]


class RunResult(TypedDict):
    """The content of result.json."""

    format: int
    run_id: str
    classes: list[str]
    parameters: int  # of the network that answers for one seed
    networks: NotRequired[int]  # how many networks are trained for each seed; results of older versions lack it
    train_rows: int
    test_rows: int
    epochs: int
    steps: int  # batches that were trained on
    selection: str
    seconds: float
    seeds: list[SeedResult]
    environment: dict[str, str]


class EpochRecord(TypedDict):
    """One line of metrics.jsonl: one epoch of one seed. Shares lie in [0, 1]. What was not measured is absent.

    Training metrics come from the predictions that were made while training, before each step.
    """

    epoch: int
    seed: int
    loss: float
    lr: float
    train_accuracy: float  # the share of training rows for which the given label is predicted
    right_labels_learnt: NotRequired[float]  # the same, of rows whose label is right
    wrong_labels_learnt: NotRequired[float]  # the same, of rows whose label is wrong: memorisation
    wrong_labels_recovered: NotRequired[float]  # of rows whose label is wrong: the true class is predicted
    val_accuracy: NotRequired[float]  # on noisy validation labels
    test_accuracy: NotRequired[float]
    calibration_error: NotRequired[float]
    uncorrected_test_accuracy: NotRequired[float]
    uncorrected_calibration_error: NotRequired[float]
    passes: NotRequired[int]  # rows that went through networks; see `postmax.train.work`
    operations: NotRequired[int]  # floating-point operations of these passes, backward included
    method: NotRequired[dict[str, float]]  # what the method reports: means of `Step.values`
    seconds: float  # of the whole epoch, for all seeds together
