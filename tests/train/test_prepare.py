"""Which rows are trained on, what becomes of their labels, and what the held-out rows never tell."""

import re
import time
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image
from small_runs import estimate_of, feature_archive, image_archive, own_config, small_config, write_idx

from postmax import data
from postmax.errors import DataError, InputError
from postmax.runs import RunFolder, execute
from postmax.train import estimates, image_network, make_config, resolve
from postmax.train.prepare import prepare, views_of
from postmax.train.scaling import Scaling
from postmax.transition import Transition, parse_noise

RAW = ["noise=none", "data.standardise=false"]


def rows_of(*parts):
    """Every row as something that can be counted."""
    return sorted(tuple(row) for part in parts if part is not None for row in part.inputs.flatten(1).tolist())


# Splits


@pytest.mark.parametrize("validation", [0, 0.25])
@pytest.mark.parametrize("split", ["official", "random"])
@pytest.mark.parametrize("seed", [0, 5])
def test_splits_are_disjoint_and_cover_everything(validation, split, seed):
    part = prepare(small_config(*RAW, f"data.validation_share={validation}", f"data.split={split}"), seed)
    everything = data.load("breast-cancer", split="all")
    assert len({*rows_of(everything)}) == len(everything)  # or the next line would prove nothing
    assert rows_of(part.train, part.validation, part.test) == rows_of(everything)
    assert (part.validation is not None) == bool(validation)
    for held_out, share, rows in ((part.test, 0.2, everything), (part.validation, validation * 0.8, everything)):
        if held_out is not None:
            for code in range(2):
                expected = share * int((rows.labels == code).sum())
                assert int((held_out.labels == code).sum()) == pytest.approx(expected, abs=1)


def test_every_row_keeps_its_label():
    everything = data.load("breast-cancer", split="all")
    label_of = dict(zip(map(tuple, everything.inputs.tolist()), everything.labels.tolist(), strict=True))
    part = prepare(small_config(*RAW, "data.validation_share=0.2"), 3)
    for rows in (part.train, part.validation, part.test):
        assert [label_of[tuple(row)] for row in rows.inputs.tolist()] == rows.labels.tolist()


def test_a_random_split_is_one_for_each_seed_and_a_fixed_one_is_not():
    drawn = [rows_of(prepare(small_config(*RAW, "data.split=random"), seed).test) for seed in (0, 1, 2)]
    assert drawn[0] != drawn[1] != drawn[2] != drawn[0]
    assert drawn[1] == rows_of(prepare(small_config(*RAW, "data.split=random"), 1).test)
    fixed = [rows_of(prepare(small_config(*RAW, "data.split=official"), seed).test) for seed in (0, 1)]
    assert fixed[0] == fixed[1] == rows_of(data.load("breast-cancer", split="test"))


def test_ones_own_data_has_one_fixed_split_for_all_seeds(tmp_path):
    path = feature_archive(tmp_path / "a.npz")
    fixed = [rows_of(prepare(own_config(path), seed).test) for seed in (0, 1)]
    drawn = [rows_of(prepare(own_config(path, "data.split=random", "data.standardise=false"), s).test) for s in (0, 1)]
    assert fixed[0] == fixed[1]
    assert drawn[0] != drawn[1]


def test_a_published_split_is_not_drawn_again():
    with pytest.raises(InputError, match=r"mnist has a published split; data.split=random is for data that has none"):
        prepare(make_config({"data": {"name": "mnist", "split": "random"}}), 0)


def test_too_few_rows_for_a_test(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.zeros((4, 2)), y=[0, 0, 1, 1])
    with pytest.raises(DataError, match="a: 20% of 4 rows cannot be held out for test"):
        prepare(own_config(tmp_path / "a.npz"), 0)


def test_a_validation_share_that_is_no_row():
    with pytest.raises(InputError, match=re.escape("data.validation_share 0.0001 of 456 rows is less than one row")):
        prepare(small_config("data.validation_share=0.0001"), 0)


