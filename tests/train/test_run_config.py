"""Configurations: typed, frozen, with every mistake explained, and an identity that changes when it should."""

import re

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from small_runs import feature_archive, own_config, small_config, write_idx

from postmax.errors import DataError, InputError
from postmax.train import config as module
from postmax.train import identity, make_config, read_config, resolve, with_overrides
from postmax.train.config import DataConfig, OptimiserConfig, RunConfig, ScheduleConfig
from postmax.train.settings import read_yaml, set_key

DIGITS = {"data": {"name": "digits"}}


# Unknown keys


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({**DIGITS, "epochz": 3}, "unknown key 'epochz'. Did you mean 'epochs'? Known: accelerator, batch_size"),
        ({"data": {"nam": "digits"}}, "unknown key 'data.nam'. Did you mean 'data.name'?"),
        ({"data": {"name": "digits", "test_shore": 0.3}}, "unknown key 'data.test_shore'. Did you mean 'data.test_sha"),
        (
            {**DIGITS, "optimiser": {"momentun": 0.9}},
            "unknown key 'optimiser.momentun'. Did you mean 'optimiser.momentum'?",
        ),
        (
            {**DIGITS, "schedule": {"milestone": [3]}},
            "unknown key 'schedule.milestone'. Did you mean 'schedule.milestones'?",
        ),
        ({**DIGITS, "optimizer": {"lr": 1}}, "unknown key 'optimizer'. Did you mean 'optimiser'?"),
        ({**DIGITS, "qqqqqqqqqq": 1}, "unknown key 'qqqqqqqqqq'. Known:"),
    ],
)
def test_unknown_keys_are_named_with_the_nearest(content, message):
    with pytest.raises(InputError, match=re.escape(f"the configuration: {message}")):
        make_config(content)


@settings(deadline=None, max_examples=40, derandomize=True)
@given(st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1))
def test_no_unknown_key_is_passed_over(key):
    for place in ([], ["data"], ["optimiser"], ["schedule"]):
        content = {"data": {"name": "digits"}, "optimiser": {}, "schedule": {}}
        section = content[place[0]] if place else content
        kind = {"data": DataConfig, "optimiser": OptimiserConfig, "schedule": ScheduleConfig}
        if key in (kind[place[0]] if place else RunConfig).model_fields:
            continue
        section[key] = 1
        with pytest.raises(InputError, match="unknown key"):
            make_config(content)


# Values


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("epochs=0", "epochs must be a whole number of at least 1, not 0."),
        ("epochs=2.5", "epochs must be a whole number of at least 1, not 2.5"),
        ("batch_size=-1", "batch_size must be a whole number of at least 1, not -1"),
        ("optimiser.lr=0", "optimiser.lr must be a number above 0, not 0"),
        ("optimiser.lr=.nan", "optimiser.lr must be a number above 0, not nan"),
        ("optimiser.lr=fast", "optimiser.lr must be a number above 0, not 'fast'"),
        ("optimiser.name=sdg", "optimiser.name must be one of sgd, adam, adamw, muon, not 'sdg'"),
        ("optimiser.momentum=1", "optimiser.momentum must be a number of at least 0 and below 1, not 1"),
        ("optimiser.betas=[0.9]", r"optimiser.betas must be a list of 2 numbers, not \[0.9\]"),
        ("optimiser.lr=[1]", r"optimiser.lr must be a number above 0, not \[1\]"),
        ("method=", "method must be a name, alone or with options, but it is empty"),
        ("save_model=maybe", "save_model must be true or false, not 'maybe'"),
        ("data.decimal=;", "data.decimal must be one of '.', ',', not ';'"),
        ("optimiser.clip_norm=0", "optimiser.clip_norm must be a number above 0, or null, not 0"),
        (
            "schedule.name=cosin",
            "schedule.name must be one of cosine, step, one-cycle, constant, restarts, late-linear, not 'cosin'",
        ),
        ("schedule.peak=1", "schedule.peak must be .* below 1"),
        ("selection=best", "selection must be one of last, noisy-val, oracle, not 'best'"),
        ("selection=noisy-val", "selection noisy-val needs data.validation_share, for example 0.1"),
        ("seeds=[]", r"seeds must be a list of one or more whole numbers, not \[\]"),
        ("seeds=[1, 2, 1]", "seeds: each seed may be given only once"),
        ("seeds=[1, x]", "seeds.#2 must be a whole number, not 'x'"),
        ("ema=1", "ema must be a number above 0 and below 1, or null, not 1"),
        ("data.test_share=1", "data.test_share must be .* below 1"),
        ("data.train_rows=1", "data.train_rows must be a whole number of at least 2, or null"),
        ("data.augment=flip", "data.augment must be one of auto, none, crop, crop-flip"),
        ("data.path=x.csv", re.escape("data: give either name (a data set of the catalogue) or path (your own data)")),
        ("data.name=null", re.escape("data: give either name (a data set of the catalogue) or path (your own data)")),
        ("data=null", "data must be a section with keys such as name, path, labels, but it is empty"),
        ("loss=3", "loss must be a name, alone or with options, not 3"),
        ("loss.name=3", "loss.name must be a text, not 3"),
    ],
)
def test_bad_values(override, message):
    with pytest.raises(InputError, match=f"^the configuration: {message}"):
        small_config(override)


