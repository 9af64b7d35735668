"""Tables with a scale "paper": every cell can be run, and every row trains on small data in the official layouts."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from official_catalogue import registered, write_cifar
from PIL import Image

from postmax import losses
from postmax.cli.commands.reproduce import reproduce
from postmax.data.ilsvrc import read_ilsvrc
from postmax.data.webvision import read_webvision
from postmax.report.content import Series
from postmax.report.pictures.traces import TEST, band
from postmax.sweep.sweep import sweep
from postmax.tables import load, names
from postmax.tables.cells import cell_jobs
from postmax.tables.jobs import jobs
from postmax.tables.tabulate import tabulate

TABLES = [name for name in names() if "paper" in load(name).scales]
CLASSES = ["n01440764", "n01443537", "n01484850"]
SIDE = 32  # of the images that stand for WebVision's; the smallest ResNet50 takes
ROWS = {"train": 6, "test": 2}


def test_the_tables_that_are_here():
    expected = {"apl", "asymmetric", "breast-cancer", "cifar-n", "cifar10-correction", "cifar10-symmetric", "refined"}
    assert {*expected, "webvision"} <= set(TABLES)


@pytest.mark.parametrize(
    ("table", "panel", "row", "column", "reported"),
    [
        ("apl", "CIFAR-10", "NFL+MAE", "clean", 89.25),
        ("apl", "CIFAR-10", "NCE+AEL", "80%", 41.79),
        ("apl", "CIFAR-10", "ANL-FL", "60%", 81.67),
        ("apl", "CIFAR-10", "GAN-PML", "80%", 73.91),
        ("apl", "CIFAR-10", "CE", "20%", None),
        ("cifar10-symmetric", "CIFAR-10", "Forward", "60%", 74.96),
        ("cifar10-symmetric", "CIFAR-10", "SL-PML", "80%", 65.29),
        ("cifar10-symmetric", "CIFAR-10", "ELR", "60%", 86.12),
        ("cifar10-symmetric", "CIFAR-10", "SOP", "20%", 93.18),
        ("refined", "symmetric noise", "Co-teaching+", "CIFAR-10 80%", 67.4),
        ("refined", "symmetric noise", "JoCoR", "CIFAR-100 50%", 43.5),
        ("refined", "symmetric noise", "DivideMix", "CIFAR-100 20%", 77.1),
        ("refined", "symmetric noise", "SL-Pro", "CIFAR-10 50%", 96.9),
        ("refined", "symmetric noise", "GAN-Pro", "CIFAR-100 80%", 69.4),
        ("refined", "symmetric noise", "CE", "CIFAR-10 20%", None),
        ("asymmetric", "asymmetric noise", "MAE", "CIFAR-100 40%", 3.96),
        ("asymmetric", "asymmetric noise", "NLNL", "CIFAR-10 30%", 81.26),
        ("asymmetric", "asymmetric noise", "SL-PML", "CIFAR-10 40%", 63.12),
        ("asymmetric", "asymmetric noise", "GAN-PML", "CIFAR-100 40%", 65.93),
        ("cifar-n", "human labels", "CE", "worst", 77.69),
        ("cifar-n", "human labels", "RDA", "random 3", 91.71),
        ("cifar-n", "human labels", "Negative-LS", "CIFAR-100N noisy", 58.59),
        ("cifar-n", "human labels", "GAN-PML", "worst", None),
        ("cifar-n", "human labels", "DivideMix", "random 2", 95.23),
        ("cifar-n", "human labels", "SGN", "clean", 94.12),
        ("cifar-n", "human labels", "SL-Pro", "CIFAR-100N clean", 82.25),
        ("webvision", "mini WebVision", "GAN-PML", "WebVision", 79.53),
        ("webvision", "mini WebVision", "SCE", "ILSVRC12", 62.60),
    ],
)
def test_reported_values(table, panel, row, column, reported):
    assert load(table).reported_value(panel, row, column) == reported


@pytest.mark.parametrize("table", ["apl", "cifar10-symmetric", "asymmetric", "refined", "webvision"])
def test_every_row_that_is_not_optional_has_all_reported_values(table):
    found = load(table)
    for panel in found.panels:
        for row in found.rows:
            values = [found.reported_value(panel.name, row.name, column.name) for column in found.columns]
            assert all((value is None) == row.optional for value in values), row.name


def configs(table, scale="paper"):
    todo = jobs(load(table), scale, rows=["all"], columns=["all"], seeds=1)
    return {(place.row, place.column): job.config for job in todo for place in job.placements}


def test_the_published_settings():
    apl = configs("apl")
    for row, lr, decay, l1, clip in (
        ("NCE+RCE", 0.01, 1e-4, 0.0, 5.0),
        ("ANL-CE", 0.01, 0.0, 5e-5, 5.0),
        ("SL-PML", 0.02, 5e-4, 0.0, None),
    ):
        config = apl[row, "80%"]
        found = config.optimiser
        assert (found.lr, found.weight_decay, found.l1, found.clip_norm) == (lr, decay, l1, clip)
        assert (config.model.name, config.epochs, config.batch_size, config.schedule.name) == (
            "cnn8",
            120,
            128,
            "cosine",
        )
        assert config.noise == "symmetric:0.8"

    symmetric = configs("cifar10-symmetric")
    assert [symmetric[row, "40%"].epochs for row in ("GCE", "SL-PML")] == [120, 300]
    assert {config.noise for config in symmetric.values()} == {
        f"symmetric-inclusive:{rate}" for rate in (0.2, 0.4, 0.6, 0.8)
    }

    asymmetric = configs("asymmetric")
    for row, ten, hundred in (
        ("CE", ("cnn8", 120, 0.01, 1e-4, 0.0, 5.0), ("resnet34", 200, 0.1, 1e-5, 0.0, 5.0)),
        ("NLNL", ("cnn8", 1000, 0.01, 1e-4, 0.0, 5.0), ("resnet34", 2000, 0.1, 1e-5, 0.0, 5.0)),
        ("ANL-FL", ("cnn8", 120, 0.01, 0.0, 5e-5, 5.0), ("resnet34", 200, 0.1, 0.0, 5e-7, 5.0)),
        ("GAN-PML", ("cnn8", 120, 0.02, 5e-4, 0.0, None), ("resnet34", 300, 0.02, 5e-4, 0.0, None)),
    ):
        for column, expected in (("CIFAR-10 30%", ten), ("CIFAR-100 30%", hundred)):
            config = asymmetric[row, column]
            found = config.optimiser
            assert expected == (
                config.model.name,
                config.epochs,
                found.lr,
                found.weight_decay,
                found.l1,
                found.clip_norm,
            )
    assert [asymmetric["SCE", f"{name} 20%"].loss.options["preset"] for name in ("CIFAR-10", "CIFAR-100")] == [
        "cifar10",
        "cifar100",
    ]

    human = configs("cifar-n")
    assert human["CE", "worst"].schedule.milestones == (60,)
    assert (human["ANL-CE", "worst"].model.name, human["ANL-CE", "CIFAR-100N noisy"].model.name) == ("cnn8", "resnet34")
    assert human["RDA", "clean"].schedule.name == human["NCE+RCE", "clean"].schedule.name == "cosine"

    webvision = configs("webvision")
    assert webvision["CE", "WebVision"] is webvision["CE", "ILSVRC12"]  # one training, two test sets
    rates = webvision["CE", "WebVision"].schedule
    assert (rates.milestones, rates.gamma) == (tuple(range(1, 250)), 0.97)
    assert (webvision["SL-PML", "WebVision"].batch_size, webvision["SL-PML", "WebVision"].optimiser.nesterov) == (
        64,
        False,
    )


@pytest.mark.parametrize("table", ["apl", "asymmetric", "cifar-n", "webvision"])
def test_anl_has_the_term_its_settings_were_published_with(table):
    for (row, _), config in configs(table).items():
        if row == "ANL-CE":
            training = losses.preset("anl-ce", config.loss.options["preset"]).training
            assert training == {"l1": config.optimiser.l1, "weight_decay": config.optimiser.weight_decay}


@pytest.mark.thorough
def test_the_features_are_of_the_columns_data():
    for table in ("apl", "cifar10-symmetric", "asymmetric", "cifar-n"):
        real = configs(table)
        for cell, config in configs(table, "cpu").items():
            assert config.data.name == f"{real[cell].data.name}-embedded"
            assert config.noise == real[cell].noise
            assert (config.model.name, config.data.validation_share) == ("mlp", 0.1)


def untuned(table):
    """Configurations of a table at scale cpu, by row and what the labels are, before settings are chosen for rows."""
    found = load(table)
    rows, columns = found.chosen_rows("cpu", ["all"]), found.chosen_columns("cpu", ["all"])
    todo = cell_jobs(found, "cpu", rows, columns, seeds=range(5), settings={})
    return {(place.row, job.config.data.name, job.config.noise): job.config for job in todo for place in job.placements}


BORROWERS = [name for name in TABLES if any(size.tuned_by == "embeddings" for size in load(name).scales.values())]


def test_the_tables_that_borrow():
    assert {"apl", "asymmetric", "cifar-n", "cifar10-symmetric"} <= set(BORROWERS)


@pytest.mark.parametrize("table", BORROWERS)
def test_on_features_a_cell_is_the_run_it_is_in_the_table_of_all_losses(table):
    mine, all_losses = untuned(table), untuned("embeddings")
    common = mine.keys() & all_losses.keys()
    if table in ("apl", "asymmetric", "cifar-n"):  # other tables may have other kinds of noise, and no common cell
        assert {row for row, *_ in common} == {row for row, *_ in mine}
    for cell in common:
        assert mine[cell] == all_losses[cell], cell


@pytest.mark.parametrize("table", BORROWERS)
def test_on_features_a_row_is_trained_as_it_is_in_the_table_of_all_losses(table):
    """Whatever the labels are: settings that were chosen there count here."""

    def trained(table):
        found = {}
        for (row, *_), config in untuned(table).items():
            data = config.data.model_copy(update={"name": "any"})
            found.setdefault(row, []).append(config.model_copy(update={"data": data, "noise": "any"}))
        return found

    all_losses = trained("embeddings")
    for row, configs in trained(table).items():
        assert all(config == all_losses[row][0] for config in (*configs, *all_losses[row])), row


# Small data in the official layouts


def picture(path, seed):
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path, format="PNG")


def write_webvision(root):
    info = root / "webvision" / "info"
    info.mkdir(parents=True)
    (info / "synsets.txt").write_text("".join(f"{wnid} name\n" for wnid in CLASSES))
    for file, folder, count in (("train_filelist_google.txt", "", 6), ("val_filelist.txt", "val_images_256", 3)):
        paths = [(f"google/q{number:04d}.jpg", number % 3) for number in range(count)]
        (info / file).write_text("".join(f"{path} {label}\n" for path, label in paths))
        for number, (path, _) in enumerate(paths):
            picture(root / "webvision" / folder / path, number)
    for label, wnid in enumerate(CLASSES):
        picture(root / "ilsvrc12" / "val" / wnid / "ILSVRC2012_val_1.JPEG", label)


def few(read, request):
    """The first rows of what a reader gives: as many as a step needs."""
    return (dataset := read(request)).subset(torch.arange(min(len(dataset), ROWS[request.split])))


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A folder with all data sets, and a catalogue that knows how small they are."""
    root = tmp_path_factory.mktemp("data")
    write_webvision(root)
    readers = {
        "webvision-mini": partial(read_webvision, "webvision-mini", None),
        "ilsvrc12-mini": partial(read_ilsvrc, "ilsvrc12-mini", None),
        **write_cifar(root),
    }
    with registered(readers, few) as patch:
        patch.setattr("postmax.data.webvision._ROWS", {})
        patch.setattr("postmax.data.ilsvrc._PER_CLASS", 1)
        for module in ("webvision", "ilsvrc"):
            patch.setattr(f"postmax.data.{module}.IMAGE_SIZE", SIDE)
        yield root


