"""What the documents show must run: every Python block, the example, and the names of the tests they point to."""

import re
import runpy
from pathlib import Path

import pytest

import postmax as pm

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def python_blocks(document):
    return re.findall(r"```python\n(.*?)```", document.read_text(), flags=re.DOTALL)


@pytest.mark.parametrize("document", [d for d in DOCUMENTS if python_blocks(d)], ids=lambda d: d.name)
def test_python_blocks_run_one_after_the_other(document):
    names = {}
    for block in python_blocks(document):
        exec(compile(block, document.name, "exec"), names)


def test_demo_ends_with_every_correction_right(capsys):
    runpy.run_path(str(ROOT / "examples" / "finite_problem.py"), run_name="__main__")
    shown = capsys.readouterr().out
    for correction in ("posterior", "objective", "forward", "factored"):
        assert re.search(rf"^  {correction} +0 of \d+$", shown, flags=re.MULTILINE)
    assert re.search(r"^  not corrected +[1-9]\d* of \d+$", shown, flags=re.MULTILINE)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: d.name)
def test_links_and_test_names_exist(document):
    text = document.read_text()
    for target in re.findall(r"\]\(((?!http)[^)#]+)\)", text):
        assert (document.parent / target).exists(), target
    tests = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    for name in re.findall(r"`[\w/.:]*?(test_\w+)`", text):
        assert f"def {name}(" in tests, name
    for script in re.findall(r"python (benchmarks/\w+\.py)", text):
        assert (ROOT / script).exists(), script


def test_the_page_of_the_theory_has_the_divergences_and_links_that_exist():
    """Every row of its two tables names something that exists, and no link is missing.

    A new divergence need not have a row: `postmax list divergences` shows it with its summary.
    """
    theory = (ROOT / "docs" / "theory.md").read_text()
    tables = dict(re.findall(r"^\| (name|link) \|.*\n\|[-|: ]+\n((?:\|.*\n)+)", theory, re.MULTILINE))
    shown = {head: re.findall(r"^\| ([\w:]+) \|", body, re.MULTILINE) for head, body in tables.items()}
    assert len(shown["name"]) >= 12
    for name in shown["name"]:
        assert pm.divergences.summary(name.partition(":")[0])
    assert set(shown["link"]) == set(pm.links.names())
    assert all(pm.divergences.summary(name) for name in pm.divergences.names())


def test_the_page_of_losses_names_those_that_change_in_training():
    noise = pm.Transition.symmetric(2, 0.2)
    made = {name: pm.losses.get(name, transition=noise) for name in pm.losses.names()}
    changing = {
        name for name, loss in made.items() if any(loss.at(share) is not loss for share in (0.0, 0.2, 0.5, 0.7))
    }
    told = (ROOT / "docs" / "losses.md").read_text().split("change on the way:")[1].split("`at`")[0]
    assert set(re.findall(r"`([a-z-]+)`", told)) == changing
