"""The page of a single run."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np

from postmax.report import run_facts
from postmax.report.content import Group, NoiseMatrix, Series
from postmax.report.noise_hashes import noise_hashes
from postmax.report.numbers import from_to, per_cent, ranges
from postmax.report.page import make_folder, write_page
from postmax.report.pictures import traces
from postmax.report.pictures.canvas import colours, house_style, short
from postmax.report.pictures.gallery import (
    Legend,
    Picture,
    curve_pictures,
    reliability_pictures,
    transition_pictures,
)
from postmax.report.selection_words import SELECTION_IN_WORDS, headline_first
from postmax.report.settings import common_settings, settings_as_yaml
from postmax.runs.folder import RunFolder
from postmax.train.config import RunConfig
from postmax.train.records import EpochRecord, Evaluation, RunResult

# The measures of training, which are the same for all readings of a run.
_OF_TRAINING = (traces.MEMORISED, traces.RIGHT, traces.RECOVERED)


@dataclass(frozen=True)
class SelectedEpoch:
    """The results of one reading under one selection rule, as texts."""

    rule: str
    accuracy: str
    calibration_error: str
    epoch: str


@dataclass(frozen=True)
class ReadingResults:
    """The results of one reading: the headline first, the oracle last."""

    label: str
    about: str
    epochs: tuple[SelectedEpoch, ...]


@dataclass(frozen=True)
class RunPictures:
    """The plots of the page of a run."""

    key: Legend
    curves: list[Picture]
    more_curves: list[Picture]
    noise: list[Picture]
    reliability: list[Picture]


def write_run_page(config: RunConfig, run: RunFolder) -> Path:
    """Write report.html and its plots into the folder of a run that is done.

    The same run gives the same bytes.

    Args:
        config: The configuration of the run.
        run: The folder of the run.

    Returns:
        The path of the page.

    Raises:
        DataError: If the run is not done, its record is damaged, or the folder cannot be written.
    """
    result = run.result()
    make_folder(run.path)
    readings = list(result["seeds"][0]["readings"])
    return write_page(
        "run.html.jinja",
        run.path,
        title=run_facts.title(config),
        summary=_summary(config, result),
        data=run_facts.data_facts(config, result),
        noise_facts=run_facts.noise_facts(config, result),
        training=run_facts.training_facts(config, result),
        truth_is_known=run_facts.truth_is_known(result),
        results=[_results(config, result, name) for name in readings],
        seeds=_each_seed(config, result, readings),
        number_of_seeds=len(result["seeds"]),
        pictures=_draw(config, result, run),
        about_curves=_about_curves(result, run),
        assumes_noise=run_facts.assumes_noise(config),
        command=f"postmax resume {shlex.quote(str(run.path))} --restart",
        configuration=settings_as_yaml(common_settings([config])),
        environment=result["environment"],
        noise=noise_hashes([{seed["seed"]: seed["noise"] for seed in result["seeds"]}]),
        seconds=result["seconds"],
        numbers=f"Seed{'s' if len(config.seeds) > 1 else ''} {ranges(sorted(config.seeds))}",
    )


def _evaluations(result: RunResult, reading: str, rule: str) -> list[Evaluation]:
    """Return the evaluation of each seed under a selection rule; an empty list if the rule was not recorded."""
    found = (seed["readings"][reading].get(rule.replace("-", "_")) for seed in result["seeds"])
    return [cast("Evaluation", one) for one in found if one is not None]


def _summary(config: RunConfig, result: RunResult) -> str:
    def accuracy(reading: str) -> str:
        return per_cent([one["accuracy"] for one in _evaluations(result, reading, config.selection)])

    seeds = len(result["seeds"])
    number = "one seed" if seeds == 1 else f"mean ± standard deviation of {seeds} seeds"
    text = f"Test accuracy {accuracy('model')} ({number}, {SELECTION_IN_WORDS[config.selection]})."
    if "uncorrected" in result["seeds"][0]["readings"]:
        text += f" Without the posterior correction, the same networks reach {accuracy('uncorrected')}."
    return text


def _results(config: RunConfig, result: RunResult, reading: str) -> ReadingResults:
    readings = list(result["seeds"][0]["readings"])
    rules = sorted(SELECTION_IN_WORDS, key=lambda rule: headline_first(rule, config.selection))
    epochs = []
    for rule in rules:
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
    about = run_facts.reading_in_words(reading, readings, config)
    return ReadingResults(run_facts.reading_label(reading, readings), about, tuple(epochs))


def _each_seed(config: RunConfig, result: RunResult, readings: list[str]) -> list[tuple[int, list[str]]]:
    """Return the accuracy of every reading under the headline's rule, seed by seed."""
    columns = [[one["accuracy"] for one in _evaluations(result, name, config.selection)] for name in readings]
    return [
        (seed["seed"], [per_cent([column[place]]) for column in columns]) for place, seed in enumerate(result["seeds"])
    ]


