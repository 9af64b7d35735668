"""A person's own files by what they are, and which of their rows are held out."""

import gzip
import hashlib
import re
import struct

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

from postmax import data
from postmax.data.own import fingerprint, idx_labels, is_idx, is_table, read_own, with_classes
from postmax.data.splitting import stratified_mask, stratified_rows
from postmax.data.tables import fit_encoder
from postmax.errors import DataError

PIXELS = np.random.default_rng(0).integers(0, 256, (6, 8, 8)).astype(np.uint8)
LABELS = np.array([0, 1, 2, 0, 1, 2], np.uint8)


def idx(array):
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def image_folder(path):
    for i, pixels in enumerate(PIXELS):
        folder = path / "abc"[LABELS[i]]
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(folder / f"{i}.png")
    return path


# Formats


@pytest.mark.parametrize("suffix", [".csv", ".CSV", ".tsv", ".txt"])
def test_csv(tmp_path, suffix):
    path = tmp_path / f"table{suffix}"
    path.write_text("a;b;id;truth\n1;2;9;x\n3;;8;y\n")
    found = read_own(path, labels="truth", drop=["id"], missing="median")
    assert found.inputs.tolist() == [[1, 2], [3, 2]]
    assert (found.labels.tolist(), found.classes) == ([0, 1], ("x", "y"))
    with pytest.raises(DataError):
        read_own(path, labels="truth", drop=["id"])


def test_parquet(tmp_path):
    pq.write_table(pa.table({"a": [1.0, 2.0], "label": ["x", "y"]}), tmp_path / "t.parquet")
    found = read_own(tmp_path / "t.parquet")
    assert (found.inputs.tolist(), found.classes) == ([[1], [2]], ("x", "y"))


def test_npz(tmp_path):
    np.savez(tmp_path / "a.NPZ.npz", x=PIXELS, truth=LABELS, y=LABELS[::-1])
    found = read_own(tmp_path / "a.NPZ.npz", labels="truth")
    assert found.inputs.shape == (6, 1, 8, 8)
    assert found.labels.tolist() == LABELS.tolist()
    assert read_own(tmp_path / "a.NPZ.npz").labels.tolist() == LABELS[::-1].tolist()


@pytest.mark.parametrize("zipped", [False, True])
def test_idx_with_labels_beside_it(tmp_path, zipped):
    end, pack = (".gz", gzip.compress) if zipped else ("", bytes)
    (tmp_path / f"train-images-idx3-ubyte{end}").write_bytes(pack(idx(PIXELS)))
    (tmp_path / f"train-labels-idx1-ubyte{end}").write_bytes(pack(idx(LABELS)))
    found = read_own(tmp_path / f"train-images-idx3-ubyte{end}")
    assert torch.equal(found.inputs[:, 0], torch.from_numpy(PIXELS))
    assert found.labels.tolist() == LABELS.tolist()


def test_idx_by_its_first_bytes(tmp_path):
    (tmp_path / "pictures").write_bytes(idx(PIXELS))
    (tmp_path / "answers").write_bytes(idx(LABELS))
    assert is_idx(tmp_path / "pictures")
    assert read_own(tmp_path / "pictures", labels=str(tmp_path / "answers")).labels.tolist() == LABELS.tolist()
    with pytest.raises(DataError, match="pictures: which file holds the labels"):
        read_own(tmp_path / "pictures")
    with pytest.raises(DataError, match="gone does not exist"):
        read_own(tmp_path / "pictures", labels=str(tmp_path / "gone"))


def test_labels_of_idx_images_are_not_the_images(tmp_path):
    (tmp_path / "my.idx").write_bytes(idx(PIXELS))
    with pytest.raises(DataError, match="which file holds the labels"):
        idx_labels(tmp_path / "my.idx", None)


def test_images(tmp_path):
    found = read_own(image_folder(tmp_path / "images"), size=8)
    assert (found.inputs.shape, found.classes) == ((6, 3, 8, 8), ("a", "b", "c"))
    assert found.labels.tolist() == [0, 0, 1, 1, 2, 2]
    assert read_own(tmp_path / "images", size=4).inputs.shape == (6, 3, 4, 4)


@pytest.mark.parametrize(("name", "content"), [("a.docx", b"PK\x03\x04"), ("a", b"hello"), ("a.npy", b"\x93NUMPY")])
def test_other_formats(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(
        DataError, match=r"has an unknown format\. postmax reads CSV, Parquet or Arrow tables, .npz arrays, IDX images"
    ):
        read_own(tmp_path / name)


def test_nothing_there(tmp_path):
    with pytest.raises(DataError, match=r"gone.csv does not exist"):
        read_own(tmp_path / "gone.csv")
    (tmp_path / "empty.csv").write_bytes(b"")
    with pytest.raises(DataError, match=r"empty.csv is empty"):
        read_own(tmp_path / "empty.csv")
    with pytest.raises(DataError, match="has no subfolders"):
        read_own(tmp_path)


def test_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "t.csv").write_text("a,label\n1,x\n2,y\n")
    assert len(read_own("~/t.csv")) == 2
    assert fingerprint("~/t.csv") == fingerprint(tmp_path / "t.csv")


