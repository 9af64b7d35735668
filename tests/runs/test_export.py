"""Models for programs without postmax: what they compute is what the model says."""

import json
import sys

import numpy as np
import onnx
import onnxruntime
import pytest
from safetensors.numpy import load_file
from small_runs import image_archive, small_config

import postmax as pm
from postmax import losses, models
from postmax.data.row_form import RowForm
from postmax.errors import InputError, MissingDependency
from postmax.runs import Predictor, execute
from postmax.runs.model_file import SavedModel
from postmax.runs.onnx_file import INPUT, OUTPUT, write_onnx
from postmax.runs.trained_model import TrainedModel
from postmax.train import make_config
from postmax.train.scaling import Scaling

NOISE = pm.Transition.pair(4, 0.3)


def a_model(loss, **changes):
    """A network of four classes that nobody has trained, with this loss."""
    network = models.get("mlp", num_classes=4, input_shape=(5,), hidden=(8,))
    content = {
        "classes": ("a", "b", "c", "d"),
        "rows": RowForm((5,)),
        "scaling": Scaling([0.5] * 5, [1.0] * 5, [2.0, 1.0, 3.0, 0.0, 0.1]),
        "pixels": None,
        "network": {"name": "mlp", "hidden": (8,)},
        "answer": {"kind": "network", "outputs": 4, "labels": "loss"},
        "weights": network.state_dict(),
        "loss": loss,
        "transition": NOISE.matrix,
    }
    return Predictor([TrainedModel(SavedModel(**{**content, **changes}))], device="cpu")


def in_onnxruntime(path, rows):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run([OUTPUT], {INPUT: rows})[0]


@pytest.mark.thorough
@pytest.mark.parametrize("rows", [1, 2, 501])
def test_onnx_gives_the_corrected_posterior_for_any_number_of_rows(tmp_path, rows):
    config = small_config("seeds=[1, 2]", "loss={divergence: sl, correction: posterior}", "noise=binary:0.1,0.3")
    execute(config, tmp_path / "run")
    predictor = pm.load(tmp_path / "run", device="cpu")
    written = predictor.export(tmp_path / "m.onnx")
    assert written.difference < 1e-6
    everything = pm.data.load("breast-cancer", split="all").inputs.numpy()
    some = np.resize(everything, (rows, 30))
    found = in_onnxruntime(tmp_path / "m.onnx", some)
    assert np.abs(found - predictor.predict_proba(some)).max() < 1e-6
    assert np.abs(found - predictor.label_proba(some)).max() > 0.01
    about = {entry.key: json.loads(entry.value) for entry in onnx.load(tmp_path / "m.onnx").metadata_props}
    assert about["classes"] == ["malignant", "benign"]


@pytest.mark.slow
@pytest.mark.parametrize("name", losses.names())
def test_every_loss_can_be_exported(tmp_path, name):
    if name == "natarajan":
        pytest.skip("it is for two classes")
    assert write_onnx(a_model({"name": name}), tmp_path / "m.onnx")[1] < 1e-6


@pytest.mark.thorough
@pytest.mark.parametrize("correction", ["objective", "posterior", "forward", "factored"])
def test_every_correction_can_be_exported(tmp_path, correction):
    predictor = a_model({"name": "fpml", "divergence": "jeffreys", "correction": correction})
    predictor.export(tmp_path / "m.onnx")
    rows = np.random.default_rng(0).normal(size=(20, 5)).astype(np.float32)
    rows[3, 2] = np.nan  # filled in, as in the model
    expected = predictor.predict_proba(rows, missing="median")
    assert np.abs(in_onnxruntime(tmp_path / "m.onnx", rows) - expected).max() < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"model": "small"}, {"model": "fast"}, {"method": "divide-mix", "loss": "ce"}])
def test_images_and_several_networks(tmp_path, settings):
    archive = image_archive(tmp_path / "images.npz", side=12)
    execute(make_config({"data": {"path": str(archive)}, "epochs": 1, "batch_size": 20, **settings}), tmp_path / "run")
    predictor = pm.load(tmp_path / "run", device="cpu")
    predictor.export(tmp_path / "m.onnx")
    images = np.random.default_rng(0).integers(0, 256, (5, 3, 12, 12)).astype(np.uint8)
    assert np.abs(in_onnxruntime(tmp_path / "m.onnx", images) - predictor.predict_proba(images)).max() < 1e-5


