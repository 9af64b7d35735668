"""AutoAugment: the published policy, its shares, and each image against Pillow."""

import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps

from postmax.data import Augment, AutoAugment, Statistics
from postmax.data.auto_augment import AUTO_OPERATIONS, CIFAR10_POLICY
from postmax.data.image_policy import Policy, apply_policy
from postmax.errors import InputError

PLAIN = Augment(padding=0, flip=False)

# The policy in the spelling of the paper (Cubuk et al., 2019), for a comparison with ours.
PAPER = """
Invert .1 0 Contrast .2 6|Rotate .7 2 TranslateX .3 9|Sharpness .8 1 Sharpness .9 3|ShearY .5 8 TranslateY .7 9
AutoContrast .5 0 Equalize .9 0|ShearY .2 7 Posterize .3 7|Color .4 3 Brightness .6 7|Sharpness .3 9 Brightness .7 9
Equalize .6 0 Equalize .5 0|Contrast .6 7 Sharpness .6 5|Color .7 7 TranslateX .5 8|Equalize .3 0 AutoContrast .4 0
TranslateY .4 3 Sharpness .2 6|Brightness .9 6 Color .2 8|Solarize .5 2 Invert .0 0|Equalize .2 0 AutoContrast .6 0
Equalize .2 0 Equalize .6 0|Color .9 9 Equalize .6 0|AutoContrast .8 0 Solarize .2 8|Brightness .1 3 Color .7 0
Solarize .4 5 AutoContrast .9 0|TranslateY .9 9 TranslateY .7 9|AutoContrast .9 0 Solarize .8 3
Equalize .8 0 Invert .1 0|TranslateY .7 9 AutoContrast .9 0
"""
OUR_NAMES = {"Color": "colour", "ShearY": "shear_y", "TranslateX": "translate_x", "TranslateY": "translate_y"}


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def images(count=40, channels=3, height=19, width=25):
    coarse = torch.rand(count, channels, 4, 5, generator=generator(7))
    return (torch.nn.functional.interpolate(coarse, size=(height, width), mode="bilinear") * 255).to(torch.uint8)


def test_the_policy_is_the_published_one():
    published = []
    for words in (entry.split() for line in PAPER.strip().splitlines() for entry in line.split("|")):
        names = [OUR_NAMES.get(word, word.lower()) for word in words[::3]]
        published.append(tuple(zip(names, map(float, words[1::3]), map(int, words[2::3]), strict=True)))
    assert tuple(published) == CIFAR10_POLICY
    assert len(CIFAR10_POLICY) == 25


def test_every_pair_and_every_operation_comes_as_often_as_it_should():
    count = 50_000
    policy = AutoAugment(PLAIN).draw(count, generator())
    assert policy.operation.shape == policy.magnitude.shape == policy.negative.shape == (2, count)
    for step in (0, 1):
        expected = torch.zeros(len(AUTO_OPERATIONS), dtype=torch.float64)
        for pair in CIFAR10_POLICY:
            name, probability, _ = pair[step]
            expected[list(AUTO_OPERATIONS).index(name)] += probability / 25
            expected[0] += (1 - probability) / 25
        found = torch.bincount(policy.operation[step], minlength=len(expected)) / count
        assert float((found - expected).abs().max()) < 0.01
        assert float(policy.negative[step].double().mean()) == pytest.approx(0.5, abs=0.02)


def test_both_operations_of_an_image_are_of_one_pair_and_independent():
    policy = AutoAugment(PLAIN).draw(50_000, generator())
    names = list(AUTO_OPERATIONS)
    allowed = {(a[0], b[0]) for a, b in CIFAR10_POLICY}
    allowed |= {("identity", b) for _, b in allowed} | {(a, "identity") for a, _ in allowed} | {("identity",) * 2}
    places = policy.operation.T.unique(dim=0).tolist()
    assert {(names[a], names[b]) for a, b in places} <= allowed
    # Only one pair begins with a rotation (probability 0.7); it ends with a move to the side with probability 0.3.
    rotated = policy.operation[0] == names.index("rotate")
    moved = policy.operation[1][rotated] == names.index("translate_x")
    assert float(rotated.double().mean()) == pytest.approx(0.7 / 25, abs=0.004)
    assert float(moved.double().mean()) == pytest.approx(0.3, abs=0.05)
    assert policy.magnitude[0][rotated].unique().tolist() == pytest.approx([2 / 9])


def affine(*matrix):
    return lambda picture: picture.transform(picture.size, Image.Transform.AFFINE, matrix)


