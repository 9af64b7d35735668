"""Batched augmentation against a loop over images, and the distribution of what it draws."""

from dataclasses import astuple

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from postmax.data.augment import STATISTICS, Augment, Draw, standard
from postmax.data.dataset import Statistics
from postmax.data.normalisation import channel_statistics
from postmax.errors import InputError

STATS = Statistics((0.4, 0.5, 0.6), (0.2, 0.25, 0.3))


def some_images(count=6, channels=3, height=8, width=10, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(256, (count, channels, height, width), generator=generator).to(torch.uint8)


def source_pixel(image, row, column, mode):
    """The pixel at a place that may lie outside the image."""
    _, height, width = image.shape
    if mode == "zeros":
        inside = 0 <= row < height and 0 <= column < width
        return image[:, row, column] if inside else torch.zeros_like(image[:, 0, 0])
    row, column = abs(row), abs(column)
    row = 2 * (height - 1) - row if row >= height else row
    column = 2 * (width - 1) - column if column >= width else column
    return image[:, row, column]


def one_image(augment, image, top, left, flip, cutout_row, cutout_column):
    """The definition, pixel by pixel."""
    _, height, width = image.shape
    rows, columns = (height, width) if augment.crop is None else (augment.crop, augment.crop)
    scale = torch.tensor([1 / (255 * std) for std in augment.statistics.std])
    shift = torch.tensor([-mean / std for mean, std in zip(*astuple(augment.statistics), strict=True)])
    out = torch.empty(len(image), rows, columns)
    begin_row, begin_column = cutout_row - augment.cutout // 2, cutout_column - augment.cutout // 2
    for r in range(rows):
        for c in range(columns):
            seen = columns - 1 - c if flip and augment.flip else c
            pixel = source_pixel(image, top + r - augment.padding, left + seen - augment.padding, augment.padding_mode)
            value = pixel.float() * scale + shift
            blank = 0 <= r - begin_row < augment.cutout and 0 <= c - begin_column < augment.cutout
            out[:, r, c] = 0 if blank else value
    return out


@settings(max_examples=40, deadline=None)
@given(
    crop=st.sampled_from([None, 5, 8, 9]),
    padding=st.integers(1, 4),
    mode=st.sampled_from(["zeros", "reflect"]),
    flip=st.booleans(),
    cutout=st.sampled_from([0, 1, 3, 4, 25]),
    seed=st.integers(0, 1000),
)
def test_a_batch_is_the_loop_over_its_images_bit_for_bit(crop, padding, mode, flip, cutout, seed):
    augment = Augment(crop, padding, mode, flip, cutout, STATS)
    images = some_images(seed=seed)
    draw = augment.draw(images, torch.Generator().manual_seed(seed))
    expected = [one_image(augment, image, *(int(n[i]) for n in draw)) for i, image in enumerate(images)]
    assert torch.equal(augment.apply(images, draw), torch.stack(expected))
    assert torch.equal(augment(images, torch.Generator().manual_seed(seed)), torch.stack(expected))


@pytest.mark.parametrize("change", [{"top": 1}, {"left": 1}, {"flip": 1}, {"cutout_row": 1}, {"cutout_column": 1}])
def test_every_number_drawn_changes_its_own_image_only(change):
    augment = Augment(cutout=2, statistics=STATS)
    images = some_images()
    draw = Draw(*(torch.zeros(6, dtype=torch.int64) for _ in range(5)))
    ((name, value),) = change.items()
    changed = getattr(draw, name).clone()
    changed[3] = value
    before, after = augment.apply(images, draw), augment.apply(images, draw._replace(**{name: changed}))
    assert [bool((a != b).any()) for a, b in zip(before, after, strict=True)] == [
        False,
        False,
        False,
        True,
        False,
        False,
    ]


def test_images_may_lie_in_memory_in_any_order_and_are_left_alone():
    images = some_images()
    kept = images.clone()
    augment = Augment(cutout=3, statistics=STATS)
    draw = augment.draw(images, torch.Generator().manual_seed(1))
    expected = augment.apply(images, draw)
    for version in (
        images.contiguous(memory_format=torch.channels_last),
        images.repeat_interleave(2, dim=0)[::2],
        torch.cat([images[:2], images])[2:],
    ):
        assert torch.equal(version, images)
        assert torch.equal(augment.apply(version, draw), expected)
    assert torch.equal(images, kept)


def test_normalisation_is_that_of_the_textbook():
    images = torch.arange(256, dtype=torch.uint8).view(1, 1, 16, 16).expand(1, 3, 16, 16)
    mean, std = (torch.tensor(v, dtype=torch.float64).view(3, 1, 1) for v in (STATS.mean, STATS.std))
    expected = (images.double() / 255 - mean) / std
    assert torch.allclose(Augment.none(STATS)(images).double(), expected, atol=1e-6, rtol=0)
    plain = Augment.none()(images)
    assert (float(plain.min()), float(plain.max())) == (0.0, 1.0)


def test_evaluation_takes_the_middle_and_draws_nothing():
    images = some_images()
    generator = torch.Generator().manual_seed(0)
    before = generator.get_state()
    augment = Augment(crop=6, padding=0, cutout=4, statistics=STATS).evaluation()
    assert torch.equal(augment(images, generator), Augment.none(STATS)(images)[:, :, 1:7, 2:8])
    assert torch.equal(generator.get_state(), before)
    odd = Augment(crop=5, padding=0, flip=False).evaluation()
    assert torch.equal(odd(images), Augment.none()(images)[:, :, 1:6, 2:7])
    assert torch.equal(Augment(statistics=STATS).evaluation()(images), Augment.none(STATS)(images))
    padded = Augment(crop=10, padding=2).evaluation()(images)
    assert torch.equal(padded, F.pad(Augment.none()(images), (0, 0, 1, 1)))


def test_result_has_the_type_asked_for_rounded_once():
    images = some_images()
    draw = Augment().draw(images, torch.Generator().manual_seed(0))
    low = Augment(statistics=STATS, dtype=torch.bfloat16).apply(images, draw)
    assert low.dtype == torch.bfloat16
    assert torch.equal(low, Augment(statistics=STATS).apply(images, draw).to(torch.bfloat16))


def test_features_pass_untouched():
    features = torch.randn(4, 7)
    assert Augment()(features) is features


def test_no_images_give_no_images():
    assert Augment(crop=6, cutout=2)(some_images(count=0)).shape == (0, 3, 6, 6)


def test_draws_are_uniform():
    count = 20_000
    images = torch.empty(count, 1, 8, 10, dtype=torch.uint8)
    draw = Augment(padding=4).draw(images, torch.Generator().manual_seed(0))
    for numbers, places in zip(draw, (9, 9, 2, 8, 10), strict=True):
        seen = torch.bincount(numbers, minlength=places)
        assert len(seen) == places
        assert stats.chisquare(seen.numpy()).pvalue > 0.001
    pairs = torch.bincount(draw.top * 9 + draw.left, minlength=81)
    assert stats.chisquare(pairs.numpy()).pvalue > 0.001
    assert stats.chisquare(torch.bincount(draw.flip * 9 + draw.top, minlength=18).numpy()).pvalue > 0.001


def test_half_of_the_images_are_mirrored():
    image = torch.tensor([0, 255], dtype=torch.uint8).view(1, 1, 1, 2).expand(4000, 1, 1, 2)
    flipped = Augment(padding=0)(image, torch.Generator().manual_seed(0))[:, 0, 0, 0].sum()
    assert stats.binomtest(int(flipped), 4000).pvalue > 0.001


def test_cutout_blanks_less_at_the_edge():
    white = torch.full((5000, 1, 16, 16), 255, dtype=torch.uint8)
    blank = (Augment(padding=0, flip=False, cutout=8)(white, torch.Generator().manual_seed(0)) == 0).float()
    areas = blank.sum((1, 2, 3))
    assert (int(areas.min()), int(areas.max())) == (16, 64)  # a corner: 4×4 of the 8×8
    # A pixel is blank when the middle row and column are among those within reach, of 16 each.
    within_reach = torch.tensor([min(r + 4, 15) - max(r - 3, 0) + 1 for r in range(16)]) / 16
    expected = within_reach[:, None] * within_reach
    assert torch.allclose(blank.mean((0, 1)), expected, atol=5 * 0.5 / 5000**0.5)


def test_standard_settings():
    assert standard("cifar10") == Augment(padding=4, flip=True, statistics=STATISTICS["cifar10"])
    assert standard("cifar10:elr").statistics.std == (0.2023, 0.1994, 0.2010)
    assert standard("cifar100", cutout=8).cutout == 8
    assert standard("mnist") == Augment(padding=0, flip=False, statistics=STATISTICS["mnist"])
    assert standard("imagenet").crop == 224
    with pytest.raises(InputError, match=r"'cifar11'.*cifar10"):
        standard("cifar11")


@pytest.mark.parametrize("statistics", STATISTICS.values(), ids=STATISTICS)
def test_published_statistics_are_of_pixels_between_0_and_1(statistics):
    assert all(0.1 < mean < 0.6 and 0.15 < std < 0.5 for mean, std in zip(*astuple(statistics), strict=True))


class Streamed:
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]