def test_a_file_that_computes_something_else_is_not_written(monkeypatch, tmp_path):
    monkeypatch.setattr("postmax.runs.onnx_file._exported", lambda module, rows: b"")
    monkeypatch.setattr("postmax.runs.onnx_file._with_metadata", lambda content, predictor: content)
    monkeypatch.setattr("postmax.runs.onnx_file._difference", lambda *_: 0.3)
    with pytest.raises(InputError, match=r"differ by up to 0.3. It was not written"):
        a_model({"name": "ce"}).export(tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())


def test_packages_that_are_missing_are_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(MissingDependency, match=r"needs onnxscript: pip install 'postmax\[export\]'"):
        a_model({"name": "ce"}).export(tmp_path / "m.onnx")


# Plain weights


def simplex(q):
    """The nearest distribution, by bisection: another way than that of postmax."""
    low, high = q.min() - 1, q.max()
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(q - middle, 0).sum() > 1 else (low, middle)
    return np.maximum(q - high, 0)


@pytest.mark.parametrize(
    ("loss", "ratio"),
    [
        ({"name": "ce"}, np.exp),
        ({"name": "fpml", "divergence": "sl"}, lambda z: 1 / (1 + np.exp(-z))),
        ({"name": "fpml", "divergence": "kl", "link": "exp"}, np.exp),
        ({"name": "fpml", "divergence": "kl", "link": "softplus"}, lambda z: np.log1p(np.exp(z))),
        ({"name": "fpml", "divergence": "gan", "correction": "posterior"}, lambda z: 1 / (1 + np.exp(-z))),
        ({"name": "fpml", "divergence": "gan", "correction": "forward"}, np.exp),
    ],
    ids=["ce", "sl", "kl-exp", "kl-softplus", "gan-posterior", "gan-forward"],
)
def test_plain_weights_can_be_used_with_numpy_alone(tmp_path, loss, ratio):
    """Every step as the description says it, without torch and postmax."""
    predictor = a_model(loss)
    predictor.export(tmp_path / "m.safetensors")
    about = json.loads((tmp_path / "m.json").read_text())
    weights = load_file(tmp_path / "m.safetensors")
    rows = np.array(about["example"]["rows"], np.float32)
    scaling = about["preparation"]
    wide = np.where(np.isnan(rows), scaling["fill"], rows.astype(np.float64))
    hidden = ((wide - scaling["mean"]) * scaling["factor"]).astype(np.float32)
    for layer in about["network"]["layers"]:
        if layer["layer"].startswith("Linear"):
            hidden = hidden @ weights[f"{layer['name']}.weight"].T + weights[f"{layer['name']}.bias"]
        else:
            assert layer["layer"] == "ReLU()"
            hidden = np.maximum(hidden, 0)
    shares = ratio(hidden.astype(np.float64))
    shares /= shares.sum(1, keepdims=True)
    assert ("correction" in about["probabilities"]) == (loss.get("correction") == "posterior")
    if "correction" in about["probabilities"]:
        shares = np.apply_along_axis(simplex, 1, shares @ np.linalg.inv(weights["transition"]))
    assert np.allclose(shares, about["example"]["probabilities"], atol=1e-5)
    assert np.allclose(shares, predictor.predict_proba(rows), atol=1e-5)
    assert about["classes"] == ["a", "b", "c", "d"]


def test_a_loss_without_a_plain_rule_says_so(tmp_path):
    predictor = a_model({"name": "bi-tempered"})
    predictor.export(tmp_path / "m.safetensors")
    rule = json.loads((tmp_path / "m.json").read_text())["probabilities"]["rule"]
    assert rule == "By the loss of postmax; the ONNX file has it inside."


def test_names_and_seeds_that_cannot_be_exported(tmp_path):
    one, other = a_model({"name": "ce"}), a_model({"name": "ce"}, seed=1, seeds=(0, 1))
    with pytest.raises(InputError, match=r"m.pt: a model is exported to an .onnx file"):
        one.export(tmp_path / "m.pt")
    both = Predictor([one.models[0], other.models[0]], device="cpu")
    with pytest.raises(InputError, match=r"there are several seeds \(0, 1\). Choose one"):
        both.export(tmp_path / "m.safetensors")
