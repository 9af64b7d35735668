"""Find trained models in files and folders: `postmax.load`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from postmax.data.own import is_table
from postmax.errors import DataError, InputError
from postmax.runs import model_file
from postmax.runs.folder import RunFolder
from postmax.runs.predictor import Predictor
from postmax.runs.remedies import start_again
from postmax.runs.sealed_file import unseal
from postmax.runs.trained import Saved, Trained
from postmax.runs.trained_model import TrainedModel
from postmax.tabular import saved as classifier_file
from postmax.tabular.trained_committee import TrainedCommittee

_FILES = "model*.safetensors"
_FORMATS = {model_file.KIND: model_file.FORMAT, classifier_file.KIND: classifier_file.FORMAT}
_OTHER_FILES = (".npz", ".npy", ".onnx", ".pt", ".pth", ".pkl", ".joblib", ".json", ".yaml", ".yml", ".zip", ".xlsx")


def load(path: str | Path, *, seed: int | None = None, device: str = "auto", precision: str | None = None) -> Predictor:
    """Return a finished run, or what `FPMLClassifier.save` wrote, as a `Predictor`.

    A run with several seeds has several models. Their posteriors are averaged, which is more accurate than one of them.
    Test rows of one seed may be training rows of another one, so do not judge the average on the rows of the run.

    Args:
        path: The folder of a run, a folder with its model files, or one model file.
        seed: The seed whose model is to be used alone.
        device: "cpu", "cuda", "cuda:1", "mps", or "auto" for a GPU if there is one.
        precision: "32-true" computes in float32. "bf16-mixed" computes in bfloat16 where that is safe. By default it is
            what the run was judged in.

    Raises:
        DataError: If there is no such run, it is not finished, its models were not saved, or a file is damaged or of a
            newer version of postmax.
        InputError: If there is no such seed, or the device or the precision cannot be used.

    Example:
        >>> import tempfile, postmax as pm
        >>> from postmax.runs import execute
        >>> from postmax.train import make_config
        >>> folder = Path(tempfile.mkdtemp()) / "run"
        >>> config = make_config(
        ...     {
        ...         "data": {"name": "breast-cancer"},
        ...         "noise": "pair:0.3",
        ...         "epochs": 20,
        ...         "loss": {"correction": "forward"},
        ...     }
        ... )
        >>> _ = execute(config, folder)
        >>> predictor = pm.load(folder)
        >>> rows = pm.data.load("breast-cancer", split="all").inputs[:3]
        >>> predictor.predict(rows)
        array(['malignant', 'malignant', 'malignant'], dtype='<U9')
    """
    path = Path(path).expanduser()
    files = _files(path)
    if precision not in (None, "32-true", "bf16-mixed"):
        raise InputError(f"precision is 32-true or bf16-mixed, not {precision!r}.")
    models = sorted((_read(file, precision) for file in files), key=lambda one: one.saved.seeds.index(one.saved.seed))
    if seed is not None:
        _check_seed(path, seed, [model.saved.seed for model in models])
        models = [model for model in models if model.saved.seed == seed]
    elif not path.is_file():
        _check_complete(path, [model.saved for model in models])
    return Predictor(models, device=device, name=str(path))


def predictor_of(saved: classifier_file.SavedClassifier) -> Predictor:
    """Return a classifier as a `Predictor`."""
    return Predictor([TrainedCommittee(saved)], name="a classifier")


def _read(path: Path, precision: str | None) -> Trained:
    sealed = unseal(path, _FORMATS)
    if sealed.kind == model_file.KIND:
        return TrainedModel(model_file.SavedModel.of(sealed, path), precision)
    return TrainedCommittee(classifier_file.SavedClassifier.of(sealed, path))


def _files(path: Path) -> Sequence[Path]:
    """Return the model files of a folder, or the file itself."""
    if path.is_file():
        if path.suffix.lower() in _OTHER_FILES or is_table(path):
            raise DataError(
                f"{path} is not a model. Give the folder of a run, such as postmax-results/runs/ID, or its "
                "model.safetensors."
            )
        return [path]
    if not path.is_dir():
        raise DataError(
            f"{path} does not exist. Give the folder of a fit, such as postmax-models/NAME, or of a run, such as "
            "postmax-results/runs/ID."
        )
    files = sorted(path.glob(_FILES))
    if files:  # a run writes them at its end
        return files
    run = RunFolder(path)
    if run.state in ("started", "failed"):
        raise DataError(_not_finished(run))
    if run.state == "done":
        if not run.config().save_model:
            raise DataError(f"{path}: this run kept no model, because save_model is false.")
        raise DataError(f"{path} has lost its model file. {start_again(path)}")
    inside = path / "runs" if (path / "runs").is_dir() else path
    runs = sorted((entry for entry in inside.iterdir() if any(entry.glob(_FILES))), key=_newest)
    if runs:
        raise DataError(f"{path} is not a run but holds runs. Give one of them; the newest is {runs[-1]}.")
    raise DataError(f"{path} is not the folder of a run, and it has no model.safetensors.")


def _newest(folder: Path) -> float:
    return folder.stat().st_mtime


def _not_finished(run: RunFolder) -> str:
    if run.state == "failed":
        return f"{run.path}: the run failed, so it has no model. {run.failure()}"
    return f"{run.path}: the run is not finished. Finish it: postmax resume {shlex.quote(str(run.path))}"


def _check_seed(path: Path, seed: int, seeds: Sequence[int]) -> None:
    if seed not in seeds:
        raise InputError(f"{path} has no model of the seed {seed}; it has {', '.join(map(str, seeds))}.")


def _check_complete(path: Path, saved: Sequence[Saved]) -> None:
    """Check that all models are there and belong together."""
    runs = {model.run_id for model in saved}
    if len(runs) > 1:
        raise DataError(f"{path} has models of different runs. Give one file, or a folder for each run.")
    lacking = [seed for seed in saved[0].seeds if seed not in {model.seed for model in saved}]
    if lacking:
        raise DataError(
            f"{path}: the models of the seeds {', '.join(map(str, lacking))} are missing. Copy them too, or choose a "
            f"seed that is there: {', '.join(str(model.seed) for model in saved)}."
        )
