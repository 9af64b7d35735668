"""Runs that are killed, interrupted, locked, or find their folder damaged, and go on as if nothing had happened."""

import fcntl
import json
import os
import random
import shutil
import signal
import time

import pytest
from small_runs import image_archive, load_previous, outcome, own_config, small_config, stop_after

from postmax.errors import BusyError, DataError, InputError
from postmax.runs import RunFolder, execute
from postmax.runs.checkpoint import NAME, PREVIOUS, load

LONG = ["epochs=8", "batch_size=16"]
RUNS = {
    "sgd": [*LONG],
    "adam": [*LONG, "optimiser.name=adam", "optimiser.lr=0.01", "schedule.name=one-cycle"],
    "average": [*LONG, "ema=0.9", "optimiser.nesterov=true"],
    "dropout": [*LONG, "model.dropout=0.3", "optimiser.clip_norm=0.5"],
    "seeds": [*LONG, "seeds=[3, 1, 2]", "model.dropout=0.2", "loss={divergence: sl, correction: posterior}"],
    "noisy-val": [*LONG, "selection=noisy-val", "data.validation_share=0.2", "optimiser.lr=0.3"],
    "oracle": [*LONG, "selection=oracle", "evaluate_every=3", "optimiser.lr=0.3", "seeds=[0, 1]"],
    "batch norm": [*LONG, "model.batch_norm=true", "optimiser.name=adamw", "ema=0.8"],
    "images": ["model=cnn8", "epochs=4", "batch_size=16", "data.augment=crop-flip", "data.cutout=2", "noise=pair:0.1"],
    "channels last": ["model=small", "model.width=4", "epochs=6", "batch_size=16", "data.augment=crop-flip"],
}


def configuration(case, tmp_path):
    if case in ("images", "channels last"):
        return own_config(image_archive(tmp_path / "images.npz"), *RUNS[case])
    return small_config(*RUNS[case])


def plain(config):
    return config.model_dump(mode="json")


