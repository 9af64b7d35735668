"""What the page of a run says in words: its data, its label noise, its training, and its readings."""

from __future__ import annotations

from pathlib import Path

from postmax import data
from postmax.report.numbers import from_to, ranges, thousands
from postmax.train.config import Choice, RunConfig
from postmax.train.records import DataRecord, RunResult
from postmax.train.settings import as_overrides

# A name and a value, both as text.
Fact = tuple[str, str]

_UNCORRECTED = "uncorrected"
_CLASSES, _LETTERS = 20, 160


def title(config: RunConfig) -> str:
    """Return the title of the page: the data, the method and the loss, such as "digits: sop with gce (q=0.5)"."""
    options = [as_overrides({key: value}) for key, value in config.loss.options.items() if value is not None]
    of_loss = f" ({', '.join(options)})" if options else ""
    return f"{_data_name(config)}: {config.method.name} with {config.loss.name}{of_loss}"


def data_facts(config: RunConfig, result: RunResult, about: DataRecord | None) -> list[Fact]:
    """Return what the data are.

    Args:
        config: The configuration of the run.
        result: Its result.
        about: What the run recorded about its rows; None if it is of an older version.
    """
    names = result["classes"]
    several = len(result["seeds"]) > 1
    if config.data.test_path is not None:
        split = f"from {Path(config.data.test_path).name}"
    elif config.data.split == "random":
        split = f"{100 * config.data.test_share:.0f} % of all rows, drawn anew for each seed"
    else:
        split = "the same rows for all seeds" if several else ""
    facts = [("Data", config.data.name or str(config.data.path))]
    if about is not None:
        facts.append(("One row is", _row_in_words(about["shape"])))
    facts.append(("Training rows", thousands(result["train_rows"])))
    if config.data.validation_share:
        facts.append(("Validation rows", _validation_rows(config, about)))
    facts += [
        ("Test rows", ", ".join(filter(None, (thousands(result["test_rows"]), split)))),
        ("Classes", f"{len(names)}: {_shortened(names)}"),
    ]
    if config.data.sha256 is not None:
        facts.append(("SHA-256 of the files", config.data.sha256))
    digests = sorted({seed["noise"]["sha256"] for seed in result["seeds"]})
    facts.append(("SHA-256 of the labels", digests[0] if len(digests) == 1 else "one for each seed, at the end"))
    return facts


def _row_in_words(shape: list[int]) -> str:
    """Return the shape of a row in words."""
    if len(shape) == 3:
        channels, height, width = shape
        return f"an image, {height} × {width} pixels, {channels} channel{'s' if channels > 1 else ''}"
    return f"{thousands(shape[0])} number{'s' if shape[0] > 1 else ''}"


def _validation_rows(config: RunConfig, about: DataRecord | None) -> str:
    share = f"{100 * config.data.validation_share:.0f} % of the training rows, with their noisy labels"
    counts = [] if about is None else [sum(seed["validation"] or ()) for seed in about["seeds"]]
    return f"{from_to(counts)}: {share}" if counts else share


def _shortened(names: list[str]) -> str:
    """Return the first names of classes, as many as a few lines can hold."""
    shown: list[str] = []
    length = 0
    for name in names[:_CLASSES]:
        length += len(name)
        if shown and length > _LETTERS:
            break
        shown.append(name)
    return ", ".join(shown) + (", …" if len(shown) < len(names) else "")


def training_facts(config: RunConfig, result: RunResult) -> list[Fact]:
    """Return how the networks were trained. The settings below on the page say it in full."""
    return [
        ("Network", _networks(config, result)),
        ("Method", _with_options(config.method)),
        ("Loss", _with_options(config.loss)),
        (
            "Optimiser",
            f"{config.optimiser.name}, learning rate {config.optimiser.lr:g}, {config.schedule.name} schedule",
        ),
        ("Epochs", f"{result['epochs']}, in batches of {config.batch_size} rows"),
        ("Seeds", ranges(sorted(seed["seed"] for seed in result["seeds"]))),
    ]


def judged_by_labels_as_given(config: RunConfig, result: RunResult) -> bool:
    """Return whether test labels may be wrong: those of your own data, and of data sets whose truth is not known."""
    return config.data.path is not None or any(seed["noise"]["rate"] is None for seed in result["seeds"])


def labels_pass_for_true(config: RunConfig) -> bool:
    """Return whether the labels of the data set count as true before this run puts noise into them."""
    return config.data.name is not None and data.is_clean(config.data.name)


def name_of_noise(noise: str) -> str:
    """Return a kind of noise as it is, and a file without its folder."""
    return Path(noise).name if Path(noise).is_absolute() else noise


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
    found = f"{config.model.name}, {thousands(result['parameters'])} parameters"
    networks = result.get("networks", 1)
    return found if networks == 1 else f"{found} in the answer; the method trains {networks} networks"


def _with_options(choice: Choice) -> str:
    return " ".join(filter(None, (choice.name, as_overrides(choice.options))))


def _data_name(config: RunConfig) -> str:
    return config.data.name or Path(config.data.path or "").name
