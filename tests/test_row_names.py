"""Rows have one name in all messages: the line, the place or the index."""

import pytest

from postmax.row_names import INDICES, PLACES, RowNames


@pytest.mark.parametrize(
    ("number", "word"),
    [
        (1, "1st"),
        (2, "2nd"),
        (3, "3rd"),
        (4, "4th"),
        (11, "11th"),
        (12, "12th"),
        (13, "13th"),
        (22, "22nd"),
        (111, "111th"),
    ],
)
def test_places_are_counted_from_the_first(number, word):
    assert PLACES.one(number - 1) == f"the {word} row"


def test_indices_are_those_of_python():
    assert (INDICES.one(0), INDICES.some([7]), INDICES.some([0, 3])) == ("index 0", "index 7", "indices 0, 3")


def test_lines_are_those_of_the_file():
    lines = RowNames("line", [2, 5, 9])
    assert (lines.one(1), lines.some([0]), lines.some([0, 2])) == ("line 5", "line 2", "lines 2, 9")


def test_of_many_rows_the_first_five_are_named():
    assert PLACES.some(range(5)) == "the 1st, 2nd, 3rd, 4th, 5th rows"
    assert INDICES.some(range(6)) == "indices 0, 1, 2, 3, 4, …"
