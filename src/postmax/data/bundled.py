"""The small data sets that come with scikit-learn: breast cancer and digits."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import torch

from postmax.data.catalogue import Request, register
from postmax.data.dataset import Dataset
from postmax.data.splitting import stratified_mask
from postmax.errors import DataError
from postmax.extras import need

_TEST_SHARE = 0.2


def read_bundled(name: str, loader: str, shape: tuple[int, int], request: Request) -> Dataset:
    """Return a data set of scikit-learn.

    These data sets have no official split. `"all"` is all rows; `"train"` and `"test"` are a fixed stratified split of
    80 % and 20 %.
    """
    table = getattr(need("sklearn.datasets", "data"), loader)()
    if table.data.shape != shape:
        raise DataError(f"scikit-learn's {loader}() has shape {table.data.shape}, not the {shape} of {name}.")
    dataset = Dataset(
        name=name,
        inputs=torch.from_numpy(table.data.astype(np.float32)),
        labels=torch.from_numpy(table.target.astype(np.int64)),
        classes=tuple(str(c) for c in table.target_names),
    )
    if request.split == "all":
        return dataset
    test = stratified_mask(dataset.labels, _TEST_SHARE)
    rows = test if request.split == "test" else ~test
    return replace(dataset.subset(rows.nonzero()[:, 0]), name=name)


_SPLITS = ("all", "train", "test")
register("breast-cancer", partial(read_bundled, "breast-cancer", "load_breast_cancer", (569, 30)), splits=_SPLITS)
register("digits", partial(read_bundled, "digits", "load_digits", (1797, 64)), splits=_SPLITS)
