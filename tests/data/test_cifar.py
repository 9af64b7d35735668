"""CIFAR-10 and CIFAR-100: the official layouts, and everything that can be wrong with them."""

import gzip
import hashlib
import pickle
import tarfile
from dataclasses import replace

import numpy as np
import pytest
import torch
from official_files import cifar10_files, cifar100_files, python2_pickle, write_archive, write_folder

from postmax import data
from postmax.data.catalogue import Request
from postmax.data.cifar import CIFAR100_CLASSES, CIFAR100_COARSE, CIFAR100_SUPERCLASSES, read_cifar
from postmax.data.download import RemoteFile
from postmax.errors import DataError

ROOT = data.data_root()  # that of the person who runs the tests: read, never written
HAVE_CIFAR10 = (ROOT / "cifar-10-batches-py").is_dir()
MAKERS = {"cifar10": cifar10_files, "cifar100": cifar100_files}


@pytest.fixture(params=MAKERS)
def official(request):
    return MAKERS[request.param]()


@pytest.mark.parametrize("packed", [False, True])
def test_folder_and_archive(tmp_path, official, packed):
    files, layout, (x, y) = official
    if packed:
        _, layout = write_archive(tmp_path, layout, files)
    else:
        write_folder(tmp_path, layout, files)
    train = read_cifar(layout, Request(tmp_path, "train"))
    assert train.name == layout.name
    assert train.classes == layout.classes
    assert torch.equal(train.inputs, torch.from_numpy(x).view(-1, 3, 32, 32))
    assert torch.equal(train.labels, torch.from_numpy(y))
    assert train.clean_labels is None
    assert len(read_cifar(layout, Request(tmp_path, "test"))) == 100
    assert {path.name for path in tmp_path.iterdir()} == {layout.archive.name if packed else layout.folder}


def test_missing_says_which_file_to_put_where(tmp_path):
    with pytest.raises(DataError) as error:
        data.load("cifar10", root=tmp_path)
    for part in (
        str(tmp_path / "cifar-10-python.tar.gz"),
        "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
        "download=True",
    ):
        assert part in str(error.value)


def test_one_file_of_the_folder_missing(tmp_path):
    files, layout, _ = cifar10_files()
    del files["data_batch_3"]
    write_folder(tmp_path, layout, files)
    with pytest.raises(DataError, match="data_batch_3 does not exist"):
        read_cifar(layout, Request(tmp_path, "train"))
    assert len(read_cifar(layout, Request(tmp_path, "test"))) == 100


def test_names_of_the_classes_may_be_missing_but_not_wrong(tmp_path):
    files, layout, _ = cifar10_files()
    folder = write_folder(tmp_path, layout, files)
    (folder / "batches.meta").write_bytes(python2_pickle({b"label_names": [b"cat", b"dog"]}))
    with pytest.raises(DataError, match=r"batches\.meta names other classes"):
        read_cifar(layout, Request(tmp_path, "train"))
    (folder / "batches.meta").unlink()
    assert len(read_cifar(layout, Request(tmp_path, "train"))) == 100


def _damaged(files, name, **changes):
    """The files with other content in one of them."""
    content = {b"labels": [i % 10 for i in range(20)], b"data": np.zeros((20, 3072), np.uint8)}
    content.update({key.encode(): value for key, value in changes.items()})
    return {**files, name: pickle.dumps({k: v for k, v in content.items() if v is not None}, protocol=2)}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": None}, "must hold 'data' and 'labels'"),
        ({"data": None}, "must hold 'data' and 'labels'"),
        ({"data": [1, 2]}, "must hold 'data' and 'labels'"),
        ({"data": np.zeros((20, 3071), np.uint8)}, "must be 20 × 3072 bytes"),
        ({"data": np.zeros((20, 3072), np.float32)}, "must be 20 × 3072 bytes"),
        ({"data": np.zeros((19, 3072), np.uint8)}, "must be 20 × 3072 bytes"),
        ({"labels": [0] * 19 + [b"x"]}, "one whole number for each row"),
        ({"labels": [0] * 19 + [[1]]}, "one whole number for each row"),
        ({"labels": [0.5] * 20}, "one whole number for each row"),
        ({"labels": [0] * 20}, "must have 10 images"),
        ({"labels": [-1] * 20}, "must have 10 images"),
        ({"labels": [10] * 20}, "must have 10 images"),
        ({}, "are not those of cifar10"),
        ({"labels": [0], "data": np.zeros((1, 3072), np.uint8)}, "has 81 images, cifar10 has 100"),
    ],
)
def test_wrong_content(tmp_path, changes, message):
    files, layout, _ = cifar10_files()
    # Every batch has each class twice, so that only what a case changes is wrong.
    labels = {f"data_batch_{i}": pickle.loads(_damaged({}, "f")["f"]) for i in range(1, 6)}
    files.update({name: pickle.dumps(content, protocol=2) for name, content in labels.items()})
    write_folder(tmp_path, layout, _damaged(files, "data_batch_2", **changes))
    with pytest.raises(DataError, match=message) as error:
        read_cifar(layout, Request(tmp_path, "train"))
    assert layout.folder in str(error.value)


