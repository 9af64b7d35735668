"""Any classifier of scikit-learn, trained on labels that are weighed by how likely they are right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from postmax.errors import InputError
from postmax.extras import need
from postmax.tabular.learning import Learnt
from postmax.tabular.noise import true_class
from postmax.tabular.training import Rows

# A class that is less likely than this for a row is left out.
_LEAST = 0.01


@dataclass(frozen=True)
class Wrapped:
    """A fitted classifier.

    Attributes:
        estimator: The classifier. Its classes are class indices.
        count: K.
    """

    estimator: Any
    count: int

    @classmethod
    def fit(cls, estimator: Any, rows: Rows, learnt: Learnt, seed: int) -> Wrapped:
        """Train a copy of a classifier on the classes that each row may truly have.

        Each row is there once for each class that it may have, with the probability of this class as its weight, given
        the row *and* its label. Where the label is surely right that is the row itself.

        A classifier that takes no weights gets the most likely class of each row instead.

        Args:
            estimator: The classifier. It is not changed.
            rows: The training rows.
            learnt: What networks have learnt from them.
            seed: The seed of the classifier, if it takes one and has none.

        Raises:
            InputError: If it is not a classifier with `predict_proba`.
        """
        base = need("sklearn.base", "train")
        if not hasattr(estimator, "fit") or not base.is_classifier(estimator):
            raise InputError(f"estimator must be a classifier of scikit-learn, not {estimator!r}.")
        own = base.clone(estimator)
        if own.get_params().get("random_state", 0) is None:
            own.set_params(random_state=seed)
        chances = _true_class(learnt, rows.labels)
        features = rows.features.numpy()
        if need("sklearn.utils.validation", "train").has_fit_parameter(own, "sample_weight"):
            row, label = (chances >= _LEAST).nonzero(as_tuple=True)
            weights = (chances[row, label] * rows.weights[row]).numpy()
            own.fit(features[row.numpy()], label.numpy(), sample_weight=weights)
        else:
            own.fit(features, chances.argmax(1).numpy())
        if not hasattr(own, "predict_proba"):
            raise InputError(
                f"{type(estimator).__name__} has no predict_proba: wrap it in "
                "sklearn.calibration.CalibratedClassifierCV."
            )
        return cls(own, rows.num_classes)

    def predict_proba(self, features: Tensor) -> npt.NDArray[Any]:
        """Return P(true class | x), (N, K). A class that no row had has the probability 0."""
        found = np.zeros((len(features), self.count))
        found[:, self.estimator.classes_] = self.estimator.predict_proba(features.numpy())
        return found


def _true_class(learnt: Learnt, labels: Tensor) -> Tensor:
    """Return P(true class | row, label), (N, K). Labels that are taken to be right are surely right."""
    if learnt.noise is None:
        return torch.nn.functional.one_hot(labels, learnt.posterior.shape[1]).double()
    return true_class(learnt.posterior, labels, learnt.noise)
