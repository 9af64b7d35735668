"""Each detector with planted cases, and its silence on clean data."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

from postmax.auditing.detectors import class_in_parts, classes_alike, outliers, poor_groups, row_order
from postmax.auditing.judged import judged
from postmax.checking.from_memory import of_arrays

DETECTORS = {
    "outliers": outliers.find,
    "row order": row_order.find,
    "poor groups": poor_groups.find,
    "classes alike": classes_alike.find,
    "class in parts": class_in_parts.find,
}


def look(rows, labels, posterior=None):
    """Rows as detectors see them, with a model that is right about every label unless it is said otherwise."""
    data = of_arrays(rows, labels)
    sure = np.full((len(labels), len(data.classes)), 0.02 / max(1, len(data.classes) - 1))
    sure[np.arange(len(labels)), data.codes] = 0.98
    right = np.full(len(labels), 0.98)
    return judged(data, sure if posterior is None else posterior, right)


def clean(seed, columns=4, count=400, classes=3):
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, classes, count)
    centres = generator.normal(size=(classes, columns)) * 2
    return centres[labels] + generator.normal(size=(count, columns)), labels, generator


@pytest.mark.parametrize("name", DETECTORS)
@pytest.mark.parametrize("columns", [1, 2, 6, 40])
def test_clean_rows_give_no_finding(name, columns):
    for seed in range(8):
        rows, labels, generator = clean(seed, columns)
        posterior = generator.dirichlet([1.0] * 3, len(labels)) * 0.4
        posterior[np.arange(len(labels)), labels] += 0.6
        assert list(DETECTORS[name](look(rows, labels, posterior))) == []


@pytest.mark.parametrize("name", ["outliers", "row order"])
def test_rows_with_heavy_tails_and_rows_on_a_grid_give_no_finding(name):
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 2, 500)
    for rows in (
        generator.standard_t(4, (500, 3)),
        generator.lognormal(size=(500, 2)),
        generator.integers(0, 5, (500, 3)),
    ):
        assert list(DETECTORS[name](look(rows, labels))) == []


@pytest.mark.parametrize("columns", [1, 2, 6, 40])
def test_rows_far_from_all_others(columns):
    rows, labels, _ = clean(0, columns)
    rows[17], rows[200] = rows[17] + 60, rows[200] - 90
    (found,) = outliers.find(look(rows, labels))
    assert set(found.rows) == {17, 200}
    assert "2 rows are far" in found.text


def test_rows_that_are_sorted_by_label_or_alternate():
    rows, labels, _ = clean(0)
    order = np.argsort(labels, kind="stable")
    (found,) = row_order.find(look(rows[order], labels[order]))
    assert "stand together" in found.text
    (found,) = row_order.find(look(rows, np.arange(400) % 2))
    assert "alternate" in found.text


def test_the_number_of_runs_has_the_mean_and_variance_of_random_orders():
    generator = np.random.default_rng(0)
    codes = np.repeat([0, 1, 2], [10, 25, 40])
    found = [row_order.label_runs(generator.permutation(codes)) for _ in range(4000)]
    assert np.mean(found) == pytest.approx(0, abs=0.06)
    assert np.std(found) == pytest.approx(1, abs=0.04)


def test_a_feature_that_drifts_or_walks():
    rows, labels, generator = clean(0)
    drifting = rows.copy()
    drifting[:, 2] += np.linspace(0, 3, len(rows))
    (found,) = row_order.find(look(drifting, labels))
    assert found.columns == ("2",)
    walking = rows.copy()
    walking[:, 1] = generator.normal(size=len(rows)).cumsum()
    (found,) = row_order.find(look(walking, labels))
    assert found.columns == ("1",)


def test_a_category_and_a_range_on_which_the_model_is_poor():
    rows, labels, generator = clean(0, columns=2, count=600)
    frame = {"size": rows[:, 0], "weight": rows[:, 1], "shop": generator.choice(["north", "south", "west"], 600)}
    codes = labels.copy()
    bad = (frame["shop"] == "south") & (generator.random(600) < 0.5)
    codes[bad] = (codes[bad] + 1) % 3
    posterior = np.eye(3)[codes] * 0.9 + 0.1 / 3
    (found,) = poor_groups.find(look(frame, labels, posterior))
    assert found.columns == ("shop",)
    assert "'south'" in found.text
    high = rows[:, 1] > np.quantile(rows[:, 1], 0.75)
    codes = np.where(high & (generator.random(600) < 0.5), (labels + 1) % 3, labels)
    (found, *_) = poor_groups.find(look(frame, labels, np.eye(3)[codes] * 0.9 + 0.1 / 3))
    assert found.columns == ("weight",)
    assert "above" in found.text
    assert set(np.flatnonzero(high)[:20]) == set(found.rows)


def test_one_class_under_two_names():
    rows, labels, generator = clean(0, count=900)
    split = np.where((labels == 2) & (generator.random(900) < 0.5), 3, labels)
    posterior = np.zeros((900, 4))
    for row, label in enumerate(labels):  # a model cannot tell the halves apart
        posterior[row, label] = 0.9
        if label == 2:
            share = generator.uniform(0.4, 0.6)
            posterior[row, 2:] = 0.9 * share, 0.9 * (1 - share)
    posterior += 0.025
    (found,) = classes_alike.find(look(rows, split, posterior))
    assert "'2' from '3'" in found.text


def test_two_classes_under_one_name():
    rows, labels, _ = clean(3, columns=5, count=600, classes=4)
    rows = rows + 4 * np.eye(5)[labels]
    merged = np.where(labels == 3, 2, labels)
    (found,) = class_in_parts.find(look(rows, merged))
    assert "'2' fall into two" in found.text
    assert (labels[list(found.rows)] == labels[found.rows[0]]).mean() > 0.95


def test_a_column_of_two_values_is_no_gap_of_a_class():
    rows, labels, generator = clean(0)
    rows[:, 0] = 9 * generator.integers(0, 2, len(rows))
    assert list(class_in_parts.find(look(rows, labels))) == []


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer, load_digits])
def test_real_tables_give_few_findings(load):
    """Few rows are outliers, and rows in random order have no order."""
    rows, labels = load(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    seen = look(rows[order], labels[order])
    assert list(row_order.find(seen)) == []
    assert list(class_in_parts.find(seen)) == []
    assert len(outliers.beyond(outliers.to_neighbour(seen.features))) <= 0.01 * len(labels)
