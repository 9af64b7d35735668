"""Whether the CPU can compute in bfloat16.

On some CPUs torch ends the process with an illegal instruction when it computes in bfloat16. No setting of postmax may
do that to a user. A child process therefore tries it first, once on each machine.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import signal
import subprocess
import sys
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import torch

from postmax.data.files import data_root
from postmax.errors import DataError, InputError
from postmax.files import atomic_write
from postmax.once import alone_with
from postmax.wording import advice

PROGRAM = Path(__file__).with_name("bf16_trial.py")
SECONDS = 120  # the trial takes 1 to 5 seconds, but torch may have to be read from a slow disk
# Without bfloat16 instructions torch computes the same in others. This helps where a CPU only claims to have them.
_REMEDY = ("ONEDNN_MAX_CPU_ISA", "AVX512_CORE")
_LIBRARIES = ("ONEDNN_", "DNNL_", "ATEN_", "MKL_")  # so begin the settings of the libraries in torch
_FAULTS = ("SIGILL", "SIGSEGV", "SIGBUS", "SIGFPE", "SIGABRT", "SIGTRAP")
_FIRST_WINDOWS_FAULT = 0xC0000000


@dataclass(frozen=True)
class Verdict:
    """What the trial showed.

    Attributes:
        reason: Why bfloat16 cannot be used; None if it can.
        remedy: A setting of the environment with which it can be used, such as "NAME=value".
        final: Whether another trial would show the same.
    """

    reason: str | None
    remedy: str | None = None
    final: bool = True


def check_precision(precision: str, device: torch.device) -> None:
    """Check that a run in this precision cannot end the process.

    Raises:
        InputError: If it can. The message says why, and what to do.
    """
    if precision == "32-true" or device.type != "cpu":
        return
    verdict = bf16_on_cpu()
    if verdict.reason is None:
        return
    way_out = advice(python='precision="32-true"', command="precision=32-true")
    if verdict.remedy is not None:
        way_out += f", or set {verdict.remedy} in the environment before the start"
    raise InputError(f"precision={precision} cannot be used on this CPU: bfloat16 {verdict.reason}. Use {way_out}.")


def bf16_on_cpu() -> Verdict:
    """Return whether the CPU can compute in bfloat16.

    The answer is kept in the folder of the data sets, so that the many processes of a sweep do not all try.
    """
    return _kept(data_root() / "machine" / f"bf16-{_fingerprint()}.json")


@cache
def _kept(path: Path) -> Verdict:
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(DataError):  # where the folder cannot be written, every process tries
            stack.enter_context(alone_with(path, what="a trial of bfloat16"))
        with contextlib.suppress(OSError, ValueError, TypeError):  # not there yet, or damaged
            return Verdict(**json.loads(path.read_text(encoding="utf-8")))
        verdict = _tried()
        if verdict.final:
            with contextlib.suppress(DataError), atomic_write(path) as file:
                file.write(json.dumps(asdict(verdict)).encode())
        return verdict


def _tried() -> Verdict:
    verdict, (name, value) = _trial({}), _REMEDY
    if verdict.reason is None or not verdict.final or os.environ.get(name) == value:
        return verdict
    return Verdict(verdict.reason, f"{name}={value}" if _trial({name: value}).reason is None else None)


def _trial(settings: dict[str, str]) -> Verdict:
    """Run the program in a child process with these settings in its environment."""
    # The child must find the same torch as this process. -P keeps it from importing from the folder of the program.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **settings}
    try:
        done = subprocess.run(  # noqa: S603  (a program of ours)
            [sys.executable, "-P", str(PROGRAM)],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Verdict(f"did not finish a short trial within {SECONDS} seconds", final=False)
    except (OSError, ValueError, TypeError) as error:  # no such program, no memory, or no Python to start
        return Verdict(f"could not be tried: {error}", final=False)
    said, complaint = (_last_line(stream) for stream in (done.stdout, done.stderr))
    ending = _ending(done.returncode)
    if said == "ok" and done.returncode == 0:
        return Verdict(None)
    if said.startswith("wrong"):
        return Verdict(f"gives {said}")
    if ending in _FAULTS or done.returncode >= _FIRST_WINDOWS_FAULT:
        return Verdict(f"ends the process with {ending}")
    return Verdict(f"could not be tried: the trial ended with {ending}. {complaint}".rstrip(". "), final=False)


def _ending(code: int) -> str:
    """Return the name of the signal that ended a process, or its exit code."""
    return signal.Signals(-code).name if -code in set(signal.Signals) else f"exit code {code}"


def _last_line(stream: bytes) -> str:
    return stream.decode(errors="replace").strip().rpartition("\n")[2].strip()


def _fingerprint() -> str:
    """Return a short text that differs where the answer may differ."""
    settings = sorted(pair for pair in os.environ.items() if pair[0].startswith(_LIBRARIES))
    facts = [_cpu(), platform.release(), torch.__version__, torch.__config__.show(), settings]
    facts.append(PROGRAM.read_text(encoding="utf-8"))
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:24]


def _cpu() -> list[str]:
    """Return the model of the CPU and what it can do."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # not Linux
        return [platform.machine(), platform.processor()]
    names = ("model name", "flags", "Features", "CPU part", "microcode")
    return sorted({line for line in lines if line.startswith(names)})
