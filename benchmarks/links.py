"""Compare links for every divergence without a correction, by validation accuracy. Test parts are not used.

python benchmarks/links.py                 # the first table of docs/links.md, ~20 minutes
    python benchmarks/links.py --floor 0.05    # the second
"""

from __future__ import annotations

import argparse

import torch
from stacked import accuracies

import postmax as pm

PROBLEMS = {
    "digits, clean": ("digits", pm.Transition.identity(10)),
    "digits, symmetric 40 %": ("digits", pm.Transition.symmetric(10, 0.4)),
    "100 blobs, clean": ("100 blobs", pm.Transition.identity(100)),
    "100 blobs, symmetric 40 %": ("100 blobs", pm.Transition.symmetric(100, 0.4)),
    "breast cancer, clean": ("breast cancer", pm.Transition.identity(2)),
    "breast cancer, symmetric 30 %": ("breast cancer", pm.Transition.symmetric(2, 0.3)),
}
# JS has the gradients of GAN.
DIVERGENCES = (*(n for n in pm.divergences.names() if n not in ("alpha", "js")), "alpha:1.5")
STEEP = ("rkl", "neyman", "hellinger", "jeffreys")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5, help="number of seeds (default: 5)")
    parser.add_argument(
        "--floor", type=float, help="only the steep divergences, with slopes bounded below this posterior"
    )
    args = parser.parse_args()
    seeds = tuple(range(1000, 1000 + args.seeds))
    torch.set_num_threads(1)  # the tensors are small
    print(f"Validation accuracy (%), last epoch, mean ± std over n = {len(seeds)} seeds.\n")
    print(f"| divergence | link | {' | '.join(PROBLEMS)} |\n|---|---|" + "---:|" * len(PROBLEMS))
    for name in STEEP if args.floor else DIVERGENCES:
        for link in (pm.links.DEFAULT,) if args.floor else pm.links.names():
            loss = pm.FPMLLoss(name, link, floor=args.floor, reduction="none")
            results = [accuracies(loss, *problem, seeds, validation=True) for problem in PROBLEMS.values()]
            cells = " | ".join(f"{r.mean():.1f} ± {r.std():.1f}" for r in results)
            print(f"| {name} | {link} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
