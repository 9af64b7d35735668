"""A file of noisy labels: whole, verifiable, and not to be tampered with."""

import contextlib
import json

import numpy as np
import pytest
import torch

from postmax import Transition
from postmax.errors import DataError, InputError
from postmax.transition import NoisyLabels, corrupt_by_features

CLEAN = torch.arange(300) % 3


@pytest.fixture
def noisy():
    return Transition.symmetric(3, 0.3).corrupt(CLEAN, 5)


def test_what_it_says_is_what_was_done(noisy):
    assert torch.equal(noisy.mask, noisy.labels != CLEAN)
    assert noisy.rate == pytest.approx(0.3)
    naive = torch.zeros(3, 3, dtype=torch.float64)
    for before, after in zip(CLEAN.tolist(), noisy.labels.tolist(), strict=True):
        naive[before, after] += 1 / 100
    torch.testing.assert_close(noisy.matrix, naive)


@pytest.mark.parametrize("exact", [True, False])
def test_round_trip(tmp_path, exact):
    noisy = Transition.pair(3, 0.2).corrupt(CLEAN, 5, exact=exact)
    noisy.save(tmp_path / "labels.npz")
    loaded = NoisyLabels.load(tmp_path / "labels.npz")
    assert torch.equal(loaded.labels, noisy.labels)
    assert torch.equal(loaded.clean, CLEAN)
    assert torch.equal(loaded.nominal, noisy.nominal)
    assert (loaded.definition, loaded.seed, loaded.exact) == ("pair flip, eta=0.2, K=3", 5, exact)
    loaded.verify()


def test_the_same_noise_gives_the_same_file(tmp_path, noisy):
    noisy.save(tmp_path / "a.npz")
    noisy.save(tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_saving_leaves_nothing_else_behind(tmp_path, noisy):
    noisy.save(tmp_path / "labels.npz")
    noisy.save(tmp_path / "labels.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["labels.npz"]
    with pytest.raises(DataError, match="nowhere"):
        noisy.save(tmp_path / "nowhere" / "labels.npz")


def rewrite(path, **changes):
    with np.load(path, allow_pickle=False) as archive:
        arrays = dict(archive) | changes
    np.savez(path, **{name: value for name, value in arrays.items() if value is not None})


def test_changed_labels_are_noticed(tmp_path, noisy):
    path = tmp_path / "labels.npz"
    for name in ("labels", "clean"):
        noisy.save(path)
        rewrite(path, **{name: 2 - getattr(noisy, name).numpy()})
        with pytest.raises(DataError, match="they were changed"):
            NoisyLabels.load(path)


def test_a_false_story_is_noticed(tmp_path, noisy):
    """Whoever changes the labels and the hash still cannot make them follow from the seed."""
    path = tmp_path / "labels.npz"
    noisy.save(path)
    with np.load(path, allow_pickle=False) as archive:
        story = json.loads(str(archive["story"]))
    rewrite(path, story=np.array(json.dumps(story | {"seed": 6})))
    with pytest.raises(DataError, match="of 300 rows differ"):
        NoisyLabels.load(path).verify()


@pytest.mark.parametrize("cut", [0, 1, 30, 200, -1, -40])
def test_a_truncated_file_is_an_error_that_names_it(tmp_path, noisy, cut):
    path = tmp_path / "labels.npz"
    noisy.save(path)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(DataError, match=r"labels\.npz"):
        NoisyLabels.load(path)


def test_a_flipped_byte_is_an_error(tmp_path, noisy):
    path = tmp_path / "labels.npz"
    noisy.save(path)
    whole = path.read_bytes()
    for position in range(40, len(whole) - 200, 37):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0x55]) + whole[position + 1 :])
        # A byte that carries no content, such as a time stamp, may change; nothing else may.
        with contextlib.suppress(DataError):
            assert torch.equal(NoisyLabels.load(path).labels, noisy.labels)


@pytest.mark.parametrize(
    "changes",
    [
        {"story": None},
        {"labels": None},
        {"story": np.array("not json")},
        {"story": np.array("[]")},
        {"story": np.array('{"format": "postmax noisy labels 1"}')},
        {"labels": np.array(["a"])},
        {"labels": np.full(300, 9)},
    ],
)
def test_something_else_is_an_error(tmp_path, noisy, changes):
    path = tmp_path / "labels.npz"
    noisy.save(path)
    rewrite(path, **changes)
    with pytest.raises(DataError, match=r"labels\.npz"):
        NoisyLabels.load(path)


def test_a_pickle_is_not_opened(tmp_path):
    class Trap:
        def __reduce__(self):
            return (print, ("executed",))

    np.savez(tmp_path / "trap.npz", story=np.array([Trap()], dtype=object), labels=np.zeros(3))
    with pytest.raises(DataError, match=r"trap\.npz"):
        NoisyLabels.load(tmp_path / "trap.npz")


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        NoisyLabels.load(tmp_path / "absent.npz")


# ---- noise that depends on features ----


def test_instance_noise_has_its_rate_and_depends_on_the_row():
    features = torch.randn(20_000, 8, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(20_000) % 5
    noisy = corrupt_by_features(features, labels, 5, 0.4, seed=0)
    assert noisy.rate == pytest.approx(0.4, abs=0.015)
    # The same row gets the same wrong class far more often than chance.
    again = corrupt_by_features(features, labels, 5, 0.4, seed=0)
    assert again.sha256 == noisy.sha256
    half = torch.cat([features[:10_000], features[:10_000]])
    twins = corrupt_by_features(half, torch.cat([labels[:10_000]] * 2), 5, 0.4, seed=0)
    both = twins.mask[:10_000] & twins.mask[10_000:]
    agreement = (twins.labels[:10_000] == twins.labels[10_000:])[both].double().mean()
    assert agreement > 0.5  # 0.25 if the wrong class were random


def test_instance_noise_is_pinned():
    features = torch.arange(4000, dtype=torch.float64).reshape(1000, 4).remainder(7) - 3
    noisy = corrupt_by_features(features, torch.arange(1000) % 4, 4, 0.3, seed=3)
    assert noisy.sha256 == "143bd0ed33c605465a680ba60fbbee40adcafc8fcac554feb1f0f2fc66edccbb"


@pytest.mark.parametrize("eta", [0.0, 1.0])
def test_instance_noise_at_the_ends(eta):
    features = torch.randn(500, 3, generator=torch.Generator().manual_seed(0))
    rate = corrupt_by_features(features, torch.zeros(500, dtype=torch.int64), 3, eta, seed=0).rate
    assert rate == 0 if eta == 0 else rate > 0.85


def test_instance_noise_cannot_be_verified_without_features(tmp_path):
    noisy = corrupt_by_features(torch.randn(50, 3), CLEAN[:50], 3, 0.3, seed=0)
    noisy.save(tmp_path / "labels.npz")
    with pytest.raises(InputError, match="depends on features"):
        NoisyLabels.load(tmp_path / "labels.npz").verify()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"features": torch.full((50, 3), torch.nan)}, "features: index 0 is not finite"),
        ({"features": torch.zeros(49, 3)}, "49 rows of features but 50 labels"),
        ({"eta": 1.5}, "must lie in"),
        ({"eta": float("nan")}, "must lie in"),
        ({"num_classes": 1}, "at least two classes"),
        ({"num_classes": 2}, "outside 0…1"),
    ],
)
def test_instance_noise_refuses_bad_input(change, message):
    good = {"features": torch.zeros(50, 3), "labels": CLEAN[:50], "num_classes": 3, "eta": 0.2, "seed": 0}
    with pytest.raises(InputError, match=message):
        corrupt_by_features(**(good | change))
