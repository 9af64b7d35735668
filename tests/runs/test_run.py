"""A run from beginning to end: what it computes, what it records, and that it does both twice the same way."""

import json
import random

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from small_runs import feature_archive, image_archive, outcome, own_config, small_config, stop_after, timeless
from torch.nn import functional as F

from postmax import data, losses, models
from postmax.data import Batches, generator_for
from postmax.errors import DivergedError, InputError
from postmax.runs import RunFolder, execute
from postmax.runs.model_file import TRANSITION
from postmax.train.prepare import prepare
from postmax.train.trainer import OneSeedTrainer
from postmax.train.watch import LossWatch


def metrics(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


# What it computes


def test_a_run_is_the_loop_anybody_would_write(tmp_path):
    """Cross-entropy, SGD with momentum, cosine: every figure of every epoch, against plain torch."""
    config = small_config(
        "loss=ce", "epochs=3", "noise=symmetric:0.3", "model.hidden=[6]", "optimiser.weight_decay=0.01"
    )
    result = execute(config, tmp_path / "run")
    part = prepare(config, 0)
    torch.manual_seed(generator_for(0, "network").initial_seed())
    network = models.get("mlp", num_classes=2, input_shape=(30,), hidden=[6])
    optimiser = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9, weight_decay=0.01)
    batches = Batches(part.train, 64, seed=0)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, 3 * len(batches))
    labels, clean = part.train.labels.tolist(), part.train.clean_labels.tolist()
    for epoch, record in enumerate(metrics(tmp_path / "run")):
        losses, predicted = [], {}
        for batch in batches.epoch(epoch):
            logits = network(batch.inputs)
            loss = F.cross_entropy(logits, batch.labels)
            predicted |= dict(zip(batch.rows.tolist(), logits.argmax(1).tolist(), strict=True))
            losses.append(loss.item())
            optimiser.zero_grad()
            loss.backward()
            last_rate = optimiser.param_groups[0]["lr"]
            optimiser.step()
            scheduler.step()
        assert len(predicted) == len(labels)
        rows = [(predicted[i], labels[i], clean[i]) for i in range(len(labels))]
        right, wrong = [r for r in rows if r[1] == r[2]], [r for r in rows if r[1] != r[2]]
        expected = {
            "loss": sum(losses) / len(losses),
            "lr": last_rate,
            "train_accuracy": sum(p == y for p, y, _ in rows) / len(rows),
            "right_labels_learnt": sum(p == y for p, y, _ in right) / len(right),
            "wrong_labels_learnt": sum(p == y for p, y, _ in wrong) / len(wrong),
            "wrong_labels_recovered": sum(p == c for p, _, c in wrong) / len(wrong),
            "passes": len(labels),
            "operations": 3 * len(labels) * 2 * (30 * 6 + 6 * 2),
        }
        with torch.no_grad():
            posterior = network(part.test.inputs).softmax(1)
        confidence, answer = posterior.max(1)
        hits = answer == part.test.labels
        expected["test_accuracy"] = float(hits.double().mean())
        error = 0.0
        for i in range(15):
            inside = (confidence.double() > i / 15) & (confidence.double() <= (i + 1) / 15)
            if inside.any():
                gap = confidence[inside].double().mean() - hits[inside].double().mean()
                error += float(gap.abs()) * int(inside.sum()) / len(hits)
        expected["calibration_error"] = error
        assert (record["epoch"], record["seed"]) == (epoch + 1, 0)
        assert record["seconds"] > 0
        found = {key: record[key] for key in record if key not in ("epoch", "seed", "seconds")}
        assert found == pytest.approx(expected, rel=1e-4, abs=1e-6)
    found = load_file(tmp_path / "run" / "model.safetensors")
    for key, weights in network.state_dict().items():
        torch.testing.assert_close(found[key], weights, rtol=1e-4, atol=1e-6)
    assert result["parameters"] == sum(p.numel() for p in network.parameters())
    assert result["steps"] == 3 * len(batches)
    assert (result["train_rows"], result["test_rows"], result["epochs"]) == (len(labels), len(hits), 3)


