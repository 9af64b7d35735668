"""Compare the raw and the stabilised objective correction with a network that memorises its labels.

python benchmarks/objective_correction.py                 # the table of docs/objective-correction.md, ~15 minutes
python benchmarks/objective_correction.py --select        # how link and floor were chosen, on validation splits
"""

from __future__ import annotations

import argparse
import itertools
import time

import torch
from stacked import accuracies, load
from torch import Tensor

import postmax as pm

DATASET = "breast cancer"
NOISES = {"[0.1, 0.3]": pm.Transition.binary(0.1, 0.3), "[0.2, 0.4]": pm.Transition.binary(0.2, 0.4)}
CLEAN = pm.Transition.identity(2)
DIVERGENCES = (*(n for n in pm.divergences.names() if n != "alpha"), "alpha:0.7", "alpha:1.5", "sl:2")
COLUMNS = (
    "no correction, exp link",
    "no correction",
    "raw objective, exp link",
    "raw objective",
    "**stabilised objective**",
    "posterior",
    "forward",
    "no noise",
)


def column_loss(column: str, name: str, noise: pm.Transition) -> pm.FPMLLoss:
    """Return the loss of a column of the table."""
    raw = {"transition": noise, "correction": "objective", "floor": 0.0}
    options: dict[str, dict[str, object]] = {
        "no correction, exp link": {"link": "exp"},
        "no correction": {},
        "raw objective, exp link": {"link": "exp", **raw},
        "raw objective": raw,
        "**stabilised objective**": {"transition": noise, "correction": "objective"},
        "posterior": {"transition": noise, "correction": "posterior"},
        "forward": {"transition": noise, "correction": "forward"},
        "no noise": {},
    }
    return pm.FPMLLoss(name, reduction="none", **options[column])  # type: ignore[arg-type]


def cell(values: Tensor) -> str:
    """Return mean ± std as text."""
    return f"{values.mean():.1f} ± {values.std():.1f}"


def report(seeds: tuple[int, ...]) -> None:
    """Print every divergence in every column, for the test part and the last epoch."""
    for title, noise in NOISES.items():
        data = load(DATASET, noise, seeds, False)
        print(
            f"\n### [e0, e1] = {title}\n\nTest accuracy (%), last epoch, mean ± std over n = {len(seeds)} seeds; "
            f"realised noise {data.noise_rate:.1%}, labels SHA-256 `{data.sha256[:16]}`.\n"
        )
        print(f"| divergence | {' | '.join(COLUMNS)} |\n|---|" + "---:|" * len(COLUMNS))
        for name in DIVERGENCES:
            cells = [
                cell(accuracies(column_loss(c, name, noise), DATASET, CLEAN if c == "no noise" else noise, seeds))
                for c in COLUMNS
            ]
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


def select(seeds: tuple[int, ...]) -> None:
    """Print every link and floor on validation splits: the mean over divergences and noises, and the worst cell."""
    print(f"Validation accuracy (%) of the stabilised objective, n = {len(seeds)} seeds, test part unused.\n")
    print("| link | floor·K | mean over cells | worst mean | largest std |\n|---|---:|---:|---:|---:|")
    names = ("kl", "gan", "sl", "rkl", "neyman", "pearson", "hellinger")
    for link, scaled_floor in itertools.product(pm.links.names(), (0.02, 0.1, 0.2, 0.4)):
        results = []
        for name, noise in itertools.product(names, NOISES.values()):
            loss = pm.FPMLLoss(
                name, link, transition=noise, correction="objective", floor=scaled_floor / 2, reduction="none"
            )
            results.append(accuracies(loss, DATASET, noise, seeds, validation=True))
        means, stds = (torch.stack([f(r) for r in results]) for f in (torch.mean, torch.std))
        print(f"| {link} | {scaled_floor:g} | {means.mean():.1f} | {means.min():.1f} | {stds.max():.1f} |", flush=True)


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--select", action="store_true", help="compare links and floors on validation splits")
    parser.add_argument("--seeds", type=int, default=20, help="number of seeds (default: 20)")
    args = parser.parse_args()
    torch.set_num_threads(1)  # the tensors are small
    start = time.perf_counter()
    if args.select:
        select(tuple(range(1000, 1000 + args.seeds)))
    else:
        report(tuple(range(args.seeds)))
    print(f"\n{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
