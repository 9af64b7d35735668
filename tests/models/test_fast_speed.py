"""The benchmark of the fast network runs, compares equal networks, and counts the operations of a step."""

import fast_network
import pytest
import torch

from postmax.models import flops
from postmax.train import prepare


def test_benchmark_prints_every_form_and_part(monkeypatch, capsys):
    monkeypatch.setattr(prepare, "load_rows", prepare.load_rows)  # the benchmark puts its own rows there
    threads = torch.get_num_threads()
    try:
        fast_network.main(["--widths", "1", "--batches", "4", "--rounds", "1", "--seconds", "0", "--threads", "1"])
    finally:
        torch.set_num_threads(threads)
    printed = capsys.readouterr().out
    for form in ("plain", "channels_last", "postmax"):
        assert f"| 1 | 4 | {form} | " in printed
    assert "most GFLOP/s, float32: " in printed
    parts = printed.rpartition("| width | batch | augmentation | network | optimiser | average |")[2].splitlines()[-1]
    shares = [float(cell.rstrip("% ")) for cell in parts.split("|")[3:7]]
    assert sum(shares) == pytest.approx(100, abs=1)


def test_a_step_computes_no_gradient_that_nobody_needs():
    width, batch = 2, 3
    network = fast_network.new_network(width)
    whitening, first = 2 * 31 * 31 * 24 * 3 * 4, 2 * 31 * 31 * width * 24 * 9
    # Backward computes the gradients of weights and inputs: none for the frozen layer, and no inputs of the one above.
    expected = 3 * flops(network, (3, 32, 32)) - 2 * whitening - first
    assert fast_network.operations(network, batch) == batch * expected


def test_plain_form_is_the_same_network():
    fast_network.check_that_both_are_the_same(2)
    network = fast_network.new_network(2)
    other = fast_network.plain_form(network)
    other[2].weight.data.mul_(2)
    images = torch.randn(5, 3, 32, 32)
    assert torch.allclose(fast_network.plain_form(network).eval()(images), network.eval()(images), atol=1e-4)
    assert not torch.allclose(other.eval()(images), network(images), atol=1e-4)
