"""The way back: a loaded run predicts, bit for bit, what the run was judged on."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from PIL import Image
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from small_runs import feature_archive, image_archive, own_config, small_config, stop_after, write_idx

import postmax as pm
from postmax import methods
from postmax.data import Augment, Statistics, read_image_folder, read_npz, read_table
from postmax.errors import DataError, InputError, UnknownNameError
from postmax.runs import RunFolder, execute
from postmax.runs.model_file import SavedModel
from postmax.runs.pixels import Pixels
from postmax.train import make_config, with_overrides
from postmax.train.metrics import score
from postmax.train.prepare import _split, prepare


def raw(config, seed=0):
    """The test rows as they are before they are scaled, and their labels."""
    test = prepare(config, seed).test
    _, rows = _split(config.data, seed)
    assert torch.equal(rows.labels, test.labels)
    return rows.inputs, test.labels


def same_as_judged(folder, config, rule="last"):
    """Check the predictions of each seed against the metrics that the run has stored, and return them."""
    result, found = RunFolder(folder).result(), []
    for seed in result["seeds"]:
        rows, labels = raw(config, seed["seed"])
        posterior = pm.load(folder, seed=seed["seed"], device="cpu").predict_proba(rows)
        scores, stored = score(torch.from_numpy(posterior)[None], labels[None]), seed["readings"]["model"]
        assert scores.accuracy == [stored[rule]["accuracy"]]
        if len(result["seeds"]) == 1:
            assert scores.calibration_error == [stored[rule]["calibration_error"]]
            assert scores.reliability[0] == stored["reliability"]
        else:  # seeds side by side are one product of matrices, whose last digits differ
            assert scores.calibration_error == pytest.approx([stored[rule]["calibration_error"]], abs=1e-6)
        found.append(posterior)
    return found


# The same predictions


@pytest.mark.parametrize(
    "settings",
    [
        ("loss=ce",),
        ("loss={divergence: sl, correction: posterior}", "noise=pair:0.3"),
        ("loss={divergence: gan, correction: forward}", "noise=pair:0.3", "model={hidden: [6], batch_norm: true}"),
        ("loss={divergence: kl, correction: objective}", "noise=binary:0.1,0.3"),
        ("loss=nce+rce", "ema=0.9"),
        ("loss=gce", "selection=oracle", "optimiser.lr=1"),
        ("loss=sharpened-pml", "data.standardise=false"),
        ("seeds=[3, 5]", "loss={correction: posterior}"),
        ("transition=estimated", "loss.correction=forward"),
    ],
    ids=lambda settings: settings[0],
)
def test_predictions_are_those_that_were_judged(tmp_path, settings):
    config = small_config(*settings)
    execute(config, tmp_path)
    same_as_judged(tmp_path, config, "oracle" if "selection=oracle" in settings else "last")


def test_the_number_of_threads_changes_nothing(tmp_path):
    config = small_config("model.hidden=[300]")
    execute(config, tmp_path)
    torch.set_num_threads(2)
    same_as_judged(tmp_path, config)
    assert torch.get_num_threads() == 2


def test_bfloat16_is_used_again(tmp_path, bf16):
    config = small_config("precision=bf16-mixed", "model.hidden=[64]")
    execute(config, tmp_path)
    (mixed,) = same_as_judged(tmp_path, config)
    full = pm.load(tmp_path, precision="32-true", device="cpu").predict_proba(raw(config)[0])
    assert 0 < np.abs(mixed - full).max() < 0.02


@pytest.mark.thorough
@pytest.mark.parametrize("method", methods.names())
def test_every_method_answers_as_it_was_judged(tmp_path, method):
    """With the networks, the stage and the noise of the selected epoch, which need not be the last one."""
    loss = "gan-pml" if method == "promix" else "ce"
    chosen = "{name: nlnl, pseudo: true}" if method == "nlnl" else method
    settings = ["noise=pair:0.3", f"method={chosen}", f"loss={loss}", "epochs=5", "data.validation_share=0.3"]
    config = small_config(*settings, "selection=noisy-val")
    execute(config, tmp_path)
    same_as_judged(tmp_path, config, "noisy_val")
    part = prepare(config, 0)
    factor = np.array(part.scaling.factor)
    unscaled = part.validation.inputs.double().numpy() / factor + part.scaling.mean
    noisy = pm.load(tmp_path, device="cpu").label_proba(unscaled)
    assert np.allclose(noisy.sum(1), 1, atol=1e-5)
    # Validation labels were judged with the posterior of the label. One row may lie on the border of two classes.
    hits = noisy.argmax(1) == part.validation.labels.numpy()
    judged = [record["val_accuracy"] for record in RunFolder(tmp_path).metrics()]
    assert max(judged) == pytest.approx(hits.mean(), abs=1.5 / len(hits))


def test_the_stage_of_the_selected_epoch_answers(tmp_path):
    """The first network is the best one on validation rows here, because the second one has hardly begun."""
    settings = ("method={name: joint-optimisation, first_epochs: 5}", "loss=ce", "epochs=6", "noise=symmetric:0.1")
    config = small_config(*settings, "data.validation_share=0.3", "selection=noisy-val", "optimiser.lr=0.01")
    execute(config, tmp_path)
    best = RunFolder(tmp_path).result()["seeds"][0]["readings"]["model"]["noisy_val"]["epoch"]
    assert best <= 5
    same_as_judged(tmp_path, config, "noisy_val")
    assert set(load_file(tmp_path / "model.safetensors")) >= {"body.0.weight", "fc.bias"}


@pytest.mark.parametrize("model", ["small", "{name: preact-resnet18}", "fast", "mlp"])
def test_images_are_normalised_as_they_were_judged(tmp_path, model):
    archive = image_archive(tmp_path / "images.npz", side=12)
    content = {"data": {"path": str(archive)}, "epochs": 1, "batch_size": 20}
    config = with_overrides(content, [f"model={model}"])
    config = make_config(config)
    execute(config, tmp_path / "run")
    same_as_judged(tmp_path / "run", config)
    predictor = pm.load(tmp_path / "run", device="cpu")
    assert str(predictor.form) == "images of 12 × 12 pixels with 3 channels"
    with np.load(archive) as arrays:
        everything = predictor.predict_proba(arrays["x"])
    assert np.array_equal(predictor.predict_proba(archive), everything)
    assert np.array_equal(predictor.predict_proba(read_npz(archive)), everything)


def test_a_crop_is_cut_out_of_the_middle():
    images = torch.randint(0, 256, (3, 3, 9, 12), dtype=torch.uint8)
    statistics = Statistics((0.4, 0.5, 0.6), (0.2, 0.25, 0.3))
    for crop, padding, mode in ((None, 4, "zeros"), (6, 0, "zeros"), (7, 2, "reflect"), (11, 3, "zeros")):
        augment = Augment(crop=crop, padding=padding, padding_mode=mode, statistics=statistics)
        pixels = Pixels.of(augment, 3)
        expected = augment.evaluation()(images)
        assert torch.equal(pixels(images), expected)
        assert pixels.shape((3, 9, 12)) == tuple(expected.shape[1:])
        assert Pixels.from_dict(json.loads(json.dumps(pixels.to_dict()))) == pixels


# Several seeds


def test_several_seeds_are_averaged_or_chosen(tmp_path):
    execute(small_config("seeds=[3, 5]", "loss={correction: posterior}"), tmp_path)
    rows = pm.data.load("breast-cancer", split="all").inputs[:50]
    both = pm.load(tmp_path, device="cpu")
    each = [pm.load(tmp_path, seed=seed, device="cpu").predict_proba(rows) for seed in (3, 5)]
    assert both.seeds == (3, 5)
    assert "mean of 2 seeds" in repr(both)
    assert np.allclose(both.predict_proba(rows), (each[0] + each[1]) / 2, atol=1e-7)
    assert not np.allclose(each[0], each[1], atol=1e-3)
    with pytest.raises(InputError, match="has no model of the seed 4; it has 3, 5"):
        pm.load(tmp_path, seed=4)
    one_file = pm.load(tmp_path / "model-seed5.safetensors", device="cpu")
    assert np.array_equal(one_file.predict_proba(rows), each[1])
    (tmp_path / "model-seed5.safetensors").unlink()
    with pytest.raises(DataError, match="the models of the seeds 5 are missing"):
        pm.load(tmp_path)
    assert pm.load(tmp_path, seed=3).seeds == (3,)


# Where rows may come from


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A run on a table with numbers, categories and missing values, and its rows."""
    folder = tmp_path_factory.mktemp("table")
    rng = np.random.default_rng(0)
    rows = []
    for i in range(200):
        kind = i % 2
        size = "" if i in (5, 6, 7) else f"{rng.normal(4 * kind):.3f}"
        rows.append((f"r{i}", size, "" if i == 9 else ("red", "blue")[i % 3 == 0], ("cat", "dog")[kind]))
    text = "\n".join(",".join(row) for row in [("id", "size", "colour", "kind"), *rows])
    (folder / "train.csv").write_text(text + "\n")
    config = own_config(folder / "train.csv", "data.labels=kind", "data.drop=[id]", "data.missing=median")
    execute(config, folder / "run")
    return folder