def test_all_wrong_keys_at_once_and_never_in_the_words_of_a_library():
    wrong = ["epochz=1", "optimiser.lr=x", "schedule.gama=2", "batch_size=0", "zzzzzzz=3", "method="]
    with pytest.raises(InputError) as error:
        make_config(with_overrides(DIGITS, wrong))
    text = str(error.value)
    assert text.startswith("the configuration: 6 problems\n")
    for line in (
        "unknown key 'epochz'. Did you mean 'epochs'?",
        "optimiser.lr must be a number above 0, not 'x'.",
        "unknown key 'schedule.gama'. Did you mean 'schedule.gamma'?",
        "batch_size must be a whole number of at least 1, not 0.",
        "unknown key 'zzzzzzz'. Known: accelerator",
        "method must be a name, alone or with options, but it is empty.",
    ):
        assert f"\n  {line}" in text
    assert not re.search("Input should|valid (integer|number|dictionary|string)|Field required|pydantic", text)


def test_a_decimal_comma_and_an_encoding_are_settings():
    given = make_config(with_overrides({"data": {"path": "x.csv"}}, ["data.decimal=,", "data.encoding=cp1252"])).data
    assert (given.decimal, given.encoding) == (",", "cp1252")
    assert make_config({**DIGITS, "data": {"name": "digits", "decimal": "."}}).run_id == make_config(DIGITS).run_id


def test_a_run_without_data():
    with pytest.raises(InputError, match=r"data is missing: the rows .* It must be a section with keys such as name"):
        make_config({})


@pytest.mark.parametrize("key", ["optimiser.lr", "optimiser.weight_decay", "schedule.warmup", "optimiser.clip_norm"])
def test_infinite_values(key):
    with pytest.raises(InputError, match=key):
        small_config(f"{key}=.inf")


def test_frozen():
    config = small_config()
    for section, name in ((config, "epochs"), (config.data, "name"), (config.optimiser, "lr"), (config.loss, "name")):
        with pytest.raises(ValidationError, match="frozen"):
            setattr(section, name, getattr(section, name))


# Choices


@pytest.mark.parametrize(
    ("given_as", "name", "options"),
    [
        ("ce", "ce", {}),
        ({"name": "ce", "label_smoothing": 0.1}, "ce", {"label_smoothing": 0.1}),
        ({"divergence": "sl"}, "fpml", {"divergence": "sl"}),
        ({}, "fpml", {}),
    ],
)
def test_choices(given_as, name, options):
    loss = make_config({**DIGITS, "loss": given_as}).loss
    assert (loss.name, loss.options) == (name, options)


def test_defaults_are_written_out():
    written = yaml.safe_load(make_config(DIGITS).to_yaml())
    assert set(written) == set(RunConfig.model_fields)
    for name, kind in (("data", DataConfig), ("optimiser", OptimiserConfig), ("schedule", ScheduleConfig)):
        assert set(written[name]) == set(kind.model_fields)
    assert written["model"] == {"name": "mlp"}
    assert written["loss"] == {"name": "fpml"}
    assert written["method"] == {"name": "standard"}


# Overrides


