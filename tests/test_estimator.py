"""`FPMLClassifier`: the checks of scikit-learn, its tools, and what it learns from wrong labels."""

import pickle
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pytest
import sklearn
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import postmax as pm
from postmax.errors import InputError

# scikit-learn expects the same two failures of its own SGDClassifier, for the same reason.
NOT_EQUIVALENT = "batches are drawn at random, so a weight of 2 is not the same as a row that is there twice"
EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": NOT_EQUIVALENT,
    "check_sample_weight_equivalence_on_sparse_data": NOT_EQUIVALENT,
}


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [pm.FPMLClassifier(network="linear", max_iter=8, random_state=0)],
    expected_failed_checks=lambda _: EXPECTED_FAILURES,
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [pm.FPMLClassifier(max_iter=8, random_state=0)], expected_failed_checks=lambda _: EXPECTED_FAILURES
)
def test_scikit_learns_checks_of_the_whole_committee(estimator, check):
    check(estimator)


def quick(**settings):
    return pm.FPMLClassifier(**{"network": "linear", "random_state": 0, **settings})


@pytest.fixture(scope="module")
def iris():
    rows, truth = load_iris(return_X_y=True)
    return rows, truth, pm.Transition.symmetric(3, 0.3).corrupt(truth, seed=1).labels.numpy()


@pytest.fixture(scope="module")
def fitted(iris):
    rows, _, noisy = iris
    return pm.FPMLClassifier(random_state=0).fit(rows, noisy)


# ---- What it learns ----


def test_it_sees_through_the_noise(iris, fitted):
    rows, truth, noisy = iris
    assert fitted.score(rows, truth) > 0.93
    assert fitted.noise_rate_ == pytest.approx((noisy != truth).mean(), abs=0.08)
    low, high = fitted.noise_rate_interval_
    assert low <= fitted.noise_rate_ <= high
    lower, upper = fitted.transition_interval_
    assert (lower <= fitted.transition_.matrix.numpy() + 1e-9).all()
    assert (fitted.transition_.matrix.numpy() <= upper + 1e-9).all()


def test_the_quality_of_labels_finds_the_wrong_ones(iris, fitted):
    _, truth, noisy = iris
    suspects = fitted.label_quality_.argsort()[: int((noisy != truth).sum())]
    assert (noisy[suspects] != truth[suspects]).mean() > 0.85
    # it is a probability: about as many labels are right as it says
    assert fitted.label_quality_.mean() == pytest.approx((noisy == truth).mean(), abs=0.1)


