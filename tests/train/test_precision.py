"""bfloat16 on a CPU is tried in a child process, whatever happens to that process."""

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from small_runs import small_config

from postmax.errors import InputError
from postmax.runs import execute
from postmax.train import bf16_trial, precision
from postmax.train.precision import bf16_on_cpu, check_precision
from postmax.wording import command_line

CPU = torch.device("cpu")
COUNT = "import os, pathlib; pathlib.Path({folder!r}, str(os.getpid())).touch();"
KILL = "os.kill(os.getpid(), signal.{name})"
UNLESS_LIMITED = "print('ok') if os.environ.get('ONEDNN_MAX_CPU_ISA') == 'AVX512_CORE' else " + KILL


@pytest.fixture
def trials(tmp_path, monkeypatch):
    """Return a function that makes a program the trial. `trials.count()` says how often a program was started."""
    monkeypatch.setenv("POSTMAX_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
    started = tmp_path / "started"
    started.mkdir()

    def use(program):
        path = tmp_path / "trial.py"
        path.write_text(f"import os, signal, time\n{COUNT.format(folder=str(started))}\n{program}\n")
        monkeypatch.setattr(precision, "PROGRAM", path)
        precision._kept.cache_clear()

    use.count = lambda: len(list(started.iterdir()))
    use.folder = tmp_path / "data" / "machine"
    yield use
    precision._kept.cache_clear()


def test_the_trial_itself():
    """Its operations are right in bfloat16, wherever they can run at all."""
    done = subprocess.run([sys.executable, "-P", bf16_trial.__file__], capture_output=True, text=True, check=False)
    if precision._ending(done.returncode) in precision._FAULTS:
        pytest.skip(f"bfloat16 ends the process with {precision._ending(done.returncode)} on this CPU")
    assert done.stdout == "ok\n"


@pytest.mark.parametrize("operation", ["linear", "bmm", "conv2d"])
def test_the_trial_notices_wrong_numbers(operation, tmp_path):
    """An operation that is wrong under autocast. It computes in float32, so that the test runs on every CPU."""
    home = "torch" if operation == "bmm" else "torch.nn.functional"
    program = tmp_path / "wrong.py"
    program.write_text(
        "import runpy, torch\n"
        f"right = {home}.{operation}\n"
        "def wrong(*inputs, **options):\n"
        "    factor = 0.5 if torch.is_autocast_enabled('cpu') else 1.0\n"
        "    with torch.autocast('cpu', enabled=False):\n"
        "        return factor * right(*inputs, **options)\n"
        f"{home}.{operation} = wrong\n"
        f"runpy.run_path({bf16_trial.__file__!r}, run_name='__main__')\n"
    )
    done = subprocess.run([sys.executable, "-P", program], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("wrong numbers from "), done.stderr


def test_a_cpu_that_can(trials):
    trials("print('ok')")
    assert bf16_on_cpu().reason is None
    check_precision("bf16-mixed", CPU)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
@pytest.mark.parametrize("name", ["SIGILL", "SIGSEGV"])
def test_a_trial_that_ends_its_process(trials, name):
    trials(KILL.format(name=name))
    with pytest.raises(InputError, match=rf'ends the process with {name}\. Use precision="32-true"\.$'):
        check_precision("bf16-mixed", CPU)
    assert trials.count() == 2  # with and without the remedy


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
def test_the_remedy_is_named_where_it_helps(trials, monkeypatch):
    trials(UNLESS_LIMITED.format(name="SIGILL"))
    with (
        command_line(),
        pytest.raises(InputError, match="Use precision=32-true, or set ONEDNN_MAX_CPU_ISA=AVX512_CORE"),
    ):
        check_precision("bf16-mixed", CPU)
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE")
    check_precision("bf16-mixed", CPU)


def test_the_remedy_is_not_tried_again_where_it_is_set(trials, monkeypatch):
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE")
    trials("print('wrong numbers from a convolution')")
    assert bf16_on_cpu().reason == "gives wrong numbers from a convolution"
    assert bf16_on_cpu().remedy is None
    assert trials.count() == 1


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("time.sleep(600)", "did not finish a short trial within 1 seconds"),
        ("import no_such_module", "could not be tried: the trial ended with exit code 1. ModuleNotFoundError"),
        ("pass", "could not be tried: the trial ended with exit code 0"),
        pytest.param(
            KILL.format(name="SIGKILL"),
            "could not be tried: the trial ended with SIGKILL",
            marks=pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals"),
        ),
    ],
)
def test_a_trial_without_an_answer_is_refused_and_not_kept(trials, monkeypatch, program, reason):
    trials(program)
    if "sleep" in program:
        monkeypatch.setattr(precision, "SECONDS", 1)
    verdict = bf16_on_cpu()
    assert verdict.reason.startswith(reason)
    assert not verdict.final
    assert not list(trials.folder.glob("*.json"))


