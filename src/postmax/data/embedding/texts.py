"""Texts to features, through a frozen model: each text once, kept on the disk."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from postmax.data.embedding.feature_cache import FeatureCache, cache_folder
from postmax.data.embedding.text_model import Features, TextModel
from postmax.progress import Stage, never_silent, tell

_TEXTS_OF_A_BLOCK = 512
_EXAMPLE = "The quick brown fox jumps over the lazy dog, and 13 other animals look on."


def embed_texts(texts: Sequence[str], model: TextModel, dims: int, what: str = "texts") -> Features:
    """Return the embeddings of texts, float32 (N, dims). Those that were computed before are read from the disk.

    Args:
        texts: The texts. An empty one has the embedding 0.
        model: The model.
        dims: How many features it gives.
        what: What the texts are, for the progress, such as "column 'review'".
    """
    places: dict[bytes, list[int]] = {}
    for row, text in enumerate(texts):
        if text:
            places.setdefault(hashlib.sha256(text.encode(errors="surrogatepass")).digest(), []).append(row)
    features = np.zeros((len(texts), dims), np.float32)
    if not places:
        return features
    cache = FeatureCache(cache_folder(model.name, example_of(model).round(2).tolist()), dims)
    for key, values in cache.news(places):
        if key in places:
            features[places.pop(key)] = values
    left, done = list(places), 0
    with never_silent():
        for start in range(0, len(left), _TEXTS_OF_A_BLOCK):
            keys = left[start : start + _TEXTS_OF_A_BLOCK]
            found = model([texts[places[key][0]] for key in keys])
            cache.keep(keys, found)
            for key, values in zip(keys, found, strict=True):
                features[places[key]] = values
            done += len(keys)
            tell(Stage(f"embedding {what}", done, len(left), "texts"))
    return features


def example_of(model: TextModel) -> Features:
    """Return the embedding of a sentence that is always the same, (d,)."""
    first: Features = model([_EXAMPLE])[0]
    return first
