"""What several jobs need is made once before the workers start."""

from dataclasses import replace
from pathlib import Path

import pytest
from fake_launcher import Threads
from fake_runs import execute, finish, job

from postmax.data import catalogue
from postmax.data.catalogue import Source
from postmax.data.request import Needed
from postmax.sweep.sweep import sweep
from postmax.train.config import make_config


@pytest.fixture
def made(tmp_path, monkeypatch):
    """How often the features of a data set were made. They lie in `data`."""
    count = []

    def make(request):
        count.append(request.name)
        request.root.mkdir(parents=True, exist_ok=True)
        (request.root / "features").touch()

    files = (Needed(("features",), "They are computed.", make=make),)
    catalogue._SOURCES.get("mnist")
    monkeypatch.setitem(catalogue._SOURCES._values, "mnist", Source(lambda _: None, ("train",), files=files))
    monkeypatch.setenv("POSTMAX_DATA", str(tmp_path / "data"))
    return count


def on_mnist(number):
    one = job(number)
    return replace(one, config=make_config({**one.config.model_dump(mode="json"), "data": {"name": "mnist"}}))


def run(jobs, store: Path, slots=2):
    return sweep(jobs, store, launcher=Threads(slots, execute))


def test_features_are_made_once_for_all_jobs(tmp_path, made):
    jobs = [job(0), *(on_mnist(number) for number in range(1, 4))]
    assert len(run(jobs, tmp_path / "runs").done) == 4
    assert made == ["mnist"]


def test_nothing_is_made_for_jobs_that_are_done(tmp_path, made):
    done = on_mnist(0)
    finish(done.config, tmp_path / "runs")
    run([done, job(1)], tmp_path / "runs")
    assert made == []


def test_one_worker_makes_them_when_it_needs_them(tmp_path, made):
    run([on_mnist(0)], tmp_path / "runs", slots=1)
    assert made == []
