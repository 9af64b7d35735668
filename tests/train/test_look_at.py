"""What a network derives from training rows before training: which rows it sees, and what a run does with it."""

import pytest
import torch
from small_runs import feature_archive, image_archive, outcome, own_config, stop_after
from torch import nn

from postmax import models
from postmax.data import Dataset, Views, channel_statistics
from postmax.data.augment import Augment
from postmax.errors import InputError
from postmax.models import MLP, Network, catalogue
from postmax.registry import Registry
from postmax.runs import execute
from postmax.train.build import _rows_to_look_at, _some_rows, build
from postmax.train.prepare import prepare, views_of


@pytest.fixture
def archive(tmp_path):
    return image_archive(tmp_path / "images.npz", side=9)


def fast_config(path, *overrides):
    return own_config(
        path, "model=fast", "model.width=4", "batch_size=8", "epochs=3", "data.augment=shift-flip", *overrides
    )


def filters_of(built):
    return [network.whitening.filters for network in built.trainer.resources.networks]


def test_the_whitening_is_that_of_the_training_rows_without_augmentation(archive):
    config = fast_config(archive, "data.cutout=3")
    train = prepare(config, 0).train  # fewer rows than the network would like to see
    assert len(train) < models.Fast.rows_before_training
    pixels = train.inputs.float() / 255
    statistics = channel_statistics(train.inputs)
    mean, deviation = (torch.tensor(values).view(3, 1, 1) for values in (statistics.mean, statistics.std))
    expected = models.Fast((3, 9, 9), 3)
    expected.look_at((pixels - mean) / deviation)
    (found,) = filters_of(build(config))
    torch.testing.assert_close(found, expected.whitening.filters, rtol=1e-3, atol=1e-3)
    assert torch.equal(found, filters_of(build(config))[0])
    assert torch.equal(found, filters_of(build(fast_config(archive, "noise=symmetric:0.4")))[0])  # without labels


def test_both_networks_of_co_teaching_look_at_the_same_rows(archive):
    first, second = build(
        fast_config(archive, "method=co-teaching", "method.forget_rate=0.2")
    ).trainer.resources.networks
    assert torch.equal(first.whitening.filters, second.whitening.filters)
    assert not torch.equal(first.whitening.filters, models.Fast((3, 9, 9), 3).whitening.filters)
    assert not torch.equal(first.fc.weight, second.fc.weight)


@pytest.mark.parametrize("extra", [(), ("ema=0.9", "model.test_flips=true", "optimiser.l1=0.01")])
def test_a_run_that_was_stopped_goes_on_exactly(tmp_path, archive, extra):
    config = fast_config(archive, "optimiser.bias_rate=8", "optimiser.weight_decay=0.001", *extra)
    execute(config, tmp_path / "whole")
    expected = outcome(tmp_path / "whole")
    execute(config, tmp_path / "again")
    assert outcome(tmp_path / "again") == expected
    stop_after(config, tmp_path / "stopped", 2)
    execute(config, tmp_path / "stopped")
    assert outcome(tmp_path / "stopped") == expected
    saved = expected["weights"]["model.safetensors"]["whitening.filters"]
    (built,) = filters_of(build(config))
    assert saved[2] == built.numpy().tobytes()  # nothing has moved it


def test_seeds_side_by_side_are_refused(tmp_path, archive):
    with pytest.raises(InputError, match="for images start one run for each seed"):
        execute(fast_config(archive, "seeds=[0, 1]"), tmp_path / "run")


class FromDisk:
    """Rows that are not a tensor, and that remember which of them were read."""

    def __init__(self, rows):
        self.rows, self.read = rows, []

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        self.read += torch.as_tensor(index).tolist()
        return self.rows[index]


@pytest.mark.parametrize(("count", "rows"), [(4, [0, 3, 6, 9]), (3, [0, 4, 9]), (1, [0]), (10, list(range(10)))])
@pytest.mark.parametrize("wanted_too_many", [False, True])
def test_rows_come_from_all_parts_of_the_training_set(count, rows, wanted_too_many):
    images = torch.randint(256, (10, 3, 4, 4), generator=torch.Generator().manual_seed(0)).to(torch.uint8)
    if wanted_too_many:
        count, rows = 5000, list(range(10))
    for inputs in (images, FromDisk(images)):
        train = Dataset("rows", inputs, torch.arange(10) % 2, ("a", "b"))
        found = _some_rows(train, Views(Augment(padding=2, cutout=2)), count)
        torch.testing.assert_close(found, images[rows] / 255)
    assert sorted(inputs.read) == rows  # no row is read that is not used


@pytest.mark.parametrize(
    ("shape", "rows"),
    [((3, 32, 32), 5000), ((1, 28, 28), 5000), ((3, 224, 224), 102), ((3, 900, 900), 100), ((30,), 5000)],
)
def test_a_network_looks_at_fewer_large_images(shape, rows):
    assert _rows_to_look_at(5000, shape) == rows


def test_features_of_a_table(tmp_path, monkeypatch):
    """A network of one's own may look at any rows; those of seeds side by side too."""
    seen = []

    class Centred(MLP):
        rows_before_training = 7

        def look_at(self, inputs):
            seen.append(inputs)

    monkeypatch.setattr(catalogue, "_ARCHITECTURES", Registry("model"))
    models.register("centred", Centred, summary="for a test")
    config = own_config(feature_archive(tmp_path / "f.npz"), "model=centred", "seeds=[0, 1]")
    build(config)
    assert [tuple(inputs.shape) for inputs in seen] == [(7, 5), (7, 5)]
    train = prepare(config, 0).train
    assert views_of(config.data, train).weak is None
    rows = [row * (len(train) - 1) // 6 for row in range(7)]
    assert torch.equal(seen[0], train.inputs[rows])


def test_networks_that_look_at_nothing_are_as_they_were(tmp_path, monkeypatch):
    assert Network.rows_before_training == 0
    assert Network().look_at(torch.zeros(1)) is None
    # A network of one's own need not be a `Network`.
    monkeypatch.setattr(catalogue, "_ARCHITECTURES", Registry("model"))
    models.register(
        "linear", lambda input_shape, num_classes: nn.Linear(input_shape[0], num_classes), summary="for a test"
    )
    path = feature_archive(tmp_path / "f.npz")
    assert isinstance(build(own_config(path, "model=linear")).trainer.method.answer, nn.Linear)
