"""A skorch classifier on wrong labels, tuned with scikit-learn: the criterion is the only part that comes from postmax.

The data are the 569 tumours of Wisconsin. 40 % of the malignant ones are labelled as benign in the training rows; the
test labels are right. The weight decay is chosen on the noisy labels.

Run it with `python examples/skorch_net.py` (a few seconds). It needs `pip install skorch`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNetClassifier
from torch import nn

import postmax as pm

Array = npt.NDArray[Any]


def make_data(noise: pm.Transition) -> tuple[Array, Array, Array, Array]:
    """Return training and test rows, training labels with noise, and clean test labels."""
    rows, labels = load_breast_cancer(return_X_y=True)  # 0 is malignant, 1 is benign
    rows, test_rows, labels, test_labels = train_test_split(
        rows.astype(np.float32), labels, test_size=0.3, stratify=labels, random_state=0
    )
    return rows, test_rows, np.asarray(noise.corrupt(labels, seed=0).labels), test_labels


def make_classifier(loss: Any) -> GridSearchCV:
    """Return a scaled network whose weight decay is chosen by cross-validation."""
    net = NeuralNetClassifier(
        nn.Sequential(nn.Linear(30, 32), nn.ReLU(), nn.Linear(32, 2)),
        criterion=loss,
        predict_nonlinearity=loss.posterior,  # from logits to P(true class | row)
        optimizer=torch.optim.AdamW,
        lr=3e-3,
        max_epochs=40,
        batch_size=32,
        train_split=None,
        verbose=0,
    )
    pipeline = make_pipeline(StandardScaler(), net)
    return GridSearchCV(pipeline, {"neuralnetclassifier__optimizer__weight_decay": [0.0, 0.3, 3.0]}, cv=3)


def main() -> None:
    """Print the accuracy of each loss on clean test labels."""
    noise = pm.Transition([[0.6, 0.4], [0.0, 1.0]])  # P[i, j] is the probability that class i is labelled as j
    rows, test_rows, labels, test_labels = make_data(noise)
    losses: dict[str, Any] = {
        "cross-entropy": pm.losses.get("ce"),
        "f-PML, noise known": pm.FPMLLoss("gan", transition=noise, correction="forward"),
    }
    print("40% of the malignant tumours are labelled as benign. Accuracy on clean test labels:")
    for name, loss in losses.items():
        torch.manual_seed(0)
        classifier = make_classifier(loss).fit(rows, labels)
        print(f"  {name:<20}{classifier.score(test_rows, test_labels):6.1%}")


if __name__ == "__main__":
    main()
