"""The heat map of a transition matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from postmax.plots import draw_heat_map
from postmax.report.content import NoiseMatrix
from postmax.report.pictures.canvas import SMALL_WIDTH, new_figure, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_CLASSES = 100
# From this number of classes on, the page lets the picture scroll instead of shrinking it.
WIDE_FROM = 13


def transition_figure(noise: NoiseMatrix) -> Figure:
    """Return the heat map of a matrix. Its cells are opaque, so that the numbers in them are legible on any page."""
    side = SMALL_WIDTH if len(noise.classes) < WIDE_FROM else 9.0
    figure = new_figure(0.85 * side, noise.title, width=side, constrained=True)
    axes = figure.subplots()
    axes.grid(visible=False)
    names = [short(name, 20) for name in noise.classes]
    draw_heat_map(axes, torch.tensor(noise.matrix), names, number_size=8 if len(names) > 4 else 11)
    return figure


def in_words(noise: NoiseMatrix) -> str:
    """Return the range of the diagonal, for readers who cannot see the colours."""
    kept = [row[i] for i, row in enumerate(noise.matrix)]
    return (
        f"Transition matrix of {len(kept)} classes, {short(noise.title, 60)}: a label stays right with a probability "
        f"from {min(kept):.0%} to {max(kept):.0%}."
    )