@pytest.mark.filterwarnings("ignore:std")
def test_a_validation_share_that_is_every_row(tmp_path):
    with pytest.raises(InputError, match="validation_share"):
        execute(small_config("data.validation_share=0.999"), tmp_path / "run")


@pytest.mark.parametrize("rows", [50, 100, 200])
def test_fewer_training_rows(rows):
    config = small_config(*RAW, f"data.train_rows={rows}")
    part, whole = prepare(config, 0), prepare(small_config(*RAW), 0)
    assert len(part.train) == rows
    assert {*rows_of(part.train)} < {*rows_of(whole.train)}
    assert rows_of(part.test) == rows_of(whole.test)
    share = [float((rows.labels == 1).double().mean()) for rows in (part.train, whole.train)]
    assert share[0] == pytest.approx(share[1], abs=0.01)
    assert rows_of(part.train) != rows_of(prepare(config, 1).train)


@pytest.mark.parametrize("rows", [11, 13, 25, 77])
def test_as_many_training_rows_as_asked_for(rows):
    assert len(prepare(make_config({"data": {"name": "digits", "train_rows": rows}}), 0).train) == rows


def test_more_training_rows_than_there_are():
    with pytest.raises(InputError, match=r"data.train_rows is 1000, but breast-cancer has 456 training rows"):
        prepare(small_config("data.train_rows=1000"), 0)


# Noise


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("noise", ["symmetric:0.3", "binary:0.1,0.3"])
def test_noise_is_that_of_the_matrix_and_the_seed(noise, exact):
    overrides = [f"noise={noise}", f"noise_exact={exact}".lower()]
    clean = prepare(small_config(*RAW), 4)
    part = prepare(small_config(*overrides), 4)
    expected = parse_noise(noise, 2).corrupt(clean.train.labels, seed=4, exact=exact)
    assert torch.equal(part.train.labels, expected.labels)
    assert torch.equal(part.train.clean_labels, clean.train.labels)
    assert part.noise == {"rows": len(clean.train), "rate": expected.rate, "sha256": expected.sha256}
    assert 0.05 < part.noise["rate"] < 0.4
    assert torch.equal(part.test.labels, clean.test.labels)
    assert part.test.clean_labels is None


def test_noise_depends_on_nothing_but_rows_matrix_and_seed():
    one = prepare(small_config(), 2).noise
    other = prepare(small_config("loss=ce", "model.hidden=[9]", "data.standardise=false", "batch_size=3"), 2).noise
    assert one == other
    assert prepare(small_config(), 3).noise["sha256"] != one["sha256"]


def test_validation_labels_are_noisy():
    config = small_config("noise=symmetric:0.4", "data.validation_share=0.3", "data.standardise=false")
    part, whole = prepare(config, 1), prepare(small_config("noise=symmetric:0.4", "data.standardise=false"), 1)
    assert 0.3 < float((part.validation.labels != part.validation.clean_labels).double().mean()) < 0.5
    assert part.noise == whole.noise
    label_of = dict(zip(map(tuple, whole.train.inputs.tolist()), whole.train.labels.tolist(), strict=True))
    for rows in (part.train, part.validation):
        assert [label_of[tuple(row)] for row in rows.inputs.tolist()] == rows.labels.tolist()


def test_what_is_said_about_noise_that_was_not_made(tmp_path):
    assert prepare(small_config("noise=none"), 0).noise["rate"] == 0.0
    path = feature_archive(tmp_path / "a.npz")
    assert prepare(own_config(path), 0).noise["rate"] is None
    assert prepare(own_config(path, "noise=symmetric:0.5"), 0).noise["rate"] == pytest.approx(0.5, abs=0.02)


# Standardisation


