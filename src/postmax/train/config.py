"""The configuration of a run: typed, with all defaults, and with an error for unknown keys."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from postmax.data.reading import ReadingOptions
from postmax.data.table_encoder import Missing
from postmax.errors import InputError
from postmax.train.explanation import explain
from postmax.train.identity import Mark, run_identity
from postmax.train.settings import DEFAULT_NAMES, read_yaml
from postmax.transition.spec import names_noise

Selection = Literal["last", "noisy-val", "oracle"]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Choice(BaseModel):
    """A thing that is chosen by name and has options of its own: `{name: fpml, divergence: sl}`, or its name alone."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: str

    @property
    def options(self) -> dict[str, Any]:
        """The options: everything but the name."""
        return dict(self.model_extra or {})


def _choice(section: str) -> BeforeValidator:
    """Return a validator that adds a missing name: `{divergence: sl}` becomes `{name: fpml, divergence: sl}`."""

    def complete(value: Any) -> Any:
        if isinstance(value, str):
            return {"name": value}
        return {"name": DEFAULT_NAMES[section], **value} if isinstance(value, Mapping) else value

    return BeforeValidator(complete)


def _one_or_more(value: Any) -> Any:
    return value if isinstance(value, list | tuple) else (value,)


# The name of a column may look like a number.
Text = Annotated[str, BeforeValidator(lambda value: str(value) if isinstance(value, int | float) else value)]


class DataConfig(_Section):
    """The rows that are trained on, and the rows that are held out. Either `name` or `path` must be given.

    Attributes:
        name: The name of a data set that postmax knows.
        path: A file or folder of your own: CSV, Parquet, Arrow, .npz, IDX images, or a folder of images.
        labels: The label column of a table, the label array of an .npz file, or the label file of IDX images.
        test_path: A file with the test rows. Without it, test rows are split off.
        test_labels: The label file for the test rows of IDX images.
        also_test: Names of data sets with the same classes. Their test rows are judged too, each as a reading of its
            own.
        drop: Columns of a CSV, Parquet or Arrow file that are not features.
        missing: What to do about missing numbers: "error", or "median" to fill in the median of the column.
        decimal: The sign before the decimals of a number in a CSV file: a point or a comma.
        encoding: The encoding of a CSV file, such as "cp1252". Null for UTF-8, or for UTF-16 with a byte-order mark.
        merge_labels: Whether labels of a table that differ only in upper and lower case or white space are one class.
        size: The side, in pixels, to which images of a folder are resized.
        split: "official" is the published split, or one fixed split for all seeds. "random" is another split for each
            seed.
        test_share: The share of the rows that is held out for test where no split is published.
        validation_share: The share of the training rows that is held out, with noisy labels, to select an epoch.
        train_rows: How many training rows to use, drawn evenly from the classes; all if null.
        augment: The random changes of images in training. "auto" is what is usual for the data set, and none for your
            own data. "shift-flip" is for short training: a small shift, and a mirror image in every other epoch.
        cutout: The side, in pixels, of a square that is blanked out of each image.
        small: Sides of smaller images for the first part of the training, which then costs less: `[[0.4, 18], [0.7,
            24]]` trains on images of 18×18 pixels in the first 40 % of the epochs, and of 24×24 up to 70 %.
        standardise: Whether features are shifted and scaled to mean 0 and standard deviation 1 of the training rows.
        root: The folder with the data sets that postmax knows. It does not change the name of the run.
        sha256: The SHA-256 of all files of your own that the run uses. postmax fills it in, and checks it when a run
            is resumed.
    """

    name: str | None = None
    path: Annotated[str | None, Mark.FILE] = None
    labels: Annotated[Text | None, Mark.FILE] = None
    test_path: Annotated[str | None, Mark.FILE] = None
    test_labels: Annotated[str | None, Mark.FILE] = None
    also_test: Annotated[tuple[str, ...], BeforeValidator(_one_or_more), Mark.ADDED] = ()
    drop: Annotated[tuple[Text, ...], BeforeValidator(_one_or_more)] = ()
    missing: Literal["error", "median"] = "error"
    decimal: Annotated[Literal[".", ","], Mark.ADDED] = "."
    encoding: Annotated[str | None, Mark.ADDED] = None
    merge_labels: Annotated[bool, Mark.ADDED] = False
    size: int | None = Field(None, ge=1)
    split: Literal["official", "random"] = "official"
    test_share: float = Field(0.2, gt=0, lt=1)
    validation_share: float = Field(0.0, ge=0, lt=1)
    train_rows: int | None = Field(None, ge=2)
    augment: Literal["auto", "none", "crop", "crop-flip", "shift-flip"] = "auto"
    cutout: int = Field(0, ge=0)
    small: Annotated[tuple[tuple[float, int], ...], Mark.ADDED] = ()
    standardise: bool = True
    root: Annotated[str | None, Mark.IGNORED] = None
    sha256: str | None = None

    @model_validator(mode="after")
    def _one_source(self) -> DataConfig:
        if (self.name is None) == (self.path is None):
            raise ValueError("give either name (a data set of the catalogue) or path (your own data)")
        if len(set(self.also_test)) < len(self.also_test) or self.name in self.also_test:
            raise ValueError("also_test: name other data sets than the run's own, each once")
        shares = [share for share, _ in self.small]
        if not all(0 < share < 1 for share in shares) or sorted(set(shares)) != shares:
            raise ValueError("small: give pairs [share, side] with rising shares of the training between 0 and 1")
        if any(side < 1 for _, side in self.small):
            raise ValueError("small: the side of an image is at least one pixel")
        return self

    @property
    def reading(self) -> ReadingOptions:
        """How files of your own are read. Missing numbers stay missing until the rows are split."""
        missing: Missing = "keep" if self.missing == "median" else "error"
        return ReadingOptions(self.labels, self.drop, missing, self.decimal, self.encoding, self.merge_labels)


