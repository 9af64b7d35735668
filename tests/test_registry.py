"""Names: found whatever their spelling, taken once, suggested when wrong, refused with a reason."""

import pytest

from postmax.errors import InputError, LabelError
from postmax.registry import Registry, resolve


@pytest.fixture
def shapes():
    registry = Registry("shape")
    registry.add(3, "triangle", aliases=("three sides",))
    registry.add(4, "square")
    registry.refuse("it has no corners.", "circle")
    return registry


@pytest.mark.parametrize("name", ["triangle", "Triangle", "three sides", "THREE-SIDES", "three_sides"])
def test_spelling_does_not_matter(shapes, name):
    assert shapes.get(name) == 3


def test_names_are_listed_without_aliases(shapes):
    assert shapes.names() == ("triangle", "square")


@pytest.mark.parametrize("name", ["square", "Three Sides"])
def test_a_name_is_taken_once(shapes, name):
    with pytest.raises(InputError, match="is taken"):
        shapes.add(5, name)
    assert shapes.names() == ("triangle", "square")


def test_wrong_names_are_answered_helpfully(shapes):
    with pytest.raises(InputError, match=r"unknown shape 'squar'\. Did you mean 'square'"):
        shapes.get("squar")
    with pytest.raises(InputError, match="Known: square, triangle"):
        shapes.get("zzz")
    with pytest.raises(InputError, match="refused: it has no corners"):
        shapes.get("Circle")


def test_resolve_takes_a_value_or_its_name(shapes):
    assert resolve(7, int, shapes.get) == 7
    assert resolve("square", int, shapes.get) == 4
    with pytest.raises(InputError, match="expected a int or its name, got list"):
        resolve([], int, shapes.get)


def test_errors_are_what_callers_of_torch_catch():
    assert issubclass(InputError, ValueError)
    assert issubclass(InputError, RuntimeError)
    assert issubclass(LabelError, IndexError)
