"""Packages that live in an extra: imported when used, with an error that says how to get them."""

from __future__ import annotations

import importlib
from typing import Any

from postmax.errors import MissingDependency


def need(module: str, extra: str) -> Any:
    """The module, or the pip command that brings it.

    Example:
        >>> need("math", "cli").sqrt(4)
        2.0
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name is not None and error.name.partition(".")[0] != package:
            raise
        raise MissingDependency(f"this needs {package}: pip install 'postmax[{extra}]'.") from error