def small(table, root):
    """Settings that make a run of the paper one step on a few rows. Network, loss and optimiser stay."""
    changes = [f"data.root={root}", "epochs=1", "accelerator=cpu"]
    if table == "webvision":
        changes.append("data.augment=none")  # no window of 224 pixels in an image of 32
        changes.append("optimiser.lr=0.001")  # after one step batch normalisation knows too little to judge a large one
    losses_alone = {row for _, row, _ in cells(table)}
    if any(config.data.validation_share for (row, _), config in configs(table).items() if row in losses_alone):
        changes.append("data.validation_share=0.5")  # a tenth of six rows would be less than one row
    return changes


def cells(table):
    """Every row that is a loss with one of its columns, another one each time.

    The rows that are strategies need more than one step: test_paper_strategies.py trains them.
    """
    found = load(table)
    return [
        (table, row.name, found.columns[i % len(found.columns)].name)
        for i, row in enumerate(found.rows)
        if "method" not in row.set
    ]


@pytest.mark.parametrize(
    ("table", "row", "column"), [pytest.param(*cell, id=" ".join(cell)) for name in TABLES for cell in cells(name)]
)
def test_one_step_of_every_row(table, row, column, root, tmp_path):
    overrides = small(table, root)
    if (table, row) == ("cifar-n", "Forward"):  # people's noise is not known: it has to be given
        matrix = 0.9 * np.eye(10) + 0.01
        np.savetxt(tmp_path / "noise.csv", matrix / matrix.sum(1, keepdims=True), delimiter=",")
        overrides.append(f"transition={tmp_path / 'noise.csv'}")
    found = load(table)
    todo = jobs(found, "paper", seeds=1, rows=[row], columns=[column], overrides=overrides)[:1]
    report = sweep(todo, tmp_path / "runs")
    assert report.done == [todo[0].run_id], report.failed
    panel = tabulate(found, "paper", todo, tmp_path / "runs").panels[0]
    cell = panel.cells[row, column]
    assert cell.complete
    assert 0 <= cell.mean <= 100


def test_the_page_shows_the_accuracy_of_the_test_set_of_a_column():
    record = {"epoch": 1, "seed": 0, "test_accuracy": 0.5, "ilsvrc12-mini_test_accuracy": 0.25}
    for column, expected in zip(load("webvision").columns, (25.0, 50.0), strict=True):
        assert band(Series(column.name, (record,), reading=column.reading), TEST).mean == (expected,)


@pytest.mark.parametrize(
    ("table", "row", "column"),
    [("apl", "GCE", "20%"), ("cifar-n", "RDA", "CIFAR-100N noisy"), ("webvision", "ANL-CE", "WebVision")],
)
def test_a_dry_run_says_how_long_it_will_take(table, row, column, root, tmp_path, capsys):
    reproduce(
        table,
        settings=small(table, root),
        scale="paper",
        seeds=1,
        rows=row,
        columns=column,
        workers=1,
        out=tmp_path,
        dry_run=True,
    )
    told = capsys.readouterr().out
    assert "would begin" in told
    assert "about" in told
    assert "1 runs to do, 1 at once: " in told
    assert not (tmp_path / "runs").exists()
