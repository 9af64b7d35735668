"""Tables of results: what a table is, which runs fill it, and the finished table with its statistics.

The tables of the paper are YAML files in the folder `definitions`. A package of your own adds its tables with
`register`.
"""

from postmax.tables.catalogue import load, names, register, summary
from postmax.tables.spec import TableSpec

__all__ = ["TableSpec", "load", "names", "register", "summary"]
