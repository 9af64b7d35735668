"""The theory on a problem small enough to see: three points, three classes, noisy labels, every divergence.

For each divergence the network is a free table of logits, trained on the exact expectation over noisy labels until it
stops moving. Whatever f is, it ends at the same place, and the corrections take the noise back out.
"""

from __future__ import annotations

import torch
from torch import Tensor

import postmax as pm

CLEAN = torch.tensor([[0.52, 0.38, 0.10], [0.10, 0.48, 0.42], [0.30, 0.34, 0.36]], dtype=torch.float64)
NOISE = pm.Transition.uniform_off_diagonal([0.05, 0.15, 0.30])
NOISY = NOISE.corrupt_posterior(CLEAN)
FLOOR = 0.05  # below every posterior here, so the stabilised objective correction is exact


def train(loss: pm.FPMLLoss) -> Tensor:
    """The logits that minimise the expected loss under the noisy labels."""
    logits = torch.zeros_like(CLEAN, requires_grad=True)
    optimiser = torch.optim.LBFGS([logits], max_iter=2000, tolerance_grad=1e-12, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimiser.zero_grad()
        per_label = [loss(logits, torch.full((len(CLEAN),), label)) for label in range(CLEAN.shape[1])]
        value: Tensor = (NOISY * torch.stack(per_label, 1)).sum()
        value.backward()
        return value

    optimiser.step(closure)
    return logits.detach()


def show(row: Tensor) -> str:
    """Probabilities with the predicted class marked."""
    best = int(row.argmax())
    return "".join(f"{p:.2f}{'*' if i == best else ' '}" for i, p in enumerate(row.tolist()))


def main() -> None:
    """Print the table."""
    print("Three points, three classes. Labels are corrupted by the transition matrix P[true, noisy]:\n")
    for row in NOISE.matrix.tolist():
        print("    " + "  ".join(f"{p:.2f}" for p in row))
    print(
        f"\n{NOISE.noise_rate():.0%} of the labels are wrong. P(class | x) as each loss learns it (* = prediction):\n"
    )
    floors = {"posterior": 0.0, "objective": FLOOR, "forward": 0.0, "factored": FLOOR}
    columns = ("not corrected", *floors)
    print(f"{'divergence':>11} x  " + " ".join(f"{c:<16}" for c in (*columns, "the truth")))
    wrong = dict.fromkeys(columns, 0)
    worst = 0.0
    names = (*(n for n in pm.divergences.names() if n != "alpha"), "alpha:1.5", "sl:2")
    for name in names:
        losses = [pm.FPMLLoss(name, reduction="none")]
        losses += [
            pm.FPMLLoss(name, transition=NOISE, correction=correction, floor=floor, reduction="none")
            for correction, floor in floors.items()
        ]
        posteriors = [loss.posterior(train(loss)) for loss in losses]
        for x in range(len(CLEAN)):
            print(f"{name if x == 0 else '':>11} {x}  " + " ".join(f"{show(p[x]):<16}" for p in (*posteriors, CLEAN)))
        for column, posterior in zip(columns, posteriors, strict=True):
            wrong[column] += int((posterior.argmax(1) != CLEAN.argmax(1)).sum())
        worst = max(worst, *(float((p - CLEAN).abs().max()) for p in posteriors[1:]))
    print("\nWrong predictions over all divergences and points:")
    for column, count in wrong.items():
        print(f"  {column:<16} {count:2} of {len(names) * len(CLEAN)}")
    print(f"\nLargest distance of a corrected posterior from the truth: {worst:.1e}")


if __name__ == "__main__":
    main()
