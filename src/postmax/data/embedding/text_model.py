"""A frozen model that turns texts into features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from postmax.errors import InputError

Features: TypeAlias = npt.NDArray[np.float32]


@dataclass(frozen=True)
class TextModel:
    """A frozen model for texts.

    Attributes:
        name: Its name, such as `model2vec:minishlab/potion-base-8M`.
        encode: From texts to their embeddings, (N, d).
    """

    name: str
    encode: Callable[[list[str]], Any]

    def __call__(self, texts: Sequence[str]) -> Features:
        """Return the embeddings of texts, float32 (N, d)."""
        found = np.asarray(self.encode(list(texts)), dtype=np.float32)
        if found.ndim != 2 or len(found) != len(texts):
            raise InputError(f"{self.name} gives {found.shape} for {len(texts)} texts, not one row for each.")
        return found
