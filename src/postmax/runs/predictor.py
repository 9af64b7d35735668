"""A trained model that predicts: class names and probabilities for arrays, data frames, files and folders of images."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from postmax.data.new_rows import open_rows
from postmax.data.number_text import Decimal
from postmax.data.row_form import NewReading, NewRows, RowForm
from postmax.data.table_encoder import Unknown
from postmax.errors import DataError, InputError
from postmax.estimation.threads import one_thread
from postmax.files import atomic_write, not_written
from postmax.runs.trained import Trained
from postmax.train.evaluation import ROWS_AT_ONCE
from postmax.train.precision import check_precision
from postmax.train.repeatable import repeatable_torch

if TYPE_CHECKING:
    from postmax.runs.export import Exported

_DEVICES = ("cpu", "cuda", "mps")

Probabilities = npt.NDArray[np.float32]


class ReadingArguments(TypedDict, total=False):
    """How rows are read; see `postmax.data.row_form.NewReading`. What is not given is as it was in training."""

    drop: Sequence[str]
    missing: Literal["error", "median"]
    decimal: Decimal
    encoding: str
    unknown: Unknown


@dataclass(frozen=True)
class Predicted:
    """What is predicted for some rows.

    Attributes:
        classes: The names of the most probable classes, (N,).
        probabilities: P(true class | row), (N, K).
        kept: The columns of the rows that were asked for, and "file" for images of a folder.
    """

    classes: npt.NDArray[np.str_]
    probabilities: Probabilities
    kept: Mapping[str, Any]


class Predictor:
    """A trained model, with everything that is needed to predict. `postmax.load` makes it.

    Rows may be

    * a CSV, Parquet or Arrow file or a data frame (pandas, polars, pyarrow, or a dictionary of columns): columns are
      found by their names, in any order. Columns that the model does not use, the label among them, are ignored;
    * an array, a tensor, a `Dataset`, an `.npz`, `.npy` or IDX file: features (N, d) in the order of `features`, before
      any scaling, or uint8 images;
    * a folder of images, with or without subfolders, in the order of their paths.

    Every method that takes rows takes these options: `missing="median"` fills in the medians of the training rows,
    `unknown="ignore"` accepts categories that the training rows did not have, `decimal` and `encoding` say how a CSV
    file is written, and `drop` has no effect on the predictions. By default all is as it was in training.

    Attributes:
        classes_: The names of the classes, in the order of the columns of probabilities.
        features: The names of the features, if the training rows were a table.
        form: What a row is, and how it is read.
        seeds: The seeds whose models are averaged.
        device: Where the networks are.

    Args:
        models: The models. The mean of their posteriors is used.
        device: See `postmax.load`.
        name: What it was loaded from.
    """

    def __init__(self, models: Sequence[Trained], *, device: str = "auto", name: str = "a model") -> None:
        self.name = name
        self.device = _device(device, any_device=all(model.any_device for model in models))
        for wanted in {model.precision for model in models}:
            check_precision(wanted, self.device)
        self.models = [model.to(self.device) for model in models]
        saved = [model.saved for model in models]
        self.form: RowForm = saved[0].rows
        # As in training: a second thread slows small networks down, and sums depend on the number of threads.
        self._one_thread = self.device.type == "cpu" and self.models[0].is_small
        self.classes_: npt.NDArray[np.str_] = np.array(saved[0].classes)
        self.seeds = tuple(one.seed for one in saved)

    @property
    def features(self) -> tuple[str, ...] | None:
        """The names of the features, in their order; None if they have none."""
        return None if self.form.table is None else self.form.table.encoder.features

    def predict(self, rows: Any, **reading: Unpack[ReadingArguments]) -> npt.NDArray[np.str_]:
        """Return the name of the most probable class of each row, (N,)."""
        names: npt.NDArray[np.str_] = self.classes_[self.predict_proba(rows, **reading).argmax(1)]
        return names

    def predict_proba(self, rows: Any, **reading: Unpack[ReadingArguments]) -> Probabilities:
        """Return P(true class | row), (N, K), in the order of `classes_`. If the noise was corrected, it is gone."""
        return np.concatenate([found.probabilities for found in self.stream(rows, _reading(reading))[1]])

    def label_proba(self, rows: Any, **reading: Unpack[ReadingArguments]) -> Probabilities:
        """Return P(label as given | row), (N, K), noise included. It tells how surprising a given label is."""
        opened = open_rows(rows, self.form, _reading(reading))
        return np.concatenate([self._probabilities(block, labels=True) for block in opened.blocks])

    def stream(self, rows: Any, reading: NewReading | None = None) -> tuple[tuple[str, ...], Iterator[Predicted]]:
        """Return the columns that are ignored, and the predictions block by block while a file is read.

        Args:
            rows: The rows, which may be a file that is larger than the memory.
            reading: How they are read.
        """
        opened = open_rows(rows, self.form, reading or NewReading())

        def predictions() -> Iterator[Predicted]:
            for block in opened.blocks:
                probabilities = self._probabilities(block)
                yield Predicted(self.classes_[probabilities.argmax(1)], probabilities, block.kept)

        return opened.ignored, predictions()

    @torch.no_grad()
    def _probabilities(self, block: NewRows, *, labels: bool = False) -> Probabilities:
        parts = [np.zeros((0, len(self.classes_)), np.float32)]
        with repeatable_torch(), one_thread(self._one_thread):
            # Batches are as large as those in which a run is judged, so that the numbers are the same bit for bit.
            for start, rows in enumerate(block.inputs.split(ROWS_AT_ONCE)):
                outputs = [self._outputs(model, rows) for model in self.models]
                self._check_finite(outputs, block, start * ROWS_AT_ONCE)
                pairs = zip(self.models, outputs, strict=True)
                found = [model.label_posterior(o) if labels else model.posterior(o) for model, o in pairs]
                mean = found[0] if len(found) == 1 else torch.stack(found).mean(0)
                parts.append(mean.float().cpu().numpy())
        return np.concatenate(parts)

    def _outputs(self, model: Trained, rows: Tensor) -> Tensor:
        # Features are scaled in float64, which some GPUs do not have.
        prepared = model.prepared(rows.to(self.device) if self.form.are_images else rows).to(self.device)
        outputs: Tensor = model.answer(prepared)
        return outputs

    def _check_finite(self, outputs: Sequence[Tensor], block: NewRows, start: int) -> None:
        finite = torch.stack([found.isfinite().all(1) for found in outputs]).all(0)
        if not finite.all():
            row = block.names.one(start + int((~finite).int().argmax()))
            raise DataError(
                f"{row}: the outputs of the model are not finite, because its values are too far from those of the "
                "training rows."
            )

    def save(self, folder: str | Path) -> None:
        """Write the model files into a folder, which is made if it does not exist. `postmax.load` reads it.

        Raises:
            DataError: If the folder cannot be written.
        """
        folder = Path(folder).expanduser()
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise not_written(folder, error) from error
        for model in self.models:
            with atomic_write(folder / model.saved.file_name) as file:
                file.write(model.saved.to_bytes())

    def export(self, path: str | Path) -> Exported:
        """Write the model for programs without postmax: `.onnx`, or `.safetensors` with a JSON file beside it.

        An ONNX file takes features before they are scaled, or uint8 images, and gives P(true class | row): scaling,
        networks and correction are inside. It is compared with this model before it gets its name.

        Raises:
            InputError: If the name ends in something else, or the model cannot be written in this form.
        """
        from postmax.runs.export import export  # noqa: PLC0415  (it needs more packages)

        return export(self, Path(path).expanduser())

    def __repr__(self) -> str:
        seeds = f", mean of {len(self.seeds)} seeds" if len(self.seeds) > 1 else ""
        return f"Predictor({self.name!r}, {len(self.classes_)} classes, {self.form}{seeds})"


def _reading(arguments: ReadingArguments) -> NewReading:
    options: dict[str, Any] = dict(arguments)
    if "drop" in options:
        options["drop"] = tuple(options["drop"])
    return NewReading(**options)


def _device(name: str, *, any_device: bool) -> torch.device:
    if name == "auto":
        found = torch.accelerator.current_accelerator() if any_device and torch.accelerator.is_available() else None
        return found or torch.device("cpu")
    if str(name).partition(":")[0] not in _DEVICES:
        raise InputError(f"device is auto, cpu, cuda, cuda:1 for the second GPU, or mps; not {name!r}.")
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"device {name!r} cannot be used here: {reason}") from error
    if device.type != "cpu" and not any_device:
        raise InputError(f"this model computes in float64, and only on the CPU: leave out device={name!r}.")
    return device
