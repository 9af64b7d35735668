"""The JSON file of an estimated transition matrix."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypedDict

import torch
from torch import Tensor

from postmax.errors import DataError, InputError
from postmax.files import existing_file
from postmax.transition.matrix import Transition

FORMAT = "postmax transition estimate 1"


class EstimateFields(TypedDict):
    """The content of the file. `postmax.estimation.TransitionEstimate` has the same fields and explains them."""

    transition: Transition
    prior: Tensor
    noise_rate: float
    interval: tuple[Tensor, Tensor]
    sampling_interval: tuple[float, float]
    noise_rate_interval: tuple[float, float]
    level: float
    method: str
    classes: tuple[str | int, ...]
    rows: int
    unidentified: dict[str | int, str]


def read_estimate(path: str | Path) -> EstimateFields:
    """Read an estimate from the file that `TransitionEstimate.save` wrote.

    Raises:
        DataError: If the file is missing, damaged, or not an estimate.
    """
    try:
        content = json.loads(existing_file(path).read_bytes())
    except DataError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise _damaged(str(path), error) from error
    return estimate_fields(content, str(path))


def estimate_fields(content: Any, where: str) -> EstimateFields:
    """Return the fields of an estimate from the content of its file.

    Raises:
        DataError: If the content is not an estimate. `where` names it in the message.
    """
    try:
        return _fields(content, where)
    except DataError:
        raise
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise _damaged(where, error) from error


def _damaged(where: str, error: Exception) -> DataError:
    reason = str(error) if isinstance(error, InputError) else f"{type(error).__name__} {error}"
    return DataError(f"{where} is not a transition estimate, or it is damaged: {reason}.")


def _fields(content: dict[str, Any], path: str) -> EstimateFields:
    if content["format"] != FORMAT:
        raise DataError(f"{path} is a {content['format']!r}, not a {FORMAT!r}.")
    lower, upper, prior = (torch.tensor(content[key], dtype=torch.float64) for key in ("lower", "upper", "prior"))
    fields: EstimateFields = {
        "transition": Transition(content["matrix"], definition=f"estimated from {path}"),
        "prior": prior,
        "noise_rate": content["noise_rate"],
        "interval": (lower, upper),
        "sampling_interval": tuple(content["sampling_interval"]),
        "noise_rate_interval": tuple(content["noise_rate_interval"]),
        "level": content["level"],
        "method": content["method"],
        "classes": tuple(content["classes"]),
        "rows": content["rows"],
        "unidentified": dict(content["unidentified"]),
    }
    k = len(fields["classes"])
    shapes = [tuple(part.shape) for part in (fields["transition"].matrix, lower, upper, prior)]
    if shapes != [(k, k)] * 3 + [(k,)]:
        raise InputError(f"its {k} classes do not fit arrays of shapes {shapes}")
    return fields
