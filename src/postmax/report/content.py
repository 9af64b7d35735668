"""What the plots of a page show, as plain values."""

from __future__ import annotations

from dataclasses import dataclass

from postmax.train.records import EpochRecord, Reliability


@dataclass(frozen=True)
class Series:
    """One line of a plot: a configuration with all its seeds, read in one way.

    Attributes:
        label: Its name in the legend.
        metrics: The lines of metrics.jsonl of all seeds.
        reliability: The bins of confidence, one set for each seed.
        reading: Which reading of the network's output is shown. Each reading has a test accuracy of its own.
        reference: Whether it is shown for comparison only, such as training without noise.
    """

    label: str
    metrics: tuple[EpochRecord, ...] = ()
    reliability: tuple[Reliability, ...] = ()
    reading: str = "model"
    reference: bool = False


@dataclass(frozen=True)
class Group:
    """What one small plot shows. On the page of a table this is a row of a panel, with its columns as series.

    Attributes:
        panel: A heading that several plots share; may be empty.
        row: The title of the plot; may be empty.
        series: The lines of the plot.
    """

    panel: str
    row: str
    series: tuple[Series, ...]

    @property
    def title(self) -> str:
        """Row and panel."""
        return ", ".join(part for part in (self.row, self.panel) if part)


@dataclass(frozen=True)
class NoiseMatrix:
    """A transition matrix and its title. Row i holds P(label | true class i)."""

    title: str
    classes: tuple[str, ...]
    matrix: tuple[tuple[float, ...], ...]