@pytest.mark.parametrize("validation", [0, 0.3])
def test_features_are_standardised_by_training_rows_only(validation):
    overrides = ["noise=none", f"data.validation_share={validation}"]
    raw, done = prepare(small_config(*overrides, *RAW), 2), prepare(small_config(*overrides), 2)
    mean = raw.train.inputs.double().mean(0)
    std = ((raw.train.inputs.double() - mean) ** 2).mean(0).sqrt()
    parts = [("train", 1e-5), ("test", 1e-5), *([("validation", 1e-5)] if validation else [])]
    for name, tolerance in parts:
        expected = (getattr(raw, name).inputs.double() - mean) / std
        torch.testing.assert_close(getattr(done, name).inputs.double(), expected, rtol=tolerance, atol=tolerance)
        assert getattr(done, name).inputs.dtype == torch.float32
    assert done.train.inputs.mean(0).abs().max() < 1e-5
    assert done.test.inputs.mean(0).abs().max() > 1e-2
    assert done.scaling.mean == pytest.approx(mean.tolist())
    assert done.scaling.factor == pytest.approx((1 / std).tolist())


def test_nothing_about_held_out_rows_reaches_the_training_rows(tmp_path):
    """Held-out rows ten thousand times as large change nothing."""
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(40, 3)), np.arange(40) % 2
    np.savez(tmp_path / "train.npz", x=x, y=y)
    parts = []
    for scale in (1, 10_000):
        np.savez(tmp_path / f"test{scale}.npz", x=scale * generator.normal(size=(10, 3)), y=np.arange(10) % 2)
        parts.append(prepare(own_config(tmp_path / "train.npz", f"data.test_path={tmp_path}/test{scale}.npz"), 0))
    assert torch.equal(parts[0].train.inputs, parts[1].train.inputs)
    assert parts[0].scaling == parts[1].scaling
    assert parts[1].test.inputs.abs().max() > 1000


@pytest.mark.parametrize("value", [0.0, 0.1, 1 / 3, 1e8, -7e-5])
@pytest.mark.parametrize("rows", [3, 7, 100, 1001])
def test_constant_features_become_zero(value, rows):
    inputs = torch.stack([torch.full((rows,), value), torch.arange(float(rows))], 1)
    part = data.Dataset("d", inputs, torch.zeros(rows, dtype=torch.int64), ("a", "b"))
    scaled = Scaling.fit(inputs, standardise=True).apply(part).inputs
    assert not scaled[:, 0].any()
    assert scaled[:, 1].std(correction=0) == pytest.approx(1, abs=1e-5)


def test_images_are_not_standardised(tmp_path):
    part = prepare(own_config(image_archive(tmp_path / "i.npz")), 0)
    assert part.train.inputs.dtype == torch.uint8
    assert part.scaling is None


# What a correction takes as the noise

CORRECTED = ["loss.correction=forward"]


def test_no_correction_needs_no_matrix():
    assert prepare(small_config("noise=none"), 0).transition is None
    assert prepare(small_config("noise=none", "transition=nowhere.csv"), 0).transition is None


def test_known_noise():
    part = prepare(small_config("noise=binary:0.1,0.3", *CORRECTED), 0)
    assert torch.equal(part.transition.matrix, Transition.binary(e0=0.1, e1=0.3).matrix)
    clean = prepare(small_config("noise=none", *CORRECTED), 0)
    assert torch.equal(clean.transition.matrix, torch.eye(2, dtype=torch.float64))


def test_noise_in_a_file(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("0.7,0.3\n0.2,0.8\n")
    part = prepare(small_config(f"transition={path}", *CORRECTED), 0)
    assert part.transition.matrix.tolist() == [[0.7, 0.3], [0.2, 0.8]]
    given = prepare(small_config(f"noise={path}"), 0)
    assert given.noise["rate"] == pytest.approx(0.24, abs=0.05)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0.7,0.3,0\n0.2,0.8,0\n0,0,1\n", "is for 3 classes, but the labels have 2"),
        ("0.7,0.2\n0.2,0.8\n", "t.csv"),
        ("a,b\n", "must be rows of numbers separated by commas"),
    ],
)
def test_files_that_hold_no_such_matrix(tmp_path, text, message):
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        prepare(small_config(f"transition={path}", *CORRECTED), 0)