@pytest.mark.parametrize("python", ["/no/such/python", "", None])
def test_a_trial_that_cannot_start(trials, monkeypatch, python):
    trials("print('ok')")
    monkeypatch.setattr(sys, "executable", python)
    with pytest.raises(InputError, match=r"could not be tried: .*\. Use precision="):
        check_precision("bf16-mixed", CPU)
    assert trials.count() == 0


def test_the_answer_is_kept_for_this_process_and_for_others(trials):
    trials("print('ok')")
    for _ in range(3):
        bf16_on_cpu()
    precision._kept.cache_clear()  # another process knows only the file
    assert bf16_on_cpu().reason is None
    assert trials.count() == 1


def test_processes_that_ask_at_the_same_time_try_once(trials):
    trials("time.sleep(0.3); print('ok')")
    path = trials.folder / "bf16.json"
    with ThreadPoolExecutor(4) as pool:
        verdicts = list(pool.map(lambda _: precision._kept.__wrapped__(path), range(4)))
    assert all(verdict.reason is None for verdict in verdicts)
    assert trials.count() == 1


@pytest.mark.parametrize("name", ["ONEDNN_MAX_CPU_ISA", "ATEN_CPU_CAPABILITY", "DNNL_MAX_CPU_ISA"])
def test_another_setting_is_another_question(trials, monkeypatch, name):
    trials("print('ok')")
    bf16_on_cpu()
    monkeypatch.setenv(name, "AVX2")
    bf16_on_cpu()
    assert trials.count() == 2


@pytest.mark.parametrize("part", ["_cpu", "PROGRAM", "torch"])
def test_another_machine_program_or_torch_is_another_question(trials, monkeypatch, tmp_path, part):
    trials("print('ok')")
    before = precision._fingerprint()
    if part == "_cpu":
        monkeypatch.setattr(precision, "_cpu", lambda: ["another CPU"])
    elif part == "torch":
        monkeypatch.setattr(torch, "__version__", "9.9")
    else:
        trials("print('not ok')")
    assert precision._fingerprint() != before


@pytest.mark.parametrize("content", ["", "[]", '{"reason": null', '{"cause": null}'])
def test_a_damaged_answer_is_tried_again(trials, content):
    trials("print('ok')")
    bf16_on_cpu()
    (kept,) = trials.folder.glob("*.json")
    kept.write_text(content)
    precision._kept.cache_clear()
    assert bf16_on_cpu().reason is None
    assert json.loads(kept.read_text()) == {"reason": None, "remedy": None, "final": True}


def test_a_folder_that_cannot_be_written(trials, tmp_path):
    trials("print('ok')")
    (tmp_path / "data").write_text("a file where the folder should be")  # root may write everywhere else
    assert bf16_on_cpu().reason is None


def test_full_precision_and_other_devices_start_no_child(trials):
    trials("print('ok')")
    check_precision("32-true", CPU)
    check_precision("bf16-mixed", torch.device("meta"))
    assert trials.count() == 0


def test_a_run_is_refused_before_it_trains(trials, tmp_path):
    trials("print('wrong numbers from a linear layer')")
    with pytest.raises(InputError, match="precision=bf16-mixed cannot be used on this CPU"):
        execute(small_config("precision=bf16-mixed", "accelerator=cpu"), tmp_path / "run")
    assert not (tmp_path / "run").exists()
    execute(small_config("precision=32-true", "epochs=1"), tmp_path / "full")


def test_fabric_does_not_write_what_the_user_asked_for():
    """In a program of its own, because pytest has a handler of the log, and Fabric then writes nothing."""
    program = (
        "from small_runs import small_config\n"
        "from postmax.train import build\n"
        "build.check_precision = lambda *_: None  # nothing is computed\n"
        "build.make_fabric(small_config('precision=bf16-mixed'))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=_path())
    assert done.stderr == ""


def _path():
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def test_the_last_line_counts():
    assert precision._last_line(b"a warning\n ok \n\n") == "ok"
    assert precision._last_line(b"") == ""


def test_endings():
    assert precision._ending(-signal.SIGTERM) == "SIGTERM"
    assert precision._ending(3) == "exit code 3"
    assert precision._ending(-1000) == "exit code -1000"
