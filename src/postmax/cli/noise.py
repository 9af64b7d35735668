"""What `postmax noise` does: corrupt labels, show label noise, and estimate it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import typer

from postmax import estimation
from postmax.cli.estimation import place_for, read_evidence, tell, tell_json
from postmax.cli.live import show_stages
from postmax.cli.options import TableOptions
from postmax.cli.outputs import spare
from postmax.cli.reading import as_reading, tell_notes
from postmax.cli.source import source_of
from postmax.cli.text import print_matrix
from postmax.data.dataset import Dataset
from postmax.data.label_column import (
    LabelColumn,
    comparable,
    encode_column,
    read_labels,
    relabelled,
    write_labels,
)
from postmax.data.label_text import merged, stripped
from postmax.data.notes import class_notes
from postmax.data.own import is_table
from postmax.data.reading import ReadingOptions, refuse_idle
from postmax.data.tables import read_table
from postmax.errors import DataError, InputError
from postmax.files import existing_file
from postmax.labels import EncodedLabels, encode_labels
from postmax.plots import check_picture, heat_map
from postmax.row_names import PLACES
from postmax.transition import NoisyLabels, corrupt_by_features, parse_noise

_LABELS_ONLY = ("label", "decimal", "encoding", "merge_labels")


def inject(
    file: Path,
    noise: str,
    options: TableOptions,
    *,
    seed: int,
    independent: bool,
    out: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Write a file with noisy labels, and beside it a .noise.npz file that records how they were drawn."""
    reading = as_reading(options)
    by_features = noise.partition(":")[0] == "instance"
    if not by_features:
        refuse_idle(f"--noise {noise}", "noise that does not depend on features", reading, allowed=_LABELS_ONLY)
    rows = _rows(file, reading) if by_features else None
    column = _labels(file, reading.label, reading)
    labels = encode_column(column, str(file))
    tell_notes(rows.notes if rows is not None else class_notes(labels.classes, labels.codes))
    out = out or file.with_name(f"{file.stem}.noisy{file.suffix}")
    story = out.with_name(f"{out.stem}.noise.npz")
    spare([out, story], file, force)
    noisy = replace(_corrupt(rows, labels, noise, seed, not independent), classes=labels.classes)
    noisy.save(story)
    values = relabelled(column, labels, noisy.labels)
    write_labels(file, out, values, column=column.column, decimal=reading.decimal, encoding=reading.encoding)
    _tell(noisy, as_json, {"file": str(out), "story": str(story)})


def show(
    file: Path, options: TableOptions, *, clean: str | None, plot: Path | None, force: bool, as_json: bool
) -> None:
    """Show the noise in labels whose true labels are known, and verify a .noise.npz file."""
    reading = as_reading(options)
    facts: dict[str, object] = {}
    if plot is not None:
        check_picture(plot)
        spare([plot], file, force)
    if file.suffix.lower() == ".npz":
        refuse_idle(file, "a record of noise", reading)
        noisy = NoisyLabels.load(existing_file(file))
        if noisy.nominal is not None:
            noisy.verify()
        facts["verified"] = True if noisy.nominal is not None else "the hash alone; drawing again needs the features"
    else:
        noisy = _compare(file, reading, clean)
    _tell(noisy, as_json, facts)
    if plot is not None:
        title = f"{file.name}: {noisy.rate:.1%} of the labels are wrong"
        heat_map(noisy.matrix.nan_to_num(), _classes(noisy), plot, title=title)


