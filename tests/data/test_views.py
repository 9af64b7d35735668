"""Views by name: what each is, and that every data set is augmented as it always was."""

from dataclasses import replace

import pytest
import torch

from postmax import data
from postmax.data import (
    Augment,
    AutoAugment,
    Batches,
    ContrastAugment,
    Dataset,
    DropAndAddNoise,
    Statistics,
    StrongAugment,
    Views,
    views_for,
)
from postmax.data.augment import standard
from postmax.data.views import VIEW_NAMES
from postmax.errors import InputError

STATISTICS = Statistics((0.5, 0.4, 0.3), (0.2, 0.3, 0.1))
LARGE = ("webvision", "ilsvrc", "imagenet")
IMAGES = [
    *("cifar10", "cifar100", "cifar100n", "mnist", "fashion-mnist", "kmnist", "digits"),
    *(f"cifar10n-{kind}" for kind in ("aggregate", "random1", "random2", "random3", "worst")),
    *("webvision", "webvision-mini", "ilsvrc12", "ilsvrc12-mini"),
]


def by_prefix(name, statistics, kind, cutout):
    """The rule that results before there were views were made with: the name decides."""
    name = name or ""
    if kind == "auto":
        kind = "crop-flip" if name.startswith(("cifar", *LARGE)) else "none"
    if kind == "none":
        return replace(Augment.none(statistics), cutout=cutout, random=cutout > 0)
    usual = "imagenet" if name.startswith(LARGE) else "cifar10"
    return standard(usual, flip=kind == "crop-flip", cutout=cutout, statistics=statistics)


@pytest.mark.parametrize("cutout", [0, 16])
@pytest.mark.parametrize("kind", ["auto", "none", "crop", "crop-flip"])
@pytest.mark.parametrize("name", [None, *IMAGES])
def test_the_weak_view_is_what_it_always_was(name, kind, cutout):
    assert views_for(name, STATISTICS, kind, cutout)["weak"] == by_prefix(name, STATISTICS, kind, cutout)


def test_the_views_of_images():
    weak = Augment(padding=4, cutout=8, statistics=STATISTICS)
    views = Views(weak)
    assert views["weak"] == weak
    assert views["none"] == weak.evaluation()
    assert views["strong"] == StrongAugment(weak)
    assert views["policy"] == AutoAugment(weak)
    assert views["contrast"] == ContrastAugment(weak)
    with pytest.raises(InputError, match=r"unknown view 'strng'\. Did you mean 'strong'"):
        views["strng"]


@pytest.mark.parametrize("side", [(1, 1), (2, 2), (5, 3), (8, 8), (28, 28), (96, 96)])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("name", VIEW_NAMES)
def test_images_of_every_size_have_every_view(name, channels, side):
    statistics = Statistics(STATISTICS.mean[:channels], STATISTICS.std[:channels])
    view = Views(Augment(padding=4, statistics=statistics))[name]
    images = torch.randint(256, (12, channels, *side), generator=torch.Generator().manual_seed(1)).to(torch.uint8)
    kept = images.clone()
    for count in (0, 1, 12):
        found = view(images[:count], torch.Generator().manual_seed(0))
        assert found.shape == (count, channels, *side)
        assert found.dtype == torch.float32
        assert found.isfinite().all()
        assert torch.equal(found, view(images[:count], torch.Generator().manual_seed(0)))
    assert torch.equal(images, kept)
    if name != "none" and min(side) > 4:
        assert not torch.equal(found, view(images, torch.Generator().manual_seed(1)))


@pytest.mark.parametrize("name", VIEW_NAMES)
def test_every_view_has_the_size_of_the_window(name):
    images = torch.randint(256, (3, 3, 16, 20)).to(torch.uint8)
    assert Views(Augment(padding=0, crop=12))[name](images, torch.Generator()).shape == (3, 3, 12, 12)


@pytest.mark.parametrize("name", ["strong", "policy", "contrast"])
def test_operations_on_colours_refuse_other_numbers_of_channels(name):
    with pytest.raises(InputError, match=r"one or three channels, got 4: use the view 'weak'"):
        Views(Augment())[name](torch.zeros(2, 4, 8, 8, dtype=torch.uint8), torch.Generator())


