"""Label Wave: which predictions count as changed, when it stops, and whose weights it keeps."""

import pytest
import torch
from small_runs import small_config

from postmax.errors import InputError
from postmax.methods.label_wave import has_risen, moving_means
from postmax.train.build import build


def wave(*overrides, epochs=10):
    options = ("method=label-wave", "method.window_epochs=1", "method.patience_epochs=2", f"epochs={epochs}")
    return build(small_config(*options, *overrides)).trainer


def pretend(monkeypatch, trainer, changes):
    """Let the method believe that these shares of the predictions have changed, epoch by epoch."""
    judge = trainer.method._judge
    monkeypatch.setattr(trainer.method, "_judge", lambda number, _: judge(number, changes[number]))


def test_means_by_hand():
    assert moving_means(torch.tensor([6.0, 3, 0, 3, 9]), 3).tolist() == [3, 2, 4]
    assert moving_means(torch.tensor([6.0, 3]), 3).tolist() == []


@pytest.mark.parametrize(
    ("means", "expected"),
    [
        ([], False),
        ([5, 4, 3, 2], False),
        ([5, 4, 4.5], False),
        ([5, 4, 4.5, 4.3], True),
        ([5, 4, 4.5, 4.01], False),
        ([5, 4, 4.1, 3.9, 4.2, 4.4], True),
    ],
)
def test_when_a_rise_is_seen(means, expected):
    assert has_risen(torch.tensor(means), 2, 0.05) is expected


def test_changes_are_counted_by_row():
    trainer = wave()
    classes, shares = [], []
    for number in range(3):
        seen = torch.full((456,), -1)
        for step in trainer.steps(number):
            seen[step.rows] = step.logits.argmax(-1)
        classes.append(seen)
        shares.append(step.values["changed"])
    assert shares[0] == 0
    for number in (1, 2):
        expected = sum(int(a != b) for a, b in zip(classes[number], classes[number - 1], strict=True)) / 456
        assert shares[number] == pytest.approx(expected)
    torch.testing.assert_close(trainer.learnt(0)["changes"][:3], torch.tensor(shares))


def test_the_weights_of_the_minimum_are_kept_and_the_run_stops(monkeypatch):
    trainer = wave()
    kept = []
    pretend(monkeypatch, trainer, [0.0, 0.5, 0.3, 0.35, 0.4])
    for number in range(5):
        assert not trainer.is_over
        *_, last = trainer.steps(number)
        kept.append(trainer.method._network.fc.weight.detach().clone())
    assert trainer.is_over
    assert last.values["rise_seen"] == 1
    assert torch.equal(trainer.method.answer.fc.weight, kept[2])
    assert not torch.equal(kept[2], kept[3])


def test_without_a_rise_the_last_network_answers(monkeypatch):
    trainer = wave(epochs=4)
    pretend(monkeypatch, trainer, [0.0, 0.5, 0.3, 0.31])
    for number in range(4):
        *_, last = trainer.steps(number)
    assert not trainer.is_over
    assert last.values["rise_seen"] == 0
    assert torch.equal(trainer.method.answer.fc.weight, trainer.method._network.fc.weight)


@pytest.mark.parametrize(("scheduled", "expected"), [("false", None), ("true", "cosine")])
def test_the_learning_rate_is_constant_unless_it_is_wanted_otherwise(scheduled, expected):
    schedule = wave(f"method.scheduled={scheduled}").resources.optimisers["main"].schedule
    assert (schedule and schedule.name) == expected


@pytest.mark.parametrize("option", ["window_epochs=0", "patience_epochs=0", "margin=-1", "window_epochs=1.5"])
def test_options_that_cannot_be(option):
    with pytest.raises(InputError, match=f"method.{option.partition('=')[0]} must be a"):
        build(small_config("method=label-wave", f"method.{option}"))
