"""Frozen embeddings: images and texts as rows of features, computed by networks that others have trained.

`images.py` is the way from images to features, `text_column.py` that from a column of text. The packages that networks
come from have one file each in `networks/` and `text_models/`.
"""
