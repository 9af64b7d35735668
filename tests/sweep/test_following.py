"""How far a run is, read from a file that grows, is replaced, is cut off and is damaged."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from fake_runs import job

from postmax.runs import Progress, RunFolder
from postmax.sweep.following import Following


class Watched:
    """A job that is followed, with a clock of its own."""

    def __init__(self, folder: Path, **behaviour):
        self.now, self.events, self.folder = 0.0, [], RunFolder(folder)
        self.folder.path.mkdir(exist_ok=True)
        self.job = job(0, epochs=10, **behaviour)
        self.following = Following(self.events.append, clock=lambda: self.now)

    def begin(self):
        self.following.begin(self.job, self.folder.path)
        return self

    def look(self) -> Progress | None:
        before = len(self.events)
        self.following.look()
        assert len(self.events) <= before + 1
        return self.events[-1].progress if len(self.events) > before else None


def line(epoch, seed=0, loss=0.5, **more):
    return json.dumps({"epoch": epoch, "seed": seed, "loss": loss, "seconds": 2.0, **more}) + "\n"


@pytest.fixture
def watched(tmp_path):
    return Watched(tmp_path / "run")


def test_each_look_tells_the_last_epoch_and_nothing_twice(watched):
    watched.begin()
    assert watched.look() is None
    watched.folder.append("metrics.jsonl", line(1))
    # Only the recorded seconds of the first epoch are known: nine more epochs of 2 s.
    assert watched.look() == Progress(1, 10, 0.5, None, 18.0)
    assert watched.look() is None
    watched.now = 9.0
    watched.folder.append("metrics.jsonl", line(2) + line(3) + line(4, loss=0.25, test_accuracy=0.75))
    # Three epochs in 9 s: evaluations count too.
    assert watched.look() == Progress(4, 10, 0.25, 0.75, 18.0)
    assert [(event.kind, event.job) for event in watched.events] == [("progress", watched.job)] * 2
    watched.following.end(watched.job, look=False)
    watched.folder.append("metrics.jsonl", line(5))
    assert watched.look() is None


def test_loss_and_accuracy_are_means_over_the_seeds(watched):
    watched.begin()
    lines = [line(1, seed, loss, test_accuracy=accuracy) for seed, loss, accuracy in ((0, 1, 0.5), (1, 3, 0.75))]
    watched.folder.append("metrics.jsonl", line(0, loss=100) + "".join(lines))
    assert watched.look() == Progress(1, 10, 2.0, 0.625, 18.0)


def test_a_line_that_is_being_written_is_read_when_it_is_whole(watched):
    watched.begin()
    text = line(2)
    watched.folder.append("metrics.jsonl", line(1) + text[:10])
    assert watched.look().epoch == 1
    assert watched.look() is None
    watched.folder.append("metrics.jsonl", text[10:])
    assert watched.look().epoch == 2


def test_records_of_an_earlier_attempt_do_not_count_until_the_run_writes_them_again(watched):
    watched.folder.append("metrics.jsonl", line(1) + line(2) + line(3))
    watched.begin()
    assert watched.look() is None
    watched.folder.write("metrics.jsonl", (line(1) + line(2)).encode())  # resumed from the checkpoint of epoch 2
    assert watched.look().epoch == 2
    watched.now = 5.0
    watched.folder.append("metrics.jsonl", line(3))
    assert watched.look() == Progress(3, 10, 0.5, None, 35.0)


def test_a_file_that_is_replaced_or_shrinks_is_read_from_its_beginning(watched):
    watched.begin()
    watched.folder.append("metrics.jsonl", line(1) + line(2) + line(3))
    assert watched.look().epoch == 3
    watched.folder.write("metrics.jsonl", (line(1) + line(2) + line(3) + line(4)).encode())
    assert watched.look().epoch == 4
    watched.folder.write("metrics.jsonl", line(1).encode())
    assert watched.look() == Progress(1, 10, 0.5, None, 18.0)
    watched.folder.append("metrics.jsonl", line(2) + line(3))
    watched.look()
    os.truncate(watched.folder.path / "metrics.jsonl", len(line(1)))
    assert watched.look().epoch == 1
    (watched.folder.path / "metrics.jsonl").unlink()
    assert watched.look() is None
    watched.folder.append("metrics.jsonl", line(1))
    assert watched.look().epoch == 1


@pytest.mark.parametrize("damage", ["\xff\n", "[]\n", "5\n", '{"epoch": 1}\n', '{"seed": 0}\n'])
def test_damage_is_passed_over(watched, damage):
    watched.begin()
    watched.folder.append("metrics.jsonl", damage)
    assert watched.look() is None
    watched.folder.append("metrics.jsonl", line(2))
    assert watched.look().epoch == 2


def test_only_new_lines_are_read(watched, monkeypatch):
    watched.begin()
    watched.folder.append("metrics.jsonl", "".join(map(line, range(1, 9))))
    watched.look()
    parsed = []
    real = json.loads
    monkeypatch.setattr("postmax.sweep.following.json.loads", lambda text: parsed.append(text) or real(text))
    watched.folder.append("metrics.jsonl", line(9))
    watched.look()
    watched.look()
    assert len(parsed) == 1
