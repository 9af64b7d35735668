"""Default settings that depend on the data: network, optimiser, schedule, epochs and batch size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from postmax.train.config import make_config
from postmax.train.prepare import load_rows

_MANY_ROWS = 5000
_SMALLEST_IMAGE = 8
# A small network that trains in half a minute to some minutes on two cores; docs/models.md has measurements.
_IMAGES = {
    "model": "small",
    "epochs": 30,
    "batch_size": 128,
    "optimiser": {"lr": 0.1, "weight_decay": 5e-4, "nesterov": True},
    "schedule": {"name": "one-cycle"},
}
_FEATURES = {"model": "mlp", "epochs": 100, "optimiser": {"lr": 0.02, "weight_decay": 1e-3}}


def with_defaults(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the plain values of a configuration, completed with settings that suit the data.

    Settings that are given stay as they are.

    Raises:
        InputError: If the configuration names no data.
        DataError: If the data cannot be read.
    """
    config = make_config(content)
    train = load_rows(config.data)[0]
    row = train.inputs[torch.tensor([0])]
    images = row.dim() == 4 and min(row.shape[2:]) >= _SMALLEST_IMAGE
    chosen: dict[str, Any] = dict(_IMAGES if images else _FEATURES)
    if not images:
        chosen["batch_size"] = 32 if len(train) < _MANY_ROWS else 128
    result = dict(content)
    for key, value in chosen.items():
        given = content.get(key)
        if isinstance(value, Mapping) and isinstance(given, Mapping):
            # Our settings are for our optimiser and schedule. They do not fit one that the user has named.
            result[key] = given if "name" in given else {**value, **given}
        elif given is None:
            result[key] = value
    return result
