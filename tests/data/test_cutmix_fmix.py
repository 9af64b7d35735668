"""CutMix and FMix against loops over rows and pixels, and the shape of their areas."""

import cmath
import math

import pytest
import torch
from scipy import stats

import postmax as pm
from postmax.data import cutmix, fmix, mixup
from postmax.data.cutmix import boxes
from postmax.data.fmix import low_frequencies
from postmax.data.mixtures import largest
from postmax.errors import InputError, LabelError

MIXTURES = pytest.mark.parametrize("mixture", [cutmix, fmix])
IMAGES = [(9, 3, 8, 8), (9, 1, 5, 12), (9, 3, 96, 96), (9, 2, 1, 1), (9, 1, 1, 7), (1, 3, 8, 8)]
FEATURES = [(9, 10), (9, 1), (1, 4)]


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def numbered(shape):
    """Rows whose entries all hold the number of the row, so that it shows where an entry comes from."""
    return torch.arange(float(shape[0])).view(-1, *[1] * (len(shape) - 1)).expand(shape).contiguous()


@pytest.mark.parametrize("shape", [*IMAGES, *FEATURES], ids=str)
@MIXTURES
def test_each_entry_is_of_the_row_or_its_partner_and_the_weight_counts_them(mixture, shape):
    count = shape[0]
    labels = torch.arange(count) % 4
    inputs = torch.randn(shape, generator=generator(1))
    mixed = mixture(inputs, labels, 1.0, generator(), num_classes=4)
    where = mixture(numbered(shape), labels, 1.0, generator(), num_classes=4)
    assert sorted(mixed.partner.tolist()) == list(range(count))
    for i in range(count):
        j, own = int(mixed.partner[i]), where.inputs[i] == i
        assert ((where.inputs[i] == i) | (where.inputs[i] == j)).all()
        assert torch.equal(mixed.inputs[i], torch.where(own, inputs[i], inputs[j]))
        if j != i:
            assert float(mixed.weight[i]) == pytest.approx(float(own.double().mean()), abs=1e-6)
        if len(shape) == 4:
            assert torch.equal(own, own[:1].expand_as(own)), "all channels of a pixel belong together"
        target = torch.zeros(4)
        target[labels[i]] += mixed.weight[i]
        target[labels[j]] += 1 - mixed.weight[i]
        torch.testing.assert_close(mixed.targets[i], target)


@MIXTURES
def test_it_is_a_function_of_the_generator_alone(mixture):
    for shape in ((6, 3, 8, 8), (6, 10)):
        inputs, labels = torch.randn(shape, generator=generator(1)), torch.arange(6)
        kept = inputs.clone()
        first, again, other = (mixture(inputs, labels, 1.0, generator(s), num_classes=6) for s in (3, 3, 4))
        assert all(torch.equal(mine, its) for mine, its in zip(first, again, strict=True))
        assert not torch.equal(first.inputs, other.inputs)
        assert torch.equal(inputs, kept)
        assert len(first.weight.unique()) > 3, "every row has its own weight"


@pytest.mark.parametrize("shape", [(0, 3, 8, 8), (0, 5)], ids=str)
@MIXTURES
def test_no_rows_are_mixed_to_no_rows(mixture, shape):
    mixed = mixture(torch.zeros(shape), torch.zeros(0, dtype=torch.int64), 1.0, generator(), num_classes=3)
    assert mixed.inputs.shape == shape
    assert mixed.targets.shape == (0, 3)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@MIXTURES
def test_types_stay_and_gradients_flow(mixture, dtype):
    inputs = torch.randn(4, 1, 6, 6, dtype=dtype, requires_grad=True)
    targets = torch.softmax(torch.randn(4, 3), 1)
    mixed = mixture(inputs, targets, 1.0, generator())
    assert mixed.inputs.dtype == mixed.weight.dtype == dtype
    assert mixed.targets.dtype == torch.float32
    mixed.inputs.sum().backward()
    # Every mixed entry is one entry of the inputs.
    assert float(inputs.grad.sum()) == inputs.numel()