def damage(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


@pytest.mark.parametrize("case", RUNS)
def test_stopped_at_every_epoch(tmp_path, case):
    """Every epoch is trained by another start of the run."""
    config = configuration(case, tmp_path)
    execute(config, tmp_path / "whole", checkpoint_seconds=1e9)
    for epoch in range(2, config.epochs + 1):
        stop_after(config, tmp_path / "parts", epoch)  # of which epoch - 1 count
        assert load(tmp_path / "parts").epoch == epoch - 1
    epochs = []
    execute(config, tmp_path / "parts", progress=lambda state: epochs.append(state.epoch))
    assert epochs == [config.epochs]
    assert outcome(tmp_path / "parts") == outcome(tmp_path / "whole")


def kill_once(forks, config, folder, chance):
    """Start or go on with the run and kill it: some time after the start, or soon after an epoch it had not reached."""
    job, log = {"config": plain(config), "folder": str(folder)}, folder / "metrics.jsonl"
    if chance.random() < 0.4:
        when = chance.uniform(0, 0.15)
    else:
        saved = load(folder) if folder.exists() else None
        lines = ((saved.epoch if saved else 0) + 1) * len(config.seeds)
        soon = chance.uniform(0, 0.02)

        def when():
            if not log.exists() or log.read_bytes().count(b"\n") < lines:
                return False
            time.sleep(soon)
            return True

    return forks.stop(when, "execute", **job)[1]


@pytest.mark.parametrize("case", RUNS)
def test_killed_at_random_moments(tmp_path, forks, case):
    config, folder = configuration(case, tmp_path), tmp_path / "killed"
    assert forks.run("execute", config=plain(config), folder=str(tmp_path / "whole")) == ("done", 0)
    chance, kills = random.Random(case), 0
    for _ in range(50):
        code = kill_once(forks, config, folder, chance)
        if code == 0 and not kills:
            shutil.rmtree(folder)  # on a busy machine a run may end before we come to kill it
            continue
        if code == 0 or kills == 6:
            break
        assert code == -signal.SIGKILL
        kills += 1
    assert kills >= 1
    assert forks.run("execute", config=plain(config), folder=str(folder)) == ("done", 0)
    assert outcome(folder) == outcome(tmp_path / "whole")
    assert not list(folder.glob("checkpoint*"))


@pytest.mark.slow
@pytest.mark.parametrize("case", RUNS)
def test_killed_again_and_again(tmp_path, forks, case):
    """A hundred kills, in as many runs as that takes."""
    config = configuration(case, tmp_path)
    assert forks.run("execute", config=plain(config), folder=str(tmp_path / "whole")) == ("done", 0)
    whole, chance, kills, rounds = outcome(tmp_path / "whole"), random.Random(case), 0, 0
    while kills < 100:
        folder = tmp_path / f"killed{rounds}"
        code = kill_once(forks, config, folder, chance)
        kills += code != 0
        if code == 0:
            assert outcome(folder) == whole
            rounds += 1
    assert forks.run("execute", config=plain(config), folder=str(folder)) == ("done", 0)
    assert outcome(folder) == whole


def test_killed_while_the_result_is_written(tmp_path, monkeypatch):
    """Between the result and the word that it is there, between the weights and the result, and after both."""
    config = small_config("seeds=[0, 1]", "epochs=3")
    execute(config, tmp_path / "whole")
    plain_write = RunFolder.write

    class Killed(BaseException):
        pass

    for name in ("model-seed0.safetensors", "model-seed1.safetensors", "result.json", "done"):
        folder = tmp_path / name

        def write(run, file, content, name=name):
            if file == name:
                raise Killed
            plain_write(run, file, content)

        with monkeypatch.context() as patch:
            patch.setattr(RunFolder, "write", write)
            with pytest.raises(Killed):
                execute(config, folder, checkpoint_seconds=0)
        assert RunFolder(folder).state == "started"
        with pytest.raises(DataError, match="is not done"):
            RunFolder(folder).result()
        execute(config, folder)
        assert outcome(folder) == outcome(tmp_path / "whole")


# Interrupted


def test_ctrl_c(tmp_path, forks):
    config = small_config("epochs=60", "batch_size=16")
    folder = tmp_path / "run"

    def under_way():
        return (folder / "metrics.jsonl").exists() and len((folder / "metrics.jsonl").read_text().splitlines()) > 3

    said, code = forks.stop(under_way, "execute", by=signal.SIGINT, config=plain(config), folder=str(folder))
    assert (said.partition(":")[0], code) == ("KeyboardInterrupt", 1)
    assert RunFolder(folder).state == "started"
    assert RunFolder(folder).failure() is None
    done = load(folder).epoch
    assert done >= 2
    epochs = []
    execute(config, folder, progress=lambda state: epochs.append(state.epoch))
    assert epochs == list(range(done + 1, 61))
    execute(config, tmp_path / "whole")
    assert outcome(folder) == outcome(tmp_path / "whole")


# Two at once


def test_another_process_has_the_run(tmp_path, forks):
    config = small_config()
    with RunFolder(tmp_path).lock():
        said, code = forks.run("execute", config=plain(config), folder=str(tmp_path))
        assert (said, code) == (f"BusyError: {tmp_path}: another process is working on this run.", 1)
        with pytest.raises(BusyError):
            execute(config, tmp_path)
        assert not (tmp_path / "config.yaml").exists()
    assert forks.run("execute", config=plain(config), folder=str(tmp_path)) == ("done", 0)


def test_a_killed_process_gives_the_run_back(tmp_path, forks):
    config, folder = small_config("epochs=400"), tmp_path / "run"
    pid = forks.start("execute", config=plain(config), folder=str(folder))
    end = time.monotonic() + 60
    while not (folder / "metrics.jsonl").exists() and time.monotonic() < end:
        time.sleep(0.002)
    with pytest.raises(BusyError, match="another process is working on this run"):
        execute(config, folder)
    os.kill(pid, signal.SIGKILL)
    forks.wait()
    with RunFolder(folder).lock():
        pass


def test_a_done_run_can_be_read_while_another_process_has_the_lock(tmp_path):
    result = execute(small_config(), tmp_path)
    with (tmp_path / "lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert execute(small_config(), tmp_path) == result


# Damage


@pytest.fixture
def stopped(tmp_path):
    """A run with two checkpoints, of epochs 2 and 1, and what it would have become."""
    execute(small_config(), tmp_path / "whole")
    stop_after(small_config(), tmp_path / "run", 3)
    assert (load(tmp_path / "run").epoch, load_previous(tmp_path / "run").epoch) == (2, 1)
    return tmp_path / "run", outcome(tmp_path / "whole")


def test_a_damaged_checkpoint(stopped):
    folder, whole = stopped
    damage(folder / NAME)
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "lock"}
    for _ in range(2):
        with pytest.raises(DataError, match=r"is damaged .* continue from there with execute\(…, previous=True\)"):
            execute(small_config(), folder)
        assert {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "lock"} == before
    epochs = []
    execute(small_config(), folder, previous=True, progress=lambda state: epochs.append(state.epoch))
    assert epochs == [2, 3, 4]
    assert outcome(folder) == whole


def test_both_checkpoints_damaged(stopped):
    folder, whole = stopped
    damage(folder / NAME)
    damage(folder / PREVIOUS)
    with pytest.raises(DataError, match=r"Start again with execute\(…, restart=True\)"):
        execute(small_config(), folder, previous=True)
    execute(small_config(), folder, restart=True)
    assert outcome(folder) == whole


def test_there_is_no_previous_checkpoint(tmp_path):
    stop_after(small_config(), tmp_path, 2)
    with pytest.raises(DataError, match="has no checkpoint before the last"):
        execute(small_config(), tmp_path, previous=True)


def test_the_checkpoint_of_another_run(stopped, tmp_path):
    folder, _ = stopped
    stop_after(small_config("seeds=[1]"), tmp_path / "other", 3)
    (folder / NAME).write_bytes((tmp_path / "other" / NAME).read_bytes())
    with pytest.raises(DataError, match=r"the checkpoint belongs to another run\. Start again with execute\("):
        execute(small_config(), folder)


def test_a_torn_last_line(stopped):
    folder, whole = stopped
    lines = (folder / "metrics.jsonl").read_text()
    assert len(lines.splitlines()) == 3
    (folder / "metrics.jsonl").write_text(lines + lines.splitlines()[0][:50])
    assert [record["epoch"] for record in RunFolder(folder).metrics()] == [1, 2, 3]
    execute(small_config(), folder)
    assert outcome(folder) == whole


@pytest.mark.parametrize("torn", [1, 2, 3])
def test_lines_the_checkpoint_knows_are_gone(stopped, torn):
    """Three epochs are recorded, two of them are in the checkpoint."""
    folder, whole = stopped
    lines = (folder / "metrics.jsonl").read_text().splitlines(keepends=True)
    (folder / "metrics.jsonl").write_text("".join(lines[: 3 - torn]) + '{"epo')
    if torn == 1:
        execute(small_config(), folder)
        assert outcome(folder) == whole
        return
    with pytest.raises(DataError, match=r"metrics.jsonl has lost epochs that the checkpoint of epoch 2 knows"):
        execute(small_config(), folder)
    execute(small_config(), folder, restart=True)
    assert outcome(folder) == whole


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("metrics.jsonl", b'{"epoch": \n{}\n{}\n'),
        ("metrics.jsonl", b"\xff\xfe\n"),
        ("metrics.jsonl", b"3\n4\n5\n"),
        ("environment.json", b"{"),
        ("environment.json", b"{}"),
        ("failure.json", b""),
        ("config.yaml", b"data: ["),
        ("config.yaml", b""),
    ],
)
def test_other_files_damaged(stopped, name, content):
    folder, _ = stopped
    (folder / name).write_bytes(content)
    with pytest.raises(DataError, match=name):
        execute(small_config(), folder)


