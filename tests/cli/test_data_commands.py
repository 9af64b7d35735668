"""`postmax data get | list | where` as a person meets them."""

import json

import pytest

from postmax.cli import main


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Exit code, standard output and standard error of `postmax data ...`, with a folder of data sets of its own."""
    monkeypatch.setenv("POSTMAX_DATA", str(tmp_path))

    def run(*words):
        code = 0
        try:
            main(["data", *map(str, words)])
        except SystemExit as stop:
            code = stop.code or 0
        return code, *capsys.readouterr()

    return run


def test_a_data_set_that_is_here_is_verified(run):
    code, out, err = run("get", "digits", "breast-cancer")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "digits: was here, and is verified: all 1797 rows, train 1438 rows, test 359 rows.",
        "breast-cancer: was here, and is verified: all 569 rows, train 456 rows, test 113 rows.",
    ]
    assert json.loads(run("get", "digits", "--json")[1])[0]["rows"]["all"] == 1797


def test_a_damaged_data_set_is_named(run, tmp_path):
    (tmp_path / "cifar-10-batches-py").mkdir()
    (tmp_path / "cifar-10-batches-py" / "data_batch_1").write_bytes(b"damaged")
    code, out, err = run("get", "cifar10")
    assert (code, out) == (2, "")
    assert f"{tmp_path / 'cifar-10-batches-py' / 'data_batch_1'}" in err


def test_by_hand_means_each_file_and_its_place(run, tmp_path):
    code, out, err = run("get", "webvision")
    assert (code, out) == (2, "")
    for archive, place in (("info.tar", "info/synsets.txt"), ("flickr_resized_256.tar", "flickr")):
        assert f"{tmp_path / 'webvision' / place}: Unpack {archive} of WebVision 1.0 (data.vision.ee.ethz.ch" in err


def test_a_wrong_name_is_found_before_anything_is_fetched(run, tmp_path):
    code, _, err = run("get", "cifar100", "cifar11")
    assert code == 2
    assert "unknown data set 'cifar11'" in err
    assert not list(tmp_path.iterdir())


def test_the_list_says_what_is_here_and_how_to_get_the_rest(run, tmp_path):
    (tmp_path / "cifar-10-batches-py").mkdir()
    code, out, err = run("list")
    assert (code, err) == (0, "")
    states = dict(line.split(maxsplit=1) for line in out.splitlines())
    assert states["cifar10"] == "here"
    assert states["cifar100"] == "missing: can be downloaded, 169 MB"
    assert states["cifar10-embedded"] == "missing: features are computed"
    assert states["webvision"] == "missing: by hand"
    assert states["digits"] == "needs no files"
    assert states["folder:"] == str(tmp_path)
    listed = json.loads(run("list", "--root", tmp_path / "other", "--json")[1])
    assert listed["root"] == str(tmp_path / "other")
    assert listed["datasets"]["cifar10"] == "missing: can be downloaded, 170 MB"


def test_where_files_are_or_go(run, tmp_path):
    assert run("where") == (0, f"{tmp_path}\n", "")
    (tmp_path / "cifar-10-batches-py").mkdir()
    assert run("where", "cifar10") == (0, f"{tmp_path / 'cifar-10-batches-py'}\n", "")
    out = run("where", "cifar100")[1]
    assert f"{tmp_path / 'cifar-100-python.tar.gz'}: Download https://" in out
    assert "Its MD5 is eb9058c3a382ffc7106e4002c42a8d85" in out
    assert run("where", "digits")[1] == "digits needs no files.\n"


def test_training_without_the_data_names_the_command_that_gets_them(run, capsys):
    with pytest.raises(SystemExit):
        main(["train", "cifar10"])
    assert "`postmax data get cifar10` downloads it." in capsys.readouterr().err
