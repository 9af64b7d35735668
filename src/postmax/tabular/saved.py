"""A fitted `FPMLClassifier` as one file: weights, and everything that is needed to predict with them.

The file is like that of a run (`postmax.runs.sealed_file`), and `postmax.load` reads both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from postmax.data.embedding.image_embedding import ImageEmbedding
from postmax.data.row_form import RowForm
from postmax.runs.sealed_file import DAMAGED, Sealed, damaged, seal
from postmax.tabular.columns import Encoder
from postmax.version import __version__

KIND, FORMAT = "postmax classifier", 1
# Names that no weight of a network can have.
_KNOWN, _UNDONE = "postmax/transition", "postmax/undone"


@dataclass(frozen=True)
class SavedClassifier:
    """A committee of networks, and what comes before and after it.

    Attributes:
        classes: The names of the classes.
        rows: What the rows are, and how they are read.
        encoder: How features are encoded and scaled.
        parts: What the networks of the committee are; see `postmax.tabular.trained_committee`.
        weights: Their weights, and how much each of them counts.
        loss: The loss, as `postmax.tabular.learning.LossChoice` has it, and its correction.
        transition: The noise that the loss knows, (K, K); None if it knows none.
        undone: The noise that is removed from the posterior of the label, (K, K); None if none is.
        embedding: What turns images into features; None if the rows are features.
        about: More for people: the estimated noise, the number of rows, the plugins.
        version: The version of postmax that wrote the file.
    """

    classes: tuple[str, ...]
    rows: RowForm
    encoder: Encoder
    parts: Sequence[Mapping[str, Any]]
    weights: Mapping[str, Tensor]
    loss: Mapping[str, Any]
    transition: Tensor | None = None
    undone: Tensor | None = None
    embedding: ImageEmbedding | None = None
    about: Mapping[str, Any] = field(default_factory=dict)
    version: str = __version__

    seed = 0
    seeds = (0,)
    run_id = None
    file_name = "model.safetensors"

    def to_bytes(self) -> bytes:
        """Return the content of the file. The same classifier gives the same bytes."""
        about = {
            "version": self.version,
            "classes": list(self.classes),
            "rows": self.rows.to_dict(),
            "encoder": self.encoder.to_dict(),
            "parts": list(self.parts),
            "loss": dict(self.loss),
            "embedding": None if self.embedding is None else self.embedding.to_dict(),
            "about": dict(self.about),
        }
        tensors = {name: _narrow(tensor) for name, tensor in self.weights.items()}
        return seal(KIND, FORMAT, about, {**tensors, _KNOWN: self.transition, _UNDONE: self.undone})

    @classmethod
    def of(cls, sealed: Sealed, path: Path) -> SavedClassifier:
        """Return the classifier in a file that was read.

        Raises:
            DataError: If something is missing in it.
        """
        about, tensors = sealed.about, dict(sealed.tensors)
        try:
            return cls(
                classes=tuple(about["classes"]),
                rows=RowForm.from_dict(about["rows"]),
                encoder=Encoder.from_dict(about["encoder"]),
                parts=about["parts"],
                transition=tensors.pop(_KNOWN, None),
                undone=tensors.pop(_UNDONE, None),
                weights=tensors,
                loss=about["loss"],
                embedding=None if about["embedding"] is None else ImageEmbedding.from_dict(about["embedding"]),
                about=about["about"],
                version=about["version"],
            )
        except DAMAGED as error:
            raise damaged(path, error) from error


def _narrow(tensor: Tensor) -> Tensor:
    """Return a tensor in float32 if that changes no value: networks are trained in float32 and predict in float64."""
    if tensor.dtype != torch.float64:
        return tensor
    narrow = tensor.float()
    return narrow if narrow.double().equal(tensor) else tensor
