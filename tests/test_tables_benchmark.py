"""The benchmark on real tables: what it reads, that it continues where it stopped, and its page."""

import json
import sys

import numpy as np
import pytest
import tables
from table_sources import DESIGN, MOST_ROWS, SET_ASIDE, SOURCES, read
from tables import Case, complete, finished, main, page, ranks, run, todo

RESULT = {"rows": 100, "noisy": 0.2, "fit": 1.0, "predict": 0.5}


def test_tables_are_set_aside_by_their_names_alone():
    assert set(DESIGN) | set(SET_ASIDE) == set(SOURCES)
    assert not set(DESIGN) & set(SET_ASIDE)
    assert len(SOURCES) >= 20
    assert len(SET_ASIDE) >= len(SOURCES) // 5


@pytest.mark.parametrize("name", ["iris", "wine", "breast-cancer"])
def test_a_table_of_scikit_learn(name):
    table = read(name)
    assert len(table.rows) == len(table.labels) <= MOST_ROWS
    assert np.bincount(table.labels).min() >= 10


@pytest.mark.parametrize("name", sorted(n for n, s in SOURCES.items() if s.package != "sklearn"))
@pytest.mark.thorough
def test_a_table_of_another_package(name):
    for package in ("pandas", SOURCES[name].package):
        if tables.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    table = read(name)
    assert table.rows.ndim == 2
    assert np.bincount(table.labels).min() >= 5  # at least ten before large tables are thinned out
    assert np.nanstd(table.rows, axis=0).max() > 0


@pytest.mark.parametrize(
    ("noise", "least", "most"),
    [("clean", 0, 0), ("symmetric-20", 0.18, 0.22), ("asymmetric-30", 0.28, 0.32), ("instance-30", 0.2, 0.4)],
)
def test_a_case(noise, least, most):
    result = run(Case("iris", noise, 0, "kNN"), read("iris"))
    assert least <= result["noisy"] <= most
    assert 0.5 < result["accuracy"] <= 1
    assert run(Case("iris", noise, 0, "kNN"), read("iris"))["accuracy"] == result["accuracy"]


def test_smallest_tables_first_and_one_seed_of_everything_before_the_next():
    cases = list(todo(["digits", "iris"], ["clean"], ["kNN"], 2))
    assert [(case.table, case.seed) for case in cases] == [("iris", 0), ("digits", 0), ("iris", 1), ("digits", 1)]


def test_it_continues_where_it_stopped(tmp_path, monkeypatch, capsys):
    out = tmp_path / "results.jsonl"
    arguments = [
        "tables.py",
        "--tables",
        "iris",
        "--models",
        "kNN",
        "--noises",
        "clean",
        "symmetric-20",
        "--seeds",
        "1",
    ]
    monkeypatch.setattr(sys, "argv", [*arguments, "--out", str(out)])
    main()
    first = out.read_text().splitlines()
    assert len(first) == 2
    out.write_text(first[0] + "\n" + first[1][:20])  # killed while it wrote
    capsys.readouterr()
    main()
    assert capsys.readouterr().out.count("iris") == 1
    assert {case.noise for case in finished(out)} == {"clean", "symmetric-20"}
    main()
    assert not capsys.readouterr().out


def results(**accuracies):
    cases = {}
    for model, values in accuracies.items():
        for (table, noise, seed), accuracy in values.items():
            cases[Case(table, noise, seed, model)] = {**RESULT, "accuracy": accuracy}
    return cases


def test_only_seeds_that_all_models_have_are_compared():
    found = results(FPML={("iris", "clean", 0): 0.9, ("iris", "clean", 1): 0.1}, kNN={("iris", "clean", 0): 0.8})
    assert complete(found, ["FPML", "kNN"]) == [("iris", "clean", {"FPML": 0.9, "kNN": 0.8})]


def test_the_page_counts_ranks_wins_and_losses():
    found = results(
        FPML={("a", "symmetric-20", 0): 0.9, ("b", "symmetric-20", 0): 0.7, ("a", "clean", 0): 0.9},
        kNN={("a", "symmetric-20", 0): 0.8, ("b", "symmetric-20", 0): 0.8, ("a", "clean", 0): 0.9},
    )
    text = page(found, ["FPML", "kNN"])
    assert "| FPML | 90.0 | 80.0 | 1.50 | 1.50 | 0 – 0 | 1.5 |" in text
    assert "| kNN | 90.0 | 80.0 | 1.50 | 1.50 | 1 – 1 | 1.5 |" in text
    assert "| b | 70.0 | **80.0** |" in text
    assert "No table" in page({}, ["FPML"])


def test_equal_accuracies_share_their_ranks():
    assert ranks({"a": 0.5, "b": 0.5, "c": 0.1, "d": 0.9}) == {"a": 2.5, "b": 2.5, "c": 4.0, "d": 1.0}


def test_lines_that_are_cut_off_do_not_count(tmp_path):
    path = tmp_path / "results.jsonl"
    whole = {"table": "iris", "noise": "clean", "seed": 0, "model": "kNN", "accuracy": 1.0}
    path.write_text(json.dumps(whole) + '\n{"table": "wi')
    assert list(finished(path)) == [Case("iris", "clean", 0, "kNN")]
    assert not finished(tmp_path / "none.jsonl")
