"""WebVision and the validation set of ILSVRC12, under the same class indices."""

import numpy as np
import pytest
import scipy.io
import torch
from PIL import Image

from postmax import data
from postmax.data.catalogue import Request
from postmax.data.webvision import read_webvision
from postmax.errors import DataError

# In neither alphabetical nor the devkit's order, so that every mix-up shows.
WNIDS = ["n01443537", "n01440764", "n01484850"]
DEVKIT = {1: "n01484850", 2: "n01443537", 3: "n01440764", 4: "n09999999"}
VALIDATION = [2, 3, 1, 4, 3, 2, 1, 4]


def picture(path, shade=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (20, 20), (shade, shade, shade)).save(path, format="PNG")


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setattr("postmax.data.webvision._ROWS", {})
    monkeypatch.setattr("postmax.data.ilsvrc._PER_CLASS", 2)
    for module in ("webvision", "ilsvrc"):
        monkeypatch.setattr(f"postmax.data.{module}.IMAGE_SIZE", 8)
    info = tmp_path / "webvision" / "info"
    info.mkdir(parents=True)
    (info / "synsets.txt").write_text("".join(f"{w} name{i}, other word\n" for i, w in enumerate(WNIDS)))
    lists = {
        "train_filelist_google.txt": [
            ("google/q0001/a.jpg", 0),
            ("google/q0001/b c.jpg", 2),
            ("google/q0002/c.jpg", 1),
        ],
        "train_filelist_flickr.txt": [("flickr/q0001/d.jpg", 1)],
        "val_filelist.txt": [("val000001.jpg", 2), ("val000002.jpg", 0)],
    }
    for name, rows in lists.items():
        (info / name).write_text("".join(f"{path} {label}\n" for path, label in rows))
        for path, label in rows:
            picture(tmp_path / "webvision" / ("val_images_256" if "val" in name else "") / path, 10 * label)
    return tmp_path


def test_official_layout(root):
    train = data.load("webvision-mini", root=root)
    assert train.labels.tolist() == [0, 2, 1]
    assert train.classes == ("n01443537 name0", "n01440764 name1", "n01484850 name2")
    assert train.inputs[torch.tensor([1, 0])][:, 0, 0, 0].tolist() == [20, 0]
    assert train.inputs[torch.tensor([0])].shape == (1, 3, 8, 8)
    assert data.load("webvision", root=root).labels.tolist() == [0, 2, 1, 1]
    assert data.load("webvision-mini", split="val", root=root).labels.tolist() == [2, 0]
    assert data.load("webvision-mini", root=root / "webvision").labels.tolist() == [0, 2, 1]


def test_mini_is_the_first_classes(root, monkeypatch):
    mini = read_webvision("webvision-mini", 2, Request(root, "train"))
    assert mini.labels.tolist() == [0, 1]
    assert len(mini.classes) == 2


@pytest.mark.parametrize(
    "line",
    ["google/a.jpg", "google/a.jpg x", "google/a.jpg 3", "google/a.jpg -1", "", "../../secret.jpg 0", "/etc/a.jpg 0"],
)
def test_malformed_list(root, line):
    path = root / "webvision" / "info" / "train_filelist_google.txt"
    path.write_text("google/q0001/a.jpg 0\n" + line + "\ngoogle/q0002/c.jpg 1\n")
    with pytest.raises(DataError, match=r"train_filelist_google\.txt: line 2"):
        data.load("webvision-mini", root=root)


def test_a_shortened_list_is_noticed(root, monkeypatch):
    monkeypatch.setattr("postmax.data.webvision._ROWS", {("webvision-mini", "train"): 65_944})
    with pytest.raises(DataError, match="names 3 images for webvision-mini, it should name 65944"):
        data.load("webvision-mini", root=root)


def test_what_is_missing_is_named(root, tmp_path_factory):
    with pytest.raises(DataError, match=r"webvision/info/synsets\.txt is missing.*data\.vision\.ee\.ethz\.ch"):
        data.load("webvision", root=tmp_path_factory.mktemp("empty"))
    (root / "webvision" / "google" / "q0002" / "c.jpg").unlink()
    with pytest.raises(DataError, match=r"c\.jpg is missing"):
        data.load("webvision-mini", root=root)
    (root / "webvision" / "info" / "train_filelist_google.txt").unlink()
    with pytest.raises(DataError, match=r"train_filelist_google\.txt does not exist"):
        data.load("webvision-mini", root=root)


