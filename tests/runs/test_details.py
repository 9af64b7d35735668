"""The files beside the result: data, confusions, and the estimate of the noise."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from small_runs import DETAILS, image_archive, outcome, own_config, small_config, stop_after

from postmax import models
from postmax.data.table_reading import TableReading
from postmax.runs import DamagedRun, RunFolder, checkpoint, execute
from postmax.runs.details import read_confusions, read_data, read_details, read_estimates
from postmax.train.prepare import prepare

ESTIMATED = (
    "transition=estimated",
    "loss.correction=forward",
    "data.labels=kind",
    "data.drop=[id]",
    "data.missing=median",
)


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A table with numbers, categories, missing values, an id and wrong labels."""
    monkeypatch.setenv("POSTMAX_DATA", str(tmp_path / "data"))
    rng = np.random.default_rng(0)
    lines = ["id,size,colour,kind"]
    for i in range(300):
        kind = i % 2
        label = 1 - kind if rng.random() < 0.2 else kind
        size = "" if i in (5, 6, 7) else f"{rng.normal(4 * kind):.3f}"
        lines.append(f"r{i},{size},{'' if i == 9 else ('red', 'blue')[i % 3 == 0]},{('cat', 'dog')[label]}")
    path = tmp_path / "table.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_confusions_are_those_of_the_saved_network(tmp_path):
    """Counted again, row by row, with the weights in the folder."""
    config = small_config("selection=oracle")
    execute(config, tmp_path)
    part = prepare(config, 0)
    network = models.get("mlp", num_classes=2, input_shape=(30,), hidden=[4])
    network.load_state_dict({k: t for k, t in load_file(tmp_path / "model.safetensors").items() if "/" not in k})
    with torch.no_grad():
        predicted = network.eval()(part.test.inputs).argmax(1).tolist()
    counts = {}
    for label, answer in zip(part.test.labels.tolist(), predicted, strict=True):
        counts[label, answer] = counts.get((label, answer), 0) + 1
    found = read_confusions(RunFolder(tmp_path))[0]["readings"]["model"]["oracle"]
    assert {(label, answer): rows for label, answer, rows in found["cells"]} == counts


@pytest.mark.parametrize(
    "settings",
    [
        ["seeds=[3, 1]", "loss={divergence: sl, correction: posterior}"],
        ["selection=noisy-val", "data.validation_share=0.2", "evaluate_every=2"],
        ["method=co-teaching", "method.forget_rate=0.2"],
    ],
)
def test_confusions_agree_with_every_accuracy(tmp_path, settings):
    config = small_config(*settings)
    result = execute(config, tmp_path)
    for seed, kept in zip(result["seeds"], read_confusions(RunFolder(tmp_path)), strict=True):
        assert seed["seed"] == kept["seed"]
        assert set(kept["readings"]) == set(seed["readings"])
        for name, reading in seed["readings"].items():
            assert set(kept["readings"][name]) == set(reading) - {"reliability"}
            for rule, one in kept["readings"][name].items():
                right = sum(rows for label, answer, rows in one["cells"] if label == answer)
                rows = sum(rows for _, _, rows in one["cells"])
                assert (one["epoch"], right / rows) == (
                    reading[rule]["epoch"],
                    pytest.approx(reading[rule]["accuracy"]),
                )
                assert rows == result["test_rows"]


def test_the_data_of_a_table(tmp_path, table):
    config = own_config(table, *ESTIMATED, "data.validation_share=0.2", "data.split=random", "seeds=[0, 1]")
    result = execute(config, tmp_path / "run")
    found = read_data(RunFolder(tmp_path / "run"))
    reading = TableReading.from_dict(found["table"])
    assert (reading.label, reading.dropped, reading.missing) == ("kind", ("id",), {"size": 3, "colour": 1})
    assert reading.encoder.features == ("size", "colour=(missing)", "colour=blue", "colour=red")
    assert found["shape"] == [4]
    for seed, rows in zip((0, 1), found["seeds"], strict=True):
        part = prepare(config, seed)
        for name in ("train", "validation", "test"):
            labels = getattr(part, name).labels.tolist()
            assert rows[name] == [labels.count(0), labels.count(1)]
        assert sum(rows["train"]) == result["train_rows"]


def test_the_encoder_in_the_folder_encodes_like_the_run(tmp_path, table):
    config = own_config(table, *ESTIMATED)
    execute(config, tmp_path / "run")
    encoder = TableReading.from_dict(read_data(RunFolder(tmp_path / "run"))["table"]).encoder
    columns = {"size": np.array(["1.5", ""], dtype=object), "colour": np.array(["red", ""], dtype=object)}
    torch.testing.assert_close(
        encoder.encode(columns), torch.tensor([[1.5, 0, 0, 1], [float("nan"), 1, 0, 0]]), equal_nan=True
    )


def test_the_data_of_images(tmp_path):
    execute(own_config(image_archive(tmp_path / "images.npz"), "model=cnn8", "epochs=1"), tmp_path / "run")
    found = read_data(RunFolder(tmp_path / "run"))
    assert (found["shape"], found["table"]) == ([3, 8, 8], None)
    assert sum(found["seeds"][0]["train"]) + sum(found["seeds"][0]["test"]) == 40


