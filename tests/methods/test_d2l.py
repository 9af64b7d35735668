"""D2L: the dimensionality against its formula and known spaces, its turning point, and the targets of rows."""

import math
import statistics

import pytest
import torch
from small_runs import outcome, small_config, stop_after

from postmax import losses
from postmax.errors import InputError
from postmax.methods import d2l
from postmax.methods.d2l import has_turned, label_trust, mixed_labels, was_cut
from postmax.methods.parts.dimensionality import local_dimensions, mean_dimension
from postmax.runs import execute
from postmax.train.build import build

SHORT = ("method=d2l", "epochs=10", "method.warmup_epochs=2", "method.window_epochs=2", "optimiser.lr=0.1")


def trainer_of(*overrides):
    return build(small_config(*SHORT, *overrides)).trainer


def normal(rows, features, seed=0):
    return torch.randn(rows, features, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(("rows", "used"), [(128, 20), (40, 10), (9, 4), (5, 4)])
def test_the_dimensionality_is_that_of_the_formula(rows, used):
    features = normal(rows, 5)
    found = local_dimensions(features, 20)
    for row in range(rows):
        distances = sorted(
            math.dist(features[row].tolist(), features[other].tolist()) for other in range(rows) if other != row
        )[:used]
        expected = -used / sum(math.log(distance / distances[-1]) for distance in distances)
        assert found[row].item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_a_flat_space_in_many_features_has_its_own_dimension(dimension):
    inside = torch.rand(3000, dimension, generator=torch.Generator().manual_seed(1))
    features = inside @ normal(dimension, 30)
    assert float(local_dimensions(features, 20).median()) == pytest.approx(dimension, rel=0.2)


def test_the_scale_of_the_features_does_not_matter():
    features = normal(60, 4)
    for scale in (1e-12, 1e12):
        torch.testing.assert_close(
            local_dimensions(features * scale, 20), local_dimensions(features, 20), rtol=1e-4, atol=0
        )


@pytest.mark.parametrize(
    "features",
    [torch.zeros(30, 4), torch.ones(1, 4), torch.arange(4.0)[:, None], torch.eye(40), torch.empty(0, 3)],
    ids=["equal", "one", "four", "equally far", "none"],
)
def test_rows_that_say_nothing_have_no_dimension(features):
    assert len(local_dimensions(features, 20)) == 0
    if len(features):
        assert mean_dimension(features, 20, 128) == 0


def test_some_equal_rows_have_a_finite_dimension():
    features = torch.cat([normal(30, 3), torch.zeros(4, 3)])
    found = local_dimensions(features, 20)
    assert len(found) == 34
    assert found.isfinite().all()
    assert (found > 0).all()


def test_the_mean_is_that_of_groups():
    features = normal(300, 4)
    parts = [local_dimensions(features[start : start + 100], 20) for start in (0, 100, 200)]
    assert mean_dimension(features, 20, 128) == pytest.approx(torch.cat(parts).mean().item())


def test_the_turning_point_is_that_of_the_formula():
    generator = torch.Generator().manual_seed(0)
    seen = set()
    for _ in range(100):
        values = 5 + torch.randn(9, generator=generator, dtype=torch.float64)
        earlier = values[3:8].tolist()
        expected = float(values[-1]) - statistics.mean(earlier) > 2 * statistics.pstdev(earlier)
        assert has_turned(values, 5, 2) == expected
        seen.add(expected)
    assert seen == {True, False}


@pytest.mark.parametrize("values", [[3.0] * 6, [0.1] * 6, [0.0, 1.0, 1.0, 5.0], [1.0, 1.0, 1.0, 0.0], [1.0, 5.0]])
def test_no_turning_point_without_a_rise_or_without_measurements(values):
    assert not has_turned(torch.tensor(values, dtype=torch.float64), 3, 2)


@pytest.mark.parametrize(("rate", "expected"), [(0.06, False), (0.05, True), (0.2, False)])
def test_a_cut_of_the_learning_rate(rate, expected):
    assert was_cut(torch.tensor([0.1, rate])) == expected


def test_labels_are_mixed_with_predictions():
    posterior, labels = torch.tensor([[0.2, 0.5, 0.3], [0.9, 0.1, 0.0]]), torch.tensor([2, 0])
    found = mixed_labels(posterior, labels, 0.6)
    torch.testing.assert_close(found, torch.tensor([[0.0, 0.4, 0.6], [1.0, 0.0, 0.0]]))


def test_the_trust_in_labels():
    dimensions = torch.tensor([0.0, 6.0, 4.0, 5.0, 0.0])
    assert label_trust(0.4, dimensions) == pytest.approx(math.exp(-0.4 * 5 / 4))
    assert label_trust(0.4, torch.zeros(3)) == pytest.approx(math.exp(-0.4))


def test_the_rows_and_their_groups_are_the_same_in_each_epoch(monkeypatch):
    trainer, seen = trainer_of("model.hidden=[]"), []
    plain = d2l.mean_dimension
    monkeypatch.setattr(d2l, "mean_dimension", lambda *given: seen.append(given[0]) or plain(*given))
    for epoch in range(6):
        trainer.epoch(epoch)
    rows = trainer.method._measured
    expected = trainer.batches.dataset.inputs[rows].float()
    assert len(rows) == 456
    for features in seen:  # those of a linear model are the rows themselves
        torch.testing.assert_close(features, expected)
    assert len(trainer.method.learnt()["dimensions"][:6].unique()) == 1
    assert not trainer.method._turned


@pytest.mark.parametrize(("rows", "expected"), [(129, 128), (456, 456)])
def test_no_row_is_alone_in_a_batch(monkeypatch, rows, expected):
    monkeypatch.setattr(d2l, "_ROWS", rows)
    trainer = trainer_of()
    trainer.epoch(0)
    assert len(trainer.method._measured) == expected


def risen_at(monkeypatch, epoch):
    """Let the measured dimensionality fall, rise once in an epoch, and then stay where it is."""
    numbers = iter(10.0 - number / 10 if number < epoch else 20.0 for number in range(100))
    monkeypatch.setattr(d2l, "mean_dimension", lambda *_: next(numbers))


@pytest.mark.parametrize("name", ["ce", "gan-pml"])
def test_the_course_of_a_training(monkeypatch, name):
    risen_at(monkeypatch, 6)
    trainer = trainer_of(f"loss={name}", "noise=symmetric:0.4", "schedule=constant")
    method, loss, labels, start = trainer.method, losses.get(name, reduction="none"), trainer._truth.labels[0], {}
    for epoch in range(8):
        if epoch == 5:
            start = {name: tensor.clone() for name, tensor in method.answer.state_dict().items()}
        steps = iter(trainer.steps(epoch))
        step = next(steps)
        given = labels[step.rows]
        if epoch < 6:
            torch.testing.assert_close(step.loss, loss(step.logits, given).mean())
            assert step.values["turned"] == 0
        else:
            trust = math.exp(-epoch / 10 * 20 / 9.5)
            assert step.values["label_trust"] == pytest.approx(trust)
            targets = torch.zeros(len(given), 2)
            for row, y in enumerate(given.tolist()):
                targets[row, y] += trust
                targets[row, int(step.logits[row].argmax())] += 1 - trust
            torch.testing.assert_close(step.loss, loss(step.logits, targets).mean())
        if epoch == 6:  # it goes on from the weights with which epoch 5 began
            now = {name: tensor.clone() for name, tensor in method.answer.state_dict().items()}
            method.answer.load_state_dict(start)
            torch.testing.assert_close(method.answer(trainer.batches.dataset.inputs[step.rows].float()), step.logits)
            method.answer.load_state_dict(now)
        for _ in steps:
            pass
    assert method.learnt()["dimensions"].tolist() == pytest.approx(
        [10 - n / 10 for n in range(6)] + [20.0] * 2 + [0.0] * 2
    )


@pytest.mark.parametrize(("rise", "expected"), [(3, None), (4, 4), (7, 7)])
def test_nothing_is_looked_for_before_the_window_is_full(monkeypatch, rise, expected):
    risen_at(monkeypatch, rise)
    trainer = trainer_of("schedule=constant")
    turned = trained_values(trainer, 9)
    assert (turned.index(1) if any(turned) else None) == expected


def test_a_fall_of_the_learning_rate_is_no_turning_point(monkeypatch):
    risen_at(monkeypatch, 6)
    settings = ("schedule=step", "schedule.milestones=[5]")
    assert not any(trained_values(trainer_of(*settings), 9))
    risen_at(monkeypatch, 6)
    assert any(trained_values(trainer_of("schedule=constant"), 9))


def trained_values(trainer, epochs):
    return [trainer.epoch(epoch)[0]["method"]["turned"] for epoch in range(epochs)]


def test_it_continues_exactly_around_the_turning_point(tmp_path):
    config = small_config(*SHORT, "method.deviations=0", "optimiser.momentum=0.9", "noise=symmetric:0.4", "epochs=12")
    execute(config, tmp_path / "whole")
    turned = [line["method"]["turned"] for line in outcome(tmp_path / "whole")["metrics"]]
    assert turned[0] == 0
    assert turned[-1] == 1
    first = turned.index(1)
    for epochs in (first - 1, first, first + 1):
        stop_after(config, tmp_path / str(epochs), epochs)
        execute(config, tmp_path / str(epochs))
        assert outcome(tmp_path / str(epochs)) == outcome(tmp_path / "whole")


@pytest.mark.parametrize(("epochs", "expected"), [(120, (40, 5)), (240, (80, 10)), (12, (4, 3)), (2, (1, 3))])
def test_the_phases_are_shares_of_the_training(epochs, expected):
    method = build(small_config("method=d2l", f"epochs={epochs}")).trainer.method
    assert (method._warmup_epochs, method._window) == expected


@pytest.mark.parametrize("option", ["warmup_epochs=-1", "window_epochs=1", "neighbours=3", "deviations=-1"])
def test_options_that_cannot_be(option):
    with pytest.raises(InputError, match=rf"method\.{option.partition('=')[0]} must be"):
        trainer_of(f"method.{option}")