@pytest.mark.parametrize("content", [b"tench\n", b"n01440764 a\nn01440764 b\n", b"\xff\xfe\n", b""])
def test_malformed_classes(root, content):
    (root / "webvision" / "info" / "synsets.txt").write_bytes(content)
    with pytest.raises(DataError, match=r"synsets\.txt"):
        data.load("webvision-mini", root=root)


def _write_devkit(folder):
    folder.mkdir(parents=True)
    synsets = np.array(
        [(number, wnid, "words") for number, wnid in DEVKIT.items()],
        dtype=[("ILSVRC2012_ID", "O"), ("WNID", "O"), ("words", "O")],
    )
    scipy.io.savemat(folder / "meta.mat", {"synsets": synsets[:, None]})
    (folder / "ILSVRC2012_validation_ground_truth.txt").write_text("".join(f"{i}\n" for i in VALIDATION))


@pytest.fixture(params=["ILSVRC2012_devkit_t12/data", "."])
def flat(root, request):
    _write_devkit(root / "ilsvrc12" / "x" if request.param == "." else root / "ilsvrc12" / request.param)
    if request.param == ".":
        for file in (root / "ilsvrc12" / "x").iterdir():
            file.rename(root / "ilsvrc12" / file.name)
    for number, devkit_id in enumerate(VALIDATION, 1):
        picture(root / "ilsvrc12" / "val" / f"ILSVRC2012_val_{number:08d}.JPEG", 10 * devkit_id)
    return root


def test_flat_layout_goes_by_wordnet_id(flat):
    dataset = data.load("ilsvrc12", split="val", root=flat)
    assert dataset.labels.tolist() == [0, 1, 2, 1, 0, 2]
    shades = dataset.inputs[torch.arange(6)][:, 0, 0, 0].tolist()
    assert [WNIDS[label] for label in dataset.labels] == [DEVKIT[shade // 10] for shade in shades]
    assert dataset.classes == data.load("webvision-mini", root=flat).classes


def test_class_folders(root):
    for wnid in [*WNIDS, "n09999999"]:
        for i in range(2):
            picture(
                root / "ilsvrc12" / "val" / wnid / f"ILSVRC2012_val_{i}.JPEG",
                WNIDS.index(wnid) if wnid in WNIDS else 99,
            )
    dataset = data.load("ilsvrc12-mini", split="test", root=root)
    assert dataset.labels.tolist() == [0, 0, 1, 1, 2, 2]
    assert dataset.inputs[torch.arange(6)][:, 0, 0, 0].tolist() == [0, 0, 1, 1, 2, 2]
    (root / "ilsvrc12" / "val" / WNIDS[1] / "ILSVRC2012_val_0.JPEG").unlink()
    with pytest.raises(DataError, match="5 images belong to the 3 classes"):
        data.load("ilsvrc12", split="test", root=root)
    (root / "ilsvrc12" / "val" / WNIDS[1] / "ILSVRC2012_val_1.JPEG").unlink()
    with pytest.raises(DataError, match=f"{WNIDS[1]} has no images"):
        data.load("ilsvrc12", split="test", root=root)


def test_flat_layout_damage(flat):
    folder = next(path.parent for path in flat.rglob("meta.mat"))
    truth = folder / "ILSVRC2012_validation_ground_truth.txt"
    whole = truth.read_text()
    truth.write_text(whole[:8])
    with pytest.raises(DataError, match="cut short"):
        data.load("ilsvrc12", split="test", root=flat)
    truth.write_text(whole.replace("4", "77"))
    with pytest.raises(DataError, match="line 4 is '77', which is not an id"):
        data.load("ilsvrc12", split="test", root=flat)
    truth.write_text(whole)
    meta = (folder / "meta.mat").read_bytes()
    for content in (b"", b"text", meta[:200], meta[:150]):
        (folder / "meta.mat").write_bytes(content)
        with pytest.raises(DataError, match=r"meta\.mat"):
            data.load("ilsvrc12", split="test", root=flat)
    (folder / "meta.mat").unlink()
    with pytest.raises(DataError, match=r"meta\.mat is missing.*ILSVRC2012_devkit_t12\.tar\.gz"):
        data.load("ilsvrc12", split="test", root=flat)


def test_no_images(root):
    with pytest.raises(DataError, match=r"ilsvrc12/val is missing.*registration"):
        data.load("ilsvrc12", split="test", root=root)
    with pytest.raises(DataError, match="ilsvrc12 has no split 'train'; it has test"):
        data.load("ilsvrc12", root=root)
