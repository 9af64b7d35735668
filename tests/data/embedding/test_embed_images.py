"""Images as rows of features: right for every row, computed once, and never lost or mixed up."""

import multiprocessing
import os
import signal
import time
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from postmax import data
from postmax.data.embedding import image_embedding as embedding_module
from postmax.data.embedding import images as images_module
from postmax.data.embedding.catalogue import NETWORKS
from postmax.data.embedding.extractor import Extractor
from postmax.data.embedding.feature_cache import FeatureCache, cache_folder
from postmax.data.embedding.image_embedding import ImageEmbedding, image_embedding
from postmax.data.embedding.images import embed_images
from postmax.data.embedding.source import Source
from postmax.data.image_files import ImageFiles
from postmax.errors import DataError, InputError, MissingDependency
from postmax.progress import listening


class Means(nn.Module):
    """The features are the means of the channels, times a weight. It counts the images that it sees."""

    def __init__(self, weight=1.0):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(weight))
        self.seen = []

    def forward(self, images):
        self.seen.append(tuple(images.shape))
        return self.weight * images.mean((2, 3))


@pytest.fixture
def means(tmp_path, monkeypatch):
    """A network called `means`, and an empty folder for what is kept. `means.now` is the network in use."""
    monkeypatch.setenv("POSTMAX_DATA", str(tmp_path / "kept"))
    state = SimpleNamespace(now=Means(), fixed=False)

    def opened(name):
        return Extractor("means", state.now, (0.0,) * 3, (255.0,) * 3, side=16, fixed=state.fixed)

    for cached in (embedding_module._loaded, embedding_module._checked):
        cached.cache_clear()
    NETWORKS.add(Source(opened, ()), "means")
    yield state
    for cached in (embedding_module._loaded, embedding_module._checked):
        cached.cache_clear()
    for table in (NETWORKS._values, NETWORKS._names, NETWORKS._owners, NETWORKS._order, NETWORKS._codes):
        table.pop("means")


def forget():
    """Forget which networks are loaded, as a new process does."""
    embedding_module._loaded.cache_clear()
    embedding_module._checked.cache_clear()


def some_images(count=5, side=16, channels=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (count, channels, side, side), dtype=torch.uint8, generator=generator)


def expected(images):
    return (images.double().mean((2, 3)) / 255).float()


def computed(state):
    """Return how many images went through the network, but the picture with which it is recognised."""
    return sum(shape[0] for shape in state.now.seen if shape[0] > 1)


def archives(tmp_path):
    return sorted((tmp_path / "kept" / "embeddings").glob("means-*/*.npz"))


# Features


def test_every_row_has_its_own_features(means):
    images = some_images(7)
    found = embed_images(images, "means", keep=False, batch=3)
    torch.testing.assert_close(found, expected(images))
    assert found.dtype == torch.float32
    sizes = [shape[0] for shape in means.now.seen]
    assert sizes[-3:] == [3, 3, 1]


def test_the_features_can_be_trained_on(means):
    found = embed_images(some_images(), "means", keep=False)
    (nn.Linear(3, 2)(found).sum()).backward()
    assert not found.is_inference()


def test_grey_images_and_no_images(means):
    grey = some_images(channels=1)
    torch.testing.assert_close(embed_images(grey, "means"), expected(grey).expand(-1, 3))
    embedding = image_embedding(grey, "means")
    assert embed_images(grey[:0], embedding).shape == (0, 3)
    assert embedding(grey[:0]).shape == (0, 3)
    with pytest.raises(InputError, match="there are no images to embed"):
        embed_images(grey[:0], "means")


@pytest.fixture
def folder(tmp_path):
    """Ten files of different sizes and formats, each in one colour, and the colours."""
    colours = [(10 * i, 255 - 10 * i, 40) for i in range(10)]
    for i, colour in enumerate(colours):
        Image.new("RGB", (20 + 3 * i, 40 - 2 * i), colour).save(tmp_path / f"{i}.{'png' if i % 2 else 'bmp'}")
    paths = [tmp_path / f"{i}.{'png' if i % 2 else 'bmp'}" for i in range(10)]
    return paths, torch.tensor(colours) / 255


def test_files_of_different_sizes(means, folder):
    paths, colours = folder
    found = embed_images(ImageFiles(paths, size=None), "means")
    torch.testing.assert_close(found, colours, rtol=0, atol=1e-5)


