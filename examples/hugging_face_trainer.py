"""A Hugging Face `Trainer` on wrong labels: `compute_loss_func` is the only part that comes from postmax.

A small vision transformer learns 1797 pictures of handwritten digits. 40 % of the training labels are moved to the next
class, and the test labels are right. Nothing is downloaded.

Run it with `python examples/hugging_face_trainer.py` (less than a minute). It needs
`pip install transformers accelerate`.
"""

from __future__ import annotations

import tempfile
from typing import Any

import torch
from sklearn.datasets import load_digits
from torch import Tensor
from torch.utils.data import Dataset
from transformers import EvalPrediction, Trainer, TrainingArguments, ViTConfig, ViTForImageClassification

import postmax as pm

TEST_ROWS = 500


class Rows(Dataset[dict[str, Tensor]]):
    """Pictures and labels, one row at a time, with the names that the model expects."""

    def __init__(self, pictures: Tensor, labels: Tensor) -> None:
        self.pictures, self.labels = pictures, labels

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, row: int) -> dict[str, Tensor]:
        return {"pixel_values": self.pictures[row], "labels": self.labels[row]}


def make_data(noise: pm.Transition) -> tuple[Rows, Rows]:
    """Return training rows with noisy labels, and test rows with clean labels."""
    pixels, digits = load_digits(return_X_y=True)
    order = torch.randperm(len(digits), generator=torch.Generator().manual_seed(0))
    pictures = torch.tensor(pixels, dtype=torch.float32)[order].view(-1, 1, 8, 8) / 8 - 1
    labels = torch.tensor(digits)[order]
    noisy = torch.as_tensor(noise.corrupt(labels[TEST_ROWS:], seed=0).labels)
    return Rows(pictures[TEST_ROWS:], noisy), Rows(pictures[:TEST_ROWS], labels[:TEST_ROWS])


class NoisyLabelLoss:
    """The loss in the form that `Trainer(compute_loss_func=…)` takes.

    The Trainer gives the number of labels in all batches that make up one update (`num_items_in_batch`). Dividing the
    *sum* by that number keeps the gradient right with gradient accumulation, also where the last batch is smaller.
    """

    def __init__(self, noise: pm.Transition) -> None:
        self.loss = pm.FPMLLoss("gan", transition=noise, correction="forward", reduction="sum")

    def __call__(self, outputs: Any, labels: Tensor, num_items_in_batch: Tensor | int | None = None) -> Tensor:
        """Return the loss of one batch."""
        total: Tensor = self.loss(outputs["logits"], labels)
        return total / (labels.numel() if num_items_in_batch is None else num_items_in_batch)

    def accuracy(self, prediction: EvalPrediction) -> dict[str, float]:
        """Return the accuracy, in the form that `Trainer(compute_metrics=…)` takes."""
        predicted = self.loss.predict(torch.as_tensor(prediction.predictions))
        return {"accuracy": float((predicted == torch.as_tensor(prediction.label_ids)).double().mean())}


def train(epochs: int, batch: int, accumulation: int = 1) -> float:
    """Train and return the accuracy on clean test labels."""
    noise = pm.Transition.pair(10, 0.4)
    training, test = make_data(noise)
    torch.manual_seed(0)
    model = ViTForImageClassification(
        ViTConfig(
            image_size=8,
            patch_size=4,
            num_channels=1,
            hidden_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=128,
            id2label={digit: str(digit) for digit in range(10)},
        )
    )
    loss = NoisyLabelLoss(noise)
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(
            model=model,
            args=TrainingArguments(
                output_dir=folder,
                num_train_epochs=epochs,
                per_device_train_batch_size=batch,
                gradient_accumulation_steps=accumulation,
                learning_rate=2e-3,
                save_strategy="no",
                logging_strategy="no",
                report_to=[],
                disable_tqdm=True,
                use_cpu=True,
                per_device_eval_batch_size=TEST_ROWS,
                seed=0,
            ),
            train_dataset=training,
            eval_dataset=test,
            compute_loss_func=loss,
            compute_metrics=loss.accuracy,
        )
        trainer.train()
        return float(trainer.evaluate()["eval_accuracy"])


def main() -> None:
    """Train, and print the accuracy on clean labels."""
    accuracy = train(epochs=20, batch=32, accumulation=2)
    print(f"40% of the training labels are wrong. Accuracy on clean labels: {accuracy:.1%}")


if __name__ == "__main__":
    main()
