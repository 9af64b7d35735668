"""Each detector finds what was planted, names it, and is silent about clean data."""

import numpy as np
import pytest
from checking.planted import found, kinds, penguins
from sklearn import datasets

import postmax as pm
from postmax.checking.detectors import label_spelling, sentinels
from postmax.checking.detectors.leaks import right_alone, skill
from postmax.checking.hashing import row_hashes
from postmax.checking.values import are_dates


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_said_about_a_clean_table(seed):
    findings = pm.check(*penguins(seed=seed))
    assert list(findings) == []
    assert str(findings) == "the data: nothing was found in 300 rows with 4 columns and 3 classes"


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer", "digits"])
def test_nothing_is_said_about_clean_data(name):
    """Iris has one row twice, is sorted by class, and a column that tells 96 % of the labels."""
    rows = getattr(datasets, f"load_{name}")()
    assert list(pm.check(rows.data, np.array(rows.target_names)[rows.target])) == []


def test_nothing_is_said_about_diabetes_with_two_classes():
    rows = datasets.load_diabetes(as_frame=True)
    assert list(pm.check(rows.data, np.where(rows.target > 140, "high", "low"))) == []


def test_spellings_by_case_and_white_space():
    table, labels = penguins()
    labels[:6] = ["ADELIE", "adelie", "Ade lie", "Gentoo ", "gentoo", "gentoo"]
    first, second = found("spelling", table, labels)
    assert "'Adelie' (" in first.text
    assert "'ADELIE' (1 row)" in first.text
    assert "differ only in upper and lower case or white space" in first.text
    assert first.rows == (0, 1, 2)
    assert second.rows == (3, 4, 5)
    assert first.severity == "problem"


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["Crème brûlée", "Creme brulee", "tea"], ["accents"]),
        (["T-shirt", "t shirt.", "dress"], ["accents"]),
        ([">50K", "<=50K"], []),
        (["A", "A-", "B"], []),
        (["type 1", "type 2", "C", "C++", "1", "-1"], []),
    ],
)
def test_spellings_by_accents_and_punctuation(names, expected):
    labels = np.array(names, dtype=object)[np.arange(300) % len(names)]
    texts = [f.text for f in pm.check(penguins()[0], labels) if f.kind == "spelling"]
    assert [word for word in expected if any(word in text for text in texts)] == expected
    assert len(texts) == len(expected)


@pytest.mark.parametrize("wrong", ["Adelei", "Adelle", "Adeli", "Adelije", "Axelie"])
def test_typing_errors(wrong):
    assert list(label_spelling.typing_errors({"Adelie": 140, wrong: 2, "Gentoo": 90})) == [(wrong, "Adelie")]


@pytest.mark.parametrize(
    "counts",
    [
        {"Adelie": 140, "Adelei": 60},  # both are frequent
        {"cat": 100, "car": 1},  # short words
        {"class1": 100, "class2": 1},  # digits
        {"female": 100, "male": 2},
        {"normal": 100, "abnormal": 2},
    ],
)
def test_no_typing_errors(counts):
    assert list(label_spelling.typing_errors(counts)) == []


def test_dates_as_labels_and_as_features():
    table, labels = penguins()
    days = np.array([f"2024-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(300)], dtype=object)
    assert "such as '2024-01-01'" in found("dates", {**table, "day": days}, labels)[0].text
    assert kinds({**table, "day": days}, labels) == ["dates"]
    assert "The labels are dates" in found("dates", table, days)[0].text


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["12/31/2023", "1/2/2024"], True),
        (["3 March 2024", "Mar 4, 2024"], True),
        (["2024-01-01T10:30:00Z", "2024-01-01 10:30"], True),
        (["1.5", "2.5"], False),
        (["10-12", "5-9"], False),
        (["192.168.1.1", "10.0.0.1"], False),
        ([None, ""], False),
    ],
)
def test_texts_that_are_dates(values, expected):
    assert are_dates(np.array(values, dtype=object)) == expected


def test_numbers_that_are_dates():
    assert are_dates(np.array([20240101.0 + day for day in range(28)]))
    assert not are_dates(np.arange(1990.0, 2020.0))
    assert not are_dates(np.arange(20000000.0, 20000100.0))


def test_labels_that_are_nearly_all_different():
    table, _ = penguins()
    assert kinds(table, [f"bird {i}" for i in range(300)]) == ["near-unique labels"]
    assert "continuous labels" in kinds(table, (np.arange(300) * 7919 % 83) * 3)
    rows = datasets.load_diabetes()
    assert kinds(rows.data, rows.target.astype(int)) == ["continuous labels"]


