"""Names: found whatever their spelling, taken once, suggested when wrong, refused with a reason."""

import importlib
import subprocess
import sys

import pytest

from postmax.errors import InputError, LabelError
from postmax.registry import Registry, check_options, nearest, options_of, resolve, unknown_name


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


CELL = """
shapes.add({corners}, "mine", aliases=({alias!r},))
"""


def run_cell(shapes, module="__main__", corners=5, alias="my-shape", name="<module>"):
    """Run a cell of a notebook. Old versions of IPython give its code another name."""
    code = compile(CELL.format(corners=corners, alias=alias), "<cell>", "exec").replace(co_name=name)
    exec(code, {"__name__": module, "shapes": shapes})


@pytest.mark.parametrize("name", ["<module>", "<cell line: 2>"])
def test_a_cell_of_a_notebook_can_run_again(shapes, name):
    run_cell(shapes, name=name)
    run_cell(shapes, name=name, corners=6, alias="own-shape")
    assert (shapes.get("mine"), shapes.get("own-shape")) == (6, 6)
    assert shapes.names() == ("triangle", "square", "mine")
    assert "my-shape" not in shapes


@pytest.mark.parametrize(("first", "second"), [("plugin", "__main__"), ("__main__", "plugin"), ("plugin", "plugin")])
def test_a_module_replaces_nothing(shapes, first, second):
    run_cell(shapes, module=first)
    with pytest.raises(InputError, match=f"'mine' is taken by {first}, so {second} cannot register it"):
        run_cell(shapes, module=second, corners=6)
    assert shapes.get("mine") == 5


def test_a_cell_replaces_no_other_name(shapes):
    run_cell(shapes)
    with pytest.raises(InputError, match="'mine' is taken by __main__"):
        exec('shapes.add(7, "yours", aliases=("mine",))', {"__name__": "__main__", "shapes": shapes})
    assert shapes.get("mine") == 5


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


def test_the_order_of_names_can_be_given():
    registry = Registry("shape")
    registry.add(4, "square")
    registry.add(1, "circle", order=2)
    registry.add(3, "triangle", order=1)
    registry.add(5, "pentagon")
    assert registry.names() == ("triangle", "circle", "square", "pentagon")


def test_options_are_the_keyword_only_parameters():
    def build(shape, *, width=32, init="torch"): ...

    assert dict(options_of(build)) == {"width": 32, "init": "torch"}
    check_options("small", ["width"], options_of(build))
    with pytest.raises(InputError, match=r"unknown option of small 'widht'\. Did you mean 'width'"):
        check_options("small", ["width", "widht"], options_of(build))
    with pytest.raises(InputError, match="small has no options, so 'width' cannot be one"):
        check_options("small", ["width"], ())


KINDS = {
    "divergences": "register('new-one', lambda: None, summary='new')",
    "models": "register('new-one', lambda shape, k: None, summary='new')",
    "data": "register('new-one', lambda request: None)",
    "estimation": "register('new-one', object(), summary='new')",
}


def test_one_file_in_a_package_is_enough(tmp_path):
    """A file in the folder of a package is found, registers its value, and may be imported before all others."""
    code = ["import sys"]
    for kind, text in KINDS.items():
        folder = tmp_path / kind
        folder.mkdir()
        (folder / "zz_new_file.py").write_text(f"from postmax.{kind}.catalogue import register\n{text}")
        code += [f"import postmax.{kind} as room", f"room.__path__.append({str(folder)!r})"]
        code += ["print('new-one' in room.names(), len(room.names()) > 4)"]
        code += [f"print(sys.modules['postmax.{kind}.zz_new_file'].__name__)"]
    done = subprocess.run([sys.executable, "-c", "\n".join(code)], capture_output=True, text=True, check=True)
    expected = [line for kind in KINDS for line in ("True True", f"postmax.{kind}.zz_new_file")]
    assert done.stdout.split("\n")[:-1] == expected


def test_a_package_is_searched_again_if_a_module_fails(tmp_path, monkeypatch):
    package = tmp_path / "shapes_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "square.py").write_text("raise RuntimeError('not yet')")
    monkeypatch.syspath_prepend(tmp_path)
    registry = Registry("shape", package="shapes_package")
    for _ in range(2):
        with pytest.raises(RuntimeError, match="not yet"):
            registry.names()


def test_a_name_from_elsewhere_cannot_hide_one_of_the_package(tmp_path, monkeypatch):
    package = tmp_path / "forms_package"
    package.mkdir()
    (package / "__init__.py").write_text("from postmax.registry import Registry\nFORMS = Registry('form', __name__)")
    (package / "square.py").write_text("from forms_package import FORMS\nFORMS.add(4, 'square')")
    monkeypatch.syspath_prepend(tmp_path)
    forms = importlib.import_module("forms_package").FORMS
    with pytest.raises(InputError, match=r"the form name 'Square' is taken by forms_package\.square"):
        forms.add(5, "Square")
    assert forms.get("square") == 4
    assert forms.is_builtin("square")
    assert forms.owner("square") == "forms_package.square"


@pytest.mark.parametrize(
    ("given", "names", "found"),
    [
        ("specie", ["id", "Species"], "Species"),
        (" SPECIES", ["id", "specie"], "specie"),
        ("smal", ["smaller", "small"], "small"),
        ("x", ["id", "species"], None),
        ("x", [], None),
    ],
)
def test_the_nearest_name(given, names, found):
    assert nearest(given, names) == found


def test_a_name_in_capitals_is_suggested_too():
    assert "Did you mean 'KL'?" in str(unknown_name("row", "kll", ["KL", "SL"]))
