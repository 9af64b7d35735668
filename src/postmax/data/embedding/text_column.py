"""A column of free text in a data table: its features are the embeddings of the texts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from postmax.data.cells import texts_of
from postmax.data.embedding.catalogue import TEXT_MODELS, opened_text_model, usual_text_model
from postmax.data.embedding.probe import check_probe, probe_of
from postmax.data.embedding.text_model import Features, TextModel
from postmax.data.embedding.texts import embed_texts, example_of
from postmax.data.number_text import Decimal
from postmax.data.problems import Problems
from postmax.errors import InputError
from postmax.registry import unknown_name
from postmax.row_names import RowNames

REFUSE, EMBED = "refuse", "embed"
_WORDS_OF_FREE_TEXT = 3


@dataclass(frozen=True)
class TextColumn:
    """A column of free text. It has the features that a frozen model for texts gives.

    Attributes:
        name: The name of the column.
        model: The name of the model, such as `model2vec:minishlab/potion-base-8M`.
        dims: How many features a text has. A missing text has the features 0.
        probe: Some features of a fixed sentence. With them a model with other weights is noticed.
    """

    name: str
    model: str
    dims: int
    probe: tuple[float, ...] = ()

    @classmethod
    def of(cls, name: str, model: str) -> TextColumn:
        """Return a column with the texts of this name, embedded by this model; "embed" for the usual model.

        Raises:
            InputError: If there is no such model, or if it cannot be loaded.
            MissingDependency: If its package is not installed.
        """
        found = _loaded(usual_text_model() if model == EMBED else model)
        example = example_of(found)
        return cls(name, found.name, len(example), probe_of(example))

    @property
    def features(self) -> list[str]:
        """The names of the features of this column."""
        return [f"{self.name}[{i}]" for i in range(self.dims)]

    def encode(
        self,
        values: npt.NDArray[Any],
        decimal: Decimal,  # noqa: ARG002  (as for numbers)
        rows: RowNames,  # noqa: ARG002  (as for numbers)
        problems: Problems,
        unknown: str = "error",  # noqa: ARG002  (as for categories)
    ) -> Features:
        """Return the features (N, dims). If the model cannot be used, that is noted."""
        try:
            return embed_texts(texts_of(values), _checked(self), self.dims, f"column {self.name!r}")
        except InputError as error:
            problems.add(f"column {self.name!r} is free text, embedded by {self.model}: {error}")
            return np.zeros((len(values), self.dims), np.float32)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> TextColumn:
        """Return the column with these attributes. Nothing is loaded yet."""
        return cls(content["name"], content["model"], content["dims"], tuple(content["probe"]))


def is_free_text(texts: Collection[str]) -> bool:
    """Return whether texts have several words on average.

    Example:
        >>> is_free_text(["a good film", "not worth the money"]), is_free_text(["Ann", "Bob Ray"])
        (True, False)
    """
    counts = [len(text.split()) for text in texts if text]
    return bool(counts) and sum(counts) >= _WORDS_OF_FREE_TEXT * len(counts)


def check_text(text: str) -> None:
    """Check a word that says what to do with free text: "refuse", "embed", or the name of a model.

    Raises:
        UnknownNameError: If it is something else.
    """
    if text not in (REFUSE, EMBED) and text.partition(":")[0] not in TEXT_MODELS:
        raise unknown_name("way to read text", text, [REFUSE, EMBED, *TEXT_MODELS.names()])


@lru_cache(maxsize=2)
def _loaded(model: str) -> TextModel:
    return opened_text_model(model)


@lru_cache(maxsize=16)
def _checked(column: TextColumn) -> TextModel:
    model = _loaded(column.model)
    if column.probe:
        check_probe(column.model, column.probe, probe_of(example_of(model)))
    return model