class OptimiserConfig(_Section):
    """The optimiser.

    Attributes:
        name: "sgd", "adam", "adamw" or "muon". Muon turns the filters of convolutions by a share of their own length,
            whatever the scale of the loss, and moves everything else by SGD. It is for networks with batch
            normalisation after each convolution, such as `fast`.
        lr: The learning rate. The schedule multiplies it by numbers from 0 to 1.
        momentum: The momentum of SGD.
        nesterov: Whether SGD uses Nesterov's momentum.
        betas: The two decay rates of Adam and AdamW.
        weight_decay: The weight decay: an L2 term for SGD and Adam, decoupled from the gradient for AdamW.
        bias_rate: The factor by which biases, the parameters with one dimension, move faster than weights. Their weight
            decay is divided by it. Networks with batch normalisation and few epochs need it.
        filter_rate: The share by which Muon turns the filters in a step at the highest rate of the schedule.
        l1: The weight δ of the term δ·Σ|θ| over all parameters, which ANL adds to its loss. Its gradient is clipped
            together with that of the loss.
        clip_norm: The largest norm of a gradient. Larger gradients are scaled down to it. Null means no clipping.
    """

    name: Literal["sgd", "adam", "adamw", "muon"] = "sgd"
    lr: float = Field(0.02, gt=0, allow_inf_nan=False)
    momentum: float = Field(0.9, ge=0, lt=1)
    nesterov: bool = False
    betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: float = Field(0.0, ge=0, allow_inf_nan=False)
    bias_rate: Annotated[float, Mark.ADDED] = Field(1.0, gt=0, allow_inf_nan=False)
    filter_rate: Annotated[float, Mark.ADDED] = Field(0.05, gt=0, allow_inf_nan=False)
    l1: Annotated[float, Mark.ADDED] = Field(0.0, ge=0, allow_inf_nan=False)
    clip_norm: float | None = Field(None, gt=0, allow_inf_nan=False)


class ScheduleConfig(_Section):
    """How the learning rate changes during training.

    Attributes:
        name: "cosine", "step", "one-cycle", "constant", "restarts" (cosine waves of `period` epochs) or "late-linear"
            (constant up to the first of `milestones`, then a straight line).
        warmup: How many epochs the rate rises linearly at the start.
        milestones: The epochs after which "step" multiplies the rate by `gamma`.
        gamma: The factor of "step".
        peak: The share of all steps after which "one-cycle" reaches its highest rate.
        final: The last rate of "cosine", "one-cycle", "late-linear" and of each wave of "restarts", as a share of the
            highest rate.
        period: How many epochs a wave of "restarts" takes.
    """

    name: Literal["cosine", "step", "one-cycle", "constant", "restarts", "late-linear"] = "cosine"
    warmup: float = Field(0.0, ge=0, allow_inf_nan=False)
    milestones: tuple[int, ...] = ()
    gamma: float = Field(0.1, gt=0)
    peak: float = Field(0.3, gt=0, lt=1)
    final: float = Field(0.0, ge=0, le=1)
    period: Annotated[int, Mark.ADDED] = Field(10, ge=1)


