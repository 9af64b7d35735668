"""Checkpoints: exact, and never half of one, whatever happens to the process, the disk or the file."""

import errno
import os
import random
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from small_runs import load_previous
from torch import nn

from postmax.errors import DataError
from postmax.runs.checkpoint import (
    NAME,
    PREVIOUS,
    Checkpoint,
    DamagedRun,
    go_back,
    load,
    save,
)
from postmax.train.config import OptimiserConfig
from postmax.train.optimisers import make_optimiser, optimiser_state, restore_optimiser


def tiny(epoch=1):
    return Checkpoint(epoch, {"a": torch.tensor([1.5, -2.0]), "b/c": torch.arange(3)}, {"note": "x", "n": [1, None]})


def same(one, other):
    return (
        one.epoch == other.epoch
        and one.values == other.values
        and one.tensors.keys() == other.tensors.keys()
        and all(
            t.dtype == other.tensors[k].dtype and t.shape == other.tensors[k].shape and torch.equal(t, other.tensors[k])
            for k, t in one.tensors.items()
        )
    )


def litter(folder):
    return sorted(path.name for path in folder.iterdir() if path.name not in (NAME, PREVIOUS))


# Round trips


@pytest.mark.parametrize(
    "tensor",
    [
        torch.tensor([1.5, float("nan"), float("inf"), -0.0]),
        torch.randn(3, 4, dtype=torch.float64),
        torch.randn(5).bfloat16(),
        torch.randn(5).half(),
        torch.tensor([2**62, -1]),
        torch.tensor([True, False]),
        torch.tensor([1, 255], dtype=torch.uint8),
        torch.tensor(3.25),
        torch.tensor(7),
        torch.empty(0),
        torch.empty(0, 3, dtype=torch.int64),
        torch.arange(12.0).view(3, 4).t(),
        torch.arange(24.0).view(1, 2, 3, 4).to(memory_format=torch.channels_last),
        torch.arange(10.0)[::2],
        nn.Parameter(torch.ones(2)),
    ],
    ids=lambda t: f"{t.dtype} {tuple(t.shape)} {t.stride()}",
)
def test_round_trip(tmp_path, tensor):
    save(tmp_path, Checkpoint(3, {"weights": tensor, "other": torch.zeros(1)}, {"seconds": 0.1}))
    found = load(tmp_path)
    assert (found.epoch, found.values) == (3, {"seconds": 0.1})
    loaded = found.tensors["weights"]
    assert (loaded.dtype, loaded.shape) == (tensor.dtype, tensor.shape)
    expected = tensor.detach().contiguous().view(-1).view(torch.uint8) if tensor.numel() else torch.empty(0)
    assert torch.equal(loaded.contiguous().view(-1).view(torch.uint8) if loaded.numel() else torch.empty(0), expected)


def test_values_are_exact(tmp_path):
    values = {"x": 0.1 + 0.2, "tiny": 5e-324, "huge": 2**70, "text": "é\n\"'", "none": None, "list": [[1, 2], {}]}
    save(tmp_path, Checkpoint(0, {}, values))
    assert load(tmp_path).values == values
    assert load(tmp_path).tensors == {}


def test_parts():
    checkpoint = Checkpoint(1, {"a/x": torch.zeros(1), "a/b/y": torch.ones(1), "ab/z": torch.ones(1)})
    assert list(checkpoint.part("a")) == ["x", "b/y"]
    assert checkpoint.part("c") == {}


def test_no_checkpoint_yet(tmp_path):
    assert load(tmp_path) is None
    assert load_previous(tmp_path) is None


def test_the_one_before_is_kept(tmp_path):
    for epoch in (1, 2, 3):
        save(tmp_path, tiny(epoch))
        previous = load_previous(tmp_path)
        assert load(tmp_path).epoch == epoch
        assert (previous.epoch if previous else None) == (epoch - 1 or None)
        assert litter(tmp_path) == []
    # Two files, and not two names of one: damage to one must not reach the other.
    assert (tmp_path / NAME).stat().st_ino != (tmp_path / PREVIOUS).stat().st_ino


