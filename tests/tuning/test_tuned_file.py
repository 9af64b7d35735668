"""The file of tuned settings: what is written is read back, and other rows stay in it."""

from __future__ import annotations

import pytest
from tuning_examples import a_digested, a_tuned, content, table

from postmax.errors import InputError
from postmax.tables.tuned import TunedRow, read_tuned
from postmax.train.settings import read_yaml
from postmax.tuning.choose import nothing_chosen
from postmax.tuning.tuned_file import add_to_file, merged, rows_to_keep, write_tuned


def test_what_is_written_is_read_back_and_says_what_it_is(tmp_path):
    path = tmp_path / "tuned.yaml"
    write_tuned(a_tuned(), path)
    assert read_tuned(path) == a_tuned()
    assert path.read_text().startswith("# Chosen by `postmax tune test --scale small` on noisy validation labels")
    assert read_yaml(path)["rows"]["KL"]["chosen"] == {"optimiser.lr": 0.01, "optimiser.weight_decay": 0.1}
    path.write_text(path.read_text().replace("set: {}\n", ""))  # as in files that are older than this key
    assert read_tuned(path) == a_tuned()
    path.write_text(path.read_text().replace("budget: 4", "budgt: 4"))
    with pytest.raises(InputError, match=r"(?s)tuned\.yaml: .*budget is missing.*\n`postmax tune` writes such files"):
        read_tuned(path)


def test_other_rows_stay_where_some_are_tuned_again():
    old = a_tuned(("KL", "SL"))
    new = nothing_chosen(table(), "small").model_copy(
        update={"rows": {"SL": TunedRow(chosen={"loss.floor": 0.1}, scores=())}}
    )
    assert merged(new, old).settings == {**old.settings, "SL": {"loss.floor": 0.1}}
    for key, value in {
        "seeds": (7,),
        "columns": ("low",),
        "budget": 9,
        "scale": "x",
        "table": "y",
        "set": {"epochs": 1},
    }.items():
        with pytest.raises(InputError, match=f"tuned with another {key}"):
            merged(new, a_tuned(**{key: value}))


def test_a_file_keeps_the_rows_that_are_not_tried_now(tmp_path):
    path = tmp_path / "tuned.yaml"
    assert rows_to_keep(path, a_digested(), table()).rows == {}
    add_to_file(a_digested(("SL",)), path, table())
    add_to_file(a_digested(("KL",)), path, table())
    assert set(read_tuned(path).rows) == {"KL", "SL"}
    assert set(rows_to_keep(path, a_digested(("KL",)), table()).rows) == {"SL"}


def test_rows_that_cannot_stay_are_not_mixed_with_others(tmp_path):
    path = tmp_path / "tuned.yaml"
    add_to_file(a_digested(("SL",)), path, table())
    before = path.read_bytes()
    other = table(run={**content()["run"], "epochs": 3})
    with pytest.raises(InputError, match="row 'SL' was tuned when"):
        add_to_file(a_tuned(("KL",)), path, other)
    with pytest.raises(InputError, match=r"rows that the file has already \(SL\) were tuned with another seeds"):
        add_to_file(a_tuned(("KL",), seeds=(7,)), path, table())
    assert path.read_bytes() == before
    add_to_file(a_tuned(("SL",), seeds=(7,)), path, table())  # nothing has to stay
    assert read_tuned(path).seeds == (7,)
