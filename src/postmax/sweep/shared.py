"""What several jobs of a sweep need is made before they start."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from postmax import data
from postmax.data.files import data_root
from postmax.runs.folder import RunFolder
from postmax.runs.job import Job


def make_shared(jobs: Iterable[Job], store: Path) -> None:
    """Make the files that are computed once for a data set, such as features, if a job that is left needs them.

    Workers would otherwise wait for the one that makes them. Nothing is downloaded.

    Raises:
        DataError: If files that these are made of are missing or damaged.
        MissingDependency: If a package is not installed that makes them.
    """
    left = [job.config.data for job in jobs if RunFolder(store / job.run_id).state in ("new", "started")]
    for name, root in {(name, part.root): None for part in left for name in (part.name, *part.also_test) if name}:
        made = [needed for needed in data.absent(name, root) if needed.make is not None]
        for needed in made:
            data.Request(data_root(root), data.splits(name)[0], name=name).find(needed)
