"""Training sets that are hard for a method: few rows, one class, equal rows, wrong labels, and the like."""

from dataclasses import dataclass

import numpy as np
from small_runs import estimate_of, own_config

from postmax import methods
from postmax.transition import Transition


@dataclass(frozen=True)
class HardCase:
    """A small training set and the settings of a short run on it.

    Attributes:
        labels: The labels of all rows. Half of the rows of each class are held out for the test.
        settings: Settings of the run.
        equal: Whether all rows are equal.
        images: Whether the rows are images of 8×8 pixels; features otherwise.
    """

    labels: np.ndarray
    settings: tuple[str, ...] = ()
    equal: bool = False
    images: bool = False


HARD_CASES = {
    "clean": HardCase(np.arange(60) % 3),
    "two classes": HardCase(np.arange(60) % 2, ("noise=symmetric:0.3",)),
    "a thousand classes": HardCase(np.arange(2000) % 1000, ("noise=symmetric:0.4", "batch_size=500", "epochs=2")),
    "batches of one row": HardCase(np.arange(12) % 3, ("noise=symmetric:0.3", "batch_size=1")),
    "every label is wrong": HardCase(np.arange(60) % 3, ("noise=pair:1",)),
    "99 % in one class": HardCase((np.arange(200) < 2).astype(int), ("batch_size=32",)),
    "classes are missing from batches": HardCase(np.arange(80) % 10, ("noise=symmetric:0.3", "batch_size=4")),
    "all rows are equal": HardCase(np.arange(60) % 3, ("noise=symmetric:0.3",), equal=True),
    "images": HardCase(
        np.arange(48) % 3, ("noise=symmetric:0.3", "model=small", "model.width=2", "epochs=3"), images=True
    ),
}


def hard_config(case, folder, method, *overrides):
    """The configuration of a short run of a method on hard rows, which are written into a folder.

    Methods for images get images in every case.
    """
    images = case.images or needs_images(method)
    path = folder / "hard.npz"
    np.savez(path, x=rows_of(case, images=images), y=case.labels)
    network = () if case.images else ("model=mlp", "model.hidden=[4]")
    plain = ("data.test_share=0.5", "epochs=4", "batch_size=16", "optimiser.lr=0.02", *network, *case.settings)
    epochs = int(next(text for text in reversed(plain) if text.startswith("epochs=")).partition("=")[2])
    return own_config(path, *plain, f"method={method}", *short_options(method, epochs // 3), *overrides)


def rows_of(case, *, images):
    """Features or images whose first numbers tell the class, or equal ones."""
    generator, count = np.random.default_rng(0), len(case.labels)
    shape = (8, 8, 3) if images else (5,)
    rows = generator.integers(0, 120, (1 if case.equal else count, *shape)).repeat(count if case.equal else 1, axis=0)
    if not case.equal:
        rows.reshape(count, -1)[:, :3] += 40 * (case.labels % 3)[:, None]
    return rows.astype(np.uint8) if images else rows / 60


# Methods that have a likelihood of their own, and refuse any other loss than cross-entropy.
WITH_THEIR_OWN_LOSS = ("sgn",)


def short_options(method, warmup):
    """Options with which a method goes through its phases in a short run, and needs no estimate of the noise."""
    entry = methods.describe(method)
    options = [f"method.{name}={warmup}" for name in ("warmup_epochs", "ramp_epochs") if name in entry.options]
    options += ["method.unlabelled_weight=5"] if "unlabelled_weight" in entry.options else []  # for two classes
    options += ["method.pretraining_lr=0.01"] if "pretraining_lr" in entry.options else []  # for two dozen steps
    if entry.facts and entry.facts.estimates_unless in entry.options:
        options.append(f"method.{entry.facts.estimates_unless}=0.2")
    if entry.facts and entry.facts.uses_transition:
        options.append("transition=symmetric:0.2")
    if entry.facts and entry.facts.complementary:
        options.append("noise=complementary")
    if method in WITH_THEIR_OWN_LOSS:
        options.append("loss=ce")
    return options


def needs_images(method):
    """Whether a method works on images alone."""
    facts = methods.describe(method).facts
    return facts is not None and facts.images_only


def pretended_estimate(train):
    """An estimate of the noise that takes no time: a real one takes a minute, and would be kept in a file."""
    return estimate_of(Transition.symmetric(train.num_classes, 0.2), train.classes, len(train))
