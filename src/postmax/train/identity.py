"""What makes two runs the same run: the parts of a configuration from which the name of its folder is computed.

A field of a configuration counts as it is, unless its annotation carries one of the marks below. So a new field decides
for itself, where it is defined, whether it changes the names of runs.
"""

from __future__ import annotations

import hashlib
import json
from enum import Enum
from pathlib import Path
from typing import Any

from pydantic import BaseModel

# Raise this number when the same configuration starts to mean another computation. It is part of every identity.
GENERATION = 1


class Mark(Enum):
    """How a field of a configuration counts, written as `Annotated[type, Mark.…]`."""

    IGNORED = "The field does not count: it changes where something is, not what is computed."
    FILE = 'An absolute path counts as "file". The content of the file counts by its SHA-256, in another field.'
    ADDED = "The field is younger than the first runs. It counts only where it differs from its default."


def run_identity(config: BaseModel) -> str:
    """Return the name of a run's folder: the same for the same computation, wherever its files lie.

    Example:
        >>> from typing import Annotated
        >>> class Small(BaseModel):
        ...     epochs: int = 1
        ...     root: Annotated[str, Mark.IGNORED] = "here"
        ...     l1: Annotated[float, Mark.ADDED] = 0.0
        >>> run_identity(Small()) == run_identity(Small(root="there", l1=0))
        True
        >>> run_identity(Small()) == run_identity(Small(l1=0.1))
        False
    """
    text = json.dumps([GENERATION, _content(config)], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _content(config: BaseModel) -> dict[str, Any]:
    content = config.model_dump(mode="json")
    for name, field in type(config).model_fields.items():
        value = getattr(config, name)
        if isinstance(value, BaseModel):
            content[name] = _content(value)
        if Mark.FILE in field.metadata and _is_absolute(content[name]):
            content[name] = "file"
        if Mark.IGNORED in field.metadata or (Mark.ADDED in field.metadata and value == field.default):
            del content[name]
    return content


def _is_absolute(value: Any) -> bool:
    """Return whether a value is a path as resolved configurations have it."""
    return isinstance(value, str) and Path(value).is_absolute()