def test_clean_data_has_no_wrong_labels_to_learn(tmp_path):
    execute(small_config("noise=none", "epochs=1"), tmp_path)
    (record,) = metrics(tmp_path)
    assert "train_accuracy" in record
    assert not [key for key in record if "labels" in key]


RUNS = {
    "sgd": [],
    "adam, averaged, dropout": ["optimiser.name=adam", "optimiser.lr=0.01", "ema=0.8", "model.dropout=0.3"],
    "three seeds": ["seeds=[2, 0, 1]", "loss={divergence: sl, correction: posterior}", "model.dropout=0.3"],
    "batch norm": ["model.batch_norm=true", "optimiser.clip_norm=1"],
}


@pytest.mark.parametrize("case", RUNS)
def test_twice_is_the_same_bit_for_bit(tmp_path, case):
    results = [execute(small_config(*RUNS[case]), tmp_path / name) for name in "ab"]
    assert timeless(results[0]) == timeless(results[1])
    assert outcome(tmp_path / "a") == outcome(tmp_path / "b")
    assert results[0] == RunFolder(tmp_path / "a").result() == json.loads((tmp_path / "a" / "result.json").read_text())


def test_images_twice(tmp_path):
    path = image_archive(tmp_path / "i.npz")
    config = own_config(path, "model=cnn8", "epochs=2", "batch_size=16", "data.augment=crop-flip", "data.cutout=2")
    for name in "ab":
        execute(config, tmp_path / name)
    assert outcome(tmp_path / "a") == outcome(tmp_path / "b")


def test_a_seed_is_another_run(tmp_path):
    for seed in (0, 1):
        execute(small_config(f"seeds=[{seed}]", "data.split=official", "noise=none"), tmp_path / str(seed))
    first, second = (load_file(tmp_path / name / "model.safetensors") for name in "01")
    assert not torch.equal(first["fc.weight"], second["fc.weight"])


@pytest.mark.parametrize("fails", [False, True])
def test_the_callers_random_numbers_are_left_alone(tmp_path, fails):
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002
    random.seed(5)
    before = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()  # noqa: NPY002
    if fails:
        with pytest.raises(DivergedError):
            execute(small_config("optimiser.lr=1e30", "model.dropout=0.5"), tmp_path / "a")
    else:
        execute(small_config("model.dropout=0.5"), tmp_path / "a")
    after = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()  # noqa: NPY002
    assert torch.equal(before[0], after[0])
    assert before[1:] == after[1:]


def test_the_callers_random_numbers_do_not_matter(tmp_path):
    for seed, name in enumerate("ab"):
        torch.manual_seed(seed)
        execute(small_config("model.dropout=0.5"), tmp_path / name)
    assert outcome(tmp_path / "a") == outcome(tmp_path / "b")


def test_the_callers_threads_are_left_alone(tmp_path):
    stop_after(small_config(), tmp_path, 2)
    torch.set_num_threads(2)
    execute(small_config(), tmp_path)
    assert torch.get_num_threads() == 2


def test_a_run_goes_on_with_as_many_threads_as_before(tmp_path):
    stop_after(small_config(), tmp_path, 2)
    torch.set_num_threads(2)
    execute(small_config(), tmp_path)
    assert json.loads((tmp_path / "environment.json").read_text())["threads"] == "1"
    assert RunFolder(tmp_path).result()["environment"]["threads"] == "1"


@pytest.mark.usefixtures("bf16")
def test_mixed_precision(tmp_path):
    for precision in ("32-true", "bf16-mixed"):
        execute(small_config(f"precision={precision}", "epochs=3", "accelerator=cpu"), tmp_path / precision)
    full, mixed = (load_file(tmp_path / name / "model.safetensors") for name in ("32-true", "bf16-mixed"))
    difference = max(float((full[key] - mixed[key]).abs().max()) for key in full)
    assert 1e-6 < difference < 0.1
    assert all(weights.dtype == torch.float32 for key, weights in mixed.items() if key != TRANSITION)


