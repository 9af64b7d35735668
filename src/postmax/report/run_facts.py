"""What the page of a run says in words: its data, its label noise, its training, and its readings."""

from __future__ import annotations

from pathlib import Path

from postmax import data, losses
from postmax.report.noise_hashes import rate_in_words
from postmax.report.numbers import per_cent, ranges
from postmax.train.config import Choice, RunConfig
from postmax.train.records import RunResult
from postmax.train.settings import as_overrides

# A name and a value, both as text.
Fact = tuple[str, str]

_UNCORRECTED = "uncorrected"
_CLASSES = 20


def title(config: RunConfig) -> str:
    """Return the title of the page: the data, the method and the loss, such as "digits: sop with gce (q=0.5)"."""
    options = [as_overrides({key: value}) for key, value in config.loss.options.items() if value is not None]
    of_loss = f" ({', '.join(options)})" if options else ""
    return f"{_data_name(config)}: {config.method.name} with {config.loss.name}{of_loss}"


def data_facts(config: RunConfig, result: RunResult) -> list[Fact]:
    """Return what the data are."""
    names = result["classes"]
    shown = ", ".join(names[:_CLASSES]) + (", …" if len(names) > _CLASSES else "")
    if config.data.test_path is not None:
        split = f"from {Path(config.data.test_path).name}"
    elif config.data.split == "random":
        split = f"{100 * config.data.test_share:.0f} % of all rows, drawn anew for each seed"
    else:
        split = "the same rows for all seeds" if len(result["seeds"]) > 1 else ""
    facts = [
        ("Data", _data_name(config)),
        ("Training rows", _thousands(result["train_rows"])),
        ("Test rows", ", ".join(filter(None, (_thousands(result["test_rows"]), split)))),
        ("Classes", f"{len(names)}: {shown}"),
    ]
    if config.data.validation_share:
        share = f"{100 * config.data.validation_share:.0f} % of the training rows, with their noisy labels"
        facts.insert(2, ("Validation rows", share))
    return facts


def training_facts(config: RunConfig, result: RunResult) -> list[Fact]:
    """Return how the networks were trained. The settings below on the page say it in full."""
    return [
        ("Network", _networks(config, result)),
        ("Method", _with_options(config.method)),
        ("Loss", _with_options(config.loss)),
        ("Epochs", str(result["epochs"])),
        ("Seeds", ranges(sorted(seed["seed"] for seed in result["seeds"]))),
    ]


def noise_facts(config: RunConfig, result: RunResult) -> list[Fact]:
    """Return what is known about the label noise, and what a correction took as the noise."""
    added = "none" if config.noise == "none" else _name_of(config.noise)
    return [
        ("Noise that was added", added),
        ("Wrong training labels", _rates(config, result)),
        ("Noise that the loss assumes", _assumed(config)),
    ]


def truth_is_known(result: RunResult) -> bool:
    """Return whether the true labels of the training rows are known."""
    return all(seed["noise"]["rate"] is not None for seed in result["seeds"])


def assumes_noise(config: RunConfig) -> bool:
    """Return whether the loss uses a transition matrix."""
    return losses.needs_transition(config.loss.name, config.loss.options)


def reading_label(name: str, others: list[str]) -> str:
    """Return a short name for a reading.

    Args:
        name: The reading, as the result of the run names it.
        others: All readings of the run.
    """
    if name != "model":
        return name
    return "corrected" if _UNCORRECTED in others else "the network"


def reading_in_words(name: str, others: list[str], config: RunConfig) -> str:
    """Return a sentence that says what a reading is.

    Args:
        name: The reading, as the result of the run names it.
        others: All readings of the run.
        config: The configuration of the run. Its `data.also_test` tells readings of other data sets from those that a
            method adds.
    """
    if name == "model":
        return (
            "Predictions after the posterior correction." if _UNCORRECTED in others else "Predictions of the network."
        )
    if name == _UNCORRECTED:
        return "Predictions of the same networks without the posterior correction."
    where = name.removesuffix(f"-{_UNCORRECTED}")
    if where in config.data.also_test:
        correction = "" if where == name else ", without the posterior correction"
        return f"Predictions of the same networks for the test rows of {where}{correction}."
    return f"Predictions that the method {config.method.name} reports under the name {name}."


def _networks(config: RunConfig, result: RunResult) -> str:
    """Return the model and its number of parameters. A method may train several networks of this model."""
    found = f"{config.model.name}, {_thousands(result['parameters'])} parameters"
    networks = result.get("networks", 1)
    return found if networks == 1 else f"{found} in the answer; the method trains {networks} networks"


def _with_options(choice: Choice) -> str:
    return " ".join(filter(None, (choice.name, as_overrides(choice.options))))


def _rates(config: RunConfig, result: RunResult) -> str:
    rates = [seed["noise"]["rate"] for seed in result["seeds"]]
    known = [rate for rate in rates if rate is not None]
    if not known:
        return rate_in_words(None)
    text = rate_in_words(known[0]) if len(set(known)) == 1 else per_cent(known)
    if config.noise != "none" and not _labels_pass_for_true(config):
        text += " were changed by this noise. Labels that were wrong before are not counted"
    return text


def _assumed(config: RunConfig) -> str:
    if not assumes_noise(config):
        return "none: this loss does not use a transition matrix"
    if config.transition == "estimated":
        return "a transition matrix that was estimated from the noisy training rows"
    if config.transition == "known":
        return "the true transition matrix of the noise that was added"
    return f"given by the user: {_name_of(config.transition)}"


def _labels_pass_for_true(config: RunConfig) -> bool:
    return config.data.name is not None and data.is_clean(config.data.name)


def _data_name(config: RunConfig) -> str:
    return config.data.name or Path(config.data.path or "").name


def _thousands(number: int) -> str:
    """Return a number with narrow spaces between the thousands."""
    return f"{number:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def _name_of(noise: str) -> str:
    """Return a kind of noise as it is, and a file without its folder."""
    return Path(noise).name if Path(noise).is_absolute() else noise
