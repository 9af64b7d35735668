"""Robust losses as values: what a label costs, given a row of logits."""

from postmax.costs.base import Cost, Rows, Sum
from postmax.costs.catalogue import Facts, Preset, get, names, published, register, register_sum

__all__ = ["Cost", "Facts", "Preset", "Rows", "Sum", "get", "names", "published", "register", "register_sum"]