@pytest.mark.parametrize(("key", "value"), [("precision", "bf16"), ("accelerator", "cup")])
def test_devices_and_precisions_nobody_knows(tmp_path, key, value):
    with pytest.raises(InputError, match=f"{key}.*'{value}'"):
        execute(small_config(f"{key}={value}"), tmp_path / "run")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_device_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="accelerator=cuda"):
        execute(small_config("accelerator=cuda"), tmp_path / "run")


@pytest.mark.parametrize(
    "key",
    [
        "loss.reduction",
        "loss.transition",
        "model.num_classes",
        "method.setup",
    ],
)
def test_options_a_run_decides_by_itself(tmp_path, key):
    with pytest.raises(InputError, match=key.partition(".")[2]):
        execute(small_config(f"{key}=sum"), tmp_path / "run")


def test_how_many_classes_there_are_is_no_setting_of_a_loss(tmp_path):
    with pytest.raises(InputError, match=r"loss\.num_classes is not a setting"):
        execute(small_config("loss=ce", "loss.num_classes=7"), tmp_path / "run")


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("loss=fmpl", "unknown loss 'fmpl'. Did you mean 'fpml'"),
        ("loss.divergense=sl", "unknown option of the loss fpml 'divergense'. Did you mean 'divergence'"),
        ("loss.divergence=klx", "unknown divergence 'klx'. Did you mean 'kl'"),
        ("loss.correction=forwards", "unknown correction 'forwards'"),
        ("model=mpl", "unknown model 'mpl'. Did you mean 'mlp'"),
        ("model.hiden=[3]", "unknown option of mlp 'hiden'. Did you mean 'hidden'"),
        ("model=cnn8", "cnn8"),
        ("method=standart", "unknown method 'standart'. Did you mean 'standard'"),
        ("method.x=1", "the method standard has no options, so 'x' cannot be one"),
        ("noise=symetric:0.1", "unknown kind of noise 'symetric'. Did you mean 'symmetric'"),
        ("noise=symmetric", "symmetric needs a rate after a colon"),
        ("seeds=[-1]", "a seed is a whole number from 0 on"),
    ],
)
def test_parts_nobody_knows(tmp_path, override, message):
    with pytest.raises(InputError, match=message):
        execute(small_config(override), tmp_path / "run")


# Selection


def naive_best(records, key):
    best = None
    for record in records:
        if key in record and (best is None or record[key] > best[key]):
            best = record
    return best


@pytest.mark.parametrize("selection", ["last", "noisy-val", "oracle"])
@pytest.mark.parametrize("every", [1, 3])
def test_selection_rules(tmp_path, selection, every):
    config = small_config(
        f"selection={selection}",
        f"evaluate_every={every}",
        "epochs=8",
        "seeds=[0, 1]",
        "schedule.name=constant",
        "data.validation_share=0.2",
        "optimiser.lr=0.2",
        "loss={divergence: sl, correction: posterior}",
    )
    result = execute(config, tmp_path / "run")
    assert result["selection"] == selection
    evaluated = [e for e in range(1, 9) if e % every == 0 or e == 8]
    epochs = set()
    for lane in range(2):
        records = [record for record in metrics(tmp_path / "run") if record["seed"] == lane]
        assert [record["epoch"] for record in records] == list(range(1, 9))
        assert [record["epoch"] for record in records if "test_accuracy" in record] == evaluated
        assert [record["epoch"] for record in records if "val_accuracy" in record] == evaluated
        for name, prefix in (("model", ""), ("uncorrected", "uncorrected_")):
            reading = result["seeds"][lane]["readings"][name]
            rules = {"last": "epoch", "noisy_val": "val_accuracy", "oracle": f"{prefix}test_accuracy"}
            for rule, key in rules.items():
                best = naive_best([r for r in records if r["epoch"] in evaluated], key)
                assert reading[rule] == {
                    "epoch": best["epoch"],
                    "accuracy": best[f"{prefix}test_accuracy"],
                    "calibration_error": best[f"{prefix}calibration_error"],
                }
        chosen = result["seeds"][lane]["readings"]["model"][selection.replace("-", "_")]
        epochs.add(chosen["epoch"])
        bins = result["seeds"][lane]["readings"]["model"]["reliability"]
        rows = sum(bins["count"])
        assert rows == result["test_rows"]
        pairs = list(zip(bins["count"], bins["accuracy"], bins["confidence"], strict=True))
        assert sum(n * a for n, a, _ in pairs) / rows == pytest.approx(chosen["accuracy"])
        assert sum(n * abs(a - c) for n, a, c in pairs) / rows == pytest.approx(chosen["calibration_error"])
        # The weights that are kept are those of that epoch: a run that ends there has the same.
        shorter = config.model_copy(update={"epochs": chosen["epoch"], "selection": "last"})
        execute(shorter, tmp_path / f"shorter{lane}")
        kept = load_file(tmp_path / "run" / f"model-seed{lane}.safetensors")
        ended = load_file(tmp_path / f"shorter{lane}" / f"model-seed{lane}.safetensors")
        assert all(torch.equal(kept[key], ended[key]) for key in kept)
    assert selection == "last" or epochs != {8}  # or nothing was selected


