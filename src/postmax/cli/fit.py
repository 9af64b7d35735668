"""What `postmax fit` does."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import typer

from postmax.cli.fitting import ALREADY, Request, complete, tell_facts
from postmax.cli.options import TableOptions
from postmax.duration import in_words
from postmax.fitting import Fit, FitFolder, FitRecord
from postmax.fitting.folder import LABELS, PAGE
from postmax.report.fit import words
from postmax.report.fit_page import write_fit_page

_SHOWN = 5


def fit(
    file: Path,
    options: TableOptions,
    *,
    network: str | None,
    seed: int,
    out: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Train a classifier on a file or folder, and write the model, what is believed about each label, and a page."""
    request = Request.of(file, options, network, seed)
    folder = FitFolder(out or Path("postmax-models") / request.name)

    def write(found: Fit) -> FitRecord:
        folder.write(found)
        write_fit_page(found.record, folder.labels(), folder.path)
        return found.record

    done = complete(folder, request, write, what="model", force=force, quiet=as_json)
    record = folder.record()
    if as_json:
        typer.echo(json.dumps({**record, "folder": str(folder.path)}))
        return
    remark = ALREADY if done else f"trained in {in_words(record['seconds'])}"
    tell_facts(
        {
            **_facts(record, folder),
            "model": f"{folder.path} ({remark})",
            "all labels": str(folder.path / LABELS),
            "page": str(folder.path / PAGE),
            "predict": f"postmax predict {shlex.quote(str(folder.path))} {_new_rows(record)}",
        }
    )


def _facts(record: FitRecord, folder: FitFolder) -> dict[str, str]:
    facts = {
        "data": words.data_in_words(record),
        "wrong labels": words.noise_in_words(record),
        "accuracy": words.accuracy_in_words(record),
    }
    problems = sum(one["severity"] == "problem" for one in record["findings"])
    if problems:
        facts["look first"] = words.problems_in_words(problems)
    if record["cannot_tell"]:
        return facts
    facts["confused"] = words.confusions_in_words(record)
    worst = [row for row in folder.labels()[:_SHOWN] if row["given"] != row["suggested"]]
    if worst:
        unit = next(iter(worst[0]))
        facts["most doubtful"] = ", ".join(f"{unit} {row[unit]} {row['given']} → {row['suggested']}" for row in worst)
    return facts


def _new_rows(record: FitRecord) -> str:
    if record["embedding"] is not None:
        return "new-images"
    return "new.npz" if record["table"] is None else "new.csv"