@pytest.mark.parametrize("alpha", [0.3, 1.0, 4.0])
def test_weights_of_fmix_follow_the_beta_distribution_to_a_pixel(alpha):
    for shape in ((4000, 1, 8, 8), (4000, 64)):
        mixed = fmix(torch.zeros(shape), torch.zeros(4000, dtype=torch.int64), alpha, generator(), num_classes=1)
        drawn = mixup(
            torch.zeros(4000, 1), torch.zeros(4000).long(), alpha, generator(), num_classes=1, per_sample=True
        )
        assert torch.equal(mixed.partner, drawn.partner)
        assert float((mixed.weight - drawn.weight).abs().max()) < 1 / 64 + 1e-6
        # A weight between two numbers of pixels is rounded to one of them so that it is right on average.
        assert float((mixed.weight - drawn.weight).mean()) == pytest.approx(0, abs=0.0005)


@MIXTURES
def test_a_row_can_be_kept_the_larger_part(mixture):
    inputs, labels = torch.zeros(500, 1, 32, 32), torch.zeros(500, dtype=torch.int64)
    assert float(mixture(inputs, labels, 1.0, generator(), num_classes=1).weight.min()) < 0.2
    kept = mixture(inputs, labels, 1.0, generator(), num_classes=1, at_least_half=True).weight
    assert float(kept.min()) > (0.5 - 23 / 1024 if mixture is cutmix else 0.5 - 1 / 1024)


@MIXTURES
def test_every_subset_of_features_is_as_likely(mixture):
    where = mixture(numbered((6000, 4)), torch.zeros(6000).long(), 1.0, generator(), num_classes=1)
    own = where.inputs == torch.arange(6000.0)[:, None]
    own = own[where.partner != torch.arange(6000)]
    two = own[own.sum(1) == 2]
    subsets, counts = two.unique(dim=0, return_counts=True)
    assert len(subsets) == 6
    assert stats.chisquare(counts.numpy()).pvalue > 0.001


@pytest.mark.parametrize(("height", "width"), [(8, 8), (5, 12), (1, 1), (96, 64)])
def test_boxes_are_those_of_a_loop(height, width):
    area, middle = torch.rand(20, generator=generator()).double(), torch.rand(2, 20, generator=generator(1)).double()
    found = boxes(area, middle, height, width)
    for row in range(20):
        cut = math.sqrt(float(area[row]))
        rows, columns = math.floor(cut * height + 0.5), math.floor(cut * width + 0.5)
        top = math.floor(float(middle[0, row]) * height) - rows // 2
        left = math.floor(float(middle[1, row]) * width) - columns // 2
        wanted = torch.zeros(height, width, dtype=torch.bool)
        wanted[max(top, 0) : max(top + rows, 0), max(left, 0) : max(left + columns, 0)] = True
        assert torch.equal(found[row], wanted)


def test_a_box_in_the_middle_has_its_area_and_one_in_a_corner_a_quarter_of_it():
    area, middle = torch.tensor([0.25, 0.25, 0.0, 1.0]).double(), torch.tensor([0.5, 0.0, 0.5, 0.5]).double()
    found = boxes(area, torch.stack([middle, middle]), 16, 16).flatten(1).sum(1)
    assert found.tolist() == [64, 16, 0, 256]


def test_the_boxes_of_cutmix_are_boxes_all_over_the_image():
    where = cutmix(numbered((3000, 1, 16, 16)), torch.zeros(3000).long(), 1.0, generator(), num_classes=1)
    cut = (where.inputs != numbered((3000, 1, 16, 16)))[:, 0]
    cut = cut[where.partner != torch.arange(3000)]
    assert torch.equal(cut, cut.any(1, keepdim=True) & cut.any(2, keepdim=True))
    # λ is uniform and 1 − λ the area of a box: by symmetry a pixel is cut as often as its mirror images.
    often = cut.double().mean(0)
    assert float((often - often.flip(0)).abs().mean()) < 0.03
    assert float((often - often.T).abs().mean()) < 0.02
    # A box around a random pixel covers the middle more often than a corner.
    assert float(often[8, 8]) > float(often[0, 0]) + 0.2


