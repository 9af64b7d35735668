"""How many runs go at once if nobody says."""

from __future__ import annotations

import os

import pytest
import torch

from postmax.sweep.cores import cores, default_workers


@pytest.mark.parametrize(
    ("accelerators", "gpu", "alone"),
    [
        (["cpu", "cpu"], True, False),
        (["auto"], False, False),
        (["auto"], True, True),
        (["cpu", "cuda"], False, True),
        (["mps"], False, True),
    ],
)
@pytest.mark.parametrize("kind", ["cuda", "mps"])
def test_runs_on_a_gpu_go_one_by_one(monkeypatch, kind, accelerators, gpu, alone):
    monkeypatch.setattr("postmax.sweep.cores.cores", lambda: 7)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu and kind == "cuda")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: gpu and kind == "mps")
    assert default_workers(accelerators) == (1 if alone else 7)


def test_cores_where_a_process_has_no_affinity(monkeypatch):
    assert cores() == len(os.sched_getaffinity(0))
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 5)
    assert cores() == 5
