"""Optional packages: they are imported when they are used, and an error says how to install them."""

from __future__ import annotations

import importlib
from typing import Any

from postmax.errors import MissingDependency


def need(module: str, extra: str = "", *, package: str = "") -> Any:
    """Return a module of an optional package.

    Args:
        module: The name of the module.
        extra: The extra of postmax that installs it.
        package: What pip installs, if no extra of postmax has it.

    Raises:
        MissingDependency: If it is not installed. The message has the pip command that installs it.

    Example:
        >>> need("math", "cli").sqrt(4)
        2.0
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        top = module.partition(".")[0]
        if error.name is not None and error.name.partition(".")[0] != top:
            raise
        way = package or f"'postmax[{extra}]'"
        raise MissingDependency(f"this needs {top}: pip install {way}.") from error
