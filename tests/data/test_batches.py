"""Batches: every row once, a function of seed and epoch, the same streamed as in memory, and no thread left over."""

import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import torch

from postmax.data.augment import Augment
from postmax.data.batches import Batches, generator_for
from postmax.data.dataset import Dataset
from postmax.data.prefetch import read_ahead
from postmax.errors import DataError, InputError


class Streamed:
    """Rows that are not a tensor, read slowly and unevenly if asked to."""

    def __init__(self, rows, delay=lambda index: 0.0):
        self.rows, self.delay = rows, delay

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        time.sleep(self.delay(index))
        return self.rows[index]


def toy(count=23, streamed=None):
    generator = torch.Generator().manual_seed(5)
    images = torch.randint(256, (count, 3, 8, 8), generator=generator).to(torch.uint8)
    labels = torch.randint(4, (count,), generator=generator)
    inputs = images if streamed is None else Streamed(images, streamed)
    return Dataset("toy", inputs, labels, ("a", "b", "c", "d"))


def order_of(batches, epoch):
    return torch.cat([batch.rows for batch in batches.epoch(epoch)])


def readers():
    return [thread for thread in threading.enumerate() if thread.name.startswith("postmax-reader")]


def same(batch, other):
    pairs = zip((*batch[:3], *batch.views), (*other[:3], *other.views), strict=True)
    return all(torch.equal(mine, its) for mine, its in pairs)


@pytest.mark.parametrize("streamed", [None, lambda index: 0.0], ids=["in memory", "streamed"])
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize(("drop_last", "sizes"), [(False, [5, 5, 5, 5, 3]), (True, [5, 5, 5, 5])])
def test_every_row_comes_once_with_its_label_and_index(streamed, shuffle, drop_last, sizes):
    images, dataset = toy().inputs, toy(streamed=streamed)
    batches = Batches(dataset, 5, shuffle=shuffle, drop_last=drop_last)
    seen = list(batches.epoch(3))
    assert [len(batch.rows) for batch in seen] == sizes
    assert len(batches) == len(sizes)
    for inputs, labels, index, views in seen:
        assert len(views) == 1
        assert views[0] is inputs
        assert torch.equal(inputs, images[index])
        assert torch.equal(labels, dataset.labels[index])
    order = order_of(batches, 3).tolist()
    assert len(set(order)) == sum(sizes)
    assert (order == list(range(sum(sizes)))) == (not shuffle)


def test_an_epoch_depends_on_seed_and_number_alone():
    augment = Augment(padding=2, cutout=3)
    batches = Batches(toy(), 5, augment=augment, seed=3)
    wanted = list(batches.epoch(4))
    list(batches.epoch(0))
    torch.manual_seed(99)
    assert all(map(same, wanted, Batches(toy(), 5, augment=augment, seed=3).epoch(4)))
    assert all(map(same, wanted, batches.epoch(4)))
    interleaved = zip(batches.epoch(4), batches.epoch(5), strict=True)
    assert all(same(mine, its) for mine, (its, _) in zip(wanted, interleaved, strict=True))


def test_epochs_and_seeds_differ_and_never_add_up():
    orders = {(seed, epoch): order_of(Batches(toy(), 5, seed=seed), epoch) for seed in range(6) for epoch in range(6)}
    assert len({tuple(order.tolist()) for order in orders.values()}) == 36


def test_augmentation_differs_between_epochs_that_have_the_same_order():
    batches = Batches(toy(), 23, augment=Augment(padding=2), shuffle=False)
    (first,), (second,) = batches.epoch(0), batches.epoch(1)
    assert torch.equal(first.rows, second.rows)
    assert not torch.equal(first.inputs, second.inputs)


ONE_EPOCH = """
import hashlib, torch
from postmax.data.augment import Augment
from postmax.data.batches import Batches
from postmax.data.dataset import Dataset
images = (torch.arange(50 * 3 * 8 * 8) % 251).to(torch.uint8).view(50, 3, 8, 8)
dataset = Dataset("toy", images, torch.arange(50) % 4, ("a", "b", "c", "d"))
order, pixels = hashlib.sha256(), hashlib.sha256()
for inputs, _, index, _ in Batches(dataset, 7, augment=Augment(cutout=2), seed=2**70 + 1).epoch(12):
    order.update(index.numpy().tobytes())
    pixels.update((inputs * 255).round().to(torch.uint8).numpy().tobytes())
print(order.hexdigest()[:16], pixels.hexdigest()[:16])
"""


def test_another_process_gets_the_epoch_written_down_here():
    """Orders are part of published results, so a change of torch or of this code must not go unnoticed."""
    shown = subprocess.run([sys.executable, "-c", ONE_EPOCH], capture_output=True, text=True, check=True).stdout
    assert shown.split() == ["5c7fc0ef30af1b05", "9c633c939643071f"]


def test_plain_iteration_goes_from_epoch_to_epoch_and_can_be_set():
    batches = Batches(toy(), 23, seed=1)
    run = [next(iter(batches)).rows for _ in range(3)]
    assert all(torch.equal(index, order_of(batches, number)) for number, index in enumerate(run))
    batches.next_epoch = 1
    assert torch.equal(next(iter(batches)).rows, run[1])


def test_order_is_uniform():
    """Every row is equally often in every place: 4 rows, 4 places, 2000 epochs."""
    batches = Batches(toy(4), 4)
    seen = torch.zeros(4, 4)
    for epoch in range(2000):
        seen[torch.arange(4), order_of(batches, epoch)] += 1
    assert float(((seen - 500) ** 2 / 500).sum()) < 27.9  # chi-square with 9 degrees of freedom, p = 0.001


