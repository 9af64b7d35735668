"""What is known about a method: its idea, what it needs and remembers, and its published settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Facts:
    """What helps to choose a method, and to trust it. The page docs/methods.md is made of these texts.

    Attributes:
        idea: The idea of the method, in two or three short sentences.
        source: Where it was published: authors, title, place and year.
        networks: How many networks are trained.
        needs: What must be known besides the labels. "nothing" also where the noise is estimated.
        remembers: What is kept for each row from one epoch to the next.
        posterior: Where the posterior of the loss matters inside the method. A softmax of the logits in its place would
            be wrong for losses whose logits mean something else, such as f-PML.
        deviations: Where postmax does something else than the published code, and why.
        estimates_unless: The option without which the method estimates the noise; empty if it never does.
        uses_transition: Whether the method uses the noise that the setting `transition` of a run names.
        images_only: Whether it works on images alone. Other methods also take tables and embeddings.
        complementary: Whether it takes a label for a class that the row does *not* have.
    """

    idea: str
    source: str
    networks: int = 1
    needs: str = "nothing"
    remembers: str = "nothing"
    posterior: str = "nowhere"
    deviations: str = "none"
    estimates_unless: str = ""
    uses_transition: bool = False
    images_only: bool = False
    complementary: bool = False


@dataclass(frozen=True)
class Preset:
    """The settings with which a method was published for one data set.

    Attributes:
        options: The options of the method.
        source: Where the settings come from.
        training: Settings of the run that were published with them, such as {"epochs": 300, "optimiser.lr": 0.02}. They
            are for information, and for the tables: a preset sets the options alone.
    """

    options: Mapping[str, Any]
    source: str
    training: Mapping[str, Any] = field(default_factory=dict)
