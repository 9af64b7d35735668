"""What is known about the label noise of a run: put in, assumed or estimated."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from postmax import losses
from postmax.data.problems import in_words
from postmax.estimation import TransitionEstimate
from postmax.report.numbers import interval_per_cent, one_per_cent, per_cent, thousands
from postmax.report.run.facts import Fact, labels_pass_for_true, name_of_noise
from postmax.report.run.noise_matrix import MatrixPart, matrix_part
from postmax.train.config import RunConfig
from postmax.train.records import RunResult
from postmax.transition import parse_noise
from postmax.transition.spec import is_matrix_file, names_noise
from postmax.wording import command_line

_ADVICE = "This command estimates how many labels are wrong, and which classes are taken for which:"


@dataclass(frozen=True)
class SeedEstimate:
    """The estimated share of wrong labels of one seed."""

    seed: int
    rate: str
    interval: str


@dataclass(frozen=True)
class NoisePart:
    """The section about the noise.

    Attributes:
        facts: What is known, in words.
        advice: What to do where nothing is known; otherwise empty.
        command: The command that the advice names; otherwise empty.
        warnings: Classes that the estimate says too little about, with the reason.
        seeds: The estimates seed by seed, where they differ.
        about_matrix: What the matrix is.
        matrix: The transition matrix; None if there is none.
    """

    facts: tuple[Fact, ...]
    advice: str
    command: str
    warnings: tuple[tuple[str, str], ...]
    seeds: tuple[SeedEstimate, ...]
    about_matrix: str
    matrix: MatrixPart | None


def noise_part(
    config: RunConfig, result: RunResult, estimates: Sequence[TransitionEstimate], *, damage: str = ""
) -> NoisePart:
    """Return what is known about the noise in the labels.

    Args:
        config: The configuration of the run.
        result: Its result.
        estimates: The estimate of each seed; empty if there is none, or the run did not record it.
        damage: Why a recorded estimate cannot be read; empty if it can.
    """
    seeds = [seed["seed"] for seed in result["seeds"]]
    matrix = matrix_part(result, estimates, estimated=_is_estimated(config))
    command = _estimate_command(config) if _nothing_is_known(config, result) else ""
    return NoisePart(
        facts=tuple(_facts(config, result, estimates, damage)),
        advice=_ADVICE if command else "",
        command=command,
        warnings=tuple({str(name): why for one in estimates for name, why in one.unidentified.items()}.items()),
        seeds=tuple(map(_seed, seeds, estimates)) if _differ(estimates) else (),
        about_matrix="" if matrix is None else _about_matrix(config) + matrix.about,
        matrix=matrix,
    )


def estimate_in_words(estimates: Sequence[TransitionEstimate]) -> str:
    """Return the estimated share of wrong labels with its interval; the mean where each seed has its own estimate."""
    first = estimates[0]
    if _differ(estimates):
        rates = per_cent([one.noise_rate for one in estimates])
        return f"{rates} of labels wrong, mean ± standard deviation of {len(estimates)} seeds (estimated)"
    interval = interval_per_cent(*first.noise_rate_interval)
    return (
        f"{one_per_cent(first.noise_rate)} of labels wrong, {100 * first.level:.0f} % interval {interval} (estimated)"
    )


def assumes_noise(config: RunConfig) -> bool:
    """Return whether the loss uses a transition matrix."""
    return losses.needs_transition(config.loss.name, config.loss.options)


def _is_estimated(config: RunConfig) -> bool:
    return config.transition == "estimated" and assumes_noise(config)


def _nothing_is_known(config: RunConfig, result: RunResult) -> bool:
    return not assumes_noise(config) and all(seed["noise"]["rate"] is None for seed in result["seeds"])


def _differ(estimates: Sequence[TransitionEstimate]) -> bool:
    return len({one.noise_rate for one in estimates}) > 1


def _facts(config: RunConfig, result: RunResult, estimates: Sequence[TransitionEstimate], damage: str) -> list[Fact]:
    facts = []
    if config.noise != "none":
        facts.append(("Noise put in by this run", _put_in(config, result)))
    known = [seed["noise"]["rate"] for seed in result["seeds"] if seed["noise"]["rate"] is not None]
    if known:
        facts.append(("Wrong training labels", _wrong(config, result, known)))
    if estimates:
        rows = f"; from {thousands(estimates[0].rows)} training rows"
        facts.append(("Estimated noise", estimate_in_words(estimates).removesuffix(" (estimated)") + rows))
    elif damage:
        facts.append(("Estimated noise", damage))
    elif _is_estimated(config):
        facts.append(("Estimated noise", "the matrix below. This run did not record the share of wrong labels"))
    elif not known:
        facts.append(("Wrong training labels", "not known, and not estimated"))
    return [*facts, ("Noise that the loss corrects", _corrected(config))]


def _put_in(config: RunConfig, result: RunResult) -> str:
    """Return the noise that was asked for, and the share of labels that it changes in each class."""
    name, classes = name_of_noise(config.noise), tuple(result["classes"])
    if is_matrix_file(config.noise) or not names_noise(config.noise):  # the file may be gone by now
        return name
    changed = 1 - parse_noise(config.noise, len(classes), classes).matrix.diagonal()
    low, high = float(changed.min()), float(changed.max())
    if high - low < 5e-4:
        return f"{name}, which changes {one_per_cent(low)} of the labels"
    return f"{name}, which changes {interval_per_cent(low, high)} of the labels, depending on the class"


def _wrong(config: RunConfig, result: RunResult, rates: Sequence[float]) -> str:
    rows = result["seeds"][0]["noise"]["rows"]
    if len(set(rates)) > 1:
        text = per_cent(rates)
    else:
        text = f"{one_per_cent(rates[0])}, {thousands(round(rates[0] * rows))} of {thousands(rows)}"
        text += " with the validation rows" if config.data.validation_share else ""
    if config.noise != "none" and not labels_pass_for_true(config):
        text += ", were changed by this noise. Labels that were wrong before are not counted"
    return text


def _corrected(config: RunConfig) -> str:
    if not assumes_noise(config):
        return "none: this loss does not use a transition matrix"
    if config.transition == "estimated":
        return "a transition matrix that was estimated from the noisy training rows"
    if config.transition == "known":
        return "the true transition matrix of the noise that was put in"
    return f"given by the user: {name_of_noise(config.transition)}"


def _about_matrix(config: RunConfig) -> str:
    what = (
        "The transition matrix that the loss uses."
        if assumes_noise(config)
        else "The transition matrix of the noise that was put in. The loss does not use it."
    )
    return f"{what} Each row shows how often a true class gets each label, in %."


def _estimate_command(config: RunConfig) -> str:
    """Return the command that estimates the noise of these labels."""
    data = config.data
    options: dict[str, list[str]] = {"label": [data.labels]} if data.labels is not None else {}
    options |= {"drop": list(data.drop)} if data.drop else {}
    options |= {"missing": [data.missing]} if data.missing != "error" else {}
    options |= {"decimal": [data.decimal]} if data.decimal != "." else {}
    options |= {"merge_labels": [""]} if data.merge_labels else {}
    options |= {"encoding": [data.encoding]} if data.encoding is not None else {}
    with command_line():  # the page shows a command, also if a program writes it
        words = ["postmax noise estimate", shlex.quote(data.path or str(data.name)), in_words(options)]
    return " ".join(filter(None, [*words, "" if data.size is None else f"--size {data.size}"]))


def _seed(seed: int, one: TransitionEstimate) -> SeedEstimate:
    return SeedEstimate(seed, one_per_cent(one.noise_rate), interval_per_cent(*one.noise_rate_interval))