def test_files_and_frames_give_the_same_predictions(table, tmp_path):
    predictor = pm.load(table / "run", device="cpu")
    expected = predictor.predict_proba(table / "train.csv")
    assert predictor.features == ("size", "colour=(missing)", "colour=blue", "colour=red")
    assert predictor.predict(table / "train.csv").tolist() == predictor.classes_[expected.argmax(1)].tolist()
    frame = pd.read_csv(table / "train.csv")
    assert len(expected) == 200
    shuffled = frame[["kind", "colour", "id", "size"]]
    frame.drop(columns=["kind", "id"]).to_parquet(tmp_path / "new.parquet")
    shuffled.to_csv(tmp_path / "new.csv", index=False, sep=";", encoding="utf-16")
    encoded = read_table(table / "train.csv", label="kind", drop=["id"], missing="keep").inputs
    for rows in (
        frame,
        shuffled,
        frame.astype({"colour": "category"}),
        pl.read_csv(table / "train.csv"),
        pa.Table.from_pandas(frame),
        {name: frame[name].tolist() for name in ("size", "colour")},
        tmp_path / "new.parquet",
        str(tmp_path / "new.csv"),
        encoded,
        encoded.numpy(),
        encoded.double().numpy().tolist(),
    ):
        assert np.array_equal(predictor.predict_proba(rows), expected), type(rows)