@pytest.mark.parametrize(
    ("content", "override", "expected"),
    [
        ({}, "epochs=3", {"epochs": 3}),
        ({}, " epochs = 3", {"epochs": 3}),
        ({}, "optimiser.lr=0.1", {"optimiser": {"lr": 0.1}}),
        ({}, "optimiser.lr=1e-3", {"optimiser": {"lr": 1e-3}}),
        ({}, "optimiser.lr=1E3", {"optimiser": {"lr": 1e3}}),
        ({}, "optimiser.lr=-.5e-1", {"optimiser": {"lr": -0.05}}),
        ({}, "seeds=[1, 2]", {"seeds": [1, 2]}),
        ({"ema": 0.9}, "ema=null", {"ema": None}),
        ({"ema": 0.9}, "ema=", {"ema": None}),
        ({}, "save_model=false", {"save_model": False}),
        ({}, "noise=symmetric:0.4", {"noise": "symmetric:0.4"}),
        ({}, "noise=binary:0.1,0.3", {"noise": "binary:0.1,0.3"}),
        ({}, "data.path=/a=b/c.csv", {"data": {"path": "/a=b/c.csv"}}),
        ({}, "data.path=2024-run.csv", {"data": {"path": "2024-run.csv"}}),
        ({"loss": "ce"}, "loss.label_smoothing=0.1", {"loss": {"name": "ce", "label_smoothing": 0.1}}),
        ({"loss": {"name": "fpml", "divergence": "sl"}}, "loss=ce", {"loss": "ce"}),
        (
            {"loss": {"name": "fpml", "divergence": "sl", "floor": 0.1}},
            "loss={divergence: js}",
            {"loss": {"name": "fpml", "divergence": "js", "floor": 0.1}},
        ),
        (
            {"loss": {"divergence": "sl"}},
            "loss.correction=posterior",
            {"loss": {"divergence": "sl", "correction": "posterior"}},
        ),
        ({"optimiser": None}, "optimiser.lr=1", {"optimiser": {"lr": 1}}),
        ({"epochs": 3, "seeds": (1, 2)}, "epochs=4", {"epochs": 4, "seeds": [1, 2]}),
    ],
)
def test_overrides(content, override, expected):
    before = repr(content)
    found = with_overrides(content, [override])
    assert found == expected
    assert repr(found.get("epochs")) == repr(expected.get("epochs"))  # 3 and not 3.0
    assert repr(content) == before


def test_later_overrides_win():
    overrides = ["loss=ce", "loss.label_smoothing=0.1", "epochs=3", "epochs=4"]
    assert with_overrides({}, overrides) == {"loss": {"name": "ce", "label_smoothing": 0.1}, "epochs": 4}


@pytest.mark.parametrize("text", ["epochs", "=3", " =3", ""])
def test_no_override(text):
    with pytest.raises(InputError, match=re.escape(f"{text!r} is not of the form key=value, such as optimiser.lr=0.1")):
        with_overrides({}, [text])


def test_an_override_that_is_no_yaml():
    with pytest.raises(InputError, match=re.escape("'seeds=[1, 2': the value is not YAML")):
        with_overrides({}, ["seeds=[1, 2"])


def test_an_unknown_key_of_an_override():
    with pytest.raises(InputError, match=r"Did you mean 'optimiser.lr'"):
        small_config("optimiser.lt=1")


@pytest.mark.parametrize("override", ["epochs.x=3", "seeds.0=3"])
def test_an_override_below_something_that_has_no_keys(override):
    with pytest.raises(InputError, match=r"epochs|seeds"):
        make_config(with_overrides({**DIGITS, "epochs": 5, "seeds": [1]}, [override]))


def test_a_mapping_is_merged_into_a_name():
    content = with_overrides({**DIGITS, "loss": "ce"}, ["loss={label_smoothing: 0.1}"])
    assert make_config(content).loss.name == "ce"


def test_numbers_inside_of_values(tmp_path):
    assert small_config("loss={floor: 1e-3}").loss.options == {"floor": 1e-3}
    path = tmp_path / "run.yaml"
    path.write_text("data: {name: digits}\nloss: {floor: 1e-3}\n")
    assert read_config(path).loss.options == {"floor": 1e-3}


# YAML


