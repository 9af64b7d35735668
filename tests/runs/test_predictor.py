"""The way back: a loaded run predicts, bit for bit, what the run was judged on."""

import csv
import json
import shutil

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from PIL import Image
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from small_runs import feature_archive, image_archive, own_config, small_config, stop_after

import postmax as pm
from postmax import methods
from postmax.data import read_npz
from postmax.errors import DataError, InputError, UnknownNameError
from postmax.methods.parts.answers import STAGE
from postmax.runs import RunFolder, execute
from postmax.runs.model_file import TRANSITION
from postmax.train import make_config
from postmax.train.metrics import score
from postmax.train.prepare import prepare

CSV = "size,colour,id,kind\n"


def raw(config, seed=0):
    """The test rows as they are before they are scaled, and their labels."""
    test = prepare(config, seed).test
    train, split_off = prepare.__globals__["_split"](config.data, seed)
    assert len(split_off) == len(test)
    return split_off.inputs, test.labels


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


def test_bfloat16_is_used_again(tmp_path, bf16):
    config = small_config("precision=bf16-mixed", "model.hidden=[64]")
    execute(config, tmp_path)
    (mixed,) = same_as_judged(tmp_path, config)
    full = pm.load(tmp_path, precision="32-true", device="cpu").predict_proba(raw(config)[0])
    assert 0 < np.abs(mixed - full).max() < 0.02


@pytest.mark.thorough
@pytest.mark.parametrize("method", methods.names())
def test_every_method_answers_as_it_was_judged(tmp_path, method):
    loss = "ce" if method in ("sgn",) else "gan-pml" if method in ("promix",) else "ce"
    settings = [f"method={method}", f"loss={loss}", "epochs=5", "data.validation_share=0.2", "selection=noisy-val"]
    if method == "nlnl":
        settings[0] = "method={name: nlnl, pseudo: true}"
    config = make_config(
        {
            **small_config(*settings).model_dump(),
            "data": {"name": "breast-cancer", "split": "random", "validation_share": 0.2},
        }
    )
    execute(config, tmp_path)
    same_as_judged(tmp_path, config, "noisy_val")
    part = prepare(config, 0)
    rows, _ = raw(config)
    predictor = pm.load(tmp_path, device="cpu")
    noisy = predictor.label_proba(rows)
    assert np.allclose(noisy.sum(1), 1, atol=1e-5)
    # Validation labels were judged with the posterior of the label.
    scaling, validation = part.scaling, part.validation
    factor = np.array(scaling.factor)
    unscaled = validation.inputs.double().numpy() / np.where(factor == 0, 1, factor) + scaling.mean
    hits = predictor.label_proba(unscaled).argmax(1) == validation.labels.numpy()
    judged = [record["val_accuracy"] for record in RunFolder(tmp_path).metrics()]
    assert max(judged) == pytest.approx(hits.mean(), abs=1.5 / len(hits))
