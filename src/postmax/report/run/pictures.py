"""Draw the pictures of a run. All are saved beside the page, which shows those that say more than a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from postmax.report.class_matrix import MOST_CLASSES
from postmax.report.content import Group, NoiseMatrix, Series
from postmax.report.pictures import reliability, run_curves, transition
from postmax.report.pictures.canvas import colours, house_style
from postmax.report.pictures.gallery import Picture, Pile, reliability_pictures, transition_pictures
from postmax.report.pictures.run_curves import Curves
from postmax.train.records import RunResult

# With fewer points a diagram says less than the table beside it.
_FEWEST_POINTS = 3
_COLUMNS = 3


@dataclass(frozen=True)
class RunPictures:
    """The pictures that the page shows. Those that a run has no content for are empty."""

    curves: list[Picture]
    noise: list[Picture]
    confusions: Mapping[str, list[Picture]]
    reliability: list[Picture]


def draw(
    result: RunResult,
    labels: Mapping[str, str],
    plots: Sequence[Curves],
    selected: Sequence[int],
    noise: NoiseMatrix | None,
    confusions: Mapping[str, NoiseMatrix],
    folder: Path,
) -> RunPictures:
    """Draw all pictures of a run, and save them in its folder.

    Args:
        result: The result of the run.
        labels: What each reading is called.
        plots: The learning curves.
        selected: The epoch of the result, for each seed.
        noise: The transition matrix.
        confusions: The confusion matrix of each reading, in shares of its rows.
        folder: The folder of the run.
    """
    with house_style():
        return RunPictures(
            curves=_curves(plots, selected, folder),
            noise=_if_large(noise, transition_pictures([] if noise is None else [noise], folder)),
            confusions=_confusions(confusions, folder),
            reliability=_reliability(result, labels, folder),
        )


def _curves(plots: Sequence[Curves], selected: Sequence[int], folder: Path) -> list[Picture]:
    pile, pictures = Pile(), []
    for plot in plots:
        svg = pile.add(run_curves.run_curves_figure(plot, selected), "curves", run_curves.in_words(plot))
        pictures.append(Picture(plot.title, svg, legend=tuple((line.label, line.colour) for line in plot.lines)))
    pile.save(folder / "learning-curves", _COLUMNS, {})
    return pictures


def _confusions(matrices: Mapping[str, NoiseMatrix], folder: Path) -> dict[str, list[Picture]]:
    pile = Pile()
    pictures: dict[str, list[Picture]] = {reading: [] for reading in matrices}
    for reading, one in matrices.items():
        if len(one.classes) <= transition.MOST_CLASSES:
            figure = transition.transition_figure(one)
            figure.axes[0].set(xlabel="predicted class", ylabel="label")
            words = f"Confusion matrix of {len(one.classes)} classes, in shares of the rows with each label."
            svg = pile.add(figure, "confusions", words)
            pictures[reading] = _if_large(one, [Picture("", svg, wide=True)])
    pile.save(folder / "confusions", _COLUMNS, {})
    return pictures


def _if_large(matrix: NoiseMatrix | None, pictures: list[Picture]) -> list[Picture]:
    """Return the pictures of a matrix that is too large for a table."""
    large = matrix is not None and len(matrix.classes) > MOST_CLASSES
    return [replace(picture, title="") for picture in pictures] if large else []  # the page has the title already


def _reliability(result: RunResult, labels: Mapping[str, str], folder: Path) -> list[Picture]:
    series = [
        Series(label, reliability=tuple(seed["readings"][name]["reliability"] for seed in result["seeds"]))
        for name, label in labels.items()
    ]
    if max(sum(reliability.pool(one).enough) for one in series) < _FEWEST_POINTS:
        return []
    chosen = colours(tuple(labels.values()))
    pictures = reliability_pictures([Group("", "", tuple(series))], chosen, folder)
    legend = tuple(chosen.items()) if len(chosen) > 1 else ()
    return [replace(picture, legend=legend) for picture in pictures]