def test_a_result_that_was_changed(tmp_path):
    execute(small_config(), tmp_path)
    content = (tmp_path / "result.json").read_bytes()
    (tmp_path / "result.json").write_bytes(content.replace(b'"epochs": 4', b'"epochs": 5'))
    with pytest.raises(DataError, match=r"result.json was changed or damaged after the run"):
        execute(small_config(), tmp_path)
    with pytest.raises(DataError, match="was changed or damaged"):
        RunFolder(tmp_path).result()
    execute(small_config(), tmp_path, restart=True)
    assert json.loads((tmp_path / "result.json").read_bytes())["epochs"] == 4


# Disks


def test_a_checkpoint_that_does_not_fit(tmp_path, forks):
    """The file system takes everything but the checkpoint; what it had is still there, and good for going on."""
    config = small_config("model.hidden=[400]", "optimiser.name=adam", "save_model=false", "seeds=[0, 1]")
    execute(config, tmp_path / "whole")
    stop_after(config, tmp_path / "run", 3)
    before = (tmp_path / "run" / NAME).read_bytes()
    said, code = forks.run(
        "limited", inner="execute", bytes_a_file=len(before) // 2, config=plain(config), folder=str(tmp_path / "run")
    )
    assert code == 1
    assert said == f"DataError: {tmp_path / 'run' / NAME} could not be written: File too large."
    assert (tmp_path / "run" / NAME).read_bytes() == before
    assert load(tmp_path / "run").epoch == 2
    execute(config, tmp_path / "run")
    assert outcome(tmp_path / "run") == outcome(tmp_path / "whole")