@pytest.mark.parametrize("where", [lambda images: images, Streamed], ids=["in memory", "streamed"])
def test_channel_statistics_are_exact(where):
    images = some_images(count=37)
    images[:, 1] = 7
    found = channel_statistics(where(images), rows_at_once=10)
    pixels = images.double().transpose(0, 1).flatten(1) / 255
    assert found.mean == pytest.approx(pixels.mean(1).tolist(), rel=1e-14)
    assert found.std == pytest.approx(pixels.std(1, correction=0).tolist(), rel=1e-12, abs=1e-15)
    assert found.std[1] == 0.0  # a sum of rounded squares would leave something


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Augment(crop=0), "side of the window"),
        (lambda: Augment(padding=-1), "count pixels"),
        (lambda: Augment(cutout=-1), "count pixels"),
        (lambda: Augment(padding_mode="edge"), '"zeros" or "reflect"'),
        (lambda: Augment(dtype=torch.int64), "floating-point"),
        (lambda: Augment(statistics=Statistics((0.5,), (0.0,))), "positive"),
        (lambda: Augment(crop=17)(some_images()), "crop of 17 does not fit into images of 8×10 padded by 4"),
        (lambda: Augment(padding=8, padding_mode="reflect")(some_images()), "cannot be reflected over 8 pixels"),
        (lambda: Augment(statistics=Statistics((0.5,), (0.5,)))(some_images()), "images 3 channels"),
        (lambda: Augment()(some_images().float()), "uint8 images"),
        (lambda: Augment()(some_images()[0]), "uint8 images"),
        (lambda: Augment()(torch.arange(3)), "uint8 images"),
        (lambda: channel_statistics(some_images(count=0)), "at least one image"),
        (lambda: channel_statistics(some_images().float()), "uint8 images"),
    ],
)
def test_errors_say_what_is_wrong(make, message):
    with pytest.raises(InputError, match=message):
        make()
