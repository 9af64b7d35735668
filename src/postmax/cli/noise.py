"""`postmax noise`: corrupt labels, show label noise, and estimate it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

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
from postmax.transition import NoisyLabels, corrupt_by_features, kinds, parse_noise

app = typer.Typer(
    help="Corrupt labels reproducibly, show label noise, and estimate it.", no_args_is_help=True, rich_markup_mode=None
)

_Label = Annotated[
    str | None,
    typer.Option("--label", "-l", help="The column of the labels.", show_default="label, y, target or class"),
]
_Out = Annotated[Path | None, typer.Option("--out", "-o", help="The file to write.", show_default="beside FILE")]
_Force = Annotated[bool, typer.Option("--force", help="Overwrite files that exist.")]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def inject(
    file: Annotated[
        Path, typer.Argument(help="A CSV, Parquet or .npy file of labels.", metavar="FILE", show_default=False)
    ],
    noise: Annotated[
        str,
        typer.Option("--noise", "-n", help=f"{', '.join(kinds())}, instance:ETA (by the features), or a matrix file."),
    ],
    label: _Label = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same labels.")] = 0,
    independent: Annotated[
        bool, typer.Option("--independent", help="Draw each row on its own; by default the counts match the matrix.")
    ] = False,
    out: _Out = None,
    force: _Force = False,
    as_json: _Json = False,
) -> None:
    """Write FILE with noisy labels, and beside it a .noise.npz file that records how they were drawn.

    \b
    postmax noise inject train.csv --noise symmetric:0.4
    postmax noise inject train.parquet --label species --noise pair:0.3 --seed 7 --out noisy.parquet
    postmax noise inject labels.npy --noise matrix.csv
    """  # noqa: D301  (\b keeps the lines of the examples)
    column = read_labels(existing_file(file), label)
    labels = encode_column(column, str(file))
    out = out or file.with_name(f"{file.stem}.noisy{file.suffix}")
    story = out.with_name(f"{out.stem}.noise.npz")
    _spare([out, story], file, force)
    noisy = replace(_corrupt(file, column.column, labels, noise, seed, not independent), classes=labels.classes)
    noisy.save(story)
    write_labels(file, out, labels.decode(noisy.labels), column=column.column)
    _tell(noisy, as_json, {"file": str(out), "story": str(story)})


@app.command()
def show(
    file: Annotated[
        Path, typer.Argument(help="A .noise.npz, or a CSV, Parquet or .npy file.", metavar="FILE", show_default=False)
    ],
    label: _Label = None,
    clean: Annotated[
        str | None, typer.Option("--clean", "-c", help="The true labels: a column of FILE, or another file.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the matrix as .png, .svg or .pdf.")] = None,
    force: _Force = False,
    as_json: _Json = False,
) -> None:
    """Show the noise in labels whose true labels are known, and verify a .noise.npz file.

    \b
    postmax noise show train.noisy.noise.npz
    postmax noise show train.csv --label given --clean checked
    postmax noise show noisy.npy --clean clean.npy
    """  # noqa: D301  (\b keeps the lines of the examples)
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


@app.command()
def estimate(
    file: Annotated[
        Path, typer.Argument(help="A CSV or Parquet table, or an .npz.", metavar="FILE", show_default=False)
    ],
    label: _Label = None,
    drop: Annotated[list[str] | None, typer.Option(help="A column that is not a feature; may be repeated.")] = None,
    method: Annotated[str, typer.Option(help=", ".join(estimation.names()))] = estimation.DEFAULT,
    out: _Out = None,
    plot: Annotated[
        Path | None, typer.Option(help="The heat map: .png, .svg or .pdf.", show_default="beside FILE")
    ] = None,
    missing: Annotated[str, typer.Option(help="Missing numbers: error or median.")] = "error",
    replicates: Annotated[int, typer.Option(help="Bootstrap replicates.")] = 100,
    seed: Annotated[int, typer.Option(help="The seed of folds, networks and bootstrap.")] = 0,
    force: _Force = False,
    as_json: _Json = False,
) -> None:
    """Estimate the noise in the labels of FILE: the matrix, the share of wrong labels, and intervals.

    Writes FILE.transition.json, which `postmax noise inject --noise` and `TransitionEstimate.load` read, and a heat
    map. An .npz holds features as x and labels as y, or out-of-sample probabilities as "probabilities".

    \b
    postmax noise estimate train.csv
    postmax noise estimate train.parquet --label species --drop id
    postmax noise estimate embeddings.npz --method hoc
    """  # noqa: D301  (\b keeps the lines of the examples)
    out = out or file.with_name(f"{file.stem}.transition.json")
    plot = plot or out.with_suffix(".png")
    # This is checked before the work starts, because an estimate that cannot be written is lost.
    check_picture(plot)
    _spare([out, plot], file, force)
    evidence = read_evidence(existing_file(file), label, drop or [], missing)
    found = estimation.estimate_transition(
        evidence.probabilities,
        evidence.encoded.codes,
        features=evidence.features,
        classes=evidence.encoded.classes,
        method=method,
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
