"""The page of a single run: what it says for runs of every kind, and that nothing of it is dangerous."""

from __future__ import annotations

import hashlib
import html
import re
import subprocess
import sys

import pytest
from report_examples import finished

from postmax.errors import DataError
from postmax.report.run_page import write_run_page

EVIL = '<script>alert(1)</script>"><img src=x onerror=alert(2)>$\\frac{'


def page_of(folder, **changes):
    return write_run_page(*finished(folder, **changes)).read_text("utf-8")


def words(page):
    """The text of a page, without style sheet, pictures and tags."""
    page = re.sub(r"<(style|svg)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))


def test_the_result_comes_first(tmp_path):
    page = words(page_of(tmp_path / "run"))
    assert "Test accuracy 91.0 ± 1.0 % (mean ± standard deviation of 3 seeds, last epoch)." in page
    assert "Last epoch 91.0 ± 1.0 % 2.0 ± 0.0 % 5 " in page
    assert "Oracle, best epoch on the test set 96.0 ± 1.0 % 2.0 ± 0.0 % 2–4 " in page
    assert "It cannot be chosen without the true labels" in page
    assert "noisy validation" not in page
    parts = [
        "Results",
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
    assert "Test accuracy 90.0 % (one seed, last epoch)." in page
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
    assert rule[selection] in re.search(r'class="answer">(.*?)</p>', page)[1]


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
        "Noise that was added binary:0.1,0.3",
        "Wrong training labels 20.0 %",
        "the true transition matrix of the noise that was added",
        "The transition matrix that the loss uses.",
        "12 345 parameters",
        "Loss fpml correction=forward",
        "Method standard Loss",
        f"Run it again postmax resume {tmp_path / 'run'} --restart",
        "torch 2.13.0",
        "correction: forward",
        hashlib.sha256(b"1").hexdigest(),
    ):
        assert text in page, text
    assert "labels as given" not in page


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
    assert f"Noise that the loss assumes {assumed}" in page
    assert ("The loss does not use it." in page) == (assumed.startswith("none"))


def test_each_estimate_counts(tmp_path):
    made, run = finished(tmp_path / "run", transition=lambda place: [[1 - 0.1 * place, 0.1 * place], [0.1, 0.9]])
    page = write_run_page(made.model_copy(update={"transition": "estimated"}), run).read_text("utf-8")
    assert "Estimated transition matrix, mean of 3 estimates" in page
    assert "a label stays right with a probability from 90% to 90%" in page


def test_where_the_truth_is_not_known_the_page_says_so(tmp_path):
    path = tmp_path / "mine.csv"
    page = words(
        page_of(tmp_path / "run", data={"path": str(path)}, noise="none", rate=None, transition=None, wrong=False)
    )
    assert "The accuracy is measured against the labels as given." in page
    assert "Wrong training labels not known" in page
    assert "Data mine.csv" in page
    assert "wrong labels learnt" not in page.lower()
    assert "transition matrix of the noise that was added" not in page
    assert not (tmp_path / "run" / "transition.png").exists()


def test_noise_in_labels_of_unknown_quality(tmp_path):
    page = words(page_of(tmp_path / "run", data={"path": str(tmp_path / "mine.csv")}))
    assert "20.0 % were changed by this noise. Labels that were wrong before are not counted" in page


def test_nothing_about_tables_or_papers(tmp_path):
    page = page_of(tmp_path / "run")
    assert "paper" not in words(page)
    assert "scale" not in words(page)
    assert 'id="accuracy' not in page
    assert sorted(path.name for path in (tmp_path / "run").glob("*.png")) == [
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
