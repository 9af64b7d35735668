"""The noise of image labels, estimated from pixels."""

import pytest
import torch

from postmax.data import Dataset
from postmax.errors import InputError
from postmax.estimation import estimate_transition
from postmax.losses import FPMLLoss
from postmax.progress import listening
from postmax.train import estimates, image_crossfit, image_network
from postmax.train.estimates import are_images, estimated_noise, is_kept, kept_at, rows_to_estimate_from
from postmax.train.image_crossfit import cross_fit_images
from postmax.transition import Transition

pytestmark = pytest.mark.thorough  # most of these tests train networks

NOISE = Transition([[0.7, 0.3, 0.0], [0.1, 0.9, 0.0], [0.0, 0.2, 0.8]])


def coloured(rows=400, side=12, channels=3):
    """Images whose class is the channel that is brighter, or for grey images how bright they are. Labels are clean."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(rows) % 3
    images = torch.randint(0, 100, (rows, channels, side, side), generator=generator)
    if channels == 3:
        images[torch.arange(rows), labels] += 60
    else:
        images += 60 * labels[:, None, None, None]
    return Dataset("colours", images.to(torch.uint8), labels, ("red", "green", "blue"))


@pytest.fixture(autouse=True)
def _few_steps(monkeypatch):
    """Tests of two hundred images a network need fewer steps than real data, and would learn their noise in 600."""
    monkeypatch.setattr(image_network, "_LEAST_STEPS", 200)


@pytest.fixture
def noisy(monkeypatch, tmp_path):
    monkeypatch.setenv("POSTMAX_DATA", str(tmp_path))
    clean = coloured()
    return clean.with_labels(NOISE.corrupt(clean.labels, seed=0).labels)


def test_the_estimate_is_near_the_truth_and_is_kept(noisy, tmp_path, monkeypatch):
    rows = rows_to_estimate_from(noisy)
    assert are_images(rows)
    assert not is_kept(noisy, rows)
    found = estimated_noise(noisy, rows)
    assert (found.matrix - NOISE.matrix).abs().max() < 0.08
    assert found.noise_rate_interval[0] < 0.2 < found.noise_rate_interval[1]
    assert found.classes == noisy.classes
    monkeypatch.setattr(estimates, "estimate_transition", lambda *_, **__: pytest.fail("estimated again"))
    assert is_kept(noisy, rows)
    assert estimated_noise(noisy, rows).to_dict() == found.to_dict()
    assert len(list((tmp_path / "estimates").iterdir())) == 1


@pytest.mark.parametrize("channels", [1, 3])
def test_predictions_follow_the_true_class(channels):
    clean = coloured(channels=channels)
    labels = NOISE.corrupt(clean.labels, seed=0).labels
    found = cross_fit_images(clean.inputs, labels, 3)
    assert found.dtype == torch.float64
    torch.testing.assert_close(found.exp().sum(1), torch.ones(400, dtype=torch.float64))
    assert (found.argmax(1) == clean.labels).double().mean() > 0.95


def test_no_network_predicts_an_image_that_it_was_trained_on():
    """Labels that are pure chance cannot be predicted, unless they were seen."""
    images = torch.randint(0, 256, (200, 3, 12, 12), generator=torch.Generator().manual_seed(1)).to(torch.uint8)
    labels = torch.randint(2, (200,), generator=torch.Generator().manual_seed(2))
    right = (cross_fit_images(images, labels, 2).argmax(1) == labels).double().mean()
    assert 0.35 < right < 0.65


def test_the_result_depends_on_the_seed_and_not_on_the_number_of_threads():
    clean = coloured(rows=120)
    before, found = torch.get_num_threads(), {}
    try:
        for threads, seed in ((1, 0), (2, 0), (1, 1)):
            torch.set_num_threads(threads)
            found[threads, seed] = cross_fit_images(clean.inputs, clean.labels, 3, seed=seed)
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert torch.equal(found[1, 0], found[2, 0])
    assert not torch.equal(found[1, 0], found[1, 1])


def test_random_numbers_of_the_program_stay_as_they_are():
    clean = coloured(rows=60)
    before = torch.random.get_rng_state()
    cross_fit_images(clean.inputs, clean.labels, 3)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_with_a_forward_correction_the_posterior_is_that_of_the_true_class(noisy):
    forward = FPMLLoss("kl", "softmax", transition=NOISE, correction="forward")
    plain, corrected = (cross_fit_images(noisy.inputs, noisy.labels, 3, loss=loss).exp() for loss in (None, forward))
    red = noisy.clean_labels == 0
    assert corrected[red, 0].mean() > plain[red, 0].mean() + 0.05


def test_how_far_it_is_is_told(noisy):
    told = []
    with listening(told.append):
        estimate_transition(
            None, noisy.labels, cross_fit=lambda *a, **o: cross_fit_images(noisy.inputs, *a, **o), replicates=2
        )
    for what in ("cross-fitting networks", "cross-fitting networks with the first estimate"):
        steps = [stage for stage in told if stage.what == what]
        assert steps[0].done == 1
        assert steps[-1].done == steps[-1].total
        assert steps[0].unit == "batches"


def test_what_cannot_be_estimated_is_named_before_any_training(noisy, monkeypatch):
    few = noisy.subset(torch.arange(12))
    with pytest.raises(InputError, match="12 images are too few to estimate the noise of their labels"):
        estimated_noise(few, few.inputs)
    monkeypatch.setattr(image_crossfit, "learn", lambda *_: pytest.fail("it trains"))
    same = noisy.with_labels(torch.ones(400))
    with pytest.raises(InputError, match="all 400 labels are 'green'; nothing can be compared"):
        estimated_noise(same, same.inputs)


def test_images_that_are_all_the_same_say_nothing_and_do_no_harm():
    labels = torch.arange(40) % 2
    found = cross_fit_images(torch.full((40, 3, 12, 12), 7, dtype=torch.uint8), labels, 2)
    assert found.isfinite().all()


def test_small_images_are_features_and_large_ones_are_reduced(noisy):
    small = coloured(rows=30, side=8)
    assert rows_to_estimate_from(small).shape == (30, 192)
    assert rows_to_estimate_from(small).dtype == torch.float32
    large = coloured(rows=30, side=64)
    assert rows_to_estimate_from(large).shape == (30, 3, 32, 32)
    assert rows_to_estimate_from(noisy) is noisy.inputs


class OnDisk:
    """Rows that are read when they are needed."""

    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]


def test_images_on_disk_have_the_same_estimate_as_in_memory(noisy):
    on_disk = Dataset("disk", OnDisk(noisy.inputs), noisy.labels, noisy.classes)
    rows = rows_to_estimate_from(on_disk)
    assert torch.equal(rows, noisy.inputs)
    assert kept_at(on_disk, rows) == kept_at(noisy, noisy.inputs)
    features = Dataset("disk", OnDisk(torch.rand(5, 2)), torch.arange(5) % 2, ("a", "b"))
    assert rows_to_estimate_from(features).shape == (5, 2)


def test_every_shape_of_the_same_bytes_has_its_own_estimate(noisy):
    other = noisy.inputs.reshape(400, 3, 9, 16)
    assert kept_at(noisy, other) != kept_at(noisy, noisy.inputs)
