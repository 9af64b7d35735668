"""Everything the page of a table says, as plain values. The page and its plots read nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field

from postmax.report.content import Group, NoiseMatrix
from postmax.tables.table import Table
from postmax.train.records import NoiseRecord


@dataclass(frozen=True)
class Run:
    """One run folder.

    Attributes:
        run_id: The name of the folder.
        where: The cells of the table that the run fills.
        settings: The settings in which the run differs from the others, such as "loss.divergence=kl".
        folder: The path of the folder.
        seconds: How long the run took.
        noise: The noise of each seed.
    """

    run_id: str
    where: str
    settings: str = ""
    folder: str = ""
    seconds: float = 0.0
    noise: dict[int, NoiseRecord] = field(default_factory=dict)


@dataclass(frozen=True)
class TableContent:
    """The content of the page of a table.

    Attributes:
        title: The title of the table.
        tables: The same cells under each selection rule that was recorded.
        about: What was measured, in a few sentences.
        source: Where the reported values come from.
        groups: What the learning curves and the reliability diagrams show.
        matrices: The label noise.
        configuration: The settings that all runs share, as YAML.
        runs: The run folders.
        environment: Versions and machine, by name.
        command: The command that makes the table again.
        seconds: The computing time of all runs together.
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
        """The seeds of all runs."""
        return tuple(sorted({seed for run in self.runs for seed in run.noise}))
