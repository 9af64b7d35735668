"""The confusions that are kept are those of the epochs that the result reports."""

import json

import pytest
import torch

from postmax.train.confusions import Confusions
from postmax.train.metrics import Scores, score
from postmax.train.selection import summarise
from postmax.train.state import State

CLASSES, ROWS = 3, 50


def judged(epochs, seed, *, validation):
    """The scores and the record of each epoch of one seed, with two readings. Many epochs are equally good."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(CLASSES, (1, ROWS), generator=generator)
    for epoch in range(1, epochs + 1):
        record, scores = {"epoch": epoch, "seed": seed}, {}
        for name, prefix in (("model", ""), ("uncorrected", "uncorrected_")):
            guess = torch.randint(CLASSES, (1, ROWS), generator=generator)
            keeps = torch.rand(1, ROWS, generator=generator) < 0.5
            answer = torch.where(keeps, labels, guess)
            scores[name] = score(torch.nn.functional.one_hot(answer, CLASSES).double(), labels)
            record[f"{prefix}test_accuracy"] = round(scores[name].accuracy[0], 1)
            record[f"{prefix}calibration_error"] = 0.0
        if validation:
            record["val_accuracy"] = float(torch.randint(4, (1,), generator=generator)) / 4
        yield record, scores


@pytest.mark.parametrize("validation", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_each_rule_has_the_confusions_of_its_epoch(seed, validation):
    found, history = Confusions(1), list(judged(8, seed, validation=validation))
    for record, scores in history:
        found.look([record], scores, last=record["epoch"] == 8)
        saved = found.save()  # as if the run had stopped after every epoch
        found.restore(State(saved.tensors, json.loads(json.dumps(saved.values))))
    result = summarise([record for record, _ in history], {"model": {}, "uncorrected": {}})
    kept = found.of(0, result)
    rules = {"last", "oracle", "noisy_val"} if validation else {"last", "oracle"}
    for name, reading in result.items():
        assert set(kept[name]) == rules
        for rule in rules:
            epoch = reading[rule]["epoch"]
            assert kept[name][rule] == {"epoch": epoch, "cells": history[epoch - 1][1][name].confusion(0)}


def test_the_rows_are_counted_once_for_all_rules_and_not_without_need(monkeypatch):
    counted = []
    count = Scores.confusion
    monkeypatch.setattr(Scores, "confusion", lambda scores, lane: counted.append(lane) or count(scores, lane))
    found, (record, scores) = Confusions(1), next(judged(1, 0, validation=True))
    found.look([record], scores, last=True)  # the best epoch so far by all three rules
    assert len(counted) == len(scores)
    found.look([record], scores, last=False)  # no better than the one before
    assert len(counted) == len(scores)


def test_what_was_lost_before_is_left_out():
    """The first epochs were trained by a version that kept no confusions."""
    history = list(judged(6, 0, validation=False))
    history[1][0]["test_accuracy"] = 1.0
    found = Confusions(1)
    for record, scores in history[3:]:
        found.look([record], scores, last=record["epoch"] == 6)
    result = summarise([record for record, _ in history], {"model": {}, "uncorrected": {}})
    assert result["model"]["oracle"]["epoch"] == 2
    assert set(found.of(0, result)["model"]) == {"last"}
