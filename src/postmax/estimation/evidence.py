"""The input of an estimator: labels with probabilities or features, checked."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from postmax.errors import InputError
from postmax.estimation.crossfit import CrossFit, cross_fit
from postmax.labels import EncodedLabels, class_indices, encode_labels
from postmax.row_names import INDICES, RowNames
from postmax.wording import advice

_SUM_TOLERANCE = 1e-2


@dataclass(frozen=True)
class Evidence:
    """Noisy labels with probabilities, features, or both; or with a way to train networks on the rows.

    Attributes:
        labels: (N,) class indices.
        classes: The names of the classes.
        probabilities: (N, K) float64, predictions for rows that the model was not trained on; None if not given.
        features: (N, d) float32; None if not given.
        seed: The seed of everything random.
        given_cross_fit: Trains networks on rows that are not features; None if not given.
    """

    labels: Tensor
    classes: tuple[str | int, ...]
    probabilities: Tensor | None
    features: Tensor | None
    seed: int
    given_cross_fit: CrossFit | None = None

    @property
    def num_classes(self) -> int:
        """K."""
        return len(self.classes)

    @cached_property
    def out_of_sample(self) -> Tensor:
        """Probabilities of the noisy label: the given ones, or cross-fitted ones."""
        if self.probabilities is not None:
            return self.probabilities
        fit = self.given_cross_fit or partial(cross_fit, self.require_features("it"))
        return fit(self.labels, self.num_classes, seed=self.seed).exp()

    @property
    def cross_fit(self) -> CrossFit | None:
        """How networks are trained on the rows: as given, or on the features. None if there are only probabilities."""
        if self.given_cross_fit is not None or self.features is None:
            return self.given_cross_fit
        return partial(cross_fit, self.features)

    def require_features(self, method: str) -> Tensor:
        """Return the features.

        Raises:
            InputError: If there are none. The message says that `method` needs them.
        """
        if self.features is None:
            way_out = advice(
                python="estimate_transition(..., features=x)",
                command="give a table, or an .npz with an array x, such as embeddings of images; or another --method",
            )
            raise InputError(f"{method} needs features: {way_out}.")
        return self.features


def gather_evidence(
    probabilities: Any,
    labels: Any,
    features: Any,
    num_classes: int | None,
    seed: int,
    rows: RowNames = INDICES,
    given_cross_fit: CrossFit | None = None,
) -> Evidence:
    """Check the input of a user, and return it as evidence. `rows` is how messages call the rows of arrays.

    Raises:
        InputError: If an estimate is not possible. The message says what is wrong and where.
    """
    if labels is None:
        raise InputError("an estimate needs the noisy labels: estimate_transition(probabilities, labels).")
    if probabilities is None and features is None and given_cross_fit is None:
        raise InputError("an estimate needs out-of-sample probabilities, or features=... to compute them from.")
    p = None if probabilities is None else _probabilities(probabilities, rows)
    if p is not None and num_classes is not None and p.shape[1] != num_classes:
        raise InputError(f"the probabilities have {p.shape[1]} columns, but num_classes={num_classes}.")
    encoded = _labels(labels, p.shape[1] if p is not None else num_classes)
    x = None if features is None else _features(features, rows)
    n, k = len(encoded.codes), len(encoded.classes)
    for name, array in (("probabilities", p), ("features", x)):
        if array is not None and len(array) != n:
            raise InputError(f"{len(array)} rows of {name} but {n} labels.")
    if k < 2:
        raise InputError(f"all {n} labels are {encoded.classes[0]!r}: with one class there is no noise to estimate.")
    if n < k:
        raise InputError(f"{n} rows cannot tell how {k} classes are confused; there must be many rows of each.")
    if len(encoded.codes.unique()) < 2:
        raise InputError(f"all {n} labels are {encoded.classes[int(encoded.codes[0])]!r}; nothing can be compared.")
    return Evidence(encoded.codes, encoded.classes, p, x, seed, given_cross_fit)


def _labels(labels: Any, num_classes: int | None) -> EncodedLabels:
    if isinstance(labels, EncodedLabels):
        return labels
    encoded = encode_labels(labels)
    if num_classes is None or len(encoded.classes) == num_classes:
        return encoded
    if len(encoded.classes) > num_classes:
        raise InputError(f"there are {len(encoded.classes)} different labels, but only {num_classes} classes.")
    if isinstance(encoded.classes[0], str):
        raise InputError(
            f"only {len(encoded.classes)} of the {num_classes} classes occur, and names do not tell which are missing: "
            "give labels as column indices."
        )
    codes = class_indices(labels, num_classes)
    if int(codes.min()) > 0:
        raise InputError(
            f"the labels are {int(codes.min())}…{int(codes.max())} and there are {num_classes} classes: do they count "
            "from 0 or from 1? Give labels that count from 0 with classes=[...], the names of all classes."
        )
    return EncodedLabels(codes, tuple(range(num_classes)))


def _probabilities(given: Any, rows: RowNames) -> Tensor:
    p = _matrix(given, "probabilities", rows).double()
    if p.shape[1] < 2:
        raise InputError("probabilities need one column for each class; for two classes pass both columns.")
    negative = (p < 0).any(1)
    if negative.any():
        row = int(negative.int().argmax())
        raise InputError(f"probabilities: {rows.one(row)} has the negative entry {p[row].min():.4g}. {_LOGITS}")
    total = p.sum(1)
    off = (total - 1).abs() > _SUM_TOLERANCE
    if off.any():
        row = int(off.int().argmax())
        raise InputError(f"probabilities: {rows.one(row)} sums to {total[row]:.4g}, not to 1. {_LOGITS}")
    return p / total[:, None]


_LOGITS = "Logits become probabilities by softmax(1)."


def _features(given: Any, rows: RowNames) -> Tensor:
    values = _matrix(given, "features", rows)
    x = values.float()
    if not x.isfinite().all():
        row, column = (~x.isfinite()).nonzero()[0].tolist()
        where = _entry(row, column, rows)
        raise InputError(f"features: {where} is {values[row, column].item():.4g}. Scale the features.")
    return x


def _matrix(given: Any, name: str, rows: RowNames) -> Tensor:
    values = given.detach().cpu() if isinstance(given, Tensor) else _tensor(given, name)
    if values.is_complex():
        raise InputError(f"{name} must be real numbers, got {values.dtype}.")
    values = values.flatten(1) if values.ndim > 2 and name == "features" else values
    if values.ndim != 2 or values.shape[1] == 0:
        raise InputError(f"{name} must have one row for each label, got shape {tuple(values.shape)}.")
    values = values if values.is_floating_point() else values.double()
    bad = ~values.isfinite()
    if bad.any():
        row, column = bad.nonzero()[0].tolist()
        number = int(bad.any(1).sum())
        such = f"{number} such row{'s' if number > 1 else ''}"
        raise InputError(f"{name}: {_entry(row, column, rows)} is {values[row, column].item()} ({such}).")
    return values


def _entry(row: int, column: int, rows: RowNames) -> str:
    return f"index [{row}, {column}]" if rows == INDICES else f"index {column} of {rows.one(row)}"


def _tensor(given: Any, name: str) -> Tensor:
    """Return a tensor, also for arrays that torch refuses: read-only, byte-swapped, reversed, or of Python objects."""
    try:
        array = np.asarray(given)
        if array.dtype.kind not in "biufO":
            raise InputError(f"{name} must be real numbers, got {array.dtype}.")
        kind = array.dtype.type if array.dtype.kind in "biu" or array.dtype.itemsize < 8 else np.float64
        return torch.from_numpy(np.require(array, kind, ["C", "W"]))
    except (TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{name} must be an array of numbers: {str(error).rstrip('.')}.") from error