def test_one_row_is_enough(table):
    predictor = pm.load(table / "run", device="cpu")
    everything = predictor.predict_proba(table / "train.csv")
    frame = pd.read_csv(table / "train.csv")
    assert np.allclose(predictor.predict_proba(frame.iloc[[4]]), everything[[4]], atol=1e-7)
    assert predictor.predict_proba(frame.iloc[:0]).shape == (0, 2)


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ({"size": [1.0]}, {}, "there is no column 'colour', which the features need"),
        ({"size": [1.0], "Colour": ["red"]}, {}, "Is it 'Colour'\\? Then rename it"),
        ({"size": [1.0], "colour": ["pink"]}, {}, "holds 'pink' at index 0, which is a new .*unknown=\"ignore\""),
        ({"size": ["big"], "colour": ["red"]}, {}, "holds 'big' at index 0, which is not a number"),
        ({"size": ["1,5"], "colour": ["red"]}, {}, 'decimal=","'),
        ({"size": [None], "colour": ["red"]}, {"missing": "error"}, 'has no value at index 0.\nTry: missing="median"'),
        ({"size": [np.inf], "colour": ["red"]}, {}, "too large for a feature"),
        ({"size": [1.0], "colour": ["red"]}, {"drop": ["size"]}, "'size' cannot be dropped"),
        ({"size": [1.0], "colour": ["red"]}, {"missing": "mean"}, "missing is error or median, not 'mean'"),
        ({"size": [1.0], "colour": ["red"]}, {"unknown": "zero"}, "unknown is error or ignore, not 'zero'"),
        ({"size": [1.0, 2.0], "colour": ["red"]}, {}, "'size' has 2 and 'colour' has 1"),
        ({"size": 1.0, "colour": "red"}, {}, r"column 'size' is 1.0, and not a list .* For one row write \[1.0\]"),
        ({"size": [1.0], "colour": "red"}, {}, r"column 'colour' is 'red', and not a list"),
        ({"size": np.zeros((1, 2)), "colour": ["red"]}, {}, r"column 'size' has the shape \(1, 2\)"),
        ([[1.0, 0.0, 1.0]], {}, r"each row has the shape \(3,\), but the model was trained on \(4,\)"),
        ([1.0, 0.0, 1.0, 0.0], {}, "that of one row: write"),
        ([["a", "b", "c", "d"]], {}, "neither features"),
    ],
)
def test_rows_that_cannot_be_used_are_named(table, rows, options, message):
    with pytest.raises(InputError, match="(?s)" + message):
        pm.load(table / "run", device="cpu").predict_proba(rows, **options)


