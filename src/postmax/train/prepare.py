"""From a configuration to the training, validation and test rows of each seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from postmax import data, losses
from postmax.data.own import is_table, names_label_file, read_own, with_classes
from postmax.data.reading import ReadingOptions, refuse_idle
from postmax.data.splitting import stratified_mask, stratified_rows
from postmax.data.tables import fit_encoder
from postmax.errors import DataError, InputError
from postmax.estimation import TransitionEstimate
from postmax.train.config import Choice, DataConfig, RunConfig
from postmax.train.estimates import estimated_noise, rows_to_estimate_from
from postmax.train.records import NoiseRecord
from postmax.train.scaling import Scaling
from postmax.transition import Transition, parse_noise
from postmax.transition.noisy_labels import sha256_of_labels


@dataclass(frozen=True)
class SeedData:
    """The rows of one seed.

    Attributes:
        seed: The seed.
        train: The training rows with noisy labels. Where the truth is known, `clean_labels` hold it.
        validation: The validation rows with noisy labels; None if the run keeps none.
        test: The test rows.
        noise: A record of the noise in the training labels.
        transition: The noise that a correction removes; without a correction, the noise that was put into the labels.
            None if it is not known.
        scaling: How features were filled in and scaled; None for images.
        also: The test rows of other data sets, by the name of the data set.
        estimate: The estimate that `transition` comes from; None if it was not estimated.
    """

    seed: int
    train: data.Dataset
    validation: data.Dataset | None
    test: data.Dataset
    noise: NoiseRecord
    transition: Transition | None
    scaling: Scaling | None
    also: Mapping[str, data.Dataset] = field(default_factory=dict)
    estimate: TransitionEstimate | None = None


def prepare(config: RunConfig, seed: int) -> SeedData:
    """Return the rows of one seed: split, reduced, corrupted and standardised.

    Everything is a function of the configuration and the seed.

    Raises:
        InputError: If the configuration does not fit the data.
        DataError: If the data cannot be read.
    """
    train, test = _split(config.data, seed)
    _refuse_idle_augmentation(config.data, train)
    if config.data.train_rows is not None:
        train = _thin_out(train, config.data.train_rows, seed)
    given = None
    if config.noise != "none":
        given = parse_noise(config.noise, train.num_classes, train.classes)
        noisy = given.corrupt(train.labels, seed=seed, exact=config.noise_exact)
        train = train.with_labels(noisy.labels)
    noise = _record(train, known=config.noise != "none" or _labels_are_clean(config.data))
    validation = None
    if config.data.validation_share:
        held_out = stratified_mask(train.labels, config.data.validation_share, seed=seed, key="validation")
        if not held_out.any():
            raise InputError(
                f"data.validation_share {config.data.validation_share} of {len(train)} rows is less than one row."
            )
        if held_out.all():
            raise InputError(f"data.validation_share {config.data.validation_share} leaves no row to train on.")
        validation, train = train.subset(held_out), train.subset(~held_out)
    also = {part.name: part for part in load_also(config.data)}
    scaling = None
    if isinstance(train.inputs, Tensor) and not _are_images(train.inputs):
        scaling = Scaling.fit(train.inputs, standardise=config.data.standardise)
        train, test = scaling.apply(train), scaling.apply(test)
        validation = None if validation is None else scaling.apply(validation)
        also = {name: scaling.apply(part) for name, part in also.items()}
    estimate = _estimate(config, train)
    transition = _transition(config, train, given) if estimate is None else estimate.transition
    return SeedData(seed, train, validation, test, noise, transition, scaling, also, estimate)


def views_of(config: DataConfig, train: data.Dataset) -> data.Views:
    """Return the views of the rows: how images are normalised and augmented. Features have views of their own."""
    if isinstance(train.inputs, Tensor) and not _are_images(train.inputs):
        return data.Views()
    statistics = train.statistics or data.channel_statistics(train.inputs)
    return data.views_for(config.name, statistics, config.augment, config.cutout)


def _split(config: DataConfig, seed: int) -> tuple[data.Dataset, data.Dataset]:
    train, test = load_rows(config)
    if test is not None:
        return train, test
    held_out = stratified_mask(train.labels, config.test_share, seed=seed if config.split == "random" else 0)
    if not held_out.any() or held_out.all():
        raise DataError(
            f"{train.name}: {config.test_share:.0%} of {len(train)} rows cannot be held out for test. Give more rows, "
            "another data.test_share, or a file with test rows as data.test_path."
        )
    return train.subset(~held_out), train.subset(held_out)


@lru_cache(maxsize=2)
def load_rows(config: DataConfig) -> tuple[data.Dataset, data.Dataset | None]:
    """Return training and test rows; or all rows and None where postmax makes the split. The result is cached."""
    if config.path is not None:
        return _load_own(config, config.path)
    name = config.name or ""
    refuse_idle(name, "a data set that postmax knows", config.reading)
    if config.size is not None:
        raise InputError(f"{name}: data.size is for the images of a folder, but this is a data set that postmax knows.")
    if config.split == "official":
        train = data.load(name, split="train", root=config.root)
        return train, data.load(name, split="test", root=config.root)
    if "all" not in data.splits(name):
        raise InputError(f"{name} has a published split; data.split=random is for data that has none.")
    return data.load(name, split="all", root=config.root), None


@lru_cache(maxsize=2)
def load_also(config: DataConfig) -> tuple[data.Dataset, ...]:
    """Return the test rows of the data sets in `data.also_test`.

    Raises:
        InputError: If they have other classes, or another shape, than the rows that are trained on.
        DataError: If they cannot be read.
    """
    if not config.also_test:
        return ()
    train, _ = load_rows(config)
    found = tuple(data.load(name, split="test", root=config.root) for name in config.also_test)
    first = torch.tensor([0])
    for name, part in zip(config.also_test, found, strict=True):
        if part.classes != train.classes:
            differing = (f"{b!r} instead of {a!r}" for a, b in zip(train.classes, part.classes, strict=False) if a != b)
            what = next(differing, f"{part.num_classes} instead of {train.num_classes}")
            raise InputError(
                f"data.also_test: {name} has other classes than {train.name} ({what}); "
                "name a data set with the same classes in the same order."
            )
        shapes = [tuple(rows.inputs[first].shape[1:]) for rows in (train, part)]
        if shapes[0] != shapes[1]:
            raise InputError(
                f"data.also_test: rows of {name} have the shape {shapes[1]}, those of {train.name} {shapes[0]}."
            )
    # The rows get the names in the configuration, because readings are named after them.
    return tuple(replace(part, name=name) for name, part in zip(config.also_test, found, strict=True))


def _load_own(config: DataConfig, path: str) -> tuple[data.Dataset, data.Dataset | None]:
    # Missing numbers are filled in after the split, from the training rows alone.
    reading = config.reading
    train = read_own(path, **_arguments(reading), size=config.size, min_classes=2)
    if config.test_path is None:
        return train, None
    encoder = fit_encoder(path, **vars(reading)) if is_table(path) else None
    labels = config.test_labels or (None if names_label_file(path) else config.labels)
    # The test rows may be in a file of another kind, for which some options have no meaning.
    reading = replace(reading.for_file(config.test_path), label=labels)
    test = read_own(config.test_path, **_arguments(reading), size=config.size, encoder=encoder)
    first, second = (part.inputs[torch.tensor([0])].shape[1:] for part in (train, test))
    if first != second:
        raise DataError(f"rows of {path} have the shape {tuple(first)}, those of {config.test_path} {tuple(second)}.")
    return train, with_classes(test, train.classes, merge_labels=reading.merge_labels)


def _arguments(reading: ReadingOptions) -> dict[str, Any]:
    options = vars(reading)
    return {"labels": options["label"]} | {name: value for name, value in options.items() if name != "label"}


def _refuse_idle_augmentation(config: DataConfig, train: data.Dataset) -> None:
    if not isinstance(train.inputs, Tensor) or _are_images(train.inputs):
        return
    idle = [] if config.augment in ("auto", "none") else [f"data.augment={config.augment}"]
    idle += [f"data.cutout={config.cutout}"] if config.cutout else []
    idle += ["data.small"] if config.small else []
    if idle:
        raise InputError(f"{' and '.join(idle)}: {train.name} holds features, and this is for images only.")


def _thin_out(train: data.Dataset, rows: int, seed: int) -> data.Dataset:
    if rows > len(train):
        raise InputError(f"data.train_rows is {rows}, but {train.name} has {len(train)} training rows.")
    if rows < train.num_classes:
        raise InputError(f"data.train_rows is {rows}, but {train.name} has {train.num_classes} classes.")
    return train.subset(stratified_rows(train.labels, rows, seed=seed, key="train rows"))


def _record(train: data.Dataset, *, known: bool) -> NoiseRecord:
    rate = 0.0 if known else None
    if train.clean_labels is not None:
        rate = float((train.labels != train.clean_labels).double().mean())
    return {"rows": len(train), "rate": rate, "sha256": sha256_of_labels(train.labels)}


def _transition(config: RunConfig, train: data.Dataset, given: Transition | None) -> Transition | None:
    if not losses.needs_transition(config.loss.name, config.loss.options):
        return given
    return noise_to_remove(config, train, _which(config.loss))


def noise_to_remove(config: RunConfig, train: data.Dataset, who: str) -> Transition:
    """Return the noise that the configuration knows or assumes, for a correction.

    Args:
        config: The configuration. Its transition is not "estimated".
        train: The training rows.
        who: What needs the noise, for the message.

    Raises:
        InputError: If the noise is not known.
    """
    if config.transition != "known":
        return parse_noise(config.transition, train.num_classes, train.classes)
    if config.noise != "none":
        return parse_noise(config.noise, train.num_classes, train.classes)
    if not _labels_are_clean(config.data):
        raise InputError(
            f"{who} needs the noise, which is not known for {train.name}: "
            "say transition=estimated, transition=FILE with a matrix, or assume one: transition=symmetric:0.3."
        )
    return Transition.identity(train.num_classes)


def _estimate(config: RunConfig, train: data.Dataset) -> TransitionEstimate | None:
    """Return the estimate of the noise, if the loss needs it and the configuration asks for it."""
    if config.transition != "estimated" or not losses.needs_transition(config.loss.name, config.loss.options):
        return None
    return estimated_noise(train, rows_to_estimate_from(train))


def _which(loss: Choice) -> str:
    correction = loss.options.get("correction")
    return f"loss={loss.name}" if correction is None else f"loss.correction={correction}"


def _labels_are_clean(config: DataConfig) -> bool:
    return config.name is not None and data.is_clean(config.name)


def _are_images(inputs: Tensor) -> bool:
    return inputs.dtype == torch.uint8
