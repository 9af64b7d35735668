"""How well wrong labels are found: `pm.audit` against cleanlab, on tables of scikit-learn with known noise.

    nice -n 10 python benchmarks/audit.py --seeds 1
    python benchmarks/audit.py --page

Each judge of each case is one line of JSON in `--out`. A case that is there is never run again, so the benchmark can be
stopped at any time and continued with the same command. `--page` prints the results as Markdown.

Judges come in pairs with the same out-of-sample probabilities of the label: those of the networks of postmax, and those
of a logistic regression in five folds. cleanlab ranks rows by self-confidence, by normalised margin, or by confident
learning, where the rows that it calls wrong come first.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from cleanlab.filter import find_label_issues
from cleanlab.rank import get_label_quality_scores
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from table_sources import Table, read
from tables import corrupt

import postmax as pm

Numbers = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]

TABLES = ("iris", "wine", "breast-cancer", "digits")
NOISES = ("symmetric-30", "asymmetric-30", "instance-30")
_MODELS = ("networks", "logistic")
_CLEANLAB = ("self-confidence", "normalised margin", "confident learning")
JUDGES = tuple(f"{judge}, {model}" for model in _MODELS for judge in ("postmax", *(f"cleanlab {w}" for w in _CLEANLAB)))
_FIELDS = ("table", "noise", "seed", "judge")
METRICS = ("average_precision", "auroc", "precision_at_number", "suggested_right", "number_error", "seconds")


class Verdict(NamedTuple):
    """What a judge says.

    Attributes:
        doubt: A number for each row that is larger, the more its label is doubted.
        suggested: The class that it suggests.
        number: How many labels it says are wrong.
        expected: How many wrong labels it expects among as many of the most doubted rows; None if it does not say.
    """

    doubt: Numbers
    suggested: Labels
    number: int
    expected: float | None


def by_postmax(probabilities: Numbers, labels: Labels) -> Verdict:
    """Return what `pm.audit` says."""
    return verdict_of(pm.audit(probabilities=probabilities, labels=labels))


def verdict_of(audit: pm.Audit) -> Verdict:
    """Return the verdict of an audit."""
    issues = audit.issues
    return Verdict(audit.table["p_wrong"], audit.doubt.suggested, len(issues), issues.expected_wrong)


def by_cleanlab(way: str) -> Callable[[Numbers, Labels], Verdict]:
    """Return a function that asks cleanlab."""

    def judge(probabilities: Numbers, labels: Labels) -> Verdict:
        method = "normalized_margin" if way == "normalised margin" else "self_confidence"
        doubt = 1 - get_label_quality_scores(labels, probabilities, method=method)
        wrong = find_label_issues(labels, probabilities, n_jobs=1)
        if way == "confident learning":
            doubt = doubt + wrong
        return Verdict(doubt, probabilities.argmax(1), int(wrong.sum()), None)

    return judge


def score(said: Verdict, wrong: npt.NDArray[np.bool_], truth: Labels) -> dict[str, float | None]:
    """Return how well wrong labels are found, and how well their right labels are known."""
    first = np.argsort(-said.doubt, kind="stable")[: said.number]
    found = int(wrong[first].sum())
    return {
        "average_precision": float(average_precision_score(wrong, said.doubt)),
        "auroc": float(roc_auc_score(wrong, said.doubt)),
        "precision_at_number": found / said.number if said.number else None,
        "suggested_right": float((said.suggested == truth)[wrong].mean()),
        "number_error": said.number - int(wrong.sum()),
        "expected_error": None if said.expected is None else said.expected - found,
    }


def run(name: str, table: Table, noise: str, seed: int) -> Iterator[dict[str, Any]]:
    """Yield one result for each judge. The seconds of networks and logistic regression count for all their judges."""
    median = np.nan_to_num(np.nanmedian(table.rows, axis=0))
    rows = np.where(np.isnan(table.rows), median, table.rows)
    scaled = (rows - rows.mean(0)) / np.where(rows.std(0) > 0, rows.std(0), 1)
    labels = corrupt(noise, scaled, table.labels, table.num_classes, seed)
    wrong = labels != table.labels
    start = time.perf_counter()
    model = pm.FPMLClassifier(random_state=seed).fit(rows, labels)
    fitted = time.perf_counter() - start
    networks = model.posterior_ @ model.transition_.matrix.numpy()
    start = time.perf_counter()
    logistic = _logistic(rows, labels, seed)
    trained = {"networks": fitted, "logistic": time.perf_counter() - start}
    for judge in JUDGES:
        who, _, which = judge.rpartition(", ")
        start = time.perf_counter()
        if judge == "postmax, networks":
            said = verdict_of(pm.audit(model))
        else:
            ask = by_postmax if who == "postmax" else by_cleanlab(who.removeprefix("cleanlab "))
            said = ask(networks / networks.sum(1, keepdims=True) if which == "networks" else logistic, labels)
        seconds = trained[which] + time.perf_counter() - start
        about = {"table": name, "noise": noise, "seed": seed, "judge": judge}
        sizes = {"rows": len(rows), "wrong": int(wrong.sum())}
        yield {**about, **sizes, **score(said, wrong, table.labels), "seconds": seconds}


def _logistic(rows: Numbers, labels: Labels, seed: int) -> Numbers:
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    model = make_pipeline(StandardScaler(), LogisticRegression())
    found: Numbers = cross_val_predict(model, rows, labels, cv=folds, method="predict_proba")
    return found


def finished(path: Path) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Return the results in a file, by what they are of. A line that was cut off does not count."""
    found = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            result = json.loads(line)
            found[tuple(result[name] for name in _FIELDS)] = result
        except (ValueError, KeyError):
            continue
    return found