def filled_disk(tmp_path, forks):
    """A run whose metrics do not fit any more."""
    config = small_config("epochs=30", "save_model=false")
    job = {"config": plain(config), "folder": str(tmp_path / "run"), "checkpoint_seconds": 1e9}
    said, code = forks.run("limited", inner="execute", bytes_a_file=5000, **job)
    assert code == 1
    return config, said


def test_metrics_that_do_not_fit(tmp_path, forks):
    config, _ = filled_disk(tmp_path, forks)
    execute(config, tmp_path / "run")
    execute(config, tmp_path / "whole")
    assert outcome(tmp_path / "run") == outcome(tmp_path / "whole")


def test_metrics_that_do_not_fit_are_an_error_that_explains(tmp_path, forks):
    _, said = filled_disk(tmp_path, forks)
    assert said == f"DataError: {tmp_path / 'run' / 'metrics.jsonl'} could not be written: File too large."


def test_a_folder_below_a_file(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="could not be written: Not a directory"):
        execute(small_config(), tmp_path / "file" / "run")
    with pytest.raises(DataError, match="could not be written"):
        execute(small_config(), tmp_path / "file")


def test_what_killed_processes_left_is_cleared_away(tmp_path):
    stop_after(small_config(), tmp_path, 3)
    for name in (f".{NAME}.abc", f".{PREVIOUS}.123", ".result.json.x_y"):
        (tmp_path / name).write_text("half")
    execute(small_config(), tmp_path)
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_what_belongs_to_somebody_else_is_left_alone(tmp_path):
    (tmp_path / ".bashrc.old").write_text("mine")
    (tmp_path / ".config.d").mkdir()
    execute(small_config(), tmp_path)
    assert (tmp_path / ".bashrc.old").read_text() == "mine"


def test_no_folder_of_a_run(tmp_path):
    assert RunFolder(tmp_path).state == "new"
    with pytest.raises(DataError, match=r"is not the folder of a run: it has no config.yaml"):
        RunFolder(tmp_path).config()
    with pytest.raises(DataError, match="is not done"):
        RunFolder(tmp_path).result()
    assert RunFolder(tmp_path).metrics() == []
    assert RunFolder(tmp_path).failure() is None


def test_a_run_that_cannot_begin_can_begin_later(tmp_path):
    with pytest.raises(InputError, match="unknown divergence"):
        execute(small_config("loss.divergence=qq"), tmp_path / "run")
    execute(small_config(), tmp_path / "run")
