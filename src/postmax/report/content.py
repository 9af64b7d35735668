"""Everything a report says, as plain values: the page and the plots read nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field

from postmax.tables.table import Table
from postmax.train.records import EpochRecord, NoiseRecord, Reliability


@dataclass(frozen=True)
class Series:
    """One cell of the table over time: a configuration with all its seeds.

    Attributes:
        label: The name of its column.
        metrics: The lines of metrics.jsonl, of all seeds.
        reliability: One for each seed.
        reading: Which reading of the network's output the cell shows; all but "model" have their own test accuracy.
        reference: Whether it is there for comparison only, such as training without noise.
    """

    label: str
    metrics: tuple[EpochRecord, ...] = ()
    reliability: tuple[Reliability, ...] = ()
    reading: str = "model"
    reference: bool = False


@dataclass(frozen=True)
class Group:
    """What is drawn into one small plot: a row of a panel, with its columns as series."""

    panel: str
    row: str
    series: tuple[Series, ...]

    @property
    def title(self) -> str:
        """Row and panel."""
        return ", ".join(part for part in (self.row, self.panel) if part)


@dataclass(frozen=True)
class NoiseMatrix:
    """A transition matrix and what it is of; row i holds P(label | true class i)."""

    title: str
    classes: tuple[str, ...]
    matrix: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Run:
    """One run folder.

    Attributes:
        run_id: Its name.
        where: The cells of the table it fills.
        settings: What distinguishes it from the other runs, such as "loss.divergence=kl".
        folder: Where it is.
        seconds: How long it took.
        noise: The noise of each seed.
    """

    run_id: str
    where: str
    settings: str = ""
    folder: str = ""
    seconds: float = 0.0
    noise: dict[int, NoiseRecord] = field(default_factory=dict)


@dataclass(frozen=True)
class ReportContent:
    """A whole report.

    Attributes:
        title: Of the table.
        about: What was measured, in a few sentences.
        source: Where the paper's figures stand.
        tables: The same cells under each selection rule that applies; after the headline, the oracle comes last.
        groups: What the learning curves and the reliability diagrams show.
        matrices: The label noise.
        configuration: What all the runs have in common, as YAML.
        runs: The run folders.
        environment: Versions and machine, by name.
        command: What makes the report again.
        seconds: Computing time of all the runs together.
        headline: The selection rule whose table comes first.
    """

    title: str
    tables: tuple[Table, ...]
    about: str = ""
    source: str = ""
    groups: tuple[Group, ...] = ()
    matrices: tuple[NoiseMatrix, ...] = ()
    configuration: str = ""
    runs: tuple[Run, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    command: str = ""
    seconds: float = 0.0
    headline: str = "last"

    @property
    def seeds(self) -> tuple[int, ...]:
        """Of all the runs."""
        return tuple(sorted({seed for run in self.runs for seed in run.noise}))
