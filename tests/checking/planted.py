"""A clean table, and ways to plant one mistake in it."""

import numpy as np

import postmax as pm

NAMES = np.array(["Adelie", "Gentoo", "Chinstrap"], dtype=object)


def penguins(rows=300, seed=0):
    """A table of which nothing is to be said: three classes that overlap, numbers and a category."""
    draw = np.random.default_rng(seed)
    kind = draw.integers(0, 3, rows)
    table = {
        "mass": (draw.normal(4, 0.5, rows) + 0.6 * (kind == 1)).round(3),
        "flipper": (draw.normal(190, 6, rows) + 8.0 * kind).round(2),
        "bill": draw.normal(40, 5, rows).round(2),
        "island": np.array(["Biscoe", "Dream", "Torgersen"], dtype=object)[draw.integers(0, 3, rows)],
    }
    return table, NAMES[kind]


def kinds(table, labels, **options):
    return [finding.kind for finding in pm.check(table, labels, **options)]


def found(kind, table, labels, **options):
    """The only findings of this kind; there must be one at least."""
    findings = [finding for finding in pm.check(table, labels, **options) if finding.kind == kind]
    assert findings, f"no finding {kind!r}"
    return findings


def write(path, table, labels):
    """Write a table with the column species, and return its path."""
    columns = {**table, "species": labels}
    rows = zip(*columns.values(), strict=True)
    cells = (",".join("" if v is None or v != v else str(v) for v in row) for row in rows)
    path.write_text("\n".join([",".join(columns), *cells]) + "\n")
    return path
