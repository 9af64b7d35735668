"""What people hand over: read where it makes sense, refused with the row and the remedy where not."""

import numpy as np
import pytest
import torch
from synthetic import MATRICES, problem

from postmax import estimate_transition
from postmax.errors import InputError, LabelError
from postmax.estimation.evidence import gather_evidence

DATA = problem(MATRICES[2], 60)
P, Y = DATA.probabilities, DATA.labels


def changed(row, values):
    p = P.clone()
    p[row] = torch.tensor(values, dtype=torch.float64)
    return p


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"probabilities": P}, r"needs the noisy labels: estimate_transition\(probabilities, labels\)"),
        ({"labels": Y}, r"needs out-of-sample probabilities, or features=\.\.\."),
        ({"probabilities": P, "labels": Y, "num_classes": 3}, "have 2 columns, but num_classes=3"),
        ({"probabilities": P, "labels": Y[:50]}, "60 rows of probabilities but 50 labels"),
        ({"probabilities": P, "labels": Y, "features": torch.zeros(9, 1)}, "9 rows of features but 60 labels"),
        (
            {"probabilities": changed(7, [0.6, 0.6]), "labels": Y},
            r"probabilities: index 7 sums to 1\.2.*softmax\(1\)",
        ),
        ({"probabilities": changed(7, [1.5, -0.5]), "labels": Y}, r"index 7 .* negative entry -0\.5.*softmax\(1\)"),
        (
            {"probabilities": changed(4, [np.nan, 1]), "labels": Y},
            r"probabilities: index \[4, 0\] is nan \(1 such row\)",
        ),
        (
            {"probabilities": changed([4, 6], [np.nan, 1]), "labels": Y},
            r"probabilities: index \[4, 0\] is nan \(2 such rows\)",
        ),
        ({"features": changed(4, [0, np.inf]), "labels": Y}, r"features: index \[4, 1\] is inf"),
        ({"features": changed(4, [0, np.nan]), "labels": Y}, r"features: index \[4, 1\] is nan"),
        ({"features": changed(4, [0, 1e300]), "labels": Y}, r"features: index \[4, 1\] is 1e\+300\. Scale"),
        ({"features": P[:, 0], "labels": Y}, r"features must have one row for each label, got shape \(60,\)"),
        ({"features": P[:, :0], "labels": Y}, r"features must have one row for each label, got shape \(60, 0\)"),
        ({"probabilities": P[:, :1], "labels": Y}, "for two classes pass both columns"),
        ({"probabilities": [["a", "b"]] * 60, "labels": Y}, "probabilities must be real numbers, got <U1"),
        ({"probabilities": [[0.5, 0.5], [1.0]], "labels": [0, 1]}, "probabilities must be an array of numbers"),
        ({"probabilities": [[0.5, None]] * 60, "labels": Y}, "probabilities"),
        ({"features": P.numpy().astype(complex), "labels": Y}, "features must be real numbers, got complex128"),
        ({"features": P.to(torch.complex64), "labels": Y}, r"features must be real numbers, got torch\.complex64"),
        ({"probabilities": P, "labels": torch.zeros(60)}, "all 60 labels are 0; nothing can be compared"),
        ({"features": P, "labels": ["dog"] * 60}, "all 60 labels are 'dog': with one class there is no noise"),
        ({"probabilities": torch.eye(3)[:2], "labels": [0, 1]}, "2 rows cannot tell how 3 classes are confused"),
        ({"probabilities": P, "labels": torch.arange(60) % 3}, "3 different labels, but only 2 classes"),
        ({"probabilities": torch.eye(3).repeat(2, 1), "labels": ["a", "b"] * 3}, "give labels as column indices"),
        ({"probabilities": P, "labels": [0.5] * 60}, r"index 0 holds 0\.5.*regression target"),
        ({"probabilities": P, "labels": [0, 1] * 29 + [None, 1]}, "index 58 has no label"),
        ({"probabilities": P[:0], "labels": []}, "there are no rows"),
        ({"probabilities": P, "labels": torch.zeros(60, 2)}, r"one label for each row, got shape \(60, 2\)"),
        ({"probabilities": P, "labels": Y, "replicates": 1}, "2 or more replicates"),
        ({"probabilities": P, "labels": Y, "level": 1.0}, r"a level in \(0, 1\)"),
        ({"probabilities": P, "labels": Y, "method": "confident"}, "Did you mean 'confident-joint'"),
        (
            {"probabilities": P, "labels": Y, "method": "hoc"},
            r"HOC needs features: estimate_transition\(\.\.\., features=x\)",
        ),
        ({"probabilities": P, "labels": Y, "method": "volmin"}, "VolMinNet needs features"),
        ({"features": P[:9], "labels": Y[:9]}, "9 rows are too few for 5 folds"),
    ],
)
def test_bad_input_is_refused_with_what_is_wrong_and_where(arguments, message):
    with pytest.raises(InputError, match=message):
        estimate_transition(**arguments)


