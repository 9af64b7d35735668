"""`FPMLClassifier`: a scikit-learn classifier for labels of which some are wrong."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from postmax.errors import InputError
from postmax.extras import need

for _package in ("sklearn", "scipy"):
    need(_package, "train")

from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from postmax.data.row_form import RowForm
from postmax.losses import Loss
from postmax.tabular.candidates import candidates
from postmax.tabular.checks import check_settings
from postmax.tabular.columns import Encoder
from postmax.tabular.committee import Committee
from postmax.tabular.given_noise import noise_of
from postmax.tabular.learn_rows import is_lane_network, learn_rows, training_settings
from postmax.tabular.learning import Learnt, LossChoice
from postmax.tabular.noise import label_quality
from postmax.tabular.reading import encode_first, encode_more, read_labels, read_rows
from postmax.tabular.saved import SavedClassifier
from postmax.tabular.saving import row_form, saved_classifier
from postmax.tabular.stream import Stream
from postmax.tabular.training import Rows
from postmax.tabular.wrapped import Wrapped
from postmax.transition import Transition

Array = npt.NDArray[Any]
_MOST_SEED = 2**31 - 1


class FPMLClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A classifier for tables with wrong labels. It needs no knowledge of the noise, and no tuning.

    Linear models, additive models, perceptrons and residual networks are cross-fitted side by side. How well they
    foresee the noisy labels of rows that they did not see says when to stop, how much each of them counts, and how much
    noise there is. The noise is then removed from their posterior.

    Args:
        noise: "estimate" finds the noise: symmetric, unless the labels say significantly more. "symmetric" finds its
            rate. A number is a known rate of symmetric noise, a text such as "pair:0.2" a known kind, and a matrix or a
            `postmax.Transition` is known noise, with classes in sorted order. None says that all labels are right.
        correction: How the noise is removed: "posterior" from the posterior; "forward", "objective" or "factored" in
            the loss (see `postmax.FPMLLoss`); "none" not at all. "auto" is "posterior", and "none" for losses and
            methods that are robust by themselves.
        divergence: The divergence of f-PML; "auto" for KL.
        loss: The name of any loss of postmax, or a `postmax.losses.Loss` with reduction "none"; None for f-PML.
        loss_options: Options of a loss that is given by name.
        method: The name of any training strategy of postmax that works on features; None to train networks side by
            side.
        method_options: Options of the method.
        network: "auto", or one of "linear", "additive", "mlp" and "residual". Also the name of any model of postmax, an
            `nn.Module`, or a function of the number of features and classes that makes one: these are trained one after
            another, with `method`.
        estimator: A scikit-learn classifier, which is trained on labels that are weighed by how likely they are right.
        n_folds: The number of folds, from 2 to 50; None to choose it by the number of rows.
        max_iter: The number of epochs; None to choose it by the number of rows.
        batch_size: Rows in a batch; None to choose it by the number of rows.
        learning_rate: The highest learning rate; None for that of each network.
        weight_decay: The weight decay; None to try several.
        early_stopping: Whether the weights are kept that were best on held-out rows, whose labels are noisy, too.
        categorical_features: "from_dtype" for the columns of a data frame that hold text or categories; else a list of
            names or places of columns, also of columns of numbers.
        warm_start: Whether `fit` goes on from the networks of the last `fit`, if they have the same shape.
        random_state: A seed, or a generator of numpy.
        n_jobs: How many folds of a `method`, or of a network of your own, are trained at the same time.
        verbose: Whether lines about the progress are written to standard error.

    Attributes:
        classes_: The classes, sorted.
        transition_: The noise, a `postmax.Transition`; the identity for noise=None.
        transition_interval_: The lower and upper bound of each entry of its matrix, at 95 %.
        noise_rate_: The estimated share of wrong labels.
        noise_rate_interval_: The range in which it lies.
        label_quality_: The probability that each given label is right, (N,), by networks that did not see it.
        given_: The label of each row of `fit` as it was given, (N,), as an index into `classes_`.
        posterior_: P(true class | row) for each row of `fit`, (N, K), by networks that did not see it.
        estimate_: The `postmax.TransitionEstimate`; None if the noise was not estimated.
        network_shares_: The kind of each network that was tried, and how much it counts.
        history_: One entry for each time networks were judged on held-out rows.
        n_iter_: The number of epochs.
        n_features_in_: The number of columns.
        feature_names_in_: The names of the columns, if they are strings.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> import postmax as pm
        >>> rows, truth = load_iris(return_X_y=True)
        >>> noisy = pm.Transition.symmetric(3, 0.3).corrupt(truth, seed=0).labels.numpy()
        >>> model = pm.FPMLClassifier(random_state=0).fit(rows, noisy)
        >>> model.score(rows, truth) > 0.9
        True
        >>> suspects = model.label_quality_.argsort()[:20]
        >>> bool((noisy[suspects] != truth[suspects]).mean() > 0.9)
        True
    """

    def __init__(
        self,
        *,
        noise: Any = "estimate",
        correction: str = "auto",
        divergence: Any = "auto",
        loss: str | Loss | None = None,
        loss_options: Mapping[str, Any] | None = None,
        method: str | None = None,
        method_options: Mapping[str, Any] | None = None,
        network: Any = "auto",
        estimator: Any = None,
        n_folds: int | None = None,
        max_iter: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        weight_decay: float | None = None,
        early_stopping: bool = True,
        categorical_features: Any = "from_dtype",
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int | bool = 0,
    ) -> None:
        self.noise = noise
        self.correction = correction
        self.divergence = divergence
        self.loss = loss
        self.loss_options = loss_options
        self.method = method
        self.method_options = method_options
        self.network = network
        self.estimator = estimator
        self.n_folds = n_folds
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.early_stopping = early_stopping
        self.categorical_features = categorical_features
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # ---- Learning ----

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> FPMLClassifier:  # noqa: N803  (as in scikit-learn)
        """Learn from rows and labels of which some are wrong.

        Args:
            X: (N, d): an array, a sparse matrix, or a data frame of pandas or polars. Missing numbers become the median
                and a feature that says so; text becomes categories.
            y: (N,) labels: strings, numbers or booleans.
            sample_weight: (N,) how much each row counts.

        Raises:
            InputError: If the rows or a setting cannot be used.
        """
        check_settings(self)
        columns, names, categorical = read_rows(self, X, reset=True)
        given, weights = read_labels(y, len(columns[0]), sample_weight)
        self.classes_, labels = encode_first(given, weights)
        seed = int(check_random_state(self.random_state).randint(_MOST_SEED))
        self._encoder, features = Encoder.fit(columns, names, categorical)
        used = weights > 0
        rows = Rows(features[used], labels[used], weights[used] / weights[used].mean(), len(self.classes_))
        learnt = learn_rows(self, rows, tuple(self.classes_.tolist()), seed, self._say, self._networks_to_go_on)
        self._keep(learnt, len(labels))
        self.given_ = labels.numpy()
        self.posterior_, self.label_quality_ = self._out_of_sample(learnt, features, labels, used)
        self._wrapped: Wrapped | None = None
        if self.estimator is not None:
            self._say(f"training {type(self.estimator).__name__} on labels weighed by how likely they are right")
            self._wrapped = Wrapped.fit(self.estimator, rows, learnt, seed)
            self.estimator_ = self._wrapped.estimator
        self._stream: Stream | None = None
        return self

    def partial_fit(
        self,
        X: Any,  # noqa: N803
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
    ) -> FPMLClassifier:
        """Learn from some more rows, in one pass.

        After `fit` its networks learn on; otherwise perceptrons of five seeds (`network` may name another kind). Rows
        are first predicted and then learnt from, so these predictions are out of sample: the noise is estimated from
        the last 2 000 of them, and `label_quality_` is about the rows of this call.

        Args:
            X: Rows, as for `fit`.
            y: Labels.
            classes: All classes; needed in the first call, unless there was a `fit`.
            sample_weight: How much each row counts.
        """
        check_settings(self)
        if self.estimator is not None or self.method is not None or not is_lane_network(self.network):
            raise InputError("partial_fit trains the networks of postmax: leave out estimator, method and network.")
        stream = getattr(self, "_stream", None)
        if stream is None:
            columns, stream = self._start_stream(X, classes)
        else:
            columns, _, _ = read_rows(self, X, reset=False)
        features = self._encoder.encode(columns)
        given, weights = read_labels(y, len(columns[0]), sample_weight)
        labels = encode_more(given, self.classes_)
        used = weights > 0
        rows = Rows(features[used], labels[used], weights[used] / weights[used].mean(), len(self.classes_))
        learnt = stream.learn(rows, self.correction)
        self._keep(learnt, len(labels))
        self.given_ = labels.numpy()
        self.posterior_, self.label_quality_ = self._out_of_sample(learnt, features, labels, used)
        return self

    def _start_stream(self, X: Any, classes: Any) -> tuple[list[Array], Stream]:  # noqa: N803
        """Make the networks that `partial_fit` trains, and return the columns of the first rows."""
        fitted = hasattr(self, "_learnt")
        if classes is None and not fitted:
            raise InputError("the first partial_fit needs classes=..., because later rows may have others.")
        columns, names, categorical = read_rows(self, X, reset=not fitted)
        if not fitted:
            self._wrapped = None
            self.classes_ = np.unique(classes)
            self._encoder, _ = Encoder.fit(columns, names, categorical)
        features = self._encoder.encode(columns)
        kind = "mlp" if self.network == "auto" else self.network
        known = tuple(self.classes_.tolist())
        self._stream = Stream.start(
            candidates(kind, **training_settings(self))[0],
            features,
            known,
            LossChoice(self.loss, self.divergence, dict(self.loss_options or {})),
            noise_of(self.noise, known),
            int(check_random_state(self.random_state).randint(_MOST_SEED)),
            self._committee if fitted else None,
        )
        return columns, self._stream

    def _keep(self, learnt: Learnt, rows: int) -> None:
        """Set what a user may look at."""
        count = len(self.classes_)
        self._networks = learnt.fit.networks if self.warm_start else ()
        self._learnt = learnt.without_rows()
        self.estimate_ = learnt.estimate
        self.transition_ = Transition.identity(count) if learnt.noise is None else learnt.noise
        if learnt.estimate is None:
            matrix = self.transition_.matrix.numpy()
            wrong = 1 - self.transition_.matrix.diagonal()
            self.transition_interval_ = (matrix, matrix)
            self.noise_rate_ = float((learnt.posterior.mean(0) * wrong).sum())
            self.noise_rate_interval_ = (self.noise_rate_, self.noise_rate_)
        else:
            low, high = learnt.estimate.interval
            self.transition_interval_ = (low.numpy(), high.numpy())
            self.noise_rate_ = learnt.estimate.noise_rate
            self.noise_rate_interval_ = learnt.estimate.noise_rate_interval
        self.network_shares_ = list(learnt.fit.shares)
        self.history_ = list(learnt.fit.history)
        self.n_iter_ = learnt.fit.epochs
        self._say(f"{rows} rows, noise rate {self.noise_rate_:.1%}".replace("%", " %"))

    def _out_of_sample(self, learnt: Learnt, features: Tensor, labels: Tensor, used: Tensor) -> tuple[Array, Array]:
        """Return what networks say about rows that they did not see: the true class, and whether the label is right."""
        posterior = torch.empty(len(labels), len(self.classes_), dtype=torch.float64)
        posterior[used] = learnt.posterior
        if not used.all():  # no network has seen rows of weight 0
            posterior[~used] = self._learnt.predict(features[~used])
        return posterior.numpy(), label_quality(posterior, labels, learnt.noise)

    # ---- Predicting ----

    def predict_proba(self, X: Any) -> Array:  # noqa: N803
        """Return P(true class | x), (N, K), with the noise removed. The columns are in the order of `classes_`."""
        features = self._features(X)
        if self._wrapped is not None:
            return self._wrapped.predict_proba(features)
        posterior = self._learnt.predict(features)
        found: Array = (posterior / posterior.sum(1, keepdim=True)).numpy()
        return found

    def label_proba(self, X: Any) -> Array:  # noqa: N803
        """Return P(label as it would be given | x), (N, K), noise included."""
        features = self._features(X)
        if self._wrapped is not None:
            clean = torch.from_numpy(self._wrapped.predict_proba(features))
            posterior = clean @ self.transition_.matrix
        else:
            posterior = self._learnt.fit.model.label_posterior(features)
        found: Array = (posterior / posterior.sum(1, keepdim=True)).numpy()
        return found

    def predict(self, X: Any) -> Array:  # noqa: N803
        """Return the most probable true class of each row."""
        best = self.predict_proba(X).argmax(1)
        found: Array = self.classes_[best]
        return found

    def _features(self, rows: Any) -> Tensor:
        check_is_fitted(self)
        columns, _, _ = read_rows(self, rows, reset=False)
        return self._encoder.encode(columns)

    # ---- Keeping ----

    def save(self, folder: str | Path) -> None:
        """Write what is needed to predict into a folder, which is made if it does not exist. Nothing is pickled.

        `postmax.load(folder)` and `postmax predict` read it, with scikit-learn or without.

        Raises:
            InputError: If it has a part that cannot be made again from a file, such as a classifier of scikit-learn.
            DataError: If the folder cannot be written.

        Example:
            >>> import tempfile
            >>> import postmax as pm
            >>> rows, labels = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
            >>> model = pm.FPMLClassifier(network="linear", random_state=0).fit(rows, labels)
            >>> folder = tempfile.mkdtemp()
            >>> model.save(folder)
            >>> bool(np.allclose(pm.load(folder).predict_proba(rows), model.predict_proba(rows), atol=1e-6))
            True
        """
        from postmax.loading import predictor_of  # noqa: PLC0415  (few need it)

        predictor_of(self.saved()).save(folder)

    def saved(self, rows: RowForm | None = None) -> SavedClassifier:
        """Return what `save` keeps.

        Args:
            rows: What the rows are and how they are read, if they were read from a file; None for rows in memory.

        Raises:
            InputError: If it cannot be kept.
        """
        check_is_fitted(self)
        if self._wrapped is not None:
            raise InputError(
                f"the {type(self.estimator).__name__} in this classifier is not saved, because it could only be "
                "pickled. Leave out estimator=, or keep it with a tool for scikit-learn, such as skops."
            )
        low, high = self.noise_rate_interval_
        about = {
            "noise_rate": self.noise_rate_,
            "noise_rate_interval": [float(low), float(high)],
            "transition": self.transition_.matrix.tolist(),
            "rows": len(self.label_quality_),
        }
        form = rows or row_form(self._encoder, self.n_features_in_, named=hasattr(self, "feature_names_in_"))
        return saved_classifier(self._learnt, self._encoder, tuple(map(str, self.classes_.tolist())), form, about)

    # ---- Small parts ----

    @property
    def _committee(self) -> Committee:
        model = self._learnt.fit.model
        assert isinstance(model, Committee)  # noqa: S101  (all strategies make one)
        return model

    @property
    def _networks_to_go_on(self) -> tuple[nn.Module, ...]:
        return getattr(self, "_networks", ()) if self.warm_start else ()

    @property
    def _say(self) -> Callable[[str], None]:
        return _print if self.verbose else _nothing

    def __sklearn_tags__(self) -> Any:
        """Say what the classifier takes."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags


def _print(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _nothing(line: str) -> None:
    """Say nothing."""
