"""Images on disk: every mode of colour, every kind of damage, and folders of them."""

import pickle
import struct
import zlib

import numpy as np
import pytest
import torch
from PIL import Image

from postmax import data
from postmax.data.image_files import ImageFiles, check_all_exist, read_image
from postmax.errors import DataError


def picture(path, size=(12, 8), mode="RGB", colour=None, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    colour = colour if colour is not None else {"RGB": (200, 10, 60), "L": 90}.get(mode, 0)
    Image.new(mode, size, colour).save(path, **options)
    return path


@pytest.mark.parametrize(
    ("mode", "colour", "expected"),
    [
        ("RGB", (200, 10, 60), (200, 10, 60)),
        ("L", 90, (90, 90, 90)),
        ("1", 1, (255, 255, 255)),
        ("RGBA", (200, 10, 60, 255), (200, 10, 60)),
        ("RGBA", (200, 10, 60, 0), (255, 255, 255)),
        ("LA", (90, 0), (255, 255, 255)),
        ("I;16", 0x5A00, (90, 90, 90)),
        ("I;16", 0xFFFF, (255, 255, 255)),
    ],
)
def test_modes(tmp_path, mode, colour, expected):
    path = picture(tmp_path / "a.png", mode=mode, colour=colour)
    image = read_image(path)
    assert image.shape == (8, 12, 3)
    assert image[0, 0].tolist() == list(expected)


def test_palette_with_and_without_transparency(tmp_path):
    image = Image.new("P", (4, 4), 1)
    image.putpalette([0, 0, 0, 10, 200, 30] + [0] * 762)
    image.save(tmp_path / "p.png")
    image.save(tmp_path / "t.png", transparency=1)
    assert read_image(tmp_path / "p.png")[0, 0].tolist() == [10, 200, 30]
    assert read_image(tmp_path / "t.png")[0, 0].tolist() == [255, 255, 255]


def test_cmyk(tmp_path):
    path = picture(tmp_path / "c.jpg", mode="CMYK", colour=(0, 0, 0, 0))
    assert read_image(path).min() > 250


def test_orientation(tmp_path):
    pixels = np.zeros((16, 32, 3), np.uint8)
    pixels[:, 16:] = 255
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned clockwise by 90°
    Image.fromarray(pixels).save(tmp_path / "e.png", exif=exif)
    upright = read_image(tmp_path / "e.png")
    assert upright.shape == (32, 16, 3)
    assert upright[0].max() == 0
    assert upright[-1].min() == 255


@pytest.mark.parametrize("size", [(64, 64), (100, 40), (40, 100), (7, 500), (1, 1)])
@pytest.mark.parametrize("suffix", ["png", "jpg"])
def test_brought_to_one_size(tmp_path, size, suffix):
    path = picture(tmp_path / f"s.{suffix}", size=size, colour=(120, 120, 120))
    image = read_image(path, size=16)
    assert image.shape == (16, 16, 3)
    assert abs(image.astype(int) - 120).max() <= 2


def test_the_middle_is_kept(tmp_path):
    pixels = np.zeros((10, 30, 3), np.uint8)
    pixels[:, 10:20] = 255
    Image.fromarray(pixels).save(tmp_path / "m.png")
    assert read_image(tmp_path / "m.png", size=10).min() == 255


@pytest.mark.parametrize("threads", [1, 4])
def test_rows(tmp_path, threads):
    paths = [picture(tmp_path / f"{i}.png", colour=(i, 0, 0)) for i in range(5)]
    rows = ImageFiles(paths, size=None, threads=threads)
    batch = rows[torch.tensor([3, 1, 3])]
    assert batch.shape == (3, 3, 8, 12)
    assert batch[:, 0, 0, 0].tolist() == [3, 1, 3]
    assert rows[torch.tensor([], dtype=torch.int64)].shape[:2] == (0, 3)
    assert len(pickle.loads(pickle.dumps(rows))) == 5


def test_different_sizes_need_one(tmp_path):
    paths = [picture(tmp_path / "a.png"), picture(tmp_path / "b.png", size=(5, 5))]
    with pytest.raises(DataError, match=r"b\.png is 5 × 5 pixels, but .*a\.png is 12 × 8"):
        ImageFiles(paths, size=None)[torch.tensor([0, 1])]


def _png_that_claims(width, height):
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


@pytest.mark.parametrize("side", [9_000, 12_000, 60_000])
def test_huge_header(tmp_path, side):
    (tmp_path / "huge.png").write_bytes(_png_that_claims(side, side))
    with pytest.raises(DataError, match=r"huge\.png cannot be read"):
        read_image(tmp_path / "huge.png")


def test_limit_on_pixels(tmp_path):
    path = picture(tmp_path / "a.png")
    with pytest.raises(DataError, match="12 × 8 pixels, more than the 95 allowed"):
        read_image(path, max_pixels=95)


@pytest.mark.parametrize("suffix", ["png", "jpg", "gif", "webp"])
def test_truncated(tmp_path, suffix):
    pixels = np.random.default_rng(0).integers(0, 256, (40, 40, 3)).astype(np.uint8)
    path = tmp_path / f"cut.{suffix}"
    Image.fromarray(pixels).save(path)
    whole = path.read_bytes()
    for share in (0, 0.01, 0.3, 0.6, 0.9):
        path.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(DataError, match=rf"cut\.{suffix} cannot be read"):
            read_image(path)


@pytest.mark.parametrize(
    "content", [b"", b"just text", b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", bytes(100)]
)
def test_no_image(tmp_path, content):
    path = tmp_path / "text.jpg"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"text\.jpg cannot be read"):
        read_image(path)


def test_missing_and_floating_point(tmp_path):
    with pytest.raises(DataError, match=r"none\.png does not exist"):
        read_image(tmp_path / "none.png")
    Image.new("F", (3, 3)).save(tmp_path / "f.tif")
    with pytest.raises(DataError, match=r"f\.tif.*floating-point"):
        read_image(tmp_path / "f.tif")


def test_listed_but_missing(tmp_path):
    here = picture(tmp_path / "a" / "1.png")
    check_all_exist([here])
    with pytest.raises(DataError, match=r"2\.png is missing, and 1 more of 3"):
        check_all_exist([here, tmp_path / "a" / "2.png", tmp_path / "b" / "3.png"])


@pytest.fixture
def folder(tmp_path):
    for i in range(3):
        picture(tmp_path / "set" / "dog" / f"{i}.PNG", colour=(i, 0, 0))
    picture(tmp_path / "set" / "cat" / "deeper" / "0.jpg", colour=(200, 200, 200))
    for litter in (".DS_Store", "cat/Thumbs.db", "dog/.hidden.png", "README.txt", ".git/config"):
        (tmp_path / "set" / litter).parent.mkdir(exist_ok=True)
        (tmp_path / "set" / litter).write_bytes(b"litter")
    return tmp_path / "set"


@pytest.mark.parametrize("in_memory", [None, True, False])
def test_folder(folder, in_memory):
    dataset = data.read_image_folder(folder, size=8, in_memory=in_memory)
    assert (dataset.name, dataset.classes) == ("set", ("cat", "dog"))
    assert dataset.labels.tolist() == [0, 1, 1, 1]
    assert isinstance(dataset.inputs, torch.Tensor) == (in_memory is not False)
    images = dataset.inputs[torch.arange(4)]
    assert images.shape == (4, 3, 8, 8)
    assert images[1:, 0, 0, 0].tolist() == [0, 1, 2]
    part = dataset.subset(torch.tensor([3, 1]))
    assert part.inputs[torch.tensor([0])][0, 0, 0, 0] == 2


def test_folder_of_one_size_needs_none(folder):
    assert data.read_image_folder(folder).inputs.shape == (4, 3, 8, 12)


def test_larger_folders_stay_on_disk(folder, monkeypatch):
    monkeypatch.setattr("postmax.data.image_folder._FITS_IN_MEMORY", 100)
    assert isinstance(data.read_image_folder(folder).inputs, ImageFiles)


def test_folder_mistakes(folder, tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        data.read_image_folder(tmp_path / "none")
    with pytest.raises(DataError, match="is a file"):
        data.read_image_folder(folder / "README.txt")
    with pytest.raises(DataError, match="no subfolders"):
        data.read_image_folder(folder / "dog")
    stray = picture(folder / "stray.png")
    with pytest.raises(DataError, match=r"stray\.png lies beside"):
        data.read_image_folder(folder)
    stray.unlink()
    (folder / "dog" / "notes.docx").write_bytes(b"x")
    with pytest.raises(DataError, match=r"notes\.docx is not an image"):
        data.read_image_folder(folder)
    (folder / "dog" / "notes.docx").unlink()
    (folder / "empty").mkdir()
    (folder / "empty" / ".keep").write_bytes(b"")
    with pytest.raises(DataError, match="empty has no images"):
        data.read_image_folder(folder)


@pytest.mark.parametrize("in_memory", [None, True, False])
def test_images_that_cannot_be_read_are_skipped_and_listed(folder, in_memory):
    (folder / "dog" / "1.PNG").write_bytes(b"just text")
    (folder / "cat" / "empty.jpg").write_bytes(b"")
    dataset = data.read_image_folder(folder, size=8, in_memory=in_memory)
    assert dataset.labels.tolist() == [0, 1, 1]
    assert dataset.inputs[torch.arange(3)][1:, 0, 0, 0].tolist() == [0, 2]
    what = "cannot be read and are skipped: cat/empty.jpg, dog/1.PNG (they are damaged, truncated or no images)"
    assert dataset.notes == (f"2 of 5 images {what}",)
    assert [dataset.rows.one(row) for row in range(3)] == ["cat/deeper/0.jpg", "dog/0.PNG", "dog/2.PNG"]


def test_an_image_that_is_cut_off_is_found_when_all_are_decoded(folder):
    whole = (folder / "dog" / "1.PNG").read_bytes()
    (folder / "dog" / "1.PNG").write_bytes(whole[:-30])
    assert len(data.read_image_folder(folder)) == 3
    later = data.read_image_folder(folder, in_memory=False)
    assert len(later) == 4
    with pytest.raises(DataError, match=r"dog/1\.PNG cannot be read"):
        later.inputs[torch.arange(4)]


def test_a_class_without_an_image_that_can_be_read(folder):
    (folder / "cat" / "deeper" / "0.jpg").write_bytes(b"")
    with pytest.raises(DataError, match=r"cat: none of its images can be read\. Remove the folder.*0\.jpg"):
        data.read_image_folder(folder)
    for image in (folder / "dog").glob("?.PNG"):
        image.write_bytes(b"")
    for in_memory in (None, True, False):
        with pytest.raises(DataError, match=r"set: none of its 4 images can be read"):
            data.read_image_folder(folder, in_memory=in_memory)
