"""`postmax tune`, and `postmax reproduce --tuned`, as a person meets them."""

import json

import pytest
import yaml

from postmax.cli import main
from postmax.cli import tune as tune_module
from postmax.tables import load
from postmax.tables.tuned import TunedRow, read_tuned
from postmax.tuning.choose import nothing_chosen
from postmax.tuning.tuned_file import add_to_file


def run(capsys, *arguments):
    """Exit code, standard output and standard error of a command."""
    code = 0
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as stop:
        code = stop.code or 0
    output = capsys.readouterr()
    return code, output.out, output.err


@pytest.fixture
def table(tmp_path):
    """A small table of one's own, with something to tune."""
    content = {
        "title": "Mine",
        "run": {
            "data": {"name": "breast-cancer", "validation_share": 0.2},
            "model": {"hidden": [4]},
            "epochs": 2,
            "accelerator": "cpu",
            "save_model": False,
        },
        "scales": {"cpu": {"seeds": 1, "tuning": {"columns": ["some"], "seeds": [50], "budget": 2}}},
        "panels": [{"name": "all"}],
        "rows": [
            {"name": "CE", "set": {"loss": "ce"}, "grid": {"optimiser.lr": [1.0e-6, 0.1]}},
            {"name": "KL", "set": {"loss.divergence": "kl"}, "grid": {"optimiser.lr": [0.1]}},
        ],
        "columns": [{"name": "some", "set": {"noise": "symmetric:0.2"}}],
    }
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


def test_tune_then_reproduce_with_what_was_chosen(capsys, tmp_path, table):
    out_folder = tmp_path / "out"
    plan = json.loads(run(capsys, "tune", table, "--dry-run", "--json", "-w", 1, "--output", out_folder)[1])
    assert len(plan["new"]) == 3
    assert plan["seconds"] > 0
    assert not out_folder.exists()

    code, out, err = run(capsys, "tune", table, "-w", 1, "--output", out_folder)
    assert code == 0, err
    file = out_folder / "mine-cpu-tuned.yaml"
    assert f"settings: {file}" in out
    assert "optimiser.lr=0.1" in out
    tuned = read_tuned(file)
    assert tuned.settings == {"CE": {"optimiser.lr": 0.1}, "KL": {"optimiser.lr": 0.1}}
    assert [score.settings["optimiser.lr"] for score in tuned.rows["CE"].scores] == [1e-6, 0.1]

    code, out, err = run(capsys, "reproduce", table, "--tuned", file, "-w", 1, "-o", out_folder)
    assert code == 0, err
    folder = next(out_folder.glob("mine-cpu-tuned-*"))
    assert folder.is_dir()
    for name in ("table.md", "report.html"):
        text = (folder / name).read_text("utf-8")
        assert text.count("Settings chosen on noisy validation") == 1
        assert "optimiser.lr=0.1" in text
    plain = json.loads((folder / "table.json").read_text("utf-8"))
    assert plain["tables"][0]["tuned"] == tuned.settings
    assert f"--tuned {file}" in plain["command"]
    page = (folder / "report.html").read_bytes()
    code, out, err = run(capsys, "report", table, "--tuned", file, "-o", out_folder)
    assert code == 0, err
    assert (folder / "report.html").read_bytes() == page

    # Nothing is used that was not asked for.
    code, out, err = run(capsys, "reproduce", table, "-w", 1, "-o", out_folder)
    assert code == 0, err
    assert "Settings chosen" not in (out_folder / "mine-cpu" / "table.md").read_text("utf-8")


def test_some_rows_are_tuned_and_the_others_stay(capsys, tmp_path, table):
    command = ("tune", table, "-w", 1, "-o", tmp_path)
    file = tmp_path / "mine-cpu-tuned.yaml"
    assert run(capsys, *command, "--rows", "kl")[0] == 0
    assert set(read_tuned(file).rows) == {"KL"}
    code, out, _ = run(capsys, *command, "--rows", "CE", "--json")
    assert code == 0
    assert set(json.loads(out)["rows"]) == {"CE"}
    assert set(read_tuned(file).rows) == {"KL", "CE"}

    text = file.read_text("utf-8")
    file.write_text(text.replace("budget: 2", "budget: 3"), encoding="utf-8")
    code, _, err = run(capsys, *command, "--rows", "CE")
    assert code == 2
    assert "another budget" in err


