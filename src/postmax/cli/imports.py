"""The plugins of the command line: `--import MODULE`, `POSTMAX_IMPORT` and installed packages."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence

from postmax import plugins
from postmax.errors import InputError

OPTION = "--import"
_HELP = {"-h", "--help", "--version"}


def load_plugins(arguments: Sequence[str]) -> list[str]:
    """Load all plugins before a command runs, and return the arguments without `--import MODULE`.

    A help text loads none.

    A broken installed plugin is a line on standard error. A module that the user named must work.

    Raises:
        InputError: If a module that the user named cannot be imported.
    """
    rest, names = split_imports(arguments)
    if not rest or _HELP & set(rest):
        return rest  # a help text needs no plugin, and some plugins take seconds to import
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", plugins.PluginWarning)
        plugins.load_entry_points()
    for warning in caught:
        print(f"postmax: warning: {warning.message}", file=sys.stderr)
    plugins.load([*plugins.names_in(os.environ), *names])
    return rest


def split_imports(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the arguments without `--import MODULE`, and the modules. Nothing is changed after `--`.

    Raises:
        InputError: If the last argument is `--import`.

    Example:
        >>> split_imports(["train", "--import", "my_losses", "digits", "--import=my_models", "loss=mine"])
        (['train', 'digits', 'loss=mine'], ['my_losses', 'my_models'])
    """
    rest: list[str] = []
    names: list[str] = []
    waiting = iter(arguments)
    for argument in waiting:
        if argument == "--":
            return [*rest, argument, *waiting], names
        if argument == OPTION:
            name = next(waiting, None)
            if name is None:
                raise InputError("--import needs the name of a module or the path of a .py file.")
            names.append(name)
        elif argument.startswith(f"{OPTION}="):
            names.append(argument.partition("=")[2])
        else:
            rest.append(argument)
    return rest, names
