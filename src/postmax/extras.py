"""Optional packages: they are imported when they are used, and an error says how to install them."""

from __future__ import annotations

import importlib
from typing import Any

from postmax.errors import MissingDependency


def need(module: str, extra: str) -> Any:
    """Return a module of an optional package.

    Args:
        module: The name of the module.
        extra: The extra of postmax that installs it.

    Raises:
        MissingDependency: If it is not installed. The message has the pip command that installs it.

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
