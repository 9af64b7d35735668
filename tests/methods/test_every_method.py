"""What every method must do. A new method is tested here as soon as its file is there."""

import json

import pytest
import torch
from small_runs import feature_archive, outcome, own_config, small_config, stop_after

from postmax import methods
from postmax.errors import InputError
from postmax.runs import execute
from postmax.train.build import build

METHODS = methods.names()
LOSSES = ("ce", "gce", "sl-pml", "gan-pml", "sharpened-pml")


def given_noise(method):
    """The share of wrong labels for a method that would estimate it, which takes seconds."""
    facts = methods.describe(method).facts
    return [f"method.{facts.estimates_unless}=0.2"] if facts and facts.estimates_unless else []


def method_config(method, *overrides):
    """A run of a method that goes through all of its phases in eight short epochs."""
    known = methods.describe(method).options
    shorter = [f"method.{name}=3" for name in ("warmup_epochs", "ramp_epochs") if name in known]
    shorter += ["method.unlabelled_weight=5"] if "unlabelled_weight" in known else []  # for two classes
    return small_config(f"method={method}", *given_noise(method), *shorter, "epochs=8", *overrides)


def last_accuracy(result):
    return result["seeds"][0]["readings"]["model"]["last"]["accuracy"]


@pytest.mark.parametrize("method", METHODS)
def test_it_learns(tmp_path, method):
    assert last_accuracy(execute(method_config(method), tmp_path)) > 0.85


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("method", [name for name in METHODS if name != "standard"])
def test_it_takes_any_loss(tmp_path, method, loss):
    assert (
        last_accuracy(
            execute(
                method_config(method, f"loss={loss}", "epochs=16", "optimiser.name=adam", "optimiser.lr=0.02"), tmp_path
            )
        )
        > 0.8
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("extra", [(), ("ema=0.9", "optimiser.name=adam", "optimiser.lr=0.01", "model.dropout=0.2")])
def test_it_continues_exactly_wherever_it_was_stopped(tmp_path, method, extra):
    config = method_config(method, *extra)
    execute(config, tmp_path / "whole")
    expected = outcome(tmp_path / "whole")
    for epochs in (2, 4, 7):
        folder = tmp_path / f"stopped-{epochs}"
        stop_after(config, folder, epochs)
        execute(config, folder)
        assert outcome(folder) == expected


@pytest.mark.parametrize("method", METHODS)
def test_it_never_sees_the_clean_labels(monkeypatch, method):
    seen = []
    plain = methods.Method.__init__

    def spy(self, setup):
        seen.append(setup.train.clean_labels)
        plain(self, setup)

    monkeypatch.setattr(methods.Method, "__init__", spy)
    build(method_config(method))
    assert seen == [None]


@pytest.mark.parametrize("method", METHODS)
def test_only_networks_count_as_parameters(method):
    trainer = build(method_config(method)).trainer
    assert trainer.parameters == sum(p.numel() for p in trainer.method.answer.parameters())
    in_networks = {id(p) for network in trainer.resources.networks for p in network.parameters()}
    assert {id(p) for p in trainer.method.answer.parameters()} <= in_networks
    assert {sum(p.numel() for p in network.parameters()) for network in trainer.resources.networks} <= {
        30 * 4 + 4 + 4 * outputs + outputs
        for outputs in (2, 3)  # some methods have one class more
    }
    assert trainer.networks == len(trainer.resources.networks)


@pytest.mark.parametrize("method", METHODS)
def test_weights_are_averaged_and_row_state_is_not(method):
    trainer = build(method_config(method, "ema=0.9")).trainer
    trainer.epoch(0)
    state = trainer.save()
    before = {name: tensor.clone() for name, tensor in state.part("state").items()}
    for number, network in enumerate(trainer.resources.networks):
        assert len(state.part(f"average/{number}")) == len(network.state_dict()) + 1  # one entry counts the steps
    with trainer.averaged():
        for name, tensor in trainer.save().part("state").items():
            assert torch.equal(tensor, before[name])


@pytest.mark.parametrize("method", [name for name in METHODS if not methods.describe(name).one_network_one_loss])
def test_several_seeds_are_refused_unless_they_can_be_stacked(tmp_path, method):
    with pytest.raises(InputError, match=f"the method {method} trains one seed at a time: start one run for each seed"):
        execute(method_config(method, "seeds=[0, 1]"), tmp_path)


@pytest.mark.parametrize("rows", [4, 65])
@pytest.mark.parametrize("method", METHODS)
def test_few_rows_and_a_last_batch_of_one(tmp_path, method, rows):
    path = feature_archive(tmp_path / "few.npz", rows=3 * rows, classes=3)
    settings = ("epochs=12", "batch_size=8", "data.test_share=0.34")
    config = own_config(path, f"method={method}", *given_noise(method), *settings)
    assert last_accuracy(execute(config, tmp_path / "run")) > 0.3


@pytest.mark.parametrize("method", METHODS)
def test_training_metrics_are_recorded(tmp_path, method):
    execute(method_config(method), tmp_path)
    last = json.loads((tmp_path / "metrics.jsonl").read_text().splitlines()[-1])
    for name in ("train_accuracy", "right_labels_learnt", "wrong_labels_learnt", "wrong_labels_recovered"):
        assert 0 <= last[name] <= 1
    assert last["right_labels_learnt"] > last["wrong_labels_learnt"]
