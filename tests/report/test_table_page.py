"""The page as text: what it says, in which order, and that nothing of it is dangerous."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from report_examples import metrics, realistic, reliability, small, table

from postmax.errors import DataError, InputError
from postmax.report.content import Group, NoiseMatrix, Series
from postmax.report.table import pictures
from postmax.report.table.content import Run, TableContent
from postmax.report.table.page import write_table_page
from postmax.tables.table import Cell, Panel, Table

FILES = [
    f"{name}.{kind}" for name in ("accuracy", "learning-curves", "reliability", "transition") for kind in ("png", "svg")
]
EVIL = '<script>alert(1)</script>"><img src=x onerror=alert(2)>$\\frac{'


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    return write_table_page(realistic(seeds=3, epochs=4, rows=("KL",)), folder).read_text("utf-8")


def test_files_are_written(tmp_path):
    path = write_table_page(small(), tmp_path / "new" / "folder")
    assert path == tmp_path / "new" / "folder" / "report.html"
    assert sorted(one.name for one in path.parent.iterdir()) == sorted([*FILES, "report.html"])


def test_the_answer_comes_first_and_the_oracle_last(page):
    places = [
        page.index(text)
        for text in (
            'class="answer"',
            "Selection: last epoch",
            "Oracle, best epoch on the test set: it cannot be chosen without the true labels",
            'id="accuracy"',
            'id="curves"',
            'id="noise"',
            'id="reliability"',
            "postmax reproduce breast-cancer --scale cpu",
            "weight_decay: 0.05",
            "2.13.0",
            "runs/",
            "Noise hashes",
        )
    ]
    assert places == sorted(places)
    assert "2 min 31 s of computing" in page
    assert "seeds 0–2" in page


def test_nothing_is_loaded_from_anywhere(page):
    links = re.findall(r'(?:href|src|action|data|poster|srcset)\s*=\s*"([^"]*)"', page)
    assert links
    assert all(link.startswith(("#", "data:")) for link in links)
    assert not re.search(r"<(script|iframe|object|embed|form|base)\b", page)
    assert "@import" not in page
    assert not re.search(r"url\((?!#)", page)
    assert "http://" not in page
    assert "https://" not in page
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    assert policy.startswith("default-src 'none';")
    assert "script-src" not in policy  # so that none may run


def test_names_are_text_whatever_they_contain(tmp_path):
    cell = Cell((90.0, 91.0), paper=90.5)
    evil = Table(EVIL, EVIL, EVIL, "last", "rows", (Panel(EVIL, (EVIL,), (EVIL,), {(EVIL, EVIL): cell}),), note=EVIL)
    base = small()
    content = TableContent(
        title=EVIL,
        tables=(evil,),
        about=EVIL,
        source=EVIL,
        groups=(
            Group(EVIL, EVIL, (Series(EVIL, base.groups[0].series[0].metrics, base.groups[0].series[0].reliability),)),
        ),
        matrices=(NoiseMatrix(EVIL, (EVIL, "a\0b\n\x1b猫"), ((0.9, 0.1), (0.2, 0.8))),),
        configuration=EVIL,
        runs=(Run(EVIL, EVIL, EVIL, EVIL, 1.0, {0: {"rows": 1, "rate": 0.1, "sha256": EVIL}}),),
        environment={EVIL: EVIL},
        command=EVIL,
        seconds=1.0,
    )
    folder = write_table_page(content, tmp_path).parent
    for path in (folder / "report.html", *folder.glob("*.svg")):
        text = path.read_text("utf-8")
        assert "<script" not in text
        assert "<img" not in text
        # Nor does a name break out of an attribute.
        assert not re.search(r"<[^<>]*\bonerror\s*=[^<>]*>", re.sub(r'"[^"]*"', '""', text))
    assert "&lt;script&gt;alert(1)" in (folder / "report.html").read_text("utf-8")


def test_tuned_settings_have_a_section_of_their_own(tmp_path):
    base = small()
    assert "noisy validation" not in write_table_page(base, tmp_path / "none").read_text("utf-8")
    tuned = replace(base.tables[0], tuned={"KL": {"optimiser.lr": 0.01, "loss.floor": 0.2}, EVIL: {EVIL: EVIL}})
    page = write_table_page(replace(base, tables=(tuned,)), tmp_path / "tuned").read_text("utf-8")
    assert '<h2 id="tuned">Settings chosen on noisy validation</h2>' in page
    assert '<a href="#tuned">' in page
    assert '<th scope="row">KL</th><td><code>optimiser.lr=0.01 loss.floor=0.2</code></td>' in page
    assert "&lt;script&gt;alert(1)" in page
    assert "<script" not in page
    assert "<img" not in page


def test_the_same_content_gives_the_same_bytes(tmp_path):
    write_table_page(small(), tmp_path / "here")
    # Another process, where sets and hashes come in another order.
    script = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r})\n"
        "from pathlib import Path\nfrom report_examples import small\n"
        "from postmax.report.table.page import write_table_page\n"
        f"write_table_page(small(), Path({str(tmp_path / 'there')!r}))"
    )
    subprocess.run([sys.executable, "-c", script], check=True, env={**os.environ, "PYTHONHASHSEED": "7"})
    for name in [*FILES, "report.html"]:
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "there" / name).read_bytes(), name


def test_cells_show_failures_and_differences(tmp_path):
    cells = {
        ("KL", "none"): Cell((90.0, 91.0), paper=92.1, failed=2),
        ("KL", "ours"): Cell((95.0, 96.0, 97.0), paper=95.6, best=True),
        ("SL", "none"): Cell((), paper=92.1, missing=3),
        ("SL", "ours"): Cell((95.6, 95.6, 95.64), paper=95.6, p_value=0.4),
    }
    shown = Table("t", "T", "cpu", "last", "columns", (Panel("", ("KL", "SL"), ("none", "ours", "gap"), cells),))
    text = write_table_page(small(tables=(shown,), groups=(), matrices=()), tmp_path).read_text("utf-8")
    flat = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text))
    assert "90.5 ± 0.7 paper 92.1 −1.6 2 seeds failed n = 2" in flat
    assert "96.0 ± 1.0 (best) paper 95.6 +0.4" in flat
    assert "– paper 92.1 3 to run" in flat
    assert "95.6 ± 0.0 ≈ paper 95.6 ±0.0" in flat
    assert "2 seeds failed and are not part of any mean. 1 of 4 cells has no result." in flat
    assert 'class="gap down"' in text
    assert 'class="gap up"' in text


def test_figures_that_mean_something_else_have_no_difference(tmp_path):
    cells = {("KL", "none"): Cell((90.0, 91.0), paper=92.1), ("KL", "ours"): Cell((95.0, 96.0), best=True)}
    panels = (Panel("", ("KL",), ("none", "ours"), cells),)
    shown = Table("t", "T", "cpu", "last", "columns", panels, note="A small network.", comparable=False)
    text = write_table_page(small(tables=(shown,), groups=(), matrices=()), tmp_path).read_text("utf-8")
    flat = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text))
    assert "90.5 ± 0.7 paper 92.1 95.5 ± 0.7 (best)" in flat
    assert 'class="gap' not in text
    assert "difference from it" not in text
    assert "hollow diamonds" not in text
    comparable = write_table_page(small(tables=(replace(shown, comparable=True),), groups=(), matrices=()), tmp_path)
    assert "hollow diamonds" in comparable.read_text("utf-8")
    assert "Best in each row: ours in 1 of 1 (" in text
    # The note is where the figures are.
    assert text.index('id="results"') < text.index("A small network.") < text.index('<table class="results"')


def test_a_report_of_almost_nothing(tmp_path):
    nothing = Table("t", "T", "cpu", "last", "rows", (Panel("", ("KL",), ("none",), {("KL", "none"): Cell()}),))
    text = write_table_page(TableContent("Nothing", (nothing,)), tmp_path).read_text("utf-8")
    assert "Nothing has been measured yet." in text
    assert "<svg" not in text
    assert not list(tmp_path.glob("*.svg"))


def test_what_does_not_fit_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(pictures, "_GROUPS", 1)
    one = Series("a", metrics(95, 1, 2, random.Random(0)), reliability(1, 0.1, random.Random(0)))
    groups = tuple(Group("p", f"row {i}", (one,)) for i in range(3))
    large = NoiseMatrix("large", tuple(map(str, range(200))), tuple((1 / 200,) * 200 for _ in range(200)))
    content = small(groups=groups, matrices=(large,))
    text = write_table_page(content, tmp_path).read_text("utf-8")
    assert "Not drawn: 2 more rows, matrices of more than 100 classes." in text
    assert not (tmp_path / "transition.svg").exists()


def test_bad_input(tmp_path):
    with pytest.raises(InputError, match="at least one table"):
        write_table_page(small(tables=()), tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="could not be made"):
        write_table_page(small(), tmp_path / "file" / "report")


def test_tables_are_in_the_order_of_honesty(tmp_path):
    rng = random.Random(0)
    some = tuple(table(rule, rng, 2, rows=("KL",)) for rule in ("oracle", "noisy-val", "last"))
    text = write_table_page(small(tables=some, groups=(), matrices=()), tmp_path).read_text("utf-8")
    assert (
        text.index("last epoch</h3>") < text.index("noisy validation labels</h3>") < text.index("the true labels</h3>")
    )
