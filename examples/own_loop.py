"""A plain PyTorch training loop on wrong labels: cross-entropy, f-PML with known noise, and f-PML that knows nothing.

The data are 1797 pictures of handwritten digits. 40 % of the training labels are moved to the next class. The three
losses train the same network from the same start, and the test labels are right.

Run it with `python examples/own_loop.py` (a few seconds).
"""

from __future__ import annotations

from typing import Any

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

import postmax as pm

EPOCHS, BATCH, TEST_ROWS = 40, 64, 500


def make_data(noise: pm.Transition) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return training inputs with noisy labels, and test inputs with clean labels."""
    pixels, digits = load_digits(return_X_y=True)
    order = torch.randperm(len(digits), generator=torch.Generator().manual_seed(0))
    inputs, labels = torch.tensor(pixels, dtype=torch.float32)[order] / 16, torch.tensor(digits)[order]
    noisy = noise.corrupt(labels[TEST_ROWS:], seed=0)  # the same labels on every machine
    return inputs[TEST_ROWS:], torch.as_tensor(noisy.labels), inputs[:TEST_ROWS], labels[:TEST_ROWS]


def train(loss: Any, inputs: Tensor, labels: Tensor) -> nn.Module:
    """Train a small network. Only the line with the loss differs from any other PyTorch loop."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    optimiser = torch.optim.AdamW(network.parameters(), lr=3e-3)
    for epoch in range(EPOCHS):
        # Some losses change during the training; at(share) is the loss after this share of it.
        loss_now = loss.at(epoch / EPOCHS)
        for rows in torch.randperm(len(labels)).split(BATCH):
            optimiser.zero_grad()
            loss_now(network(inputs[rows]), labels[rows]).backward()
            optimiser.step()
    return network.eval()


def main() -> None:
    """Print the test accuracy of each loss, and a posterior."""
    noise = pm.Transition.pair(10, 0.4)  # P[i, j] is the probability that class i is labelled as j
    train_inputs, train_labels, test_inputs, test_labels = make_data(noise)
    losses: dict[str, Any] = {
        "cross-entropy": pm.losses.get("ce"),
        "f-PML, noise known": pm.FPMLLoss("gan", transition=noise, correction="forward"),
        "sharpened f-PML, noise not known": pm.losses.get("sharpened-pml"),
    }
    print(f"{noise.noise_rate():.0%} of the training labels are wrong. Accuracy on clean test labels:")
    for name, loss in losses.items():
        network = train(loss, train_inputs, train_labels)
        with torch.no_grad():
            logits = network(test_inputs)
        posterior = loss.posterior(logits)  # each loss knows what its logits mean; not all of them are a softmax
        accuracy = (posterior.argmax(1) == test_labels).double().mean()
        confidence = posterior.max(1).values.mean()
        print(f"  {name:<34}{accuracy:6.1%}   mean confidence {confidence:.1%}")


if __name__ == "__main__":
    main()