@pytest.mark.parametrize(
    "delay", [lambda index: 0.0, lambda index: 0.02 * (int(index[0]) % 3 == 0)], ids=["fast", "uneven"]
)
def test_streaming_gives_the_same_batches_bit_for_bit(delay):
    augment = Augment(padding=2, cutout=3)
    in_memory, streamed = (Batches(toy(streamed=s), 4, augment=augment, seed=8) for s in (None, delay))
    for epoch in (0, 5):
        assert all(same(*pair) for pair in zip(in_memory.epoch(epoch), streamed.epoch(epoch), strict=True))


def test_a_memory_mapped_tensor_is_read_where_it_lies(tmp_path):
    dataset = toy()
    np.save(tmp_path / "images.npy", dataset.inputs.numpy())
    mapped = torch.from_numpy(np.load(tmp_path / "images.npy", mmap_mode="r+"))
    batches = Batches(Dataset("mapped", mapped, dataset.labels, dataset.classes), 4)
    assert batches._inputs.data_ptr() == mapped.data_ptr()
    assert all(map(same, Batches(dataset, 4).epoch(0), batches.epoch(0)))


def test_features_and_other_augmentations():
    features = Dataset("table", torch.randn(6, 2), torch.zeros(6, dtype=torch.int64), ("only",))
    assert all(torch.equal(b.inputs, features.inputs[b.rows]) for b in Batches(features, 4, augment=Augment()))
    weak = Augment(padding=2)
    views = Batches(toy(), 23, augment=lambda x, g: torch.stack([weak(x, g), weak(x, g)], dim=1))
    (batch,) = views.epoch(0)
    assert batch.inputs.shape == (23, 2, 3, 8, 8)
    assert not torch.equal(batch.inputs[:, 0], batch.inputs[:, 1])


def test_readers_run_ahead_but_not_far():
    started = []
    values = read_ahead(lambda key: started.append(key) or key, range(100), ahead=4)
    assert next(values) == 0
    time.sleep(0.05)
    assert started == [0, 1, 2, 3, 4]
    assert list(values) == list(range(1, 100))
    assert not readers()


def test_readers_work_at_the_same_time():
    both = threading.Barrier(2, timeout=5)
    assert len(list(read_ahead(lambda key: both.wait(), range(4)))) == 4


def test_threads_end_when_iteration_is_left_early():
    batches = Batches(toy(streamed=lambda index: 0.005), 2)
    for _ in batches:
        assert readers()
        break
    assert not readers()
    unfinished = batches.epoch(0)
    next(unfinished)
    assert readers()
    unfinished.close()
    assert not readers()
    batches.epoch(0)  # never begun
    assert not readers()


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_threads_end_when_the_consumer_fails(error):
    def train():
        for _ in Batches(toy(streamed=lambda index: 0.005), 2):
            raise error

    with pytest.raises(error):
        train()
    assert not readers()


def test_threads_end_when_augmentation_fails():
    batches = Batches(toy(streamed=lambda index: 0.0), 2, augment=Augment(crop=100))
    with pytest.raises(InputError, match="crop of 100") as caught:
        list(batches)
    assert not readers()  # although the traceback in `caught` keeps every frame alive
    assert caught.tb is not None


class Damaged(Streamed):
    def __getitem__(self, index):
        if 11 in index:
            raise DataError("cats/11.jpg is damaged: fetch it again.")
        return super().__getitem__(index)


def test_an_error_of_a_reader_arrives_in_its_place():
    images = toy().inputs
    dataset = Dataset("toy", Damaged(images), toy().labels, toy().classes)
    batches = Batches(dataset, 2, shuffle=False).epoch(0)
    assert [next(batches).rows.tolist() for _ in range(5)] == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]
    with pytest.raises(DataError, match=r"cats/11\.jpg is damaged"):
        next(batches)
    assert not readers()


def test_rows_that_come_back_short_are_an_error():
    class Short(Streamed):
        def __getitem__(self, index):
            return super().__getitem__(index[1:])

    dataset = Dataset("toy", Short(toy().inputs), toy().labels, toy().classes)
    with pytest.raises(InputError, match="toy: 3 rows came back when 4 were requested"):
        list(Batches(dataset, 4))


def test_generators_of_different_keys_differ():
    keys = [(0, 1), (1, 0), (1,), (0, 11), (-1, 1), (10, 1), (-1, 0), ("mixup", 1), (2**32, 1)]
    firsts = {key: int(torch.randint(2**62, (), generator=generator_for(*key))) for key in keys}
    assert len(set(firsts.values())) == len(set(keys))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Batches(toy(), 0), "batch_size must be at least 1"),
        (lambda: Batches(toy(0), 4), "toy has no rows"),
        (lambda: Batches(toy(), 24, drop_last=True), "23 rows, fewer than a batch of 24"),
        (lambda: Batches(toy(), 4).epoch(-1), "counted from 0"),
    ],
)
def test_errors_say_what_is_wrong(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_a_batch_may_be_larger_than_the_data_set():
    assert len(Batches(toy(), 100)) == 1
    assert len(order_of(Batches(toy(), 100), 0)) == 23


@pytest.mark.parametrize("device", ["cpu", *["cuda"] * torch.cuda.is_available()])
@pytest.mark.parametrize("streamed", [None, lambda index: 0.0], ids=["in memory", "streamed"])
def test_every_device_gets_the_same_batches(streamed, device):
    augment = Augment(padding=2, cutout=3)
    here = Batches(toy(), 4, augment=augment).epoch(0)
    there = Batches(toy(streamed=streamed), 4, augment=augment, device=device).epoch(0)
    for mine, its in zip(here, there, strict=True):
        assert {tensor.device.type for tensor in (*its[:3], *its.views)} == {device}
        assert torch.equal(mine.rows, its.rows.cpu())
        torch.testing.assert_close(mine.inputs, its.inputs.cpu())
