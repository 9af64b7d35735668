"""The folder of a run: its lock."""

import shutil

import pytest

from postmax.errors import DataError
from postmax.runs import RunFolder


def test_a_folder_that_is_deleted_during_a_run_does_not_hide_the_error(tmp_path):
    run = RunFolder(tmp_path / "run")

    def work():
        with run.lock():
            shutil.rmtree(run.path)
            run.append("metrics.jsonl", "{}\n")

    with pytest.raises(DataError, match=r"metrics\.jsonl could not be written"):
        work()
    assert not run.path.exists()


def test_a_run_that_could_not_begin_leaves_no_folder(tmp_path):
    run = RunFolder(tmp_path / "run")
    with run.lock():
        pass
    assert not run.path.exists()
