"""A catalogue whose CIFAR and CIFAR-N are small made-up files in the official layouts."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial

import pytest
from data.official_files import cifar10_files, cifar100_files, write_folder, write_human_labels

from postmax.data import catalogue
from postmax.data.cifar import read_cifar
from postmax.data.cifar_n import read_cifar_n
from postmax.registry import Registry
from postmax.train.prepare import load_also, load_rows


def write_cifar(root):
    """Write CIFAR-10, CIFAR-100 and their human labels, and return their readers by name."""
    readers = {}
    for made in (cifar10_files, cifar100_files):
        files, layout, (_, labels) = made()
        write_folder(root, layout, files)
        readers[layout.name] = partial(read_cifar, layout)
        file = "CIFAR-10_human.pt" if layout.name == "cifar10" else "CIFAR-100_human.pt"
        published = write_human_labels(root / "cifar-n" / file, layout, labels)
        readers |= {name: partial(read_cifar_n, published, name) for name in published.columns}
    return readers


@contextmanager
def registered(readers, shrink):
    """Put readers in the place of the catalogue's; `shrink(read, request)` returns what is used of a split."""
    clean = {name: catalogue.is_clean(name) for name in catalogue.names()}
    augment = {name: catalogue.usual_augmentation(name) for name in catalogue.names()}
    with pytest.MonkeyPatch.context() as patch:
        sources = Registry("data set")
        for name in catalogue.names():
            if name not in readers:
                sources.add(catalogue._SOURCES.get(name), name)
        patch.setattr(catalogue, "_SOURCES", sources)
        for name, read in readers.items():
            splits = ("test",) if name == "ilsvrc12-mini" else ("train", "test")
            catalogue.register(name, partial(shrink, read), splits=splits, clean=clean[name], augment=augment[name])
        for cached in (load_rows, load_also):
            cached.cache_clear()
        yield patch
    for cached in (load_rows, load_also):
        cached.cache_clear()