def test_rows_that_others_tuned_meanwhile_stay(capsys, tmp_path, table, monkeypatch):
    file, run_all = tmp_path / "mine-cpu-tuned.yaml", tune_module.run_all

    def slowly(*arguments, **options):
        other = nothing_chosen(load(table), "cpu")
        row = TunedRow(chosen={"optimiser.lr": 0.1}, scores=())
        add_to_file(other.model_copy(update={"rows": {"KL": row}}), file, load(table))
        return run_all(*arguments, **options)

    monkeypatch.setattr(tune_module, "run_all", slowly)
    code, _, err = run(capsys, "tune", table, "-w", 1, "-o", tmp_path, "--rows", "CE")
    assert code == 0, err
    assert set(read_tuned(file).rows) == {"CE", "KL"}


def test_optional_rows_that_were_tuned_before_stay(capsys, tmp_path, table):
    content = yaml.safe_load(table.read_text("utf-8"))
    content["rows"][1]["optional"] = True
    table.write_text(yaml.safe_dump(content), encoding="utf-8")
    command = ("tune", table, "-w", 1, "-o", tmp_path)
    for more in (("--rows", "KL"), ()):
        code, _, err = run(capsys, *command, *more)
        assert code == 0, err
    assert set(read_tuned(tmp_path / "mine-cpu-tuned.yaml").rows) == {"CE", "KL"}

    # What cannot stay is news before hours of training, not after.
    content["run"]["epochs"] = 3
    table.write_text(yaml.safe_dump(content), encoding="utf-8")
    runs = len(list((tmp_path / "runs").iterdir()))
    code, _, err = run(capsys, *command)
    assert code == 2
    assert "row 'KL' was tuned when mine trained it in another way" in err
    assert len(list((tmp_path / "runs").iterdir())) == runs
    assert run(capsys, *command, "--rows", "all")[0] == 0


def test_rows_that_diverge_everywhere_are_named(capsys, tmp_path, table):
    content = yaml.safe_load(table.read_text("utf-8"))
    content["rows"] = [
        {
            "name": "Pearson",
            "set": {"loss": {"divergence": "pearson", "link": "exp"}},
            "grid": {"optimiser.lr": [1.0e30, 1.0e31]},
        }
    ]
    table.write_text(yaml.safe_dump(content), encoding="utf-8")
    code, _, err = run(capsys, "tune", table, "-w", 1, "-o", tmp_path)
    assert code == 0, err
    assert "every setting of row Pearson diverged; the first one was chosen" in err
    assert err.count("failed: training diverged") == 2
    assert read_tuned(tmp_path / "mine-cpu-tuned.yaml").settings == {"Pearson": {"optimiser.lr": 1e30}}


def test_trials_can_be_shorter_than_the_runs_of_the_table(capsys, tmp_path, table):
    content = yaml.safe_load(table.read_text("utf-8"))
    content["scales"]["cpu"]["tuning"]["set"] = {"epochs": 1}
    table.write_text(yaml.safe_dump(content), encoding="utf-8")
    code, out, err = run(capsys, "tune", table, "-w", 1, "--output", tmp_path, "--rows", "kl")
    assert code == 0, err
    assert "tried with epochs=1, for the trials alone" in out
    file = tmp_path / "mine-cpu-tuned.yaml"
    (trial,) = (tmp_path / "runs").iterdir()
    assert len((trial / "metrics.jsonl").read_text("utf-8").splitlines()) == 1
    code, out, err = run(capsys, "reproduce", table, "--rows", "kl", "--tuned", file, "-w", 1, "-o", tmp_path)
    assert code == 0, err
    (judged,) = (one for one in (tmp_path / "runs").iterdir() if one != trial)
    assert len((judged / "metrics.jsonl").read_text("utf-8").splitlines()) == 2