def test_going_back(tmp_path):
    with pytest.raises(DamagedRun, match=r"has no checkpoint before the last one\. Start again with execute\("):
        go_back(tmp_path)
    for epoch in (1, 2):
        save(tmp_path, tiny(epoch))
    for _ in range(2):
        go_back(tmp_path)
        assert same(load(tmp_path), tiny(1))
        assert litter(tmp_path) == []
    save(tmp_path, tiny(5))
    assert (load(tmp_path).epoch, load_previous(tmp_path).epoch) == (5, 1)


def test_killed_between_the_two_renames(tmp_path):
    """Then the older name is one of the current file, and giving a file the name it has does nothing."""
    save(tmp_path, tiny(1))
    os.link(tmp_path / NAME, tmp_path / PREVIOUS)
    save(tmp_path, tiny(2))
    assert (load(tmp_path).epoch, load_previous(tmp_path).epoch) == (2, 1)
    assert litter(tmp_path) == []


def test_a_file_system_without_second_names(tmp_path, monkeypatch):
    def link(*_):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    for epoch in (1, 2):
        save(tmp_path, tiny(epoch))
    assert (load(tmp_path).epoch, load_previous(tmp_path).epoch) == (2, 1)


@pytest.mark.parametrize("bias_rate", [1.0, 4.0])
@pytest.mark.parametrize("name", ["sgd", "adam", "adamw"])
def test_optimisers_go_on_as_if_nothing_had_happened(tmp_path, name, bias_rate):
    def made():
        parameters = [nn.Parameter(torch.ones(2, 3)), nn.Parameter(torch.zeros(3))]
        return parameters, make_optimiser(OptimiserConfig(name=name, lr=0.1, bias_rate=bias_rate), parameters)

    def steps(parameters, optimiser, numbers):
        for number in numbers:
            for parameter in parameters:
                parameter.grad = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(number))
            optimiser.step()

    parameters, optimiser = made()
    steps(parameters, optimiser, range(3))
    tensors, values = optimiser_state(optimiser)
    weights = {f"w/{i}": p for i, p in enumerate(parameters)}
    save(tmp_path, Checkpoint(3, {**weights, **{f"o/{k}": t for k, t in tensors.items()}}, {"o": values}))
    steps(parameters, optimiser, range(3, 6))

    found, (others, other) = load(tmp_path), made()
    with torch.no_grad():
        for i, parameter in enumerate(others):
            parameter.copy_(found.part("w")[str(i)])
    restore_optimiser(other, found.part("o"), found.values["o"])
    steps(others, other, range(3, 6))
    assert all(torch.equal(a, b) for a, b in zip(parameters, others, strict=True))


@pytest.mark.parametrize("name", ["sgd", "adam"])
def test_optimisers_of_channels_last_weights_go_on_too(name):
    def made():
        weight = torch.arange(2.0 * 3 * 3 * 3).view(2, 3, 3, 3).to(memory_format=torch.channels_last)
        parameter = nn.Parameter(weight)
        return parameter, make_optimiser(OptimiserConfig(name=name, lr=0.1), [parameter])

    def steps(parameter, optimiser, numbers):
        for number in numbers:
            gradient = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(number))
            parameter.grad = gradient.to(memory_format=torch.channels_last)
            optimiser.step()

    parameter, optimiser = made()
    steps(parameter, optimiser, range(3))
    tensors, values = optimiser_state(optimiser)
    saved, half_way = {name: t.detach().clone().contiguous() for name, t in tensors.items()}, parameter.detach().clone()
    steps(parameter, optimiser, range(3, 6))

    other, fresh = made()
    other.data.copy_(half_way)
    restore_optimiser(fresh, saved, values)
    steps(other, fresh, range(3, 6))
    assert torch.equal(parameter, other)


# Damage


