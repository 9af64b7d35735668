"""CIFAR-10N and CIFAR-100N: human labels beside the clean ones, never out of order."""

import pickle
import zipfile
from dataclasses import replace

import numpy as np
import pytest
import torch
from official_files import cifar10_files, cifar100_files, human_labels_bytes, write_folder, write_human_labels

from postmax import data
from postmax.data.catalogue import Request
from postmax.data.cifar_n import CIFAR10N, CIFAR100N, read_cifar_n, read_human_labels
from postmax.errors import DataError

ROOT = data.data_root()  # that of the person who runs the tests: read, never written
REAL = {published.file: ROOT / "cifar-n" / published.file for published in (CIFAR10N, CIFAR100N)}
REAL_RATES = {
    "aggre_label": 0.0901,
    "random_label1": 0.1723,
    "random_label2": 0.1812,
    "random_label3": 0.1764,
    "worse_label": 0.4021,
}


@pytest.mark.parametrize("place", ["", "cifar-n"])
@pytest.mark.parametrize("make", [cifar10_files, cifar100_files])
def test_human_labels_with_the_clean_ones_beside_them(tmp_path, make, place):
    files, layout, (_, y) = make()
    write_folder(tmp_path, layout, files)
    published = write_human_labels(
        tmp_path / place / ("CIFAR-10_human.pt" if layout.name == "cifar10" else "CIFAR-100_human.pt"), layout, y
    )
    for shift, name in enumerate(published.columns, 1):
        train = read_cifar_n(published, name, Request(tmp_path, "train"))
        assert train.name == name
        assert torch.equal(train.clean_labels, torch.from_numpy(y))
        assert torch.equal(train.labels, (train.clean_labels + shift) % len(layout.classes))
        test = read_cifar_n(published, name, Request(tmp_path, "test"))
        assert (test.name, test.clean_labels) == (name, None)


def test_another_order_is_an_error(tmp_path):
    files, layout, (_, y) = cifar10_files()
    write_folder(tmp_path, layout, files)
    published = write_human_labels(tmp_path / "CIFAR-10_human.pt", layout, np.roll(y, 1))
    with pytest.raises(DataError, match=r"CIFAR-10_human\.pt: its clean labels differ .* in another order"):
        read_cifar_n(published, "cifar10n-worst", Request(tmp_path, "train"))


def test_missing_says_where_it_is_published(tmp_path):
    files, layout, _ = cifar10_files()
    write_folder(tmp_path, layout, files)
    with pytest.raises(DataError, match=r"CIFAR-10_human\.pt is missing.*UCSC-REAL/cifar-10-100n"):
        read_cifar_n(replace(CIFAR10N, images=layout), "cifar10n-worst", Request(tmp_path, "train"))


def test_another_file_fails_its_checksum(tmp_path):
    _, layout, (_, y) = cifar10_files()
    path = tmp_path / "CIFAR-10_human.pt"
    published = write_human_labels(path, layout, y)
    content = bytearray(path.read_bytes())
    content[200] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"CIFAR-10_human\.pt: its SHA256 is"):
        read_human_labels(path, published)


def _columns(y, **changes):
    columns = {"clean_label": y, **dict.fromkeys(CIFAR10N.columns.values(), y), **changes}
    return {name: values for name, values in columns.items() if values is not None}


GOOD = np.arange(100) % 10


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no zip",
        human_labels_bytes(_columns(GOOD), member="archive/other.pkl"),
        human_labels_bytes(_columns(GOOD))[:-30],
        human_labels_bytes(_columns(GOOD)).replace(b"\x07\x00\x00", b"\x08\x00\x00", 1),
        human_labels_bytes(_columns(GOOD, worse_label=None)),
        human_labels_bytes(_columns(GOOD, clean_label=None)),
        human_labels_bytes(_columns(GOOD, worse_label=GOOD[:99])),
        human_labels_bytes(_columns(GOOD, worse_label=GOOD + 1)),
        human_labels_bytes(_columns(GOOD, worse_label=GOOD - 1)),
        human_labels_bytes(_columns(GOOD, worse_label=GOOD * 1.0)),
        human_labels_bytes(_columns(GOOD, worse_label=GOOD.tolist())),
        human_labels_bytes(b"cposix\nsystem\n(S'true'\ntR."),
        human_labels_bytes(pickle.dumps([1])),
        human_labels_bytes(bytes(70_000_000), compression=zipfile.ZIP_DEFLATED),
    ],
)
def test_damage_is_found_even_where_the_checksum_agrees(tmp_path, content):
    _, layout, _ = cifar10_files()
    path = tmp_path / "CIFAR-10_human.pt"
    published = write_human_labels(path, layout, GOOD, content)
    with pytest.raises(DataError, match=r"CIFAR-10_human\.pt"):
        read_human_labels(path, published)


@pytest.mark.skipif(not REAL["CIFAR-10_human.pt"].exists(), reason="CIFAR-10N is not on this machine")
def test_the_real_rates_of_cifar10n():
    columns = read_human_labels(REAL["CIFAR-10_human.pt"], CIFAR10N)
    for column, rate in REAL_RATES.items():
        assert np.mean(columns[column] != columns["clean_label"]) == pytest.approx(rate, abs=6e-5)


@pytest.mark.skipif(not REAL["CIFAR-100_human.pt"].exists(), reason="CIFAR-100N is not on this machine")
def test_the_real_rate_of_cifar100n():
    columns = read_human_labels(REAL["CIFAR-100_human.pt"], CIFAR100N)
    assert np.mean(columns["noisy_label"] != columns["clean_label"]) == pytest.approx(0.4020, abs=6e-5)


@pytest.mark.skipif(
    not (REAL["CIFAR-10_human.pt"].exists() and (ROOT / "cifar-10-batches-py").is_dir()),
    reason="CIFAR-10 and CIFAR-10N are not on this machine",
)
def test_the_real_images_under_the_real_labels():
    train = data.load("cifar10n-worst", root=ROOT)
    assert train.inputs.shape == (50_000, 3, 32, 32)
    assert (train.labels != train.clean_labels).double().mean().item() == pytest.approx(0.4021, abs=6e-5)
