"""The rows of the paper's tables that are strategies: their settings, and short trainings on small made-up data."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest
import torch
from official_catalogue import registered, write_cifar

from postmax import methods, models
from postmax.cli.commands.reproduce import reproduce
from postmax.tables import load
from postmax.tables.jobs import jobs
from postmax.train.build import build
from postmax.train.config import Choice, RunConfig
from postmax.train.timing import measure_run, needs_estimates

TABLES = ("refined", "cifar-n", "cifar10-symmetric")
# The smallest images that all networks take, and as many rows as a strategy can divide.
SIDE, ROWS, BATCH = 8, {"train": 24, "test": 8}, 8
# A few epochs in which every phase of a strategy has its turn.
PHASES = {
    "co-teaching-plus": ["epochs=3", "method.warmup_epochs=1"],
    "divide-mix": ["epochs=3", "method.warmup_epochs=1", "method.ramp_epochs=1"],
    "elr-plus": ["epochs=3", "method.weight_epochs=1", "method.teacher_epochs=1"],
    "promix": [
        "epochs=5",
        "method.warmup_epochs=1",
        "method.ramp_epochs=1",
        "method.pseudo_epochs=3",
        "method.guess_epochs=1",
    ],
}


def paper_configs(table):
    todo = jobs(load(table), "paper", rows=["all"], columns=["all"], seeds=1)
    return {(place.row, place.column): job.config for job in todo for place in job.placements}


def strategies(table):
    """The cells of a table whose row is a strategy: the first and the last column."""
    found = load(table)
    return [
        (table, row.name, column.name)
        for row in found.rows
        if "method" in row.set
        for column in (found.columns[0], found.columns[-1])
    ]


def test_all_strategies_of_the_paper_are_there():
    rows = {table: [row.name for row in load(table).rows] for table in TABLES}
    several = ["Co-teaching+", "JoCoR", "DivideMix", "ELR+", "SOP+", "ProMix", "SL-Pro", "GAN-Pro"]
    assert rows["refined"] == ["CE", *several]
    assert {*several, "SGN"} <= set(rows["cifar-n"])
    assert {"ELR", "SOP"} <= set(rows["cifar10-symmetric"])
    for table in TABLES:
        for row in load(table).rows:
            if row.name in ("SL-Pro", "GAN-Pro"):
                loss = {"SL-Pro": "sl-pml", "GAN-Pro": "gan-pml"}[row.name]
                assert (row.set["method"]["name"], row.set["loss"]["name"]) == ("promix", loss)


@pytest.mark.parametrize("table", TABLES)
def test_f_pml_pro_is_promix_with_another_loss_and_nothing_else(table):
    found = paper_configs(table)
    for (row, column), config in found.items():
        if row in ("SL-Pro", "GAN-Pro"):
            assert config.model_copy(update={"loss": found["ProMix", column].loss}) == found["ProMix", column]


# What a table sets on purpose otherwise than the preset of a method tells about its training, by method.
OTHERWISE = {
    "co-teaching-plus": {"data.augment"},  # as in the paper of DivideMix, from which the reported values are
    "elr": {"epochs", "schedule.name", "schedule.period", "schedule.final"},  # the reported values had other steps
}


@pytest.mark.parametrize("table", TABLES)
def test_a_strategy_is_trained_as_its_preset_was_published(table):
    checked = set()
    for (row, column), config in paper_configs(table).items():
        entry = methods.describe(config.method.name)
        if config.method.options.get("preset") is None or (table == "cifar-n" and row in ("Co-teaching+", "JoCoR")):
            continue
        training = entry.presets[config.method.options["preset"]].training
        for key, value in training.items():
            if key in OTHERWISE.get(config.method.name, ()):
                continue
            found = setting(config, key)
            expected = tuple(value) if isinstance(value, list) else value
            assert found == expected, (row, column, key)
            checked.add((row, key))
    assert checked


def setting(config: RunConfig, key: str):
    found = config
    for part in key.split("."):
        found = getattr(found, part)
    return getattr(found, "name", found)


@pytest.mark.parametrize("table", TABLES)
def test_the_networks_of_a_table_can_be_made(table):
    for name, options in {(c.model.name, tuple(c.model.options.items())) for c in paper_configs(table).values()}:
        with torch.device("meta"):  # weights without memory
            network = models.get(name, num_classes=100, input_shape=(3, 32, 32), **dict(options))
        assert network.fc.out_features == 100


@pytest.mark.parametrize("table", TABLES)
def test_no_strategy_estimates_noise_that_is_known(table):
    """Co-teaching+ and ProMix would train networks first, to find out what the heading of the column says."""
    for (row, column), config in paper_configs(table).items():
        entry = methods.describe(config.method.name)
        if entry.facts is not None and entry.facts.estimates_unless:
            given = entry.with_preset(config.method.options)
            assert given.get(entry.facts.estimates_unless) is not None, (row, column)


def test_co_teaching_and_jocor_are_told_the_share_of_labels_that_are_wrong():
    for (row, column), config in paper_configs("refined").items():
        if row in ("Co-teaching+", "JoCoR"):
            classes = 100 if config.data.name == "cifar100" else 10
            rate = float(config.noise.partition(":")[2])
            assert config.method.options["forget_rate"] == pytest.approx(rate * (1 - 1 / classes)), column


def test_settings_that_depend_on_the_noise():
    found = paper_configs("refined")
    weights = [
        methods.describe("divide-mix").with_preset(found["DivideMix", column].method.options)["unlabelled_weight"]
        for column in (column.name for column in load("refined").columns)
    ]
    assert weights == [0, 25, 25, 25, 150, 150]
    shares = [
        methods.describe("promix").with_preset(found["GAN-Pro", column].method.options)["start_share"]
        for column in (column.name for column in load("refined").columns)
    ]
    assert shares == [0.7, 0.5, 0.25, 0.7, 0.5, 0.2]
    human = paper_configs("cifar-n")
    weights = [
        methods.describe("divide-mix").with_preset(human["DivideMix", column.name].method.options)["unlabelled_weight"]
        for column in load("cifar-n").columns
    ]
    assert weights == [0, 0, 0, 0, 0, 25, 0, 25]


def test_the_small_scale_has_no_row_that_needs_images():
    for job in jobs(load("refined"), "cpu", rows=["all"], seeds=1):
        facts = methods.describe(job.config.method.name).facts
        assert facts is None or not facts.images_only
        assert "preset" not in job.config.method.options  # published numbers of epochs are for long trainings


# Short trainings


def corner(read, request):
    """A corner of a few images, of four classes, so that each of them has rows for validation."""
    dataset = read(request)
    some = dataset.subset(torch.arange(min(len(dataset), ROWS[request.split])))
    clean = None if some.clean_labels is None else some.clean_labels % 4
    corners = some.inputs[..., :SIDE, :SIDE].contiguous()
    return replace(some, inputs=corners, labels=some.labels % 4, clean_labels=clean)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A folder with small made-up data, and a narrow network in the place of every network."""
    root, get = tmp_path_factory.mktemp("data"), models.get

    def narrow(name, *, num_classes, input_shape, **options):
        return get("small", num_classes=num_classes, input_shape=input_shape, width=4)

    with registered(write_cifar(root), corner) as patch:
        patch.setattr(models, "get", narrow)
        yield root


