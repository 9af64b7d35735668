"""Plugins: modules outside postmax that register losses, methods, models, data sets and more when they are imported.

There are two ways to name such a module:

* An installed package names it as an entry point in the group `postmax.plugins`. Entry points are loaded when the
  command line starts, and when a registry does not know a name.
* A user names it with `--import MODULE` on the command line, or in the environment variable `POSTMAX_IMPORT`.

This file imports nothing of postmax but its errors, so that every part of postmax can use it.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from postmax.errors import InputError

GROUP = "postmax.plugins"
VARIABLE = "POSTMAX_IMPORT"


class PluginWarning(UserWarning):
    """An installed plugin could not be imported."""


@dataclass(frozen=True)
class Plugin:
    """An installed plugin.

    Attributes:
        name: The name of its entry point.
        module: The module that is imported.
        package: The package that brings it, with its version.
        error: Why it could not be imported; None if it is loaded.
    """

    name: str
    module: str
    package: str
    error: str | None = None


_installed: dict[str, Plugin] | None = None
_imported: list[str] = []


def load_entry_points() -> None:
    """Import all installed plugins. Only the first call does something.

    A plugin that cannot be imported gives a `PluginWarning` with the name of its package and the error. The other
    plugins are imported all the same.
    """
    global _installed  # noqa: PLW0603  (plugins are loaded once in a process)
    if _installed is not None:
        return
    _installed = {}
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        plugin = _load_entry_point(point)
        _installed[f"{plugin.package} {plugin.name}"] = plugin
        if plugin.error is not None:
            message = f"the plugin {plugin.name!r} of the package {plugin.package} is not loaded: {plugin.error}"
            warnings.warn(message, PluginWarning, stacklevel=2)


def _load_entry_point(point: EntryPoint) -> Plugin:
    package = "unknown" if point.dist is None else f"{point.dist.name} {point.dist.version}"
    try:
        point.load()
    except (Exception, SystemExit) as error:
        # A plugin is code of others that may fail in every way. An unrelated command must go on.
        return Plugin(point.name, point.module, package, _reason(error))
    return Plugin(point.name, point.module, package)


def installed() -> tuple[Plugin, ...]:
    """Return all installed plugins, loaded or broken. They are loaded first if they are not yet."""
    load_entry_points()
    return tuple((_installed or {}).values())


def load(names: Iterable[str]) -> None:
    """Import modules that register something.

    Args:
        names: Names of modules, which may lie in the current folder, or paths of `.py` files.

    Raises:
        InputError: If a module does not exist or cannot be imported. The message has the reason.
    """
    for name in names:
        known = _load_file(Path(name)) if name.endswith(".py") else _load_module(name)
        if known not in _imported:
            _imported.append(known)


def loaded() -> tuple[str, ...]:
    """Return what another process must pass to `load` to have the same plugins as this one.

    These are the modules that were named by `load`, and the modules of the installed plugins that are loaded.
    """
    points = [plugin.module for plugin in (_installed or {}).values() if plugin.error is None]
    return tuple(dict.fromkeys([*points, *_imported]))


def described() -> tuple[str, ...]:
    """Return the loaded plugins in words: each module, with the package and its version if it is installed.

    A file is named without its folder, which would tell where somebody keeps their files. Nothing is imported.
    """
    packages = {plugin.module: plugin.package for plugin in (_installed or {}).values()}
    return tuple(f"{name} ({packages[name]})" if name in packages else Path(name).name for name in loaded())


def names_in(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the modules that the environment variable `POSTMAX_IMPORT` names, separated by commas.

    Example:
        >>> names_in({"POSTMAX_IMPORT": "my_losses, ./my_models.py"})
        ('my_losses', './my_models.py')
    """
    parts = (part.strip() for part in environment.get(VARIABLE, "").split(","))
    return tuple(part for part in parts if part)


def _load_module(name: str) -> str:
    folder = os.getcwd()  # noqa: PTH109  (sys.path has texts)
    if folder not in sys.path:
        sys.path.append(folder)  # last, so that a file in this folder hides no installed module
        importlib.invalidate_caches()
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise InputError(
                f"cannot import {name!r}: there is no such module, neither installed nor in {folder}."
            ) from error
        raise InputError(f"cannot import {name!r}: {_reason(error)}") from error
    except Exception as error:
        raise InputError(f"cannot import {name!r}: {_reason(error)}") from error
    return name


def _load_file(path: Path) -> str:
    path = path.expanduser().resolve()
    if not path.is_file():
        raise InputError(f"cannot import {path}: there is no such file.")
    name = path.stem
    before = sys.modules.get(name)
    if before is not None:
        if Path(getattr(before, "__file__", None) or "").resolve() == path:
            return str(path)
        raise InputError(f"cannot import {path}: another module is called {name!r} already; rename the file.")
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InputError(f"cannot import {path}: it is not a Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise InputError(f"cannot import {path}: {_reason(error)}") from error
    return str(path)


def _reason(error: BaseException) -> str:
    return str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
