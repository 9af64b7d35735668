"""The page of a single run."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from postmax.estimation import TransitionEstimate
from postmax.report.content import NoiseMatrix
from postmax.report.noise_hashes import noise_hashes
from postmax.report.numbers import from_to, per_cent, ranges, thousands
from postmax.report.page import make_folder, write_page
from postmax.report.pictures.run_curves import Curves, curves_of
from postmax.report.run import facts
from postmax.report.run.calibration import calibration_row, epochs_differ
from postmax.report.run.classes import ClassResults, class_results
from postmax.report.run.columns import column_table
from postmax.report.run.noise import estimate_in_words, noise_part
from postmax.report.run.pictures import draw
from postmax.report.selection_words import SELECTION_IN_WORDS, headline_first
from postmax.runs.details import read_details
from postmax.runs.folder import RunFolder
from postmax.train.config import RunConfig
from postmax.train.records import DataRecord, Evaluation, RunResult, SeedConfusions
from postmax.wording import command_line


@dataclass(frozen=True)
class SelectedEpoch:
    """The results of one reading under one selection rule, as texts."""

    rule: str
    accuracy: str
    calibration_error: str
    epoch: str


@dataclass(frozen=True)
class ReadingResults:
    """The results of one reading: the headline first, the oracle last; and the results of each class."""

    name: str
    label: str
    about: str
    epochs: tuple[SelectedEpoch, ...]
    classes: ClassResults | None


def write_run_page(config: RunConfig, run: RunFolder) -> Path:
    """Write report.html and its plots into the folder of a run that is done.

    The same run gives the same bytes. A run of an older version of postmax has recorded less; the page says what it
    lacks. It also says where a file beside the result is damaged, and shows all the rest.

    Args:
        config: The configuration of the run.
        run: The folder of the run.

    Returns:
        The path of the page.

    Raises:
        DataError: If the run is not done, its result or its metrics are damaged, or the folder cannot be written.
    """
    result = run.result()
    make_folder(run.path)
    rule = config.selection.replace("-", "_")
    with command_line():  # the page shows commands, also if a program writes it
        details = read_details(run, [seed["seed"] for seed in result["seeds"]])
    data, estimates = details.data, details.estimates
    readings = _readings(config, result, details.confusions, data)
    labels = {one.name: one.label for one in readings}
    curves = curves_of(run.metrics(), list(labels.items()))
    selected = [one["epoch"] for one in _evaluations(result, "model", config.selection)]
    noise = noise_part(config, result, estimates, damage=details.damage.get("estimates", ""))
    confusions = {
        one.name: NoiseMatrix(f"Confusions, {one.label}", tuple(result["classes"]), one.classes.shares)
        for one in readings
        if one.classes is not None
    }
    matrix = None if noise.matrix is None else noise.matrix.picture
    as_given = facts.judged_by_labels_as_given(config, result)
    return write_page(
        "run.html.jinja",
        run.path,
        title=facts.title(config),
        answer=_answer(config, result, estimates),
        as_given=as_given,
        results=readings,
        seeds=_each_seed(config, result, list(labels)),
        number_of_seeds=len(result["seeds"]),
        data=facts.data_facts(config, result, data),
        columns=column_table(data),
        training=facts.training_facts(config, result),
        noise=noise,
        damage=details.damage,
        about_curves=_about_curves(config, result, curves, selected),
        calibration=[calibration_row(result, one.name, one.label, labels_may_be_wrong=as_given) for one in readings],
        other_epochs=epochs_differ(result, rule),
        pictures=draw(result, labels, curves, selected, matrix, confusions, run.path),
        again=f"postmax resume {shlex.quote(str(run.path))} --restart",
        elsewhere="postmax train --config run.yaml" + (" data.path=FILE" if config.data.path is not None else ""),
        configuration=_settings(config),
        environment=result["environment"],
        hashes=noise_hashes([{seed["seed"]: seed["noise"] for seed in result["seeds"]}]),
        run_id=result["run_id"],
        seconds=result["seconds"],
        numbers=f"Seed{'s' if len(config.seeds) > 1 else ''} {ranges(sorted(config.seeds))}",
    )


def _settings(config: RunConfig) -> str:
    """Return all settings as a configuration file, without the folder of the data sets on this machine."""
    return config.model_copy(update={"data": config.data.model_copy(update={"root": None})}).to_yaml()


def _evaluations(result: RunResult, reading: str, rule: str) -> list[Evaluation]:
    """Return the evaluation of each seed under a selection rule; an empty list if the rule was not recorded."""
    found = (seed["readings"][reading].get(rule.replace("-", "_")) for seed in result["seeds"])
    return [cast("Evaluation", one) for one in found if one is not None]


def _answer(config: RunConfig, result: RunResult, estimates: Sequence[TransitionEstimate]) -> str:
    """Return the result in one or two sentences."""

    def accuracy(reading: str) -> str:
        return per_cent([one["accuracy"] for one in _evaluations(result, reading, config.selection)])

    seeds = len(result["seeds"])
    number = "one seed" if seeds == 1 else f"mean ± standard deviation of n = {seeds} seeds"
    rows = f"{thousands(result['test_rows'])} test rows"
    text = f"Test accuracy {accuracy('model')} on {rows} ({number}, {SELECTION_IN_WORDS[config.selection]})."
    if "uncorrected" in result["seeds"][0]["readings"]:
        text += f" Without the posterior correction, the same networks reach {accuracy('uncorrected')}."
    rates = [seed["noise"]["rate"] for seed in result["seeds"]]
    if known := [rate for rate in rates if rate]:
        happened = "are wrong" if config.data.path is None else "were changed by this run"
        text += f" {per_cent(known if len(set(known)) > 1 else known[:1])} of the training labels {happened}."
    if estimates:
        text += f" Noise in the training labels: {estimate_in_words(estimates)}."
    return text


def _readings(
    config: RunConfig, result: RunResult, confusions: Sequence[SeedConfusions], data: DataRecord | None
) -> list[ReadingResults]:
    names = list(result["seeds"][0]["readings"])
    return [
        ReadingResults(
            name=name,
            label=facts.reading_label(name, names),
            about=facts.reading_in_words(name, names, config),
            epochs=_selected_epochs(config, result, name),
            classes=class_results(
                result["classes"],
                confusions,
                data,
                name,
                config.selection.replace("-", "_"),
                own_rows=name.removesuffix("-uncorrected") not in config.data.also_test,
            ),
        )
        for name in names
    ]


def _selected_epochs(config: RunConfig, result: RunResult, reading: str) -> tuple[SelectedEpoch, ...]:
    epochs = []
    for rule in sorted(SELECTION_IN_WORDS, key=lambda rule: headline_first(rule, config.selection)):
        if found := _evaluations(result, reading, rule):
            words = SELECTION_IN_WORDS[rule].partition(":")[0]  # the page itself explains the oracle
            epochs.append(
                SelectedEpoch(
                    rule=f"{words[0].upper()}{words[1:]}",
                    accuracy=per_cent([one["accuracy"] for one in found]),
                    calibration_error=per_cent([one["calibration_error"] for one in found]),
                    epoch=from_to([one["epoch"] for one in found]),
                )
            )
    return tuple(epochs)


def _each_seed(config: RunConfig, result: RunResult, readings: Sequence[str]) -> list[tuple[int, list[str]]]:
    """Return the accuracy of every reading under the headline's rule, seed by seed."""
    columns = [[one["accuracy"] for one in _evaluations(result, name, config.selection)] for name in readings]
    return [
        (seed["seed"], [per_cent([column[place]]) for column in columns]) for place, seed in enumerate(result["seeds"])
    ]


def _about_curves(config: RunConfig, result: RunResult, curves: Sequence[Curves], selected: Sequence[int]) -> str:
    """Return how to read the learning curves: only about what is drawn."""
    parts = [f"{plot.title}: {plot.about}" for plot in curves]
    epoch = f"epoch {selected[0]}" if len(set(selected)) == 1 else f"epochs {from_to(selected)}"
    rule = SELECTION_IN_WORDS[config.selection].partition(":")[0]
    parts.append(f"The dotted line marks where the result is taken from: {epoch}, {rule}.")
    if len(result["seeds"]) > 1:
        parts.append("Lines are means over the seeds, bands one standard deviation.")
    if any(len({line.band for line in plot.lines}) < len(plot.lines) for plot in curves):
        parts.append("A dashed line lies exactly on another line.")
    return " ".join(parts)