def small(table, row, column, root):
    """The configuration of a cell with few epochs and small batches. Loss, optimiser and method stay."""
    found = load(table)
    (whole,) = jobs(found, "paper", seeds=1, rows=[row], columns=[column])
    overrides = [f"data.root={root}", "accelerator=cpu", f"batch_size={BATCH}"]
    overrides += PHASES.get(whole.config.method.name, ["epochs=2"])
    if whole.config.data.validation_share:
        overrides.append("data.validation_share=0.5")  # a tenth of these rows would be too few
    if whole.config.schedule.milestones:
        overrides.append("schedule.milestones=[1]")
    (todo,) = jobs(found, "paper", seeds=1, rows=[row], columns=[column], overrides=overrides)
    return todo.config


FEW = {("refined", "GAN-Pro", "CIFAR-10 20%"), ("refined", "DivideMix", "CIFAR-100 80%")}
CELLS = [
    pytest.param(*cell, id=" ".join(cell), marks=() if cell in FEW else pytest.mark.thorough)
    for table in TABLES
    for cell in strategies(table)
]


@pytest.mark.parametrize(("table", "row", "column"), CELLS)
def test_every_strategy_trains_to_its_end(table, row, column, root):
    """All phases of every strategy, on a few small images with a narrow network. What is learnt does not matter."""
    config = small(table, row, column, root)
    built = build(config)
    for number in range(config.epochs):
        records = built.trainer.epoch(number)
        assert all(math.isfinite(record["loss"]) for record in records)
    built.trainer.judge(built.evaluator, records)
    assert all(0 <= record["test_accuracy"] <= 1 for record in records)


def test_all_phases_are_passed(root):
    """The few epochs above reach the part of each training that is late in the published one."""
    for row, kind in (("ProMix", "guess_epochs"), ("DivideMix", "warmup_epochs"), ("Co-teaching+", "warmup_epochs")):
        config = small("refined", row, "CIFAR-10 20%", root)
        assert 0 < config.method.options[kind] < config.epochs


@pytest.mark.parametrize("row", ["DivideMix", pytest.param("GAN-Pro", marks=pytest.mark.thorough)])
def test_a_dry_run_says_how_long_a_strategy_will_take(row, root, tmp_path, monkeypatch, capsys):
    """At its full length: warm-up and later phases are measured, and no noise is estimated for it."""
    monkeypatch.setattr("postmax.train.method_noise.estimated_noise", lambda *_: pytest.fail("it estimates"))
    reproduce(
        "refined",
        settings=[f"data.root={root}", "accelerator=cpu"],
        scale="paper",
        seeds=2,
        rows=row,
        columns="CIFAR-10 50%",
        workers=1,
        out=tmp_path,
        dry_run=True,
    )
    line, last = capsys.readouterr().out.splitlines()
    assert re.fullmatch(rf"would begin +2 runs  {row} · seeds 0–1  about .* each", line)
    assert last.startswith("2 runs to do, 1 at once: ")
    assert not (tmp_path / "runs").exists()


def test_measuring_promix_does_not_estimate_the_noise_that_it_would_need(root, monkeypatch):
    monkeypatch.setattr("postmax.train.method_noise.estimated_noise", lambda *_: pytest.fail("it estimates"))
    config = small("refined", "ProMix", "CIFAR-10 50%", root)
    unknown = config.model_copy(update={"method": Choice(name="promix")})
    assert needs_estimates(unknown)
    assert not needs_estimates(config)
    assert measure_run(unknown).epoch > 0