def test_a_matrix_that_is_not_there():
    with pytest.raises(DataError, match=r"nowhere.csv does not exist"):
        prepare(small_config("transition=nowhere.csv", *CORRECTED), 0)
    with pytest.raises(InputError, match=r"a noise such as symmetric:0\.4 or the file of a matrix, not 'knwon'"):
        prepare(small_config("transition=knwon", *CORRECTED), 0)


def test_noise_that_is_assumed():
    config = small_config("noise=symmetric:0.2", "transition=symmetric:0.6", *CORRECTED)
    prepared = prepare(config, 0)
    assert prepared.transition == Transition.symmetric(prepared.train.num_classes, 0.6)
    with pytest.raises(InputError, match="eta is a probability"):
        prepare(small_config("transition=symmetric:2", *CORRECTED), 0)


def test_noise_that_nobody_knows(tmp_path):
    config = own_config(feature_archive(tmp_path / "a.npz"), *CORRECTED)
    with pytest.raises(
        InputError, match="correction=forward needs the noise, which is not known for a: say transition=estimated"
    ):
        prepare(config, 0)


def test_estimated_noise(tmp_path):
    path = feature_archive(tmp_path / "a.npz", rows=400, classes=2)
    found = prepare(own_config(path, "noise=binary:0.1,0.3", "transition=estimated", *CORRECTED), 0).transition.matrix
    assert (found - Transition.binary(e0=0.1, e1=0.3).matrix).abs().max() < 0.12


def test_the_estimate_sees_training_rows_and_noisy_labels_only(monkeypatch, tmp_path):
    seen = {}

    def estimate(posteriors, labels, **options):
        seen.update(posteriors=posteriors, labels=labels, **options)
        return estimate_of(Transition.binary(e0=0.2, e1=0.3), options["classes"])

    monkeypatch.setattr(estimates, "estimate_transition", estimate)
    monkeypatch.setenv("POSTMAX_DATA", str(tmp_path))  # where no estimate is kept yet
    config = small_config("noise=symmetric:0.3", "data.validation_share=0.2", "transition=estimated", *CORRECTED)
    part = prepare(config, 3)
    assert torch.equal(part.transition.matrix, Transition.binary(e0=0.2, e1=0.3).matrix)
    assert torch.equal(seen["features"], part.train.inputs)
    assert torch.equal(seen["labels"], part.train.labels)
    assert not torch.equal(seen["labels"], part.train.clean_labels)
    assert (seen["posteriors"], seen["classes"]) == (None, part.train.classes)


@pytest.mark.parametrize("side", [8, 12])
def test_noise_is_estimated_from_pixels(tmp_path, monkeypatch, side):
    monkeypatch.setenv("POSTMAX_DATA", str(tmp_path))
    monkeypatch.setattr(image_network, "_LEAST_STEPS", 200)
    path = image_archive(tmp_path / "i.npz", rows=400, side=side)
    config = own_config(path, "noise=pair:0.3", "transition=estimated", *CORRECTED)
    part = prepare(config, 0)
    assert (part.estimate.matrix - Transition.pair(3, 0.3).matrix).abs().max() < 0.1
    assert part.transition == part.estimate.transition
    assert len(list((tmp_path / "estimates").iterdir())) == 1


# Augmentation


