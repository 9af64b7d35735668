"""Files as people have them: each is read right, or refused with one clear sentence.

`CASES` is a list of `Case`: a name, a function that writes a file or folder, and what must become of it. Other tests
import it: every command that reads data must go through all of them without a traceback.
"""

import gzip
import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

ROWS = 60


@dataclass(frozen=True)
class Case:
    """A file.

    Attributes:
        name: What is nasty about it.
        write: Writes it into a folder, and returns its path.
        refused: What the only error says; None if the file can be read.
        options: Options of the command line with which it is read.
        inputs: The first feature of the first rows, if the file is read.
        classes: The names of the classes, if the file is read.
        rows: How many rows are read.
        kinds: Kinds of findings that `check` must have; other ones it may have.
        checked: Whether `check` reads the file, where other commands refuse it.
    """

    name: str
    write: Callable
    refused: str | None = None
    options: tuple = ()
    inputs: tuple = ()
    classes: tuple = ("a", "b")
    rows: int = ROWS
    kinds: tuple = ()
    checked: bool = False


def values(count=ROWS):
    """Numbers that tell the label in most rows."""
    drawn = np.random.default_rng(0).normal(size=count) + 1.5 * (np.arange(count) % 2)
    return [0.0, 1.25, *drawn.round(2)[2:].tolist()]


def lines(head="x,label", row="{x},{y}", count=ROWS):
    return [head, *(row.format(i=i, x=x, y="ab"[i % 2], z=i % 5) for i, x in enumerate(values(count)))]


def text(name="t.csv", encoding="utf-8", end="\n", **more):
    """A writer of a text file."""

    def write(folder):
        path = folder / name
        path.write_bytes((end.join(lines(**more)) + end).encode(encoding))
        return path

    return write


def raw(content, name="t.csv"):
    """A writer of bytes, or of text in UTF-8."""

    def write(folder):
        path = folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def body(head="x,label", row="{x},{y}", count=ROWS, extra=()):
    return "\n".join([*lines(head, row, count), *extra]) + "\n"


def parquet(columns, name="t.parquet"):
    """A writer of a Parquet file; `columns` gives its columns."""

    def write(folder):
        pq.write_table(pa.table(columns()), folder / name)
        return folder / name

    return write


def labels(count=ROWS):
    return ["ab"[i % 2] for i in range(count)]


def npz(name="t.npz", **arrays):
    def write(folder):
        with (folder / name).open("wb") as file:
            np.savez(file, **arrays)
        return folder / name

    return write


