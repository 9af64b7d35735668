"""A small table for tests: two panels, three rows, four columns."""

from __future__ import annotations

from postmax.tables.catalogue import make


def content(**changes):
    base = {
        "title": "A table",
        "compare": "rows",
        "run": {"data": {"name": "digits"}, "loss": {"name": "fpml", "floor": 0.1}, "epochs": 9},
        "scales": {"small": {"seeds": 4, "stack": 2, "set": {"epochs": 3}}, "other": {"seeds": [5, 7]}},
        "panels": [{"name": "Low", "set": {"noise": "symmetric:0.2"}}, {"name": "High", "set": {"noise": "pair:0.4"}}],
        "rows": [
            {"name": "KL", "set": {"loss.divergence": "kl"}},
            {"name": "SL", "set": {"loss.divergence": "sl"}},
            {"name": "Pearson", "set": {"loss.divergence": "pearson"}, "optional": True},
        ],
        "columns": [
            {"name": "plain", "set": {"loss.correction": "posterior"}, "reading": "uncorrected"},
            {"name": "posterior", "set": {"loss.correction": "posterior"}},
            {"name": "forward", "set": {"loss.correction": "forward", "epochs": 5}},
            {"name": "clean", "set": {"noise": "none"}, "reference": True},
        ],
        "reported": {"Low": {"KL": {"plain": 90.0}}},
    }
    return {**base, **changes}


def table(**changes):
    return make(content(**changes), name="test")
