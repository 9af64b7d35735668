"""Getting a data set: what may be downloaded comes from a server, the rest is told, and all of it is verified."""

import gzip
import hashlib
import struct
import threading
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
import torch

from postmax import data
from postmax.data import catalogue
from postmax.data.catalogue import Request, Source
from postmax.data.dataset import Dataset
from postmax.data.download import RemoteFile
from postmax.data.getting import state_of
from postmax.data.mnist import MNIST, read_mnist
from postmax.data.request import Needed
from postmax.errors import DataError, InputError
from postmax.progress import listening
from postmax.train.config import make_config
from postmax.train.timing import NotHere, measure_run
from postmax.wording import command_line


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@pytest.fixture
def published(tmp_path):
    """A folder whose files a server publishes, and its address."""
    folder = tmp_path / "published"
    folder.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield folder, f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def idx(shape, content):
    return gzip.compress(struct.pack(f">HBB{len(shape)}I", 0, 8, len(shape), *shape) + content)


@pytest.fixture
def tiny(published, monkeypatch):
    """A data set with the four files of MNIST, of ten small images, published on the server."""
    folder, url = published
    labels = bytes(range(10))
    for needed in MNIST.needed:
        name = needed.remote.name
        file = idx((10, 2, 2), bytes(40)) if "images" in name else idx((10,), labels)
        (folder / name).write_bytes(file)
    md5 = tuple(hashlib.md5((folder / needed.remote.name).read_bytes()).hexdigest() for needed in MNIST.needed)
    family = replace(MNIST, url=url, md5=md5, counts={"train": (1,) * 10, "test": (1,) * 10})
    add(monkeypatch, "mnist", partial(read_mnist, family), family.needed)
    return folder


def add(monkeypatch, name, read, files):
    """Let a name of the catalogue stand for another data set."""
    catalogue._SOURCES.get(name)
    source = Source(read, ("train", "test"), files=tuple(files))
    monkeypatch.setitem(catalogue._SOURCES._values, name, source)


def test_what_is_published_is_downloaded_and_verified(tiny, tmp_path):
    root = tmp_path / "data"
    assert state_of("mnist", root) == "missing: can be downloaded, 12 MB"
    got = data.get("mnist", root=root)
    assert [path.name for path in got.new] == [needed.remote.name for needed in MNIST.needed]
    assert got.rows == {"train": 10, "test": 10}
    assert state_of("mnist", root) == "here"
    again = data.get("mnist", root=root)
    assert (again.new, again.rows) == ((), got.rows)


def test_a_damaged_file_is_found_when_it_is_verified(tiny, tmp_path):
    data.get("mnist", root=tmp_path / "data")
    file = tmp_path / "data" / "mnist" / MNIST.needed[3].remote.name
    file.write_bytes(b"damaged")
    with pytest.raises(DataError, match=f"{file.name}: its MD5 is .* delete it and fetch it again"):
        data.get("mnist", root=tmp_path / "data")


def test_offline_one_message_says_everything_that_can_be_done_by_hand(tmp_path, monkeypatch):
    with ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        url = f"http://127.0.0.1:{server.server_port}/"
    family = replace(MNIST, url=url)
    add(monkeypatch, "mnist", partial(read_mnist, family), family.needed)
    with pytest.raises(DataError, match="cannot be downloaded") as error:
        data.get("mnist", root=tmp_path)
    for needed in family.needed:
        assert str(tmp_path / "mnist" / needed.remote.name) in str(error.value)
        assert needed.remote.url in str(error.value)
        assert needed.remote.checksum in str(error.value)


@pytest.mark.parametrize("name", ["webvision", "webvision-mini", "ilsvrc12", "ilsvrc12-mini"])
def test_what_needs_a_registration_is_listed_file_by_file(tmp_path, name):
    assert state_of(name, tmp_path) == "missing: by hand"
    with pytest.raises(DataError, match="by hand") as error:
        data.get(name, root=tmp_path)
    for needed in data.needed_files(name):
        assert needed.remote is None
        assert f"{needed.paths(tmp_path)[-1]}: {needed.how}" in str(error.value)


def test_the_terms_of_a_file_are_told_before_it_is_downloaded(published, tmp_path, monkeypatch):
    folder, url = published
    (folder / "labels").write_bytes(b"1")
    remote = RemoteFile(f"{url}labels", hashlib.md5(b"1").hexdigest())
    needed = Needed(("labels",), "Fetch labels.", remote=remote, terms="not for sale")
    read = lambda request: Dataset("one", torch.zeros(1, 1), torch.zeros(1, dtype=torch.long), ("a",))  # noqa: E731
    add(monkeypatch, "mnist", read, [needed])
    told = []
    with listening(lambda stage: told.append(str(stage))):
        data.get("mnist", root=tmp_path)
    assert told[0] == "labels: not for sale"


def test_what_is_computed_is_computed_after_the_files_it_is_made_of(published, tmp_path, monkeypatch):
    folder, url = published
    (folder / "pixels").write_bytes(b"abc")
    pixels = Needed(("pixels",), "", remote=RemoteFile(f"{url}pixels", hashlib.md5(b"abc").hexdigest()))

    def make(request):
        (request.root / "features").write_text((request.root / "pixels").read_text().upper())

    features = Needed(("features",), "They are computed.", make=make)

    def read(request):
        rows = np.frombuffer(request.find(features).read_bytes(), np.uint8).astype(np.float32)[:, None]
        return Dataset("letters", torch.from_numpy(rows), torch.zeros(3, dtype=torch.long), ("a",))

    add(monkeypatch, "mnist", read, [features, pixels])
    assert state_of("mnist", tmp_path) == "missing: can be downloaded; features are computed"
    assert [path.name for path in data.get("mnist", root=tmp_path).new] == ["pixels", "features"]
    assert (tmp_path / "features").read_text() == "ABC"


def test_an_unknown_name_is_an_error():
    with pytest.raises(InputError, match=r"unknown data set 'cifar11'\. Did you mean"):
        data.get("cifar11")


def test_every_data_set_says_what_it_is_read_from(tmp_path):
    for name in data.names():
        missing = data.absent(name, tmp_path)
        assert (not missing) == (name in ("breast-cancer", "digits"))
        for needed in missing:
            assert needed.how.endswith(".")
            if needed.remote is not None:
                assert needed.places[-1].endswith(needed.remote.name)
                assert needed.remote.url.startswith(("https://", "http://fashion-mnist"))


def test_the_advice_fits_the_reader(tmp_path):
    def message(**options):
        with pytest.raises(DataError) as error:
            data.load("cifar10", root=tmp_path, **options)
        return str(error.value)

    assert message().endswith("give the root your data sets are in. With download=True it is downloaded.")
    with command_line():
        assert message().endswith("set POSTMAX_DATA to the folder it is in. `postmax data get cifar10` downloads it.")
    with command_line(), pytest.raises(DataError) as error:
        Request(tmp_path, "train").file([tmp_path / "licensed"], how="Register first.")
    assert "data get" not in str(error.value)


def test_nothing_is_measured_without_the_data(tmp_path, monkeypatch):
    monkeypatch.setenv("POSTMAX_DATA", str(tmp_path))
    config = make_config({"data": {"name": "cifar10-embedded"}, "epochs": 3})
    with command_line(), pytest.raises(NotHere, match=r"^cifar10-embedded is not here \(postmax data get cifar10-emb"):
        measure_run(config)
    with pytest.raises(NotHere, match=r'is not here \(postmax.data.get\("cifar10-embedded"\)\)$'):
        measure_run(config)
    assert list(tmp_path.iterdir()) == []
