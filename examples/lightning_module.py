"""A `LightningModule` that trains on wrong labels: the loss is the only part that comes from postmax.

The data are 1797 pictures of handwritten digits. 40 % of the training labels are moved to the next class, and the
validation labels are right.

Run it with `python examples/lightning_module.py` (a few seconds). It needs `pip install lightning`.
"""

from __future__ import annotations

import logging

import lightning
import torch
from lightning.pytorch.utilities.types import OptimizerLRScheduler
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import postmax as pm

EPOCHS, TEST_ROWS = 20, 500

Batch = list[Tensor]


class NoisyLabelClassifier(lightning.LightningModule):
    """A classifier whose training labels are wrong as the transition matrix says."""

    def __init__(self, noise: pm.Transition) -> None:
        super().__init__()
        self.network = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
        self.loss = pm.FPMLLoss("gan", transition=noise, correction="forward")

    def forward(self, inputs: Tensor) -> Tensor:
        """Return P(true class | x) for each row."""
        return self.loss.posterior(self.network(inputs))

    def training_step(self, batch: Batch, batch_index: int) -> Tensor:  # noqa: ARG002
        """Return the loss of one batch; a loss that changes during the training is asked for its state now."""
        inputs, noisy_labels = batch
        loss: Tensor = self.loss.at(self.current_epoch / EPOCHS)(self.network(inputs), noisy_labels)
        self.log("loss", loss)
        return loss

    def validation_step(self, batch: Batch, batch_index: int) -> None:  # noqa: ARG002
        """Log the accuracy on clean labels."""
        inputs, labels = batch
        self.log("accuracy", (self(inputs).argmax(1) == labels).float().mean())

    def configure_optimizers(self) -> OptimizerLRScheduler:
        """Return the optimiser."""
        return torch.optim.AdamW(self.parameters(), lr=3e-3)


def make_data(noise: pm.Transition) -> tuple[DataLoader[tuple[Tensor, ...]], DataLoader[tuple[Tensor, ...]]]:
    """Return training batches with noisy labels, and one validation batch with clean labels."""
    pixels, digits = load_digits(return_X_y=True)
    order = torch.randperm(len(digits), generator=torch.Generator().manual_seed(0))
    inputs, labels = torch.tensor(pixels, dtype=torch.float32)[order] / 16, torch.tensor(digits)[order]
    noisy = torch.as_tensor(noise.corrupt(labels[TEST_ROWS:], seed=0).labels)
    return (
        DataLoader(TensorDataset(inputs[TEST_ROWS:], noisy), batch_size=64, shuffle=True),
        DataLoader(TensorDataset(inputs[:TEST_ROWS], labels[:TEST_ROWS]), batch_size=TEST_ROWS),
    )


def main() -> None:
    """Train, and print the accuracy on clean labels."""
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    lightning.seed_everything(0, verbose=False)
    noise = pm.Transition.pair(10, 0.4)
    training, validation = make_data(noise)
    trainer = lightning.Trainer(
        max_epochs=EPOCHS,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(NoisyLabelClassifier(noise), training, validation)
    accuracy = float(trainer.callback_metrics["accuracy"])
    print(f"{noise.noise_rate():.0%} of the training labels are wrong. Accuracy on clean labels: {accuracy:.1%}")


if __name__ == "__main__":
    main()
