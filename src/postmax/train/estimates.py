"""Estimates of the noise, kept in files: the same labels of the same rows are estimated only once."""

from __future__ import annotations

import hashlib
import json
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from postmax.data import Dataset
from postmax.data.files import data_root
from postmax.data.reduced import reduced_images
from postmax.errors import DataError
from postmax.estimation import TransitionEstimate, estimate_transition
from postmax.files import atomic_write
from postmax.once import alone_with
from postmax.train.image_crossfit import cross_fit_images
from postmax.train.image_network import LEAST_SIDE
from postmax.transition import Transition
from postmax.transition.noisy_labels import sha256_of_labels

# Raise these numbers when the estimate for the same features, or for the same images, changes.
_GENERATION, _IMAGE_GENERATION = 1, 1
# Enough for an interval, by Student's t, and little beside the time that the estimate itself takes.
REPLICATES = 20
# Larger images would take longer, and the small network that learns them is not made for them.
_SIDE = 32


def rows_to_estimate_from(train: Dataset) -> Tensor:
    """Return the rows from which the noise is estimated: features as they are, or images that are not large.

    Images of less than 9×9 pixels are too small for a convolutional network. Their pixels are features.
    """
    inputs = train.inputs
    if not isinstance(inputs, Tensor) and inputs[torch.tensor([0])].dim() == 2:
        inputs = inputs[torch.arange(len(inputs))]
    if isinstance(inputs, Tensor) and inputs.dtype != torch.uint8:
        return inputs
    images = reduced_images(inputs, _SIDE)
    return images if min(images.shape[2:]) >= LEAST_SIDE else images.flatten(1).float()


def are_images(rows: Tensor) -> bool:
    """Return whether networks for images are trained on these rows."""
    return rows.dtype == torch.uint8


def estimated_noise(train: Dataset, rows: Tensor) -> TransitionEstimate:
    """Return the noise of the training labels with its intervals, estimated from the training rows alone.

    An estimate takes a minute for 50 000 rows of features and several for as many images, so it is kept in the folder
    of the data sets. If several processes need the same estimate, one of them estimates.

    Args:
        train: The training rows with their noisy labels.
        rows: What `rows_to_estimate_from` returns for them.

    Raises:
        InputError: If no estimate is possible from these rows.
        DataError: If the kept estimate is damaged or cannot be read.
    """
    path = kept_at(train, rows)
    with ExitStack() as stack:
        kept = _read(path, train.num_classes)
        if not _is_whole(kept):
            # If the folder cannot be written, the run goes on, and the next one estimates again.
            with suppress(OSError, DataError):
                stack.enter_context(alone_with(path, what="an estimate of the noise"))
            kept = _read(path, train.num_classes)
        if not _is_whole(kept):
            found = _estimate(train, rows)
            # A matrix that was kept stays, so that a run that used it before goes on with exactly the same numbers.
            # The text is read back, so that a resumed run uses exactly the same numbers as this one.
            kept = json.loads(json.dumps({**found.to_dict(), **kept}))
            _write(path, kept)
    return _with_names(TransitionEstimate.from_dict(kept, "the training labels"), train.classes)


def _estimate(train: Dataset, rows: Tensor) -> TransitionEstimate:
    estimate = partial(estimate_transition, None, train.labels, classes=train.classes, replicates=REPLICATES, seed=0)
    return estimate(cross_fit=partial(cross_fit_images, rows)) if are_images(rows) else estimate(features=rows)


def is_kept(train: Dataset, rows: Tensor) -> bool:
    """Return whether a run finds an estimate for these rows and labels, so that it makes none.

    A damaged one is found too: the run stops there and names it.
    """
    try:
        return _is_whole(_read(kept_at(train, rows), train.num_classes))
    except DataError:
        return True


def kept_at(train: Dataset, rows: Tensor) -> Path:
    """Return the file in which the estimate for these rows and labels is kept."""
    content = hashlib.sha256(rows.contiguous().numpy().tobytes()).hexdigest()
    parts = [_GENERATION, content, sha256_of_labels(train.labels), train.num_classes]
    key = json.dumps([*parts, "images", _IMAGE_GENERATION, *rows.shape] if are_images(rows) else parts)
    return data_root() / "estimates" / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.json"


def _is_whole(kept: dict[str, Any]) -> bool:
    """Return whether this is an estimate with its intervals. An older version kept the matrix alone."""
    return "format" in kept


def _read(path: Path, num_classes: int) -> dict[str, Any]:
    """Return a kept estimate, checked; nothing if none is kept."""
    if not path.exists():
        return {}
    try:
        kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        found = Transition(kept["matrix"]).num_classes
        if "format" in kept:
            TransitionEstimate.from_dict(kept, str(path))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, TypeError, KeyError) as error:
        raise _damaged(path, str(error)) from error
    if found != num_classes:
        raise _damaged(path, f"it is about {found} classes, not {num_classes}")
    return kept


def _damaged(path: Path, reason: str) -> DataError:
    return DataError(f"{path} is damaged ({reason}); delete it, and the noise is estimated again.")


def _write(path: Path, kept: dict[str, Any]) -> None:
    # If the folder cannot be written, the run goes on, and the next one estimates again.
    with suppress(OSError, DataError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as file:
            file.write(json.dumps(kept).encode())


def _with_names(found: TransitionEstimate, classes: tuple[str, ...]) -> TransitionEstimate:
    """Return the estimate with the names of these classes: the same rows may have been read with other names."""
    names = dict(zip(found.classes, classes, strict=True))
    unidentified: dict[str | int, str] = {names[name]: reason for name, reason in found.unidentified.items()}
    return replace(found, classes=classes, unidentified=unidentified)
