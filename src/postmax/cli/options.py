"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Workers = Annotated[
    int | None, typer.Option("--workers", "-w", min=1, show_default="one for each core, or one in all on a GPU")
]
OutFolder = Annotated[Path, typer.Option("--out", "-o", help="The folder for runs and reports.")]
