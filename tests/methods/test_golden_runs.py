"""A tiny run of every method gives the numbers that it gave before.

The other tests say what a method must do. This one notices every change of what it does, wanted or not.

The numbers come from float32, and other CPUs and versions of torch round its last digits in another way. So they are
not compared digit by digit: losses, mean posteriors and what a method reports may differ by a thousandth, and the
number of rows that are predicted right by one. The runs have few steps, so that the last digits cannot grow to that
size: with the instructions of AVX-512, AVX2 and SSE4, no number differed by more than a tenth of it. A change of
the algorithm is far larger. Random numbers come from torch's generator for the CPU, the same ones everywhere.
"""

import golden_runs
import pytest

from postmax import methods

KNOWN = golden_runs.known()
RELATIVE = 1e-3
WRITE = "python tests/methods/golden_runs.py"


@pytest.mark.parametrize("method", methods.names())
def test_numbers_are_the_known_ones(method):
    assert method in KNOWN, f"the method is new: run {WRITE}"
    found, expected = golden_runs.run(method), KNOWN[method]
    assert abs(found.pop("right") - expected["right"]) <= 1
    for name, values in found.items():
        near = pytest.approx(expected[name], rel=RELATIVE, abs=1e-9)
        assert values == near, f"{name} has changed. If that is meant: {WRITE} {method}"


def test_no_method_is_gone():
    assert set(KNOWN) <= set(methods.names()), f"a method has another name now, or is gone: run {WRITE}"