def test_rows_whose_outputs_are_not_finite_are_named(table, tmp_path, monkeypatch):
    monkeypatch.setattr("postmax.data.new_rows.ROWS_AT_ONCE", 600)
    predictor = pm.load(table / "run", device="cpu")
    (tmp_path / "new.csv").write_text("size,colour\n" + "1,red\n" * 1300 + "3e38,red\n")
    with torch.no_grad():
        next(predictor.models[0].answer.parameters()).fill_(1e30)
    with pytest.raises(DataError, match="line 1302: the outputs of the model are not finite"):
        predictor.predict_proba(tmp_path / "new.csv")


def test_unknown_categories_are_in_none_of_the_known_ones(table):
    predictor = pm.load(table / "run", device="cpu")
    found = predictor.predict_proba({"size": [1.0], "colour": ["pink"]}, unknown="ignore")
    assert np.array_equal(found, predictor.predict_proba([[1.0, 0.0, 0.0, 0.0]]))


def test_missing_numbers_become_the_medians_of_the_training_rows(tmp_path):
    archive = feature_archive(tmp_path / "rows.npz")
    config = own_config(archive)
    execute(config, tmp_path / "run")
    predictor = pm.load(tmp_path / "run", device="cpu")
    medians = np.array(prepare(config, 0).scaling.fill)
    rows = np.load(archive)["x"][:3]
    rows[1, 2] = np.nan
    filled = np.where(np.isnan(rows), medians, rows)
    with pytest.raises(DataError, match=r'(?s)index 1 is nan at index 2.*missing="median"'):
        predictor.predict_proba(rows)
    assert np.array_equal(predictor.predict_proba(rows, missing="median"), predictor.predict_proba(filled))
    named = pd.DataFrame(rows, columns=list("abcde"))  # the model knows no names, so the order counts
    assert np.array_equal(predictor.predict_proba(named, missing="median"), predictor.predict_proba(filled))


def test_arrays_are_read_block_by_block(tmp_path, monkeypatch):
    archive = feature_archive(tmp_path / "rows.npz")
    execute(own_config(archive), tmp_path / "run")
    predictor = pm.load(tmp_path / "run", device="cpu")
    rows = np.load(archive)["x"]
    expected = predictor.predict_proba(rows)
    monkeypatch.setattr("postmax.data.new_rows.ROWS_AT_ONCE", 7)
    np.savez_compressed(tmp_path / "packed.npz", features=rows)
    np.savez(tmp_path / "columns.npz", x=np.asfortranarray(rows), other=np.zeros(3))
    np.save(tmp_path / "rows.npy", rows)
    for name in ("rows.npz", "packed.npz", "columns.npz", "rows.npy"):
        _, blocks = predictor.stream(tmp_path / name)
        found = [block.probabilities for block in blocks]
        assert [len(block) for block in found] == [7] * 8 + [4]
        assert np.allclose(np.concatenate(found), expected, atol=1e-6)


