"""Versions are the same wherever they are written down."""

import re
import tomllib
from pathlib import Path

import pytest

import postmax as pm

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = ("data", "plot", "train", "report", "cli", "bench")


def floors():
    """Return {package: lowest version} of what a user of postmax installs."""
    needed = [*PROJECT["dependencies"], *(line for extra in EXTRAS for line in PROJECT["optional-dependencies"][extra])]
    return dict(line.split(">=") for line in needed if not line.startswith("postmax["))


def constraints(name):
    """Return {package: version} of a constraints file."""
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


@pytest.mark.parametrize("package", floors())
def test_the_lowest_versions_are_the_floors(package):
    lowest = constraints("constraints-lowest.txt")[package]
    assert (lowest + ".").startswith(floors()[package] + ".")


def test_every_section_of_the_changelog_has_a_version_and_a_date():
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    first, *released = re.findall(r"^## (.*)$", changes, flags=re.MULTILINE)
    assert first == "Unreleased"
    assert released
    assert all(re.fullmatch(r"\d+\.\d+\.\d+ – \d{4}-\d\d-\d\d", section) for section in released)


def test_the_newest_release_is_this_version_and_the_one_to_cite():
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    version, date = re.search(r"^## (\d+\.\d+\.\d+) – (\S+)$", changes, flags=re.MULTILINE).groups()
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert pm.__version__ == version
    assert f"\nversion: {version}\n" in citation
    assert f"\ndate-released: {date}\n" in citation