class RunConfig(_Section):
    """The configuration of one run. A run has one seed, or several that are trained side by side.

    Attributes:
        data: The rows that are trained on, and those that are held out.
        noise: The noise that is put into the labels of the training rows, such as "symmetric:0.4". "none" leaves the
            labels as they are.
        noise_exact: Whether the counts of each class match the noise exactly. Otherwise each label is drawn by itself.
        transition: The noise that a correction removes. "known" is the matrix of `noise`. "estimated" is estimated from
            the noisy training rows. Anything else is an assumption: a noise such as "symmetric:0.4", or the file of a
            matrix.
        model: The network.
        method: The training strategy.
        loss: The loss that is minimised.
        optimiser: The optimiser that minimises it.
        schedule: How the learning rate changes during training.
        epochs: How many times training goes through all rows.
        batch_size: How many rows one step of the optimiser uses.
        evaluate_every: How many epochs lie between two evaluations on held-out rows. The last epoch is always
            evaluated.
        selection: The rule that selects the epoch of the result. "last" is the last epoch. "noisy-val" is the best on
            validation rows with noisy labels. "oracle" is the best on test rows, which cannot be known without the
            truth. The results under all rules that apply are recorded.
        ema: The decay of an exponential moving average of the weights, which is evaluated in place of the weights; null
            for none.
        precision: "32-true" computes everything in float32. "bf16-mixed" computes in bfloat16 where that is safe.
        accelerator: The device: "auto", "cpu", "cuda" or "mps".
        seeds: One or more seeds. Each has its own split, noise, initial weights and order of rows.
        save_model: Whether the weights are kept when the run is done.
    """

    data: DataConfig
    noise: Annotated[str, Mark.FILE] = "none"
    noise_exact: bool = True
    transition: Annotated[str, Mark.FILE] = "known"
    model: Annotated[Choice, _choice("model")] = Choice(name="mlp")
    method: Annotated[Choice, _choice("method")] = Choice(name="standard")
    loss: Annotated[Choice, _choice("loss")] = Choice(name="fpml")
    optimiser: Annotated[OptimiserConfig, _choice("optimiser")] = OptimiserConfig()
    schedule: Annotated[ScheduleConfig, _choice("schedule")] = ScheduleConfig()
    epochs: int = Field(100, ge=1)
    batch_size: int = Field(128, ge=1)
    evaluate_every: int = Field(1, ge=1)
    selection: Selection = "last"
    ema: float | None = Field(None, gt=0, lt=1)
    precision: Literal["32-true", "bf16-mixed"] = "32-true"
    accelerator: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    seeds: Annotated[tuple[int, ...], BeforeValidator(_one_or_more)] = Field((0,), min_length=1)
    save_model: bool = True

    @model_validator(mode="after")
    def _consistent(self) -> RunConfig:
        if len(set(self.seeds)) < len(self.seeds):
            raise ValueError("seeds: each seed may be given only once")
        if self.transition not in ("known", "estimated") and not names_noise(self.transition):
            raise ValueError(
                "transition is known, estimated, a noise such as symmetric:0.4 or the file of a matrix, "
                f"not {self.transition!r}"
            )
        if self.selection == "noisy-val" and not self.data.validation_share:
            raise ValueError("selection noisy-val needs data.validation_share, for example 0.1")
        return self

    @property
    def run_id(self) -> str:
        """The name of the run's folder: the same for the same computation, wherever its files lie."""
        return run_identity(self)

    def to_yaml(self) -> str:
        """Return the whole configuration as YAML. `read_config` reads it back to an equal one."""
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def make_config(content: Mapping[str, Any], *, where: str = "the configuration") -> RunConfig:
    """Make a configuration from plain values.

    Raises:
        InputError: If keys are unknown or values cannot be used. The message lists all of them, and for an unknown key
            the nearest one.

    Example:
        >>> make_config({"data": {"name": "digits"}, "epochz": 3})
        Traceback (most recent call last):
        ...
        postmax.errors.InputError: the configuration: unknown key 'epochz'. Did you mean 'epochs'? ...
    """
    try:
        return RunConfig.model_validate(content)
    except ValidationError as error:
        raise InputError(f"{where}: {explain(error, RunConfig)}") from None


def read_config(path: str | Path) -> RunConfig:
    """Read a configuration from a YAML file.

    Raises:
        DataError: If the file is missing or is not YAML.
        InputError: If its content is not the configuration of a run.
    """
    return make_config(read_yaml(path), where=str(path))