def test_two_rows_swapped_is_an_error(tmp_path):
    files, layout, (x, y) = cifar10_files()
    first = {b"labels": y[:20][::-1].tolist(), b"data": x[:20][::-1]}
    write_folder(tmp_path, layout, {**files, "data_batch_1": python2_pickle(first)})
    with pytest.raises(DataError, match="not in the official order"):
        read_cifar(layout, Request(tmp_path, "train"))


def test_superclasses_must_belong_to_classes(tmp_path):
    files, layout, (x, y) = cifar100_files()
    content = {b"fine_labels": y.tolist(), b"coarse_labels": [0] * 100, b"data": x}
    write_folder(tmp_path, layout, {**files, "train": python2_pickle(content)})
    with pytest.raises(DataError, match="superclasses do not belong"):
        read_cifar(layout, Request(tmp_path, "train"))


def test_malicious_batch_names_file_and_wish(tmp_path):
    files, layout, _ = cifar10_files()
    write_folder(tmp_path, layout, {**files, "data_batch_4": b"cposix\nsystem\n(S'true'\ntR."})
    with pytest.raises(DataError, match=r"data_batch_4 wants to run posix\.system"):
        read_cifar(layout, Request(tmp_path, "train"))


@pytest.mark.parametrize("share", [0, 0.01, 0.5, 0.99, -1])
def test_truncated_batch(tmp_path, share):
    files, layout, _ = cifar10_files()
    content = files["data_batch_5"]
    write_folder(
        tmp_path, layout, {**files, "data_batch_5": content[: int(share * len(content)) if share >= 0 else -1]}
    )
    with pytest.raises(DataError, match="data_batch_5"):
        read_cifar(layout, Request(tmp_path, "train"))


def test_archive_of_another_version(tmp_path):
    files, layout, _ = cifar10_files()
    path, good = write_archive(tmp_path, layout, files)
    with pytest.raises(DataError, match=r"its MD5 is .*damaged or another version"):
        read_cifar(layout, Request(tmp_path, "train"))
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataError, match="its MD5 is"):
        read_cifar(good, Request(tmp_path, "train"))


def _with_checksum(layout, path):
    return replace(layout, archive=RemoteFile(layout.archive.url, hashlib.md5(path.read_bytes()).hexdigest()))


def test_archives_that_are_none(tmp_path):
    files, layout, _ = cifar10_files()
    path, _ = write_archive(tmp_path, layout, files)
    whole = path.read_bytes()
    for content in (
        whole[: len(whole) // 2],
        whole[:20],
        b"PK\x03\x04",
        gzip.compress(b"not a tar"),
        whole[:300] + b"?" + whole[301:],
    ):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"cifar-10-python\.tar\.gz"):
            read_cifar(_with_checksum(layout, path), Request(tmp_path, "train"))


def test_archive_without_a_file_or_with_a_link_in_its_place(tmp_path):
    files, layout, _ = cifar10_files()
    del files["data_batch_5"]
    path, incomplete = write_archive(tmp_path, layout, files)
    with pytest.raises(DataError, match="does not contain cifar-10-batches-py/data_batch_5"):
        read_cifar(incomplete, Request(tmp_path, "train"))
    with tarfile.open(path, "w:gz") as archive:
        link = tarfile.TarInfo(f"{layout.folder}/data_batch_1")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    with pytest.raises(DataError, match=r"cifar-10-python\.tar\.gz"):
        read_cifar(_with_checksum(layout, path), Request(tmp_path, "train"))


def test_archive_that_unpacks_to_too_much(tmp_path, monkeypatch):
    files, layout, _ = cifar10_files()
    _, layout = write_archive(tmp_path, layout, {**files, "data_batch_1": bytes(5_000_000)})
    monkeypatch.setattr("postmax.data.cifar._LARGEST_FILE", 1_000_000)
    with pytest.raises(DataError, match="more than the 1,000,000 bytes"):
        read_cifar(layout, Request(tmp_path, "train"))


def test_file_where_the_folder_should_be(tmp_path):
    _, layout, _ = cifar10_files()
    (tmp_path / layout.folder).write_bytes(b"x")
    with pytest.raises(DataError, match=layout.folder):
        read_cifar(layout, Request(tmp_path, "train"))


def test_superclasses_of_cifar100():
    assert len(CIFAR100_CLASSES) == 100
    assert len(CIFAR100_SUPERCLASSES) == 20
    assert list(CIFAR100_CLASSES) == sorted(CIFAR100_CLASSES)
    assert np.bincount(CIFAR100_COARSE).tolist() == [5] * 20
    members = {CIFAR100_CLASSES[i] for i in (4, 30, 55, 72, 95)}
    assert members == {"beaver", "dolphin", "otter", "seal", "whale"}
    assert {CIFAR100_COARSE[i] for i in (4, 30, 55, 72, 95)} == {CIFAR100_SUPERCLASSES.index("aquatic_mammals")}


@pytest.mark.skipif(not HAVE_CIFAR10, reason="CIFAR-10 is not on this machine")
def test_the_real_one():
    test = data.load("CIFAR-10", split="test", root=ROOT)
    assert test.inputs.shape == (10_000, 3, 32, 32)
    assert test.labels[:4].tolist() == [3, 8, 8, 0]
