"""Smaller images in the first part of a training: which, how small, and what a run does with them."""

import pytest
import torch
from small_runs import image_archive, outcome, own_config, stop_after
from torch.nn import functional as F

from postmax.data import Augment, Batches, Dataset
from postmax.data.shrinking import epochs_of_sides, shrink, shrunk_size, side_at
from postmax.errors import InputError
from postmax.runs import execute
from postmax.train.build import _check_small_images, build

STAGES = [(0.4, 9), (0.7, 10)]


def images(count=20, side=12):
    pixels = torch.randint(256, (count, 3, side, side), generator=torch.Generator().manual_seed(0)).to(torch.uint8)
    return Dataset("noise", pixels, torch.arange(count) % 2, ("a", "b"))


@pytest.mark.parametrize("epochs", range(1, 40))
def test_every_epoch_belongs_to_one_stage(epochs):
    found = epochs_of_sides(STAGES, epochs)
    assert sum(found.values()) == epochs
    sides = [side_at(STAGES, number / epochs) for number in range(epochs)]
    assert [sides[first] for first in found] == list(dict.fromkeys(sides))
    assert [sides.count(sides[first]) for first in found] == list(found.values())
    assert all(side is not None or number / epochs >= 0.7 - 1e-9 for number, side in enumerate(sides))


def test_no_stages_are_no_small_images():
    assert epochs_of_sides([], 7) == {0: 7}
    assert side_at([], 0.0) is None


@pytest.mark.parametrize("size", [(32, 32), (32, 48), (48, 32), (33, 65)])
@pytest.mark.parametrize("side", [None, 1, 18, 31, 32, 33, 100])
def test_size_and_image_agree(size, side):
    batch = torch.rand(2, 3, *size)
    found = shrink(batch, side)
    assert tuple(found.shape[2:]) == shrunk_size(size, side)
    assert min(found.shape[2:]) == min(*size, side or 100)
    if side is None or side >= min(size):
        assert found is batch


def test_a_quarter_of_the_pixels_is_the_mean_of_neighbours_in_the_middle():
    """Antialiasing: a checkerboard becomes grey, and is not sampled to one of its colours."""
    board = (torch.arange(16)[:, None] + torch.arange(16)[None]).remainder(2).float().expand(1, 3, 16, 16)
    found = shrink(board, 8)
    torch.testing.assert_close(found[..., 1:-1, 1:-1], torch.full((1, 3, 6, 6), 0.5))
    sampled = F.interpolate(board, size=(8, 8), mode="nearest")
    assert not torch.allclose(sampled, torch.tensor(0.5), atol=0.4)


def test_features_stay_as_they_are():
    rows = torch.rand(4, 30)
    assert shrink(rows, 2) is rows


def test_batches_are_whole_images_augmented_and_then_shrunk():
    augment = Augment(padding=2, padding_mode="reflect", flip="alternate")
    plain, small = (
        Batches(images(), 5, augment=augment, side_in=side_in) for side_in in (lambda _: None, lambda epoch: 6 + epoch)
    )
    for epoch in (0, 3):
        for whole, shrunk in zip(plain.epoch(epoch), small.epoch(epoch), strict=True):
            assert torch.equal(whole.rows, shrunk.rows)
            torch.testing.assert_close(shrunk.inputs, shrink(whole.inputs, 6 + epoch))


def config_of(path, *overrides):
    return own_config(path, "model=fast", "model.width=4", "data.small=[[0.4,9],[0.7,10]]", "batch_size=8", *overrides)


def test_a_run_sees_them_in_training_and_whole_images_in_evaluation(tmp_path):
    path = image_archive(tmp_path / "images.npz", side=12)
    built = build(config_of(path, "epochs=10"))
    network = built.trainer.method.answer
    seen = []
    network.register_forward_pre_hook(lambda _, inputs: seen.append(tuple(inputs[0].shape[2:])))
    for epoch in (0, 3, 4, 6, 7, 9):
        seen.clear()
        records = built.trainer.epoch(epoch)
        side = 9 if epoch < 4 else 10 if epoch < 7 else 12
        assert set(seen) == {(side, side)}
    seen.clear()
    built.trainer.judge(built.evaluator, records)
    assert set(seen) == {(12, 12)}


def test_a_run_that_was_stopped_goes_on_exactly(tmp_path):
    config = config_of(image_archive(tmp_path / "images.npz", side=12), "epochs=4", "data.augment=shift-flip")
    execute(config, tmp_path / "whole")
    stop_after(config, tmp_path / "stopped", 2)
    execute(config, tmp_path / "stopped")
    assert outcome(tmp_path / "stopped") == outcome(tmp_path / "whole")


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["data.small=[[0.5,4]]", "model=fast"], r"fast, made for images of 12×12 pixels, cannot take images of 4×4\."),
        (["data.small=[[0.5,9]]", "model=mlp"], "network mlp, made for images of 12×12 pixels"),
    ],
)
def test_a_network_that_cannot_take_them_is_refused_before_training(tmp_path, overrides, message):
    path = image_archive(tmp_path / "images.npz", side=12)
    with pytest.raises(InputError, match=message):
        build(own_config(path, *overrides))


def test_features_from_disk_are_refused(tmp_path):
    config = own_config(image_archive(tmp_path / "images.npz", side=12), "model=mlp", "data.small=[[0.5,9]]")
    with pytest.raises(InputError, match=r"data\.small is for images, and these rows are features"):
        _check_small_images(config, torch.nn.Linear(5, 2), (5,))


def test_looking_whether_they_fit_leaves_the_network_as_it_is(tmp_path):
    path = image_archive(tmp_path / "images.npz", side=12)
    with_check, without = (
        build(own_config(path, "model=fast", "model.width=4", *more)).trainer.method.answer
        for more in (["data.small=[[0.5,9]]"], [])
    )
    assert with_check.training == without.training
    for name, value in without.state_dict().items():
        assert torch.equal(with_check.state_dict()[name], value), name


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("[[0.7,24],[0.4,18]]", "small: give pairs"),
        ("[[0.4,18],[0.4,24]]", "small: give pairs"),
        ("[[0.0,18]]", "small: give pairs"),
        ("[[1.0,18]]", "small: give pairs"),
        ("[[0.4,0]]", "at least one pixel"),
        ("18", "small"),
    ],
)
def test_stages_that_make_no_sense(value, message):
    with pytest.raises(InputError, match=message):
        own_config("x.npz", f"data.small={value}")
