"""`postmax noise`, as a person runs it: in a process of its own, in a folder of its own."""

import json
import shlex
import subprocess
import sys
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

from postmax import NoisyLabels, Transition, TransitionEstimate, data
from postmax.cli import main
from postmax.progress import Lines
from postmax.train import image_network

CSV = "id,name,label\n" + "".join(f"{i},'row {i}',{'cat' if i % 3 else 'dog'}\n" for i in range(300))


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run a command in an empty folder: what it prints if all is well, what it complains about if not."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments, code=0):
        with pytest.raises(SystemExit) as exit_:
            main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        assert (exit_.value.code or 0) == code, said.err
        return said.out if code == 0 else said.err

    return command


def program(*arguments, cwd):
    return subprocess.run(arguments, capture_output=True, text=True, cwd=cwd, check=False)


def test_it_is_a_program(tmp_path):
    """In a process of its own: exit code, standard output and standard error."""
    for arguments, code, out, err in (
        (["--version"], 0, "postmax 0", ""),
        (["noise", "inject", "absent.csv", "-n", "pair:0.1"], 2, "", "postmax: absent.csv does not exist.\n"),
    ):
        done = program(sys.executable, "-m", "postmax", *arguments, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (code, err)
        assert done.stdout.startswith(out)


def test_a_reader_who_leaves_is_no_error(tmp_path):
    (tmp_path / "pets.csv").write_text(CSV)
    command = f"{shlex.quote(sys.executable)} -m postmax noise inject pets.csv -n pair:0.1 --json"
    done = program("bash", "-c", command + " | head -c 1; exit ${PIPESTATUS[0]}", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "{", "")


def test_noise_goes_into_a_csv_and_everything_else_stays(tmp_path, run):
    (tmp_path / "pets.csv").write_text(CSV)
    said = run("noise", "inject", "pets.csv", "--noise", "symmetric:0.2", "--seed", 5)
    before = [line.rsplit(",", 1) for line in CSV.splitlines()]
    after = [line.rsplit(",", 1) for line in (tmp_path / "pets.noisy.csv").read_text().splitlines()]
    assert [row[0] for row in before] == [row[0] for row in after]
    assert sum(old[1] != new[1] for old, new in zip(before, after, strict=True)) == 60
    assert "true class excluded" in said
    assert "20.00% of the labels are wrong" in said
    story = NoisyLabels.load(tmp_path / "pets.noisy.noise.npz")
    assert story.sha256 in said
    assert story.classes == ("cat", "dog")


@pytest.mark.parametrize("kind", ["npy", "parquet"])
def test_the_same_seed_gives_the_same_labels_in_every_format(tmp_path, run, kind):
    labels = np.arange(200) % 4
    if kind == "npy":
        np.save(tmp_path / "y.npy", labels)
    else:
        pq.write_table(pa.table({"y": labels, "x": np.linspace(0, 1, 200)}), tmp_path / "y.parquet")
    for out in ("a", "b"):
        run("noise", "inject", f"y.{kind}", "-n", "pair:0.25", "--seed", 1, "-o", f"{out}.{kind}")
    run("noise", "inject", f"y.{kind}", "-n", "pair:0.25", "--seed", 2, "-o", f"c.{kind}")
    first, second, third = (json.loads(run("noise", "show", f"{out}.noise.npz", "--json")) for out in "abc")
    assert first["sha256"] == second["sha256"] != third["sha256"]
    assert first["verified"]
    # 50 rows of each class: a quarter of them is 12.5, rounded up or down.
    assert first["rate"] == pytest.approx(0.25, abs=0.01)


def test_show_compares_columns_and_files(tmp_path, run):
    (tmp_path / "t.csv").write_text("given,checked\na,a\nb,a\nb,b\na,a\n")
    facts = json.loads(run("noise", "show", "t.csv", "--label", "given", "--clean", "checked", "--json"))
    assert (facts["rows"], facts["wrong"], facts["counts"]) == (4, 1, [[2, 1], [0, 1]])
    np.save(tmp_path / "noisy.npy", np.array([0, 1, 2]))
    np.save(tmp_path / "clean.npy", np.array([0, 1, 1]))
    assert "33.33% of the labels are wrong" in run("noise", "show", "noisy.npy", "--clean", "clean.npy")
    run("noise", "show", "noisy.npy", "--clean", "clean.npy", "--plot", "m.svg")
    assert (tmp_path / "m.svg").read_text().startswith("<?xml")


def test_instance_noise_reads_the_features_of_the_table(tmp_path, run):
    rows = "".join(f"{i % 17},{i % 5},{i % 3}\n" for i in range(400))
    (tmp_path / "t.csv").write_text("u,v,label\n" + rows)
    facts = json.loads(run("noise", "inject", "t.csv", "-n", "instance:0.3", "--json"))
    assert 0.2 < facts["rate"] < 0.4
    assert "instance-dependent" in facts["noise"]
    np.save(tmp_path / "y.npy", np.arange(5) % 2)
    assert "depends on the features" in run("noise", "inject", "y.npy", "-n", "instance:0.3", code=2)


@pytest.fixture
def blobs(tmp_path):
    """Three well separated classes, 30 % of the labels wrong."""
    generator = torch.Generator().manual_seed(0)
    truth = torch.arange(600) % 3
    x = torch.randn(600, 2, generator=generator) + 4 * torch.eye(3, 2)[truth]
    noisy = Transition.symmetric(3, 0.3).corrupt(truth, 0).labels
    names = ("ant", "bee", "<b>fly</b>")
    lines = [f"{a:.4f},{b:.4f},{names[label]}" for (a, b), label in zip(x.tolist(), noisy.tolist(), strict=True)]
    (tmp_path / "insects.csv").write_text("\n".join(["u,v,species", *lines]) + "\n")
    np.savez(tmp_path / "insects.npz", x=x.numpy(), y=noisy.numpy())
    return tmp_path


def test_an_estimate_is_printed_written_and_drawn(blobs, run):
    said = run("noise", "estimate", "insects.csv", "-l", "species", "--replicates", 10)
    found = TransitionEstimate.load(blobs / "insects.transition.json")
    assert found.classes == ("<b>fly</b>", "ant", "bee")
    assert found.noise_rate == pytest.approx(0.3, abs=0.04)
    assert f"{found.noise_rate:.1%}" in said
    assert "<b>fly</b>" in said
    assert (blobs / "insects.transition.png").read_bytes().startswith(b"\x89PNG")
    # The estimate is a matrix that noise can be made with.
    (blobs / "more.csv").write_text("species\n" + "ant\nbee\n<b>fly</b>\n" * 50)
    facts = json.loads(run("noise", "inject", "more.csv", "-n", "insects.transition.json", "--json"))
    assert facts["rate"] == pytest.approx(found.transition.noise_rate(), abs=0.02)


def test_an_estimate_tells_how_far_it_is_and_json_does_not(blobs, capsys, monkeypatch):
    monkeypatch.chdir(blobs)
    # Without patience every stage that is a tenth further has a line, however short the work is.
    monkeypatch.setattr("postmax.cli.live.Lines", partial(Lines, patience=0.0))

    def said(*options):
        with pytest.raises(SystemExit):
            main(["noise", "estimate", "insects.npz", "--replicates", "10", "--force", *options])
        return capsys.readouterr().err

    lines = said().splitlines()
    assert "drawing rows again for the intervals: 10 of 10 times (100 %)" in lines
    assert any(line.startswith("cross-fitting networks: ") for line in lines)
    assert len(lines) < 60
    assert said("--json") == ""


def test_an_estimate_from_arrays_and_as_json(blobs, run):
    facts = json.loads(
        run("noise", "estimate", "insects.npz", "--method", "hoc", "--replicates", 5, "-o", "e.json", "--json")
    )
    assert facts["method"] == "hoc"
    assert np.allclose(np.array(facts["matrix"]).sum(1), 1)
    truth = np.arange(300) % 3
    probabilities = np.full((300, 3), 0.1) + 0.7 * np.eye(3)[truth]
    np.savez(blobs / "p.npz", probabilities=probabilities, labels=truth)
    facts = json.loads(run("noise", "estimate", "p.npz", "--replicates", 5, "--json"))
    assert facts["noise_rate"] < 0.02


@pytest.mark.parametrize(
    ("name", "row", "message"),
    [
        ("probabilities", [0.6, 0.6], "probabilities: the 13th row sums to 1.2, not to 1"),
        ("probabilities", [1.5, -0.5], "probabilities: the 13th row has the negative entry -0.5"),
        ("probabilities", [1.0, np.nan], "probabilities: index 1 of the 13th row is nan (1 such row)"),
        ("x", [np.inf, 0.0], "features: index 0 of the 13th row is inf (1 such row)"),
        ("x", [1e300, 0.0], "features: index 0 of the 13th row is 1e+300. Scale"),
    ],
)
def test_rows_of_arrays_in_a_file_are_counted_from_the_first(tmp_path, monkeypatch, capsys, name, row, message):
    monkeypatch.chdir(tmp_path)
    arrays = {key: np.full((40, 2), 0.5) for key in ("probabilities", "x")}
    arrays[name][12] = row
    np.savez(tmp_path / "p.npz", **arrays, labels=np.arange(40) % 2)
    with pytest.raises(SystemExit):
        main(["noise", "estimate", "p.npz"])
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("inject", "absent.csv", "-n", "pair:0.1"), "absent.csv does not exist"),
        (("inject", "pets.csv", "-n", "pear:0.1"), "Did you mean 'pair'"),
        (
            ("inject", "pets.csv", "-n", "pair:0.1", "-l", "sort"),
            "there is no column 'sort', which --label names. Its columns are id, name, label",
        ),
        (("inject", "pets.csv", "-n", "uniform:high"), "is for 10 classes, but the labels have 2"),
        (("inject", "pets.csv", "-n", "pair:0.1", "-o", "here/out.csv"), "the folder here does not exist"),
        (("inject", "pets.csv", "-n", "pair:0.1", "-o", "out.parquet"), "must end in .csv"),
        (("inject", "pets.csv", "-n", "pair:0.1", "--seed", "-1"), "seed is a whole number"),
        (("inject", "one.csv", "-n", "pair:0.1"), "at least two classes"),
        (("inject", "empty.csv", "-n", "pair:0.1"), "empty.csv"),
        (("inject", "gap.csv", "-n", "pair:0.1"), "has no label"),
        (("show", "pets.csv"), "--clean COLUMN"),
        (("show", "pets.npz"), "pets.npz"),
        (("estimate", "pets.csv"), "pets.csv"),
        (("estimate", "one.csv", "-l", "label"), "it has no features"),
        (("estimate", "nan.csv"), "nan.csv"),
        (("estimate", "nan.csv", "--missing", "guess"), "error or median"),
        (("estimate", "small.csv"), "too few"),
        (("estimate", "small.csv", "--method", "magic"), "unknown transition estimator"),
    ],
)
def test_what_a_person_sees_when_something_is_wrong(tmp_path, run, arguments, message):
    (tmp_path / "pets.csv").write_text(CSV)
    (tmp_path / "pets.npz").write_bytes(b"nonsense")
    (tmp_path / "one.csv").write_text("label\n" + "a\n" * 9)
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "gap.csv").write_text("x,label\n1,a\n2,\n3,b\n")
    (tmp_path / "nan.csv").write_text("x,label\n1,a\n,b\n3,b\n")
    (tmp_path / "small.csv").write_text("x,label\n1,a\n2,b\n3,b\n")
    assert message in run("noise", *arguments, code=2)


