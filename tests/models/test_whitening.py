"""The whitening layer: uncorrelated outputs in pairs of signs, for any images, and the same each time."""

import numpy as np
import pytest
import torch
from torch import nn

from postmax.models import whitening
from postmax.models.whitening import Whitening


def smooth_images(count=40, channels=3, height=9, width=11, seed=0):
    """Images whose neighbouring pixels and channels have much in common, with a mean that is not 0."""
    generator = torch.Generator().manual_seed(seed)
    rough = torch.randn(count, channels, height + 2, width + 2, generator=generator)
    return nn.functional.avg_pool2d(rough, 3, stride=1) + 0.4 * rough.mean((1, 2, 3), keepdim=True) + 0.7


def fitted(images, side=2):
    layer = Whitening(images.shape[1], side)
    layer.fit(images)
    return layer


def patches_of(images, side=2):
    """Every patch as a row, by a loop over places."""
    pixels = images.numpy().astype(np.float64)
    _, _, height, width = pixels.shape
    found = [
        pixels[:, :, row : row + side, column : column + side].reshape(len(pixels), -1)
        for row in range(height - side + 1)
        for column in range(width - side + 1)
    ]
    return np.concatenate(found)


@pytest.mark.parametrize(("channels", "side"), [(3, 2), (1, 2), (4, 3)])
def test_patches_become_uncorrelated(channels, side):
    images = smooth_images(channels=channels)
    filters = fitted(images, side).filters
    size = channels * side * side
    assert filters.shape == (2 * size, channels, side, side)
    outputs = patches_of(images, side) @ filters[:size].reshape(size, size).double().numpy().T
    # The least variance, 5e-4, is taken off where patches hardly vary, so the variances are a little below 1.
    variances = np.linalg.eigvalsh(np.cov(patches_of(images, side), rowvar=False, bias=True))[::-1]
    expected = np.diag(variances / (variances + 5e-4))
    assert expected.diagonal().min() > 0.8
    np.testing.assert_allclose(np.cov(outputs, rowvar=False, bias=True), expected, atol=1e-4)


def test_the_layer_multiplies_every_patch():
    images = smooth_images(count=2)
    layer = fitted(smooth_images())
    found = layer(images)
    assert found.shape == (2, 24, 8, 10)
    expected = patches_of(images) @ layer.filters.flatten(1).double().numpy().T  # place by place, then image by image
    np.testing.assert_allclose(found.permute(2, 3, 0, 1).reshape(-1, 24).numpy(), expected, rtol=1e-4, atol=1e-4)


def test_filters_come_in_pairs_from_the_most_common_to_the_rarest_with_a_sign_that_is_fixed():
    filters = fitted(smooth_images()).filters.flatten(1)
    assert torch.equal(filters[12:], -filters[:12])
    lengths = filters[:12].norm(dim=1)  # one over the deviation
    assert torch.equal(lengths, lengths.sort().values)
    largest = filters[:12].gather(1, filters[:12].abs().argmax(1, keepdim=True))
    assert (largest > 0).all()


def test_before_it_is_fitted_it_passes_pixels_on():
    images = smooth_images(count=2, channels=2)
    outputs = Whitening(2)(images)
    assert torch.equal(outputs[:, 0], images[:, 0, :-1, :-1])
    assert torch.equal(outputs[:, 7], images[:, 1, 1:, 1:])
    assert torch.equal(outputs[:, 8:], -outputs[:, :8])


@pytest.mark.parametrize(
    "images",
    [
        torch.zeros(3, 3, 9, 9),
        torch.full((3, 3, 9, 9), 7.5),
        smooth_images(count=1),
        torch.randn(50, 3, 1, 1, generator=torch.Generator().manual_seed(0)).expand(50, 3, 9, 9),
        smooth_images()[:1, :, :2, :2],
        torch.randint(256, (5, 3, 9, 9), generator=torch.Generator().manual_seed(0)).float(),
    ],
    ids=["black", "one colour", "one image", "images of one colour each", "one patch", "pixels of 0 to 255"],
)
def test_images_that_hardly_vary_give_finite_filters(images):
    filters = fitted(images).filters.flatten(1)
    assert filters.isfinite().all()
    assert filters.norm(dim=1).max() <= (5e-4) ** -0.5 * (1 + 1e-5)
    assert filters.norm(dim=1).min() > 0


def test_it_is_computed_alike_each_time_and_a_few_images_at_a_time(monkeypatch):
    images = smooth_images()
    first = fitted(images).filters
    torch.manual_seed(5)
    assert torch.equal(fitted(images).filters, first)
    assert torch.equal(fitted(images.contiguous(memory_format=torch.channels_last)).filters, first)
    assert not torch.equal(fitted(smooth_images(seed=1)).filters, first)
    monkeypatch.setattr(whitening, "_PIXELS_AT_ONCE", 7 * images[0, 0].numel())  # 40 images are five parts and a rest
    torch.testing.assert_close(fitted(images).filters, first, rtol=1e-4, atol=1e-4)


def test_nothing_in_it_is_learnt_and_everything_is_saved():
    layer = fitted(smooth_images())
    assert not list(layer.parameters())
    assert set(layer.state_dict()) == {"filters"}
    assert not layer(smooth_images()).requires_grad
