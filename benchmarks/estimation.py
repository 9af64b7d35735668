"""How well the transition matrix is estimated: every method, known noise and human noise, several seeds.

    python benchmarks/estimation.py docs/results/estimation.jsonl     # run what is missing, then print the tables
    python benchmarks/estimation.py docs/results/estimation.jsonl --tables

One line for each (setting, seed, method) is appended as soon as it is there; what is there is not run again. A seed
draws the rows (half of CIFAR-10's training images), the noise, the folds and the networks. CIFAR-10 comes as 128
principal components of frozen features (benchmarks/cifar10_features.py).
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import cifar10_features
import torch
from torch import Tensor

from postmax import Transition, data, estimate_transition, estimation
from postmax.estimation.counts import count_pairs, normalise_rows
from postmax.estimation.evidence import gather_evidence

SEEDS = 5
DIMENSIONS = 128


@cache
def table(name: str) -> tuple[Tensor, Tensor]:
    """All rows of a scikit-learn data set."""
    whole = data.load(name, split="all")
    return whole.inputs[torch.arange(len(whole))], whole.labels


@cache
def cifar10() -> tuple[Tensor, Tensor]:
    """Reduced features and true labels of the training images."""
    train, _ = cifar10_features.load()
    return cifar10_features.reduced(train, DIMENSIONS), data.load("cifar10").labels


Problem = tuple[Tensor, Tensor, Tensor]


def corrupted(source: Callable[[], tuple[Tensor, Tensor]], noise: Transition, half: bool) -> Callable[[int], Problem]:
    """Features, true labels and labels under `noise`, for a seed."""

    def problem(seed: int) -> Problem:
        features, truth = source()
        rows = some_rows(len(truth), half, seed)
        return features[rows], truth[rows], noise.corrupt(truth[rows], seed).labels

    return problem


def human(name: str) -> Callable[[int], Problem]:
    """The same with the labels people gave."""

    def problem(seed: int) -> Problem:
        features, truth = cifar10()
        rows = some_rows(len(truth), True, seed)
        return features[rows], truth[rows], data.load(name).labels[rows]

    return problem


def some_rows(count: int, half: bool, seed: int) -> Tensor:
    """All rows, or a random half of them."""
    if not half:
        return torch.arange(count)
    return torch.randperm(count, generator=torch.Generator().manual_seed(seed))[: count // 2]


SETTINGS: dict[str, Callable[[int], Problem]] = {
    "breast cancer [0.1, 0.3]": corrupted(lambda: table("breast-cancer"), Transition.binary(0.1, 0.3), False),
    "breast cancer [0.2, 0.4]": corrupted(lambda: table("breast-cancer"), Transition.binary(0.2, 0.4), False),
    "digits low": corrupted(lambda: table("digits"), Transition.uniform_off_diagonal("low"), False),
    "digits high": corrupted(lambda: table("digits"), Transition.uniform_off_diagonal("high"), False),
    "digits pair 30%": corrupted(lambda: table("digits"), Transition.pair(10, 0.3), False),
    "CIFAR-10 low": corrupted(cifar10, Transition.uniform_off_diagonal("low"), True),
    "CIFAR-10 high": corrupted(cifar10, Transition.uniform_off_diagonal("high"), True),
    "CIFAR-10 symmetric 20%": corrupted(cifar10, Transition.symmetric(10, 0.2), True),
    "CIFAR-10 symmetric 40%": corrupted(cifar10, Transition.symmetric(10, 0.4), True),
    "CIFAR-10 symmetric 60%": corrupted(cifar10, Transition.symmetric(10, 0.6), True),
    "CIFAR-10 asymmetric 40%": corrupted(cifar10, Transition.asymmetric("cifar10", 0.4), True),
    "CIFAR-10 clean": corrupted(cifar10, Transition.identity(10), True),
    "CIFAR-10N aggregate": human("cifar10n-aggregate"),
    "CIFAR-10N random 1": human("cifar10n-random1"),
    "CIFAR-10N random 3": human("cifar10n-random3"),
    "CIFAR-10N worst": human("cifar10n-worst"),
}


def measure(setting: str, seed: int, done: set[tuple[str, int, str]]) -> Iterator[dict[str, Any]]:
    """One record for each method that is missing."""
    missing = [method for method in estimation.names() if (setting, seed, method) not in done]
    if not missing:
        return
    features, truth, labels = SETTINGS[setting](seed)
    k = int(truth.max()) + 1
    counts = count_pairs(truth, labels, k)
    true_matrix, true_rate = normalise_rows(counts), float((truth != labels).double().mean())
    # All methods that need probabilities get the same ones. Computing them takes longer than the other methods do.
    evidence = gather_evidence(None, labels, features, k, seed)
    wanted = any(not estimation.needs_features(estimation.get(method)) for method in missing)
    shared = evidence.out_of_sample if wanted else None
    for method in missing:
        started = time.perf_counter()
        ours = method == estimation.DEFAULT
        found = estimate_transition(
            shared, labels, features=features, method=method, replicates=100 if ours else 2,
            seed=seed,
        )  # fmt: skip
        yield {
            "setting": setting,
            "seed": seed,
            "method": method,
            "rows": len(labels),
            "true_rate": true_rate,
            "l1": float((found.matrix - true_matrix).abs().sum(1).mean()),
            "rate": found.noise_rate,
            "seconds": time.perf_counter() - started,
            # Two replicates give no interval worth recording.
            **({"interval": found.noise_rate_interval, "sampling_interval": found.sampling_interval} if ours else {}),
        }


def read(path: Path) -> list[dict[str, Any]]:
    """The records so far; a line cut short by a kill is dropped and run again."""
    records = []
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            records.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return records


def tables(records: list[dict[str, Any]]) -> str:
    """Both tables as Markdown: mean L1 error of a row of the matrix, and error of the noise rate in points."""
    cells: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for record in records:
        cells[record["setting"], record["method"]].append(record)
    methods = [method for method in estimation.names() if any((setting, method) in cells for setting in SETTINGS)]

    def block(title: str, value: Callable[[dict[str, Any]], float], form: str, size: Callable[[float], float]) -> str:
        lines = [f"| {title} | " + " | ".join(methods) + " |", "|---" * (len(methods) + 1) + "|"]
        for setting in SETTINGS:
            row = {method: [value(record) for record in cells[setting, method]] for method in methods}
            row = {method: values for method, values in row.items() if values}
            if not row:
                continue
            best = min(row, key=lambda method: size(statistics.mean(row[method])))
            texts = []
            for method in methods:
                if method not in row:
                    texts.append("")
                    continue
                mean, spread = statistics.mean(row[method]), statistics.pstdev(row[method])
                text = f"{mean:{form}} ± {spread:{form.lstrip('+')}}"
                texts.append(f"**{text}**" if method == best else text)
            lines.append(f"| {setting} | " + " | ".join(texts) + " |")
        return "\n".join(lines)

    def covered(interval: str) -> str:
        ours = [record for record in records if record["method"] == estimation.DEFAULT]
        hits = [record[interval][0] <= record["true_rate"] <= record[interval][1] for record in ours]
        human_hits = [hit for hit, record in zip(hits, ours, strict=True) if "10N" in record["setting"]]
        return f"{sum(hits)} of {len(hits)} (human noise: {sum(human_hits)} of {len(human_hits)})"

    return "\n\n".join(
        [
            block("mean L1 error of a row", lambda record: record["l1"], ".3f", abs),
            block("error of the noise rate, points", lambda r: 100 * (r["rate"] - r["true_rate"]), "+.1f", abs),
            f"95% interval of `{estimation.DEFAULT}` covers the true noise rate: {covered('interval')}.",
            f"Its sampling interval alone: {covered('sampling_interval')}.",
        ]
    )


def main() -> None:
    """Run what is missing and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("results", type=Path)
    parser.add_argument("--tables", action="store_true", help="print the tables of what is there")
    parser.add_argument("--only", default="", help="settings whose name contains this")
    options = parser.parse_args()
    options.results.parent.mkdir(parents=True, exist_ok=True)
    for seed in range(0 if options.tables else SEEDS):
        done = {(record["setting"], record["seed"], record["method"]) for record in read(options.results)}
        for setting in (name for name in SETTINGS if options.only in name):
            for record in measure(setting, seed, done):
                with options.results.open("a") as file:
                    file.write(json.dumps(record) + "\n")
                print(
                    f"{setting:26s} seed {seed} {record['method']:16s} L1 {record['l1']:.3f}  "
                    f"rate {record['rate']:.3f} (true {record['true_rate']:.3f})  {record['seconds']:.0f} s",
                    flush=True,
                )
    print(tables(read(options.results)))


if __name__ == "__main__":
    main()
