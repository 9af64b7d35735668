"""Draw docs/results/<table>.png again from docs/results/<table>.json, for tables that are shown as a heat map."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

from postmax.report.table.distances import is_large
from postmax.report.table.pictures import save_heat_maps
from postmax.report.table.text import from_json
from postmax.tables.table import Table

RESULTS = Path(__file__).parent.parent / "docs" / "results"


def shipped(name: str) -> Table:
    """Return the table of results in docs/results under its first selection rule."""
    return from_json(json.loads((RESULTS / f"{name}.json").read_text("utf-8"))["tables"][0])


def draw(name: str, folder: Path) -> Path:
    """Draw the heat map of a shipped table into a folder and return the PNG."""
    save_heat_maps(shipped(name), folder / name)
    return folder / f"{name}.png"


if __name__ == "__main__":
    for path in sorted(RESULTS.glob("*.json")):
        if is_large(shipped(path.stem)):
            with tempfile.TemporaryDirectory() as folder:
                shutil.copyfile(draw(path.stem, Path(folder)), path.with_suffix(".png"))
            print(path.with_suffix(".png"))
