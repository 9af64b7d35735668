"""A file of tensors and JSON with a checksum: safetensors whose header has one entry, `postmax`. Nothing in it runs."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor

from postmax.errors import DataError
from postmax.files import existing_file
from postmax.runs.checkpoint import digest
from postmax.version import __version__

_KEY = "postmax"
_AGAIN = "Copy it again from where it was made."
DAMAGED = (SafetensorError, OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError)


class Sealed(NamedTuple):
    """What a file holds.

    Attributes:
        kind: What it is, such as "postmax model".
        about: Plain values.
        tensors: The tensors by name.
    """

    kind: str
    about: dict[str, Any]
    tensors: dict[str, Tensor]


def seal(kind: str, number: int, about: Mapping[str, Any], tensors: Mapping[str, Tensor | None]) -> bytes:
    """Return the content of a file. The same content gives the same bytes.

    Args:
        kind: What it is.
        number: The number of its format.
        about: Plain values for JSON.
        tensors: Tensors by name; those that are None are left out.
    """
    kept = {name: t.detach().cpu().contiguous() for name, t in tensors.items() if t is not None}
    content = {"format": f"{kind} {number}", **about}
    content["sha256"] = digest(kept, _text(content))
    # The header has one entry. The order of several entries would differ from time to time.
    return to_bytes(kept, {_KEY: json.dumps(content)})


def unseal(path: Path, formats: Mapping[str, int]) -> Sealed:
    """Return the content of a file.

    Args:
        path: The file.
        formats: The kinds of files that are read, with the number of the format of each.

    Raises:
        DataError: If the file is missing, damaged, was changed, or is of another kind or format.
    """
    path = existing_file(path)
    try:
        with safe_open(path, framework="pt") as file:
            about = json.loads((file.metadata() or {}).get(_KEY, "null"))
            kind = _check_format(path, about, formats)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (not a dictionary)
        changed = about.pop("sha256") != digest(tensors, _text(about))
    except DataError:
        raise
    except DAMAGED as error:
        raise damaged(path, error) from error
    if changed:
        raise DataError(f"{path} was changed or damaged after it was written: its checksum is wrong. {_AGAIN}")
    del about["format"]
    return Sealed(kind, about, tensors)


def damaged(path: Path, error: Exception) -> DataError:
    """Return the error for a file that is not what it should be."""
    reason = f"it has no {error}" if isinstance(error, KeyError) else str(error)
    return DataError(f"{path} is damaged, or not a model of postmax ({reason}). {_AGAIN}")


def _text(about: Mapping[str, Any]) -> str:
    return json.dumps(about, sort_keys=True)


def _check_format(path: Path, about: Any, formats: Mapping[str, int]) -> str:
    """Return the kind of a file. What is no model is refused, and so are older and newer formats."""
    kind, _, number = str(about.get("format", "") if isinstance(about, dict) else "").rpartition(" ")
    if kind not in formats or not number.isdecimal():
        raise DataError(f"{path} is not a model of postmax: its header does not say so.")
    if int(number) > formats[kind]:
        raise DataError(
            f"{path} has the format {number} of a newer postmax ({about.get('version', 'unknown')}); this one "
            f"({__version__}) reads up to {formats[kind]}. Update it: pip install --upgrade postmax."
        )
    if int(number) < formats[kind]:
        raise DataError(
            f"{path} was written by an older postmax, which did not save everything that is needed to predict. Train "
            f"again: postmax resume {shlex.quote(str(path.parent))} --restart"
        )
    return kind