def test_a_checkpoint_of_an_older_version_is_not_called_damaged(tmp_path):
    for name in (NAME, PREVIOUS):
        save_file({"a": torch.zeros(1)}, tmp_path / name, {"format": "postmax checkpoint 1"})
    for read in (load, go_back):
        with pytest.raises(DamagedRun, match="older version of postmax") as caught:
            read(tmp_path)
        assert str(caught.value).endswith("Start again with execute(…, restart=True).")
        assert "damaged" not in str(caught.value)


def test_every_flipped_byte_is_noticed(tmp_path):
    save(tmp_path, tiny(1))
    save(tmp_path, tiny(2))
    content, harmless = (tmp_path / NAME).read_bytes(), []
    assert len(content) < 1000
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << place % 8
        (tmp_path / NAME).write_bytes(damaged)
        message = None
        try:
            found = load(tmp_path)
        except DataError as error:
            message = str(error)
        if message is None:
            assert same(found, tiny(2))
            harmless.append(place)
        else:
            assert NAME in message
            assert "The checkpoint before it is kept: continue from there with execute(…, previous=True)." in message
    assert len(harmless) < 20  # the padding of the header means nothing
    assert same(load_previous(tmp_path), tiny(1))


def test_every_truncation_is_noticed(tmp_path):
    save(tmp_path, tiny())
    content = (tmp_path / NAME).read_bytes()
    for length in range(len(content)):
        (tmp_path / NAME).write_bytes(content[:length])
        with pytest.raises(DataError, match=r"is damaged .* Start again with execute\(…, restart=True\)"):
            load(tmp_path)
    (tmp_path / NAME).write_bytes(content + b"x")
    with pytest.raises(DataError):
        load(tmp_path)


@pytest.mark.parametrize("size", [1, 8, 200_000])
def test_zeros_where_the_disk_lost_a_block(tmp_path, size):
    save(tmp_path, Checkpoint(1, {"a": torch.randn(100_000)}))
    content = bytearray((tmp_path / NAME).read_bytes())
    content[200_000 : 200_000 + size] = bytes(size)
    (tmp_path / NAME).write_bytes(content)
    with pytest.raises(DataError, match="its checksum is wrong"):
        load(tmp_path)


@pytest.mark.parametrize("content", [b"", b"\x00" * 100, b"PK\x03\x04", b"\xff" * 64, b"{}" * 500])
def test_files_that_are_no_checkpoint(tmp_path, content):
    (tmp_path / NAME).write_bytes(content)
    with pytest.raises(DataError, match="is damaged"):
        load(tmp_path)


def test_another_safetensors_file(tmp_path):
    save_file({"a": torch.zeros(1)}, tmp_path / NAME)
    with pytest.raises(DataError, match="it is not a 'postmax checkpoint 2'"):
        load(tmp_path)


def test_damage_to_the_older_one(tmp_path):
    save(tmp_path, tiny(1))
    save(tmp_path, tiny(2))
    (tmp_path / PREVIOUS).write_bytes(b"nothing")
    assert load(tmp_path).epoch == 2
    before = (tmp_path / NAME).read_bytes()
    with pytest.raises(DamagedRun, match=r"Start again with execute\(…, restart=True\)"):
        go_back(tmp_path)
    assert (tmp_path / NAME).read_bytes() == before


# Kill −9


def test_killed_while_writing(tmp_path, forks):
    """A process does nothing but write checkpoints; wherever it is killed, a whole one is there."""
    chance, epoch, grown, torn = random.Random(0), 0, 0, 0
    save(
        tmp_path,
        Checkpoint(0, {"a": torch.zeros(20_000), "b": torch.zeros(3, 7, dtype=torch.int64)}, {"epoch_again": 0}),
    )
    for _ in range(40):
        _, code = forks.stop(chance.uniform(0.002, 0.05), "save", folder=str(tmp_path), first=epoch + 1)
        assert code == -signal.SIGKILL
        found = load(tmp_path)
        assert found.epoch >= epoch
        for tensor in found.tensors.values():
            assert (tensor == found.epoch).all()
        assert found.values == {"epoch_again": found.epoch}
        previous = load_previous(tmp_path)
        assert previous is None or found.epoch - 1 <= previous.epoch <= found.epoch
        grown += found.epoch > epoch
        epoch = found.epoch
        left = litter(tmp_path)
        torn += bool(left)
        assert all(name.startswith((f".{NAME}.", f".{PREVIOUS}.")) for name in left)
        for name in left:
            (tmp_path / name).unlink()
    assert grown >= 10
    assert torn >= 3  # some were killed in the middle of a write


