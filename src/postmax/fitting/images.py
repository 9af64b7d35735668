"""Images as rows of features, for a fit."""

from __future__ import annotations

from dataclasses import replace

import torch

from postmax.data import embed_images, image_embedding
from postmax.data.embedding.image_embedding import ImageEmbedding
from postmax.fitting.source import FitRows
from postmax.progress import Stage, tell


def embedded(rows: FitRows, network: str) -> tuple[FitRows, ImageEmbedding]:
    """Return images as the features of a frozen network. Files are brought to the size that it takes.

    Args:
        rows: Images.
        network: The name of the network; see docs/embedding.md.

    Raises:
        MissingDependency: If the network is not installed.
    """
    dataset, form = rows.dataset, rows.form
    embedding = image_embedding(dataset.inputs, network)
    bad: list[int] = []
    features = embed_images(dataset.inputs, embedding, unreadable=lambda row, _: bad.append(row))
    if bad:
        good = torch.ones(len(dataset), dtype=torch.bool)
        good[bad] = False
        tell(Stage(f"left out, because they cannot be read: {dataset.rows.some(bad)}"))
        names = dataset.rows.of(good.nonzero()[:, 0].tolist())
        dataset, features = replace(dataset.subset(good), rows=names), features[good]
    if dataset.rows.kind == "file":
        form = replace(form, shape=(3, embedding.side, embedding.side), size=embedding.side)
    return replace(rows, dataset=replace(dataset, inputs=features), form=form), embedding
