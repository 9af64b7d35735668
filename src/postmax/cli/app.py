"""All commands."""

from __future__ import annotations

from typing import Annotated

import typer

from postmax.cli.commands import noise
from postmax.cli.commands.doctor import doctor
from postmax.cli.commands.listing import list_
from postmax.cli.commands.reproduce import report, reproduce
from postmax.cli.commands.train import resume, train
from postmax.cli.commands.tune import tune
from postmax.version import __version__

app = typer.Typer(
    help="Good classifiers from wrong labels.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _command in (reproduce, tune, train, resume, report, doctor):
    app.command()(_command)
app.command("list")(list_)
app.add_typer(noise.app, name="noise")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"postmax {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    imports: Annotated[
        list[str] | None,
        typer.Option(
            "--import",
            metavar="MODULE",
            help="Import a module or a .py file that registers losses, models, data sets and more. May be repeated, "
            "and may stand anywhere. The environment variable POSTMAX_IMPORT does the same.",
            show_default=False,
        ),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Good classifiers from wrong labels."""
