"""The displays of a sweep and of a single run: live lines on a terminal, and messages or nothing elsewhere."""

from __future__ import annotations

import io
import subprocess
import sys

from fake_runs import execute, job
from rich.console import Console

from postmax.cli.live import show_run, show_stages
from postmax.cli.progress import show_progress
from postmax.progress import Stage, tell
from postmax.runs import Progress
from postmax.sweep.events import Event
from postmax.sweep.sweep import sweep


def test_lines_on_a_terminal(tmp_path):
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=100)
    jobs = [job(0), job(1, diverges=True)]
    with show_progress(jobs, console=console) as watch:

        def look(event):
            watch(event)
            if event.kind == "progress":
                watch._live.refresh()

        sweep(jobs, tmp_path, execute=execute, watch=look)
    text = file.getvalue()
    for part in ("job 0", "1/3  loss 1  50.0 %", "3/3  loss 0.333", "1/2 runs", "job 1: the loss is not finite"):
        assert part in text


def test_quiet_elsewhere(tmp_path):
    file = io.StringIO()
    jobs = [job(0), job(1, diverges=True)]
    with show_progress(jobs, console=Console(file=file)) as watch:
        sweep(jobs, tmp_path, execute=execute, watch=watch)
    assert file.getvalue() == ""
    said = []
    with show_progress(jobs, console=Console(file=file), say=said.append, every=0.0) as watch:
        sweep(jobs, tmp_path, execute=execute, watch=watch)
    assert file.getvalue() == ""
    assert said == ["1/2 runs", "job 1: the loss is not finite", "2/2 runs, 0 s left"]


def test_damage_is_told_at_once(tmp_path):
    file, said = io.StringIO(), []
    with show_progress([job(0)], console=Console(file=file, force_terminal=True, width=100)) as watch:
        watch(Event("damaged", job(0), reason="[/b] is damaged"))
    assert "job 0: [/b] is damaged" in file.getvalue()
    with show_progress([job(0)], console=Console(file=file), say=said.append) as watch:
        watch(Event("damaged", job(0), reason="it is damaged"))
    assert said == ["job 0: it is damaged"]


def test_the_line_of_a_single_run():
    file = io.StringIO()
    with show_run("[b] digits", console=Console(file=file, force_terminal=True, width=100)) as show:
        show(Progress(3, 20, 0.25, 0.875, 34.0))
    for part in ("[b] digits", "3/20  loss 0.25  87.5 %  34 s"):
        assert part in file.getvalue()


def test_a_single_run_has_a_line_now_and_then_in_a_log():
    def logged(**options):
        file = io.StringIO()
        with show_run("[b] digits", console=Console(file=file), **options) as show:
            tell(Stage("waiting for features"))
            show(Progress(3, 20, 0.25, 0.875, 34.0))
        return file.getvalue()

    assert logged() == "waiting for features\n"
    assert logged(every=0.0) == "waiting for features\n[b] digits: 3/20  loss 0.25  87.5 %  34 s left\n"
    assert logged(every=0.0, quiet=True) == ""


def test_long_work_has_a_live_line_on_a_terminal():
    file = io.StringIO()
    with show_stages(console=Console(file=file, force_terminal=True, width=100), quiet=True):
        tell(Stage("computing features", 30, 100, "images"))
        tell(Stage("waiting for [b] features"))
    for part in ("computing features", "30 of 100 images (30 %)", "waiting for [b] features"):
        assert part in file.getvalue()


def test_long_work_has_few_lines_in_a_log():
    file = io.StringIO()
    with show_stages(console=Console(file=file)):
        for done in range(1001):
            tell(Stage("computing features", done, 1000, "images"))
        tell(Stage("[b] " + 50 * "long "))
    assert file.getvalue() == "[b] " + 50 * "long " + "\n"  # all was done within two seconds
    silent = io.StringIO()
    with show_stages(console=Console(file=silent), quiet=True):
        tell(Stage("waiting"))
    assert silent.getvalue() == ""


def test_work_before_the_runs_of_a_sweep_is_shown_too():
    file, said = io.StringIO(), []
    with show_progress([job(0)], console=Console(file=file, force_terminal=True, width=100)):
        tell(Stage("computing features", 30, 100, "images"))
    assert "30 of 100 images" in file.getvalue()
    with show_progress([job(0)], console=Console(file=io.StringIO()), say=said.append):
        tell(Stage("waiting for features"))
    assert said == ["waiting for features"]


def test_the_display_of_a_single_run_needs_no_sweep():
    code = "import sys, postmax.cli.live; print([name for name in sys.modules if name.startswith('postmax.sweep')])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"