def page(found: Sequence[dict[str, Any]]) -> str:
    """Return the results as Markdown: the mean over all cases for each judge, and average precision by case."""
    judges = [judge for judge in JUDGES if any(one["judge"] == judge for one in found)]
    lines = [
        "| judge, probabilities | AP | AUROC | precision at its number | suggestion right | its number − truth | s |"
    ]
    lines += ["|---|" + "---:|" * 6]
    for judge in judges:
        own = [one for one in found if one["judge"] == judge]
        cells = []
        for metric in METRICS:
            values = [one[metric] for one in own if one[metric] is not None]
            mean = fmean(map(abs, values) if metric == "number_error" else values)
            cells.append(f"{mean:.1f}" if metric in ("number_error", "seconds") else f"{mean:.3f}")
        lines.append(f"| {judge} | " + " | ".join(cells) + " |")
    lines += ["", "| average precision | " + " | ".join(judges) + " |", "|---|" + "---:|" * len(judges)]
    for table in TABLES:
        for noise in NOISES:
            own = [one for one in found if (one["table"], one["noise"]) == (table, noise)]
            if not own:
                continue
            means = [fmean(one["average_precision"] for one in own if one["judge"] == judge) for judge in judges]
            best = max(means)
            cells = [f"**{mean:.3f}**" if mean == best else f"{mean:.3f}" for mean in means]
            lines.append(f"| {table}, {noise} | " + " | ".join(cells) + " |")
    ours = [one for one in found if one["expected_error"] is not None]
    for which in _MODELS:
        errors = [abs(one["expected_error"]) for one in ours if one["judge"].endswith(which)]
        if errors:
            lines += ["", f"Expected wrong among the issues, {which}: off by {fmean(errors):.1f} rows on average."]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run what is left of the benchmark, or print the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", metavar="TABLE", default=list(TABLES))
    parser.add_argument("--noises", nargs="+", default=list(NOISES))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("docs/results/audit.jsonl"))
    parser.add_argument("--page", action="store_true", help="print the results as Markdown, and run nothing")
    args = parser.parse_args()
    done = finished(args.out)
    if args.page:
        print(page(list(done.values())))
        return
    torch.set_num_threads(1)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    for seed in range(args.seeds):
        for table in args.tables:
            for noise in args.noises:
                if all((table, noise, seed, judge) in done for judge in JUDGES):
                    continue
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # that defaults did not converge is a result, not an error
                    results = list(run(table, read(table), noise, seed))
                with args.out.open("a") as file:
                    file.write("".join(json.dumps(one) + "\n" for one in results))
                print(table, noise, seed, *(f"{one['average_precision']:.3f}" for one in results), flush=True)


if __name__ == "__main__":
    main()
