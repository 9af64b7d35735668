"""Readers of data, which all return a `Dataset`; batches, and augmentation."""

from __future__ import annotations

from postmax.data.arrays import MappedArray, read_npz
from postmax.data.augment import Augment, Draw, standard
from postmax.data.auto_augment import AutoAugment
from postmax.data.batches import Batch, Batches, generator_for
from postmax.data.catalogue import Needed, Request, absent, is_clean, load, names, needed_files, register, splits
from postmax.data.columns import read_columns
from postmax.data.contrast import ContrastAugment
from postmax.data.cutmix import cutmix
from postmax.data.dataset import Dataset, RowSource, Statistics
from postmax.data.embedding.image_embedding import ImageEmbedding, image_embedding
from postmax.data.embedding.images import embed_images
from postmax.data.feature_views import DropAndAddNoise
from postmax.data.files import data_root
from postmax.data.fmix import fmix
from postmax.data.getting import get
from postmax.data.idx import read_idx
from postmax.data.image_files import ImageFiles
from postmax.data.image_folder import read_image_folder
from postmax.data.label_column import LabelColumn, read_labels, write_labels
from postmax.data.mixtures import Mixed
from postmax.data.mixup import mixup
from postmax.data.normalisation import STATISTICS, channel_statistics
from postmax.data.strong import StrongAugment
from postmax.data.table_encoder import TableEncoder
from postmax.data.tables import read_table
from postmax.data.views import Augmentation, Views, views_for

__all__ = [
    "STATISTICS",
    "Augment",
    "Augmentation",
    "AutoAugment",
    "Batch",
    "Batches",
    "ContrastAugment",
    "Dataset",
    "Draw",
    "DropAndAddNoise",
    "ImageEmbedding",
    "ImageFiles",
    "LabelColumn",
    "MappedArray",
    "Mixed",
    "Needed",
    "Request",
    "RowSource",
    "Statistics",
    "StrongAugment",
    "TableEncoder",
    "Views",
    "absent",
    "channel_statistics",
    "cutmix",
    "data_root",
    "embed_images",
    "fmix",
    "generator_for",
    "get",
    "image_embedding",
    "is_clean",
    "load",
    "mixup",
    "names",
    "needed_files",
    "read_columns",
    "read_idx",
    "read_image_folder",
    "read_labels",
    "read_npz",
    "read_table",
    "register",
    "splits",
    "standard",
    "views_for",
    "write_labels",
]
