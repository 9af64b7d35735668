"""One trained model as one file: weights, and everything that is needed to predict with them.

The file is safetensors. Its header has one entry, `postmax`: JSON that says what the rows are, how they are prepared,
what the network is, and how its outputs become probabilities. docs/predicting.md describes it. Nothing in it can run.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor

from postmax.data.row_form import RowForm
from postmax.data.table_reading import TableReading
from postmax.errors import DataError
from postmax.files import existing_file
from postmax.methods.parts.answers import LABEL_NOISE, Composition
from postmax.runs.checkpoint import digest
from postmax.runs.pixels import Pixels
from postmax.train.scaling import Scaling
from postmax.version import __version__

FORMAT = 3
_NAME = "postmax model"
_KEY = "postmax"
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

    def to_bytes(self) -> bytes:
        """Return the content of the file. The same model gives the same bytes."""
        found = {**self.weights, TRANSITION: self.transition, LABEL_NOISE: self.label_noise}
        tensors = {name: t.detach().cpu().contiguous() for name, t in found.items() if t is not None}
        table, pixels = self.rows.table, self.pixels
        about = {
            "format": f"{_NAME} {FORMAT}",
            "version": self.version,
            "classes": list(self.classes),
            "shape": list(self.rows.shape),
            "table": None if table is None else table.to_dict(),
            "reading": self.rows.reading,
            "features": None if self.scaling is None else self.scaling._asdict(),
            "pixels": None if pixels is None else pixels.to_dict(),
            "model": dict(self.network),
            "answer": self.answer,
            "why_not": self.why_not,
            "loss": dict(self.loss),
            "precision": self.precision,
            "seed": self.seed,
            "seeds": list(self.seeds),
            **self.about,
        }
        about["sha256"] = digest(tensors, _text(about))
        # The header has one entry. The order of several entries would differ from time to time.
        return to_bytes(tensors, {_KEY: json.dumps(about)})

    @classmethod
    def read(cls, path: Path) -> SavedModel:
        """Return the model in a file.

        Raises:
            DataError: If the file is missing, damaged, was changed, is no model, or is of another format.
        """
        path = existing_file(path)
        try:
            with safe_open(path, framework="pt") as file:
                about = json.loads((file.metadata() or {}).get(_KEY, "null"))
                _check_format(path, about)
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (not a dictionary)
            changed = about.pop("sha256") != digest(tensors, _text(about))
            model = None if changed else cls._from(about, tensors)
        except DataError:
            raise
        except (SafetensorError, OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise DataError(f"{path} is damaged, or not a model of postmax ({_reason(error)}). {_AGAIN}") from error
        if model is None:
            raise DataError(f"{path} was changed or damaged after it was written: its checksum is wrong. {_AGAIN}")
        return model

    @classmethod
    def _from(cls, about: dict[str, Any], tensors: dict[str, Tensor]) -> SavedModel:
        del about["format"]
        table, features, pixels = (about.pop(name) for name in ("table", "features", "pixels"))
        rows = RowForm(
            shape=tuple(about.pop("shape")),
            table=None if table is None else TableReading.from_dict(table),
            **about.pop("reading"),
        )
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


_AGAIN = "Copy it again from where it was made."


def _text(about: Mapping[str, Any]) -> str:
    return json.dumps(about, sort_keys=True)


def _check_format(path: Path, about: Any) -> None:
    """Refuse what is no model, and models of older and newer formats."""
    name, _, number = str(about.get("format", "") if isinstance(about, dict) else "").rpartition(" ")
    if name != _NAME or not number.isdecimal():
        raise DataError(f"{path} is not a model of postmax: its header does not say so.")
    if int(number) > FORMAT:
        raise DataError(
            f"{path} has the format {number} of a newer postmax ({about.get('version', 'unknown')}); this one "
            f"({__version__}) reads up to {FORMAT}. Update it: pip install --upgrade postmax."
        )
    if int(number) < FORMAT:
        raise DataError(
            f"{path} was written by an older postmax, which did not save everything that is needed to predict. Train "
            f"again: postmax resume {shlex.quote(str(path.parent))} --restart"
        )


def _reason(error: Exception) -> str:
    return f"it has no {error}" if isinstance(error, KeyError) else str(error)