def test_a_folder_of_images_in_the_order_of_their_paths(tmp_path):
    rng = np.random.default_rng(0)
    for place, kind in enumerate(("cat", "dog")):
        (tmp_path / "train" / kind).mkdir(parents=True)
        for i in range(10):
            pixels = rng.integers(100 * place, 100 * place + 100, (10, 10, 3)).astype(np.uint8)
            Image.fromarray(pixels).save(tmp_path / "train" / kind / f"{i}.png")
    config = make_config({"data": {"path": str(tmp_path / "train"), "size": 8}, "epochs": 2, "batch_size": 8})
    execute(config, tmp_path / "run")
    predictor = pm.load(tmp_path / "run", device="cpu")
    _, blocks = predictor.stream(tmp_path / "train")
    (block,) = blocks
    assert block.kept["file"][:3] == ["cat/0.png", "cat/1.png", "cat/2.png"]
    assert np.array_equal(
        block.probabilities, predictor.predict_proba(read_image_folder(tmp_path / "train", size=8).inputs)
    )
    (tmp_path / "flat").mkdir()
    shutil.copy(tmp_path / "train" / "dog" / "3.png", tmp_path / "flat" / "a.png")
    assert np.allclose(predictor.predict_proba(tmp_path / "flat"), block.probabilities[[13]], atol=1e-6)
    (tmp_path / "flat" / "b.png").write_bytes(b"no image")
    with pytest.raises(DataError, match=r"b.png cannot be read"):
        predictor.predict_proba(tmp_path / "flat")
    (tmp_path / "x.csv").write_text("a\n1\n")
    with pytest.raises(DataError, match="is a table, but the model was trained on images of 8 × 8 pixels"):
        predictor.predict_proba(tmp_path / "x.csv")
    (tmp_path / "nothing").mkdir()
    with pytest.raises(DataError, match="has no images"):
        predictor.predict_proba(tmp_path / "nothing")


def test_grey_images_in_an_idx_file(tmp_path):
    archive = image_archive(tmp_path / "images.npz", channels=1)
    execute(make_config({"data": {"path": str(archive)}, "epochs": 1, "batch_size": 20}), tmp_path / "run")
    predictor = pm.load(tmp_path / "run", device="cpu")
    write_idx(tmp_path / "new-images-idx3-ubyte", np.load(archive)["x"][..., 0])
    assert np.array_equal(predictor.predict_proba(tmp_path / "new-images-idx3-ubyte"), predictor.predict_proba(archive))
    assert str(predictor.form) == "images of 8 × 8 pixels with 1 channel"


def test_images_of_another_size_are_named(tmp_path):
    archive = image_archive(tmp_path / "images.npz")
    execute(make_config({"data": {"path": str(archive)}, "epochs": 1, "batch_size": 20}), tmp_path / "run")
    predictor = pm.load(tmp_path / "run", device="cpu")
    (tmp_path / "photos").mkdir()
    for name, side in (("a.png", 8), ("b.png", 9)):
        Image.new("RGB", (side, side)).save(tmp_path / "photos" / name)
    with pytest.raises(DataError, match=r"b.png: the model was trained on images of 8 × 8 .* an image of 9 × 9 pixels"):
        predictor.predict_proba(tmp_path / "photos")


def test_a_hundred_classes(tmp_path):
    archive = feature_archive(tmp_path / "rows.npz", rows=400, classes=100)
    config = own_config(archive, "loss={divergence: sl, correction: posterior}", "transition=symmetric:0.2", "epochs=1")
    execute(config, tmp_path / "run")
    (posterior,) = same_as_judged(tmp_path / "run", config)
    assert posterior.shape == (100, 100)  # one test row of each class
    assert pm.load(tmp_path / "run").classes_.tolist() == sorted(map(str, range(100)), key=int)


# Files


def test_a_copied_folder_needs_the_model_file_alone(table, tmp_path):
    expected = pm.load(table / "run", device="cpu").predict_proba(table / "train.csv")
    (tmp_path / "copy").mkdir()
    shutil.copy(table / "run" / "model.safetensors", tmp_path / "copy")
    copied = pm.load(tmp_path / "copy", device="cpu")
    copied.save(tmp_path / "deep" / "model")
    again = pm.load(tmp_path / "deep" / "model", device="cpu")
    for predictor in (copied, again):
        assert np.array_equal(predictor.predict_proba(table / "train.csv"), expected)
    names = [path / "model.safetensors" for path in (table / "run", tmp_path / "deep" / "model")]
    assert names[0].read_bytes() == names[1].read_bytes()


