"""The image networks of open_clip, which downloads their weights at first use."""

from __future__ import annotations

from torch import Tensor, nn

from postmax.data.embedding.catalogue import NETWORKS
from postmax.data.embedding.extractor import Extractor
from postmax.data.embedding.source import Source
from postmax.errors import InputError
from postmax.extras import need

_HUB = "hf-hub:"


class EncodedImages(nn.Module):
    """The half of a CLIP model that looks at images."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> Tensor:
        """Return the embeddings of images."""
        found: Tensor = self.model.encode_image(images)  # type: ignore[operator]
        return found


def open_clip_network(name: str) -> Extractor:
    """Return the image half of a model of open_clip, named with its weights: `ViT-B-32@laion2b_s34b_b79k`.

    Raises:
        InputError: If the weights are not named: open_clip would take random ones.
        MissingDependency: If open_clip is not installed.
    """
    clip = need("open_clip", package="open_clip_torch")
    architecture, _, weights = name.partition("@")
    if not weights and not architecture.startswith(_HUB):
        known = ", ".join(clip.list_pretrained_tags_by_model(architecture)) or "none"
        raise InputError(f"open_clip:{name} does not name its weights: open_clip:{name}@WEIGHTS. There are: {known}.")
    model, _, _ = clip.create_model_and_transforms(architecture, pretrained=weights or None)
    preparation = clip.get_model_preprocess_cfg(model)
    size = preparation["size"]
    return Extractor(
        name=f"open_clip:{name}",
        network=EncodedImages(model),
        mean=tuple(255 * value for value in preparation["mean"]),
        std=tuple(255 * value for value in preparation["std"]),
        side=size if isinstance(size, int) else min(size),
    )


NETWORKS.add(Source(open_clip_network, ("open_clip",), example="ViT-B-32@laion2b_s34b_b79k"), "open_clip", order=3)