def _draw(config: RunConfig, result: RunResult, run: RunFolder) -> RunPictures:
    readings = list(result["seeds"][0]["readings"])
    metrics = tuple(run.metrics())
    series = tuple(
        Series(
            label=run_facts.reading_label(name, readings),
            # Training does not depend on the reading, so its measures are drawn once, with the first reading.
            metrics=metrics if name == readings[0] else tuple(map(_without_training, metrics)),
            reliability=tuple(seed["readings"][name]["reliability"] for seed in result["seeds"]),
            reading=name,
        )
        for name in readings
    )
    group = Group("", "", series)
    chosen = colours(tuple(one.label for one in series))
    with house_style():
        first, more = curve_pictures([group], chosen, run.path)
        return RunPictures(
            key=tuple((short(label), colour) for label, colour in chosen.items()) if len(chosen) > 1 else (),
            curves=first,
            more_curves=more,
            noise=transition_pictures(_matrices(config, result), run.path),
            reliability=reliability_pictures([group], chosen, run.path),
        )


def _without_training(record: EpochRecord) -> EpochRecord:
    return cast("EpochRecord", {key: value for key, value in record.items() if key not in _OF_TRAINING})


def _about_curves(result: RunResult, run: RunFolder) -> str:
    """Return how to read the learning curves: only about what is drawn."""
    measured = {key for record in run.metrics() for key in record}
    parts = ["Test accuracy: the accuracy on the test set."]
    if traces.MEMORISED in measured:
        parts.append("Wrong labels learnt: the share of the wrong training labels that the network predicts.")
    if traces.RIGHT in measured:
        parts.append("Right labels learnt: the share of the right training labels that it predicts.")
    if traces.RECOVERED in measured:
        parts.append("Wrong labels recovered: the share of the wrongly labelled rows whose true class it predicts.")
    if len(result["seeds"]) > 1:
        parts.append("Lines are means over the seeds, bands one standard deviation.")
    if len(result["seeds"][0]["readings"]) > 1:
        parts.append(
            "A dashed line lies exactly on another line. Training is the same for all readings and drawn once."
        )
    return " ".join([*parts, "The first epochs may lie outside the frame."])


def _matrices(config: RunConfig, result: RunResult) -> list[NoiseMatrix]:
    """Return the transition matrix of the run; where each seed has its own estimate, their mean."""
    found = [seed["transition"] for seed in result["seeds"] if seed["transition"]]
    if not found:
        return []
    distinct = len({tuple(map(tuple, matrix)) for matrix in found})
    matrix = np.mean(np.array(found), axis=0) if distinct > 1 else np.array(found[0])
    title = "Estimated transition matrix" if config.transition == "estimated" else "Transition matrix"
    if distinct > 1:
        title += f", mean of {distinct} estimates"
    return [NoiseMatrix(title, tuple(result["classes"]), tuple(tuple(map(float, row)) for row in matrix))]
