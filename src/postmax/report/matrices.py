"""The transition matrices that the runs of a table were corrected with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from postmax.report.content import NoiseMatrix
from postmax.tables.jobs import TableJob
from postmax.train.records import RunResult


def matrices(jobs: Sequence[TableJob], results: dict[str, RunResult], references: set[str]) -> tuple[NoiseMatrix, ...]:
    """One matrix for each noise; where it was estimated, the mean of the estimates.

    Args:
        jobs: Runs that are done.
        results: What came out, by run.
        references: Columns that are there for comparison only and say nothing about the noise.
    """
    by_noise: dict[str, list[TableJob]] = {}
    for job in jobs:
        if any(use.column not in references for use in job.uses):
            by_noise.setdefault(job.config.noise, []).append(job)
    panels = {noise: {use.panel for job in some for use in job.uses} for noise, some in by_noise.items()}
    made = []
    for noise, some in by_noise.items():
        found = [seed["transition"] for job in some for seed in results[job.run_id]["seeds"] if seed["transition"]]
        if not found:
            continue
        distinct = {tuple(map(tuple, matrix)) for matrix in found}
        # A panel names the noise, unless it has several.
        alone = len(panels[noise]) == 1 and sum(panels[noise] <= other for other in panels.values()) == 1
        title = next(iter(panels[noise])) if alone else noise
        if len(distinct) > 1:
            title += f", mean of {len(distinct)} estimates"
        mean = np.mean(np.array(found), axis=0) if len(distinct) > 1 else np.array(found[0])
        classes = tuple(results[some[0].run_id]["classes"])
        made.append(NoiseMatrix(title, classes, tuple(tuple(map(float, row)) for row in mean)))
    return tuple(made)