def written(config, tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(config.to_yaml(), encoding="utf-8")
    return path


FLOATS = st.floats(1e-6, 1e6)
TEXT = st.text(st.characters(exclude_categories=["C", "Zl", "Zp"]), min_size=1)


@settings(deadline=None, max_examples=40, derandomize=True)
@given(
    data=st.fixed_dictionaries(
        {"name": TEXT},
        optional={"drop": st.lists(TEXT), "size": st.integers(1, 99), "root": TEXT, "missing": st.just("median")},
    ),
    noise=TEXT,
    loss=st.dictionaries(
        st.text(st.characters(codec="ascii", categories=["Ll"]), min_size=1).filter(lambda key: key != "name"),
        st.one_of(FLOATS, st.integers(), st.booleans(), st.none(), TEXT, st.lists(st.integers())),
    ),
    lr=FLOATS,
    seeds=st.lists(st.integers(0, 2**40), unique=True, min_size=1),
)
def test_yaml_round_trip(tmp_path_factory, data, noise, loss, lr, seeds):
    options = {key: value for key, value in loss.items() if key not in dir(module.Choice)}
    content = {"data": data, "noise": noise, "loss": options, "optimiser": {"lr": lr}, "seeds": seeds}
    config = make_config(content)
    again = read_config(written(config, tmp_path_factory.mktemp("yaml")))
    assert again == config
    assert again.run_id == config.run_id


def test_the_file_is_named(tmp_path):
    path = tmp_path / "run.yaml"
    path.write_text("data: {name: digits}\nepochz: 3\n")
    with pytest.raises(InputError, match=rf"{re.escape(str(path))}: unknown key 'epochz'"):
        read_config(path)


@pytest.mark.parametrize("content", [b"", b"- 1\n", b"just text", b"a: [1", b"\xff\xfe", b"a: !!python/object:os.x {}"])
def test_files_that_are_no_configuration(tmp_path, content):
    path = tmp_path / "run.yaml"
    path.write_bytes(content)
    with pytest.raises(DataError, match=re.escape(str(path))):
        read_yaml(path)


def test_missing_file(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        read_config(tmp_path / "none.yaml")


# Identity

CHANGES = {
    "noise": "pair:0.1",
    "noise_exact": False,
    "transition": "estimated",
    "model.hidden": [5],
    "model.name": "cnn8",
    "method.name": "other",
    "loss.divergence": "js",
    "loss.name": "ce",
    "epochs": 5,
    "batch_size": 32,
    "evaluate_every": 2,
    "selection": "oracle",
    "ema": 0.9,
    "precision": "bf16-mixed",
    "accelerator": "cpu",
    "seeds": [1],
    "save_model": False,
    "data.name": "digits",
    "data.drop": ["a"],
    "data.missing": "median",
    "data.decimal": ",",
    "data.encoding": "cp1252",
    "data.merge_labels": True,
    "data.size": 8,
    "data.split": "official",
    "data.labels": "b",
    "data.test_share": 0.3,
    "data.validation_share": 0.1,
    "data.train_rows": 50,
    "data.also_test": ["digits"],
    "data.augment": "none",
    "data.cutout": 3,
    "data.small": [[0.5, 9]],
    "data.standardise": False,
    "data.sha256": "abc",
    "optimiser.name": "adam",
    "optimiser.lr": 0.06,
    "optimiser.momentum": 0.8,
    "optimiser.nesterov": True,
    "optimiser.betas": [0.8, 0.9],
    "optimiser.weight_decay": 0.1,
    "optimiser.bias_rate": 64.0,
    "optimiser.filter_rate": 0.1,
    "optimiser.l1": 0.1,
    "optimiser.clip_norm": 1.0,
    "schedule.name": "step",
    "schedule.warmup": 1.0,
    "schedule.milestones": [1],
    "schedule.gamma": 0.5,
    "schedule.peak": 0.2,
    "schedule.final": 0.1,
    "schedule.period": 3,
}


def test_every_field_is_part_of_the_identity():
    ids = {"": small_config().run_id}
    for key, value in CHANGES.items():
        content = yaml.safe_load(small_config().to_yaml())
        set_key(content, key, value)
        ids[key] = make_config(content).run_id
    assert len(set(ids.values())) == len(ids)
    assert all(re.fullmatch("[0-9a-f]{16}", run_id) for run_id in ids.values())
    # Nothing was forgotten above.
    sections = {"data": DataConfig, "optimiser": OptimiserConfig, "schedule": ScheduleConfig}
    fields = {f"{name}.{field}" for name, kind in sections.items() for field in kind.model_fields}
    fields |= set(RunConfig.model_fields) - {*sections, "model", "method", "loss"}
    assert fields - set(CHANGES) == {"data.root", "data.path", "data.test_path", "data.test_labels"}


def test_the_identity_does_not_move():
    # A change here makes every result that exists another run's: raise GENERATION when it is meant.
    assert identity.GENERATION == 1
    assert make_config(DIGITS).run_id == "55612911a580f348"
    given = {"optimiser": {"lr": 0.1, "clip_norm": 1.0}, "loss": "ce", "seeds": [1, 2]}
    assert make_config({**DIGITS, **given}).run_id == "24accbf4071b4a0d"


@pytest.mark.parametrize("absent", [0.0, 0, -0.0])
def test_a_key_that_runs_are_older_than_moves_no_identity(absent):
    content = {**DIGITS, "optimiser": {"l1": absent}}
    assert make_config(content).run_id == make_config(DIGITS).run_id


def test_a_generation_is_part_of_the_identity(monkeypatch):
    before = small_config().run_id
    monkeypatch.setattr(identity, "GENERATION", identity.GENERATION + 1)
    assert small_config().run_id != before


def test_where_files_lie_is_no_part_of_the_identity(tmp_path):
    assert small_config("data.root=/a").run_id == small_config("data.root=/b").run_id == small_config().run_id
    (tmp_path / "other").mkdir()
    here, there = feature_archive(tmp_path / "a.npz"), feature_archive(tmp_path / "other" / "b.npz")
    first, second = resolve(own_config(here)), resolve(own_config(there))
    assert first.run_id == second.run_id
    tested = [resolve(own_config(here, f"data.test_path={test}")).run_id for test in (here, there)]
    assert tested[0] == tested[1] != first.run_id


def test_other_bytes_are_another_run(tmp_path):
    first, second = feature_archive(tmp_path / "a.npz"), feature_archive(tmp_path / "b.npz", seed=1)
    assert resolve(own_config(first)).run_id != resolve(own_config(second)).run_id
    tested = [resolve(own_config(first, f"data.test_path={test}")).run_id for test in (first, second)]
    assert tested[0] != tested[1]
    config = resolve(own_config(first))
    assert re.fullmatch("[0-9a-f]{64}", config.data.sha256)
    assert resolve(config) == config
    assert resolve(small_config()) == small_config()


def test_where_labels_lie_is_no_part_of_the_identity(tmp_path):
    ids = set()
    for place in ("a", "b"):
        (tmp_path / place).mkdir()
        images, labels = tmp_path / place / "images", tmp_path / place / "labels"
        write_idx(images, [[[0]], [[1]], [[2]]])
        write_idx(labels, [0, 1, 0])
        ids.add(resolve(own_config(images, f"data.labels={labels}")).run_id)
    assert len(ids) == 1


def test_labels_found_by_their_name_are_part_of_the_identity(tmp_path):
    images, labels = tmp_path / "train-images-idx3-ubyte", tmp_path / "train-labels-idx1-ubyte"
    write_idx(images, [[[0]], [[1]], [[2]]])
    ids = set()
    for content in ([0, 1, 0], [0, 1, 1]):
        write_idx(labels, content)
        ids.add(resolve(own_config(images)).run_id)
    assert len(ids) == 2


@pytest.mark.parametrize("key", ["transition", "noise"])
def test_the_matrix_in_a_file_is_part_of_the_identity(tmp_path, key):
    path, ids = tmp_path / "matrix.csv", set()
    for text in ("0.9,0.1\n0.2,0.8\n", "0.8,0.2\n0.2,0.8\n"):
        path.write_text(text)
        ids.add(resolve(small_config(f"{key}={path}", "loss.correction=forward")).run_id)
    assert len(ids) == 2


def test_a_name_said_later_keeps_the_options_said_before():
    content = with_overrides(DIGITS, ["loss.floor=0.05", "loss.divergence=rkl", "loss=fpml"])
    assert make_config(content).loss.options == {"floor": 0.05, "divergence": "rkl"}
    assert (
        make_config(with_overrides({**DIGITS, "loss": {"name": "fpml", "floor": 0.1}}, ["loss=ce"])).loss.options == {}
    )


def test_words_and_single_values_for_sections_and_lists():
    config = make_config(with_overrides(DIGITS, ["optimiser=adam", "schedule=constant", "seeds=3", "data.drop=id"]))
    assert (config.optimiser.name, config.schedule.name) == ("adam", "constant")
    assert (config.seeds, config.data.drop) == ((3,), ("id",))


def test_a_transition_that_is_nothing_is_refused_also_without_a_correction():
    with pytest.raises(InputError, match=r"known, estimated, a noise such as symmetric:0\.4 or the file"):
        make_config(with_overrides(DIGITS, ["transition=estimate"]))