def test_augmentation_by_data_set(tmp_path):
    images = prepare(own_config(image_archive(tmp_path / "i.npz")), 0).train
    features = prepare(small_config(), 0).train
    published = data.Statistics((0.1, 0.2, 0.3), (0.4, 0.5, 0.6))
    cifar = make_config({"data": {"name": "cifar10"}}).data
    found = views_of(cifar, replace(images, statistics=published)).weak
    assert (found.crop, found.padding, found.flip, found.statistics) == (None, 4, True, published)
    large = views_of(make_config({"data": {"name": "webvision-mini"}}).data, images).weak
    assert (large.crop, large.padding, large.flip) == (224, 0, True)
    own = own_config(tmp_path / "i.npz").data
    still = views_of(own, images).weak
    assert (still.random, still.flip, still.padding) == (False, False, 0)
    assert still.statistics == data.channel_statistics(images.inputs)
    crop = views_of(own.model_copy(update={"augment": "crop", "cutout": 2}), images).weak
    assert (crop.padding, crop.flip, crop.cutout) == (4, False, 2)
    mnist = views_of(make_config({"data": {"name": "mnist"}}).data, images).weak
    assert not mnist.random
    assert views_of(cifar.model_copy(update={"augment": "none"}), images).weak.flip is False
    cut = views_of(own.model_copy(update={"augment": "none", "cutout": 2}), images).weak
    assert (cut.random, cut.cutout, cut.flip) == (True, 2, False)
    assert views_of(own, features).weak is None


def test_image_statistics_come_from_training_rows(tmp_path):
    part = prepare(own_config(image_archive(tmp_path / "i.npz")), 0)
    everything = data.read_npz(tmp_path / "i.npz")
    found = views_of(own_config(tmp_path / "i.npz").data, part.train).weak.statistics
    assert found == data.channel_statistics(part.train.inputs) != data.channel_statistics(everything.inputs)


# A person's own files


def write_csv(path, labels, seed=0, header="a,b,kind"):
    generator = np.random.default_rng(seed)
    lines = [
        f"{x + len(label):.4f},{y:.4f},{label}"
        for (x, y), label in zip(generator.normal(size=(len(labels), 2)), labels, strict=True)
    ]
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


def user_files(folder):
    """One data set of forty rows and two classes in every format."""
    labels = [["no", "maybe"][i % 2] for i in range(40)]
    write_csv(folder / "table.csv", labels)
    feature_archive(folder / "arrays.npz", rows=40, classes=2)
    pixels = np.random.default_rng(0).integers(0, 256, (40, 8, 8))
    write_idx(folder / "train-images-idx3-ubyte", pixels)
    write_idx(folder / "train-labels-idx1-ubyte", np.arange(40) % 2)
    for i, label in enumerate(labels):
        (folder / "images" / label).mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels[i].astype(np.uint8)).save(folder / "images" / label / f"{i}.png")


@pytest.mark.parametrize(
    ("name", "overrides", "classes"),
    [
        ("table.csv", ["data.labels=kind"], ["maybe", "no"]),
        ("arrays.npz", [], ["0", "1"]),
        ("train-images-idx3-ubyte", [], ["0", "1"]),
        ("images", ["data.size=8"], ["maybe", "no"]),
    ],
)
def test_every_format_trains(tmp_path, name, overrides, classes):
    user_files(tmp_path)
    config = own_config(tmp_path / name, "noise=symmetric:0.1", "epochs=2", "batch_size=8", *overrides)
    result = execute(config, tmp_path / "run")
    assert result["classes"] == classes
    assert (result["train_rows"], result["test_rows"]) == (32, 8)
    assert RunFolder(tmp_path / "run").config().data.sha256 is not None


@pytest.mark.parametrize("name", ["table.csv", "arrays.npz", "train-images-idx3-ubyte", "images"])
def test_test_rows_in_a_file_of_their_own(tmp_path, name):
    user_files(tmp_path)
    overrides = {"table.csv": ["data.labels=kind"], "images": ["data.size=8"]}.get(name, [])
    part = prepare(
        own_config(tmp_path / name, f"data.test_path={tmp_path / name}", "data.standardise=false", *overrides), 0
    )
    assert (len(part.train), len(part.test)) == (40, 40)
    assert rows_of(part.train) == rows_of(part.test)
    assert torch.equal(part.train.labels, part.test.labels)


def test_classes_are_counted_as_in_the_training_rows(tmp_path):
    train = write_csv(tmp_path / "train.csv", ["b", "c", "a", "b", "c", "a"])
    test = write_csv(tmp_path / "test.csv", ["c", "b", "c"])
    part = prepare(own_config(train, f"data.test_path={test}", "data.labels=kind"), 0)
    assert part.train.classes == part.test.classes == ("a", "b", "c")
    assert part.test.labels.tolist() == [2, 1, 2]


