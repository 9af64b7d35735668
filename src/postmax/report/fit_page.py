"""The page of a fit."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from postmax.estimation import TransitionEstimate
from postmax.fitting.fit import FitRecord
from postmax.report.fit import words
from postmax.report.numbers import one_per_cent, thousands
from postmax.report.page import write_page
from postmax.report.run.columns import column_table_of
from postmax.report.run.noise_matrix import estimate_part

_DOUBTFUL = 50


def write_fit_page(record: FitRecord, labels: Sequence[Mapping[str, str]], folder: Path) -> Path:
    """Write report.html into the folder of a fit. The same fit gives the same bytes.

    Args:
        record: The result.
        labels: The rows of labels.csv, the most doubtful first.
        folder: The folder, which exists.
    """
    return write_page("fit.html.jinja", folder, **fit_values(record, labels, folder))


def fit_values(
    record: FitRecord, labels: Sequence[Mapping[str, str]], folder: Path, most: int = _DOUBTFUL
) -> dict[str, Any]:
    """Return what the page of a fit shows.

    Args:
        record: The result.
        labels: The rows of labels.csv, the most doubtful first.
        folder: The folder.
        most: How many doubtful labels are shown.
    """
    estimate = TransitionEstimate.from_dict(record["estimate"])
    told = not record["cannot_tell"]
    doubtful = [row for row in labels[:most] if told and row["given"] != row["suggested"]]
    matrix = estimate_part(estimate)
    return {
        "title": f"{record['name']}: a classifier from labels of which some are wrong",
        "noise": words.noise_in_words(record),
        "accuracy": words.accuracy_in_words(record),
        "about_accuracy": words.ABOUT_ACCURACY,
        "confusions": [
            (one["true"], one["label"], f"{one['rows']:.0f}", one_per_cent(one["share"]))
            for one in record["confusions"]
            if told
        ],
        "data": [
            ("Data", words.data_in_words(record)),
            ("Most frequent label", f"{one_per_cent(record['majority'])} of the rows"),
            (
                "Networks",
                ", ".join(f"{name} {share:.0%}".replace("%", " %") for name, share in record["networks"].items()),
            ),
            ("Seed", str(record["seed"])),
        ],
        "counts": list(zip(record["classes"], map(thousands, record["counts"]), strict=True)),
        "notes": notes_of(record, record["findings"]),
        "columns": column_table_of(record["table"]),
        "unit": next(iter(labels[0])),
        "doubtful": [
            (
                next(iter(row.values())),
                row["given"],
                row["suggested"],
                _percent(1 - float(row["p_wrong"])),
                _percent(float(row["p_suggested"])),
            )
            for row in doubtful
        ],
        "matrix": matrix if told and (matrix.table or matrix.largest) else None,
        "told": told,
        "unidentified": [(str(name), why) for name, why in estimate.unidentified.items()],
        "predict": f"postmax predict {shlex.quote(str(folder))} new.csv -o predictions.csv",
        "environment": record["environment"],
        "seconds": record["seconds"],
    }


def notes_of(record: FitRecord, findings: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return what a person should know about the data: columns that are left out, and findings."""
    left_out = [words.left_out_in_words(record["left_out"])] if record["left_out"] else []
    return [*left_out, *(f"{one['severity']}: {one['text']} {one['remedy']}".strip() for one in findings)]


def _percent(share: float) -> str:
    return "under 0.1 %" if share < 1e-3 else one_per_cent(share)