def test_an_embedding_gives_the_same_as_the_files(means, folder):
    paths, _ = folder
    files = ImageFiles(paths, size=None)
    embedding = image_embedding(files, "means")
    whole = embed_images(files, embedding)
    at_side = ImageFiles(paths, size=embedding.side)
    assert torch.equal(embedding(at_side[torch.arange(10)]), whole)


def test_any_source_of_rows_will_do(means, tmp_path):
    images = some_images(6)
    np.save(tmp_path / "images.npy", images.numpy())

    class Rows:
        def __len__(self):
            return 6

        def __getitem__(self, index):
            return images[index]

    torch.testing.assert_close(embed_images(Rows(), "means"), expected(images))


def test_bfloat16_is_close(means):
    found = embed_images(some_images(), "means", precision="bf16-mixed")
    torch.testing.assert_close(found, expected(some_images()), rtol=0.02, atol=0.02)
    assert found.dtype == torch.float32


def test_options_without_a_meaning_are_refused(means):
    embedding = image_embedding(some_images(), "means")
    with pytest.raises(InputError, match="precision is 32-true or bf16-mixed, not 'half'"):
        embed_images(some_images(), embedding, precision="half")
    with pytest.raises(InputError, match="a batch has at least one image, not 0"):
        embed_images(some_images(), embedding, batch=0)
    with pytest.raises(InputError, match="the embedding brings images to 16 pixels, so side=8 has no meaning"):
        embed_images(some_images(), embedding, side=8)
    with pytest.raises(InputError, match="the side of images is at least 1 pixel, not 0"):
        embed_images(some_images(), "means", side=0)


def test_it_is_told_how_far_the_work_is(means):
    told = []
    with listening(lambda stage: told.append(str(stage))):
        embed_images(some_images(), "means", batch=2)
    assert [text for text in told if text.startswith("embedding images")] == [
        f"embedding images: {done} of 5 images ({share} %)" for done, share in ((2, 40), (4, 80), (5, 100))
    ]


# Which side


def test_large_images_and_few_images_get_the_side_of_the_training(means, folder, monkeypatch):
    assert image_embedding(some_images(side=8), "means").side == 16
    files = ImageFiles(folder[0], size=None)
    assert image_embedding(files, "means").side == 16
    monkeypatch.setattr(embedding_module, "_FEW_IMAGES", 4)
    monkeypatch.setattr(embedding_module, "_SMALLEST_SIDE", 4)
    monkeypatch.setattr(embedding_module, "_STEP", 1)
    assert image_embedding(some_images(side=2), "means").side == 7
    assert image_embedding(some_images(side=2)[:4], "means").side == 16
    assert image_embedding(files, "means").side == 16
    assert image_embedding(ImageFiles(folder[0], size=2), "means").side == 7
    means.fixed = True
    forget()
    assert image_embedding(some_images(side=2), "means").side == 16


def test_only_the_sizes_of_files_are_read(means, folder, monkeypatch):
    monkeypatch.setattr("postmax.data.image_files.read_image", lambda *_, **__: pytest.fail("decoded"))
    image_embedding(ImageFiles(folder[0], size=None), "means")


# What a saved model keeps


def test_an_embedding_is_plain_values(means):
    embedding = image_embedding(some_images(), "means", side=8)
    assert embedding.to_dict() == {"model": "means", "side": 8, "dims": 3, "probe": embedding.probe}
    assert ImageEmbedding.from_dict({**embedding.to_dict(), "probe": list(embedding.probe)}) == embedding
    assert embedding.shape((3, 640, 480)) == (3,)


def test_a_network_with_other_weights_is_refused(means):
    embedding = image_embedding(some_images(), "means")
    means.now = Means(1.0001)  # as another processor computes
    forget()
    assert len(embedding(some_images())) == 5
    means.now = Means(1.1)
    forget()
    with pytest.raises(InputError, match="means gives other features here than where the model was trained"):
        embedding(some_images())


def test_without_its_package_an_embedding_says_what_is_missing(monkeypatch):
    embedding = ImageEmbedding("timm:resnet18", 224, 512)
    monkeypatch.setitem(__import__("sys").modules, "timm", None)
    with pytest.raises(MissingDependency, match="this needs timm: pip install timm"):
        embedding(some_images())


# What is kept