def test_a_new_class_in_the_test_rows(tmp_path):
    train, test = write_csv(tmp_path / "train.csv", ["a", "b"] * 3), write_csv(tmp_path / "test.csv", ["a", "d", "c"])
    with pytest.raises(DataError, match="test has the classes 'c', 'd', which the training rows do not have"):
        prepare(own_config(train, f"data.test_path={test}", "data.labels=kind"), 0)


def test_one_class_only(tmp_path):
    path = write_csv(tmp_path / "train.csv", ["a"] * 6)
    with pytest.raises(DataError, match="has one class only, 'a': a classifier needs at least two"):
        prepare(own_config(path, "data.labels=kind"), 0)


def test_categories_and_columns_are_those_of_the_training_table(tmp_path):
    (tmp_path / "train.csv").write_text("id,colour,size,label\n1,red,1,x\n2,blue,2,y\n3,red,,x\n4,red,9,y\n")
    (tmp_path / "test.csv").write_text("label,size,colour,id\nx,4,blue,9\n")
    overrides = [f"data.test_path={tmp_path}/test.csv", "data.drop=[id]", "data.missing=median"]
    part = prepare(own_config(tmp_path / "train.csv", *overrides, "data.standardise=false"), 0)
    assert part.train.inputs.tolist() == [[0, 1, 1], [1, 0, 2], [0, 1, 2], [0, 1, 9]]
    assert part.test.inputs.tolist() == [[1, 0, 4]]


def test_test_rows_in_a_table_of_another_kind(tmp_path):
    """The encoding is that of the training rows. A Parquet file has none, and it may hold numbers as text."""
    (tmp_path / "train.csv").write_bytes("größe;wert;label\n1,5;2;x\n2,5;3;y\n3,5;4;x\n".encode("cp1252"))
    pq.write_table(pa.table({"größe": [7.5], "wert": ["4,5"], "label": ["y"]}), tmp_path / "test.parquet")
    overrides = [f"data.test_path={tmp_path}/test.parquet", "data.encoding=cp1252", "data.decimal=,"]
    part = prepare(own_config(tmp_path / "train.csv", *overrides, "data.standardise=false"), 0)
    assert part.train.inputs.tolist() == [[1.5, 2], [2.5, 3], [3.5, 4]]
    assert part.test.inputs.tolist() == [[7.5, 4.5]]


def test_test_rows_need_no_column_that_is_dropped(tmp_path):
    (tmp_path / "train.csv").write_text("id,size,label\n1,1,x\n2,2,y\n3,3,x\n")
    (tmp_path / "test.csv").write_text("size,label\n4,y\n")
    test = f"data.test_path={tmp_path}/test.csv"
    part = prepare(own_config(tmp_path / "train.csv", test, "data.drop=[id]", "data.standardise=false"), 0)
    assert part.test.inputs.tolist() == [[4]]
    with pytest.raises(DataError, match=r"train\.csv: there is no column 'ID'"):
        prepare(own_config(tmp_path / "train.csv", test, "data.drop=[ID]"), 0)


def with_gaps(path, rows, numbers):
    lines = [f"{'' if numbers[i] is None else numbers[i]},{'ab'[i % 2]}" for i in range(rows)]
    path.write_text("\n".join(["size,label", *lines]) + "\n")
    return path


