"""The example of a plugin: its loss is what it says, and the command line trains with it."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "examples" / "plugin"


def python(*arguments):
    """Run Python in a process of its own, because a plugin changes the registries, and return what it prints."""
    path = os.pathsep.join(map(str, (PLUGIN, ROOT / "src")))
    env = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_entry_point_names_the_module():
    project = tomllib.loads((PLUGIN / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["postmax.plugins"] == {"taylor": "postmax_taylor"}
    assert (PLUGIN / "postmax_taylor.py").is_file()


def test_the_series_begins_as_the_absolute_error_and_ends_as_cross_entropy():
    code = """
import postmax_taylor, torch, postmax as pm
logits, labels = torch.randn(50, 4, dtype=torch.float64), torch.randint(0, 4, (50,))
for order, name in ((1, "mae"), (5000, "ce")):
    ours, theirs = pm.losses.get("taylor-ce", order=order), pm.losses.get(name)
    torch.testing.assert_close(ours(logits, labels), theirs(logits, labels), rtol=1e-6, atol=1e-9)
"""
    python("-c", code)


def test_the_command_line_trains_with_it(tmp_path):
    main = "from postmax.cli import main; main()"
    settings = ("noise=symmetric:0.4", "loss=taylor-ce", "loss.order=4", "model=linear", "epochs=3")
    shown = python("-c", main, "--import", "postmax_taylor", "train", "digits", *settings, "--out", tmp_path)
    assert "accuracy" in shown.lower()
    assert list(tmp_path.rglob("done"))
