"""What `postmax predict` does."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import cast

import typer

from postmax.cli.live import show_stages
from postmax.cli.options import TableOptions
from postmax.cli.outputs import spare
from postmax.cli.predictions import check_name, writing
from postmax.cli.reading import tell_notes
from postmax.data.column_names import listing
from postmax.data.number_text import Decimal
from postmax.data.problems import columns_from_text
from postmax.data.row_form import NewReading
from postmax.data.table_encoder import Unknown
from postmax.loading import load
from postmax.progress import Stage, tell

_SHOWN = 10


def predict(
    model: Path,
    file: Path,
    options: TableOptions,
    *,
    unknown: str,
    keep: list[str],
    seed: int | None,
    device: str,
    out: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Predict the class of each row of a file, and print or write the probabilities."""
    reading = NewReading(
        drop=columns_from_text(options.drop or ()),
        # `NewReading` checks the words.
        missing=options.missing,  # type: ignore[arg-type]
        decimal=cast("Decimal | None", options.decimal),
        encoding=options.encoding,
        unknown=cast("Unknown", unknown),
        keep=columns_from_text(keep),
    )
    check_name(out)
    if out is not None:
        spare([out], file, force)
    predictor = load(model, seed=seed, device=device)
    ignored, blocks = predictor.stream(file, reading)
    if ignored:
        columns = "column" if len(ignored) == 1 else "columns"
        tell_notes([f"the model does not use the {columns} {listing(ignored)}."])
    kept = ("file",) if file.is_dir() else reading.keep
    counts: Counter[str] = Counter()
    with (
        # A live line would be in the way of rows on the same terminal.
        nullcontext() if out is None else show_stages(quiet=as_json),
        writing(out, predictor.classes_.tolist(), kept, as_json=as_json) as write,
    ):
        for found in blocks:
            write(found)
            counts.update(found.classes.tolist())
            tell(Stage("predicting", counts.total(), None, "rows"))
    if out is not None:
        _tell_counts(counts, predictor.classes_.tolist(), out, as_json)


def _tell_counts(counts: Counter[str], classes: list[str], out: Path, as_json: bool) -> None:
    rows = counts.total()
    if as_json:
        typer.echo(json.dumps({"rows": rows, "counts": {name: counts[name] for name in classes}, "file": str(out)}))
        return
    shown = ", ".join(f"{name} {count:,}" for name, count in counts.most_common(_SHOWN))
    more = f", and {len(counts) - _SHOWN} more classes" if len(counts) > _SHOWN else ""
    typer.echo(f"{rows:,} row{'s' * (rows != 1)}: {shown}{more}\npredictions: {out}")