def test_without_validation_rows_there_is_no_such_rule(tmp_path):
    result = execute(small_config("epochs=2"), tmp_path)
    assert set(result["seeds"][0]["readings"]) == {"model"}
    assert set(result["seeds"][0]["readings"]["model"]) == {"last", "oracle", "reliability"}
    assert "val_accuracy" not in metrics(tmp_path)[0]


@pytest.mark.parametrize("selection", ["last", "noisy-val", "oracle"])
def test_test_labels_influence_nothing_but_the_report(tmp_path, selection):
    train = feature_archive(tmp_path / "train.npz", rows=90)
    x, y = (np.load(feature_archive(tmp_path / "t.npz", seed=1))[key] for key in "xy")
    runs = {}
    for name, labels in (("true", y), ("permuted", np.random.default_rng(0).permutation(y))):
        np.savez(tmp_path / f"{name}.npz", x=x, y=labels)
        config = own_config(
            train,
            f"data.test_path={tmp_path}/{name}.npz",
            "data.validation_share=0.3",
            f"selection={selection}",
            "noise=symmetric:0.3",
            "epochs=6",
            "batch_size=16",
            "model.hidden=[32]",
            "optimiser={name: adam, lr: 0.03}",
        )
        runs[name] = execute(config, tmp_path / name), outcome(tmp_path / name)
    (true, true_files), (permuted, permuted_files) = runs["true"], runs["permuted"]
    readings = [run["seeds"][0]["readings"]["model"] for run in (true, permuted)]
    assert readings[0]["last"]["accuracy"] > readings[1]["last"]["accuracy"] + 0.2
    assert readings[0]["noisy_val"]["epoch"] == readings[1]["noisy_val"]["epoch"]
    of_test = ("test_accuracy", "calibration_error")
    rest = [
        [{k: v for k, v in r.items() if k not in of_test} for r in files["metrics"]]
        for files in (true_files, permuted_files)
    ]
    assert rest[0] == rest[1]
    if selection != "oracle":
        assert true_files["weights"] == permuted_files["weights"]


def test_averaged_weights_are_judged_and_kept(tmp_path):
    """After a single step the average is what its definition says; training goes on without it."""
    for name, overrides in (("plain", []), ("averaged", ["ema=0.7"])):
        execute(small_config("epochs=3", *overrides), tmp_path / name)
        execute(small_config("epochs=1", "batch_size=1000", *overrides), tmp_path / f"{name} step")
    plain, averaged = metrics(tmp_path / "plain"), metrics(tmp_path / "averaged")
    for key in ("loss", "train_accuracy"):
        assert [r[key] for r in plain] == [r[key] for r in averaged]
    assert [r["calibration_error"] for r in plain] != [r["calibration_error"] for r in averaged]
    torch.manual_seed(generator_for(0, "network").initial_seed())
    start = models.get("mlp", num_classes=2, input_shape=(30,), hidden=[4]).state_dict()
    moved, kept = (load_file(tmp_path / f"{name} step" / "model.safetensors") for name in ("plain", "averaged"))
    for key, weights in start.items():
        torch.testing.assert_close(kept[key], 2 / 11 * weights + 9 / 11 * moved[key], rtol=1e-5, atol=1e-6)


