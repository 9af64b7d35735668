"""All commands."""

from __future__ import annotations

from typing import Annotated

import typer

from postmax.cli.commands import data, noise
from postmax.cli.commands.audit import audit
from postmax.cli.commands.check import check
from postmax.cli.commands.doctor import doctor
from postmax.cli.commands.export import export
from postmax.cli.commands.fit import fit
from postmax.cli.commands.listing import list_
from postmax.cli.commands.predict import predict
from postmax.cli.commands.reproduce import report, reproduce
from postmax.cli.commands.train import resume, train
from postmax.cli.commands.tune import tune
from postmax.version import __version__

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
# Typer lists commands in this order, but groups such as `noise` last.
for _command in (fit, audit, check, train, resume, predict, export, reproduce, tune, report):
    app.command()(_command)
app.command("list")(list_)
app.command()(doctor)
app.add_typer(noise.app, name="noise")
app.add_typer(data.app, name="data")


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
    """Good classifiers from wrong labels.

    \b
    Your own data:
      postmax fit train.csv --label species              a classifier, the noise, and the doubtful labels
      postmax predict postmax-models/train new.csv       what it says about new rows
      postmax audit train.csv --label species            which labels are wrong, and a corrected file
      postmax check train.csv --label species            what would make a result wrong
      postmax noise estimate train.csv --label species   how many labels are wrong
    The paper and your research:
      postmax reproduce breast-cancer                    a table: our values beside the reported ones
      postmax train digits noise=symmetric:0.4 loss=gce  one run
      postmax list                                       losses, methods, models, data sets and more
    """  # noqa: D301  (\b keeps the lines of the examples)
