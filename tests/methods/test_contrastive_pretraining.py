"""Contrastive pre-training: labels are not used in the first phase, and the last layer is not in its way."""

import pytest
import torch
from small_runs import feature_archive, own_config, small_config

from postmax.errors import InputError
from postmax.train.build import build

SHORT = ("method=contrastive-pretraining", "epochs=10", "loss=ce")


def weights(trainer):
    return {name: tensor.clone() for name, tensor in trainer.method.answer.state_dict().items()}


def changed(before, after):
    return {name for name in before if not torch.equal(before[name], after[name])}


def test_what_each_phase_moves():
    trainer = build(small_config(*SHORT, "method.probe_epochs=2")).trainer
    found = []
    for number in range(10):
        before = weights(trainer)
        trainer.epoch(number)
        found.append(changed(before, weights(trainer)))
    body, last = {"body.0.weight", "body.0.bias"}, {"fc.weight", "fc.bias"}
    assert found == [body] * 4 + [last] * 2 + [body | last] * 4


def test_the_last_layer_starts_at_zero():
    trainer = build(small_config(*SHORT)).trainer
    trainer.epoch(0)
    assert not any(parameter.any() for parameter in trainer.method.answer.fc.parameters())


def test_labels_do_not_matter_in_the_first_phase():
    found = []
    for noise in ("symmetric:0.2", "symmetric:0.9"):
        trainer = build(small_config(*SHORT, f"noise={noise}")).trainer
        for number in range(4):
            trainer.epoch(number)
        found.append(weights(trainer))
    assert not changed(*found)


def test_the_first_phase_makes_views_of_a_row_alike():
    trainer = build(small_config(*SHORT, "epochs=20", "method.pretraining_lr=0.01")).trainer
    found = [trainer.epoch(number)[0]["method"]["contrast"] for number in range(8)]
    assert found[-1] < found[0] - 0.2


def test_each_phase_has_the_whole_schedule():
    trainer = build(small_config(*SHORT, "method.probe_epochs=2", "schedule=cosine")).trainer
    spans = {name: found.span for name, found in trainer.resources.optimisers.items()}
    assert spans == {"main": (6, 10), "probe": (4, 6), "contrast": (0, 4)}


def test_the_statistics_of_batch_normalisation_stay_while_the_last_layer_is_trained_alone():
    trainer = build(small_config(*SHORT, "method.probe_epochs=2", "model.batch_norm=true")).trainer
    for number in range(4):
        trainer.epoch(number)
    before = weights(trainer)
    trainer.epoch(4)
    assert changed(before, weights(trainer)) == {"fc.weight", "fc.bias"}


@pytest.mark.parametrize(("epochs", "given", "expected"), [(1, None, 0), (2, None, 1), (3, 7, 2), (10, 0, 0)])
def test_at_least_one_epoch_uses_the_labels(epochs, given, expected):
    options = [] if given is None else [f"method.pretraining_epochs={given}"]
    trainer = build(small_config(*SHORT, f"epochs={epochs}", *options)).trainer
    records = [trainer.epoch(number)[0] for number in range(epochs)]
    assert sum("method" in record for record in records) == expected


@pytest.mark.parametrize("method", ["contrastive-pretraining", "ctrr", "representation-regularisation"])
def test_batches_of_one_row(tmp_path, method):
    path = feature_archive(tmp_path / "few.npz", rows=12, classes=2)
    trainer = build(own_config(path, f"method={method}", "batch_size=1", "epochs=5")).trainer
    for number in range(5):
        assert all(step.loss.isfinite() for step in trainer.steps(number))


@pytest.mark.parametrize(
    "option", ["pretraining_epochs=-1", "probe_epochs=0.5", "temperature=0", "pretraining_lr=0", "pretraining_epochs=x"]
)
def test_options_that_cannot_be(option):
    with pytest.raises(InputError, match=f"method.{option.partition('=')[0]}"):
        build(small_config(*SHORT, f"method.{option}"))
