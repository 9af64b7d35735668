"""The examples run as they are, and end with the numbers that they promise."""

import re
import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def shown_by(name, capsys):
    """Run an example as a program and return what it prints."""
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return capsys.readouterr().out


def percent(line):
    """Return the first percentage after a colon or a name, as a number."""
    return float(re.search(r"(\d+\.\d)%", line).group(1))


def test_own_loop(capsys):
    _, cross_entropy, known, unknown = shown_by("own_loop.py", capsys).splitlines()
    assert percent(cross_entropy) < 75
    assert percent(known) > 95
    assert percent(cross_entropy) + 10 < percent(unknown) < percent(known)


@pytest.mark.filterwarnings("ignore")  # of skorch about itself
def test_skorch_net(capsys):
    pytest.importorskip("skorch")
    _, cross_entropy, known = shown_by("skorch_net.py", capsys).splitlines()
    assert percent(known) > 93
    assert percent(cross_entropy) < percent(known)


@pytest.mark.filterwarnings("ignore")  # of accelerate about itself
def test_accelerate_loop(capsys):
    pytest.importorskip("accelerate")
    _, cross_entropy, known = shown_by("accelerate_loop.py", capsys).splitlines()
    assert percent(cross_entropy) < 75
    assert percent(known) > 95


@pytest.mark.filterwarnings("ignore")  # of lightning about itself
def test_lightning_module(capsys):
    pytest.importorskip("lightning")
    assert percent(shown_by("lightning_module.py", capsys)) > 95


@pytest.mark.filterwarnings("ignore")  # of transformers about itself
def test_hugging_face_trainer(capsys):
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    assert percent(shown_by("hugging_face_trainer.py", capsys).splitlines()[-1]) > 88


@pytest.mark.filterwarnings("ignore")  # of transformers about itself
def test_gradient_accumulation_of_the_trainer_does_not_change_the_loss(capsys):
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    example = runpy.run_path(str(EXAMPLES / "hugging_face_trainer.py"))
    whole, parts = (example["train"](epochs=2, batch=batch, accumulation=n) for batch, n in ((64, 1), (16, 4)))
    assert whole == pytest.approx(parts, abs=0.01)


def test_finite_problem_ends_with_every_correction_right(capsys):
    shown = shown_by("finite_problem.py", capsys)
    for correction in ("posterior", "objective", "forward", "factored"):
        assert re.search(rf"^  {correction} +0 of \d+$", shown, flags=re.MULTILINE)
    assert re.search(r"^  not corrected +[1-9]\d* of \d+$", shown, flags=re.MULTILINE)
