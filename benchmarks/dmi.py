"""With which optimisers, learning rates and batches L_DMI trains, and where it stops learning.

python benchmarks/dmi.py        # the table of docs/losses.md, ~10 minutes on one core
"""

from __future__ import annotations

import torch
from problems import StackedNetwork, num_classes, problem

import postmax as pm

PROBLEMS = (("gauss:2:10:0.7", "pair:0.3"), ("gauss:10:20:1", "pair:0.3"), ("digits", "sym:0.4"))
OPTIMISERS = (*(("sgd", lr) for lr in (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)), *(("adam", lr) for lr in (1e-4, 1e-3, 1e-2)))
SEEDS = (3000, 3001, 3002)
ROWS, HIDDEN, WARM_UP, EPOCHS, MOMENTUM = 2000, 64, 10, 20, 0.9


def run(data: str, noise: str, batch: int, optimiser: str, lr: float, warm_up: int) -> tuple[list[float], list[bool]]:
    """Return for each seed the accuracy on test rows, in per cent, and whether each batch of the end was singular."""
    rows = problem(data, noise, ROWS, SEEDS)
    network = StackedNetwork(SEEDS, (rows.inputs.shape[2], HIDDEN, num_classes(data)))
    dmi = pm.losses.DMILoss()
    lanes = torch.arange(len(SEEDS)).unsqueeze(1)
    generators = [torch.Generator().manual_seed(20_000 + seed) for seed in SEEDS]
    values: list[list[float]] = []

    def train(loss: torch.nn.Module, steps: torch.optim.Optimizer, epochs: int) -> None:
        for _ in range(epochs):
            values.clear()
            order = torch.stack([torch.randperm(rows.inputs.shape[1], generator=g) for g in generators])
            for index in order.split(batch, dim=1):
                if index.shape[1] < batch:
                    continue
                steps.zero_grad()
                logits = network(rows.inputs[lanes, index]).nan_to_num(0.0, 1e4, -1e4)
                found = [loss(*lane) for lane in zip(logits, rows.labels[lanes, index], strict=True)]
                torch.stack(found).sum().backward()
                steps.step()
                values.append([value.item() for value in found])

    parameters = list(network.parameters())
    train(torch.nn.CrossEntropyLoss(), torch.optim.SGD(parameters, lr=0.05, momentum=MOMENTUM), warm_up)
    new = torch.optim.Adam(parameters, lr=lr) if optimiser == "adam" else torch.optim.SGD(parameters, lr, MOMENTUM)
    train(dmi, new, EPOCHS)
    with torch.no_grad():
        right = network(rows.test_inputs).argmax(-1) == rows.test_labels
    stuck = (torch.tensor(values) - dmi.stuck_at).abs() < 1e-5
    return (100 * right.float().mean(1)).tolist(), stuck.all(0).tolist()


def cell(accuracies: list[float], stuck: list[bool]) -> str:
    """Return the mean accuracy, and how many seeds stopped learning."""
    found = torch.tensor(accuracies)
    return f"{found.mean():.0f} ± {found.std():.0f}" + (f", {sum(stuck)} stuck" if any(stuck) else "")


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)  # the tensors are small
    titles = " | ".join(f"{name.upper() if name == 'sgd' else 'Adam'} {lr:g}" for name, lr in OPTIMISERS)
    print(f"| problem | begins with | batch | no DMI | {titles} |\n|---|---|---:|" + "---:|" * (1 + len(OPTIMISERS)))
    cases = [(*words, batch, True) for words in PROBLEMS for batch in (32, 128, 512)]
    cases += [("gauss:50:50:0.8", "sym:0.4", 512, True), *((*words, 128, False) for words in PROBLEMS)]
    for data, noise, batch, warm in cases:
        warm_up = WARM_UP if warm else 0
        before, _ = run(data, noise, batch, "sgd", 0.0, warm_up)
        cells = [cell(*run(data, noise, batch, name, lr, warm_up)) for name, lr in OPTIMISERS]
        begin = "CE" if warm else "random"
        print(f"| {data}, {noise} | {begin} | {batch} | {cell(before, [])} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
