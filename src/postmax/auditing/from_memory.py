"""Find out which labels are wrong, from rows, from probabilities, or from a fitted classifier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from postmax.auditing.catalogue import find_all
from postmax.auditing.judged import judged
from postmax.auditing.opinion import Of, Opinion, known_noise, opinion
from postmax.auditing.result import Audit
from postmax.checking import Examined, Finding
from postmax.checking.examination import examine
from postmax.checking.from_memory import channels_first, of_arrays, of_dataset
from postmax.data import Dataset, embed_images
from postmax.data.embedding.image_embedding import USUAL
from postmax.data.frames import is_frame
from postmax.errors import InputError
from postmax.estimation.evidence import gather_evidence
from postmax.estimator import FPMLClassifier
from postmax.fitting.doubt import doubt
from postmax.fitting.label_table import label_table
from postmax.labels import encode_labels
from postmax.row_names import INDICES, RowNames

_WAYS = "audit(rows, labels), audit(probabilities=…, labels=…) or audit(model)"


def audit(
    rows: Any = None,
    labels: Any = None,
    *,
    probabilities: Any = None,
    of: Of = "label",
    embedding: str = USUAL,
    seed: int = 0,
) -> Audit:
    """Return which labels are probably wrong, and what they should be.

    Args:
        rows: An array (N, d), a data frame, uint8 images, or a fitted `FPMLClassifier`, which is asked about the rows
            that it was fitted to, at no further cost. With `probabilities`, rows are only looked at: for duplicates,
            outliers and the like.
        labels: One label for each row, of which some are wrong. A fitted classifier knows its labels.
        probabilities: (N, K) what any model says about rows that it was not trained on, with columns in the order of
            the sorted classes. Nothing is trained then.
        of: What the probabilities are of: the "label" as it was given, as every usual model learns it, or the true
            "class".
        embedding: The frozen network that turns images into features.
        seed: The seed of everything random.

    Raises:
        InputError: If rows, labels and probabilities do not fit together, or a file is given.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> import postmax as pm
        >>> x, truth = load_iris(return_X_y=True)
        >>> noisy = pm.Transition.symmetric(3, 0.2).corrupt(truth, seed=0).labels.numpy()
        >>> found = pm.audit(x, noisy)
        >>> worst = found.most_doubtful(20)
        >>> bool((truth[worst.table["row"]] != worst.table["given"]).mean() > 0.9)
        True
    """
    if isinstance(rows, FPMLClassifier):
        if probabilities is not None or labels is not None:
            raise InputError("a fitted classifier knows its labels and its probabilities: audit(model).")
        return of_classifier(rows, seed=seed)
    if isinstance(rows, str | Path):
        raise InputError(f"{rows}: files are audited by the command postmax audit, or after reading them: {_WAYS}.")
    if labels is None or (rows is None and probabilities is None):
        raise InputError(f"an audit needs rows or probabilities, and labels: {_WAYS}.")
    if probabilities is not None:
        return _of_probabilities(probabilities, _plain(labels), of, seed, rows)
    if of != "label":
        raise InputError(f"of={of!r} is for given probabilities.")
    given = _plain(labels)
    examined, features = _looked_at(rows, given), rows
    if _are_images(rows):
        images = torch.from_numpy(channels_first(np.asarray(rows)))
        features = embed_images(images, embedding).numpy()
    model = FPMLClassifier(random_state=seed).fit(features, given)
    found = [*examine(examined)]
    if _are_images(rows):  # the detectors compare features, not pixels
        examined = of_dataset(
            Dataset("the data", torch.from_numpy(features), encode_labels(given).codes, examined.classes)
        )
    return of_classifier(model, examined, found, seed=seed)


def of_classifier(
    model: FPMLClassifier,
    examined: Examined | None = None,
    findings: Sequence[Finding] = (),
    *,
    classes: tuple[str | int, ...] | None = None,
    rows: RowNames = INDICES,
    seed: int = 0,
) -> Audit:
    """Return what a fitted classifier says about the rows that it was fitted to.

    Args:
        model: The classifier.
        examined: The rows, if they are known.
        findings: What is known about the rows already.
        classes: The names of its classes, if it was fitted to numbers.
        rows: What its rows are called.
        seed: The seed of the interval.

    Raises:
        InputError: If it is not fitted.
    """
    codes = getattr(model, "given_", None)
    if codes is None:
        raise InputError(
            "this classifier is not fitted, so it has no opinion on labels: audit(model.fit(rows, labels))."
        )
    named = tuple(model.classes_.tolist()) if classes is None else classes
    posterior, labels = torch.from_numpy(model.posterior_), torch.from_numpy(codes)
    if model.estimate_ is None and model.noise is not None:
        said = known_noise(posterior, labels, model.transition_)
    else:
        said = opinion(posterior @ model.transition_.matrix, labels, named, seed=seed)
    return _result(said, codes, named, examined, findings, rows)


def _of_probabilities(probabilities: Any, labels: Any, of: Of, seed: int, rows: Any) -> Audit:
    evidence = gather_evidence(probabilities, labels, None, None, seed)
    assert evidence.probabilities is not None  # noqa: S101  (they are given)
    said = opinion(evidence.probabilities, evidence.labels, evidence.classes, of=of, seed=seed)
    examined = None if rows is None else _looked_at(rows, labels)
    findings = [] if examined is None else [*examine(examined)]
    return _result(said, evidence.labels.numpy(), evidence.classes, examined, findings)


def _result(
    said: Opinion,
    codes: npt.NDArray[np.int64],
    classes: tuple[str | int, ...],
    examined: Examined | None,
    findings: Sequence[Finding],
    rows: RowNames = INDICES,
) -> Audit:
    believed = doubt(said.posterior, codes, said.noise)
    if examined is not None:
        if len(examined.classes) != len(classes):  # a class without rows
            examined = replace(examined, classes=tuple(map(str, classes)), codes=codes[examined.places])
        findings = [*findings, *find_all(judged(examined, said.posterior, believed.right))]
    table = label_table(believed, codes, classes, rows)
    if said.estimate is None:
        rate = believed.wrong / len(codes)
        low, high = rate, rate
    else:
        rate, (low, high) = said.estimate.noise_rate, said.estimate.noise_rate_interval
    return Audit(table, rate, (low, high), said.noise, tuple(findings), classes, believed, said.estimate)


def _looked_at(rows: Any, labels: Any) -> Examined:
    return of_arrays(rows.toarray() if hasattr(rows, "toarray") else rows, labels)


def _are_images(rows: Any) -> bool:
    if is_frame(rows) or hasattr(rows, "toarray"):
        return False
    array = np.asarray(rows)
    return array.ndim in (3, 4) and array.dtype == np.uint8


def _plain(values: Any) -> Any:
    if isinstance(values, Tensor):
        return values.detach().cpu().numpy()
    return values.to_numpy() if hasattr(values, "to_numpy") else np.asarray(values)