@pytest.mark.thorough
def test_asymmetric_noise_moves_the_border():
    """Half of class 1 is called 0. Without a correction, rows near the border are taken for 0."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(3000, 2))
    truth = (rows[:, 0] > 0).astype(int)
    noisy = np.where((truth == 1) & (rng.random(3000) < 0.45), 0, truth)
    found = quick(network="additive").fit(rows, noisy)
    plain = quick(network="additive", correction="none").fit(rows, noisy)
    assert found.transition_.matrix[1, 0] == pytest.approx(0.45, abs=0.06)
    assert found.score(rows, truth) > plain.score(rows, truth)
    assert found.score(rows, truth) > 0.96


def test_few_rows_are_never_taken_for_a_full_matrix():
    rng = np.random.default_rng(1)
    rows, labels = rng.normal(size=(24, 3)), np.arange(24) % 4
    matrix = quick().fit(rows, labels).transition_.matrix
    off = matrix[~torch.eye(4, dtype=torch.bool)]
    assert off.max() == off.min()


def test_none_says_that_labels_are_right(iris):
    rows, _, noisy = iris
    model = quick(noise=None).fit(rows, noisy)
    assert model.noise_rate_ == 0
    assert model.estimate_ is None
    np.testing.assert_allclose(model.predict_proba(rows), model.label_proba(rows))


@pytest.mark.thorough
@pytest.mark.parametrize("correction", ["posterior", "forward", "objective"])
def test_known_noise(iris, correction):
    rows, truth, noisy = iris
    noise = pm.Transition.symmetric(3, 0.3)
    model = quick(noise=noise, correction=correction).fit(rows, noisy)
    assert model.transition_ == noise
    assert model.score(rows, truth) > 0.8
    assert model.noise_rate_ == pytest.approx(0.3)


def test_label_proba_is_the_noisy_side_of_predict_proba(iris):
    rows, _, noisy = iris
    noise = pm.Transition.symmetric(3, 0.3)
    model = quick(noise=noise, correction="forward").fit(rows, noisy)
    np.testing.assert_allclose(
        model.predict_proba(rows) @ noise.matrix.numpy(), model.label_proba(rows), rtol=1e-5, atol=1e-6
    )


@pytest.mark.thorough
def test_an_estimate_inside_the_loss(iris):
    rows, truth, noisy = iris
    model = quick(correction="forward").fit(rows, noisy)
    assert model.noise_rate_ == pytest.approx(0.3, abs=0.1)
    assert model.score(rows, truth) > 0.9


@pytest.mark.thorough
def test_a_robust_loss_and_a_divergence(iris):
    rows, truth, noisy = iris
    assert quick(loss="gce", loss_options={"q": 0.5}).fit(rows, noisy).score(rows, truth) > 0.75
    assert quick(divergence="sl").fit(rows, noisy).score(rows, truth) > 0.75


# ---- Strategies and networks ----


@pytest.mark.thorough
@pytest.mark.parametrize("method", ["standard", "co-teaching", "elr"])
def test_a_strategy_of_postmax(iris, method):
    rows, truth, noisy = iris
    model = pm.FPMLClassifier(method=method, n_folds=2, max_iter=15, random_state=0).fit(rows, noisy)
    assert model.score(rows, truth) > 0.85
    assert len(model.label_quality_) == len(rows)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(rows), model.predict_proba(rows))
    assert {entry["fold"] for entry in model.history_} == {0, 1}


def make_network(features, classes):
    return torch.nn.Sequential(torch.nn.Linear(features, 16), torch.nn.ReLU(), torch.nn.Linear(16, classes))


@pytest.mark.thorough
@pytest.mark.parametrize("network", [make_network, make_network(4, 3)], ids=["factory", "module"])
def test_a_network_of_ones_own(iris, network):
    rows, truth, noisy = iris
    state = torch.random.get_rng_state()
    model = pm.FPMLClassifier(network=network, n_folds=2, max_iter=25, random_state=0).fit(rows, noisy)
    assert model.score(rows, truth) > 0.85
    assert torch.equal(state, torch.random.get_rng_state())  # the global generator is as it was


@pytest.mark.thorough
@pytest.mark.parametrize("classifier", [RandomForestClassifier(n_estimators=20), KNeighborsClassifier()])
def test_a_wrapped_classifier(iris, classifier):
    """It has noisy labels by heart when it is alone, and not when it is wrapped."""
    rows, truth, noisy = iris
    settings = {"random_state": 0} if isinstance(classifier, RandomForestClassifier) else {}
    alone = clone(classifier).set_params(**settings).fit(rows, noisy).score(rows, truth)
    model = quick(estimator=classifier).fit(rows, noisy)
    assert model.score(rows, truth) > max(alone, 0.8)
    np.testing.assert_allclose(model.predict_proba(rows).sum(1), 1)
    assert not hasattr(classifier, "classes_")


# ---- The tools of scikit-learn ----


@pytest.mark.thorough
def test_in_a_pipeline_and_a_search(iris):
    rows, _, noisy = iris
    pipeline = make_pipeline(StandardScaler(), quick(max_iter=5))
    search = GridSearchCV(pipeline, {"fpmlclassifier__weight_decay": [0.1, 1.0]}, cv=2).fit(rows, noisy)
    assert set(search.predict(rows)) <= {0, 1, 2}


@pytest.mark.thorough
def test_cross_val_predict_and_calibration(iris):
    rows, _, noisy = iris
    found = cross_val_predict(quick(max_iter=5), rows, noisy, cv=2, method="predict_proba")
    assert found.shape == (150, 3)
    assert CalibratedClassifierCV(quick(max_iter=5), cv=2).fit(rows, noisy).predict_proba(rows).shape == (150, 3)


def test_metadata_routing(iris):
    rows, _, noisy = iris
    weights = np.random.default_rng(0).random(150)
    with sklearn.config_context(enable_metadata_routing=True):
        model = quick(max_iter=3).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        make_pipeline(scaler, model).fit(rows, noisy, sample_weight=weights)
        GridSearchCV(model, {"weight_decay": [0.1, 1.0]}, cv=2).fit(rows, noisy, sample_weight=weights)


@pytest.mark.thorough
@pytest.mark.skipif(find_spec("cleanlab") is None, reason="cleanlab is not installed")
@pytest.mark.filterwarnings("ignore")
def test_in_cleanlab(iris):
    cleanlab = import_module("cleanlab.classification")
    rows, truth, noisy = iris
    cleaned = cleanlab.CleanLearning(quick(), seed=0, cv_n_folds=2).fit(rows, noisy)
    assert cleaned.score(rows, truth) > 0.85


def test_it_is_the_same_again_with_the_same_seed(iris):
    rows, _, noisy = iris
    state = torch.random.get_rng_state()
    first, second = (quick(network="mlp", max_iter=3).fit(rows, noisy) for _ in range(2))
    np.testing.assert_array_equal(first.predict_proba(rows), second.predict_proba(rows))
    other = quick(network="mlp", max_iter=3, random_state=1).fit(rows, noisy)
    assert (first.predict_proba(rows) != other.predict_proba(rows)).any()
    assert torch.equal(torch.random.get_rng_state(), state)


def test_a_pickle_predicts_the_same(iris, fitted):
    rows, _, _ = iris
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(rows), fitted.predict_proba(rows))


def test_warm_start_goes_on(iris):
    rows, _, noisy = iris
    model = quick(warm_start=True, max_iter=2, learning_rate=1e-3, early_stopping=False)
    losses = [model.fit(rows, noisy).history_[-1]["held_out_loss"] for _ in range(3)]
    assert losses[2] < losses[1] < losses[0]


def test_verbose_says_what_happens(iris, capsys):
    rows, _, noisy = iris
    quick(verbose=1, max_iter=2).fit(rows, noisy)
    said = capsys.readouterr()
    assert "linear: loss" in said.err
    assert "noise rate" in said.err
    assert not said.out


# ---- Rows ----


def frame_rows(count=200):
    rng = np.random.default_rng(0)
    colour = rng.choice(["red", "green", "blue"], count)
    size = rng.normal(size=count)
    labels = np.where((colour == "red") ^ (size > 0.5), "yes", "no")
    colour[:5] = rng.choice(["", "red"], 5)
    size[10:20] = np.nan
    return {"colour": colour.tolist(), "size": size, "flag": rng.random(count) > 0.5}, labels


@pytest.mark.thorough
@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_data_frames(package):
    columns, labels = frame_rows()
    frames = pytest.importorskip(package)
    frame = frames.DataFrame(columns)
    model = pm.FPMLClassifier(network="residual", random_state=0).fit(frame, labels)
    assert model.feature_names_in_.tolist() == ["colour", "size", "flag"]
    assert model.n_features_in_ == 3
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.score(frame, labels) > 0.9
    new = frames.DataFrame({"colour": ["violet"], "size": [None], "flag": [True]})
    assert model.predict(new).shape == (1,)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["size", "colour", "flag"]])


def test_pandas_and_polars_give_the_same():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    columns, labels = frame_rows()
    found = [
        quick(max_iter=3).fit(rows, y).predict_proba(rows)
        for rows, y in (
            (pandas.DataFrame(columns), pandas.Series(labels)),
            (polars.DataFrame(columns), polars.Series(labels)),
        )
    ]
    np.testing.assert_array_equal(*found)


def test_sparse_rows_are_dense_rows():
    rows, labels = make_classification(120, random_state=0)
    rows[np.abs(rows) < 0.5] = 0
    dense = quick(max_iter=3).fit(rows, labels).predict_proba(rows)
    thin = sparse.csr_array(rows)
    np.testing.assert_array_equal(quick(max_iter=3).fit(thin, labels).predict_proba(thin), dense)


def test_rows_without_weight_teach_nothing(iris):
    rows, _, noisy = iris
    weights = np.ones(150)
    weights[::3] = 0
    spoiled = noisy.copy()
    spoiled[::3] = (noisy[::3] + 1) % 3
    found = [quick(max_iter=3).fit(rows, y, sample_weight=weights).predict_proba(rows) for y in (noisy, spoiled)]
    # The scaling does not depend on labels, and nothing else sees these rows.
    np.testing.assert_array_equal(*found)


@pytest.mark.thorough
def test_partial_fit_learns_and_finds_the_noise():
    rows, truth = make_classification(1500, 8, n_informative=6, class_sep=2, random_state=0)
    noisy = pm.Transition.symmetric(2, 0.25).corrupt(truth, seed=0).labels.numpy()
    model = pm.FPMLClassifier(random_state=0)
    for start in range(0, 1500, 250):
        part = slice(start, start + 250)
        model.partial_fit(rows[part], noisy[part], classes=[0, 1])
    assert model.score(rows, truth) > 0.9
    assert model.noise_rate_ == pytest.approx(0.25, abs=0.08)
    assert len(model.label_quality_) == 250


def test_partial_fit_after_fit_keeps_what_was_learnt(iris):
    rows, truth, noisy = iris
    model = quick().fit(rows, noisy)
    before = model.score(rows, truth)
    model.partial_fit(rows[:9], noisy[:9])
    assert model.score(rows, truth) > before - 0.1


# ---- Errors ----


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"correction": "forwards"}, "Did you mean 'forward'"),
        ({"network": "liner"}, "Did you mean 'linear'"),
        ({"network": lambda features: None}, "number of classes"),
        ({"network": torch.nn.Linear(7, 3)}, "4 features"),
        ({"network": torch.nn.Linear(4, 2)}, "must be (2, 3)"),
        ({"network": 3}, "nn.Module"),
        ({"noise": np.eye(2)}, "2 classes, but the labels have 3"),
        ({"noise": "pear:0.2"}, "pair"),
        ({"noise": None, "correction": "forward"}, "noise=None"),
        ({"loss": "gce", "correction": "forward"}, "leave out the loss"),
        ({"method": "co-teachin"}, "co-teaching"),
        ({"estimator": StandardScaler()}, "classifier of scikit-learn"),
        ({"max_iter": 0}, "max_iter must be a whole number, 1 or more"),
        ({"n_folds": 1}, "2 or more"),
        ({"categorical_features": ["colour"]}, "colour"),
    ],
)
def test_settings_that_cannot_be_used(iris, settings, words):
    rows, _, noisy = iris
    with pytest.raises(InputError) as error:
        quick(**settings).fit(rows, noisy)
    assert words in str(error.value)


def test_dates_and_text_in_a_column_of_numbers():
    pandas = pytest.importorskip("pandas")
    days = pandas.DataFrame({"day": pandas.date_range("2020-01-01", periods=20), "x": np.arange(20.0)})
    with pytest.raises(InputError, match="'day' holds dates"):
        quick().fit(days, np.arange(20) % 2)
    model = quick(max_iter=2).fit(days[["x"]], np.arange(20) % 2)
    with pytest.raises(InputError, match=r"'x' held numbers .* 'many'"):
        model.predict(pandas.DataFrame({"x": ["many"]}))


def test_a_method_refuses_weights(iris):
    rows, _, noisy = iris
    with pytest.raises(InputError, match="sample_weight"):
        quick(network="mlp", method="standard").fit(rows, noisy, sample_weight=np.linspace(0.1, 1, 150))


def test_later_parts_need_known_classes(iris):
    rows, _, noisy = iris
    with pytest.raises(InputError, match="needs classes"):
        quick().partial_fit(rows, noisy)
    model = quick().partial_fit(rows, noisy, classes=[0, 1, 2])
    with pytest.raises(InputError, match="label 7"):
        model.partial_fit(rows[:2], [0, 7])