def test_nothing_is_overwritten_unless_asked(tmp_path, run):
    (tmp_path / "pets.csv").write_text(CSV)
    (tmp_path / "pets.noisy.csv").write_text("precious")
    assert "exists; give another --out" in run("noise", "inject", "pets.csv", "-n", "pair:0.1", code=2)
    assert (tmp_path / "pets.noisy.csv").read_text() == "precious"
    run("noise", "inject", "pets.csv", "-n", "pair:0.1", "--force")
    assert (tmp_path / "pets.noisy.csv").read_text() != "precious"


def test_help_begins_with_what_people_type(run):
    assert "noise" in run("--help")
    assert run("--version").startswith("postmax ")
    for command in ("inject", "show", "estimate"):
        said = run("noise", command, "--help")
        assert said.count(f"postmax noise {command} ") >= 3


def test_an_estimate_never_overwrites_what_a_person_has(blobs, run):
    before = (blobs / "insects.csv").read_text()
    arguments = ("noise", "estimate", "insects.csv", "-l", "species", "--replicates", 2)
    assert "is the input" in run(*arguments, "-o", "insects.csv", "--force", code=2)
    assert "written twice" in run(*arguments, "-o", "e.png", code=2)
    (blobs / "insects.transition.json").write_text("precious")
    assert "exists; give another --out" in run(*arguments, code=2)
    assert ".png, .svg, .pdf" in run(*arguments, "--plot", "x.gif", "-o", "e.json", code=2)
    assert (blobs / "insects.csv").read_text() == before
    assert (blobs / "insects.transition.json").read_text() == "precious"


