"""Flips that alternate: each image is mirrored in every other epoch, whatever else a run does."""

from dataclasses import replace

import pytest
import torch

from postmax.data import Augment, Batches, Dataset, StrongAugment, Views, views_for
from postmax.data.dataset import Statistics
from postmax.errors import InputError
from postmax.train.config import DataConfig

MIRROR = Augment(padding=0, flip="alternate")
SHIFT = Augment(padding=2, padding_mode="reflect")


class FromDisk:
    """Rows that are not a tensor."""

    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]


def slopes(count=40, *, streamed=False):
    """Images that become brighter to the right; mirrored, to the left."""
    images = torch.arange(0, 240, 40, dtype=torch.uint8).expand(count, 3, 5, 6).contiguous()
    inputs = FromDisk(images) if streamed else images
    return Dataset("slopes", inputs, torch.arange(count) % 2, ("a", "b"))


def mirrored(batches, epoch, **options):
    """Whether each row is mirrored in an epoch, by its number."""
    found = {}
    for batch in batches.epoch(epoch, **options):
        for row, image in zip(batch.rows.tolist(), batch.inputs, strict=True):
            found[row] = bool(image[0, 0, 0] > image[0, 0, -1])
    return dict(sorted(found.items()))


@pytest.mark.parametrize("streamed", [False, True])
def test_each_row_is_mirrored_in_one_of_two_epochs(streamed):
    batches = Batches(slopes(streamed=streamed), 7, augment=MIRROR, seed=1)
    first, second, third = (mirrored(batches, epoch) for epoch in (0, 1, 2))
    assert len(first) == 40
    assert all(first[row] != second[row] for row in first)
    assert first == third
    assert mirrored(batches, 101) == second


def test_about_half_of_the_rows_begin_mirrored():
    for seed in range(5):
        begin = mirrored(Batches(slopes(1000), 250, augment=MIRROR, seed=seed), 0)
        assert 430 < sum(begin.values()) < 570  # more than four deviations to either side


def test_they_are_a_function_of_seed_and_row_alone():
    expected = mirrored(Batches(slopes(), 7, augment=MIRROR, seed=3), 4)
    for same in (
        Batches(slopes(), 40, augment=MIRROR, seed=3),
        Batches(slopes(), 1, augment=MIRROR, seed=3, shuffle=False),
        Batches(slopes(streamed=True), 9, augment=Views(MIRROR), seed=3),
        Batches(slopes(), 7, augment=replace(MIRROR, cutout=1), seed=3),
    ):
        assert mirrored(same, 4) == expected
    batches = Batches(slopes(), 7, augment=MIRROR, seed=3)
    assert mirrored(batches, 4, stream="another", size=3) == expected
    some = torch.tensor([31, 2, 17, 5])
    assert mirrored(batches, 4, rows=some) == {row: expected[row] for row in sorted(some.tolist())}
    mask = torch.arange(40) % 3 == 0
    assert mirrored(batches, 4, rows=mask) == {row: expected[row] for row in range(0, 40, 3)}
    assert mirrored(Batches(slopes(), 7, augment=MIRROR, seed=4), 4) != expected


def test_two_weak_views_are_mirrored_alike_and_the_strong_one_and_the_plain_one_are_not():
    views = Views(MIRROR)
    batches = Batches(slopes(200), 200, augment=views, shuffle=False)
    (batch,) = batches.epoch(0, views=("weak", "weak", "none"))
    first, second, plain = (view[:, 0, 0, 0] > view[:, 0, 0, -1] for view in batch.views)
    assert torch.equal(first, second)
    assert not plain.any()
    # In the strong view flips are drawn anew, so a row may be mirrored in two following epochs.
    assert isinstance(views["strong"], StrongAugment)
    images, generator = slopes(400).inputs, torch.Generator().manual_seed(0)
    strong = StrongAugment(MIRROR, operations=0, cutout=0)
    for augment in (MIRROR, strong):
        flips = [augment(images, generator)[:, 0, 0, 0] > 0.5 for _ in range(2)]
        both = sum(a and b for a, b in zip(flips[0].tolist(), flips[1].tolist(), strict=True))
        assert 60 < both < 140  # a quarter of them


@pytest.mark.parametrize("augment", [MIRROR.evaluation(), replace(MIRROR, flip=False)])
def test_what_does_not_flip_does_not_alternate(augment):
    batches = Batches(slopes(), 7, augment=augment)
    assert not any(mirrored(batches, 0).values())
    assert not any(mirrored(batches, 1).values())