def test_the_views_of_features():
    features = torch.randn(4, 2)
    assert Views()["none"](features, torch.Generator()) is features
    assert Views()["weak"](features, torch.Generator()) is features
    assert Views()["strong"] == Views()["policy"] == DropAndAddNoise(dropped=0.2, noise=0.1)
    assert Views()["contrast"] == DropAndAddNoise(dropped=0.3, noise=0.2)
    with pytest.raises(InputError, match="unknown view"):
        Views()["crop"]


def test_an_augmentation_that_a_data_set_declares_is_used_as_it_is():
    declared = Augment(crop=20, padding=2, flip=False)
    assert Views.of(declared, STATISTICS)["weak"] == replace(declared, statistics=STATISTICS)
    assert Views.of(declared, STATISTICS, "crop-flip")["weak"].flip
    assert Views.of(declared, STATISTICS, "crop-flip")["weak"].crop == 20


def test_unknown_data_sets_are_answered_with_the_nearest():
    with pytest.raises(InputError, match="Did you mean 'cifar10'"):
        views_for("cifar11", STATISTICS)


# Batches of views


def toy(count=23, streamed=False):
    generator = torch.Generator().manual_seed(5)
    images = torch.randint(256, (count, 3, 8, 8), generator=generator).to(torch.uint8)
    labels = torch.randint(4, (count,), generator=generator)

    class Source:
        reads = 0

        def __len__(self):
            return count

        def __getitem__(self, rows):
            Source.reads += 1
            return images[rows]

    return Dataset("toy", Source() if streamed else images, labels, ("a", "b", "c", "d"))


WEAK = Augment(padding=2, cutout=3)


@pytest.mark.parametrize("augment", [WEAK, Views(WEAK)], ids=["augment", "views"])
def test_one_view_is_what_a_batch_always_was(augment):
    found = Batches(toy(), 5, augment=augment, seed=3).epoch(4)
    generator = data.generator_for(3, 4)
    order = torch.randperm(23, generator=generator)
    for batch, rows in zip(found, order.split(5), strict=True):
        assert torch.equal(batch.rows, rows)
        assert torch.equal(batch.inputs, WEAK(toy().inputs[rows], generator))
        assert batch.views[0] is batch.inputs
        assert len(batch.views) == 1


@pytest.mark.parametrize("streamed", [False, True])
def test_several_views_are_of_the_same_rows_and_drawn_one_after_the_other(streamed):
    dataset = toy(streamed=streamed)
    batches = Batches(dataset, 5, augment=Views(WEAK), seed=3, views=("weak", "strong", "weak", "none"))
    generator = data.generator_for(3, 4)
    order = torch.randperm(23, generator=generator)
    for batch, rows in zip(batches.epoch(4), order.split(5), strict=True):
        stored = toy().inputs[rows]
        first, strong, second = (a(stored, generator) for a in (WEAK, StrongAugment(WEAK), WEAK))
        wanted = (first, strong, second, WEAK.evaluation()(stored))
        assert all(torch.equal(mine, its) for mine, its in zip(batch.views, wanted, strict=True))
        assert batch.inputs is batch.views[0]
        assert not torch.equal(first, second)
    if streamed:
        assert type(dataset.inputs).reads == 5


def test_views_of_an_epoch_win_over_those_of_the_batches():
    batches = Batches(toy(), 23, augment=Views(WEAK))
    (batch,) = batches.epoch(0, views=("none",))
    assert torch.equal(batch.inputs, WEAK.evaluation()(toy().inputs[batch.rows]))
    assert len(next(batches.epoch(0)).views) == 1


def test_rows_without_augmentation_have_every_view():
    (batch,) = Batches(toy(), 23, views=VIEW_NAMES).epoch(0)
    assert all(torch.equal(view, toy().inputs[batch.rows]) for view in batch.views)


def test_batches_of_features_have_the_views_of_features():
    dataset = Dataset("features", torch.randn(9, 4), torch.zeros(9, dtype=torch.int64), ("a",))
    batches = Batches(dataset, 9, views=("weak", "strong", "contrast"), seed=3)
    (batch,) = batches.epoch(4)
    generator = data.generator_for(3, 4)
    stored = dataset.inputs[torch.randperm(9, generator=generator)]
    assert torch.equal(batch.views[0], stored)
    assert torch.equal(batch.views[1], DropAndAddNoise(0.2, 0.1)(stored, generator))
    assert torch.equal(batch.views[2], DropAndAddNoise(0.3, 0.2)(stored, generator))


