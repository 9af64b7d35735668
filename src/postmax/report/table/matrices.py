"""The transition matrices of the label noise in a table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from postmax.report.content import NoiseMatrix
from postmax.tables.cells import TableJob
from postmax.train.records import RunResult


def matrices(jobs: Sequence[TableJob], results: dict[str, RunResult], references: set[str]) -> tuple[NoiseMatrix, ...]:
    """Return one matrix for each kind of noise. Where it was estimated, the matrix is the mean of the estimates.

    Args:
        jobs: Runs that are done.
        results: The results of the runs, by run id.
        references: Names of columns that are shown for comparison only. Their noise is not shown.
    """
    by_noise: dict[str, list[TableJob]] = {}
    for job in jobs:
        if any(place.column not in references for place in job.placements):
            by_noise.setdefault(job.config.noise, []).append(job)
    panels = {noise: {place.panel for job in some for place in job.placements} for noise, some in by_noise.items()}
    made = []
    for noise, some in by_noise.items():
        found = [seed["transition"] for job in some for seed in results[job.run_id]["seeds"] if seed["transition"]]
        if not found:
            continue
        distinct = {tuple(map(tuple, matrix)) for matrix in found}
        # A panel gives its name to the noise, unless it has several kinds of noise.
        alone = len(panels[noise]) == 1 and sum(panels[noise] <= other for other in panels.values()) == 1
        title = next(iter(panels[noise])) if alone else noise
        if len(distinct) > 1:
            title += f", mean of {len(distinct)} estimates"
        mean = np.mean(np.array(found), axis=0) if len(distinct) > 1 else np.array(found[0])
        classes = tuple(results[some[0].run_id]["classes"])
        made.append(NoiseMatrix(title, classes, tuple(tuple(map(float, row)) for row in mean)))
    return tuple(made)
