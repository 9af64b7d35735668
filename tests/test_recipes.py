"""Every recipe in CONTRIBUTING.md, followed to the letter: one file and one test, and nothing else changes."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
RECIPES = ROOT / "CONTRIBUTING.md"
KINDS = ("A divergence", "A loss", "A method", "A data set", "A model", "A transition estimator", "A table")
# Tests of everything that is registered. They must pass with the new files without a change.
WATCHERS = (
    "tests/test_documents.py::test_the_page_of_the_theory_has_the_divergences_and_links_that_exist",
    "tests/test_losses_page.py",
    "tests/divergences/test_divergences.py",
    "tests/losses/test_loss_catalogue.py",
    "tests/losses/terms/test_every_term.py",
    "tests/methods/test_methods.py",
    "tests/methods/test_every_method.py",
    "tests/data/test_catalogue.py",
    "tests/models/test_model_catalogue.py",
    "tests/estimation/test_bad_input.py",
    "tests/tables/test_paper_tables.py",
)


def recipes():
    """Return {kind: {path: content}} from the document."""
    text = RECIPES.read_text().split("## How to add something")[1].split("\n## ")[0]
    found = {}
    for section in text.split("\n### ")[1:]:
        kind = section.partition("\n")[0].strip()
        found[kind] = dict(re.findall(r"^`([\w/.-]+)`\n\n```\w+\n(.*?)^```", section, flags=re.DOTALL | re.MULTILINE))
    return found


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """A copy of the sources and tests with the files of all recipes in it."""
    folder = tmp_path_factory.mktemp("house")
    for part in ("src", "tests", "docs", "benchmarks", "pyproject.toml", "README.md"):
        source = ROOT / part
        skip = shutil.ignore_patterns("__pycache__", "results", "*.png")
        shutil.copytree(source, folder / part, ignore=skip) if source.is_dir() else shutil.copy(source, folder / part)
    for files in recipes().values():
        for path, content in files.items():
            assert not (folder / path).exists(), path
            (folder / path).write_text(content)
    return folder


def run(house, *command):
    path = os.pathsep.join([str(house / "src"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=house, env=environment, capture_output=True, text=True, check=False
    )


def test_there_is_a_recipe_for_everything_of_one_file_and_one_test():
    found = recipes()
    assert set(found) == set(KINDS)
    for files in found.values():
        assert [path.partition("/")[0] for path in files] == ["src", "tests"]


@pytest.mark.thorough
def test_the_recipes_work(house):
    tests = [path for files in recipes().values() for path in files if path.startswith("tests/")]
    done = run(house, "pytest", "-q", "-p", "no:cacheprovider", *tests)
    assert done.returncode == 0, done.stdout
    assert re.search(r"\d\d+ passed", done.stdout)


@pytest.mark.thorough
def test_what_was_added_is_listed(house):
    done = run(house, "postmax", "list", "--json")
    assert done.returncode == 0, done.stderr
    for name in ("cubic", "squared-miss", "late-start", "circles", "perceptron", "majority", "digits"):
        assert f'"{name}"' in done.stdout


@pytest.mark.thorough
def test_what_was_added_trains_together(house, tmp_path):
    settings = ["method=late-start", "loss.divergence=cubic", "loss.floor=0.05", "model=perceptron", "epochs=3"]
    done = run(house, "postmax", "train", "circles", "noise=symmetric:0.2", *settings, "-o", str(tmp_path))
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_nothing_else_has_to_change(house):
    done = run(house, "pytest", "-q", "-p", "no:cacheprovider", "-n", "2", *WATCHERS)
    assert done.returncode == 0, done.stdout


def test_the_recipes_are_clean(house):
    sources = [path for files in recipes().values() for path in files if path.endswith(".py")]
    done = run(house, "ruff", "check", "--no-cache", *sources)
    assert done.returncode == 0, done.stdout
    done = run(house, "ruff", "format", "--no-cache", "--check", *sources)
    assert done.returncode == 0, done.stdout