def test_other_random_numbers_are_those_of_other_flips():
    """The order, the shifts and the blanked squares of a run do not change with the kind of flip."""
    rows = torch.randint(1, 256, (30, 3, 8, 8), generator=torch.Generator().manual_seed(0)).to(torch.uint8)
    dataset = Dataset("rows", rows, torch.zeros(30, dtype=torch.int64), ("a", "b"))
    alternating, drawn = (
        list(Batches(dataset, 8, augment=replace(SHIFT, cutout=3, flip=flip), seed=5).epoch(2))
        for flip in ("alternate", True)
    )
    flipped = 0
    for mine, its in zip(alternating, drawn, strict=True):
        assert torch.equal(mine.rows, its.rows)
        for a, b in zip(mine.inputs, its.inputs, strict=True):
            # Only blanked pixels are 0. Blanking comes after mirroring, so the squares are at the same place.
            assert torch.equal(a == 0, b == 0)
            seen, other = a != 0, (a != 0) & (b.flip(-1) != 0)
            same, turned = torch.equal(a[seen], b[seen]), torch.equal(a[other], b.flip(-1)[other])
            assert same != turned
            flipped += turned
    assert 0 < flipped < 30


def test_features_have_no_flips():
    rows = torch.arange(12.0).view(6, 2)
    batches = Batches(Dataset("rows", rows, torch.arange(6) % 2, ("a", "b")), 6, augment=MIRROR, shuffle=False)
    assert torch.equal(next(batches.epoch(1)).inputs, rows)


# The augmentation "shift-flip"

STATISTICS = Statistics((0.5, 0.4, 0.3), (0.2, 0.3, 0.1))


def reflected(place, size):
    """The place that is seen at a place beyond the edge: the edge itself is not repeated."""
    place = abs(place)
    return 2 * (size - 1) - place if place >= size else place


@pytest.mark.parametrize(("height", "width"), [(3, 3), (6, 9)])
def test_shift_flip_is_a_shift_of_up_to_two_pixels_with_reflected_edges(height, width):
    views = views_for("cifar10", STATISTICS, "shift-flip")
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(256, (60, 3, height, width), generator=generator).to(torch.uint8)
    dataset = Dataset("rows", images, torch.zeros(60, dtype=torch.int64), ("a", "b"))
    (batch,) = Batches(dataset, 60, augment=views, shuffle=False, seed=2).epoch(0)
    mean, deviation = (torch.tensor(values).view(3, 1, 1) for values in (STATISTICS.mean, STATISTICS.std))
    moves = set()
    for image, found in zip(images, batch.inputs, strict=True):
        fits = []
        for down in range(-2, 3):
            for right in range(-2, 3):
                shifted = torch.empty_like(image)
                for row in range(height):
                    for column in range(width):
                        seen = image[:, reflected(row + down, height), reflected(column + right, width)]
                        shifted[:, row, column] = seen
                for flip in (False, True):
                    expected = ((shifted.flip(2) if flip else shifted) / 255 - mean) / deviation
                    if torch.allclose(found, expected, atol=1e-5):
                        fits.append((down, right, flip))
        assert fits
        moves.update(fits)
    assert {move[0] for move in moves} == {move[1] for move in moves} == {-2, -1, 0, 1, 2}
    assert {move[2] for move in moves} == {False, True}


def test_shift_flip_takes_the_whole_image_of_any_data_set():
    for name in (None, "cifar10", "mnist", "webvision-mini"):
        weak = views_for(name, STATISTICS, "shift-flip", cutout=5).weak
        assert weak == Augment(
            padding=2, padding_mode="reflect", flip="alternate", cutout=5, statistics=STATISTICS, crop=None
        )
    assert DataConfig(name="cifar10", augment="shift-flip").augment == "shift-flip"


@pytest.mark.parametrize("shape", [(2, 9), (9, 1), (2, 2)])
def test_images_that_are_too_small_to_be_reflected(shape):
    views = views_for(None, None, "shift-flip")
    dataset = Dataset("tiny", torch.zeros(4, 3, *shape, dtype=torch.uint8), torch.arange(4) % 2, ("a", "b"))
    message = rf"images of {shape[0]}×{shape[1]} cannot be reflected over 2 pixels of padding: enlarge them, or choose"
    for name in ("weak", "none", "strong"):
        with pytest.raises(InputError, match=message):
            next(Batches(dataset, 2, augment=views, views=(name,)).epoch(0))


def test_flips_nobody_knows():
    with pytest.raises(InputError, match=r"flip is True, False or \"alternate\", not 'sometimes'"):
        Augment(flip="sometimes")
