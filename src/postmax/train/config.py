"""What a run is made of: typed, with every default written out, and unknown keys refused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, get_args

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from postmax.errors import InputError
from postmax.registry import unknown_name
from postmax.train.settings import DEFAULT_NAMES, read_yaml
from postmax.transition.spec import names_noise

# Part of every run's identity: raise it when the same configuration starts to mean another computation.
GENERATION = 1

Selection = Literal["last", "noisy-val", "oracle"]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Choice(BaseModel):
    """Something chosen by name, with options of its own: `{name: fpml, divergence: sl}`, or the name alone."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: str

    @property
    def options(self) -> dict[str, Any]:
        """Everything but the name."""
        return dict(self.model_extra or {})


def _choice(section: str) -> BeforeValidator:
    """Options alone belong to the default: `{divergence: sl}` is `{name: fpml, divergence: sl}`."""

    def complete(value: Any) -> Any:
        if isinstance(value, str):
            return {"name": value}
        return {"name": DEFAULT_NAMES[section], **value} if isinstance(value, Mapping) else value

    return BeforeValidator(complete)


def _one_or_more(value: Any) -> Any:
    return value if isinstance(value, list | tuple) else (value,)


# A column may be called 0.
Text = Annotated[str, BeforeValidator(lambda value: str(value) if isinstance(value, int | float) else value)]


class DataConfig(_Section):
    """Which rows are trained on and which are held out.

    Attributes:
        name: A data set of the catalogue, or
        path: a file or folder of your own: CSV, Parquet, .npz, IDX images, or a folder of images.
        labels: The label column of a table, the label array of an .npz, or the label file of IDX images.
        test_path: Held-out rows in a file of their own.
        test_labels: The label file that belongs to it, for IDX images.
        also_test: Data sets of the catalogue with the same classes whose test rows are judged beside; each is a reading
            under its name.
        drop: Columns of a table that are no features.
        missing: Missing numbers of a table are an error, or the median of their column.
        size: Side to which the images of a folder are brought.
        split: "official" (the published split, or one fixed split for all seeds) or "random" (one for each seed).
        test_share: The share held out for test where no split is published.
        validation_share: The share of the training rows kept, with their noisy labels, to select an epoch.
        train_rows: Train on this many rows only, drawn evenly from the classes.
        augment: "auto" is what the literature does for the data set, and nothing for data of your own.
        cutout: Side of the square blanked out of each image.
        standardise: Bring features to mean 0 and deviation 1 of the training rows.
        root: The folder of the catalogue's data sets. No part of a run's identity.
        sha256: Of all files of your own that the run names; filled in when the configuration is resolved, and checked
            when a run resumes.
    """

    name: str | None = None
    path: str | None = None
    labels: Text | None = None
    test_path: str | None = None
    test_labels: str | None = None
    also_test: Annotated[tuple[str, ...], BeforeValidator(_one_or_more)] = ()
    drop: Annotated[tuple[Text, ...], BeforeValidator(_one_or_more)] = ()
    missing: Literal["error", "median"] = "error"
    size: int | None = Field(None, ge=1)
    split: Literal["official", "random"] = "official"
    test_share: float = Field(0.2, gt=0, lt=1)
    validation_share: float = Field(0.0, ge=0, lt=1)
    train_rows: int | None = Field(None, ge=2)
    augment: Literal["auto", "none", "crop", "crop-flip"] = "auto"
    cutout: int = Field(0, ge=0)
    standardise: bool = True
    root: str | None = None
    sha256: str | None = None

    @model_validator(mode="after")
    def _one_source(self) -> DataConfig:
        if (self.name is None) == (self.path is None):
            raise ValueError("give either name (a data set of the catalogue) or path (your own data)")
        if len(set(self.also_test)) < len(self.also_test) or self.name in self.also_test:
            raise ValueError("also_test: name other data sets than the run's own, each once")
        return self


class OptimiserConfig(_Section):
    """How parameters move.

    Attributes:
        name: "sgd", "adam" or "adamw".
        lr: The learning rate the schedule starts from (one-cycle: reaches at its top).
        momentum: Of SGD.
        nesterov: Of SGD.
        betas: Of Adam.
        weight_decay: L2 for SGD and Adam, decoupled for AdamW.
        l1: δ of δ·Σ|θ| over all parameters, the term ANL adds. Its gradient is clipped with the rest.
        clip_norm: Scale the gradient down to this norm; null for never.
    """

    name: Literal["sgd", "adam", "adamw"] = "sgd"
    lr: float = Field(0.02, gt=0, allow_inf_nan=False)
    momentum: float = Field(0.9, ge=0, lt=1)
    nesterov: bool = False
    betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: float = Field(0.0, ge=0, allow_inf_nan=False)
    l1: float = Field(0.0, ge=0, allow_inf_nan=False)
    clip_norm: float | None = Field(None, gt=0, allow_inf_nan=False)


