"""Classes with few rows, and one class with nearly all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from postmax.checking.catalogue import register
from postmax.checking.examined import Examined
from postmax.checking.finding import Finding
from postmax.data.label_text import spelling
from postmax.tabular.candidates import fold_count

_SHOWN = 5
_NEARLY_ALL, _FEW_ROWS = 0.9, 50


def find(data: Examined) -> Iterator[Finding]:
    """Yield the classes with fewer rows than there are folds, and a class that nearly all rows have."""
    counts = {name: count for name, count in data.counts.items() if count}
    least = fold_count(None, data.total)
    # A label that is also written in another way may have enough rows in all.
    together = Counter({spelling(name): 0 for name in counts})
    for name, count in counts.items():
        together[spelling(name)] += count
    small = sorted((count, name) for name, count in counts.items() if together[spelling(name)] < least)
    columns = () if data.label is None else (data.label,)
    if len(counts) == 1:
        text = f"All rows have the same label, {next(iter(counts))[:60]!r}: there is nothing to tell apart."
        yield Finding("one class", text, "Add rows of other classes, or take another label.", columns)
    # Where most classes are small, the labels are no classes, which is said elsewhere.
    if small and data.total >= least * 2 and 2 * len(small) <= max(len(counts), 2):
        shown = ", ".join(f"{name[:60]!r} ({count} row{'s' * (count != 1)})" for count, name in small[:_SHOWN])
        more = f" and {len(small) - _SHOWN:,} more" if len(small) > _SHOWN else ""
        several = len(small) > 1
        what = f"Classes {shown}{more} have" if several else f"Class {shown} has"
        it = "they" if several else "it"
        text = f"{what} fewer than {least} rows, so {it} cannot be learnt and judged in {least} parts of the data."
        names = {name for _, name in small}
        rows = [place for place, code in enumerate(data.codes.tolist()) if data.classes[code] in names]
        remedy = "Add rows, delete them, or give them the label of another class."
        yield Finding("tiny classes", text, remedy, columns, data.at(rows), "note")
    name, most = max(counts.items(), key=lambda entry: entry[1])
    share = most / data.total
    if len(counts) > 1 and data.total >= _FEW_ROWS and share >= _NEARLY_ALL:
        text = f"{share:.1%} of the rows have the label {name[:60]!r}: a model that always says so is right as often."
        remedy = "Judge a model by the other classes too, not by its accuracy alone."
        yield Finding("imbalance", text.replace("%", " %"), remedy, columns, severity="note")


register("class sizes", find, order=30)
