"""The view for contrastive learning: its parts against Pillow, its colours, and what it draws."""

import math
from dataclasses import replace

import pytest
import torch
from PIL import Image
from scipy import stats

from postmax.data import Augment, ContrastAugment, Statistics
from postmax.data import image_operations as operations
from postmax.data.contrast import COLOUR_OPERATIONS, Boxes, resized_parts
from postmax.data.image_policy import Policy
from postmax.errors import InputError

WEAK = Augment(padding=4, statistics=Statistics((0.5, 0.4, 0.3), (0.2, 0.3, 0.1)))
NAMES = list(COLOUR_OPERATIONS)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def images(count=30, channels=3, height=19, width=25):
    return torch.randint(256, (count, channels, height, width), generator=generator(7)).to(torch.uint8)


@pytest.mark.parametrize("size", [(19, 25), (12, 12), (40, 50), (1, 1)])
def test_parts_are_those_of_pillow(size):
    """Pillow averages pixels when it makes an image smaller, so only parts smaller than the result are compared."""
    batch = images()
    boxes = ContrastAugment(WEAK).draw_boxes(len(batch), generator())
    if size in ((12, 12), (1, 1)):
        boxes = boxes._replace(height=boxes.height * size[0] / 19, width=boxes.width * size[1] / 25)
    found = resized_parts(batch, boxes, *size)
    assert found.dtype == torch.uint8
    assert 0 < int(boxes.flip.sum()) < len(batch)
    for image, mine, *box in zip(batch, found, *(numbers.tolist() for numbers in boxes), strict=True):
        top, left, height, width, flip = box
        edges = (left * 25, top * 19, min((left + width) * 25, 25), min((top + height) * 19, 19))
        picture = Image.fromarray(image.permute(1, 2, 0).numpy())
        picture = picture.resize(size[::-1], Image.Resampling.BILINEAR, box=edges)
        if flip:
            picture = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        wanted = torch.tensor(list(picture.tobytes()), dtype=torch.uint8).view(*size, 3).permute(2, 0, 1)
        assert int((mine.int() - wanted.int()).abs().max()) <= 1


def test_the_whole_image_at_its_own_size_is_itself():
    batch = images(4)
    zero, one = torch.zeros(4), torch.ones(4)
    assert torch.equal(resized_parts(batch, Boxes(zero, zero, one, one, zero), 19, 25), batch)
    assert torch.equal(resized_parts(batch, Boxes(zero, zero, one, one, one), 19, 25), batch.flip(3))


def test_parts_lie_in_the_image_and_have_the_areas_and_shapes_of_simclr():
    top, left, height, width, flip = ContrastAugment(WEAK).draw_boxes(20_000, generator())
    for first, size in ((top, height), (left, width)):
        assert float(first.min()) >= 0
        assert float((first + size).max()) <= 1 + 1e-6
        place = first[size < 0.95] / (1 - size[size < 0.95])
        assert stats.kstest(place.double().numpy(), "uniform").pvalue > 0.001
    area, ratio = height * width, (width / height).double()
    assert float(area.min()) == pytest.approx(0.2, abs=0.001)
    assert float(area.max()) == pytest.approx(1, abs=0.02)
    edge = math.log(4 / 3)
    assert stats.kstest(ratio.log().numpy(), stats.uniform(-edge, 2 * edge).cdf).pvalue > 0.001
    # For each shape the area is uniform up to the largest that fits.
    largest = torch.minimum(ratio, 1 / ratio)
    assert stats.kstest(((area - 0.2) / (largest - 0.2)).numpy(), "uniform").pvalue > 0.001
    assert float(flip.double().mean()) == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize(("flip", "mirrors"), [(True, True), ("alternate", True), (False, False)])
def test_images_are_mirrored_only_if_the_weak_view_does(flip, mirrors):
    boxes = ContrastAugment(replace(WEAK, flip=flip)).draw_boxes(100, generator())
    assert bool(boxes.flip.any()) == mirrors


