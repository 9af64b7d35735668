"""Noisy labels with their record: the clean labels, the noise, the seed, and a checksum."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from postmax.errors import DataError, InputError
from postmax.files import atomic_write, load_arrays
from postmax.labels import class_indices
from postmax.transition.checks import checked_matrix
from postmax.transition.corruption import draw_labels

_FORMAT = "postmax noisy labels 1"
_MOST_CLASSES = 10_000


def sha256_of_labels(labels: Tensor) -> str:
    """Return the SHA-256 of the labels as little-endian 64-bit integers, in row order."""
    return hashlib.sha256(labels.numpy().astype("<i8").tobytes()).hexdigest()


@dataclass(frozen=True, eq=False)
class NoisyLabels:
    """Noisy labels, and everything that is needed to draw them again.

    Attributes:
        labels: The noisy labels, int64.
        clean: The clean labels, int64.
        num_classes: K.
        definition: The kind of noise and its parameters, as a text.
        seed: The seed of the draw; None for labels that were not drawn.
        exact: Whether the counts of each class match the matrix; None if the noise is not class-conditional.
        nominal: The requested matrix; None if the noise is not class-conditional.
        classes: The names of the classes, if they are known.

    Example:
        >>> from postmax import Transition
        >>> noisy = Transition.symmetric(10, 0.4).corrupt(torch.arange(1000) % 10, seed=0)
        >>> noisy
        NoisyLabels(1000 rows, 10 classes, 40.0% wrong, sha256 080df2662ddb…)
        >>> noisy.verify()
    """

    labels: Tensor
    clean: Tensor
    num_classes: int
    definition: str
    seed: int | None
    exact: bool | None
    nominal: Tensor | None
    classes: tuple[str | int, ...] | None = None

    @cached_property
    def mask(self) -> Tensor:
        """True where the label was changed."""
        return self.labels != self.clean

    @property
    def rate(self) -> float:
        """The realised share of wrong labels."""
        return float(self.mask.double().mean()) if len(self.labels) else 0.0

    @cached_property
    def counts(self) -> Tensor:
        """(K, K): how many labels of class i became j."""
        k = self.num_classes
        return torch.bincount(self.clean * k + self.labels, minlength=k * k).reshape(k, k)

    @property
    def matrix(self) -> Tensor:
        """The realised matrix. The row of a class that does not occur is NaN."""
        return self.counts.double() / self.counts.sum(1, keepdim=True)

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the noisy labels as little-endian 64-bit integers."""
        return sha256_of_labels(self.labels)

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return (
            f"NoisyLabels({len(self)} rows, {self.num_classes} classes, {self.rate:.1%} wrong, "
            f"sha256 {self.sha256[:12]}…)"
        )

    def verify(self) -> None:
        """Draw the labels again from the clean labels, the matrix and the seed, and compare.

        Raises:
            DataError: If the labels differ from those that are drawn.
            InputError: If the noise depends on features, which are not stored.
        """
        if self.nominal is None or self.exact is None or self.seed is None:
            raise InputError(f"this noise ({self.definition}) depends on features; draw it again to verify it.")
        matrix = checked_matrix(self.nominal)
        again = draw_labels(class_indices(self.clean, len(matrix)), matrix, self.seed, exact=self.exact)
        if sha256_of_labels(again) != self.sha256:
            raise DataError(
                f"these labels are not what {self.definition}, seed {self.seed}, gives: "
                f"{int((again != self.labels).sum())} of {len(self)} rows differ."
            )

    def _check(self) -> None:
        k = self.num_classes
        if len(self.labels) != len(self.clean):
            raise InputError(f"{len(self.labels)} noisy labels for {len(self.clean)} clean ones")
        if k > max(_MOST_CLASSES, len(self.labels)):
            raise InputError(f"{k} classes for {len(self.labels)} labels")
        if self.classes is not None and len(self.classes) != k:
            raise InputError(f"{len(self.classes)} names for {k} classes")
        if self.nominal is not None and self.nominal.shape != (k, k):
            raise InputError(f"a matrix of shape {tuple(self.nominal.shape)} for {k} classes")
        if self.exact not in (None, True, False):
            raise InputError(f"exact={self.exact!r}")

    def save(self, path: str | Path) -> None:
        """Write everything into one `.npz` file, which appears when it is complete."""
        story = {
            "format": _FORMAT,
            "definition": self.definition,
            "seed": self.seed,
            "exact": self.exact,
            "num_classes": self.num_classes,
            "classes": self.classes,
            "rate": self.rate,
            "sha256": self.sha256,
            "sha256_clean": sha256_of_labels(self.clean),
        }
        arrays = {"labels": self.labels.numpy(), "clean": self.clean.numpy(), "story": np.array(json.dumps(story))}
        if self.nominal is not None:
            arrays["nominal"] = self.nominal.numpy()
        with atomic_write(path) as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]  # mypy takes the arrays for flags

    @classmethod
    def load(cls, path: str | Path) -> NoisyLabels:
        """Read a file that `save` wrote, and check the labels against the SHA-256 in it.

        Raises:
            DataError: If the file is missing, damaged, of another format, or its labels were changed.
        """
        story, arrays = _read(Path(path))
        try:
            k = int(story["num_classes"])
            loaded = cls(
                labels=class_indices(arrays["labels"], k),
                clean=class_indices(arrays["clean"], k),
                num_classes=k,
                definition=str(story["definition"]),
                seed=None if story["seed"] is None else int(story["seed"]),
                exact=story["exact"],
                nominal=torch.from_numpy(arrays["nominal"]) if "nominal" in arrays else None,
                classes=None if story["classes"] is None else tuple(story["classes"]),
            )
            loaded._check()
        except (KeyError, InputError, TypeError, ValueError) as error:
            raise DataError(f"{path} is damaged: {error}.") from error
        for name, labels in (("sha256", loaded.labels), ("sha256_clean", loaded.clean)):
            if story.get(name) != sha256_of_labels(labels):
                raise DataError(f"{path}: the labels do not have the {name} the file states; they were changed.")
        return loaded


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    arrays = load_arrays(path)
    try:
        story = json.loads(str(arrays.pop("story")))
    except (KeyError, ValueError, RecursionError) as error:
        raise DataError(f"{path} is not a file of noisy labels: its record is missing or damaged.") from error
    if not isinstance(story, dict) or story.get("format") != _FORMAT:
        raise DataError(f"{path} is not a file of noisy labels of this version ({_FORMAT!r}).")
    return story, arrays