# Divergence


def test_a_loss_that_is_no_number(tmp_path):
    config = small_config("optimiser.lr=1e30", "epochs=50")
    with pytest.raises(DivergedError) as caught:
        execute(config, tmp_path)
    message = str(caught.value)
    assert "training diverged in epoch 1, batch 2 of 8: " in message
    assert "a smaller learning rate (optimiser.lr is 1e+30)" in message
    assert "optimiser.clip_norm=1" in message
    assert "loss.floor=0.05" in message
    assert RunFolder(tmp_path).state == "failed"
    assert RunFolder(tmp_path).failure() == message == json.loads((tmp_path / "failure.json").read_text())["error"]


def test_a_loss_that_grows_without_bound(tmp_path):
    config = small_config("optimiser.lr=1e6", "epochs=50", "loss=ce", "optimiser.clip_norm=1e9", "seeds=[3, 4]")
    with pytest.raises(
        DivergedError, match=r"epoch 1, batch \d of 8: the loss of seed [34] is \d\S+\. Try a smaller"
    ) as caught:
        execute(config, tmp_path)
    assert "clip_norm" not in str(caught.value)
    assert "floor" not in str(caught.value)


@pytest.mark.parametrize(
    ("diverges", "hint", "follows"),
    [
        ("loss.divergence=neyman optimiser.lr=0.5", "loss.floor=0.05", "optimiser.lr=0.5 loss.divergence=neyman"),
        ("loss=backward optimiser.lr=5", "loss=fpml with loss.correction=forward", "loss.correction=forward"),
        ("loss=backward optimiser.lr=5", "loss.correction=objective", "loss.correction=objective"),
        ("loss=unbiased optimiser.lr=5", "loss.base=mae", "loss=unbiased loss.base=mae optimiser.lr=5"),
        ("loss=unbiased optimiser.lr=5", "loss=forward", "loss=forward optimiser.lr=5"),
        ("loss=peer optimiser.lr=2", "loss.alpha=0.2", "loss=peer optimiser.lr=0.01"),
        ("loss=cores optimiser.lr=1", "loss.beta=0.5", "loss=cores optimiser.lr=0.01"),
        ("loss=negative-label-smoothing optimiser.lr=1", "loss.rate=-0.2", "loss=negative-label-smoothing"),
        (
            "loss=dmi data.train_rows=60 batch_size=1 optimiser.lr=0.001",
            "optimiser.name=adam optimiser.lr=0.001",
            "loss=dmi data.train_rows=60 batch_size=30",
        ),
    ],
)
def test_a_loss_that_diverges_says_what_helps_and_it_does(tmp_path, diverges, hint, follows):
    with pytest.raises(DivergedError) as caught:
        execute(small_config("epochs=20", *diverges.split()), tmp_path / "first")
    assert hint in str(caught.value)
    hinted = hint.replace(" with ", " ").split()
    execute(small_config("epochs=20", *follows.split(), *hinted), tmp_path / "second")
    assert RunFolder(tmp_path / "second").state == "done"


def test_a_loss_of_batches_from_which_nothing_is_learnt(tmp_path):
    """One class in each batch: the determinant is 0. With two rows, some batches have both classes, and it goes on."""
    for seeds in ("seeds=[0]", "seeds=[3, 4]"):
        settings = ("loss=dmi", "loss.start=0.5", "data.train_rows=60", seeds)
        with pytest.raises(DivergedError, match=r"epoch 3, batch 60 of 60: the loss of seed [03] was 6\.908") as caught:
            execute(small_config("batch_size=1", "optimiser.lr=0.001", *settings), tmp_path / f"one {seeds}")
        assert "dmi is −log of the determinant" in str(caught.value)
        execute(small_config("batch_size=2", *settings), tmp_path / seeds)


