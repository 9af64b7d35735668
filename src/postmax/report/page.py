"""Write a page: one HTML file that needs no other file, no network and no script."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

from postmax.duration import in_words
from postmax.errors import DataError
from postmax.extras import need
from postmax.files import atomic_write


def make_folder(folder: Path) -> None:
    """Make the folder of a page and its plots, if it does not exist.

    Raises:
        DataError: If it cannot be made.
    """
    need("jinja2", "report")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{folder} could not be made: {error.strerror or error}.") from error


def write_page(template: str, folder: Path, **values: Any) -> Path:
    """Write report.html into a folder. The same values give the same bytes.

    All values are escaped, except the style sheet and the pictures, which postmax makes itself.

    Args:
        template: The name of a file in the folder `templates`.
        folder: An existing folder.
        values: What the template shows.

    Returns:
        The path of the page.

    Raises:
        DataError: If the page cannot be written.
    """
    jinja = need("jinja2", "report")
    files = resources.files("postmax.report").joinpath("templates")
    environment = jinja.Environment(
        loader=jinja.FunctionLoader(lambda name: files.joinpath(name).read_text("utf-8")),
        autoescape=True,
        undefined=jinja.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals["duration"] = in_words
    css = files.joinpath("page.css").read_text("utf-8")
    text = environment.get_template(template).render(css=css, **values)
    path = folder / "report.html"
    with atomic_write(path) as file:
        # A name may hold half of a surrogate pair, which UTF-8 cannot encode.
        file.write(text.encode("utf-8", errors="replace"))
    return path