def test_gaps_are_filled_from_training_rows_only(tmp_path):
    numbers = [None if i % 4 == 0 else 7 * i % 40 for i in range(40)]
    path = with_gaps(tmp_path / "a.csv", 40, numbers)
    part = prepare(own_config(path, "data.missing=median", "data.standardise=false", "data.validation_share=0.25"), 0)
    assert not part.train.inputs.isnan().any()
    # Held-out rows ten thousand times as large: nothing about the training rows changes.
    held_out = {*part.test.inputs[:, 0].tolist(), *part.validation.inputs[:, 0].tolist()} - {part.scaling.fill[0]}
    enlarged = [10_000 * n if n in held_out else n for n in numbers]
    assert sum(a != b for a, b in zip(enlarged, numbers, strict=True)) >= 8
    again = prepare(
        own_config(
            with_gaps(tmp_path / "b.csv", 40, enlarged),
            "data.missing=median",
            "data.standardise=false",
            "data.validation_share=0.25",
        ),
        0,
    )
    assert again.scaling == part.scaling
    assert torch.equal(again.train.inputs, part.train.inputs)


def test_the_median_of_an_even_number_of_values(tmp_path):
    path = with_gaps(tmp_path / "a.csv", 5, [1, 2, 4, 9, None])
    config = own_config(path, f"data.test_path={path}", "data.missing=median", "data.standardise=false")
    assert prepare(config, 0).train.inputs[4].tolist() == [3]


def test_features_that_do_not_fit(tmp_path):
    train = write_csv(tmp_path / "train.csv", ["a", "b"] * 3)
    test = write_csv(tmp_path / "test.csv", ["a", "b"], header="a,c,kind")
    with pytest.raises(DataError, match="there is no column 'b', which the features need"):
        prepare(own_config(train, f"data.test_path={test}", "data.labels=kind"), 0)


def test_arrays_that_do_not_fit(tmp_path):
    train, test = feature_archive(tmp_path / "a.npz", features=3), feature_archive(tmp_path / "b.npz", features=2)
    with pytest.raises(DataError, match=r"3.*2|2.*3"):
        execute(own_config(train, f"data.test_path={test}"), tmp_path / "run")


def test_the_label_array_of_test_rows(tmp_path):
    x, truth = np.random.default_rng(0).normal(size=(12, 2)), np.arange(12) % 2
    np.savez(tmp_path / "a.npz", x=x, y=np.zeros(12, int), truth=truth)
    config = own_config(tmp_path / "a.npz", f"data.test_path={tmp_path}/a.npz", "data.labels=truth")
    assert prepare(resolve(config), 0).test.labels.tolist() == truth.tolist()


def test_other_data_is_noticed(tmp_path):
    path = feature_archive(tmp_path / "a.npz")
    config = resolve(own_config(path))
    feature_archive(path, seed=1)
    with pytest.raises(DataError, match=r"a.npz has changed since this run was configured \(SHA-256 .*Restore it"):
        execute(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_new_data_under_an_old_name_is_read(tmp_path):
    path = feature_archive(tmp_path / "a.npz")
    first = prepare(resolve(own_config(path)), 0)
    feature_archive(path, seed=1)
    second = prepare(resolve(own_config(path)), 0)
    assert not torch.equal(first.train.inputs, second.train.inputs)


def test_a_changed_image_of_the_same_size_is_noticed(tmp_path):
    for i in range(8):
        (tmp_path / "images" / "ab"[i % 2]).mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((8, 8), i, np.uint8)).save(tmp_path / "images" / "ab"[i % 2] / f"{i}.bmp")
    config = resolve(own_config(tmp_path / "images", "data.size=8"))
    Image.fromarray(np.full((8, 8), 200, np.uint8)).save(tmp_path / "images" / "a" / "0.bmp")
    with pytest.raises(DataError, match="has changed"):
        resolve(config)


def test_missing_data(tmp_path):
    with pytest.raises(DataError, match=r"gone.csv does not exist"):
        execute(own_config(tmp_path / "gone.csv"), tmp_path / "run")
    with pytest.raises(InputError, match=r"unknown data set 'breast-cancr'. Did you mean 'breast-cancer'"):
        execute(small_config("data.name=breast-cancr"), tmp_path / "run")


def test_preparing_again_is_fast():
    config = small_config("noise=symmetric:0.3", "data.validation_share=0.2")
    prepare(config, 0)
    start = time.perf_counter()
    for seed in range(10):
        prepare(config, seed)
    assert time.perf_counter() - start < 5
