"""Strong augmentation: each image has its own policy, and everything is a function of the generator."""

from dataclasses import replace

import pytest
import torch

from postmax.data import Augment, Statistics, StrongAugment
from postmax.data.image_operations import OPERATIONS
from postmax.data.image_policy import Policy
from postmax.errors import InputError

PLAIN = Augment(padding=0, flip=False)


def images(count=64, channels=3, side=16):
    generator = torch.Generator().manual_seed(7)
    coarse = torch.rand(count, channels, 4, 4, generator=generator)
    return (torch.nn.functional.interpolate(coarse, size=(side, side), mode="bilinear") * 255).to(torch.uint8)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def policy_of(count, name, magnitude=0.5, negative=0):
    number = list(OPERATIONS).index(name)
    shape = (1, count)
    return Policy(torch.full(shape, number), torch.full(shape, magnitude), torch.full(shape, negative))


def test_the_same_generator_gives_the_same_images_and_another_one_others():
    strong = StrongAugment(Augment(padding=2))
    assert torch.equal(strong(images(), generator(1)), strong(images(), generator(1)))
    assert not torch.equal(strong(images(), generator(1)), strong(images(), generator(2)))


def test_images_of_one_batch_draw_different_operations_and_magnitudes():
    policy = StrongAugment(PLAIN).draw(2000, generator())
    assert policy.operation.shape == (2, 2000)
    for step in policy.operation:
        counts = torch.bincount(step, minlength=len(OPERATIONS))
        assert counts.min() > 2000 / len(OPERATIONS) / 2
    assert not torch.equal(policy.operation[0], policy.operation[1])
    assert float(policy.magnitude.mean()) == pytest.approx(0.5, abs=0.02)
    assert float(policy.negative.double().mean()) == pytest.approx(0.5, abs=0.05)


def test_an_image_does_not_depend_on_the_others_of_its_batch():
    strong = StrongAugment(Augment(padding=2))
    batch = images()
    draw, policy = strong.weak.draw(batch, generator()), strong.draw(len(batch), generator(1))
    together = strong.apply(batch, draw, policy)
    for row in (0, 13, 63):
        one = slice(row, row + 1)
        alone = strong.apply(batch[one], type(draw)(*(n[one] for n in draw)), Policy(*(n[:, one] for n in policy)))
        assert torch.equal(together[row], alone[0])


def test_it_begins_with_the_crop_and_flip_of_the_weak_view():
    """With the identity as its only operation and without cutout, it is the weak view."""
    weak = Augment(padding=2, statistics=Statistics((0.5,) * 3, (0.2,) * 3))
    batch = images()
    draw = weak.draw(batch, generator())
    found = StrongAugment(weak, cutout=0).apply(batch, draw, policy_of(len(batch), "identity"))
    assert torch.equal(found, weak.apply(batch, draw))


def test_operations_follow_one_another():
    batch = images()
    twice = Policy(*(torch.cat([n, n]) for n in policy_of(len(batch), "translate_x", 0.99999 / 0.3 * 0.0625)))
    draw = PLAIN.draw(batch, generator())
    found = StrongAugment(PLAIN, cutout=0).apply(batch, draw, twice)
    # Each step moves an image of 16 pixels by almost one pixel, which is rounded to one.
    assert torch.equal(found[..., :-2], PLAIN.apply(batch, draw)[..., 2:])
    assert not found[..., -2:].any()


def test_signs_turn_the_other_way():
    batch = images()
    draw = PLAIN.draw(batch, generator())
    left, right = (
        StrongAugment(PLAIN, cutout=0).apply(batch, draw, policy_of(len(batch), "translate_x", 0.8, negative))
        for negative in (0, 1)
    )
    assert not left[..., -1].any()
    assert not right[..., 0].any()
    assert left[..., 0].any()


@pytest.mark.parametrize(
    ("weak", "cutout", "blank"), [(0, None, 8), (4, None, 4), (4, 6, 6), (0, 0, 0)], ids=["half", "weak", "own", "no"]
)
def test_the_blanked_square(weak, cutout, blank):
    """By default it is that of the weak view, or else half the side of the image."""
    white = torch.full((200, 3, 16, 16), 255, dtype=torch.uint8)
    strong = StrongAugment(replace(PLAIN, cutout=weak), cutout=cutout, operations=0)
    blanked = (strong(white, generator()) == 0).all(1).flatten(1).sum(1)
    assert int(blanked.max()) == blank**2


def test_it_is_random_also_where_the_weak_view_is_not():
    white = torch.full((200, 3, 16, 16), 255, dtype=torch.uint8)
    found = StrongAugment(Augment.none(), operations=0)(white, generator())
    assert len(found.flatten(1).unique(dim=0)) > 50


def test_features_stay_as_they_are():
    features = torch.randn(5, 3)
    assert StrongAugment(Augment())(features, generator()) is features


def test_what_makes_no_sense_is_refused():
    with pytest.raises(InputError, match="operations and cutout"):
        StrongAugment(Augment(), operations=-1)
    with pytest.raises(InputError, match="uint8 images"):
        StrongAugment(Augment())(torch.zeros(2, 3, 8, 8))