@pytest.mark.parametrize("name", VIEW_NAMES)
def test_augmentations_of_images_return_features_as_they_are(name):
    features = torch.randn(4, 2)
    assert Views(Augment())[name](features, torch.Generator()) is features


def test_a_function_is_the_weak_view_alone():
    def augment(rows, generator):
        return WEAK(rows, generator)

    batches = Batches(toy(), 23, augment=augment)
    assert len(next(batches.epoch(0, views=("weak", "weak"))).views) == 2
    with pytest.raises(InputError, match="a function as augmentation is the view 'weak'"):
        batches.epoch(0, views=("strong",))
    with pytest.raises(InputError, match="unknown view 'wake'"):
        Batches(toy(), 5, augment=WEAK, views=("wake",))
    with pytest.raises(InputError, match="at least one view"):
        Batches(toy(), 5, views=())


# Some rows, streams, sizes


@pytest.mark.parametrize("streamed", [False, True])
def test_some_rows_come_once_each_in_a_random_order(streamed):
    rows = torch.tensor([3, 22, 7, 11, 0])
    batches = Batches(toy(streamed=streamed), 2, seed=1)
    found = list(batches.epoch(0, rows))
    assert [len(batch.rows) for batch in found] == [2, 2, 1]
    order = torch.cat([batch.rows for batch in found])
    assert sorted(order.tolist()) == sorted(rows.tolist())
    assert torch.equal(torch.cat([batch.inputs for batch in found]), toy().inputs[order])
    assert torch.equal(torch.cat([batch.labels for batch in found]), toy().labels[order])
    assert not all(
        torch.equal(order, torch.cat([batch.rows for batch in batches.epoch(number, rows)])) for number in (1, 2, 3)
    )


def test_a_mask_chooses_rows_too():
    mask = toy().labels == 2
    batches = Batches(toy(), 4, shuffle=False)
    found = torch.cat([batch.rows for batch in batches.epoch(0, mask)])
    assert torch.equal(found, mask.nonzero()[:, 0])


def test_no_rows_have_no_batches():
    for dataset in (toy(), toy(streamed=True)):
        assert list(Batches(dataset, 4).epoch(0, torch.tensor([], dtype=torch.int64))) == []
    assert list(Batches(toy(), 4, drop_last=True).epoch(0, torch.tensor([1, 2]))) == []


@pytest.mark.parametrize("rows", [[0, 23], [-1, 3]])
def test_rows_that_do_not_exist_are_refused(rows):
    with pytest.raises(InputError, match=r"rows are positions in toy, 0…22; got"):
        Batches(toy(), 4).epoch(0, torch.tensor(rows))


def test_streams_are_unrelated_and_the_nameless_one_is_the_order_of_always():
    batches = Batches(toy(), 23, augment=WEAK, seed=2)
    (plain,), (again,) = batches.epoch(5), batches.epoch(5, stream="")
    assert torch.equal(plain.rows, again.rows)
    assert torch.equal(plain.inputs, again.inputs)
    orders = [next(batches.epoch(5, stream=name)).rows.tolist() for name in ("", "labelled", "unlabelled")]
    orders += [next(batches.epoch(6, stream=name)).rows.tolist() for name in ("", "labelled", "unlabelled")]
    assert len({tuple(order) for order in orders}) == 6
    assert next(batches.epoch(5, stream="labelled")).rows.tolist() == orders[1]


def test_the_size_of_a_batch_can_be_another_one():
    batches = Batches(toy(), 5, drop_last=True)
    assert [len(batch.rows) for batch in batches.epoch(0, size=10)] == [10, 10]
    assert (
        torch.cat([b.rows for b in batches.epoch(0, size=10)]).tolist()
        == torch.cat([b.rows for b in batches.epoch(0)]).tolist()
    )
    with pytest.raises(InputError, match="batch_size must be at least 1"):
        batches.epoch(0, size=0)