def test_advice_is_that_of_the_loss_in_that_epoch():
    config = small_config("loss=dmi", "epochs=10")
    watch = LossWatch(config, losses.get("dmi"), 8)
    for epoch, is_dmi in ((4, False), (5, True)):
        watch.start(epoch)
        assert ("determinant" in str(watch.diverged("it is nan"))) == is_dmi


def test_a_failure_is_remembered_until_the_run_is_restarted(tmp_path, monkeypatch):
    config = small_config("optimiser.lr=1e30")
    with pytest.raises(DivergedError) as first:
        execute(config, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(OneSeedTrainer, "epoch", None)
        with pytest.raises(DivergedError) as second:
            execute(config, tmp_path)
    assert str(first.value) == str(second.value)
    assert RunFolder(tmp_path).state == "failed"
    epochs = []
    with pytest.raises(DivergedError):
        execute(config, tmp_path, restart=True, progress=epochs.append)
    with monkeypatch.context() as patch:
        patch.setattr("postmax.train.optimisers.set_rate", lambda *_: None)  # the mistake is mended
        patch.setattr("postmax.train.resources.make_optimiser", lambda _, p, **__: torch.optim.SGD(p, lr=0.05))
        execute(config, tmp_path, restart=True)
    assert RunFolder(tmp_path).state == "done"
    assert RunFolder(tmp_path).failure() is None


def test_weights_that_are_ruined_by_the_last_step(tmp_path):
    with pytest.raises(DivergedError):
        execute(small_config("optimiser.lr=1e30", "epochs=1", "batch_size=1000", "loss=ce"), tmp_path)


def test_batches_of_one_row_for_batch_normalisation(tmp_path):
    with pytest.raises(InputError, match="batch"):
        execute(small_config("model.batch_norm=true", "batch_size=1", "epochs=1"), tmp_path)


class Elsewhere(torch.Tensor):
    """A loss on another device, for all anybody can see."""

    device = torch.device("cuda")


@pytest.mark.parametrize("bad", [0, 7, 19, 20, 33])
def test_losses_on_other_devices_are_looked_at_now_and_then(bad):
    watch = LossWatch(small_config(), losses.get("ce"), 46)
    watch.start(2)
    for position in range(46):
        loss = torch.tensor([1.0 if position != bad else float("nan")]).as_subclass(Elsewhere)
        try:
            watch.add(loss)
        except DivergedError as error:
            noticed = position, str(error)
            break
    else:
        with pytest.raises(DivergedError) as caught:
            watch.finish()
        noticed = 45, str(caught.value)
    assert f"epoch 3, batch {bad + 1} of 46" in noticed[1]
    assert noticed[0] < bad + 20


# Done is done


def test_what_is_done_is_not_done_again(tmp_path, monkeypatch):
    first = execute(small_config(), tmp_path)
    files = {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in tmp_path.iterdir()}

    def broken(*_, **__):
        raise AssertionError("nothing should be read or trained")

    monkeypatch.setattr(data, "load", broken)
    monkeypatch.setattr(OneSeedTrainer, "epoch", broken)
    assert execute(small_config(), tmp_path) == first
    assert execute(small_config(), tmp_path, previous=True) == first
    assert {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in tmp_path.iterdir()} == files


def test_what_a_killed_process_left_at_the_last_moment_is_tidied_up(tmp_path):
    """A run may be killed after it is done, and before its checkpoints are deleted."""
    folder = tmp_path / "run"
    result = execute(small_config(), folder)
    for name in ("checkpoint.safetensors", "checkpoint.previous.safetensors"):
        (folder / name).write_bytes(b"left over")
    assert execute(small_config(), folder) == result
    assert not list(folder.glob("checkpoint*"))


def test_what_is_done_needs_no_data(tmp_path):
    path = feature_archive(tmp_path / "a.npz")
    first = execute(own_config(path), tmp_path / "run")
    path.unlink()
    assert execute(RunFolder(tmp_path / "run").config(), tmp_path / "run") == first


def test_restart_does_it_again(tmp_path):
    config = small_config()
    execute(config, tmp_path)
    before, epochs = outcome(tmp_path), []
    execute(config, tmp_path, restart=True, progress=lambda state: epochs.append(state.epoch))
    assert epochs == [1, 2, 3, 4]
    assert outcome(tmp_path) == before


def test_a_folder_of_another_run(tmp_path):
    stop_after(small_config(), tmp_path, 2)
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for restart in (False, True):
        with pytest.raises(InputError, match="holds another run; give an empty folder"):
            execute(small_config("epochs=5"), tmp_path, restart=restart)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == files


def test_a_folder_of_another_run_that_is_done(tmp_path):
    execute(small_config(), tmp_path)
    with pytest.raises(InputError, match="holds another run"):
        execute(small_config("epochs=5"), tmp_path)


# What it leaves


def test_files_of_a_finished_run(tmp_path):
    result = execute(small_config(), tmp_path / "a" / "b", checkpoint_seconds=0)
    names = {path.name for path in (tmp_path / "a" / "b").iterdir()}
    expected = {"config.yaml", "environment.json", "metrics.jsonl", "result.json", "done", "model.safetensors"}
    expected |= {"data.json", "confusions.json"}
    assert expected <= names <= expected | {"lock"}
    run = RunFolder(tmp_path / "a" / "b")
    assert run.state == "done"
    assert run.config() == small_config()
    assert result["run_id"] == small_config().run_id
    assert result["environment"]["torch"] == torch.__version__
    assert result["classes"] == ["malignant", "benign"]


def test_weights_know_what_they_are_for(tmp_path):
    config = small_config("loss={divergence: sl, correction: posterior}", "selection=oracle", "seeds=[7]")
    execute(config, tmp_path)
    with safe_open(tmp_path / "model.safetensors", framework="pt") as file:
        about, transition = json.loads(file.metadata()["postmax"]), file.get_tensor(TRANSITION)
    part = prepare(config, 7)
    assert about["model"] == {"name": "mlp", "hidden": [4]}
    assert about["loss"] == {"name": "fpml", "divergence": "sl", "correction": "posterior"}
    assert about["classes"] == ["malignant", "benign"]
    assert torch.equal(transition, part.transition.matrix)
    assert about["features"] == part.scaling._asdict()
    assert (about["selection"], about["run_id"], about["seed"]) == ("oracle", config.run_id, 7)


def test_weights_need_not_be_kept(tmp_path):
    execute(small_config("save_model=false"), tmp_path)
    assert not list(tmp_path.glob("*.safetensors"))


def test_progress(tmp_path):
    seen = []
    execute(small_config("evaluate_every=3", "seeds=[0, 1]"), tmp_path, progress=seen.append)
    records = metrics(tmp_path)
    assert [(state.epoch, state.epochs) for state in seen] == [(e, 4) for e in (1, 2, 3, 4)]
    assert [state.loss for state in seen] == [
        pytest.approx(np.mean([r["loss"] for r in records if r["epoch"] == e])) for e in (1, 2, 3, 4)
    ]
    assert [state.accuracy is None for state in seen] == [True, True, False, False]
    assert seen[-1].accuracy == pytest.approx(np.mean([r["test_accuracy"] for r in records if r["epoch"] == 4]))
    assert seen[-1].seconds_left == 0
    assert all(state.seconds_left > 0 for state in seen[:-1])


def test_small_networks_run_with_one_thread(tmp_path):
    """A second thread brings nothing to them, and on a busy machine costs a lot."""
    torch.set_num_threads(2)
    execute(small_config(), tmp_path)
    assert RunFolder(tmp_path).threads() == 1
    assert torch.get_num_threads() == 2


def test_weights_are_the_same_file_each_time(tmp_path):
    for name in "ab":
        execute(small_config(), tmp_path / name)
    assert (tmp_path / "a" / "model.safetensors").read_bytes() == (tmp_path / "b" / "model.safetensors").read_bytes()
