"""The result of a fit in sentences. The terminal and the page say the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from postmax.data.table_encoder import CategoryColumn, NumberColumn
from postmax.data.table_reading import TableReading
from postmax.fitting.fit import FitRecord
from postmax.report.numbers import interval_per_cent, one_per_cent, thousands

_EVEN = 1.25
# Beyond this width an interval is not an answer.
_WIDE, _SAYS_NOTHING = 0.3, 0.6


def data_in_words(record: FitRecord) -> str:
    """Return what the rows are."""
    classes = f"{len(record['classes'])} classes"
    if record["embedding"] is not None:
        return f"{thousands(record['rows'])} images, {classes}, as features of {record['embedding']}"
    if record["table"] is None:
        return f"{thousands(record['rows'])} rows of {thousands(record['features'])} features, {classes}"
    reading = TableReading.from_dict(record["table"])
    kinds = Counter(_KINDS.get(type(column), "text") for column in reading.encoder.columns)
    columns = " and ".join(
        f"{count} {'column' if count == 1 else 'columns'} of {kind}" for kind, count in kinds.items()
    )
    return f"{thousands(record['rows'])} rows, {columns}; label {reading.label!r} with {classes}"


# With fewer rows of a class, chance is large.
_FEW_OF_CLASS = 30
_KINDS: dict[type, str] = {NumberColumn: "numbers", CategoryColumn: "categories"}
_CANNOT_TELL = "cannot be told, because the features say nothing about the labels"


def noise_in_words(record: FitRecord) -> str:
    """Return how many labels are wrong."""
    if record["cannot_tell"]:
        return _CANNOT_TELL
    low, high = record["estimate"]["noise_rate_interval"]
    count = round(record["estimate"]["noise_rate"] * record["rows"])
    rows = f"{thousands(count)} row{'s' * (count != 1)}"
    interval = interval_per_cent(low, high)
    found = f"about {one_per_cent(record['estimate']['noise_rate'])}, {rows} (95 % interval {interval})"
    if high - low <= _WIDE:
        return found
    few = record["rows"] < _FEW_OF_CLASS * len(record["classes"])
    why = "there are few rows" if few else "the features cannot tell ambiguous rows from mislabelled ones"
    return f"{found}. The interval is wide: {why}"


def accuracy_in_words(record: FitRecord) -> str:
    """Return how accurate the model is on right labels, and how that was found out."""
    if record["cannot_tell"]:
        return _CANNOT_TELL
    agreement = f"{one_per_cent(record['agreement'])} of the labels as given are predicted"
    if record["accuracy"] is None:
        return f"not known, because the noise is too strong; {agreement}"
    low, high = record["accuracy_interval"]
    if high - low > _SAYS_NOTHING:
        return f"cannot be told, because the noise rate is not known well enough; {agreement}"
    expected = (
        f"about {one_per_cent(record['accuracy'])} on right labels (95 % interval {interval_per_cent(low, high)})"
    )
    return f"{expected}; {agreement}"


ABOUT_ACCURACY = (
    "Each row was predicted by networks that did not see it. A prediction that agrees with its label counts for more "
    "than one, and a prediction that does not counts for less than zero, by the inverse of the transition matrix: so "
    "the mean is the accuracy on true classes. The interval contains the chance of the rows, and the interval of the "
    "noise rate. The model that was saved is the mean of these networks, so it is often a few points better."
)


def confusions_in_words(record: FitRecord) -> str:
    """Return which classes are taken for which; that they are spread evenly, if they are."""
    found = record["confusions"]
    if not found:
        return "none"
    k = len(record["classes"])
    if k > 2 and len(found) > 2 and found[0]["share"] < _EVEN * min(one["share"] for one in found):
        return "wrong labels are spread evenly over the classes"
    shown = [f"{one['true']} labelled {one['label']} {one_per_cent(one['share'])}" for one in found[:3]]
    return ", ".join(shown)


def left_out_in_words(columns: Sequence[str]) -> str:
    """Return which columns are left out."""
    return f"left out, because they hold names, dates or the like: {', '.join(columns)}"


def problems_in_words(count: int) -> str:
    """Return that the data have problems, because of which the numbers may be wrong."""
    which = "a problem was found" if count == 1 else f"{count} problems were found"
    return f"{which} in the data, so the numbers above may be wrong: see the page, or `postmax check`"
