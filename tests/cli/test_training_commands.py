"""`postmax train | resume | reproduce | report | list | doctor` as a person meets them."""

import errno
import gzip
import json
import os
import re
import shlex
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from sklearn.datasets import load_digits

from postmax.cli import main
from postmax.cli.doctor import _PACKAGES
from postmax.report.selection_words import SELECTION_IN_WORDS
from postmax.runs import RunFolder, execute
from postmax.tables import catalogue
from postmax.train import make_config
from postmax.train.precision import Verdict
from postmax.train.timing import Cost


def run(capsys, *arguments):
    """Exit code, standard output and standard error of a command."""
    code = 0
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as stop:
        code = stop.code or 0
    output = capsys.readouterr()
    return code, output.out, output.err


def train_json(capsys, *arguments):
    code, out, err = run(capsys, "train", *arguments, "--json")
    assert code == 0, err
    return json.loads(out)


QUICK = ("epochs=2", "model.hidden=[8]", "accelerator=cpu")


def test_train_names_its_folder_by_the_configuration_and_never_runs_twice(capsys, tmp_path):
    arguments = ("digits", "noise=symmetric:0.4", *QUICK, "--out", tmp_path)
    code, out, _ = run(capsys, "train", *arguments)
    assert code == 0
    for part in (
        "test accuracy (last epoch):",
        "wrong labels: 40.0%",
        "calibration error",
        "memorised",
        "report.html",
    ):
        assert part in out
    folders = list((tmp_path / "runs").iterdir())
    assert len(folders) == 1
    before = {file: file.stat().st_mtime_ns for file in folders[0].iterdir() if file.name == "metrics.jsonl"}
    again = train_json(capsys, *arguments)
    assert before == {file: file.stat().st_mtime_ns for file in before}
    assert again["folder"] == str(folders[0])
    assert again["run_id"] == folders[0].name
    assert (folders[0] / "report.html").exists()


def test_train_reports_every_seed_with_mean_and_deviation(capsys, tmp_path):
    code, out, _ = run(capsys, "train", "breast-cancer", "seeds=[0,1,2]", *QUICK, "--out", tmp_path)
    assert code == 0
    assert "(n = 3)" in out
    assert "±" in out
    assert re.search(r"^test accuracy \(last epoch\): \d+\.\d ± \d+\.\d % \(n = 3\)$", out, re.MULTILINE)


