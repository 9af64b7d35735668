"""A changed table has a folder and a note of its own."""

from __future__ import annotations

import re

import pytest

from postmax.tables.variant import Variant

VARIANTS = [
    Variant(),
    Variant(seeds=5),
    Variant(rows="KL"),
    Variant(columns="KL"),
    Variant(rows="KL,Hellinger"),
    Variant(rows="all"),
    Variant(rows="Le Cam"),
    Variant(rows="Le-Cam"),
    Variant(settings=("epochs=1",)),
    Variant(settings=("optimiser.lr=1e-3",)),
    Variant(settings=("optimiser.lr=1e+3",)),
    Variant(settings=("model.hidden=[8]",)),
    Variant(settings=("data.root=../../etc",)),
    Variant(settings=("data.root=" + "x" * 300,)),
    Variant(settings=("data.root=" + "x" * 301,)),
    Variant(tuned="some/where/tuned.yaml"),
    Variant(tuned="some-where/tuned.yaml"),
]


def test_folders_are_safe_short_and_each_is_of_one_variant_only():
    names = [variant.folder("table-cpu") for variant in VARIANTS]
    assert len(set(names)) == len(names)
    for name in names:
        assert re.fullmatch(r"table-cpu(-[A-Za-z0-9._-]*[A-Za-z0-9])?", name)
        assert len(name) < 80


@pytest.mark.parametrize(
    ("variant", "name"),
    [
        (Variant(), "table-cpu"),
        (Variant(settings=("epochs=1",)), "table-cpu-epochs-1"),
        (Variant(5, "KL,SL", "forward", ("epochs=1",)), "table-cpu-seeds-5-rows-KL-SL-columns-forward-epochs-1"),
    ],
)
def test_folders_can_be_read(variant, name):
    assert variant.folder("table-cpu") == name


def test_changed_settings_are_named():
    assert Variant(seeds=5, rows="KL").note == ""
    assert Variant(settings=("epochs=1", "loss.floor=0.2")).note == "Settings changed: epochs=1, loss.floor=0.2."
