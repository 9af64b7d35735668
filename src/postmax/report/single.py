"""The page of a single run: a table of one row."""

from __future__ import annotations

import shlex
from pathlib import Path

from postmax.data import is_clean
from postmax.report import make_report
from postmax.runs import RunFolder
from postmax.tables.jobs import TableJob, Use
from postmax.tables.spec import Protocol, make
from postmax.train import RunConfig

_SCALE = "one run"


def write_run_report(config: RunConfig, run: RunFolder) -> Path:
    """Write report.html and its plots into the folder of a run that is done.

    Raises:
        DataError: If it is not done.
    """
    readings = list(run.result()["seeds"][0]["readings"])
    protocol = _protocol(config, readings)
    uses = tuple(
        Use(protocol.panels[0].name, protocol.rows[0].name, column.name, column.reading) for column in protocol.columns
    )
    job = TableJob(config, label=protocol.title, uses=uses)
    command = f"postmax train --config {shlex.quote(str(run.path / 'config.yaml'))}"
    return make_report(protocol, _SCALE, [job], run.path.parent, run.path, command=command)


def _protocol(config: RunConfig, readings: list[str]) -> Protocol:
    data = config.data.name or Path(config.data.path or "").name
    loss = ", ".join([config.loss.name, *(str(value) for value in config.loss.options.values() if value is not None)])
    noise = config.noise
    if noise == "none" and (config.data.name is None or not is_clean(config.data.name)):
        noise = "not known"
    content = {
        "title": f"{data}: {loss}",
        "about": f"{config.model.name} on {data}, label noise: {noise}.",
        "compare": "columns",
        "run": config.model_dump(mode="json"),
        "scales": {_SCALE: {"seeds": list(config.seeds), "stack": len(config.seeds)}},
        "panels": [{"name": f"label noise: {noise}"}],
        "rows": [{"name": loss}],
        "columns": [{"name": "accuracy" if name == "model" else name, "reading": name} for name in readings],
    }
    return make(content, name="run")
