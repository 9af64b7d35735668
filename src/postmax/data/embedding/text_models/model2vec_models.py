"""Static embeddings of model2vec: the mean of word vectors, thousands of texts in a second."""

from __future__ import annotations

from functools import partial

from postmax.data.embedding.catalogue import TEXT_MODELS
from postmax.data.embedding.source import Source
from postmax.data.embedding.text_model import TextModel
from postmax.extras import need


def model2vec_model(name: str) -> TextModel:
    """Return a model of model2vec: the name of one on the Hugging Face hub, or a folder.

    Raises:
        MissingDependency: If model2vec is not installed.
    """
    # Without force_download=False every use would ask the hub, also when the model is there.
    model = need("model2vec", "text").StaticModel.from_pretrained(name, force_download=False)
    return TextModel(f"model2vec:{name}", partial(model.encode, show_progress_bar=False))


TEXT_MODELS.add(Source(model2vec_model, ("model2vec",), example="minishlab/potion-base-8M"), "model2vec", order=1)
