"""The page of a single run: what it says for runs of every kind, and that nothing of it is dangerous."""

from __future__ import annotations

import hashlib
import html
import json
import re
import subprocess
import sys
from dataclasses import replace

import pytest
from report_examples import finished
from small_runs import estimate_of

from postmax.errors import DataError
from postmax.report.run_page import write_run_page
from postmax.train.config import read_config
from postmax.transition import Transition

EVIL = '<script>alert(1)</script>"><img src=x onerror=alert(2)>$\\frac{'


def page_of(folder, **changes):
    return write_run_page(*finished(folder, **changes)).read_text("utf-8")


def words(page):
    """The text of a page, without style sheet, pictures and tags."""
    page = re.sub(r"<(style|svg)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))


def test_the_result_comes_first(tmp_path):
    page = words(page_of(tmp_path / "run"))
    assert "Test accuracy 91.0 ± 1.0 % on 114 test rows (mean ± standard deviation of n = 3 seeds, last epoch)." in page
    assert "20.0 % of the training labels are wrong." in page
    assert "Last epoch 91.0 ± 1.0 % 2.0 ± 0.0 % 5 " in page
    assert "Oracle, best epoch on the test set 96.0 ± 1.0 % 2.0 ± 0.0 % 2–4 " in page
    assert "It cannot be chosen without the true labels" in page
    assert "noisy validation" not in page
    parts = [
        "Results",
        "Results for each class",
        "Data and training",
        "Label noise",
        "Learning curves",
        "Calibration",
        "Run it again",
        "Versions",
    ]
    places = [page.rindex(part) for part in parts]
    assert places == sorted(places)
    for seed, accuracy in ((0, "90.0 %"), (1, "91.0 %"), (2, "92.0 %")):
        assert f" {seed} {accuracy} " in page


def test_one_seed_has_no_deviation(tmp_path):
    page = words(page_of(tmp_path / "run", seeds=(7,)))
    assert "Test accuracy 90.0 % on 114 test rows (one seed, last epoch)." in page
    assert "±" not in page
    assert "standard deviation" not in page
    assert "of each seed" not in page
    assert "Seed 7; 1 min 2 s of computing" in page


@pytest.mark.parametrize(
    ("selection", "order"),
    [
        ("last", ["Last epoch", "Best epoch on noisy validation labels", "Oracle"]),
        ("noisy-val", ["Best epoch on noisy validation labels", "Last epoch", "Oracle"]),
        ("oracle", ["Oracle", "Last epoch", "Best epoch on noisy validation labels"]),
    ],
)
def test_the_rule_of_the_run_is_the_headline(tmp_path, selection, order):
    data = {"name": "breast-cancer", "validation_share": 0.1}
    page = page_of(tmp_path / "run", data=data, selection=selection)
    headers = re.findall(r'<th scope="row">((?:Last|Best|Oracle)[^<]*)', page)
    assert [header.partition(",")[0] for header in headers] == order
    assert re.search(r'<tr class="headline"><th scope="row">([^<,]*)', page)[1] == order[0]
    rule = {"last": "last epoch", "noisy-val": "best epoch on noisy", "oracle": "oracle, best epoch on the test set"}
    assert rule[selection] in re.search(r'class="answer">\s*<p>(.*?)</p>', page)[1]


def test_readings_are_explained(tmp_path):
    readings = ("model", "uncorrected", "other-set", "other-set-uncorrected")
    loss = {"name": "fpml", "correction": "posterior"}
    data = {"name": "breast-cancer", "also_test": ["other-set"]}
    page = words(page_of(tmp_path / "run", readings=readings, loss=loss, data=data))
    assert "Without the posterior correction, the same networks reach 81.0 ± 1.0 %." in page
    assert "Corrected Predictions after the posterior correction." in page
    assert "Uncorrected Predictions of the same networks without the posterior correction." in page
    assert "Other-set Predictions of the same networks for the test rows of other-set." in page
    assert "for the test rows of other-set, without the posterior correction." in page


def test_a_reading_of_a_method_is_not_a_data_set(tmp_path):
    page = words(page_of(tmp_path / "run", readings=("model", "second-network"), method={"name": "divide-mix"}))
    assert "Predictions that the method divide-mix reports under the name second-network." in page
    assert "test rows of second-network" not in page


@pytest.mark.parametrize(
    ("loss", "method", "title"),
    [
        ({"name": "ce"}, {"name": "standard"}, "breast-cancer: standard with ce"),
        ({"name": "dmi", "start": 0}, {"name": "divide-mix"}, "breast-cancer: divide-mix with dmi (start=0)"),
        ({"name": "gce", "q": 0.5}, {"name": "sop", "reg": 1}, "breast-cancer: sop with gce (q=0.5)"),
    ],
)
def test_the_title_names_method_and_loss(tmp_path, loss, method, title):
    page = page_of(tmp_path / "run", loss=loss, method=method)
    assert re.search(r"<h1[^>]*>(.*?)</h1>", page)[1] == title


def test_options_of_the_method_and_the_number_of_networks_are_named(tmp_path):
    page = words(page_of(tmp_path / "run", method={"name": "divide-mix", "warm_up": 0.1}, more={"networks": 2}))
    assert "Method divide-mix warm_up=0.1 Loss" in page
    assert "12 345 parameters in the answer; the method trains 2 networks" in page


def test_the_folder_in_the_command_is_quoted(tmp_path):
    page = html.unescape(page_of(tmp_path / "my run"))
    assert f"postmax resume '{tmp_path / 'my run'}' --restart" in page


def test_data_noise_and_training_are_named(tmp_path):
    page = words(page_of(tmp_path / "run", loss={"name": "fpml", "correction": "forward"}))
    for text in (
        "Data breast-cancer",
        "Training rows 1 455",
        "Test rows 114, the same rows for all seeds",
        "Classes 2: malignant, benign",
        "One row is 30 numbers",
        "Noise put in by this run binary:0.1,0.3, which changes 10.0–30.0 % of the labels, depending on the class",
        "Wrong training labels 20.0 %, 91 of 455",
        "the true transition matrix of the noise that was put in",
        "The transition matrix that the loss uses.",
        "12 345 parameters",
        "Loss fpml correction=forward",
        "Method standard Loss",
        f"In the same folder, from the start: postmax resume {tmp_path / 'run'} --restart",
        "torch 2.13.0",
        "correction: forward",
        hashlib.sha256(b"1").hexdigest(),
    ):
        assert text in page, text
    assert "measured against the labels as given" not in page


@pytest.mark.parametrize(
    ("changes", "assumed"),
    [
        ({"loss": {"name": "ce"}}, "none: this loss does not use a transition matrix"),
        ({"transition": "estimated"}, "a transition matrix that was estimated from the noisy training rows"),
        ({"transition": "symmetric:0.3"}, "given by the user: symmetric:0.3"),
        ({"transition": "/home/someone/matrix.csv"}, "given by the user: matrix.csv"),
    ],
)
def test_what_the_loss_takes_as_the_noise(tmp_path, changes, assumed):
    loss = {"loss": {"name": "fpml", "correction": "forward"}}
    settings = {**loss, **changes}
    config = {key: value for key, value in settings.items() if key != "transition"}
    made, run = finished(tmp_path / "run", **config)
    if "transition" in settings:
        made = made.model_copy(update={"transition": settings["transition"]})
    page = words(write_run_page(made, run).read_text("utf-8"))
    assert f"Noise that the loss corrects {assumed}" in page
    assert ("The loss does not use it." in page) == (assumed.startswith("none"))


def test_each_estimate_counts(tmp_path):
    loss = {"name": "fpml", "correction": "forward"}
    matrix = {"transition": lambda place: [[1 - 0.1 * place, 0.1 * place], [0.1, 0.9]]}
    made, run = finished(tmp_path / "run", loss=loss, **matrix)
    page = write_run_page(made.model_copy(update={"transition": "estimated"}), run).read_text("utf-8")
    assert "Estimated transition matrix, mean of 3 estimates" in page
    assert table_with("true class", page)[1] == ["malignant", "90.0 ± 10.0", "10.0 ± 10.0"]


def test_where_the_truth_is_not_known_the_page_says_so(tmp_path):
    path = tmp_path / "mine.csv"
    page = words(
        page_of(tmp_path / "run", data={"path": str(path)}, noise="none", rate=None, transition=None, wrong=False)
    )
    assert "The accuracy is measured against the labels as given." in page
    assert "so a well calibrated network looks too sure here" in page
    assert " points: " not in page  # no verdict where the labels may be wrong
    assert "Wrong training labels not known" in page
    assert f"Data {path}" in page
    assert f"postmax noise estimate {path}" in page
    assert "with a wrong label" not in page
    assert "transition matrix of the noise" not in page
    assert not (tmp_path / "run" / "transition.png").exists()


def test_noise_in_labels_of_unknown_quality(tmp_path):
    page = words(page_of(tmp_path / "run", data={"path": str(tmp_path / "mine.csv")}))
    assert "20.0 %, 91 of 455, were changed by this noise. Labels that were wrong before are not counted" in page
    assert "20.0 % of the training labels were changed by this run." in page
    assert "The accuracy is measured against the labels as given." in page


def test_nothing_about_tables_or_papers(tmp_path):
    page = page_of(tmp_path / "run")
    assert "paper" not in words(page)
    assert "scale" not in words(page)
    assert 'id="accuracy' not in page
    assert sorted(path.name for path in (tmp_path / "run").glob("*.png")) == [
        "confusions.png",
        "learning-curves.png",
        "reliability.png",
        "transition.png",
    ]


def test_nothing_is_loaded_from_anywhere_and_names_are_text(tmp_path):
    made, run = finished(tmp_path / "run", classes=[EVIL, "a\0b\n\x1b猫"], readings=("model", EVIL))
    loss = made.loss.model_copy(update={"options": {"preset": EVIL}})
    page = write_run_page(made.model_copy(update={"loss": loss, "noise": EVIL}), run).read_text("utf-8")
    links = re.findall(r'(?:href|src|action|data|poster|srcset)\s*=\s*"([^"]*)"', page)
    assert links
    assert all(link.startswith(("#", "data:")) for link in links)
    assert not re.search(r"<(script|img|iframe|object|embed|form|base)\b", page)
    assert "Content-Security-Policy\" content=\"default-src 'none';" in page
    assert "&lt;script&gt;alert(1)" in page


def test_the_same_run_gives_the_same_bytes(tmp_path):
    made, run = finished(tmp_path / "run")
    first = {path.name: path.read_bytes() for path in write_run_page(made, run).parent.iterdir()}
    script = (
        "from postmax.runs.folder import RunFolder\nfrom postmax.report.run_page import write_run_page\n"
        f"run = RunFolder({str(run.path)!r})\nwrite_run_page(run.config(), run)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
    assert first == {path.name: path.read_bytes() for path in run.path.iterdir()}


def test_a_single_run_needs_no_table(tmp_path):
    _, run = finished(tmp_path / "run")
    script = (
        "import sys\nfrom postmax.runs.folder import RunFolder\nfrom postmax.report.run_page import write_run_page\n"
        f"run = RunFolder({str(run.path)!r})\nwrite_run_page(run.config(), run)\n"
        "rooms = ('postmax.tables', 'postmax.sweep', 'postmax.tuning', 'postmax.report.table')\n"
        "sys.exit(str([name for name in sys.modules if name.startswith(rooms)] or ''))"
    )
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True)
    assert done.stderr.strip() == ""


def test_a_run_that_is_not_done_has_no_page(tmp_path):
    made, run = finished(tmp_path / "run")
    (run.path / "done").unlink()
    with pytest.raises(DataError, match="is not done"):
        write_run_page(made, run)


# Classes


def table_with(corner, page):
    """The texts of the first table whose first cell begins like this, row by row."""
    for table in re.findall(r"<table.*?</table>", page, flags=re.DOTALL):
        rows = re.findall(r"<tr.*?</tr>", table, flags=re.DOTALL)
        cells = [re.findall(r"<t[hd]\b.*?</t[hd]>", row, flags=re.DOTALL) for row in rows]
        texts = [[words(cell).strip() for cell in row] for row in cells]
        if texts[0][0].startswith(corner):
            return texts
    raise AssertionError(f"no table begins with {corner}")


def test_precision_recall_and_f1(tmp_path):
    page = page_of(tmp_path / "run", seeds=(0,))
    assert table_with("class", page) == [
        ["class", "training rows", "test rows", "precision", "recall", "F1"],
        ["malignant", "210", "42", "94.7 %", "85.7 %", "90.0 %"],  # 36 of 38, 36 of 42
        ["benign", "360", "72", "92.1 %", "97.2 %", "94.6 %"],  # 70 of 76, 70 of 72
    ]
    assert table_with("label ↓", page)[1:] == [
        ["malignant", "36 85.7 %", "6 14.3 %"],
        ["benign", "2 2.8 %", "70 97.2 %"],
    ]
    assert table_with("label", page[page.index("Largest confusions") :])[1:] == [
        ["malignant", "benign", "6", "14.3 %"],
        ["benign", "malignant", "2", "2.8 %"],
    ]
    assert "its mean over the classes is 92.3 %" in words(page)


def test_the_counts_of_all_seeds_are_taken_together(tmp_path):
    page = page_of(tmp_path / "run")
    assert "The counts of all seeds are taken together." in words(page)
    assert table_with("label ↓", page)[1] == ["malignant", "108 85.7 %", "18 14.3 %"]
    assert "210–212" in words(page)


def test_a_class_that_is_never_predicted_has_no_precision(tmp_path):
    page = page_of(tmp_path / "run", seeds=(0,), cells=[(0, 1, 3), (1, 1, 7)])
    assert table_with("class", page)[1] == ["malignant", "15", "3", "–", "0.0 %", "0.0 %"]


def test_nothing_wrong_needs_no_confusions(tmp_path):
    page = words(page_of(tmp_path / "run", cells=[(0, 0, 3), (1, 1, 7)]))
    assert "No test row is predicted wrongly." in page
    assert "Largest confusions" not in page


@pytest.mark.parametrize("classes", [25, 100, 1000])
def test_many_classes(tmp_path, classes):
    names = [f"class {i} of many, with a rather long name" for i in range(classes)]
    cells = [(i, i, 9) for i in range(classes)] + [(1, 2, 5), (2, 1, 4), (3, 0, 30)]
    page = page_of(tmp_path / "run", classes=names, cells=sorted(cells), transition=None, noise="symmetric:0.2")
    assert "Confusion matrix" in page or classes == 1000
    assert not re.search(r'<table class="matrix"', page)
    assert (tmp_path / "run" / "confusions.png").exists() == (classes <= 100)
    text = words(page)
    first = text.index("Largest confusions")
    assert text.index(f"{names[3]} {names[0]} 90") < text.index(f"{names[1]} {names[2]} 15", first)
    if classes > 30:
        assert "The 15 classes with the lowest F1" in text
        assert f"All {classes} classes" in text
        weakest = text[text.index("The 15 classes") :]
        assert weakest.index(names[3]) < weakest.index(names[1])
    assert len(page) < 1_500_000


def test_other_readings_have_classes_of_their_own(tmp_path):
    page = words(page_of(tmp_path / "run", readings=("model", "uncorrected"), loss={"correction": "posterior"}))
    assert "Uncorrected: results for each class" in page


# Data


def test_columns(tmp_path):
    table = {
        "label": "species",
        "dropped": ["id"],
        "missing": {"mass": 3, "sex": 2},
        "columns": [
            {"name": "mass", "fill": "keep"},
            {"name": "depth", "fill": None},
            {"name": "sex", "categories": ["", "female", "male"]},
        ],
    }
    page = page_of(tmp_path / "run", table=table, seeds=(0,), data={"path": str(tmp_path / "mine.csv")})
    assert table_with("column", page)[1:] == [
        ["species", "the label", ""],
        ["mass", "number", "3, filled with the median of the training rows"],
        ["depth", "number", "none"],
        ["sex", "2 categories: female, male", "2, a category of their own"],
        ["id", "not used: dropped", ""],
    ]
    assert "3 columns are used as features." in words(page)
    assert "so a row has 5 numbers." in words(page)


def test_images_have_a_shape(tmp_path):
    assert "an image, 32 × 24 pixels, 3 channels" in words(page_of(tmp_path / "run", shape=(3, 32, 24)))


# The estimate


def estimates(rates):
    def estimate(place):
        rate = rates[place]
        return estimate_of(Transition.symmetric(2, rate), ["malignant", "benign"], rows=721, rate=rate, reach=0.03)

    return estimate


def estimated(folder, seeds, rates, **changes):
    """A run on data of one's own with an estimate for each seed."""
    settings = {"data": {"path": str(folder / "mine.csv")}, "noise": "none", "rate": None, "wrong": False, **changes}
    loss = {"name": "fpml", "correction": "forward"}
    made, run = finished(folder / "run", seeds=seeds, loss=loss, transition=None, estimate=estimates(rates), **settings)
    return write_run_page(made.model_copy(update={"transition": "estimated"}), run).read_text("utf-8")


def test_an_estimate_has_its_interval(tmp_path):
    page = estimated(tmp_path, (0,), [0.179])
    assert "Noise in the training labels: 17.9 % of labels wrong, 95 % interval 14.9–20.9 % (estimated)." in words(page)
    assert "Estimated noise 17.9 % of labels wrong, 95 % interval 14.9–20.9 %; from 721 training rows" in words(page)
    assert "not known" not in page[: page.index("Noise hashes")]
    assert "postmax noise estimate" not in page
    assert table_with("true class", page)[1] == ["malignant", "82.1 79.1–85.1", "17.9 14.9–20.9"]


def test_equal_estimates_are_one(tmp_path):
    page = estimated(tmp_path, (0, 1), [0.2, 0.2])
    assert "20.0 % of labels wrong, 95 % interval 17.0–23.0 %" in words(page)
    assert "of 2 estimates" not in words(page)


def test_estimates_that_differ_are_shown_seed_by_seed(tmp_path):
    page = estimated(tmp_path, (3, 8), [0.1, 0.2])
    assert "15.0 ± 7.1 % of labels wrong, mean ± standard deviation of 2 seeds" in words(page)
    shown = table_with("seed", page[page.index("Label noise</h2>") :])
    assert shown[1:] == [["3", "10.0 %", "7.0–13.0 %"], ["8", "20.0 %", "17.0–23.0 %"]]
    assert "Estimated transition matrix, mean of 2 estimates" in page
    assert table_with("true class", page)[1] == ["malignant", "85.0 ± 7.1", "15.0 ± 7.1"]


def test_classes_that_the_estimate_says_too_little_about(tmp_path):
    def estimate(_):
        return replace(estimates([0.2])(0), unidentified={"benign": "no row has this label"})

    made, run = finished(tmp_path / "run", seeds=(0,), estimate=estimate)
    page = write_run_page(made, run).read_text("utf-8")
    assert "Do not rely on the estimate for class benign: no row has this label." in words(page)


@pytest.mark.parametrize(
    ("data", "command"),
    [
        (
            {"path": "/data/my flowers.csv", "labels": "species", "drop": ["id", "name"], "missing": "median"},
            "postmax noise estimate '/data/my flowers.csv' --label species --drop id,name --missing median",
        ),
        ({"path": "/data/features.npz"}, "postmax noise estimate /data/features.npz"),
        ({"path": "/data/images", "size": 32}, "postmax noise estimate /data/images --size 32"),
        ({"name": "webvision-mini"}, "postmax noise estimate webvision-mini"),
    ],
)
def test_where_nothing_is_known_the_page_says_what_estimates_it(tmp_path, data, command):
    unknown = {"noise": "none", "rate": None, "transition": None, "wrong": False}
    page = html.unescape(words(page_of(tmp_path / "run", data=data, **unknown)))
    assert "Wrong training labels not known, and not estimated" in page
    assert command in page


# Curves, calibration, and what there is nothing to show of


def test_one_epoch_is_no_curve(tmp_path):
    made, run = finished(tmp_path / "run")
    first = [line for line in (run.path / "metrics.jsonl").read_text().splitlines() if json.loads(line)["epoch"] == 1]
    run.write("metrics.jsonl", "".join(f"{line}\n" for line in first).encode())
    page = write_run_page(made, run).read_text("utf-8")
    assert "There are fewer than two epochs to draw." in page
    assert "The dotted line marks" not in page
    assert 'id="curves-0' not in page


def test_the_epoch_of_the_result_is_named(tmp_path):
    page = words(page_of(tmp_path / "run", selection="oracle"))
    assert (
        "The dotted line marks where the result is taken from: epochs 2–4, oracle, best epoch on the test set." in page
    )


def test_lines_that_hide_each_other_are_dashed(tmp_path):
    said = "A dashed line lies exactly on another line."
    made, run = finished(tmp_path / "run", readings=("model", "uncorrected"), loss={"correction": "posterior"})
    assert said not in write_run_page(made, run).read_text("utf-8")
    records = [json.loads(line) for line in (run.path / "metrics.jsonl").read_text().splitlines()]
    same = [{**record, "uncorrected_test_accuracy": record["test_accuracy"]} for record in records]
    run.write("metrics.jsonl", "".join(f"{json.dumps(record)}\n" for record in same).encode())
    page = write_run_page(made, run).read_text("utf-8")
    assert said in page
    assert "stroke-dasharray" in page


def test_few_bins_are_no_diagram(tmp_path):
    made, run = finished(tmp_path / "run", seeds=(0,))
    result = json.loads((run.path / "result.json").read_text())
    bins = {"count": [0, 30, 84], "confidence": [0.0, 0.5, 0.9], "accuracy": [0.0, 0.5, 0.8]}
    result["seeds"][0]["readings"]["model"]["reliability"] = bins
    run.finish(result)
    page = write_run_page(made, run).read_text("utf-8")
    assert "There is no diagram" in page
    assert "The upper plot" not in page
    # (30 · 0.5 + 84 · 0.9) / 114 = 79.5 %, (30 · 0.5 + 84 · 0.8) / 114 = 72.1 %, and 84 · 0.1 / 114 = 7.4 %
    assert table_with("reading", page)[1] == ["the network", "79.5 %", "72.1 %", "+7.4 points: too sure", "7.4 %"]


@pytest.mark.parametrize(("best", "differ"), [(2, True), (4, False)])
def test_confidence_and_accuracy_are_of_one_epoch(tmp_path, best, differ):
    """The oracle takes the best epoch of each reading, but the bins are those of the best epoch of the model."""
    loss = {"name": "fpml", "correction": "posterior"}
    made, run = finished(tmp_path / "run", seeds=(0,), readings=("model", "uncorrected"), loss=loss, selection="oracle")
    result = json.loads((run.path / "result.json").read_text())
    model, uncorrected = (result["seeds"][0]["readings"][name] for name in ("model", "uncorrected"))
    model["oracle"] = {"epoch": 4, "accuracy": 0.7, "calibration_error": 0.1}
    model["reliability"] = {"count": [0, 114], "confidence": [0.0, 0.8], "accuracy": [0.0, 0.7]}
    uncorrected["oracle"] = {"epoch": best, "accuracy": 0.65, "calibration_error": 0.2}
    uncorrected["reliability"] = {"count": [57, 57], "confidence": [0.4, 0.8], "accuracy": [0.5, 0.7]}
    run.finish(result)
    page = write_run_page(made, run).read_text("utf-8")
    assert table_with("reading", page)[1:] == [
        ["corrected", "80.0 %", "70.0 %", "+10.0 points: too sure", "10.0 %"],
        ["uncorrected", "60.0 %", "60.0 %", "±0.0 points: about right", "10.0 %"],
    ]
    assert ("all readings are those of the epoch that is selected for corrected" in words(page)) == differ


# Running it again


def test_the_settings_on_the_page_are_those_of_the_run(tmp_path):
    made, run = finished(tmp_path / "run", data={"name": "breast-cancer", "root": "/somewhere"}, seeds=(4, 2))
    page = write_run_page(made, run).read_text("utf-8")
    shown = html.unescape(re.search(r'aria-label="Configuration"><code>(.*?)</code>', page, flags=re.DOTALL)[1])
    (tmp_path / "run.yaml").write_text(shown)
    assert read_config(tmp_path / "run.yaml").run_id == made.run_id
    assert "/somewhere" not in page


def test_a_run_of_an_older_version(tmp_path):
    page = words(page_of(tmp_path / "run", cells=None))
    assert "This run did not record them: it was begun with an older version of postmax." in page
    assert "Test accuracy 91.0 ± 1.0 %" in page
    assert "One row is" not in page


@pytest.mark.parametrize(
    ("name", "section", "lost"),
    [
        ("data.json", "data", "One row is"),
        ("confusions.json", "classes", "Largest confusions"),
        ("transition.json", "noise", "95 % interval"),
    ],
)
def test_a_damaged_file_is_named_in_its_section_and_the_rest_is_shown(tmp_path, name, section, lost):
    loss = {"name": "fpml", "correction": "forward"}
    made, run = finished(tmp_path / "run", seeds=(0,), loss=loss, estimate=estimates([0.2]))
    made = made.model_copy(update={"transition": "estimated"})
    whole = words(write_run_page(made, run).read_text("utf-8"))
    assert lost in whole
    (run.path / name).write_text("{")
    page = write_run_page(made, run).read_text("utf-8")
    part = words(re.search(rf'<section aria-labelledby="{section}">.*?</section>', page, flags=re.DOTALL)[0])
    assert f"{run.path / name} is" in part
    assert "damaged" in part
    assert f"Start again: postmax resume {run.path} --restart" in part
    assert "did not record" not in part
    assert lost not in words(page)
    for other in ("Test accuracy 90.0 %", "One row is", "Largest confusions", "95 % interval", "Versions"):
        assert other == lost or other in words(page)
