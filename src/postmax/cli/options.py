"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON.")]
OutFolder = Annotated[Path, typer.Option("--out", "-o", help="The folder for runs and reports.")]