def test_loading_leaves_random_numbers_and_warnings_alone(tmp_path):
    settings = ("loss={divergence: sl, correction: objective}", "noise=binary:0.45,0.45")
    execute(small_config(*settings), tmp_path)
    torch.manual_seed(3)
    expected = torch.rand(3)
    torch.manual_seed(3)
    pm.load(tmp_path)
    assert torch.equal(torch.rand(3), expected)


def test_a_folder_that_cannot_be_made(table, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="file could not be written"):
        pm.load(table / "run").save(tmp_path / "file")


@pytest.mark.thorough
def test_a_model_that_is_killed_while_it_is_saved_leaves_the_one_before(table, tmp_path):
    program = f"""
import postmax as pm
predictor = pm.load({str(table / "run")!r}, device="cpu")
while True:
    predictor.save({str(tmp_path / "model")!r})
    print("saved", flush=True)
"""
    for _ in range(3):
        with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
            for _ in range(5):
                assert process.stdout.readline() == b"saved\n"
            process.kill()
        assert pm.load(tmp_path / "model").classes_.tolist() == ["cat", "dog"]


def edited(path, change):
    """Change the JSON in the header of a model file, and write everything else as it was."""
    with safe_open(path, framework="pt") as file:
        about = json.loads(file.metadata()["postmax"])
    tensors = load_file(path)
    change(about, tensors)
    save_file(tensors, path, {"postmax": json.dumps(about)})


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-9]), "is damaged, or not a model of postmax"),
        (lambda path: path.write_bytes(path.read_bytes()[:40]), "is damaged, or not a model of postmax"),
        (lambda path: path.write_bytes(b""), "is empty"),
        (lambda path: path.write_bytes(b"\x80\x04pickle" * 20), "is damaged, or not a model of postmax"),
        (lambda path: save_file({"a": torch.ones(2)}, path), "is not a model of postmax: its header does not say so"),
        (lambda path: edited(path, lambda about, _: about["classes"].reverse()), "its checksum is wrong"),
        (lambda path: edited(path, lambda _, tensors: tensors["fc.bias"].add_(1)), "its checksum is wrong"),
        (lambda path: edited(path, lambda about, _: about.pop("sha256")), "it has no 'sha256'"),
        (
            lambda path: edited(path, lambda about, _: about.update(format="postmax model 4", version="9.1")),
            r"format 4 of a newer postmax \(9.1\).*pip install --upgrade postmax",
        ),
        (
            lambda path: edited(path, lambda about, _: about.update(format="postmax model 2")),
            "written by an older postmax.*postmax resume .* --restart",
        ),
    ],
)
def test_files_that_cannot_be_trusted_are_refused(table, tmp_path, damage, message):
    path = tmp_path / "model.safetensors"
    shutil.copy(table / "run" / "model.safetensors", path)
    damage(path)
    with pytest.raises(DataError, match=message) as error:
        pm.load(tmp_path)
    assert str(path) in str(error.value)