def test_twenty_classes_of_numbers_are_no_measurement():
    draw = np.random.default_rng(0)
    rows = draw.normal(size=(2000, 3))
    labels = np.digitize(rows[:, 0] + draw.normal(size=2000), np.linspace(-1.5, 1.5, 19))
    assert kinds(rows, labels) == []


def test_class_sizes():
    table, labels = penguins()
    labels[:3] = "Emperor"
    text = found("tiny classes", table, labels)[0].text
    assert text.startswith("Class 'Emperor' (3 rows) has fewer than 5 rows")
    assert kinds(table, np.where(np.arange(300) < 290, "no", "yes"))[-1] == "imbalance"
    assert found("one class", table, ["x"] * 300)


def test_row_names():
    table, labels = penguins()
    number, name = np.arange(1, 301), np.array([f"bird {i}" for i in range(300)], dtype=object)
    code = 842000 + np.random.default_rng(0).permutation(9000)[:300]
    for column in (number, name, code, number[::-1], np.random.default_rng(1).permutation(number)):
        finding = found("row names", {"key": column, **table}, labels)[0]
        assert (finding.columns, finding.severity) == (("key",), "note")
        assert finding.remedy == 'To leave it out: drop=["key"]'
    order = np.argsort(labels.astype(str), kind="stable")
    ordered = {column: values[order] for column, values in table.items()}
    finding = found("row names", {"key": number, **ordered}, labels[order])[0]
    assert finding.severity == "problem"
    assert "counts rows that are sorted by class" in finding.text
    assert kinds(ordered, labels[order]) == []


@pytest.mark.parametrize(
    "column",
    [
        np.random.default_rng(9).normal(size=300),
        np.random.default_rng(9).integers(0, 5000, 300),
        np.random.default_rng(9).integers(20, 90, 300),
        np.arange(300) % 150,
    ],
)
def test_ordinary_columns_name_no_rows(column):
    table, labels = penguins()
    assert kinds({"x": column, **table}, labels) == []


def test_constant_columns():
    table, labels = penguins()
    same = {
        "one": np.ones(300),
        "two": np.array(["x"] * 300, dtype=object),
        "gaps": np.where(np.arange(300) < 9, 1, np.nan),
    }
    finding = found("constant columns", {**table, **same}, labels)[0]
    assert finding.columns == ("one", "two")


def test_missing_values():
    table, labels = penguins()
    table["bill"][:150] = np.nan
    table["island"][100:] = None
    first, second = found("missing values", table, labels)
    assert "has no value in 150 of 300 rows (50 %)" in first.text
    assert "has no value in 200 of 300 rows (67 %)" in second.text
    table["bill"][20:150] = 40.0 + np.random.default_rng(0).normal(size=130)
    assert len(found("missing values", table, labels)) == 1


@pytest.mark.parametrize("number", [-999, -9999, 99999, 1e30, -2147483648])
def test_sentinels(number):
    table, labels = penguins()
    table["mass"][[4, 8, 15]] = number
    finding = found("sentinel values", table, labels)[0]
    assert finding.rows == (4, 8, 15)
    assert f"holds {number:g} in indices 4, 8, 15 (3 rows)" in finding.text


@pytest.mark.parametrize(
    "values", [[1, 5, 999, 998, 990, 999], [0.0] * 50 + [99.0], [1, 2, 3, -5, -5], [7.0, 7.0, 7.0]]
)
def test_no_sentinels(values):
    assert sentinels.sentinel(np.array(values, float)) is None


def test_infinite_values():
    table, labels = penguins()
    table["mass"][7] = np.inf
    assert "infinite numbers in index 7" in found("infinite values", table, labels)[0].text


def test_numbers_with_words_and_units():
    table, labels = penguins()
    odd = np.array([f"{x}" for x in table["mass"].round(1)], dtype=object)
    odd[3] = "unknown"
    price = np.array([f"${x}" for x in table["mass"].round(1)], dtype=object)
    assert kinds({**table, "odd": odd, "price": price}, labels)[-1:] == ["numbers and text"]
    assert found("units", {"price": price, **table}, labels)[0].columns == ("price",)


def test_every_row_twice():
    table, labels = penguins(150)
    twice = {name: np.concatenate([values, values]) for name, values in table.items()}
    finding = found("duplicates", twice, np.concatenate([labels, labels]))[0]
    assert "Every row is there 2 times or more: 300 rows, of which 150 are different" in finding.text
    assert finding.rows == (0, 150)


