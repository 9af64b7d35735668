"""Files that a command writes: none of the user's files may be lost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from postmax.errors import InputError


def spare(outputs: Sequence[Path], source: str | Path, force: bool) -> None:
    """Check that no file of the user would be overwritten, and that nothing is put among the images of a folder.

    Args:
        outputs: The files that will be written.
        source: The file or folder that is read, or the name of a data set.
        force: Whether files that exist may be overwritten.

    Raises:
        InputError: If a file would be lost.
    """
    read = source.resolve() if isinstance(source, Path) else None
    if len({path.resolve() for path in outputs}) < len(outputs):
        raise InputError(f"{outputs[0]} would be written twice; give each output a name of its own.")
    for path in outputs:
        if not path.resolve().parent.exists():
            raise InputError(f"{path}: the folder {path.parent} does not exist. Make it first: mkdir -p {path.parent}")
        if path.resolve() == read:
            raise InputError(f"{path} is the input; give another --out.")
        if read in path.resolve().parents:
            raise InputError(f"{path} is in the folder of the images, which is the input; write it elsewhere.")
        if path.exists() and not force:
            raise InputError(f"{path} exists; give another --out, or --force to overwrite it.")