# What an operation of the paper is in Pillow, for a magnitude from 0 to 9 and a sign.
PILLOW = {
    "identity": lambda picture, m, sign: picture,
    "invert": lambda picture, m, sign: ImageOps.invert(picture),
    "autocontrast": lambda picture, m, sign: ImageOps.autocontrast(picture),
    "equalize": lambda picture, m, sign: ImageOps.equalize(picture),
    "posterize": lambda picture, m, sign: ImageOps.posterize(picture, [8, 8, 7, 7, 6, 6, 5, 5, 4, 4][m]),
    "solarize": lambda picture, m, sign: ImageOps.solarize(picture, 256 - 256 * m / 9),
    "brightness": lambda picture, m, sign: ImageEnhance.Brightness(picture).enhance(1 + sign * m / 10),
    "colour": lambda picture, m, sign: ImageEnhance.Color(picture).enhance(1 + sign * m / 10),
    "contrast": lambda picture, m, sign: ImageEnhance.Contrast(picture).enhance(1 + sign * m / 10),
    "sharpness": lambda picture, m, sign: ImageEnhance.Sharpness(picture).enhance(1 + sign * m / 10),
    "rotate": lambda picture, m, sign: picture.rotate(sign * m * 10 / 3),
    "shear_y": lambda picture, m, sign: affine(1, 0, 0, sign * m / 30, 1, 0)(picture),
    "translate_x": lambda picture, m, sign: affine(1, 0, sign * m / 9 * 150 / 331 * picture.width, 0, 1, 0)(picture),
    "translate_y": lambda picture, m, sign: affine(1, 0, 0, 0, 1, sign * m / 9 * 150 / 331 * picture.height)(picture),
}


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("name", AUTO_OPERATIONS)
def test_every_operation_and_magnitude_gives_the_pixels_of_pillow(name, channels):
    batch = images(20, channels)
    ninths, negative = torch.arange(20) % 10, torch.arange(20) // 10
    operation = torch.full((1, 20), list(AUTO_OPERATIONS).index(name))
    found = apply_policy(batch, Policy(operation, ninths[None] / 9, negative[None]), AUTO_OPERATIONS)
    for image, mine, m, minus in zip(batch, found, ninths.tolist(), negative.tolist(), strict=True):
        picture = Image.fromarray(image[0].numpy() if channels == 1 else image.permute(1, 2, 0).numpy())
        wanted = PILLOW[name](picture, m, 1 - 2 * minus)
        pixels = torch.tensor(list(wanted.tobytes()), dtype=torch.uint8).view(*image.shape[1:], channels)
        difference = (mine.int() - pixels.permute(2, 0, 1).int()).abs()
        assert int(difference.max()) <= (1 if name in ("brightness", "colour", "contrast", "sharpness") else 0), m


def test_an_image_does_not_depend_on_the_others_of_its_batch():
    auto = AutoAugment(Augment(padding=2))
    batch = images()
    draw, policy = auto.weak.draw(batch, generator()), auto.draw(len(batch), generator(1))
    together = auto.apply(batch, draw, policy)
    for row in range(len(batch)):
        one = slice(row, row + 1)
        alone = auto.apply(batch[one], type(draw)(*(n[one] for n in draw)), Policy(*(n[:, one] for n in policy)))
        assert torch.equal(together[row], alone[0])


def test_it_begins_with_the_crop_and_flip_of_the_weak_view():
    weak = Augment(padding=2, statistics=Statistics((0.5,) * 3, (0.2,) * 3))
    batch = images()
    draw = weak.draw(batch, generator())
    nothing = Policy(*(torch.zeros(2, len(batch), dtype=torch.int64) for _ in range(3)))
    assert torch.equal(AutoAugment(weak, cutout=0).apply(batch, draw, nothing), weak.apply(batch, draw))


@pytest.mark.parametrize(("weak", "cutout", "blank"), [(0, None, 16), (4, None, 4), (4, 6, 6), (0, 0, 0)])
def test_the_blanked_square(weak, cutout, blank):
    """By default it is that of the weak view, or else half the side of the image: 16 for CIFAR."""
    white = torch.full((200, 3, 32, 32), 255, dtype=torch.uint8)
    auto = AutoAugment(Augment(padding=0, cutout=weak), cutout)
    nothing = Policy(*(torch.zeros(2, 200, dtype=torch.int64) for _ in range(3)))
    blanked = (auto.apply(white, auto.weak.draw(white, generator()), nothing) == 0).all(1).flatten(1).sum(1)
    assert int(blanked.max()) == blank**2


def test_a_negative_cutout_is_refused():
    with pytest.raises(InputError, match="cutout counts pixels"):
        AutoAugment(Augment(), cutout=-1)