def test_copies_are_found_behind_a_column_of_row_numbers():
    table, labels = penguins(150)
    twice = {name: np.concatenate([values, values]) for name, values in table.items()}
    findings = kinds({"id": np.arange(300), **twice}, np.concatenate([labels, labels]))
    assert findings == ["duplicates", "row names"]


def test_some_copies_and_copies_that_disagree():
    table, labels = penguins()
    for name in table:
        table[name][:20] = table[name][100:120]
    labels[:14] = labels[100:114]
    labels[14:20] = np.where(labels[114:120] == "Gentoo", "Adelie", "Gentoo")
    copies = found("duplicates", table, labels)[0]
    assert "14 of 300 rows are copies of another row with the same label" in copies.text
    disagreeing = found("disagreeing duplicates", table, labels)[0]
    assert "12 rows have the same features as another row, but labels that disagree" in disagreeing.text
    assert "at least 6 labels (2.0 %) are wrong" in disagreeing.text


def test_equal_rows_of_few_categories_are_no_copies():
    """Of three columns with few values, most rows are equal to others, and labels overlap: that is no mistake."""
    draw = np.random.default_rng(0)
    label = draw.integers(0, 2, 2000)
    sex, age = (draw.random(2000) < 0.3 + 0.4 * label).astype(float), draw.integers(0, 4, 2000) + label
    table = {"sex": sex, "age": age, "class": draw.integers(1, 4, 2000).astype(float)}
    assert kinds(table, label) == []


def test_near_copies():
    table, labels = penguins()
    draw = np.random.default_rng(1)
    for name in ("mass", "flipper", "bill"):
        table[name][:40] = table[name][100:140] * (1 + 1e-6 * draw.normal(size=40))
    table["island"][:40] = table["island"][100:140]
    finding = found("near duplicates", table, labels)[0]
    assert "nearly equal to another row" in finding.text
    twice = {n: np.concatenate([v, v * 1.0000001 if v.dtype.kind == "f" else v]) for n, v in penguins(150)[0].items()}
    assert "near duplicates" in kinds(twice, np.concatenate([labels[:150], labels[:150]]))


def test_leaks():
    table, labels = penguins()
    copy = np.array([str(label).upper() for label in labels], dtype=object)
    number = np.where(labels == "Gentoo", 3.0, np.where(labels == "Adelie", 7.0, 1.0))
    blurred = number + np.random.default_rng(0).uniform(-0.4, 0.4, 300)
    for column in (copy, number, blurred):
        assert found("leak", {**table, "late": column}, labels)[0].columns == ("late",)
    wrong = copy.copy()
    wrong[:90] = np.random.default_rng(0).permutation(copy[:90])
    assert "holds the names of the classes" in found("leak", {**table, "old": wrong}, labels)[0].text


def test_a_good_column_is_no_leak():
    table, labels = penguins()
    good = np.where(labels == "Gentoo", 3.0, 0.0) + np.random.default_rng(0).normal(size=300)
    answer = np.array(["yes", "no"], dtype=object)
    label = answer[np.random.default_rng(1).integers(0, 2, 300)]
    assert "leak" not in kinds({**table, "good": good}, labels)
    assert "leak" not in kinds({**table, "asked": answer[np.random.default_rng(2).integers(0, 2, 300)]}, label)


def test_a_column_alone_against_a_plain_loop():
    draw = np.random.default_rng(0)
    codes = draw.integers(0, 3, 60)
    for values in (draw.integers(0, 6, 60).astype(float), draw.integers(0, 25, 60).astype(float)):
        expected = []
        for i in range(60):
            others = [codes[j] for j in range(60) if j != i and values[j] == values[i]]
            most = max((others.count(c) for c in range(3)), default=0)
            everyone = [codes[j] for j in range(60) if values[j] == values[i]]
            top = min(range(3), key=lambda c: (-everyone.count(c), c))
            expected.append(bool(others) and codes[i] == top and others.count(top) == most)
        assert right_alone(values, codes).tolist() == expected
    assert skill(np.array([True, True, False, True]), np.array([0, 0, 1, 1])) == 0.5


def test_hashes_are_equal_where_rows_are():
    a, b = np.array([1.0, 1.0, -0.0, np.nan, 2.0]), np.array(["x", "x", None, "y", ""], dtype=object)
    table = row_hashes([np.concatenate([a, a + 0.0]), np.concatenate([b, b])], 10)
    assert table[:5].tolist() == table[5:].tolist()
    assert len(set(table[1:5].tolist())) == 4
    assert row_hashes([np.array([0.0]), np.array([1.0])], 1) != row_hashes([np.array([1.0]), np.array([0.0])], 1)
