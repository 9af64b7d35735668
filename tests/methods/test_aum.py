"""AUM against its published rules, written as loops over rows."""

import pytest
import torch
from safetensors.torch import load_file
from small_runs import feature_archive, own_config, small_config

from postmax import losses
from postmax.errors import InputError
from postmax.methods.aum import below_threshold, best_of_each_class, margins, with_one_more_class
from postmax.runs import execute
from postmax.train.build import build
from postmax.transition import Transition


def states(trainer):
    return trainer.save().part("state")


def threshold_rows(trainer):
    """The rows with the class that does not exist, in each of the two trainings: all that the method knows of them."""
    return [set(rows.tolist()) for rows in trainer.method._threshold_rows]


def test_the_margin_of_a_softmax_is_that_of_its_logits():
    logits = torch.randn(40, 6, generator=torch.Generator().manual_seed(1))
    labels = torch.arange(40) % 6
    for row, found in enumerate(margins(logits.log_softmax(-1), labels).tolist()):
        z = logits[row].tolist()
        assert found == pytest.approx(z[labels[row]] - max(z[k] for k in range(6) if k != labels[row]), abs=1e-5)


def test_a_row_is_flagged_if_more_than_a_hundredth_of_the_threshold_rows_is_larger():
    generator = torch.Generator().manual_seed(2)
    areas, thresholds = torch.randn(300, generator=generator), torch.randn(200, generator=generator) - 1
    found = below_threshold(areas, thresholds, 0.99)
    for area, flagged in zip(areas.tolist(), found.tolist(), strict=True):
        assert flagged == (sum(other > area for other in thresholds.tolist()) / 200 > 0.01)
    assert 0 < found.sum() < 300


def test_without_threshold_rows_nothing_is_flagged():
    assert not below_threshold(torch.tensor([-5.0]), torch.tensor([]), 0.99).any()


def test_the_best_row_of_each_class():
    areas, labels = torch.tensor([-1.0, -3.0, 2.0, 2.0, 0.0]), torch.tensor([2, 2, 0, 0, 0])
    assert best_of_each_class(areas, labels, 4).tolist() == [True, False, True, True, False]


def test_margins_are_added_up_for_the_labels_of_each_training():
    trainer = build(small_config("method=aum", "loss=ce", "epochs=8")).trainer
    first, second = threshold_rows(trainer)
    assert len(first) == len(second) == 456 // 3
    assert not first & second
    network, batch = trainer.resources.networks[0], next(iter(trainer.batches.epoch(0)))
    logits = network(batch.inputs).detach()
    assert logits.shape == (64, 3)
    step = next(trainer.steps(0))
    assert step.logits.shape == (64, 2)
    found = states(trainer)
    for row, z, label in zip(batch.rows.tolist(), logits.tolist(), batch.labels.tolist(), strict=True):
        wanted = 2 if row in first else label
        margin = z[wanted] - max(z[k] for k in range(3) if k != wanted)
        assert found["sum of margins"][row].tolist() == pytest.approx([margin, 0], abs=1e-5)
        assert found["steps"][row].tolist() == [1, 0]
    assert found["steps"].sum() == 64


def test_three_networks_one_after_the_other():
    trainer = build(small_config("method=aum", "epochs=8")).trainer
    starts = [network.fc.weight.clone() for network in trainer.resources.networks]
    for epoch, stage in enumerate((0, 0, 1, 1, 2, 2, 2, 2)):
        before = [network.fc.weight.clone() for network in trainer.resources.networks]
        list(trainer.steps(epoch))
        after = [network.fc.weight for network in trainer.resources.networks]
        assert [not torch.equal(a, b) for a, b in zip(before, after, strict=True)] == [
            place == stage for place in range(3)
        ]
        assert int(states(trainer)["stage"]) == stage
        assert trainer.method.answer(torch.zeros(1, 30)).shape == (1, 2)
    assert len({tuple(start.flatten().tolist()) for start in starts}) == 3
    found = trainer.resources.optimisers
    assert [found[name].schedule for name in ("margins 0", "margins 1")] == [None, None]
    assert found["kept"].span == (4, 8)


