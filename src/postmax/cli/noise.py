"""What `postmax noise` does: corrupt labels, show label noise, and estimate it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import torch
import typer

from postmax import estimation
from postmax.cli.estimation import read_evidence, tell, tell_json
from postmax.cli.text import print_matrix
from postmax.data.files import existing_file
from postmax.data.label_column import LabelColumn, comparable, encode_column, read_labels, write_labels
from postmax.data.tables import read_table
from postmax.errors import DataError, InputError
from postmax.labels import EncodedLabels, encode_labels
from postmax.plots import check_picture, heat_map
from postmax.transition import NoisyLabels, corrupt_by_features, parse_noise


def inject(
    file: Path,
    noise: str,
    *,
    label: str | None,
    seed: int,
    independent: bool,
    out: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Write a file with noisy labels, and beside it a .noise.npz file that records how they were drawn."""
    column = read_labels(existing_file(file), label)
    labels = encode_column(column, str(file))
    out = out or file.with_name(f"{file.stem}.noisy{file.suffix}")
    story = out.with_name(f"{out.stem}.noise.npz")
    _spare([out, story], file, force)
    noisy = replace(_corrupt(file, column.column, labels, noise, seed, not independent), classes=labels.classes)
    noisy.save(story)
    write_labels(file, out, labels.decode(noisy.labels), column=column.column)
    _tell(noisy, as_json, {"file": str(out), "story": str(story)})


def show(file: Path, *, label: str | None, clean: str | None, plot: Path | None, force: bool, as_json: bool) -> None:
    """Show the noise in labels whose true labels are known, and verify a .noise.npz file."""
    facts: dict[str, object] = {}
    if plot is not None:
        check_picture(plot)
        _spare([plot], file, force)
    if file.suffix.lower() == ".npz":
        noisy = NoisyLabels.load(existing_file(file))
        if noisy.nominal is not None:
            noisy.verify()
        facts["verified"] = True if noisy.nominal is not None else "the hash alone; drawing again needs the features"
    else:
        noisy = _compare(file, label, clean)
    _tell(noisy, as_json, facts)
    if plot is not None:
        title = f"{file.name}: {noisy.rate:.1%} of the labels are wrong"
        heat_map(noisy.matrix.nan_to_num(), _classes(noisy), plot, title=title)


def estimate(
    file: Path,
    *,
    label: str | None,
    drop: list[str],
    missing: str,
    method: str | None,
    replicates: int,
    seed: int,
    out: Path | None,
    plot: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Estimate the noise in the labels of a file, and write the estimate and a heat map of its matrix."""
    out = out or file.with_name(f"{file.stem}.transition.json")
    plot = plot or out.with_suffix(".png")
    # This is checked before the work starts, because an estimate that cannot be written is lost.
    check_picture(plot)
    _spare([out, plot], file, force)
    evidence = read_evidence(existing_file(file), label, drop, missing)
    found = estimation.estimate_transition(
        evidence.probabilities,
        evidence.encoded.codes,
        features=evidence.features,
        classes=evidence.encoded.classes,
        method=method or estimation.DEFAULT,
        replicates=replicates,
        seed=seed,
    )
    found.save(out)
    low, high = found.noise_rate_interval
    title = f"{file.name}: {found.noise_rate:.1%} of the labels are wrong ({low:.1%} to {high:.1%})"
    heat_map(found.matrix, found.classes, plot, title=title)
    if as_json:
        tell_json(found)
    else:
        tell(found, out)
        typer.echo(f"heat map       {plot}")


def _corrupt(file: Path, column: str | None, labels: EncodedLabels, noise: str, seed: int, exact: bool) -> NoisyLabels:
    kind, _, rate = noise.partition(":")
    if kind != "instance":
        return parse_noise(noise, len(labels.classes), labels.classes).corrupt(labels.codes, seed, exact=exact)
    if column is None:
        raise InputError("instance noise depends on the features: give a CSV or Parquet table, not labels alone.")
    try:
        eta = float(rate)
    except ValueError:
        raise InputError("instance needs a rate after a colon, such as instance:0.3.") from None
    features = torch.as_tensor(read_table(file, label=column).inputs[torch.arange(len(labels.codes))]).double()
    spread = features.std(0, correction=0)
    standardised = (features - features.mean(0)) / torch.where(spread > 0, spread, 1.0)
    return corrupt_by_features(standardised, labels.codes, len(labels.classes), eta, seed)


def _compare(file: Path, label: str | None, clean: str | None) -> NoisyLabels:
    if clean is None:
        raise InputError(f"the true labels are needed to see the noise in {file}: --clean COLUMN, or --clean FILE.")
    given = read_labels(existing_file(file), label)
    true = _true_labels(file, clean, label)
    if len(given.values) != len(true.values):
        raise DataError(f"{file} has {len(given.values)} labels, {clean} has {len(true.values)}.")
    columns = [comparable(column.values) for column in (given, true)]
    if columns[0].dtype.kind not in "iufb" or columns[1].dtype.kind not in "iufb":
        columns = [column.values.astype(str).astype(object) for column in (given, true)]
    together = encode_labels([*columns[0].tolist(), *columns[1].tolist()], where=f"{file} and {clean}")
    noisy, truth = together.codes.chunk(2)
    definition = f"{given.column or file.name} against {true.column or clean}"
    return NoisyLabels(noisy, truth, len(together.classes), definition, None, None, None, together.classes)


def _true_labels(file: Path, clean: str, label: str | None) -> LabelColumn:
    """Return the labels of the file called `clean`, in the same column, or the column `clean` of the file."""
    if file.suffix.lower() == ".npy" or Path(clean).is_file():
        return read_labels(existing_file(clean), label)
    return read_labels(existing_file(file), clean)


def _spare(outputs: list[Path], source: Path, force: bool) -> None:
    """Check that no file of the user would be overwritten."""
    if len({path.resolve() for path in outputs}) < len(outputs):
        raise InputError(f"{outputs[0]} would be written twice; give each output a name of its own.")
    for path in outputs:
        if path.resolve() == source.resolve():
            raise InputError(f"{path} is the input; give another --out.")
        if path.exists() and not force:
            raise InputError(f"{path} exists; give another --out, or --force to overwrite it.")


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
