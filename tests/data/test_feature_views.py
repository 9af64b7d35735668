"""Views of features: what is dropped, what is added, and what stays."""

import pytest
import torch

from postmax.data import DropAndAddNoise
from postmax.errors import InputError


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(("dropped", "noise"), [(0.2, 0.1), (0.3, 0.2)])
def test_the_share_that_is_dropped_and_the_size_of_the_noise(dropped, noise):
    rows = torch.full((500, 200), 7.0)
    found = DropAndAddNoise(dropped, noise)(rows, generator())
    gone = found < 3.5
    # 100 000 draws: the share has a standard error of 0.0015, the deviation one of 0.3 % or so.
    assert float(gone.double().mean()) == pytest.approx(dropped, abs=0.006)
    # What is kept is not scaled up, and what is dropped gets noise too.
    for part, mean in ((found[~gone], 7.0), (found[gone], 0.0)):
        assert float(part.mean()) == pytest.approx(mean, abs=0.01)
        assert float(part.std()) == pytest.approx(noise, rel=0.03)
    # Every row and every feature draws its own numbers.
    assert len(gone.unique(dim=0)) == 500
    assert len(gone.unique(dim=1).T) == 200


def test_nothing_is_dropped_or_added_with_zeros_and_everything_is_dropped_with_one():
    rows = torch.randn(5, 3)
    assert torch.equal(DropAndAddNoise(0, 0)(rows, generator()), rows)
    assert not DropAndAddNoise(1, 0)(rows, generator()).any()


def test_it_is_a_function_of_the_generator_and_keeps_the_rows():
    rows = torch.randn(5, 3)
    kept = rows.clone()
    change = DropAndAddNoise()
    assert torch.equal(change(rows, generator(1)), change(rows, generator(1)))
    assert not torch.equal(change(rows, generator(1)), change(rows, generator(2)))
    assert torch.equal(rows, kept)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(0, 4), (1, 4), (1, 1), (3, 0)])
def test_shape_and_type_stay(shape, dtype):
    found = DropAndAddNoise()(torch.ones(shape, dtype=dtype), generator())
    assert found.shape == shape
    assert found.dtype == dtype


def test_a_dropped_infinity_is_a_number():
    assert DropAndAddNoise(1, 0.1)(torch.full((2, 2), float("inf")), generator()).isfinite().all()


def test_other_rows_stay_as_they_are():
    for rows in (
        torch.zeros(2, 3, 4, 4, dtype=torch.uint8),
        torch.zeros(2, 3, 4),
        torch.zeros(2, 3, dtype=torch.int64),
    ):
        assert DropAndAddNoise()(rows, generator()) is rows


@pytest.mark.parametrize("settings", [{"dropped": -0.1}, {"dropped": 1.5}, {"noise": -1}, {"noise": float("nan")}])
def test_what_makes_no_sense_is_refused(settings):
    with pytest.raises(InputError, match=f"{next(iter(settings))} is a"):
        DropAndAddNoise(**settings)