# Disks


def test_a_file_that_may_not_grow(tmp_path, forks):
    job = {"folder": str(tmp_path), "epoch": 1, "numbers": 1000}
    assert forks.run("limited", inner="save once", bytes_a_file=10_000, **job) == ("done", 0)
    job = {"folder": str(tmp_path), "epoch": 2, "numbers": 50_000}
    said, code = forks.run("limited", inner="save once", bytes_a_file=10_000, **job)
    assert code == 1
    assert said == f"DataError: {tmp_path / NAME} could not be written: File too large."
    assert load(tmp_path).epoch == 1
    assert litter(tmp_path) == []


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 256 kB, where mounting one is allowed."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount, umount = shutil.which("mount"), shutil.which("umount")
    command = [str(mount), "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    if mount is None or umount is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system is not permitted here")
    yield folder
    subprocess.run([umount, str(folder)], check=True)


def test_a_full_disk(small_disk):
    save(small_disk, Checkpoint(1, {"a": torch.ones(10_000)}))
    for _ in range(3):
        with pytest.raises(DataError, match=f"{NAME} could not be written: No space left on device"):
            save(small_disk, Checkpoint(2, {"a": torch.ones(100_000)}))
        assert load(small_disk).epoch == 1
        assert litter(small_disk) == []
    save(small_disk, Checkpoint(2, {"a": torch.ones(10_000)}))
    assert (load(small_disk).epoch, load_previous(small_disk).epoch) == (2, 1)


def test_a_disk_that_is_full_only_when_the_file_reaches_it(tmp_path, monkeypatch):
    save(tmp_path, tiny(1))

    def fsync(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        with pytest.raises(DataError, match="No space left on device"):
            save(tmp_path, tiny(2))
    assert same(load(tmp_path), tiny(1))
    assert litter(tmp_path) == []


def test_a_failed_write_leaves_the_older_one_too(tmp_path, monkeypatch):
    save(tmp_path, tiny(1))
    save(tmp_path, tiny(2))

    def fsync(_):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        with pytest.raises(DataError):
            save(tmp_path, tiny(3))
    assert load(tmp_path).epoch == 2
    assert load_previous(tmp_path).epoch == 1


def test_a_folder_that_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="could not be written: Not a directory"):
        save(tmp_path / "file", tiny())


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
def test_a_folder_that_may_not_be_written(tmp_path, monkeypatch, number):
    save(tmp_path, tiny(1))
    before = (tmp_path / NAME).read_bytes()
    plain = os.open

    def refusing(path, flags, *arguments, **options):
        if flags & (os.O_CREAT | os.O_WRONLY | os.O_RDWR):
            raise OSError(number, os.strerror(number))
        return plain(path, flags, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refusing)
        with pytest.raises(DataError, match=f"{NAME} could not be written: {os.strerror(number)}"):
            save(tmp_path, tiny(2))
    assert (tmp_path / NAME).read_bytes() == before
    assert litter(tmp_path) == []


@pytest.fixture
def read_only_disk(small_disk):
    save(small_disk, tiny(1))
    subprocess.run([str(shutil.which("mount")), "-o", "remount,ro", str(small_disk)], check=True)
    return small_disk


def test_a_disk_that_is_read_only(read_only_disk: Path):
    with pytest.raises(DataError, match="could not be written: Read-only file system"):
        save(read_only_disk, tiny(2))
    assert same(load(read_only_disk), tiny(1))