def test_labels_that_are_written_differently_are_the_same(tmp_path, run):
    (tmp_path / "t.csv").write_text("given,checked.again\n0,0.0\n1,1.0\n2,1.0\n10,10.0\n")
    facts = json.loads(run("noise", "show", "t.csv", "--label", "given", "--clean", "checked.again", "--json"))
    assert (facts["wrong"], facts["classes"]) == (1, [0, 1, 2, 10])


def test_the_matrix_of_an_estimate_goes_by_the_names_of_its_classes(tmp_path, run):
    """Classes 0.0 … 10.0: as text 10.0 comes before 2.0, as numbers after it."""
    truth = np.arange(1100) % 11
    np.savez(
        tmp_path / "p.npz", probabilities=0.9 * np.eye(11)[truth] + 0.1 / 11, labels=np.where(truth == 10, 9, truth)
    )
    run("noise", "estimate", "p.npz", "--replicates", 2, "-o", "e.json", code=2)  # 10 never occurs among the labels
    labels = np.where((truth == 10) & (np.arange(1100) % 2 == 0), 9, truth)
    np.savez(tmp_path / "p.npz", probabilities=0.9 * np.eye(11)[truth] + 0.1 / 11, labels=labels)
    run("noise", "estimate", "p.npz", "--replicates", 2, "-o", "e.json", "--method", "confident-joint")
    (tmp_path / "t.csv").write_text("y\n" + "".join(f"{label}.0\n" for label in truth))
    run("noise", "inject", "t.csv", "-n", "e.json", "-o", "n.csv")
    noisy = (tmp_path / "n.csv").read_text().splitlines()[1:]
    changed = {(f"{a}.0", b) for a, b in zip(truth, noisy, strict=True) if f"{a}.0" != b}
    assert changed == {("10.0", "9.0")}
    (tmp_path / "other.csv").write_text("y\n" + "".join(f"c{label}\n" for label in truth))
    assert "is for the classes 0, 1, 2" in run("noise", "inject", "other.csv", "-n", "e.json", code=2)


