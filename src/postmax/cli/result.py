"""The result of a run, as the terminal shows it."""

from __future__ import annotations

import shlex
from pathlib import Path

import typer

from postmax.data.own import is_table
from postmax.report.numbers import per_cent
from postmax.report.run.facts import judged_by_labels_as_given
from postmax.report.run.noise import estimate_in_words
from postmax.report.selection_words import SELECTION_IN_WORDS
from postmax.runs import RunFolder
from postmax.runs.details import read_details
from postmax.train import RunConfig


def tell_result(config: RunConfig, folder: RunFolder, page: Path) -> None:
    """Print what the rows were, their noise, how good the network is, and where everything lies."""
    result = folder.result()
    noise = result["seeds"][0]["noise"]
    details = read_details(folder, [seed["seed"] for seed in result["seeds"]])
    estimates, damage = details.estimates, details.damage.get("estimates")
    rate = "" if estimates or damage else "wrong labels: not known, "
    rate = rate if noise["rate"] is None else f"wrong labels: {noise['rate']:.1%}, "
    typer.echo(
        f"{result['train_rows']} training rows, {result['test_rows']} test rows, {len(result['classes'])} classes; "
        f"{rate}labels SHA-256 {noise['sha256'][:16]}…"
    )
    if estimates:
        typer.echo(f"noise: {estimate_in_words(estimates)}")
    if damage:
        typer.echo(f"noise: {damage}")
    for reading in result["seeds"][0]["readings"]:
        found = [seed["readings"][reading] for seed in result["seeds"]]
        rule = config.selection.replace("-", "_")
        chosen = [one[rule] for one in found]  # type: ignore[literal-required]
        name = "test accuracy" if reading == "model" else f"test accuracy, {reading}"
        typer.echo(f"{name} ({SELECTION_IN_WORDS[config.selection]}): {_spread([one['accuracy'] for one in chosen])}")
        typer.echo(f"  calibration error: {_spread([one['calibration_error'] for one in chosen])}")
    if judged_by_labels_as_given(config, result):
        typer.echo("  (both compared with the labels as given: where one is wrong, a right answer counts as an error)")
    last = [record for record in folder.metrics() if record["epoch"] == result["epochs"]]
    learnt = [record["wrong_labels_learnt"] for record in last if "wrong_labels_learnt" in record]
    recovered = [record["wrong_labels_recovered"] for record in last if "wrong_labels_recovered" in record]
    if learnt:
        typer.echo(f"wrong training labels: memorised {_spread(learnt)}, true class predicted {_spread(recovered)}")
    typer.echo(f"run: {folder.path}\nreport: {page}")
    if config.save_model:
        typer.echo(f"predict: postmax predict {shlex.quote(str(folder.path))} {_new_rows(config)}")


def _new_rows(config: RunConfig) -> str:
    """Return a name for new rows of the same kind as those of the run, as an example."""
    path = Path(config.data.path or "")
    if config.data.path is not None and path.is_dir():
        return "new-images"
    return f"new{path.suffix}" if is_table(path) else "new.npz"


def _spread(shares: list[float]) -> str:
    """Return mean and standard deviation in per cent, and the number of seeds."""
    return per_cent(shares) + (f" (n = {len(shares)})" if len(shares) > 1 else "")