def picture(path, mode="RGB", size=(12, 8), colour=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    if mode == "I;16":
        Image.fromarray(np.full(size[::-1], 30000, np.uint16)).save(path)
    else:
        Image.new(mode, size, colour).save(path)


def images(change=lambda folder: None, classes=("cat", "dog"), each=12):
    """A writer of a folder of images, which `change` spoils."""

    def write(folder):
        place = folder / "pictures"
        for number, name in enumerate(classes):
            for i in range(each):
                picture(place / name / f"{i}.png", colour=(i * 20, 100 * number, 7 * i))
        change(place)
        return place

    return write


def _spreadsheet():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
    return buffer.getvalue()


def _kinds_of_images(place):
    for mode, name in (("L", "grey.png"), ("RGBA", "clear.png"), ("P", "palette.png"), ("I;16", "deep.png")):
        picture(place / "cat" / name, mode)


def _broken(place):
    (place / "cat" / "broken.png").write_bytes((place / "cat" / "1.png").read_bytes()[:40])
    (place / "dog" / "page.jpg").write_text("<html>404</html>")


def _all_broken(place):
    for path in place.glob("*/*.png"):
        path.write_bytes(b"\x89PNG nothing")


def _hidden(place):
    for name in (".DS_Store", "cat/Thumbs.db", "dog/._1.png", ".git/config"):
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_bytes(b"litter")


def _folder_for_a_file(folder):
    (folder / "t.csv").mkdir()
    return folder / "t.csv"


X = np.array(values(), np.float32)[:, None]
OBJECTS = np.array([{"a": 1}] * ROWS, dtype=object)

TEXTS = [
    Case("empty", raw(""), refused="t.csv is empty"),
    Case("blank lines only", raw("\n\n\n"), refused="it is empty"),
    Case("header only", raw("x,label\n"), refused="it has a header but no rows"),
    Case("a line of numbers in place of the header", raw("1,2\n3,4\n5,6\n"), refused="which column holds the labels?"),
    Case("no label column", text(head="x,kind"), refused="--label kind"),
    Case("label misspelt", text(), refused="Did you mean 'label'?", options=("--label", "lable")),
    Case(
        "one class",
        text(row="{x},a"),
        refused="column 'label' has one class only, 'a'",
        classes=("a",),
        checked=True,
    ),
    Case("UTF-8 with a mark", text(encoding="utf-8-sig"), inputs=(0.0, 1.25)),
    Case("UTF-16 with a mark", text(encoding="utf-16"), inputs=(0.0, 1.25)),
    Case("UTF-16 without a mark", text(encoding="utf-16-le"), refused="--encoding utf-16-le"),
    Case("Latin-1", text(encoding="latin-1", row="{x},{y}é"), refused="--encoding cp1252"),
    Case(
        "Latin-1, said",
        text(encoding="latin-1", row="{x},{y}é"),
        options=("--encoding", "latin-1"),
        inputs=(0.0, 1.25),
        classes=("aé", "bé"),
    ),
    Case("zero bytes", raw(body().encode().replace(b"1.25", b"1\x0025", 1)), refused="line 3 contains zero bytes"),
    Case("semicolons", text(head="x;label", row="{x};{y}"), inputs=(0.0, 1.25)),
    Case("tabs", text(name="t.tsv", head="x\tlabel", row="{x}\t{y}"), inputs=(0.0, 1.25)),
    Case("bars", text(name="t.txt", head="x|label", row="{x}|{y}"), inputs=(0.0, 1.25)),
    Case(
        "decimal commas",
        raw(body("x;label", "{x};{y}").replace(".", ",")),
        refused="--decimal ,",
        checked=True,
        kinds=("not usable",),
    ),
    Case(
        "decimal commas, said",
        raw(body("x;label", "{x};{y}").replace(".", ",")),
        options=("--decimal", ","),
        inputs=(0.0, 1.25),
    ),
    Case(
        "thousands separators",
        text(head="x;label", row="1{z},000;{y}"),
        refused="if they separate thousands",
        checked=True,
    ),
    Case(
        "duplicate headers",
        text(head="x,x,z,label", row="{x},{x},{z},{y}"),
        refused="2 columns are called 'x'",
        checked=True,
        kinds=("not usable",),
    ),
    Case(
        "ragged rows",
        raw(body(extra=["1,a,9", "2"])),
        refused="line 62 has 3 cells, the header has 2",
        checked=True,
        kinds=("not usable",),
    ),
    Case("a quote that is not closed", raw(body(extra=['"1,a', "2,b"])), refused="line 62 opens a quote"),
    Case("quotes, commas and line breaks in cells", raw(body(extra=['3,"a"', '"4",b'])), rows=62, inputs=(0.0, 1.25)),
    Case(
        "dates as a feature",
        text(head="day,x,label", row="2024-01-{z}1,{x},{y}"),
        kinds=("dates",),
    ),
    Case(
        "dates as labels",
        text(head="x,label", row="{x},2024-03-1{z}"),
        kinds=("dates",),
        classes=tuple(f"2024-03-1{i}" for i in range(5)),
    ),
    Case(
        "a label for each row",
        text(row="{x},name {i}"),
        refused="a label of its own for each of the 60 rows",
        checked=True,
        kinds=("near-unique labels",),
        classes=(),
    ),
    Case("a number as label", text(row="{x},{i}.5"), refused="numbers with a fractional part look like a regression"),
    Case("constant columns", text(head="c,x,label", row="7,{x},{y}"), inputs=(7.0, 7.0), kinds=("constant columns",)),
    Case("spaces in header names", text(head=" the x , label ", row="{x},{y}"), inputs=(0.0, 1.25)),
    Case("an empty column name", text(head=",x,label", row="{i},{x},{y}"), inputs=(0.0, 1.0), kinds=("row names",)),
    Case(
        "two columns without a name",
        text(head=",,x,label", row="{i},{z},{x},{y}"),
        refused="2 columns have no name",
        checked=True,
    ),
    Case(
        "huge whole numbers",
        text(head="n,x,label", row="{i}00000000000000000000,{x},{y}"),
        inputs=(0.0, 1e20),
    ),
    Case(
        "1e400", raw(body(extra=["1e400,a"])), refused="inf in line 62, too large for a feature", checked=True, rows=61
    ),
    Case(
        "the text inf",
        raw(body(extra=["inf,a"])),
        refused="inf in line 62, too large for a feature",
        checked=True,
        rows=61,
    ),
    Case("the text NaN", raw(body(extra=["NaN,a"])), refused="--missing median", checked=True, rows=61),
    Case(
        "the text NaN, filled in",
        raw(body(extra=["NaN,a"])),
        options=("--missing", "median"),
        rows=61,
    ),
    Case("a missing label", raw(body(extra=["1,"])), refused="line 62 has no label", checked=True),
    Case("per cent signs", text(head="p,x,label", row="{z} %,{x},{y}"), inputs=(1.0, 0.0), kinds=("units",)),
    Case("currency", text(head="p,x,label", row="${z},{x},{y}"), inputs=(1.0, 0.0), kinds=("units",)),
    Case(
        "a delimiter at the end of each line",
        text(head="x,label,", row="{x},{y},"),
        refused="column '' has no values",
        checked=True,
    ),
    Case(
        "a comment on top",
        raw("# made by a program\n" + body()),
        refused="line 1 looks like a comment ('# made by a program'), but it must name the columns. Delete the line.",
    ),
    Case("Windows line ends", text(end="\r\n"), inputs=(0.0, 1.25)),
    Case("old Mac line ends", text(end="\r"), inputs=(0.0, 1.25)),
    Case("mixed line ends", raw(body().replace("\n", "\r\n", 20)), inputs=(0.0, 1.25)),
    Case("no line end at the end", raw(body().rstrip("\n")), inputs=(0.0, 1.25)),
    Case("blank lines at the end", raw(body() + "\n\n\n"), inputs=(0.0, 1.25)),
    Case("a blank line inside", raw(body().replace("\n", "\n\n", 3)), refused="blank", checked=True),
    Case("a spreadsheet", raw(_spreadsheet()), refused="a zip archive or a spreadsheet"),
    Case("compressed", raw(gzip.compress(body().encode())), refused="compressed with gzip"),
    Case(
        "a web page",
        raw("<!DOCTYPE html>\n<html><body>x,label</body></html>\n"),
        refused="it is not a table but a web page (HTML)",
    ),
    Case(
        "JSON", raw(json.dumps([{"x": 1, "label": "a"}, {"x": 2, "label": "b"}])), refused="it is not a table but JSON"
    ),
    Case("JSON in lines", raw('{"x": 1, "label": "a"}\n' * ROWS), refused="it is not a table but JSON"),
    Case("a folder", _folder_for_a_file, refused="is a folder; a file was expected"),
    Case("an unknown ending", raw(body(), "t.data"), refused="has an unknown format"),
    Case("missing", lambda folder: folder / "absent.csv", refused="does not exist"),
    Case(
        "labels in many spellings",
        raw(body(extra=["1,A", "2,B ", "3,a", "4,b"])),
        rows=64,
        classes=("A", "B", "a", "b"),
        kinds=("spelling",),
    ),
    Case(
        "labels in many spellings, merged",
        raw(body(extra=["1,A", "2,B ", "3,a", "4,b"])),
        options=("--merge-labels",),
        rows=64,
    ),
    Case("numbers with a word among them", raw(body(extra=["unknown,a", "1,b"])), rows=62, kinds=("numbers and text",)),
]

TABLES = [
    Case(
        "no rows",
        parquet(lambda: {"x": pa.array([], pa.float64()), "label": pa.array([], pa.string())}),
        refused="it has no rows",
    ),
    Case("numbers and words", parquet(lambda: {"x": values(), "label": labels()}), inputs=(0.0, 1.25)),
    Case(
        "lists in cells",
        parquet(lambda: {"x": values(), "v": [[1.0, 2.0]] * ROWS, "label": labels()}),
        refused="column 'v' is of type list",
        checked=True,
    ),
    Case(
        "records in cells",
        parquet(lambda: {"x": values(), "v": [{"a": 1}] * ROWS, "label": labels()}),
        refused="column 'v' is of type struct",
        checked=True,
    ),
    Case(
        "a dictionary column",
        parquet(lambda: {"x": values(), "label": pa.array(labels()).dictionary_encode()}),
        inputs=(0.0, 1.25),
    ),
    Case(
        "nulls",
        parquet(lambda: {"x": [None, *values()[1:]], "label": labels()}),
        refused="has no value in the 1st row",
        checked=True,
        kinds=("not usable",),
    ),
    Case(
        "a null label",
        parquet(lambda: {"x": values(), "label": [None, *labels()[1:]]}),
        refused="the 1st row has no label",
        checked=True,
        rows=59,
    ),
    Case(
        "times",
        parquet(
            lambda: {
                "x": values(),
                "t": pa.array([10**9 * i for i in range(ROWS)], pa.timestamp("ns")),
                "label": labels(),
            }
        ),
        refused="column 't' is of type timestamp",
        checked=True,
    ),
    Case(
        "decimals",
        parquet(lambda: {"x": pa.array([f"{x:.2f}" for x in values()]).cast(pa.decimal128(8, 2)), "label": labels()}),
        inputs=(0.0, 1.25),
    ),
    Case(
        "truth values",
        parquet(lambda: {"x": [i % 3 == 0 for i in range(ROWS)], "label": labels()}),
        inputs=(1.0, 0.0),
    ),
    Case(
        "only nulls",
        parquet(lambda: {"x": values(), "n": pa.nulls(ROWS), "label": labels()}),
        refused="--drop n",
        checked=True,
    ),
    Case("not Parquet", raw("x,label\n1,a\n", "t.parquet"), refused="is not a Parquet file"),
    Case("cut off", raw(b"PAR1" + bytes(100), "t.parquet"), refused="is not a Parquet file"),
]

ARRAYS = [
    Case("features and labels", npz(x=X, y=labels()), inputs=(0.0, 1.25)),
    Case("no labels", npz(x=X), refused="which array holds the labels?"),
    Case("objects", npz(x=X, y=OBJECTS), refused="holds Python objects, which could run code"),
    Case("other lengths", npz(x=X, y=labels(59)), refused="x has 60 rows but 59 labels are in y"),
    Case("not a number", npz(x=np.where(X > 2, np.nan, X), y=labels()), refused="is nan at index 0"),
    Case(
        "three dimensions",
        npz(x=np.zeros((ROWS, 4, 4), np.float32), y=labels()),
        refused="neither features (N, d) nor images",
    ),
    Case("no features", npz(x=np.zeros((ROWS, 0), np.float32), y=labels()), refused="no features"),
    Case("no rows at all", npz(x=np.zeros((0, 3), np.float32), y=np.zeros(0, np.int64)), refused="there are no rows"),
    Case("no archive", raw(b"PK\x03\x04 but nothing else", "t.npz"), refused="is not a complete .npz file"),
    Case(
        "one class in arrays",
        npz(x=X, y=["a"] * ROWS),
        refused="one class only, 'a'",
        classes=("a",),
        checked=True,
        kinds=("one class",),
    ),
]

PICTURES = {"classes": ("cat", "dog"), "rows": 24}
FOLDERS = [
    Case("a folder of images", images(), **PICTURES),
    Case("images that cannot be read", images(_broken), kinds=("unreadable images",), **PICTURES),
    Case("no image can be read", images(_all_broken), refused="none of its 24 images can be read"),
    Case("an empty class", images(lambda p: (p / "bird").mkdir()), refused="bird has no images"),
    Case("hidden files", images(_hidden), **PICTURES),
    Case(
        "images of several sizes",
        images(lambda p: picture(p / "cat" / "wide.png", size=(30, 9))),
        refused="Give a size to bring them to",
        checked=True,
        kinds=("image sizes",),
        classes=("cat", "dog"),
        rows=25,
    ),
    Case("images of several kinds", images(_kinds_of_images), classes=("cat", "dog"), rows=28),
    Case(
        "one class of images",
        images(classes=("cat",)),
        refused="one class only, 'cat'",
        classes=("cat",),
        checked=True,
        rows=12,
    ),
    Case("no classes", images(classes=("",)), refused="has no subfolders"),
    Case(
        "an empty folder",
        lambda folder: (folder / "pictures").mkdir() or folder / "pictures",
        refused="has no subfolders",
    ),
    Case(
        "a text among images",
        images(lambda p: (p / "cat" / "notes.txt").write_text("x")),
        refused="is not an image of a known format",
    ),
]

CASES = [*TEXTS, *TABLES, *ARRAYS, *FOLDERS]