def test_a_row_is_left_out_if_it_is_flagged_wherever_it_had_its_own_label():
    trainer = build(small_config("method=aum", "epochs=8")).trainer
    thresholds = threshold_rows(trainer)
    found, labels = states(trainer), trainer.method._labels.tolist()
    with torch.no_grad():
        generator = torch.Generator().manual_seed(3)
        found["sum of margins"].copy_(2 * torch.randn(456, 2, generator=generator))
        found["steps"].fill_(2)
        for run, rows in enumerate(thresholds):
            found["sum of margins"][sorted(rows), run] -= 4
        found["steps"][7] = found["sum of margins"][7] = 0  # a row that was never seen
    area = (found["sum of margins"] / found["steps"]).tolist()
    expected, mean = [], []
    for row in range(456):
        runs = [run for run in (0, 1) if row not in thresholds[run]]
        mean.append(sum(area[row][run] for run in runs) / len(runs) if row != 7 else 0.0)
        flags = []
        for run in runs:
            others = [area[other][run] for other in thresholds[run] if other != 7]
            flags.append(row != 7 and sum(other > area[row][run] for other in others) > 0.01 * len(others))
        expected.append(not all(flags))
    for label in (0, 1):
        expected[max((row for row in range(456) if labels[row] == label), key=lambda row: mean[row])] = True
    learnt = trainer.method.learnt()
    assert learnt["kept"].tolist() == expected
    assert 0 < sum(expected) < 456
    assert learnt["area_under_margin"].tolist() == pytest.approx(mean, abs=1e-5)
    seen = {row for step in trainer.steps(4) for row in step.rows.tolist()}
    assert seen <= {row for row in range(456) if expected[row]}


@pytest.mark.parametrize("epochs", [1, 2])
def test_too_few_epochs_for_three_networks_train_one(epochs):
    trainer = build(small_config("method=aum", f"epochs={epochs}")).trainer
    assert len(trainer.resources.networks) == 1
    assert next(trainer.steps(0)).values == {"kept": 1}


def test_a_longer_measurement_than_the_training_is_shortened():
    trainer = build(small_config("method=aum", "epochs=5", "method.margin_epochs=150")).trainer
    assert trainer.method._spans == [(0, 2), (2, 4), (4, 5)]


def test_a_loss_that_knows_the_noise_is_replaced_while_margins_are_measured(tmp_path):
    noise = Transition.symmetric(3, 0.2)
    known = losses.get("fpml", correction="forward", transition=noise, reduction="none")
    other = with_one_more_class(known, 3)
    assert other(torch.zeros(1, 4), torch.tensor([3])).item() == pytest.approx(torch.tensor(4.0).log().item())
    plain = losses.get("gce", reduction="none")
    assert with_one_more_class(plain, 3) is plain
    execute(small_config("method=aum", "loss={name: fpml, correction: forward}"), tmp_path)


def test_wrong_labels_have_small_areas(tmp_path):
    path = feature_archive(tmp_path / "three.npz", rows=600)
    config = own_config(path, "method=aum", "noise=symmetric:0.3", "epochs=12", "optimiser.lr=0.1", "model.hidden=[16]")
    execute(config, tmp_path / "run")
    learnt = load_file(tmp_path / "run" / "learnt.safetensors")
    train = build(config).data[0].train
    right = train.labels == train.clean_labels
    area, kept = learnt["area_under_margin"], learnt["kept"]
    assert area[right].mean() > area[~right].mean() + 0.5
    assert kept[right].float().mean() > kept[~right].float().mean() + 0.3


@pytest.mark.parametrize("option", ["margin_epochs=-1", "margin_epochs=1.5", "percentile=0", "percentile=1"])
def test_options_that_cannot_be(option):
    with pytest.raises(InputError, match=f"method.{option.partition('=')[0]}"):
        build(small_config("method=aum", f"method.{option}"))