def test_features_are_computed_once(means, tmp_path):
    images = some_images(9)
    first = embed_images(images, "means")
    assert computed(means) == 9
    assert torch.equal(embed_images(images.flip(0), "means"), first.flip(0))
    torch.testing.assert_close(embed_images(torch.cat([images, some_images(2, seed=1)]), "means")[:9], first)
    assert computed(means) == 11
    assert len(archives(tmp_path)) == 2


def test_nothing_is_kept_if_nobody_wants_it(means, tmp_path):
    embed_images(some_images(), "means", keep=False)
    assert not archives(tmp_path)
    embed_images(some_images(), "means", keep=False)
    assert computed(means) == 10


def test_equal_images_are_computed_once(means):
    images = some_images(4)[[0, 1, 0, 2, 3, 3, 0]]
    torch.testing.assert_close(embed_images(images, "means"), expected(images))
    assert computed(means) == 4


def test_features_are_kept_by_everything_that_they_depend_on(means, tmp_path):
    images = some_images()
    embed_images(images, "means")
    embed_images(images, "means", side=8)
    embed_images(images, "means", precision="bf16-mixed")
    means.now = Means(2.0)
    forget()
    torch.testing.assert_close(embed_images(images, "means"), 2 * expected(images))
    assert len({path.parent for path in archives(tmp_path)}) == 4


def test_pixels_of_another_shape_are_other_images(means):
    pixels = some_images(2, side=4)
    wide = pixels.reshape(2, 3, 2, 8)
    assert computed(means) == 0
    embed_images(pixels, "means")
    embed_images(wide, "means")
    assert computed(means) == 4


def test_a_changed_file_is_embedded_again(means, folder):
    paths, colours = folder
    embed_images(ImageFiles(paths, size=None), "means")
    Image.new("RGB", (30, 30), (1, 2, 3)).save(paths[4])
    found = embed_images(ImageFiles(paths, size=None), "means")
    colours[4] = torch.tensor([1, 2, 3]) / 255
    torch.testing.assert_close(found, colours, rtol=0, atol=1e-5)
    paths[5].rename(paths[5].with_name("renamed.png"))
    before = computed(means)
    embed_images(ImageFiles([paths[5].with_name("renamed.png")], size=None), "means")
    assert computed(means) == before


def test_files_that_are_decoded_at_another_size_are_other_images(means, folder):
    embedding = image_embedding(some_images(), "means")
    for size in (None, 6, 16):
        embed_images(ImageFiles(folder[0], size=size), embedding)
    assert computed(means) == 20  # None is the side of the embedding


def damage(path, how):
    content = bytearray(path.read_bytes())
    if how == "cut":
        content = content[:-100]
    elif how == "empty":
        content = bytearray()
    elif how == "text":
        content = bytearray(b"no archive at all")
    else:
        content[content.index(b"features.npy") + 160] ^= 0x10  # one bit of a feature
    path.write_bytes(content)


@pytest.mark.parametrize("images", [torch.zeros(4, 3, 8, 8), torch.zeros(4, 8, dtype=torch.uint8)])
def test_what_is_no_image_is_refused(means, images):
    with pytest.raises(InputError, match=r"images are bytes \(uint8\) of shape \(N, channels, H, W\), not "):
        embed_images(images, "means")
    with pytest.raises(InputError, match="images are bytes"):
        embed_images(images, image_embedding(some_images(), "means"), keep=False)


@pytest.mark.parametrize("how", ["cut", "empty", "text", "bit"])
def test_a_damaged_archive_is_computed_again(means, tmp_path, how):
    images = some_images(20)
    first = embed_images(images, "means")
    (archive,) = archives(tmp_path)
    damage(archive, how)
    assert torch.equal(embed_images(images, "means"), first)
    assert computed(means) == 40
    assert torch.equal(embed_images(images, "means"), first)
    assert computed(means) == 40


@pytest.mark.parametrize(
    "content",
    [
        {"keys": np.zeros((2, 32), np.uint8)},
        {"keys": np.zeros((2, 31), np.uint8), "features": np.zeros((2, 3), np.float32)},
        {"keys": np.zeros((2, 32), np.uint8), "features": np.zeros((1, 3), np.float32)},
        {"keys": np.zeros((2, 32), np.uint8), "features": np.zeros((2, 4), np.float32)},
        {"keys": np.zeros((2, 32), np.uint8), "features": np.zeros((2, 3), np.float64)},
        {"keys": np.zeros((2, 32), np.uint8), "features": np.array([[None] * 3] * 2)},
        {"keys": np.array(5, np.uint8), "features": np.zeros((2, 3), np.float32)},
    ],
)
def test_an_archive_with_other_content_is_deleted(tmp_path, content):
    np.savez(tmp_path / "a.npz", **content)
    assert not list(FeatureCache(tmp_path, 3).news({bytes(32)}))
    assert not (tmp_path / "a.npz").exists()


