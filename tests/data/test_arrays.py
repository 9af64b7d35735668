"""`.npz` files and memory-mapped `.npy` files."""

import io
import zipfile

import numpy as np
import pytest
import torch

from postmax import data
from postmax.errors import DataError, InputError

X = np.random.default_rng(0).normal(size=(6, 3))
Y = np.array([0, 2, 1, 0, 2, 1])


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("keys", [("x", "y"), ("X", "Y"), ("features", "labels"), ("data", "target")])
def test_features(tmp_path, save, keys):
    path = tmp_path / "own.npz"
    save(path, **dict(zip(keys, (X, Y), strict=True)), other=np.zeros(3))
    dataset = data.read_npz(path)
    assert dataset.name == "own"
    assert torch.equal(dataset.inputs, torch.from_numpy(X).float())
    assert dataset.labels.tolist() == Y.tolist()
    assert dataset.classes == ("0", "1", "2")


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((6, 8, 9), (6, 1, 8, 9)),
        ((6, 8, 9, 3), (6, 3, 8, 9)),
        ((6, 3, 8, 9), (6, 3, 8, 9)),
        ((6, 8, 8, 1), (6, 1, 8, 8)),
        ((6, 1, 8, 8), (6, 1, 8, 8)),
    ],
)
def test_images(tmp_path, shape, expected):
    images = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
    np.savez(tmp_path / "i.npz", x=images, y=Y)
    inputs = data.read_npz(tmp_path / "i.npz").inputs
    assert inputs.shape == expected
    assert inputs.dtype == torch.uint8
    if shape[-1] == 3:
        assert torch.equal(inputs.permute(0, 2, 3, 1), torch.from_numpy(images))


def test_labels_may_be_names(tmp_path):
    np.savez(tmp_path / "n.npz", x=X, y=np.array(["b", "a", "b", "a", "b", "a"]))
    assert data.read_npz(tmp_path / "n.npz").classes == ("a", "b")


def test_keys(tmp_path):
    np.savez(tmp_path / "k.npz", train_images=X, train_labels=Y)
    with pytest.raises(
        DataError, match=r"which array holds the inputs\? It has train_images \(6, 3\), train_labels \(6,\)"
    ):
        data.read_npz(tmp_path / "k.npz")
    with pytest.raises(DataError, match="no array 'images'"):
        data.read_npz(tmp_path / "k.npz", inputs="images", labels="train_labels")
    assert len(data.read_npz(tmp_path / "k.npz", inputs="train_images", labels="train_labels")) == 6


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (np.array([[1.0, np.nan]]), [0], "the 1st row is nan at index 1"),
        (np.array([[1.0, np.inf]]), [0], "the 1st row is inf at index 1"),
        (np.zeros((1, 4, 4)), [0], "Images must be uint8"),
        (np.zeros((1, 4, 4, 2), np.uint8), [0], "one or three channels"),
        (np.zeros((1, 2, 3, 4, 5), np.uint8), [0], "one or three channels"),
        (np.array([["a"]]), [0], "neither features"),
        (np.zeros((2, 1)), [0], "2 rows but 1 labels"),
        (np.zeros((1, 1)), [0.5], "fractional"),
        (np.zeros((0, 1)), np.zeros(0, int), "no rows"),
    ],
)
def test_content_that_is_no_data_set(tmp_path, x, y, message):
    np.savez(tmp_path / "c.npz", x=x, y=np.asarray(y))
    with pytest.raises(InputError, match=message):
        data.read_npz(tmp_path / "c.npz")


def test_objects_are_refused(tmp_path):
    np.savez(tmp_path / "o.npz", x=np.array([print, 1], dtype=object), y=Y)
    with pytest.raises(DataError, match=r"o\.npz: x\.npy holds Python objects"):
        data.read_npz(tmp_path / "o.npz")


def test_damage(tmp_path):
    buffer = io.BytesIO()
    np.savez_compressed(buffer, x=X, y=Y)
    whole, path = buffer.getvalue(), tmp_path / "d.npz"
    flipped = bytearray(whole)
    flipped[whole.index(b"x.npy") + 60] ^= 0xFF
    for content in (b"", b"x", whole[:10], whole[: len(whole) // 2], whole[:-1], bytes(flipped)):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"d\.npz"):
            data.read_npz(path)


def _npy(array, shape):
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return buffer.getvalue() + array.tobytes()


def test_bombs(tmp_path):
    path = tmp_path / "b.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", bytes(3_000_000))
    with pytest.raises(DataError, match="would unpack to 3,000,000 bytes"):
        data.read_npz(path, max_bytes=1_000_000)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", _npy(X, (10**9, 10**6)))
    with pytest.raises(DataError, match="does not have the bytes of its shape"):
        data.read_npz(path)


def test_mapped(tmp_path):
    images = np.arange(6 * 4 * 4 * 3, dtype=np.uint8).reshape(6, 4, 4, 3)
    np.save(tmp_path / "m.npy", images)
    rows = data.MappedArray(tmp_path / "m.npy")
    assert len(rows) == 6
    index = torch.tensor([4, 0, 4])
    assert torch.equal(rows[index], torch.from_numpy(images)[index].permute(0, 3, 1, 2))
    dataset = data.Dataset("m", rows, torch.zeros(6, dtype=torch.int64), ("a",))
    part = dataset.subset(torch.tensor([5, 1]))
    assert torch.equal(part.inputs[torch.tensor([1])], rows[torch.tensor([1])])
    masked = dataset.subset(torch.tensor([False, True, False, False, False, True]))
    assert torch.equal(masked.inputs[torch.tensor([1])], rows[torch.tensor([5])])
    assert len(masked.subset(torch.tensor([0]))) == 1


def test_mapped_damage(tmp_path):
    path = tmp_path / "m.npy"
    np.save(path, np.zeros((5, 5)))
    whole = path.read_bytes()
    for content in (b"", b"x", whole[:50], whole[:-1]):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"m\.npy"):
            data.MappedArray(path)
    np.save(path, np.array([print], dtype=object))
    with pytest.raises(DataError, match=r"m\.npy"):
        data.MappedArray(path)
    np.save(path, np.zeros(5))
    with pytest.raises(DataError, match="one row for each example"):
        data.MappedArray(path)
