"""Wrong settings and labels of FPMLClassifier are refused by name, before anything is trained."""

import numpy as np
import pytest

import postmax as pm
from postmax.errors import InputError

ROWS = np.random.default_rng(0).normal(size=(40, 3))
LABELS = np.array(["no", "yes"])[(ROWS[:, 0] > 0).astype(int)]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"n_folds": 2.5}, "n_folds must be a whole number, 2 or more, or None; got 2.5"),
        ({"n_folds": 1}, "n_folds must be a whole number, 2 or more"),
        ({"n_folds": 1000}, "n_folds is at most 50, because each fold is a training; got 1000"),
        ({"max_iter": 2.5}, "max_iter must be a whole number"),
        ({"max_iter": True}, "max_iter must be a whole number"),
        ({"batch_size": "big"}, "batch_size must be a whole number, 1 or more, or None; got 'big'"),
        ({"learning_rate": "fast"}, "learning_rate must be a number, above 0"),
        ({"learning_rate": 0}, "learning_rate must be a number, above 0"),
        ({"weight_decay": -1}, "weight_decay must be a number, 0 or more"),
        ({"weight_decay": float("nan")}, "weight_decay must be a number"),
        ({"loss_options": {"q": 0.3}}, "give loss as well"),
        ({"estimator": "forest"}, "estimator must be a scikit-learn classifier"),
        ({"network": "mpl"}, "Did you mean 'mlp'"),
        ({"correction": "backward"}, "correction"),
        ({"noise": 0.5}, "for 2 classes it is 0 or more and below 0.5"),
        ({"noise": -0.1}, "noise=-0.1"),
    ],
)
def test_settings(settings, words):
    with pytest.raises(InputError) as caught:
        pm.FPMLClassifier(**settings).fit(ROWS, LABELS)
    assert words in str(caught.value)


@pytest.mark.parametrize("settings", [{"weight_decay": 0}, {"n_folds": np.int64(2)}, {"noise": 0}, {"noise": 0.49}])
def test_settings_at_their_bounds(settings):
    chosen = {"network": "linear", "max_iter": 2, "n_folds": 2, "random_state": 0, **settings}
    assert pm.FPMLClassifier(**chosen).fit(ROWS, LABELS).score(ROWS, LABELS) > 0.3


@pytest.mark.parametrize("kind", ["object", "category", "string", "None"])
def test_missing_labels(kind):
    pd = pytest.importorskip("pandas")
    labels = pd.Series(LABELS, dtype=object)
    labels[3] = None if kind == "None" else np.nan
    if kind in ("category", "string"):
        labels = labels.astype(kind)
    with pytest.raises(InputError, match=r"Input y contains NaN: 1 of 40 labels are missing, the first one at index 3"):
        pm.FPMLClassifier().fit(ROWS, labels)