# Images and known data sets

SWAPPED = Transition([[0.75, 0.25], [0.25, 0.75]])


@pytest.fixture
def few_steps(monkeypatch):
    """Few images need few steps: with 600 the networks would learn their noise."""
    monkeypatch.setattr(image_network, "_LEAST_STEPS", 100)


def dark_and_bright(side):
    """200 images of noise, of which every other one is brighter, with a quarter of the labels wrong."""
    truth = torch.arange(200) % 2
    pixels = torch.randint(0, 150, (200, 3, side, side), generator=torch.Generator().manual_seed(0))
    images = (pixels + 80 * truth[:, None, None, None]).to(torch.uint8)
    return data.Dataset("tones", images, SWAPPED.corrupt(truth, 0).labels, ("bright", "dark"))


def photos(folder, side=12):
    tones = dark_and_bright(side)
    for number, (image, label) in enumerate(zip(tones.inputs, tones.labels.tolist(), strict=True)):
        path = folder / tones.classes[label] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image.permute(1, 2, 0).numpy()).save(path)


@pytest.fixture
def tones(monkeypatch):
    """A data set of images that postmax knows while the test runs."""
    known = data.load
    monkeypatch.setattr(data, "names", lambda: ("cifar10n-worst", "digits", "tones"))
    monkeypatch.setattr(data, "load", lambda name: dark_and_bright(12) if name == "tones" else known(name))


# An image of fewer than 9 pixels a side is estimated from its pixels as features.
@pytest.mark.parametrize("options", [(), ("--size", 8)])
@pytest.mark.usefixtures("few_steps")
def test_an_estimate_from_a_folder_of_images(tmp_path, run, options):
    photos(tmp_path / "my.photos")
    said = run("noise", "estimate", "my.photos", *options, "--replicates", 2)
    assert "200 rows, 2 classes" in said
    found = TransitionEstimate.load(tmp_path / "my.photos.transition.json")
    assert found.classes == ("bright", "dark")
    assert found.noise_rate == pytest.approx(0.25, abs=0.08)
    assert (tmp_path / "my.photos.transition.png").exists()


