"""A training loop of Hugging Face accelerate on wrong labels: the loss is the only part that comes from postmax.

The same loop runs on one processor or on many, in full or in half precision. The data are 1797 pictures of handwritten
digits. 40 % of the training labels are moved to the next class, and the test labels are right.

Run it with `python examples/accelerate_loop.py`, or with `accelerate launch` on several processors (a few seconds). It
needs `pip install accelerate`.
"""

from __future__ import annotations

from typing import Any

import torch
from accelerate import Accelerator
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import postmax as pm

EPOCHS, BATCH, TEST_ROWS = 30, 64, 500

Batches = DataLoader[tuple[Tensor, ...]]


def make_data(noise: pm.Transition) -> tuple[Batches, Batches]:
    """Return training batches with noisy labels, and test batches with clean labels."""
    pixels, digits = load_digits(return_X_y=True)
    order = torch.randperm(len(digits), generator=torch.Generator().manual_seed(0))
    inputs, labels = torch.tensor(pixels, dtype=torch.float32)[order] / 16, torch.tensor(digits)[order]
    noisy = torch.as_tensor(noise.corrupt(labels[TEST_ROWS:], seed=0).labels)
    return (
        DataLoader(TensorDataset(inputs[TEST_ROWS:], noisy), batch_size=BATCH, shuffle=True),
        DataLoader(TensorDataset(inputs[:TEST_ROWS], labels[:TEST_ROWS]), batch_size=BATCH),
    )


def train(loss: Any, training: Batches, test: Batches) -> float:
    """Train a small network and return its accuracy on clean labels."""
    torch.manual_seed(0)
    accelerator = Accelerator(cpu=True)  # without cpu=True it takes the GPU, if there is one
    network = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    optimiser = torch.optim.AdamW(network.parameters(), lr=3e-3)
    network, optimiser, training, test = accelerator.prepare(network, optimiser, training, test)
    loss = loss.to(accelerator.device)
    for epoch in range(EPOCHS):
        # Some losses change during the training; at(share) is the loss after this share of it.
        loss_now = loss.at(epoch / EPOCHS)
        for inputs, labels in training:
            optimiser.zero_grad()
            accelerator.backward(loss_now(network(inputs), labels))
            optimiser.step()
    network.eval()
    right = []
    for inputs, labels in test:
        with torch.no_grad():
            posterior = loss.posterior(network(inputs))  # P(true class | x): the noise is not in it
        right.append(accelerator.gather_for_metrics(posterior.argmax(1) == labels))
    return float(torch.cat(right).double().mean())


def main() -> None:
    """Print the accuracy of each loss on clean test labels."""
    noise = pm.Transition.pair(10, 0.4)
    training, test = make_data(noise)
    losses: dict[str, Any] = {
        "cross-entropy": pm.losses.get("ce"),
        "f-PML, noise known": pm.FPMLLoss("gan", transition=noise, correction="forward"),
    }
    print(f"{noise.noise_rate():.0%} of the training labels are wrong. Accuracy on clean test labels:")
    for name, loss in losses.items():
        print(f"  {name:<20}{train(loss, training, test):6.1%}")


if __name__ == "__main__":
    main()
