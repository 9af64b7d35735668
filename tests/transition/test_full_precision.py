"""Products in float32 or float64, whatever is around them."""

import pytest
import torch
from half_products import HALF, HalfProducts
from torch.testing import assert_close

import postmax as pm
from postmax.transition.full_precision import full_product

NOISE = pm.Transition([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.1, 0.6]])
POSTERIOR = torch.linspace(-2, 2, 12, dtype=torch.float64).reshape(4, 3).softmax(1)


@pytest.mark.parametrize("autocast", [False, True], ids=["plain", "autocast"])
@pytest.mark.parametrize("dtype", [*HALF, torch.float32, torch.float64], ids=str)
def test_posteriors(dtype, autocast):
    """The result is the one in float64, rounded once to the dtype of the posterior."""
    given = POSTERIOR.to(dtype)
    for act in (NOISE.corrupt_posterior, NOISE.correct, lambda p: NOISE.correct(p, project=False)):
        with HalfProducts() as products, torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            found = act(given)
        assert products.seen == []
        assert found.dtype == dtype
        assert_close(found, act(given.double()).to(dtype), rtol=2 * torch.finfo(dtype).eps, atol=1e-6)


def test_float32_stays_what_it_was():
    rows = POSTERIOR.float()
    assert torch.equal(full_product(rows, NOISE.matrix), rows @ NOISE.matrix.float())
