"""Every operation against Pillow, image by image."""

import colorsys

import pytest
import torch
from PIL import Image, ImageEnhance, ImageFilter, ImageOps

from postmax.data import image_operations as ours
from postmax.data.image_operations import OPERATIONS


def photographs(channels, height=17, width=23, count=40):
    """Smooth images with some noise, flat ones and ones of two colours among them."""
    generator = torch.Generator().manual_seed(channels)
    coarse = torch.rand(count, channels, 4, 5, generator=generator)
    smooth = torch.nn.functional.interpolate(coarse, size=(height, width), mode="bilinear")
    noise = 0.1 * torch.randn(smooth.shape, generator=generator)
    spread = torch.rand(count, 1, 1, 1, generator=generator)
    images = ((smooth * spread + 0.3 * (1 - spread) + noise * spread).clamp(0, 1) * 255).to(torch.uint8)
    images[0], images[1], images[2] = 0, 255, 77
    images[3] = torch.where(images[3] > 100, 200, 10)
    return images


def to_pillow(image):
    return Image.fromarray(image[0].numpy() if len(image) == 1 else image.permute(1, 2, 0).numpy())


def from_pillow(picture):
    pixels = torch.tensor(list(picture.tobytes()), dtype=torch.uint8).view(picture.height, picture.width, -1)
    return pixels.permute(2, 0, 1)


def affine(*matrix):
    return lambda picture: picture.transform(picture.size, Image.Transform.AFFINE, matrix)


PILLOW = {
    "identity": lambda picture, s: picture,
    "autocontrast": lambda picture, s: ImageOps.autocontrast(picture),
    "equalize": lambda picture, s: ImageOps.equalize(picture),
    "posterize": lambda picture, s: ImageOps.posterize(picture, int(s)),
    "solarize": lambda picture, s: ImageOps.solarize(picture, int(s)),
    "brightness": lambda picture, s: ImageEnhance.Brightness(picture).enhance(s),
    "colour": lambda picture, s: ImageEnhance.Color(picture).enhance(s),
    "contrast": lambda picture, s: ImageEnhance.Contrast(picture).enhance(s),
    "sharpness": lambda picture, s: ImageEnhance.Sharpness(picture).enhance(s),
    "rotate": lambda picture, s: picture.rotate(s),
    "shear_x": lambda picture, s: affine(1, s, 0, 0, 1, 0)(picture),
    "shear_y": lambda picture, s: affine(1, 0, 0, s, 1, 0)(picture),
    "translate_x": lambda picture, s: affine(1, 0, s * picture.width, 0, 1, 0)(picture),
    "translate_y": lambda picture, s: affine(1, 0, 0, 0, 1, s * picture.height)(picture),
}
ROUNDED = {"brightness", "colour", "contrast", "sharpness"}


def strengths(name, count):
    choice = OPERATIONS[name]
    found = torch.linspace(choice.low, choice.high, count, dtype=torch.float64)
    if choice.whole:
        return found.floor()
    return found * (1 - 2 * (torch.arange(count) % 2)) if choice.signed else found


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_gives_the_pixels_of_pillow(name, channels):
    images = photographs(channels)
    strength = strengths(name, len(images))
    kept = images.clone()
    found = OPERATIONS[name].apply(images, strength)
    assert torch.equal(images, kept), "the images that were given must not change"
    assert found.dtype == torch.uint8
    for image, mine, s in zip(images, found, strength.tolist(), strict=True):
        wanted = from_pillow(PILLOW[name](to_pillow(image), s))
        difference = (mine.int() - wanted.int()).abs()
        assert int(difference.max()) <= (1 if name in ROUNDED else 0), s


@pytest.mark.parametrize("name", sorted(set(OPERATIONS) - {"identity", "autocontrast"}))
def test_operations_change_something(name):
    images = photographs(3)[4:]
    images[:, :, 0, :2] = torch.tensor([0, 255], dtype=torch.uint8)
    strength = strengths(name, len(images))
    changed = (OPERATIONS[name].apply(images, strength) != images).flatten(1).any(1)
    # The weakest strengths may not show.
    assert int(changed.sum()) >= len(images) - 6