def test_folders_without_a_model_say_why(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        pm.load(tmp_path / "nowhere")
    with pytest.raises(DataError, match="is not the folder of a run"):
        pm.load(tmp_path)
    execute(small_config("save_model=false"), tmp_path / "unsaved")
    with pytest.raises(DataError, match="kept no model, because save_model is false"):
        pm.load(tmp_path / "unsaved")
    execute(small_config(), tmp_path / "all" / "runs" / "one")
    with pytest.raises(DataError, match=r"is not a run but holds runs.*the newest is .*one"):
        pm.load(tmp_path / "all")
    (tmp_path / "all" / "runs" / "one" / "model.safetensors").unlink()
    with pytest.raises(DataError, match="has lost its model file"):
        pm.load(tmp_path / "all" / "runs" / "one")
    stop_after(small_config(), tmp_path / "stopped", 2)
    with pytest.raises(DataError, match=r"is not finished\. Finish it: postmax resume"):
        pm.load(tmp_path / "stopped")


def test_files_of_different_runs_are_not_averaged(tmp_path):
    for name, seed in (("a", 0), ("b", 1)):
        execute(small_config("seeds=[0, 1]" if name == "a" else "seeds=[0, 1, 2]", "epochs=1"), tmp_path / name)
        (tmp_path / "mixed").mkdir(exist_ok=True)
        shutil.copy(tmp_path / name / f"model-seed{seed}.safetensors", tmp_path / "mixed")
    with pytest.raises(DataError, match="has models of different runs"):
        pm.load(tmp_path / "mixed")


def test_devices_and_precisions_that_cannot_be_used(table):
    with pytest.raises(InputError, match="device is auto, cpu, cuda, cuda:1 for the second GPU, or mps; not 'cudda'"):
        pm.load(table / "run", device="cudda")
    with pytest.raises(InputError, match="precision is 32-true or bf16-mixed, not '16'"):
        pm.load(table / "run", precision="16")


# Plugins


class OwnAnswer(torch.nn.Module):
    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, inputs):
        return 2 * self.network(inputs)


def plugin(monkeypatch, **changes):
    """The standard method under the name "plugin", with some of its methods replaced."""
    from postmax.methods import catalogue  # noqa: PLC0415
    from postmax.methods.standard import Standard  # noqa: PLC0415

    class Plugin(Standard):
        def __init__(self, setup):
            super().__init__(setup)
            if "answer" in changes:
                self.answer = changes["answer"](self.answer)

    for name, function in changes.items():
        if name != "answer":
            setattr(Plugin, name, function)
    entry = catalogue.Entry("standard", Plugin, "a plugin")
    monkeypatch.setattr(catalogue, "describe", lambda name: entry)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"answer": OwnAnswer}, "the answer has a part of the class OwnAnswer"),
        ({"readings": lambda self, outputs: {"model": outputs.softmax(-1)}}, "in a way of its own"),
    ],
)
def test_an_answer_that_cannot_be_saved_is_refused_when_it_is_loaded(monkeypatch, tmp_path, changes, message):
    plugin(monkeypatch, **changes)
    execute(small_config(), tmp_path)
    with pytest.raises(InputError, match=f"cannot be used without the program that trained it: standard: .*{message}"):
        pm.load(tmp_path)


def test_a_posterior_of_labels_that_is_not_known_is_refused(monkeypatch, tmp_path):
    plugin(monkeypatch, label_posterior=lambda self, outputs: outputs.softmax(-1))
    execute(small_config(), tmp_path)
    rows = pm.data.load("breast-cancer", split="all").inputs[:2]
    predictor = pm.load(tmp_path)
    assert predictor.predict_proba(rows).shape == (2, 2)
    with pytest.raises(InputError, match="does not say what the noise of the labels is"):
        predictor.label_proba(rows)


def test_a_plugin_that_is_not_loaded_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr("postmax.plugins.described", lambda: ("my_models (mine 1.0)",))
    execute(small_config(), tmp_path)
    saved = SavedModel.read(tmp_path / "model.safetensors")
    (tmp_path / "model.safetensors").write_bytes(replace(saved, network={"name": "my-net"}).to_bytes())
    with pytest.raises(UnknownNameError, match=r"my-net.*trained with the plugins my_models \(mine 1.0\). Import them"):
        pm.load(tmp_path)


@pytest.mark.parametrize("name", ["train.csv", "x.npz", "model.onnx", "weights.pt"])
def test_a_file_that_is_no_model_is_not_called_damaged(tmp_path, name):
    (tmp_path / name).write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match=f"{name} is not a model. Give the folder of a run"):
        pm.load(tmp_path / name)


def test_columns_of_a_dictionary_may_be_of_any_kind(table):
    predictor = pm.load(table / "run", device="cpu")
    expected = predictor.predict({"size": [1.0, 2.0], "colour": ["red", "red"]})
    found = predictor.predict({"size": (value for value in (1.0, 2.0)), "colour": np.array(["red", "red"])})
    assert found.tolist() == expected.tolist()