@pytest.mark.usefixtures("few_steps", "tones")
def test_an_estimate_from_a_data_set_is_written_here(tmp_path, run):
    facts = json.loads(run("noise", "estimate", "Tones", "--replicates", 2, "--json"))
    assert facts["noise_rate"] == pytest.approx(0.25, abs=0.08)
    assert TransitionEstimate.load(tmp_path / "tones.transition.json").rows == 200


def test_images_larger_than_needed_are_told_while_they_are_read(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("postmax.cli.live.Lines", partial(Lines, patience=0.0))
    photos(tmp_path / "photos", side=40)
    with pytest.raises(SystemExit):
        main(["noise", "estimate", "photos", "--method", "hoc"])
    assert "reading images: 200 of 200 images (100 %)" in capsys.readouterr().err


def test_the_folder_of_the_images_may_be_the_present_one(tmp_path, run, monkeypatch):
    photos(tmp_path / "photos", side=8)
    monkeypatch.chdir(tmp_path / "photos")
    run("noise", "estimate", ".", "--replicates", 2)
    assert (tmp_path / "photos.transition.json").exists()


def test_the_features_of_a_known_data_set_are_those_of_its_training_rows(tmp_path, run):
    run("noise", "estimate", "breast-cancer", "--method", "hoc", "--replicates", 2)
    found = TransitionEstimate.load(tmp_path / "breast-cancer.transition.json")
    assert found.rows == len(data.load("breast-cancer", split="train"))


@pytest.mark.usefixtures("tones")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["cifar10n-wrst"], "unknown data set 'cifar10n-wrst'. Did you mean 'cifar10n-worst'?"),
        (["photo/"], "photo does not exist"),
        (["photo.csv"], "photo.csv does not exist"),
        ([""], "which data? Give a data set, a file or a folder"),
        (["cifar10n-worst"], "postmax data get cifar10n-worst"),
        (["./tones"], "tones does not exist"),
        (["digits", "--size", "8"], "digits: --size is for the images of a folder, but this is a data set"),
        (["pets.csv", "--size", "8"], "pets.csv: --size is for the images of a folder, but this is a file"),
        (["p.npz", "--size", "8"], "p.npz: --size is for the images of a folder, but this is a file"),
        (["photos", "--size", "0"], "greater than or equal to 1"),
        (["digits", "--label", "kind"], "--label names the column or the array of the labels, but this is a data set"),
        (["digits", "--drop", "id"], "--drop names columns that are not features, but this is a data set"),
        (["photos", "--label", "kind"], "--label names the column or the array of the labels, but this is a folder"),
        (["photos", "--method", "hoc"], "HOC needs features: give a table, or an .npz with an array x"),
        (["tones", "--method", "volmin"], "such as embeddings of images; or another --method."),
        (["photos", "--out", "photos/e.json"], "photos/e.json is in the folder of the images"),
        (["empty"], "empty has no subfolders; put the images of each class into a folder of its own"),
        (["one"], "it has one class only, 'cat'"),
        (["two"], "2 images are too few to estimate the noise of their labels; 20 or more"),
        (["sizes"], "--size 64 for noise estimate"),
    ],
)
def test_what_a_person_sees_when_images_or_data_sets_are_wrong(tmp_path, run, monkeypatch, arguments, message):
    monkeypatch.setenv("POSTMAX_DATA", str(tmp_path / "cache"))
    monkeypatch.setattr("postmax.train.image_crossfit.learn", lambda *_: pytest.fail("it trains"))
    (tmp_path / "pets.csv").write_text(CSV)
    np.savez(tmp_path / "p.npz", probabilities=np.full((40, 2), 0.5), labels=np.arange(40) % 2)
    (tmp_path / "empty").mkdir()
    sides = {"photos": {"cat": [12] * 11, "dog": [12] * 11}, "one": {"cat": [12]}}
    sides |= {"two": {"cat": [12], "dog": [12]}, "sizes": {"cat": [12], "dog": [13]}}
    for folder, classes in sides.items():
        for name, all_sides in classes.items():
            (tmp_path / folder / name).mkdir(parents=True)
            for number, side in enumerate(all_sides):
                Image.new("RGB", (side, side)).save(tmp_path / folder / name / f"{number}.png")
    assert message in run("noise", "estimate", *arguments, code=2)
    assert not list(tmp_path.glob("*.transition.json"))