def estimate(
    text: str,
    options: TableOptions,
    *,
    size: int | None,
    method: str | None,
    replicates: int,
    seed: int,
    out: Path | None,
    plot: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Estimate the noise in the labels of a file, a folder or a data set, and write the estimate and a heat map."""
    source = source_of(text)
    out = out or place_for(source)
    plot = plot or out.with_suffix(".png")
    # This is checked before the work starts, because an estimate that cannot be written is lost.
    check_picture(plot)
    spare([out, plot], source, force)
    with show_stages(quiet=as_json):  # many images take a while to read
        evidence = read_evidence(source, as_reading(options), size)
    tell_notes(evidence.notes)
    with show_stages(quiet=as_json):
        found = estimation.estimate_transition(
            evidence.probabilities,
            evidence.encoded.codes,
            features=evidence.features,
            cross_fit=evidence.cross_fit,
            classes=evidence.encoded.classes,
            method=method or estimation.DEFAULT,
            replicates=replicates,
            seed=seed,
            row_names=PLACES,
        )
    found.save(out)
    low, high = found.noise_rate_interval
    name = source if isinstance(source, str) else source.name
    title = f"{name}: {found.noise_rate:.1%} of the labels are wrong ({low:.1%} to {high:.1%})"
    heat_map(found.matrix, found.classes, plot, title=title)
    if as_json:
        tell_json(found)
    else:
        tell(found, out)
        typer.echo(f"heat map       {plot}")


def _rows(file: Path, reading: ReadingOptions) -> Dataset:
    """Return the features that instance noise depends on."""
    if not is_table(file):
        raise InputError(
            "instance noise depends on the features: give a table (CSV, Parquet, Arrow), not labels alone."
        )
    return read_table(file, **vars(reading))


def _corrupt(rows: Dataset | None, labels: EncodedLabels, noise: str, seed: int, exact: bool) -> NoisyLabels:
    if rows is None:
        return parse_noise(noise, len(labels.classes), labels.classes).corrupt(labels.codes, seed, exact=exact)
    try:
        eta = float(noise.partition(":")[2])
    except ValueError:
        raise InputError("instance needs a rate after a colon, such as instance:0.3.") from None
    features = torch.as_tensor(rows.inputs[torch.arange(len(labels.codes))]).double()
    spread = features.std(0, correction=0)
    standardised = (features - features.mean(0)) / torch.where(spread > 0, spread, 1.0)
    return corrupt_by_features(standardised, labels.codes, len(labels.classes), eta, seed)


def _compare(file: Path, reading: ReadingOptions, clean: str | None) -> NoisyLabels:
    refuse_idle(file, "a comparison of labels, without features", reading, allowed=_LABELS_ONLY)
    if clean is None:
        raise InputError(f"the true labels are needed to see the noise in {file}: --clean COLUMN, or --clean FILE.")
    elsewhere = file.suffix.lower() == ".npy" or Path(clean).exists()
    given = _labels(file, reading.label, reading)
    # The true labels are in the same column of another file, or in another column of this file.
    source = Path(clean) if elsewhere else file
    true = _other_labels(source, reading) if elsewhere else _labels(file, clean, reading)
    if len(given.values) != len(true.values):
        raise DataError(f"{file} has {len(given.values)} labels, {clean} has {len(true.values)}.")
    columns = [comparable(column.values, reading.decimal) for column in (given, true)]
    _check_present([(file, given), (source, true)], columns)
    if columns[0].dtype.kind not in "iufb" or columns[1].dtype.kind not in "iufb":
        columns = [stripped(column.values.astype(str).astype(object)) for column in (given, true)]
    both = np.array([*columns[0].tolist(), *columns[1].tolist()], dtype=object)
    # Each column may write a label in its own way most often.
    together = encode_labels(merged(both) if reading.merge_labels else both, where=f"{file} and {clean}")
    tell_notes(class_notes(together.classes, together.codes))
    noisy, truth = together.codes.chunk(2)
    definition = f"{given.column or file.name} against {true.column or clean}"
    return NoisyLabels(noisy, truth, len(together.classes), definition, None, None, None, together.classes)


def _labels(file: Path, column: str | None, reading: ReadingOptions) -> LabelColumn:
    return read_labels(
        existing_file(file),
        column,
        decimal=reading.decimal,
        encoding=reading.encoding,
        merge_labels=reading.merge_labels,
    )


def _other_labels(file: Path, reading: ReadingOptions) -> LabelColumn:
    """Return the labels of a second file, which may be of another kind: there some options have no meaning."""
    reading = reading.for_file(file)
    return _labels(file, reading.label, reading)


def _check_present(columns: list[tuple[Path, LabelColumn]], values: list[npt.NDArray[Any]]) -> None:
    """Check that both columns have usable labels in all rows. Together their rows could not be named."""
    for (file, column), labels in zip(columns, values, strict=True):
        where = f"{file}" if column.column is None else f"{file}: column {column.column!r}"
        encode_labels(labels, where=where, rows=column.rows)


def _classes(noisy: NoisyLabels) -> tuple[str | int, ...]:
    return noisy.classes or tuple(range(noisy.num_classes))


def _tell(noisy: NoisyLabels, as_json: bool, more: dict[str, object]) -> None:
    # Labels that were compared with the true ones have no seed.
    drawn = {"seed": noisy.seed, "draw": "exact counts" if noisy.exact else "independent rows"}
    facts: dict[str, object] = {
        "noise": noisy.definition,
        **({} if noisy.seed is None else drawn),
        "rows": len(noisy),
        "wrong": int(noisy.mask.sum()),
        "rate": noisy.rate,
        "sha256": noisy.sha256,
        **more,
    }
    if as_json:
        typer.echo(json.dumps(facts | {"classes": list(_classes(noisy)), "counts": noisy.counts.tolist()}))
        return
    facts["rate"] = f"{noisy.rate:.2%} of the labels are wrong"
    for name, value in facts.items():
        typer.echo(f"{name:14s} {value}")
    print_matrix(noisy.matrix, _classes(noisy), counts=noisy.counts.sum(1))
