"""The documents are right: every Python block runs, and every link, test and script that they name exists."""

import re
from pathlib import Path

import pytest

import postmax as pm

ROOT = Path(__file__).parent.parent
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
PROGRAMS = [d for d in DOCUMENTS if d.name != "CONTRIBUTING.md"]  # its recipes are followed by a test of their own


def python_blocks(document):
    return re.findall(r"```python\n(.*?)```", document.read_text(), flags=re.DOTALL)


@pytest.mark.thorough
@pytest.mark.parametrize("document", [d for d in PROGRAMS if python_blocks(d)], ids=lambda d: d.name)
def test_python_blocks_run_one_after_the_other(document):
    names = {}
    for block in python_blocks(document):
        exec(compile(block, document.name, "exec"), names)


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