@pytest.mark.parametrize(("height", "width"), [(4, 4), (5, 3), (1, 6), (3, 1), (1, 1)])
def test_low_frequencies_are_those_of_a_sum_over_waves(height, width):
    noise = torch.randn(2, height, width, generator=generator(), dtype=torch.float64)
    found = low_frequencies(noise, 3.0)
    assert found.shape == noise.shape
    for row in range(2):
        wanted = torch.zeros(height, width, dtype=torch.complex128)
        for u in range(height):
            for v in range(width):
                waves = [
                    [cmath.exp(2j * math.pi * (u * y / height + v * x / width)) for x in range(width)]
                    for y in range(height)
                ]
                wave = torch.tensor(waves, dtype=torch.complex128)
                frequency = math.hypot(min(u, height - u) / height, min(v, width - v) / width)
                amplitude = (noise[row] * wave.conj()).sum() / (height * width)
                wanted += amplitude * wave / max(frequency, 1 / max(height, width)) ** 3
        assert float(wanted.imag.abs().max()) < 1e-6
        torch.testing.assert_close(found[row], wanted.real, rtol=1e-5, atol=1e-5)


def test_the_areas_of_fmix_are_large_and_alike_in_all_directions():
    where = fmix(numbered((2000, 1, 32, 32)), torch.zeros(2000).long(), 1.0, generator(), num_classes=1)
    own = (where.inputs == numbered((2000, 1, 32, 32)))[:, 0].double()
    half = own[(where.weight > 0.4) & (where.weight < 0.6)]
    across = float((half[:, :, 1:] != half[:, :, :-1]).double().mean())
    down = float((half[:, 1:] != half[:, :-1]).double().mean())
    assert across == pytest.approx(down, rel=0.05)
    assert across < 0.07, "neighbours mostly belong together; with unrelated pixels half of them would differ"
    rough = fmix(numbered((200, 1, 32, 32)), torch.zeros(200).long(), 1.0, generator(), num_classes=1, decay=0.0).inputs
    rough = rough == numbered((200, 1, 32, 32))
    assert float((rough[..., 1:] != rough[..., :-1]).double().mean()) > 0.25
    # No place of an image is kept more often than others.
    assert float(own.mean(0).std()) < 0.03


def test_the_largest_scores_are_chosen_even_if_they_are_equal():
    share = torch.tensor([0.0, 0.25, 0.5, 1.0])
    assert largest(torch.zeros(4, 8), share, generator()).sum(1).tolist() == [0, 2, 4, 8]
    scores = torch.randn(50, 30, generator=generator())
    mask = largest(scores, torch.full((50,), 0.5), generator())
    for row in range(50):
        assert scores[row][mask[row]].min() > scores[row][~mask[row]].max()
    counts = largest(torch.zeros(4000, 3), torch.full((4000,), 0.25), generator()).sum(1)
    assert set(counts.tolist()) == {0, 1}
    assert float(counts.double().mean()) == pytest.approx(0.75, abs=0.03)


@MIXTURES
def test_loss_of_mixed_targets_is_the_mixture_of_losses(mixture):
    labels = torch.tensor([0, 1, 2, 1, 0])
    mixed = mixture(torch.randn(5, 1, 4, 4), labels, 1.0, generator(), num_classes=3)
    logits = torch.randn(5, 3, generator=generator(2))
    loss = pm.FPMLLoss("sl", reduction="none")
    expected = mixed.weight * loss(logits, labels) + (1 - mixed.weight) * loss(logits, labels[mixed.partner])
    torch.testing.assert_close(loss(logits, mixed.targets), expected)


@pytest.mark.parametrize(
    ("inputs", "options", "message"),
    [
        (torch.zeros(2, 1), {"alpha": 0.0}, "positive"),
        (torch.zeros(2, 1), {"num_classes": None}, "needs num_classes"),
        (torch.zeros(3, 1), {}, "3 inputs and 2 targets"),
        (torch.zeros(2, 1, 4, 4, dtype=torch.uint8), {}, "normalise images first"),
        (torch.zeros(2, 3, 4), {}, r"is for images \(B, C, H, W\) and features \(B, d\), got shape \(2, 3, 4\)"),
    ],
)
@MIXTURES
def test_errors_say_what_is_wrong(mixture, inputs, options, message):
    with pytest.raises(InputError, match=message):
        mixture(inputs, torch.tensor([0, 1]), **{"alpha": 1.0, "num_classes": 2} | options)
    with pytest.raises(LabelError):
        mixture(torch.zeros(2, 1), torch.tensor([0, 2]), 1.0, num_classes=2)


def test_a_negative_decay_is_refused():
    with pytest.raises(InputError, match="decay of fmix"):
        fmix(torch.zeros(2, 1), torch.tensor([0, 1]), num_classes=2, decay=-1.0)