def test_the_estimate_in_the_folder_is_what_the_loss_used(tmp_path, table):
    config = own_config(table, *ESTIMATED, "data.split=random", "seeds=[0, 4]")
    result = execute(config, tmp_path / "run")
    found = read_estimates(RunFolder(tmp_path / "run"), [0, 4])
    assert sorted(path.name for path in (tmp_path / "run").glob("transition*")) == [
        "transition-seed0.json",
        "transition-seed4.json",
    ]
    for seed, estimate in zip(result["seeds"], found, strict=True):
        torch.testing.assert_close(estimate.matrix, torch.tensor(seed["transition"], dtype=torch.float64))
        low, high = estimate.noise_rate_interval
        assert 0 < low <= estimate.noise_rate <= high < 0.5
        assert estimate.classes == ("cat", "dog")


def test_it_can_be_given_to_the_next_run(tmp_path, table):
    execute(own_config(table, *ESTIMATED), tmp_path / "first")
    again = [setting for setting in ESTIMATED if not setting.startswith("transition")]
    second = execute(own_config(table, *again, f"transition={tmp_path / 'first' / 'transition.json'}"), tmp_path / "2")
    first = json.loads((tmp_path / "first" / "result.json").read_text())["seeds"][0]["transition"]
    assert second["seeds"][0]["transition"] == [pytest.approx(row) for row in first]


def test_a_run_without_an_estimate_has_no_transition_file(tmp_path):
    execute(small_config("loss.correction=forward"), tmp_path)
    assert not list(tmp_path.glob("transition*"))
    assert read_estimates(RunFolder(tmp_path), [0]) == []


def test_stopped_at_every_epoch(tmp_path, table):
    config = own_config(table, *ESTIMATED, "seeds=[0, 1]", "selection=oracle", "data.split=random")
    execute(config, tmp_path / "whole")
    for epoch in range(2, config.epochs + 1):
        stop_after(config, tmp_path / "parts", epoch)
    execute(config, tmp_path / "parts")
    assert set(outcome(tmp_path / "whole")["details"]) == {
        *("data.json", "confusions.json", "transition-seed0.json", "transition-seed1.json")
    }
    assert outcome(tmp_path / "parts") == outcome(tmp_path / "whole")


def test_a_checkpoint_of_an_older_version(tmp_path):
    """It knows no confusions. The run goes on, and leaves out what it cannot know."""
    config = small_config("selection=oracle", "optimiser.lr=0.3")
    whole = execute(config, tmp_path / "whole")
    stop_after(config, tmp_path / "parts", 4)
    saved = checkpoint.load(tmp_path / "parts")
    old = {key: value for key, value in saved.values.items() if key != "confusions"}
    checkpoint.save(tmp_path / "parts", checkpoint.Checkpoint(saved.epoch, saved.tensors, old))
    assert execute(config, tmp_path / "parts")["seeds"] == whole["seeds"]
    kept, all_of_them = (
        read_confusions(RunFolder(tmp_path / name))[0]["readings"]["model"] for name in ("parts", "whole")
    )
    assert kept["last"] == all_of_them["last"]
    assert whole["seeds"][0]["readings"]["model"]["oracle"]["epoch"] <= saved.epoch
    assert "oracle" not in kept


def test_a_new_start_removes_them(tmp_path):
    execute(small_config(), tmp_path)
    (tmp_path / "transition-seed9.json").write_text("{}")
    execute(small_config(), tmp_path, restart=True)
    assert sorted(path.name for name in DETAILS for path in tmp_path.glob(name)) == ["confusions.json", "data.json"]


def test_folders_of_older_versions_have_none(tmp_path):
    assert read_data(RunFolder(tmp_path)) is None
    assert read_confusions(RunFolder(tmp_path)) == []


DAMAGED = ["{", "[]", "null", "{}", '{"format": 3}', "\udcff", "[" * 100_000]


@pytest.mark.parametrize("content", DAMAGED, ids=range(len(DAMAGED)))
def test_damage_is_named(tmp_path, content):
    for name, read in (("data.json", read_data), ("confusions.json", read_confusions)):
        (tmp_path / name).write_bytes(content.encode("utf-8", "surrogateescape"))
        with pytest.raises(DamagedRun, match=rf"{name} is .*Start again with execute\("):
            read(RunFolder(tmp_path))


@pytest.mark.parametrize(
    ("name", "form"), [("data.json", "postmax data 1"), ("confusions.json", "postmax confusions 1")]
)
def test_what_lacks_a_part_is_damaged(tmp_path, name, form):
    (tmp_path / name).write_text(json.dumps({"format": form}))
    found = read_details(RunFolder(tmp_path), [0])
    assert "it has no '" in found.damage[name.partition(".")[0]]


def test_a_damaged_file_does_not_hide_the_others(tmp_path):
    execute(small_config(), tmp_path)
    assert not read_details(RunFolder(tmp_path), [0]).damage
    (tmp_path / "confusions.json").unlink()
    (tmp_path / "confusions.json").mkdir()  # it exists and cannot be read, also not by root
    (tmp_path / "transition.json").write_text("{")
    found = read_details(RunFolder(tmp_path), [0])
    assert found.data == read_data(RunFolder(tmp_path))
    assert (found.confusions, found.estimates) == ([], [])
    assert found.damage.keys() == {"confusions", "estimates"}
    assert "confusions.json cannot be read (Is a directory). Start again" in found.damage["confusions"]
    assert "transition.json is not a transition estimate, or it is damaged" in found.damage["estimates"]
    assert "Start again with execute(" in found.damage["estimates"]