def test_where_nothing_can_be_written_features_are_computed_all_the_same(means, tmp_path, monkeypatch):
    (tmp_path / "kept").write_text("a file where a folder should be")
    told = []
    with listening(lambda stage: told.append(str(stage))):
        found = embed_images(some_images(), "means")
    torch.testing.assert_close(found, expected(some_images()))
    assert any("features are computed, but not kept for the next time" in text for text in told)


def test_the_name_of_a_folder_says_which_model(means):
    assert cache_folder("timm:resnet18", 224).name.startswith("timm-resnet18-")
    assert cache_folder("timm:resnet18", 224) != cache_folder("timm:resnet18", 192)


def slowly(root, images, seconds):
    """The body of a process that embeds images, a few at a time."""
    os.environ["POSTMAX_DATA"] = str(root)
    images_module._ROWS_OF_A_BLOCK = 4
    network = embedding_module._loaded("means", torch.device("cpu")).network
    forward = network.forward

    def wait_and_see(inputs):
        time.sleep(seconds if len(inputs) > 1 else 0)
        return forward(inputs)

    network.forward = wait_and_see
    torch.set_num_threads(1)
    embed_images(images, "means")


def start(*arguments):
    process = multiprocessing.get_context("fork").Process(target=slowly, args=arguments)
    process.start()
    return process


def wait_for_archives(tmp_path, count):
    deadline = time.monotonic() + 30
    while len(archives(tmp_path)) < count:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_killed_process_keeps_what_is_done(means, tmp_path):
    images = some_images(40)
    process = start(tmp_path / "kept", images, 0.2)
    wait_for_archives(tmp_path, 2)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    kept = 4 * len(archives(tmp_path))
    assert 8 <= kept < 40
    torch.testing.assert_close(embed_images(images, "means"), expected(images))
    assert computed(means) == 40 - kept


def test_two_processes_share_the_work(means, tmp_path):
    images = some_images(40)
    first = start(tmp_path / "kept", images, 0.05)
    second = start(tmp_path / "kept", images.flip(0), 0.05)
    for process in (first, second):
        process.join()
        assert process.exitcode == 0
    torch.testing.assert_close(embed_images(images, "means"), expected(images))
    assert computed(means) == 0
    assert len(archives(tmp_path)) < 20  # 10 for each, if they did not see each other's


# Images that cannot be read


def test_an_image_that_cannot_be_read_is_an_error_with_its_name(means, folder):
    folder[0][3].write_bytes(b"no image")
    with pytest.raises(DataError, match=r"3\.png cannot be read"):
        embed_images(ImageFiles(folder[0], size=None), "means")
    with pytest.raises(DataError, match=r"3\.png cannot be read"):
        embed_images(ImageFiles(folder[0][3:4], size=None), "means")


@pytest.mark.parametrize("size", [None, 7])
def test_images_that_cannot_be_read_can_be_skipped(means, folder, tmp_path, monkeypatch, size):
    monkeypatch.setattr(images_module, "_ROWS_OF_A_BLOCK", 4)
    paths, colours = folder
    paths[3].write_bytes(paths[3].read_bytes()[:60])
    paths[6].unlink()
    missed = {}
    paths = [*paths, paths[3]]
    found = embed_images(ImageFiles(paths, size=size), "means", unreadable=missed.__setitem__)
    assert sorted(missed) == [3, 6, 10]
    assert "does not exist" in str(missed[6])
    good = [row for row in range(10) if row not in missed]
    torch.testing.assert_close(found[good], colours[good], rtol=0, atol=1e-5)
    assert found[[3, 6, 10]].isnan().all()
    assert sum(len(np.load(path)["keys"]) for path in archives(tmp_path)) == 8


def test_it_is_at_the_door():
    assert data.embed_images is embed_images
    assert data.ImageEmbedding is ImageEmbedding
