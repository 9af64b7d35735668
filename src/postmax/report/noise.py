"""The label noise as heat maps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from postmax.plots import draw_heat_map
from postmax.report.canvas import SMALL_WIDTH, new_figure, short
from postmax.report.content import NoiseMatrix

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_CLASSES = 100
WIDE_FROM = 13  # classes; the page lets such a picture scroll instead of shrinking it


def noise_figure(noise: NoiseMatrix) -> Figure:
    """One matrix; its cells are opaque, so that the numbers in them are legible on any page."""
    side = SMALL_WIDTH if len(noise.classes) < WIDE_FROM else 9.0
    figure = new_figure(0.85 * side, noise.title, width=side, constrained=True)
    axes = figure.subplots()
    axes.grid(visible=False)
    names = [short(name, 20) for name in noise.classes]
    draw_heat_map(axes, torch.tensor(noise.matrix), names, number_size=8 if len(names) > 4 else 11)
    return figure


def in_words(noise: NoiseMatrix) -> str:
    """The diagonal, for those who cannot see the colours."""
    kept = [row[i] for i, row in enumerate(noise.matrix)]
    return (
        f"Transition matrix of {len(kept)} classes, {short(noise.title, 60)}: a label stays right with a probability "
        f"from {min(kept):.0%} to {max(kept):.0%}."
    )