class ScheduleConfig(_Section):
    """How the learning rate changes.

    Attributes:
        name: "cosine", "step", "one-cycle" or "constant".
        warmup: Epochs of linear warm-up.
        milestones: Epochs after which "step" multiplies the rate by gamma.
        gamma: See milestones.
        peak: Where the top of "one-cycle" is, as a share of all steps.
        final: The last rate of "cosine" and "one-cycle", as a share of lr.
    """

    name: Literal["cosine", "step", "one-cycle", "constant"] = "cosine"
    warmup: float = Field(0.0, ge=0, allow_inf_nan=False)
    milestones: tuple[int, ...] = ()
    gamma: float = Field(0.1, gt=0)
    peak: float = Field(0.3, gt=0, lt=1)
    final: float = Field(0.0, ge=0, le=1)


class RunConfig(_Section):
    """One run: several seeds that are trained side by side, or just one.

    Attributes:
        data: Which rows.
        noise: What is done to the labels of the training rows, such as "symmetric:0.4"; "none" leaves them alone.
        noise_exact: Class counts match the matrix exactly; else every label is drawn by itself.
        transition: What a correction takes as the noise: "known" is the matrix of `noise`, "estimated" is estimated
            from the noisy training rows, anything else is assumed: a noise such as "symmetric:0.4", or the file of a
            matrix.
        model: The network.
        method: The training strategy.
        loss: What is minimised.
        optimiser: How.
        schedule: With which learning rates.
        epochs: Passes over the training rows.
        batch_size: Rows of a step.
        evaluate_every: Epochs from one evaluation on the held-out rows to the next; the last is always evaluated.
        selection: Which epoch the result is taken from: "last"; "noisy-val", the best on the noisy validation rows; or
            "oracle", the best on test, which nobody can choose without the truth. All that apply are recorded.
        ema: Decay of an exponential average of the weights that is evaluated in their place; null for none.
        precision: "32-true", or "bf16-mixed": what is safe to compute in bfloat16 is.
        accelerator: "auto", "cpu", "cuda", "mps".
        seeds: One or more; each has its own split, noise, weights and order.
        save_model: Keep the weights when the run is done.
    """

    data: DataConfig
    noise: str = "none"
    noise_exact: bool = True
    transition: str = "known"
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
            raise ValueError("seeds: one is there twice")
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
        """What the run's folder is called: the same for the same computation, wherever its files lie."""
        content = self.model_dump(mode="json")
        # Files count by what is in them, which sha256 says, and not by where they are.
        del content["data"]["root"]
        for section, key in (("data", "path"), ("data", "test_path"), ("data", "labels"), ("data", "test_labels")):
            if _is_path(content[section][key]):
                content[section][key] = "file"
        for key in ("noise", "transition"):
            if _is_path(content[key]):
                content[key] = "file"
        # Runs are older than these keys: without what they ask for they stay the runs they were.
        if not content["optimiser"]["l1"]:
            del content["optimiser"]["l1"]
        if not content["data"]["also_test"]:
            del content["data"]["also_test"]
        text = json.dumps([GENERATION, content], sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def to_yaml(self) -> str:
        """The whole configuration as YAML, which `read_config` reads back to an equal one."""
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def _is_path(value: str | None) -> bool:
    """Resolved configurations have absolute paths."""
    return value is not None and Path(value).is_absolute()


def make_config(content: Mapping[str, Any], *, where: str = "the configuration") -> RunConfig:
    """A configuration from plain values.

    Raises:
        InputError: If a key is unknown (the nearest known one is named) or a value makes no sense.

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
    """The configuration in a YAML file.

    Raises:
        DataError: If the file is missing or no YAML.
        InputError: If it does not describe a run.
    """
    return make_config(read_yaml(path), where=str(path))


def explain(error: ValidationError, model: type[BaseModel]) -> str:
    """What is wrong with values that do not fit `model`; for an unknown key, with the nearest known one."""
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        *parents, key = first["loc"]
        section: Any = model
        for part in parents:
            section = _inside(section, part)
        prefix = "".join(f"{part}." for part in parents)
        return str(unknown_name("key", f"{prefix}{key}", [f"{prefix}{name}" for name in section.model_fields]))
    message = first["msg"].removeprefix("Value error, ")
    given = "" if first["type"] in ("missing", "value_error") else f", got {first['input']!r}"
    return f"{place + ': ' if place else ''}{message}{given}."


def _inside(section: Any, part: str | int) -> Any:
    """The type of a field, or of the entries of a tuple or mapping; what it is where it may also be None."""
    if isinstance(section, type) and issubclass(section, BaseModel):
        found: Any = section.model_fields[str(part)].annotation
    else:
        found = next(kind for kind in reversed(get_args(section)) if kind is not Ellipsis)
    return get_args(found)[0] if isinstance(found, UnionType) else found
