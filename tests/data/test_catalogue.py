"""Data sets by name."""

import subprocess
import sys

import pytest
import torch

from postmax import data
from postmax.data.bundled import stratified_mask
from postmax.errors import DataError, InputError

NAMES = {
    *("cifar10", "cifar100", "cifar100n", "mnist", "fashion-mnist", "kmnist", "breast-cancer", "digits"),
    *(f"cifar10n-{kind}" for kind in ("aggregate", "random1", "random2", "random3", "worst")),
    *(f"cifar10n-{kind}-embedded" for kind in ("aggregate", "random1", "random2", "random3", "worst")),
    *("cifar10-embedded", "webvision", "webvision-mini", "ilsvrc12", "ilsvrc12-mini"),
}


def test_names():
    assert set(data.names()) >= NAMES


@pytest.mark.parametrize("name", sorted(NAMES - {"breast-cancer", "digits"}))
def test_every_missing_file_has_a_place(tmp_path, name):
    split = data.splits(name)[0]
    with pytest.raises(DataError, match=rf"^{tmp_path}/.* is missing\. "):
        data.load(name, split=split, root=tmp_path)


def test_unknown():
    with pytest.raises(InputError, match=r"unknown data set 'cifar11'\. Did you mean 'cifar10'"):
        data.load("cifar11")
    with pytest.raises(DataError, match="digits has no split 'dev'; it has all, train, test"):
        data.load("digits", split="dev")


def test_root(tmp_path, monkeypatch):
    monkeypatch.setenv("POSTMAX_DATA", str(tmp_path / "here"))
    assert data.data_root() == tmp_path / "here"
    assert data.data_root("~/there").is_absolute()
    with pytest.raises(DataError, match="here/mnist"):
        data.load("mnist")


@pytest.mark.parametrize(
    ("name", "rows", "width", "classes"), [("breast-cancer", 569, 30, 2), ("digits", 1797, 64, 10)]
)
def test_bundled(name, rows, width, classes):
    whole, train, test = (data.load(name, split=split) for split in ("all", "train", "test"))
    assert whole.inputs.shape == (rows, width)
    assert whole.inputs.dtype == torch.float32
    assert whole.num_classes == classes
    assert len(train) + len(test) == rows
    assert len(test) / rows == pytest.approx(0.2, abs=0.01)
    assert torch.equal(train.labels, data.load(name).labels)
    together = torch.cat([train.inputs, test.inputs]).sum()
    torch.testing.assert_close(together, whole.inputs.sum())


def test_stratified():
    labels = torch.tensor([0] * 100 + [1] * 50)
    mask = stratified_mask(labels, 0.2)
    assert torch.bincount(labels[mask]).tolist() == [20, 10]
    assert not torch.equal(mask, stratified_mask(labels, 0.2, seed=1))


def test_nothing_optional_is_imported():
    optional = ("PIL", "pyarrow", "sklearn", "scipy")
    code = f"import sys, postmax.data; postmax.data.names(); print([m for m in {optional} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
