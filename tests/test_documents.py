"""What the documents show must run: every Python block, the example, and the names of the tests they point to."""

import re
import runpy
from pathlib import Path

import pytest

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


def test_every_divergence_and_link_is_documented():
    import postmax as pm  # noqa: PLC0415

    theory = (ROOT / "docs" / "theory.md").read_text()
    for name in (*pm.divergences.names(), *pm.links.names()):
        assert re.search(rf"^\| {name}(:\w+)? \|", theory, flags=re.MULTILINE), name
