"""What every method must do. A new method is tested here as soon as its file is there."""

import dataclasses
import functools
import json
import math
import tempfile
from pathlib import Path

import pytest
import torch
from hard_rows import HARD_CASES, WITH_THEIR_OWN_LOSS, hard_config, needs_images, pretended_estimate, short_options
from small_runs import BASE, feature_archive, image_archive, outcome, own_config, small_config, stop_after

from postmax import methods
from postmax.errors import InputError
from postmax.runs import execute
from postmax.train import make_config, with_overrides
from postmax.train.build import build

METHODS = methods.names()
LOSSES = ("ce", "gce", "sl-pml", "gan-pml", "sharpened-pml")


# A method may train a new network in its last few steps, so each step must be large.
LARGE_STEPS = ("optimiser.name=adam", "optimiser.lr=0.05")
PRESETS = [(method, preset) for method in METHODS for preset in methods.describe(method).presets]


def method_config(method, *overrides):
    """A run of a method that goes through all of its phases in eight short epochs."""
    settings = (f"method={method}", *short_options(method, 3), "epochs=8", *overrides)
    if needs_images(method):
        return own_config(some_images(), "noise=symmetric:0.2", "model=small", "model.width=4", *settings)
    return small_config(*settings)


@functools.cache
def some_images():
    """Images for the methods that work on images alone."""
    return image_archive(Path(tempfile.mkdtemp()) / "images.npz", rows=120)


def last_accuracy(result):
    return result["seeds"][0]["readings"]["model"]["last"]["accuracy"]


@pytest.mark.parametrize("method", METHODS)
def test_it_learns(tmp_path, method):
    assert last_accuracy(execute(method_config(method, *LARGE_STEPS), tmp_path)) > 0.85


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("method", [name for name in METHODS if name != "standard"])
def test_it_takes_any_loss(tmp_path, method, loss):
    config = method_config(method, f"loss={loss}", "epochs=16", "optimiser.name=adam", "optimiser.lr=0.02")
    if method in WITH_THEIR_OWN_LOSS and loss != "ce":
        with pytest.raises(InputError, match="has a loss of its own"):
            build(config)
    else:
        assert last_accuracy(execute(config, tmp_path)) > 0.8


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("extra", [(), ("ema=0.9", "optimiser.name=adam", "optimiser.lr=0.01", "model.dropout=0.2")])
def test_it_continues_exactly_wherever_it_was_stopped(tmp_path, method, extra):
    config = method_config(method, *extra)
    execute(config, tmp_path / "whole")
    expected = outcome(tmp_path / "whole")
    for epochs in (4,) if extra else (2, 4, 7):
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
    if not needs_images(method):
        sizes = {30 * 4 + 4 + 4 * outputs + outputs for outputs in (2, 3)}  # some methods have one class more
        assert {sum(p.numel() for p in network.parameters()) for network in trainer.resources.networks} <= sizes
    assert trainer.networks == len(trainer.resources.networks)


@pytest.mark.parametrize("method", METHODS)
def test_weights_are_averaged_and_row_state_is_not(method):
    trainer = build(method_config(method, "ema=0.9")).trainer
    trainer.epoch(0)
    state = trainer.save()
    before = {name: tensor.clone() for name, tensor in state.part("state").items()}
    trained = {id(tensor) for tensor in trainer.resources.trained}
    for number, network in enumerate(trainer.resources.networks):
        numbers = [tensor for tensor in network.state_dict().values() if tensor.is_floating_point()]
        is_trained = any(id(parameter) in trained for parameter in network.parameters())  # a teacher is not
        expected = len(numbers) + 1 if is_trained else 0  # one entry counts the steps
        assert len(state.part(f"average/{number}")) == expected
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
    make = image_archive if needs_images(method) else feature_archive
    path = make(tmp_path / "few.npz", rows=3 * rows)
    options = (*short_options(method, 4), *LARGE_STEPS, "epochs=12", "batch_size=8", "data.test_share=0.34")
    config = own_config(path, f"method={method}", *options)
    assert last_accuracy(execute(config, tmp_path / "run")) > 0.3


@pytest.mark.parametrize("method", METHODS)
def test_training_metrics_are_recorded(tmp_path, method):
    execute(method_config(method), tmp_path)
    last = json.loads((tmp_path / "metrics.jsonl").read_text().splitlines()[-1])
    complementary = methods.describe(method).facts.complementary
    better = "wrong_labels_recovered" if complementary else "right_labels_learnt"
    for name in ("train_accuracy", better, "wrong_labels_learnt", "wrong_labels_recovered"):
        assert 0 <= last[name] <= 1
    # A method that leaves out rows with which it disagrees may have learnt all labels of the others.
    assert last[better] >= last["wrong_labels_learnt"]


@pytest.mark.parametrize("case", HARD_CASES)
@pytest.mark.parametrize("method", METHODS)
def test_hard_rows(tmp_path, method, case):
    """The training goes through to its end, and everything that is measured is a finite number."""
    config = hard_config(HARD_CASES[case], tmp_path, method)
    built = build(config, estimate=pretended_estimate)
    trainer = built.trainer
    for number in range(config.epochs):
        records = trainer.epoch(number)
        trainer.judge(built.evaluator, records)
        assert_finite(records)
        if trainer.is_over:
            break
    assert "test_accuracy" in records[0]
    for tensor in (*trainer.weights(0).values(), *trainer.learnt(0).values()):
        assert tensor.isfinite().all()


def assert_finite(content):
    """Check all numbers in lists and dictionaries."""
    if isinstance(content, dict | list):
        for part in content.values() if isinstance(content, dict) else content:
            assert_finite(part)
    elif isinstance(content, float):
        assert math.isfinite(content)


@pytest.mark.parametrize("method", METHODS)
def test_facts_are_known(method):
    entry = methods.describe(method)
    assert entry.facts is not None, "pass Facts(…) to register: docs/methods.md and several tests are made of them"
    for text in ("idea", "source", "needs", "remembers", "posterior", "deviations"):
        assert getattr(entry.facts, text).strip()
    assert entry.facts.networks >= 1
    assert not entry.facts.estimates_unless or entry.facts.estimates_unless in entry.options


@pytest.mark.parametrize("method", METHODS)
def test_the_number_of_networks_is_the_one_in_the_facts(method):
    facts = methods.describe(method).facts
    config = method_config(method, "epochs=100")  # in a short training, some methods go on with their first network
    resources = build(config, estimate=pretended_estimate).trainer.resources
    trained = {id(tensor) for tensor in resources.trained}
    assert facts.networks == sum(any(id(p) in trained for p in network.parameters()) for network in resources.networks)


@pytest.mark.parametrize(("method", "preset"), PRESETS)
def test_presets_are_accepted(tmp_path, method, preset):
    """The options build the method, for a long training of ten classes. The rest of a preset are settings of a run."""
    found = methods.describe(method).presets[preset]
    assert found.source.strip()
    methods.describe(method).check_options(found.options)
    make_config(with_overrides(BASE, [f"{name}={json.dumps(value)}" for name, value in found.training.items()]))
    case = dataclasses.replace(HARD_CASES["clean"], labels=torch.arange(60).numpy() % 10)
    plain = hard_config(case, tmp_path, method, "epochs=1000").model_dump()
    plain["method"] = {"name": method, "preset": preset}
    build(make_config(plain), estimate=pretended_estimate)