def test_tables_are_known_by_their_name():
    assert is_table("a/b.csv")
    assert is_table("b.PQ")
    assert not is_table("b.npz")


def test_a_second_table_is_read_like_the_first(tmp_path):
    (tmp_path / "a.csv").write_text("colour,label\nred,x\nblue,y\n")
    (tmp_path / "b.csv").write_text("colour,label\nred,x\nred,y\n")
    encoder = fit_encoder(tmp_path / "a.csv")
    assert read_own(tmp_path / "b.csv", encoder=encoder).inputs.tolist() == [[0, 1], [0, 1]]


# Classes


def toy(labels, classes):
    return data.Dataset("toy", torch.zeros(len(labels), 1), torch.tensor(labels), classes)


def test_classes_in_another_order():
    found = with_classes(toy([0, 1, 1, 0], ("b", "c")), ("c", "a", "b"))
    assert found.labels.tolist() == [2, 0, 0, 2]
    assert found.classes == ("c", "a", "b")
    assert [found.classes[i] for i in found.labels] == ["b", "c", "c", "b"]


def test_the_same_classes():
    dataset = toy([1, 0], ("a", "b"))
    assert with_classes(dataset, ("a", "b")).labels.tolist() == [1, 0]


def test_a_new_class():
    with pytest.raises(DataError, match="toy has the class 'd', which the training rows do not have"):
        with_classes(toy([0, 1], ("a", "d")), ("a", "b", "c"))


# Fingerprints


def test_the_fingerprint_of_a_file(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    assert fingerprint(tmp_path / "a") == hashlib.sha256(b"abc").hexdigest()
    with pytest.raises(DataError, match="does not exist"):
        fingerprint(tmp_path / "b")


def test_the_fingerprint_of_a_folder(tmp_path):
    one, other = image_folder(tmp_path / "one"), image_folder(tmp_path / "other")
    first = fingerprint(one)
    assert re.fullmatch("[0-9a-f]{64}", first)
    assert fingerprint(other) == first
    (other / "a" / "0.png").rename(other / "b" / "0.png")
    moved = fingerprint(other)
    (other / "b" / "0.png").rename(other / "b" / "00.png")
    renamed = fingerprint(other)
    (other / "b" / "00.png").write_bytes((other / "b" / "00.png").read_bytes() + b"x")
    grown = fingerprint(other)
    (other / "b" / "00.png").unlink()
    assert len({first, moved, renamed, grown, fingerprint(other)}) == 5
    assert fingerprint(one) == first


# Held-out rows


@pytest.mark.parametrize("share", [0.0, 0.1, 0.25, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("counts", [(10, 10), (3, 40, 7), (1, 1, 200)])
def test_each_class_gives_its_share(share, counts):
    labels = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    labels = labels[torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))]
    mask = stratified_mask(labels, share)
    assert (mask.shape, mask.dtype) == (labels.shape, torch.bool)
    for code, count in enumerate(counts):
        assert abs(int(mask[labels == code].sum()) - share * count) <= 0.5


@pytest.mark.parametrize("counts", [(10, 10), (3, 40, 7), (5,) * 10, (1, 1, 200)])
def test_as_many_rows_as_asked_for_as_evenly_as_can_be(counts):
    labels = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    for rows in range(len(labels) + 1):
        mask = stratified_rows(labels, rows, seed=3)
        assert int(mask.sum()) == rows
        for code, count in enumerate(counts):
            assert abs(int(mask[labels == code].sum()) - rows * count / len(labels)) < 1
    assert not torch.equal(stratified_rows(labels, 9, seed=0), stratified_rows(labels, 9, seed=1))


def test_seeds_and_keys_are_draws_of_their_own():
    labels = torch.arange(400) % 4
    masks = [stratified_mask(labels, 0.5, seed=s, key=k) for s in range(3) for k in ("split", "validation")]
    assert all(torch.equal(masks[i], masks[j]) == (i == j) for i in range(6) for j in range(6))
    # Unrelated: half of what one takes is in the other, give or take four deviations.
    overlaps = [int((masks[i] & masks[j]).sum()) for i in range(6) for j in range(i)]
    assert all(abs(overlap - 100) < 40 for overlap in overlaps)
    assert torch.equal(stratified_mask(labels, 0.5, seed=2), masks[4])


def test_every_row_is_drawn_as_often_as_any_other():
    labels = torch.arange(40) % 2
    often = sum(stratified_mask(labels, 0.25, seed=seed).double() for seed in range(400))
    assert often.sum() == 400 * 10
    assert (often - 100).abs().max() < 4.5 * (400 * 0.25 * 0.75) ** 0.5


def test_a_row_is_drawn_for_its_place_and_not_for_the_labels_of_others():
    """The rows of one class do not depend on how the others are labelled."""
    labels = torch.arange(60) % 3
    merged = torch.where(labels == 2, 1, labels)
    mask, other = (stratified_mask(codes, 0.3, seed=4) for codes in (labels, merged))
    assert torch.equal(mask[labels == 0], other[labels == 0])


def test_the_split_does_not_move():
    mask = stratified_mask(torch.arange(20) % 2, 0.3, seed=1)
    assert mask.nonzero()[:, 0].tolist() == [0, 1, 5, 7, 14, 16]