def test_labels_outside_the_columns_are_named_with_their_row():
    p = torch.full((6, 4), 0.25)
    with pytest.raises(LabelError, match="index 3 has label -1, outside 0…3"):
        estimate_transition(p, [0, 1, 1, -1, 0, 1])


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    ("names", "classes"),
    [
        (["cat", "dog"], ("cat", "dog")),
        ([0.0, 1.0], (0, 1)),
        ([-1, 1], (-1, 1)),
        ([3, 700], (3, 700)),
        ([False, True], (0, 1)),
        (["2", "10"], None),
    ],
)
def test_labels_of_any_kind_stand_for_the_columns_in_sorted_order(names, classes, seed):
    labels = [names[int(y)] for y in Y]
    classes = classes or tuple(sorted(names))
    evidence = gather_evidence(P, labels, None, None, seed)
    assert evidence.classes == classes
    assert [classes[code] for code in evidence.labels] == [type(classes[0])(label) for label in labels]
    estimate = estimate_transition(P, labels, method="confident-joint", replicates=2)
    assert estimate.classes == classes


def reversed_array(p):
    return p[::-1].copy()[::-1]


def read_only(p):
    p = p.copy()
    p.setflags(write=False)
    return p


@pytest.mark.parametrize(
    "form",
    [
        np.ndarray.tolist,
        reversed_array,
        read_only,
        np.asfortranarray,
        lambda p: p.astype(">f8"),
        lambda p: p.astype(object),
        lambda p: p.astype(np.longdouble),
        lambda p: torch.tensor(p, requires_grad=True),
    ],
    ids=["lists", "reversed", "read-only", "fortran", "big-endian", "objects", "longdouble", "with gradient"],
)
@pytest.mark.parametrize("name", ["probabilities", "features"])
def test_tables_of_any_kind_are_read(form, name):
    given = {"probabilities": None, "features": None, name: form(P.numpy())}
    evidence = gather_evidence(given["probabilities"], Y, given["features"], None, 0)
    torch.testing.assert_close(getattr(evidence, name).double(), P, atol=1e-7, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_low_precision_is_evened_out(dtype):
    p = gather_evidence(P.to(dtype), Y, None, None, 0).probabilities
    assert p.dtype == torch.float64
    torch.testing.assert_close(p.sum(1), torch.ones(60, dtype=torch.float64), atol=1e-15, rtol=0)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int32, np.int64, bool])
def test_whole_numbers_are_features(dtype):
    x = np.arange(120).reshape(60, 2).astype(dtype)
    assert gather_evidence(None, Y, x, None, 0).features.tolist() == x.tolist()


def test_pictures_are_flattened():
    assert gather_evidence(None, Y, torch.zeros(60, 3, 4, 4), None, 0).features.shape == (60, 48)


def test_nothing_that_was_handed_over_is_changed():
    p, y, x = P.numpy().copy(), Y.numpy().copy(), DATA.features.numpy().copy()
    for method in ("anchor-97", "dual-t", "confident-joint", "fpml"):
        estimate_transition(p, y, method=method, replicates=2)
    estimate_transition(labels=y, features=x, method="hoc", replicates=2)
    assert np.array_equal(p, P.numpy())
    assert np.array_equal(y, Y.numpy())
    assert np.array_equal(x, DATA.features.numpy())


def test_named_classes_settle_what_indices_mean():
    """Class 0 never occurs: without names the labels could count from 1, with them they cannot."""
    p = torch.full((6, 3), 1 / 3)
    with pytest.raises(InputError, match="do they count from 0 or from 1"):
        estimate_transition(p, [1, 2, 1, 2, 1, 1], method="anchor", replicates=2)
    named = estimate_transition(p, [1, 2, 1, 2, 1, 1], classes=["a", "b", "c"], method="anchor", replicates=2)
    assert named.classes == ("a", "b", "c")
    assert named.unidentified["a"] == "no row has this label"
