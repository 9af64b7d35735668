"""Small files in the official layouts of CIFAR and CIFAR-N, for the tests of their readers."""

import hashlib
import io
import pickle
import struct
import tarfile
import zipfile
from dataclasses import replace

import numpy as np

from postmax.data.cifar import CIFAR10, CIFAR100
from postmax.data.cifar_n import CIFAR10N, CIFAR100N
from postmax.data.download import RemoteFile

ROWS = {"train": 100, "test": 100}


def _string(value):
    if len(value) < 256:
        return b"U" + bytes([len(value)]) + value
    return b"T" + struct.pack("<i", len(value)) + value


def _integer(value):
    return b"J" + struct.pack("<i", value)


def python2_pickle(content):
    """A dictionary of strings, lists and uint8 matrices, pickled as Python 2 did it (protocol 2, strings as bytes)."""
    out = [b"\x80\x02}("]
    for key, value in content.items():
        out.append(_string(key))
        if isinstance(value, np.ndarray):
            shape = b"".join(map(_integer, value.shape))
            out.append(
                b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
                b"(K\x01(" + shape + b"tcnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNN"
                b"J\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89" + _string(value.tobytes()) + b"tb"
            )
        elif isinstance(value, list):
            out.append(b"](" + b"".join(_string(v) if isinstance(v, bytes) else _integer(v) for v in value) + b"e")
        else:
            out.append(_string(value))
    return b"".join(out) + b"u."


def _rows(classes, rows, seed):
    generator = np.random.default_rng(seed)
    labels = generator.permutation(np.arange(rows) % classes)
    return generator.integers(0, 256, (rows, 3072)).astype(np.uint8), labels


def cifar10_files():
    """Name → bytes, and the layout that describes them."""
    (x, y), (tx, ty) = _rows(10, 100, 0), _rows(10, 100, 1)
    files = {"batches.meta": python2_pickle({b"label_names": [n.encode() for n in CIFAR10.classes]})}
    for i in range(5):
        part = slice(20 * i, 20 * (i + 1))
        files[f"data_batch_{i + 1}"] = python2_pickle(
            {
                b"batch_label": b"training batch",
                b"labels": y[part].tolist(),
                b"data": x[part],
                b"filenames": [b"a.png"] * 20,
            }
        )
    files["test_batch"] = pickle.dumps({b"labels": ty.tolist(), b"data": tx}, protocol=2)
    digests = {
        "train": hashlib.sha256(x.tobytes() + y.astype(np.uint8).tobytes()).hexdigest(),
        "test": hashlib.sha256(tx.tobytes() + ty.astype(np.uint8).tobytes()).hexdigest(),
    }
    return files, replace(CIFAR10, rows=ROWS, digests=digests), (x, y)


def cifar100_files():
    files = {"meta": python2_pickle({b"fine_label_names": [n.encode() for n in CIFAR100.classes]})}
    for seed, name in enumerate(("train", "test")):
        x, y = _rows(100, 100, seed)
        coarse = [CIFAR100.superclasses[label] for label in y]
        files[name] = python2_pickle({b"fine_labels": y.tolist(), b"coarse_labels": coarse, b"data": x})
    return files, replace(CIFAR100, rows=ROWS), _rows(100, 100, 0)


def write_folder(root, layout, files):
    folder = root / layout.folder
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def write_archive(root, layout, files):
    """The tar.gz, and the layout with its checksum."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(f"{layout.folder}/{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    path = root / layout.archive.name
    path.write_bytes(buffer.getvalue())
    return path, replace(layout, archive=RemoteFile(layout.archive.url, hashlib.md5(buffer.getvalue()).hexdigest()))


def human_labels_bytes(content, *, member="archive/data.pkl", compression=zipfile.ZIP_STORED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        archive.writestr(member, content if isinstance(content, bytes) else pickle.dumps(content, protocol=2))
        archive.writestr(member.rpartition("/")[0] + "/version", "3\n")
    return buffer.getvalue()


def write_human_labels(path, layout, clean, data=None):
    """A `.pt` file as published, and what describes it."""
    published = CIFAR10N if layout.name == "cifar10" else CIFAR100N
    clean = np.asarray(clean, dtype=np.int64)
    if data is None:
        noisy = {column: (clean + i) % len(layout.classes) for i, column in enumerate(published.columns.values(), 1)}
        data = human_labels_bytes({"clean_label": clean, **noisy})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return replace(published, images=layout, sha256=hashlib.sha256(data).hexdigest())
