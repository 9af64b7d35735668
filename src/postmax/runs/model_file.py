"""One trained model as one file: weights, and everything that is needed to predict with them.

The file is safetensors. Its header has one entry, `postmax`: JSON that says what the rows are, how they are prepared,
what the network is, and how its outputs become probabilities. docs/predicting.md describes it. Nothing in it can run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from postmax.data.row_form import RowForm
from postmax.methods.parts.answers import LABEL_NOISE, Composition
from postmax.runs.pixels import Pixels
from postmax.runs.sealed_file import DAMAGED, Sealed, damaged, seal, unseal
from postmax.train.scaling import Scaling
from postmax.version import __version__

FORMAT = 3
KIND = "postmax model"
# A name that no weight of a network can have.
TRANSITION = "postmax/transition"


@dataclass(frozen=True)
class SavedModel:
    """A trained model: one seed of a run.

    Attributes:
        classes: The names of the classes.
        rows: What the rows are, and how they are read.
        scaling: How features are filled in and scaled; None for images.
        pixels: How images are cropped and normalised; None for features.
        network: The name and the options of the network.
        answer: How the outputs of networks become the outputs of the model; see `postmax.methods.parts.answers`. None
            if that cannot be said: then `why_not` says why the model cannot be used.
        weights: The weights of these networks.
        loss: The name and the options of the loss.
        transition: The label noise that the loss knows, (K, K); None if it knows none.
        label_noise: The label noise that the method knows, (K, K); None if it knows none.
        precision: In which precision the networks were judged: "32-true" or "bf16-mixed".
        seed: The seed.
        seeds: All seeds of the run.
        about: More for people: the run, the method, the selection rule, the plugins.
        why_not: Why the model cannot be used; empty if it can.
        version: The version of postmax that wrote the file.
    """

    classes: tuple[str, ...]
    rows: RowForm
    scaling: Scaling | None
    pixels: Pixels | None
    network: Mapping[str, Any]
    answer: Composition | None
    weights: Mapping[str, Tensor]
    loss: Mapping[str, Any]
    transition: Tensor | None = None
    label_noise: Tensor | None = None
    precision: str = "32-true"
    seed: int = 0
    seeds: tuple[int, ...] = (0,)
    about: Mapping[str, Any] = field(default_factory=dict)
    why_not: str = ""
    version: str = __version__

    @property
    def file_name(self) -> str:
        """The name of the file: with the seed, if there are several."""
        return "model.safetensors" if len(self.seeds) == 1 else f"model-seed{self.seed}.safetensors"

    @property
    def run_id(self) -> str | None:
        """The run that the model belongs to."""
        return self.about.get("run_id")

    def to_bytes(self) -> bytes:
        """Return the content of the file. The same model gives the same bytes."""
        about = {
            "version": self.version,
            "classes": list(self.classes),
            **self.rows.to_dict(),
            "features": None if self.scaling is None else self.scaling._asdict(),
            "pixels": None if self.pixels is None else self.pixels.to_dict(),
            "model": dict(self.network),
            "answer": self.answer,
            "why_not": self.why_not,
            "loss": dict(self.loss),
            "precision": self.precision,
            "seed": self.seed,
            "seeds": list(self.seeds),
            **self.about,
        }
        tensors = {**self.weights, TRANSITION: self.transition, LABEL_NOISE: self.label_noise}
        return seal(KIND, FORMAT, about, tensors)

    @classmethod
    def read(cls, path: Path) -> SavedModel:
        """Return the model in a file.

        Raises:
            DataError: If the file is missing, damaged, was changed, is no model, or is of another format.
        """
        return cls.of(unseal(path, {KIND: FORMAT}), path)

    @classmethod
    def of(cls, sealed: Sealed, path: Path) -> SavedModel:
        """Return the model in a file that was read.

        Raises:
            DataError: If something is missing in it.
        """
        try:
            return cls._from(dict(sealed.about), sealed.tensors)
        except DAMAGED as error:
            raise damaged(path, error) from error

    @classmethod
    def _from(cls, about: dict[str, Any], tensors: dict[str, Tensor]) -> SavedModel:
        rows = RowForm.from_dict({name: about.pop(name) for name in ("shape", "table", "reading")})
        features, pixels = (about.pop(name) for name in ("features", "pixels"))
        return cls(
            classes=tuple(about.pop("classes")),
            rows=rows,
            scaling=None if features is None else Scaling(**features),
            pixels=None if pixels is None else Pixels.from_dict(pixels),
            network=about.pop("model"),
            answer=about.pop("answer"),
            weights={name: tensor for name, tensor in tensors.items() if "/" not in name},
            loss=about.pop("loss"),
            transition=tensors.get(TRANSITION),
            label_noise=tensors.get(LABEL_NOISE),
            precision=about.pop("precision"),
            seed=about.pop("seed"),
            seeds=tuple(about.pop("seeds")),
            why_not=about.pop("why_not"),
            version=about.pop("version"),
            about=about,
        )