def test_colour_jitter_is_drawn_in_every_order_and_as_often_as_it_should():
    policy = ContrastAugment(WEAK).draw_colours(20_000, generator())
    assert policy.operation.shape == policy.magnitude.shape == (5, 20_000)
    jitter, last = policy.operation[:4], policy.operation[4]
    jittered = (jitter > 0).any(0)
    assert float(jittered.double().mean()) == pytest.approx(0.8, abs=0.01)
    assert not jitter[:, ~jittered].any()
    assert jitter[:, jittered].sort(0).values.T.unique(dim=0).tolist() == [[1, 2, 3, 4]]
    orders, counts = jitter[:, jittered].T.unique(dim=0, return_counts=True)
    assert len(orders) == 24
    assert stats.chisquare(counts.numpy()).pvalue > 0.001
    grey = last == NAMES.index("grey")
    assert float(grey.double().mean()) == pytest.approx(0.2, abs=0.01)
    assert not last[~grey].any()
    assert float(jittered[grey].double().mean()) == pytest.approx(0.8, abs=0.02)
    assert stats.kstest(policy.magnitude[0].double().numpy(), "uniform").pvalue > 0.001


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [("brightness", 0.6, 1.4), ("contrast", 0.6, 1.4), ("colour", 0.6, 1.4), ("hue", -0.1, 0.1)],
)
def test_the_ranges_of_the_jitter(name, least, most):
    found = COLOUR_OPERATIONS[name].strength(torch.tensor([0.0, 0.5, 1.0]), torch.zeros(3))
    assert found.tolist() == pytest.approx([least, (least + most) / 2, most])


def test_one_image_goes_through_its_steps_one_after_the_other():
    """A loop over images and steps, with the operations that are tested by themselves."""
    batch, view = images(), ContrastAugment(WEAK)
    boxes, colours = view.draw_boxes(len(batch), generator()), view.draw_colours(len(batch), generator(1))
    found = view.apply(batch, boxes, colours)
    for row in range(len(batch)):
        one = resized_parts(batch[row : row + 1], Boxes(*(n[row : row + 1] for n in boxes)), 19, 25)
        for number, magnitude in zip(
            colours.operation[:, row].tolist(), colours.magnitude[:, row].tolist(), strict=True
        ):
            name = NAMES[number]
            low, high = (-0.1, 0.1) if name == "hue" else (0.6, 1.4)
            strength = torch.tensor([low + (high - low) * magnitude], dtype=torch.float64)
            one = getattr(operations, name)(one, strength)
        mean, std = (torch.tensor(numbers).view(3, 1, 1) for numbers in (WEAK.statistics.mean, WEAK.statistics.std))
        torch.testing.assert_close(found[row], (one[0] / 255 - mean) / std, rtol=1e-5, atol=1e-5)


def test_nothing_is_blanked():
    white = torch.full((50, 3, 8, 8), 255, dtype=torch.uint8)
    view = ContrastAugment(Augment(padding=0, cutout=4), jittered=0, greyed=0)
    assert torch.equal(view(white, generator()), torch.ones(50, 3, 8, 8))


def test_grey_images_are_grey():
    found = ContrastAugment(Augment(padding=0), greyed=1)(images(), generator())
    assert torch.equal(found, found[:, :1].expand_as(found))


def test_hue_and_saturation_do_nothing_to_images_with_one_channel():
    batch = images(channels=1)
    for name in ("colour", "hue", "grey"):
        number = torch.full((1, len(batch)), NAMES.index(name))
        policy = Policy(number, torch.rand(1, len(batch)), torch.zeros(1, len(batch)))
        zero, one = torch.zeros(len(batch)), torch.ones(len(batch))
        found = ContrastAugment(Augment(padding=0)).apply(batch, Boxes(zero, zero, one, one, zero), policy)
        torch.testing.assert_close(found, batch / 255)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"jittered": 1.1}, "probabilities"),
        ({"greyed": -0.1}, "probabilities"),
        ({"least_area": 0}, "must fit into the image"),
        ({"least_area": 0.8}, "must fit into the image"),
        ({"most_stretched": 0.5}, "must fit into the image"),
        ({"most_stretched": float("nan")}, "must fit into the image"),
    ],
)
def test_what_makes_no_sense_is_refused(settings, message):
    with pytest.raises(InputError, match=message):
        ContrastAugment(Augment(), **settings)


def test_floats_are_refused():
    with pytest.raises(InputError, match="uint8 images"):
        ContrastAugment(Augment())(torch.zeros(2, 3, 8, 8))
