"""Accuracy, calibration and memorisation against loops over rows."""

import math

import pytest
import torch

from postmax.train.metrics import BINS, learnt, score


def naive_score(posterior, labels, bins):
    """One row after the other; bin i is (i/b, (i+1)/b]."""
    members = [[] for _ in range(bins)]
    right = 0
    for row, label in zip(posterior.double().tolist(), labels.tolist(), strict=True):
        confidence = max(row)
        hit = row.index(confidence) == label
        right += hit
        place = next(i for i in range(bins) if confidence <= (i + 1) / bins or i == bins - 1)
        members[place].append((confidence, hit))
    error = 0.0
    for rows in members:
        if rows:
            trust, accuracy = (sum(column) / len(rows) for column in zip(*rows, strict=True))
            error += len(rows) / len(labels) * abs(trust - accuracy)
    return right / len(labels), error, members


def some_posteriors(lanes=3, rows=400, classes=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(lanes, rows, classes, generator=generator)
    return logits.softmax(-1), torch.randint(classes, (lanes, rows), generator=generator)


@pytest.mark.parametrize("bins", [BINS, 1, 10])
def test_score_against_a_loop(bins):
    posterior, labels = some_posteriors()
    scores = score(posterior, labels, bins)
    for lane in range(3):
        accuracy, error, members = naive_score(posterior[lane], labels[lane], bins)
        assert scores.accuracy[lane] == pytest.approx(accuracy, abs=1e-12)
        assert scores.calibration_error[lane] == pytest.approx(error, abs=1e-9)
        found = scores.reliability[lane]
        assert found["count"] == [len(rows) for rows in members]
        for i, rows in enumerate(members):
            expected = [sum(column) / len(rows) for column in zip(*rows, strict=True)] if rows else [0, 0]
            assert [found["confidence"][i], found["accuracy"][i]] == pytest.approx(expected, abs=1e-9)


def test_fifteen_bins():
    assert len(score(*some_posteriors()).reliability[0]["count"]) == 15


def test_edges_belong_to_the_bin_below():
    edges = [k / 15 for k in range(8, 16)]
    posterior = torch.tensor([[c, 1 - c] for c in edges], dtype=torch.float64)[None]
    counts = score(posterior, torch.zeros(1, len(edges), dtype=torch.int64)).reliability[0]["count"]
    assert counts == [0] * 7 + [1] * 8
    beyond = posterior + torch.tensor([1e-9, -1e-9])
    beyond[:, -1] = torch.tensor([1.0, 0.0])
    counts = score(beyond, torch.zeros(1, len(edges), dtype=torch.int64)).reliability[0]["count"]
    assert counts == [0] * 8 + [1] * 6 + [2]


def test_sure_and_right_is_perfect_sure_and_wrong_is_as_bad_as_can_be():
    posterior = torch.eye(3)[None]
    labels = torch.tensor([[0, 1, 2]])
    assert score(posterior, labels).calibration_error == [0.0]
    assert score(posterior, labels).accuracy == [1.0]
    wrong = score(posterior, (labels + 1) % 3)
    assert (wrong.calibration_error, wrong.accuracy) == ([1.0], [0.0])


def test_lanes_do_not_mix():
    posterior, labels = some_posteriors()
    together = score(posterior, labels)
    for lane in range(3):
        alone = score(posterior[lane : lane + 1], labels[lane : lane + 1])
        assert alone.accuracy[0] == together.accuracy[lane]
        assert alone.calibration_error[0] == together.calibration_error[lane]
        assert alone.reliability[0] == together.reliability[lane]


def naive_learnt(predicted, labels, clean):
    counts = {name: [0, 0] for name in ("given", "right_labels", "wrong_labels", "recovered")}
    for p, y, c in zip(predicted, labels, clean, strict=True):
        if p < 0:
            continue
        for name, wanted, hit in (
            ("given", True, p == y),
            ("right_labels", y == c, p == y),
            ("wrong_labels", y != c, p == y),
            ("recovered", y != c, p == c),
        ):
            counts[name][0] += wanted and hit
            counts[name][1] += wanted
    return {name: part / whole if whole else math.nan for name, (part, whole) in counts.items()}


@pytest.mark.parametrize("seed", range(5))
def test_learnt_against_a_loop(seed):
    generator = torch.Generator().manual_seed(seed)
    predicted = torch.randint(-1, 3, (4, 50), generator=generator)
    labels, clean = (torch.randint(3, (4, 50), generator=generator) for _ in range(2))
    found = learnt(predicted, labels, clean)
    for lane in range(4):
        expected = naive_learnt(predicted[lane].tolist(), labels[lane].tolist(), clean[lane].tolist())
        for name, value in expected.items():
            assert getattr(found, name)[lane] == pytest.approx(value, abs=1e-12)


def test_no_rows_of_a_kind_is_no_number():
    labels = torch.tensor([[0, 1]])
    all_right = learnt(labels, labels, labels)
    assert all_right.given == all_right.right_labels == [1.0]
    assert math.isnan(all_right.wrong_labels[0])
    assert math.isnan(all_right.recovered[0])
    all_wrong = learnt(labels, labels, 1 - labels)
    assert (all_wrong.wrong_labels, all_wrong.recovered) == ([1.0], [0.0])
    assert math.isnan(all_wrong.right_labels[0])
    unseen = learnt(torch.tensor([[-1, -1]]), labels, labels)
    assert math.isnan(unseen.given[0])


def test_where_the_truth_is_not_known():
    labels = torch.tensor([[0, 1, 1], [0, 0, 0]])
    found = learnt(torch.tensor([[0, 0, -1], [0, 1, 1]]), labels, None)
    assert found.given == pytest.approx([0.5, 1 / 3])
    assert found.right_labels == found.wrong_labels == found.recovered == []


def test_confusion_against_a_loop():
    posterior, labels = some_posteriors()
    scores = score(posterior, labels)
    for lane in range(3):
        found = scores.confusion(lane)
        for i in range(4):
            for j in range(4):
                pairs = zip(posterior[lane].tolist(), labels[lane].tolist(), strict=True)
                naive = sum(label == i and row.index(max(row)) == j for row, label in pairs)
                assert sum(rows for label, predicted, rows in found if (label, predicted) == (i, j)) == naive
        assert found == sorted(found)
        right = sum(rows for label, predicted, rows in found if label == predicted)
        assert right / 400 == pytest.approx(scores.accuracy[lane])
