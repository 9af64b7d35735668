"""What `postmax doctor` does: check that everything that postmax needs is there and computes right results."""

from __future__ import annotations

import json
import platform
import shutil
import tempfile
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

import torch
import typer
from rich.console import Console
from rich.text import Text

import postmax
from postmax import FPMLLoss, data, plugins
from postmax.errors import InputError
from postmax.sweep.cores import cores

_PACKAGES = {
    "torch": "",
    "numpy": "",
    "scikit-learn": "data",
    "pyarrow": "data",
    "pillow": "data",
    "lightning-fabric": "train",
    "pydantic": "train",
    "safetensors": "train",
    "scipy": "train",
    "matplotlib": "plot",
    "jinja2": "report",
}
_LITTLE_SPACE = 2 << 30


class Finding(NamedTuple):
    """The result of one check."""

    what: str
    fine: bool
    detail: str


def doctor(*, as_json: bool) -> None:
    """Check everything, and print what was found.

    Raises:
        typer.Exit: With code 1 if something is wrong.
    """
    findings = [
        *_packages(),
        *_machine(),
        _guarded("numbers", _numbers),
        _folder(Path.cwd()),
        *_datasets(),
        *_plugins(),
    ]
    sick = [finding for finding in findings if not finding.fine]
    if as_json:
        typer.echo(json.dumps([finding._asdict() for finding in findings]))
    else:
        console = Console(highlight=False, soft_wrap=True)
        for finding in findings:
            mark = Text("ok  ", style="green") if finding.fine else Text("!!  ", style="bold red")
            console.print(mark + Text(f"{finding.what:<22} {finding.detail}", style=""))
        console.print("Everything is fine." if not sick else f"{len(sick)} to fix: see the lines marked !!.")
    if sick:
        raise typer.Exit(1)


def _packages() -> list[Finding]:
    found = [Finding("postmax", True, f"{postmax.__version__}, Python {platform.python_version()}")]
    for package, extra in _PACKAGES.items():
        try:
            found.append(Finding(package, True, version(package)))
        except PackageNotFoundError:
            advice = f"missing: pip install 'postmax[{extra}]'" if extra else "missing: pip install postmax"
            found.append(Finding(package, False, advice))
    return found


def _machine() -> list[Finding]:
    available, threads = cores(), torch.get_num_threads()
    detail = f"{available} cores, {threads} threads"
    if threads > available:
        detail += f": more threads than cores are slow; set OMP_NUM_THREADS={available}"
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "none; the CPU is used"
    return [Finding("CPU", threads <= available, detail), _guarded("bf16 on the CPU", _bf16), Finding("GPU", True, gpu)]


def _bf16() -> str:
    """Return whether bf16-mixed works on the CPU. Nothing requires it, so it is fine if it does not."""
    from postmax.train.precision import bf16_on_cpu  # noqa: PLC0415  (what it imports may be missing)

    verdict = bf16_on_cpu()
    if verdict.reason is None:
        return "precision=bf16-mixed can be used"
    return f"not usable: it {verdict.reason}" + (f"; {verdict.remedy} helps" if verdict.remedy else "")


def _numbers() -> str:
    """Check that f-PML with KL and softmax is cross-entropy. If not, this build of torch computes wrong results."""
    logits = torch.linspace(-30, 30, 60).reshape(6, 10).requires_grad_()
    labels = torch.arange(6)
    ours, theirs = FPMLLoss("kl", "softmax"), torch.nn.CrossEntropyLoss()
    gradients = [torch.autograd.grad(loss(logits, labels), logits)[0] for loss in (ours, theirs)]
    if not torch.allclose(gradients[0], gradients[1], rtol=1e-5, atol=1e-7):
        raise InputError("the gradient of f-PML differs from cross-entropy's")
    return "f-PML with KL and softmax equals cross-entropy"


def _guarded(what: str, check: Callable[[], str]) -> Finding:
    try:
        return Finding(what, True, check())
    except (RuntimeError, OSError) as error:
        return Finding(what, False, str(error))


def _folder(folder: Path) -> Finding:
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"postmax")
    except OSError as error:
        return Finding("this folder", False, f"{folder} cannot be written: {error.strerror}")
    free = shutil.disk_usage(folder).free
    return Finding("this folder", free > _LITTLE_SPACE, f"{folder}: writable, {free / (1 << 30):.1f} GiB free")


def _datasets() -> list[Finding]:
    """Return one finding with the data sets that are there. It is always fine, because no data set is required."""
    root = data.data_root()
    here = [name for name in data.names() if data.needed_files(name) and not data.absent(name)]
    detail = f"{root}: {', '.join(here)}" if here else f"{root} has none; breast-cancer and digits need no files"
    return [Finding("data sets", True, detail)]


def _plugins() -> list[Finding]:
    """Return one finding for each installed plugin."""
    return [
        Finding(
            f"plugin {plugin.name}",
            plugin.error is None,
            f"{plugin.package}, {plugin.module}: " + ("loaded" if plugin.error is None else f"broken: {plugin.error}"),
        )
        for plugin in plugins.installed()
    ]
