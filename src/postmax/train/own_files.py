"""The files of their own that users name in a configuration: absolute paths, and the SHA-256 of their content."""

from __future__ import annotations

import hashlib
from pathlib import Path

from postmax.data.own import fingerprint, idx_labels, names_label_file
from postmax.errors import DataError
from postmax.files import existing_file
from postmax.train.config import RunConfig
from postmax.transition.spec import is_matrix_file


def resolve(config: RunConfig) -> RunConfig:
    """Return the configuration with absolute paths and the SHA-256 of all files it names.

    A file with other content therefore belongs to another run.

    Raises:
        DataError: If a file is missing, or has changed since the configuration was resolved.
    """
    config = _with_files(config)
    files = [file for file in _files(config) if file is not None]
    if not files:
        return config
    digest = hashlib.sha256("+".join(map(fingerprint, files)).encode()).hexdigest()
    if config.data.sha256 is not None and digest != config.data.sha256:
        raise DataError(
            f"{' or '.join(files)} has changed since this run was configured (SHA-256 {digest[:12]}… instead of "
            f"{config.data.sha256[:12]}…). Restore it, or start a new run."
        )
    return config.model_copy(update={"data": config.data.model_copy(update={"sha256": digest})})


def _files(config: RunConfig) -> list[str | None]:
    """Return every file of the user that the run depends on."""
    data = config.data
    labels = [data.labels, data.test_labels] if data.path is not None and names_label_file(data.path) else []
    matrices = [name for name in (config.noise, config.transition) if is_matrix_file(name)]
    return [data.path, data.test_path, *labels, *matrices]


def _with_files(config: RunConfig) -> RunConfig:
    """Return the configuration with absolute paths. Label files that lie beside IDX images are written out too."""
    data = config.data
    changes: dict[str, str | None] = {name: _absolute(getattr(data, name)) for name in ("path", "test_path")}
    if data.path is not None and names_label_file(data.path):
        changes["labels"] = str(idx_labels(Path(changes["path"] or ""), _absolute(data.labels)))
        if data.test_path is not None:
            changes["test_labels"] = str(idx_labels(Path(changes["test_path"] or ""), _absolute(data.test_labels)))
    update: dict[str, object] = {"data": data.model_copy(update=changes)}
    for name in ("noise", "transition"):
        if is_matrix_file(getattr(config, name)):
            update[name] = _absolute(getattr(config, name))
    return config.model_copy(update=update)


def _absolute(path: str | None) -> str | None:
    if path is None:
        return None
    given = Path(path).expanduser()
    # It is checked before links are followed, so that the error names what the user gave.
    return str((given if given.is_dir() else existing_file(given)).resolve())
