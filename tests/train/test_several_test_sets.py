"""One training, judged on the test rows of several data sets: each is a reading of its own."""

import json
from dataclasses import replace

import pytest
import torch
from small_runs import outcome, small_config, stop_after

from postmax import models
from postmax.data import catalogue
from postmax.data.dataset import Dataset
from postmax.errors import InputError
from postmax.registry import Registry
from postmax.runs import RunFolder, execute
from postmax.train import make_config
from postmax.train.prepare import load_also, load_rows, prepare
from postmax.train.timing import measure_run

CLASSES = ("ant", "bee", "wasp")


def rows(name, count, seed, *, classes=CLASSES, features=4, shift=0.0):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(count) % len(classes)
    inputs = torch.randn(count, features, generator=generator) + 1.5 * labels[:, None] + shift
    return Dataset(name, inputs, labels, tuple(classes))


SETS = {
    "garden": {"train": rows("garden", 90, 0), "test": rows("garden", 30, 1)},
    # Harder, and of another size.
    "forest": {"test": rows("forest", 21, 2, shift=0.8)},
    "zoo": {"test": rows("zoo", 9, 3, classes=("ant", "bee", "lion"))},
    "pond": {"test": rows("pond", 8, 3, classes=("ant", "bee", "wasp", "newt"))},
    "wide": {"test": rows("wide", 9, 3, features=5)},
}


@pytest.fixture(autouse=True)
def _data_sets(monkeypatch):
    monkeypatch.setattr(catalogue, "_SOURCES", Registry("data set"))
    for name, parts in SETS.items():
        catalogue.register(name, lambda request, parts=parts: parts[request.split], splits=tuple(parts))
    for cached in (load_rows, load_also):
        cached.cache_clear()
    yield
    for cached in (load_rows, load_also):
        cached.cache_clear()


def config(*, also=("forest",), **changes):
    content = {
        "data": {"name": "garden", "also_test": list(also)},
        "noise": "symmetric:0.3",
        "model": {"name": "mlp", "hidden": [8]},
        "optimiser": {"lr": 0.1},
        "loss": "ce",
        "epochs": 6,
        "batch_size": 16,
    }
    data = content["data"] | changes.pop("data", {})
    return make_config({**content, **changes, "data": data})


def accuracies(folder, key, seed=0):
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [line[key] for line in lines if line["seed"] == seed]


def test_each_data_set_is_a_reading_with_all_rules(tmp_path):
    run = config(data={"validation_share": 0.3})
    result = execute(run, tmp_path)
    found, beside = accuracies(tmp_path, "test_accuracy"), accuracies(tmp_path, "forest_test_accuracy")
    assert found != beside
    readings = result["seeds"][0]["readings"]
    assert list(readings) == ["model", "forest"]
    for name, values in (("model", found), ("forest", beside)):
        assert readings[name]["last"]["accuracy"] == values[-1]
        # The best on the rows that the reading is about.
        assert readings[name]["oracle"]["accuracy"] == max(values)
        validated = accuracies(tmp_path, "val_accuracy")
        assert readings[name]["noisy_val"]["epoch"] == validated.index(max(validated)) + 1
        assert readings[name]["noisy_val"]["accuracy"] == values[validated.index(max(validated))]
    assert sum(readings["forest"]["reliability"]["count"]) == 21
    assert result["test_rows"] == 30


def test_the_figures_are_those_of_the_saved_network(tmp_path):
    run = config(seeds=[0, 3])
    result = execute(run, tmp_path)
    from safetensors.torch import load_file  # noqa: PLC0415

    for seed in result["seeds"]:
        network = models.get("mlp", num_classes=3, input_shape=(4,), hidden=[8])
        network.load_state_dict(load_file(tmp_path / f"model-seed{seed['seed']}.safetensors"), strict=False)
        also = prepare(run, seed["seed"]).also["forest"]  # brought to the scale of the training rows
        hits = (network.eval()(also.inputs).argmax(1) == also.labels).double().mean()
        assert seed["readings"]["forest"]["last"]["accuracy"] == pytest.approx(float(hits))


def test_other_readings_have_the_name_of_the_data_set_before_them(tmp_path):
    run = config(loss={"name": "fpml", "divergence": "sl", "correction": "posterior"}, epochs=2)
    readings = execute(run, tmp_path)["seeds"][0]["readings"]
    assert list(readings) == ["model", "uncorrected", "forest", "forest-uncorrected"]


def test_training_is_not_changed_by_what_is_judged_beside(tmp_path):
    without, beside = execute(config(also=()), tmp_path / "a"), execute(config(), tmp_path / "b")
    assert without["seeds"][0]["readings"]["model"] == beside["seeds"][0]["readings"]["model"]
    assert outcome(tmp_path / "a")["weights"] == outcome(tmp_path / "b")["weights"]


def test_a_run_that_was_killed_has_the_same_readings(tmp_path):
    execute(config(selection="oracle"), tmp_path / "whole")
    stop_after(config(selection="oracle"), tmp_path / "killed", 4)
    execute(config(selection="oracle"), tmp_path / "killed")
    assert outcome(tmp_path / "whole") == outcome(tmp_path / "killed")


def test_it_is_part_of_the_identity_only_where_it_is_asked_for():
    assert config().run_id != config(also=()).run_id
    plain = small_config()
    named = plain.model_copy(update={"data": plain.data.model_copy(update={"also_test": ()})})
    assert named.run_id == plain.run_id
    # What a run before there was such a key was called.
    assert plain.run_id == BEFORE
    assert make_config({"data": {"name": "garden", "also_test": "forest"}}).data.also_test == ("forest",)


BEFORE = "230b2b5cc73724a4"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("zoo", r"data.also_test: zoo has other classes than garden \('lion' instead of 'wasp'\)"),
        ("pond", r"pond has other classes than garden \(4 instead of 3\)"),
        ("wide", r"rows of wide have the shape \(5,\), those of garden \(4,\)"),
        ("forrest", "unknown data set 'forrest'. Did you mean 'forest'"),
    ],
)
def test_what_does_not_fit_is_named_before_anything_is_trained(tmp_path, name, message):
    with pytest.raises(InputError, match=message):
        execute(config(also=[name]), tmp_path / "run")
    assert RunFolder(tmp_path / "run").state == "new"


@pytest.mark.parametrize("names", [["forest", "forest"], ["garden"]])
def test_each_once_and_not_the_run_s_own(names):
    with pytest.raises(InputError, match="also_test: name other data sets than the run's own, each once"):
        config(also=names)


def test_its_rows_count_in_the_estimate_of_time(monkeypatch):
    ticks = iter(range(10_000))
    monkeypatch.setattr("postmax.train.timing.time.perf_counter", lambda: next(ticks))
    with_them, without = measure_run(config()).epoch, measure_run(config(also=())).epoch
    assert with_them - without == pytest.approx(21 / 3 / 16)


def test_images_go_through_the_same_window(monkeypatch, tmp_path):
    def images(name, count):
        generator = torch.Generator().manual_seed(count)
        pixels = torch.randint(256, (count, 3, 12, 12), generator=generator, dtype=torch.uint8)
        return replace(rows(name, count, 0), inputs=pixels)

    monkeypatch.setitem(SETS["garden"], "train", images("garden", 12))
    monkeypatch.setitem(SETS["garden"], "test", images("garden", 6))
    monkeypatch.setitem(SETS["forest"], "test", images("forest", 9))
    run = config(model={"name": "small", "width": 2}, data={"augment": "crop-flip"}, epochs=1)
    assert sum(execute(run, tmp_path)["seeds"][0]["readings"]["forest"]["reliability"]["count"]) == 9
