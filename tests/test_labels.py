"""Labels as people have them."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from postmax.errors import InputError, LabelError
from postmax.labels import class_indices, encode_labels


@pytest.mark.parametrize(
    ("values", "codes", "classes"),
    [
        (["b", "a", "b"], [1, 0, 1], ("a", "b")),
        ([7, -2, 7, 3], [2, 0, 2, 1], (-2, 3, 7)),
        ([1.0, 0.0], [1, 0], (0, 1)),
        ([True, False, True], [1, 0, 1], (False, True)),
        (np.array(["x", "y"], dtype=object), [0, 1], ("x", "y")),
        (np.array([2, 5], dtype=object), [0, 1], (2, 5)),
        (np.array([[4], [2]]), [1, 0], (2, 4)),
        (torch.tensor([3, 3, 1]), [1, 1, 0], (1, 3)),
        ([b"n", b"m"], [1, 0], ("m", "n")),
        (["none", "NA"], [1, 0], ("NA", "none")),
        (np.array([2**40, 1], dtype=np.uint64), [1, 0], (1, 2**40)),
    ],
)
def test_labels_become_indices(values, codes, classes):
    encoded = encode_labels(values)
    assert encoded.codes.tolist() == codes
    assert encoded.codes.dtype == torch.int64
    assert encoded.classes == classes


@given(
    st.lists(st.one_of(st.integers(-50, 50), st.just(3)), min_size=1)
    | st.lists(st.text("ab c", min_size=3), min_size=1)
)
def test_decoding_gives_the_labels_back(values):
    values = [value if isinstance(value, int) else f"x{value}" for value in values]
    encoded = encode_labels(values)
    assert encoded.decode(encoded.codes).tolist() == values
    assert list(encoded.classes) == sorted(set(values))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], "there are no rows"),
        ([1.5, 2.0], "index 0 holds 1.5"),
        ([1.0, float("nan")], r"labels: index 1 has no label\. Label it"),
        ([1.0, float("inf")], "index 1 has no label"),
        ([1.5, float("nan")], r"labels: 2 problems\n  index 1 has no label.*\n  index 0 holds 1\.5"),
        (["a", None, "", "nan"], r"indices 1, 2, 3 have no label \(3 rows\)"),
        ([[1, 2], [3, 4]], r"shape \(2, 2\)"),
        (np.array([1 + 2j]), "complex128 cannot name classes"),
        ([1e300, 1.0], "index 0 holds 1e\\+300, too large"),
        (np.array([2**63 + 5], dtype=np.uint64), "too large"),
        ([["a"], ["b", "c"]], "one label for each row"),
    ],
)
def test_what_is_no_label_is_refused(values, message):
    with pytest.raises(InputError, match=message):
        encode_labels(values)


def test_given_classes_fix_the_indices_and_allow_absent_ones():
    assert encode_labels(["b", "b"], classes=["c", "b", "a"]).codes.tolist() == [1, 1]
    assert encode_labels([5.0], classes=[9, 5]).codes.tolist() == [1]
    with pytest.raises(LabelError, match="'d' is not one of the 2 classes"):
        encode_labels(["d"], classes=["a", "b"])
    with pytest.raises(InputError, match="twice"):
        encode_labels(["a"], classes=["a", "a"])


def test_indices_are_checked():
    assert class_indices([2.0, 0.0], 3).tolist() == [2, 0]
    assert class_indices(np.array([1, 0], dtype=np.uint8), 2).dtype == torch.int64
    with pytest.raises(LabelError, match=r"index 1 has label 3, outside 0…2 \(1 such row\)"):
        class_indices([0, 3], 3)
    with pytest.raises(InputError, match="encode_labels"):
        class_indices(["a"], 3)
