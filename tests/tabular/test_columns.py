"""Columns become numbers in the same way for the rows that were fitted and for later ones."""

import json

import numpy as np
import pytest
import torch

from postmax.errors import InputError
from postmax.tabular.columns import Encoder, frame_columns


def column(*values):
    return np.array(values, dtype=object)


def test_numbers_are_scaled_and_missing_ones_filled_in():
    values = np.array([1.0, np.nan, 3.0, 8.0])
    encoder, features = Encoder.fit([values], ["x"])
    filled = np.array([1.0, 3.0, 3.0, 8.0])
    expected = np.stack([filled, [0, 1, 0, 0]], 1)
    expected = (expected - expected.mean(0)) / expected.std(0)
    np.testing.assert_allclose(features.numpy(), expected, rtol=1e-6)
    torch.testing.assert_close(encoder.encode([np.array([np.nan])])[0], features[1])


def test_categories_have_a_feature_each_and_new_ones_none():
    encoder, features = Encoder.fit([column("b", "a", None, "a")], ["c"])
    assert encoder.columns[0].names == ("", "a", "b")
    assert features.shape == (4, 3)
    unknown = encoder.encode([column("z")])
    torch.testing.assert_close(unknown[0], -torch.tensor(encoder.mean) * torch.tensor(encoder.factor))


def test_the_hundred_most_frequent_categories_are_kept():
    values = column(*[f"c{i}" for i in range(150)], *["c149"] * 3)
    encoder, _ = Encoder.fit([values], ["c"])
    assert len(encoder.columns[0].names) == 100
    assert "c149" in encoder.columns[0].names


def test_what_is_far_away_is_cut_off():
    encoder, _ = Encoder.fit([np.arange(10.0)], ["x"])
    assert encoder.encode([np.array([1e30])]).item() == 8


def test_a_constant_column_says_nothing():
    _, features = Encoder.fit([np.full(5, 0.1)], ["x"])
    assert (features == 0).all()


def test_json_there_and_back():
    encoder, _ = Encoder.fit([np.array([1.0, np.nan]), column("a", "b"), np.array([True, False])], ["x", "c", "f"])
    again = Encoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    assert again == encoder


def test_numbers_that_are_categories():
    encoder, _ = Encoder.fit([np.array([1.0, 2.0, 10.0])], ["x"], categorical=[0])
    assert set(encoder.columns[0].names) == {"1", "2", "10"}


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_types_of_frames(package):
    frames = pytest.importorskip(package)
    frame = frames.DataFrame({"n": [1, None, 3], "t": ["x", "y", None], "b": [True, False, True]})
    columns, names, categorical = frame_columns(frame)
    encoder, features = Encoder.fit(columns, names, categorical)
    assert [one.kind for one in encoder.columns] == ["numbers", "categories", "categories"]
    assert features.shape == (3, 2 + 3 + 2)


def test_pandas_types():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"c": pandas.Categorical([1, 2, 1]), "i": pandas.array([1, None, 3], dtype="Int64"), "o": [1, 2.5, None]}
    )
    columns, names, categorical = frame_columns(frame)
    assert categorical == [0]
    encoder, _ = Encoder.fit(columns, names, categorical)
    assert [one.kind for one in encoder.columns] == ["categories", "numbers", "numbers"]
    assert encoder.columns[1].fill == 2


def test_infinity_is_refused():
    with pytest.raises(InputError, match="infinity"):
        Encoder.fit([np.array([1.0, np.inf])], ["x"])
