"""Every function of every divergence against mpmath with 50 digits, for s from −1000 to 1000."""

from pathlib import Path

import pytest
import torch
from accuracy import worst_error
from mpmath_reference import GENERATORS

from postmax import divergences
from postmax.divergences import catalogue

# Where a function crosses zero away from s = 0 its relative error is set by the rounding of a constant, not by us.
CROSSES_ZERO = {("sl:0.5", "penalty")}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("quantity", ["score", "penalty", "score_slope", "penalty_slope"])
@pytest.mark.parametrize("name", GENERATORS)
def test_accurate_to_a_few_units_in_the_last_place(name, quantity, dtype):
    half = torch.finfo(dtype).bits == 16
    limit = 1 if half else 64 if (name, quantity) in CROSSES_ZERO else 4
    assert worst_error(name, quantity, dtype) <= limit


def test_every_named_divergence_is_measured():
    """Here, or in a test file of its own in this folder that adds its generator and calls `worst_error`."""
    files = [path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py")]
    for name in divergences.names():
        known = name in GENERATORS or divergences.parameter(name) is not None
        if not known and catalogue._DIVERGENCES.is_builtin(name):
            own = f'GENERATORS["{name}"]'
            assert any(own in text and "worst_error(" in text for text in files), name