def test_train_tells_what_it_estimated(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("POSTMAX_DATA", str(tmp_path / "data"))
    rng = np.random.default_rng(0)
    kinds = np.arange(300) % 2
    labels = np.where(rng.random(300) < 0.2, 1 - kinds, kinds)
    rows = [f"{rng.normal(4 * kind):.3f},{('cat', 'dog')[label]}" for kind, label in zip(kinds, labels, strict=True)]
    (tmp_path / "table.csv").write_text("size,kind\n" + "\n".join(rows))
    settings = ("data.labels=kind", "loss.correction=forward", *QUICK, "--out", tmp_path)
    code, out, _ = run(capsys, "train", tmp_path / "table.csv", "transition=estimated", *settings)
    assert code == 0
    pattern = r"^noise: (\d+\.\d) % of labels wrong, 95 % interval (\d+\.\d)–(\d+\.\d) % \(estimated\)$"
    rate, low, high = map(float, re.search(pattern, out, re.MULTILINE).groups())
    assert low <= rate <= high
    assert "not known" not in out
    assert "(both compared with the labels as given" in out
    folder = Path(re.search(r"^run: (.*)$", out, re.MULTILINE)[1])
    (folder / "transition.json").write_text("{")
    code, out, _ = run(capsys, "train", tmp_path / "table.csv", "transition=estimated", *settings)
    assert code == 0
    assert re.search(r"^noise: .*transition\.json is .*damaged.* --restart$", out, re.MULTILINE)
    assert "not known" not in out
    code, out, _ = run(capsys, "train", tmp_path / "table.csv", "transition=symmetric:0.2", *settings)
    assert code == 0
    assert "wrong labels: not known" in out
    assert "noise:" not in out


def test_a_page_is_rewritten_from_the_folder_alone(capsys, tmp_path):
    folder = Path(train_json(capsys, "breast-cancer", *QUICK, "--out", tmp_path)["folder"])
    written = {path.name: path.read_bytes() for path in folder.iterdir()}
    for name in ("report.html", "confusions.png", "reliability.svg"):
        (folder / name).unlink(missing_ok=True)
    code, out, _ = run(capsys, "report", folder)
    assert (code, out) == (0, f"{folder / 'report.html'}\n")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == written
    code, out, _ = run(capsys, "report", folder, "--json")
    assert code == 0
    assert json.loads(out) == {"report": str(folder / "report.html")}


def test_folders_may_have_any_name_and_the_rule_is_said(capsys, tmp_path):
    out_folder = tmp_path / "o[/b] :smile: [red]"
    code, out, err = run(capsys, "train", "breast-cancer", *QUICK, "selection=oracle", "--out", out_folder)
    assert code == 0, err
    assert f"run: {out_folder}/runs/" in out
    assert f"report: {out_folder}/runs/" in out
    assert f"test accuracy ({SELECTION_IN_WORDS['oracle']}): " in out
    page = next(out_folder.glob("runs/*/report.html")).read_text("utf-8")
    assert page.index(">Oracle, ") < page.index(">Last epoch")
    arguments = ("--rows", "kl", "--columns", "forward", "--seeds", 1, "epochs=1", "-w", 1)
    code, out, err = run(capsys, "reproduce", "breast-cancer", *arguments, "--out", out_folder)
    assert code == 0, err
    assert f"report: {out_folder}/breast-cancer-cpu-" in out


@pytest.mark.parametrize("zipped", [False, True])
def test_train_on_idx_files_a_person_brings(capsys, tmp_path, zipped):
    digits = load_digits()
    images = (digits.images * 15.9).astype(np.uint8).repeat(2, 1).repeat(2, 2)
    end = ".gz" if zipped else ""
    opener = gzip.open if zipped else open
    for name, magic, shape, content in (
        (f"mine-images-idx3-ubyte{end}", 0x803, images.shape, images),
        (f"mine-labels-idx1-ubyte{end}", 0x801, digits.target.shape, digits.target.astype(np.uint8)),
    ):
        with opener(tmp_path / name, "wb") as file:
            file.write(struct.pack(f">I{len(shape)}I", magic, *shape) + content.tobytes())
    result = train_json(
        capsys, tmp_path / f"mine-images-idx3-ubyte{end}", "noise=symmetric:0.3", "epochs=6", "-o", tmp_path
    )
    seed = result["seeds"][0]
    assert result["train_rows"] + result["test_rows"] == 1797
    assert seed["noise"]["rate"] == pytest.approx(0.3, abs=0.01)
    assert seed["readings"]["model"]["last"]["accuracy"] > 0.8  # ten classes, a third of the labels wrong
    assert RunFolder(result["folder"]).config().model.name == "small"


def test_train_on_a_table_with_a_test_table(capsys, tmp_path):
    generator = np.random.default_rng(0)
    for name, rows in (("train.csv", 120), ("test.csv", 40)):
        kind = generator.integers(0, 3, rows)
        x = kind + generator.normal(0, 0.1, rows)
        text = "\n".join(f"{a:.4f},{b},{'abc'[k]}" for a, b, k in zip(x, "uv" * (rows // 2), kind, strict=True))
        (tmp_path / name).write_text(f"x,colour,kind\n{text}\n", encoding="utf-8")
    result = train_json(
        capsys,
        tmp_path / "train.csv",
        "data.labels=kind",
        f"data.test_path={tmp_path / 'test.csv'}",
        "epochs=60",
        "-o",
        tmp_path,
    )
    assert (result["train_rows"], result["test_rows"], result["classes"]) == (120, 40, ["a", "b", "c"])
    assert result["seeds"][0]["noise"]["rate"] is None
    assert result["seeds"][0]["readings"]["model"]["last"]["accuracy"] > 0.95


def test_train_from_a_configuration_file(capsys, tmp_path):
    first = train_json(capsys, "digits", *QUICK, "-o", tmp_path)
    config = Path(first["folder"]) / "config.yaml"
    again = train_json(capsys, "--config", config, "-o", tmp_path)
    assert again["run_id"] == first["run_id"]
    other = train_json(capsys, "--config", config, "epochs=1", "-o", tmp_path)
    assert other["run_id"] != first["run_id"]
    assert other["epochs"] == 1


def test_dry_run_trains_nothing_and_tells_how_long(capsys, tmp_path):
    code, out, _ = run(capsys, "train", "digits", *QUICK, "--dry-run", "-o", tmp_path)
    assert code == 0
    assert "would begin" in out
    assert not list(tmp_path.iterdir())
    plan = json.loads(run(capsys, "train", "digits", *QUICK, "--dry-run", "--json", "-o", tmp_path)[1])
    assert plan["state"] == "new"
    assert plan["seconds"] > 0


def test_dry_run_without_the_data_prints_the_plan_and_says_how_to_get_them(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("POSTMAX_DATA", str(tmp_path / "empty"))
    command = ("reproduce", "cifar10-correction", "--rows", "kl", "--seeds", 1, "--dry-run", "-o", tmp_path)
    code, out, err = run(capsys, *command)
    assert (code, err) == (0, "")
    *jobs, last = out.splitlines()
    assert jobs
    assert all(line.startswith("would begin") for line in jobs)
    assert last.endswith("time not known: cifar10 is not here (postmax data get cifar10).")
    plan = json.loads(run(capsys, *command, "--json")[1])
    assert len(plan["new"]) == len(jobs)
    assert plan["seconds"] is None
    assert plan["not_known"] == ["cifar10 is not here (postmax data get cifar10)"]
    code, out, err = run(capsys, "tune", "embeddings", "--rows", "CE", "--dry-run", "-o", tmp_path)
    assert (code, err) == (0, "")
    assert "cifar10-embedded is not here (postmax data get cifar10-embedded)" in out
    assert not (tmp_path / "empty").exists()


def test_dry_run_of_one_run_without_its_data(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("POSTMAX_DATA", str(tmp_path / "empty"))
    code, out, err = run(capsys, "train", "cifar10-embedded", "--dry-run", "-o", tmp_path)
    assert (code, out) == (2, "")
    assert "cifar10-embedded is not here (postmax data get cifar10-embedded). The default settings depend" in err
    file = tmp_path / "all.yaml"
    file.write_text(make_config({"data": {"name": "cifar10"}, "epochs": 2}).to_yaml())
    code, out, err = run(capsys, "train", "--config", file, "--dry-run", "-o", tmp_path)
    assert (code, err) == (0, "")
    assert "its time is not known: cifar10 is not here (postmax data get cifar10)." in out
    plan = json.loads(run(capsys, "train", "--config", file, "--dry-run", "--json", "-o", tmp_path)[1])
    assert (plan["seconds"], plan["not_known"]) == (None, "cifar10 is not here (postmax data get cifar10)")


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["train"], ["which data?"]),
        (["train", "digitz"], ["digitz", "Did you mean 'digits'"]),
        (["train", "none.csv"], ["none.csv", "does not exist"]),
        (["train", "digits", "breast-cancer"], ["one data set at a time"]),
        (["train", "digits", "epoch=3"], ["'epoch'", "Did you mean 'epochs'"]),
        (["train", "digits", "optimiser.learning_rate=3"], ["optimiser.learning_rate"]),
        (["train", "digits", "epochs=-1"], ["epochs must be a whole number of at least 1, not -1"]),
        (["train", "digits", "loss=cee"], ["cee", "Did you mean 'ce'"]),
        (["train", "digits", "loss.divergense=kl"], ["divergense", "Did you mean 'divergence'"]),
        (["train", "digits", "loss.divergence=klx"], ["klx"]),
        (["train", "digits", "model=resnet43"], ["resnet43", "Did you mean 'resnet34'"]),
        (["train", "digits", "model=cnn8"], ["cnn8"]),
        (["train", "digits", "method=standart"], ["standart", "Did you mean 'standard'"]),
        (["train", "digits", "noise=symetric:0.4"], ["symetric", "Did you mean 'symmetric'"]),
        (["train", "digits", "loss.correction=forward", "noise=pair:0.5"], ["singular"]),
        (["train", "digits", "transition=symmetric:0.3"], ["loss=fpml does not use it", "loss.correction=forward"]),
        (["train", "digits", "loss=sharpened-pml", "transition=estimated"], ["loss=sharpened-pml does not use it"]),
        (["train", "digits", "loss.correction=forward", "transition=none"], ["symmetric:0.4", "not 'none'"]),
        (["train", "digits", "precision=32"], ["32", "32-true"]),
        (["train", "digits", "selection=noisy-val"], ["validation_share"]),
        (["train", "digits", "seeds=[1,1]"], ["only once"]),
        (["train", "digits", "data.train_rows=100000"], ["100000", "1438"]),
        (["resume", "nowhere"], ["nowhere", "not the folder of a run"]),
        (["reproduce", "breast-cancr"], ["Did you mean 'breast-cancer'"]),
        (["reproduce", "breast-cancer", "--scale", "cpus"], ["Did you mean 'cpu'"]),
        (["reproduce", "breast-cancer", "--rows", "KLL"], ["'KLL' (did you mean 'KL'?)"]),
        (["reproduce", "breast-cancer", "epoch=1"], ["'epoch'", "Did you mean 'epochs'"]),
        (["reproduce", "breast-cancer", "--tuned", "none.yaml"], ["none.yaml", "does not exist"]),
        (["tune", "breast-cancer"], ["breast-cancer does not say how to tune at scale cpu", "scales.cpu.tuning"]),
        (["report", "breast-cancer"], ["no finished run", "postmax reproduce breast-cancer"]),
        (["list", "losess"], ["Did you mean 'losses'"]),
    ],
)
def test_errors_say_what_was_wrong_and_leave_nothing(capsys, tmp_path, monkeypatch, arguments, parts):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert err.startswith("postmax: ")
    assert "Traceback" not in err
    for part in parts:
        assert part in err
    assert not list(tmp_path.glob("postmax-results/runs/*"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["loss.correction=foward"], "unknown correction 'foward'. Did you mean 'forward'?"),
        (["loss.correction=foward", "transition=estimated"], "unknown correction 'foward'. Did you mean 'forward'?"),
        (
            ["loss.corection=forward", "transition=estimated"],
            "unknown option of the loss fpml 'corection'. Did you mean",
        ),
        (["loss.correction=forward", "loss.link=sofmax"], "unknown link 'sofmax'. Did you mean 'softmax'?"),
        (["loss.correction=forward", "loss.divergence=gam"], "unknown divergence 'gam'. Did you mean 'gan'?"),
        (["loss.correction=forward"], "loss.correction=forward needs the noise, which is not known for table"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_misspelt_name_comes_before_the_question_for_the_noise(capsys, tmp_path, settings, message):
    (tmp_path / "table.csv").write_text("a,y\n" + "".join(f"{row % 7},{'uv'[row % 2]}\n" for row in range(40)))
    for more in ([], ["--dry-run"]):
        code, _, err = run(
            capsys, "train", tmp_path / "table.csv", "data.labels=y", *settings, *QUICK, "--out", tmp_path, *more
        )
        assert code == 2
        assert err.startswith(f"postmax: {message}")


@pytest.mark.filterwarnings("default::postmax.errors.PostmaxWarning")
def test_a_correction_that_is_known_to_fail_is_a_line_and_following_it_is_none(capsys, tmp_path):
    arguments = ("train", "digits", "noise=pair:0.45", *QUICK, "--out", tmp_path)
    code, _, err = run(capsys, *arguments, "loss.correction=objective")
    assert code == 0
    assert err.count("\npostmax: warning: the objective correction") + err.startswith("postmax: warning: the") == 1
    assert "Use loss.correction=forward" in err
    code, _, err = run(capsys, *arguments, "loss.correction=forward")
    assert code == 0
    assert "warning" not in err


def test_divergence_stops_at_once_and_is_remembered(capsys, tmp_path):
    arguments = (
        "breast-cancer",
        "optimiser.lr=1e6",
        "loss.divergence=pearson",
        "loss.link=exp",
        *QUICK,
        "-o",
        tmp_path,
    )
    code, _, err = run(capsys, "train", *arguments)
    assert code == 1  # a run that diverges is not an input error
    assert "diverged in epoch" in err
    assert "batch" in err
    assert "optimiser.lr" in err
    code, _, err = run(capsys, "train", *arguments)
    assert code == 1
    assert "--restart" in err


def test_interrupt_says_how_to_go_on(tmp_path):
    # Where the tests run in the background, their shell has told everybody to ignore the signal.
    program = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from postmax.cli import main; main(sys.argv[1:])"
    )
    command = [sys.executable, "-c", program, "train", "digits", "epochs=100000", "-o", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 120
        while not any(file.stat().st_size for file in tmp_path.glob("runs/*/metrics.jsonl")):
            assert time.monotonic() < deadline
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 130
    assert "postmax resume" in err
    assert "Traceback" not in err
    folder = next(tmp_path.glob("runs/*"))
    assert str(folder) in err
    assert RunFolder(folder).state == "started"


@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stop_before_training_promises_nothing(capsys, tmp_path, monkeypatch, number, exit_code):
    def stopped(*_, **__):
        signal.raise_signal(number)

    monkeypatch.setattr("postmax.runs.execution.build", stopped)  # where the data are read
    code, _, err = run(capsys, "train", "digits", *QUICK, "-o", tmp_path)
    assert code == exit_code
    assert err == "postmax: stopped before training began.\n"
    assert not list(tmp_path.glob("runs/*"))


@pytest.mark.parametrize("how", ["data=digits", "config"])
def test_a_name_alone_is_enough_for_the_data(capsys, tmp_path, how):
    file = tmp_path / "run.yaml"
    file.write_text("data: digits\nmodel: {name: mlp, hidden: [8]}\nepochs: 1\n")
    arguments = [how] if how != "config" else ["--config", file]
    code, _, err = run(capsys, "train", *arguments, "epochs=1", "accelerator=cpu", "-o", tmp_path)
    assert code == 0, err


@pytest.mark.parametrize(
    ("word", "message"),
    [("data=5", "data must be a name"), ("data=[1]", "data must be a name"), ("", "which data?")],
)
def test_data_that_say_nothing(capsys, tmp_path, word, message):
    code, _, err = run(capsys, "train", word, "-o", tmp_path)
    assert code == 2
    assert err.startswith(f"postmax: {message}")


def test_settings_of_a_run_with_another_file_are_another_run(capsys, tmp_path):
    for name, shift in (("one", 0), ("two", 3)):
        rows = "".join(f"{row % 7 + shift},{'uv'[row % 2]}\n" for row in range(40))
        (tmp_path / f"{name}.csv").write_text(f"a,y\n{rows}")
    first = train_json(capsys, tmp_path / "one.csv", *QUICK, "-o", tmp_path)
    again = ("--config", Path(first["folder"]) / "config.yaml", "-o", tmp_path)
    for arguments in ((tmp_path / "two.csv",), (f"data.path={tmp_path / 'two.csv'}",)):
        other = train_json(capsys, *arguments, *again)
        assert other["run_id"] != first["run_id"]
    assert train_json(capsys, *again)["run_id"] == first["run_id"]


def test_noise_by_features_is_no_setting_of_a_run(capsys, tmp_path):
    code, _, err = run(capsys, "train", "digits", "noise=instance:0.3", *QUICK, "-o", tmp_path)
    assert code == 2
    assert "postmax noise inject FILE --noise instance:0.3" in err
    assert "none" not in err


def test_a_full_disk_names_the_remedy_and_the_remedy_works(capsys, tmp_path, monkeypatch):
    def fsync(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        code, _, err = run(capsys, "train", "digits", *QUICK, "-o", tmp_path / "full")
    assert code == 2
    assert "could not be written: No space left on device. Free some space on its disk" in err
    assert "give the same command again" in err
    assert run(capsys, "train", "digits", *QUICK, "-o", tmp_path / "full")[0] == 0  # there is space again


def test_a_damaged_checkpoint_says_what_to_type(capsys, tmp_path):
    folder = tmp_path / "my run"
    config = make_config({"data": {"name": "digits"}, "model": {"name": "mlp", "hidden": [8]}, "epochs": 6})

    def stop_after_four(progress):
        if progress.epoch == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        execute(config, folder, checkpoint_seconds=0, progress=stop_after_four)
    damaged = folder / "checkpoint.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:-9])
    code, _, err = run(capsys, "resume", folder)
    assert code == 2
    hint = re.search(r"Continue from there: postmax (.*)$", err, re.MULTILINE)
    code, out, err = run(capsys, *shlex.split(hint[1]))
    assert code == 0, err
    assert "test accuracy" in out


def test_a_changed_table_does_not_replace_the_plain_one(capsys, tmp_path):
    content = yaml.safe_load((catalogue._SHIPPED / "breast-cancer.yaml").read_text(encoding="utf-8"))
    content["scales"] = {"cpu": {"seeds": 1, "note": "One seed.", "set": {"epochs": 2}}}
    content["columns"], content["rows"], content["reported"] = content["columns"][-1:], content["rows"][:1], {}
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    command = ("reproduce", tmp_path / "mine.yaml", "-w", 1, "--out", tmp_path)
    code, _, err = run(capsys, *command)
    assert code == 0, err
    plain = tmp_path / "mine-cpu"
    before = {file.name: file.read_bytes() for file in plain.iterdir()}
    code, out, err = run(capsys, *command, "epochs=1")
    assert code == 0, err
    assert before == {file.name: file.read_bytes() for file in plain.iterdir()}
    assert b"Settings changed" not in before["report.html"]
    changed = tmp_path / "mine-cpu-epochs-1"
    for text in (out, *((changed / name).read_text("utf-8") for name in ("report.html", "table.md", "table.json"))):
        assert "One seed. Settings changed: epochs=1." in text


def test_runs_on_a_gpu_go_one_by_one_unless_told_otherwise(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("postmax.sweep.cores.cores", lambda: 3)
    stopwatch = SimpleNamespace(measure_run=lambda _: Cost(0.0, 0.0, 1.0), measure_estimates=lambda _: 0.0)
    monkeypatch.setattr("postmax.cli.sweeping.timing", stopwatch)
    command = ("reproduce", "breast-cancer", "--rows", "kl", "--dry-run", "--json", "-o", tmp_path)
    for options, workers in (((), 3), (("accelerator=cuda",), 1), (("accelerator=cuda", "--workers", 2), 2)):
        assert json.loads(run(capsys, *command, *options)[1])["workers"] == workers


def test_seeds_say_how_runs_are_cut(capsys):
    assert "side by side, cut from seed 0 on" in " ".join(run(capsys, "reproduce", "--help")[1].split())


def test_reproduce_ends_with_the_table_files_and_a_page(capsys, tmp_path):
    arguments = ("breast-cancer", "--seeds", 2, "--rows", "kl", "epochs=2", "--out", tmp_path, "--workers", 1)
    plan = json.loads(run(capsys, "reproduce", *arguments, "--dry-run", "--json")[1])
    assert len(plan["new"]) == 7
    assert plan["seconds"] > 0
    code, out, err = run(capsys, "reproduce", *arguments)
    assert code == 0, err
    for part in ("[e0, e1] = [0.1, 0.3]", "no correction", "92.1", "98.2", "report:", "report.html"):
        assert part in out
    folder = tmp_path / "breast-cancer-cpu-seeds-2-rows-kl-epochs-2"
    for name in ("report.html", "table.md", "table.json"):
        assert (folder / name).stat().st_size
    plan = json.loads(run(capsys, "reproduce", *arguments, "--dry-run", "--json")[1])
    assert (len(plan["new"]), len(plan["done"])) == (0, 7)
    page = (folder / "report.html").read_bytes()
    code, out, err = run(capsys, "report", *arguments[:-2])
    assert code == 0, err
    assert (folder / "report.html").read_bytes() == page
    tables = json.loads(run(capsys, "reproduce", *arguments, "--json")[1])["tables"]
    assert [table["selection"] for table in tables] == ["last", "oracle"]
    cells = [cell for panel in tables[0]["panels"] for cell in panel["cells"]]
    assert len(cells) == 10
    assert all(cell["n"] == 2 for cell in cells)


@pytest.mark.parametrize("kind", ["tables", "losses", "methods", "models", "datasets", "divergences", "estimators"])
def test_list_names_everything(capsys, kind):
    code, out, _ = run(capsys, "list", kind)
    assert code == 0
    found = json.loads(run(capsys, "list", kind, "--json")[1])
    assert found
    assert all(about for about in found.values())
    for name in found:
        assert name in out
    if kind == "tables":
        assert set(found) == set(catalogue.names())


def test_doctor_finds_this_environment_healthy(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, _ = run(capsys, "doctor")
    assert code == 0, out
    assert "equals cross-entropy" in out
    findings = json.loads(run(capsys, "doctor", "--json")[1])
    assert {finding["what"] for finding in findings} >= {"torch", "numbers", "this folder", "data sets"}


@pytest.mark.parametrize(
    ("verdict", "line"),
    [
        (Verdict(None), "precision=bf16-mixed can be used"),
        (Verdict("could not be tried: no Python", final=False), "not usable: it could not be tried: no Python"),
        (Verdict("ends the process with SIGILL", "A=B"), "not usable: it ends the process with SIGILL; A=B helps"),
    ],
)
def test_doctor_says_whether_bf16_works_and_does_not_require_it(capsys, monkeypatch, tmp_path, verdict, line):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("postmax.train.precision.bf16_on_cpu", lambda: verdict)
    code, out, _ = run(capsys, "doctor", "--json")
    found = {finding["what"]: finding for finding in json.loads(out)}
    assert found["bf16 on the CPU"] == {"what": "bf16 on the CPU", "fine": True, "detail": line}
    assert code == 0


def test_doctor_lists_data_sets_and_not_what_postmax_keeps(capsys, monkeypatch, tmp_path):
    for name in ("machine", "estimates", "mnist"):  # the folder of mnist is empty, as after a failed download
        (tmp_path / name).mkdir()
    (tmp_path / "cifar-10-batches-py").mkdir()
    monkeypatch.setenv("POSTMAX_DATA", str(tmp_path))
    found = {finding["what"]: finding["detail"] for finding in json.loads(run(capsys, "doctor", "--json")[1])}
    assert found["data sets"] == f"{tmp_path}: cifar10"


def test_doctor_where_a_process_has_no_affinity(capsys, monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    _, out, _ = run(capsys, "doctor")
    assert "64 cores" in out


def test_doctor_names_what_is_missing(capsys, monkeypatch):
    monkeypatch.setitem(_PACKAGES, "no-such-package", "train")
    code, out, _ = run(capsys, "doctor")
    assert code == 1
    assert "pip install 'postmax[train]'" in out


@pytest.mark.parametrize("command", ["reproduce", "tune", "train", "resume", "report", "list", "doctor"])
def test_help_starts_with_examples(capsys, command):
    code, out, _ = run(capsys, command, "--help")
    assert code == 0
    assert f"postmax {command}" in out.split("Options:")[0].partition("\n")[2]


def test_every_configuration_that_is_written_can_be_read(capsys, tmp_path):
    result = train_json(capsys, "digits", *QUICK, "ema=0.9", "schedule=step", "schedule.milestones=[1]", "-o", tmp_path)
    content = yaml.safe_load((Path(result["folder"]) / "config.yaml").read_text(encoding="utf-8"))
    assert content["ema"] == 0.9
    assert content["schedule"]["milestones"] == [1]


def test_a_plan_has_a_line_for_the_seeds_of_a_cell_and_one_for_each_data_set_that_is_missing(
    capsys, tmp_path, monkeypatch
):
    monkeypatch.setenv("POSTMAX_DATA", str(tmp_path / "empty"))
    options = ("--rows", "GAN-Pro", "--columns", "CIFAR-10 20%,CIFAR-100 80%", "--workers", 2)
    code, out, err = run(capsys, "reproduce", "refined", "--scale", "paper", *options, "--dry-run", "-o", tmp_path)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "would begin      5 runs  GAN-Pro · CIFAR-10 20% · seeds 0–4",
        "would begin      5 runs  GAN-Pro · CIFAR-100 80% · seeds 0–4",
        "10 runs to do, 2 at once: time not known:",
        "  cifar10 is not here (postmax data get cifar10)",
        "  cifar100 is not here (postmax data get cifar100)",
    ]