def test_strong_factors_are_cut_off_as_in_pillow():
    images = photographs(3)
    found = ours.brightness(images, torch.full((len(images),), 1.9, dtype=torch.float64))
    for image, mine in zip(images, found, strict=True):
        wanted = from_pillow(ImageEnhance.Brightness(to_pillow(image)).enhance(1.9))
        assert int((mine.int() - wanted.int()).abs().max()) <= 1


def test_smoothing_is_that_of_pillow_and_spares_the_edge():
    images = photographs(3)
    found = ours.sharpness(images, torch.zeros(len(images), dtype=torch.float64))
    for image, mine in zip(images, found, strict=True):
        wanted = from_pillow(to_pillow(image).filter(ImageFilter.SMOOTH))
        assert int((mine.int() - wanted.int()).abs().max()) <= 1
        assert torch.equal(mine[:, 0], image[:, 0])
    tiny = torch.randint(256, (4, 3, 2, 2)).to(torch.uint8)
    assert torch.equal(ours.sharpness(tiny, torch.zeros(4)), tiny)


@pytest.mark.parametrize("channels", [1, 3])
def test_negatives_are_those_of_pillow(channels):
    images = photographs(channels)
    found = ours.invert(images, torch.zeros(len(images)))
    for image, mine in zip(images, found, strict=True):
        assert torch.equal(mine, from_pillow(ImageOps.invert(to_pillow(image))))


def test_grey_versions_are_those_of_pillow():
    images = photographs(3)
    found = ours.grey(images, torch.zeros(len(images)))
    for image, mine in zip(images, found, strict=True):
        assert torch.equal(mine, from_pillow(to_pillow(image).convert("L")).expand(3, -1, -1))
    single = photographs(1)
    assert torch.equal(ours.grey(single, torch.zeros(len(single))), single)


def test_hues_are_those_of_colorsys():
    colours = torch.randint(256, (60, 3, 2, 3), generator=torch.Generator().manual_seed(0)).to(torch.uint8)
    colours[:8, :, 0, 0] = torch.tensor([[r, g, b] for r in (0, 255) for g in (0, 255) for b in (0, 255)]).byte()
    turns = torch.linspace(-1.5, 1.5, 60, dtype=torch.float64)
    found = ours.hue(colours, turns)
    for image, mine, turn in zip(colours, found, turns.tolist(), strict=True):
        for before, after in zip(image.flatten(1).T.tolist(), mine.flatten(1).T.tolist(), strict=True):
            h, s, v = colorsys.rgb_to_hsv(*(value / 255 for value in before))
            wanted = [255 * value for value in colorsys.hsv_to_rgb((h + turn) % 1, s, v)]
            assert after == pytest.approx(wanted, abs=0.501)


def test_hue_goes_round_the_wheel():
    red = torch.tensor([200, 10, 10], dtype=torch.uint8).view(1, 3, 1, 1)
    for turn, wanted in ((0, [200, 10, 10]), (1 / 3, [10, 200, 10]), (-1 / 3, [10, 10, 200]), (1 / 6, [200, 200, 10])):
        assert ours.hue(red, torch.tensor([turn])).flatten().tolist() == wanted
    images = photographs(3)
    assert torch.equal(ours.hue(images, torch.zeros(len(images))), images)


def test_a_sign_makes_a_factor_larger_or_smaller_than_one():
    choice = ours.Operation(ours.contrast, 0, 0.9, signed=True, middle=1)
    found = choice.strength(torch.tensor([0.0, 0.5, 0.5, 1.0]), torch.tensor([1, 0, 1, 1]))
    assert found.tolist() == pytest.approx([1, 1.45, 0.55, 0.1])
