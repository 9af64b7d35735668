"""`postmax list`: its options and help text."""

from __future__ import annotations

from typing import Annotated

import typer

from postmax.cli.options import JsonFlag
from postmax.cli.stopping import starting

KINDS = ("tables", "losses", "methods", "models", "datasets", "noise", "divergences", "estimators", "plugins")


def list_(
    kind: Annotated[str | None, typer.Argument(metavar="[KIND]", help=", ".join(KINDS), show_default=False)] = None,
    as_json: JsonFlag = False,
) -> None:
    """List what can be chosen.

    \b
    postmax list
    postmax list tables
    postmax list divergences --json
    """  # noqa: D301  (\b keeps the lines of the examples)
    with starting():
        from postmax.cli.listing import list_names

    list_names(kind, as_json=as_json)
