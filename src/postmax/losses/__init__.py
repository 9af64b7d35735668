"""Losses: by name, as Modules, and as terms from which new ones are made.

`get` finds a loss by name, `names` lists all of them, and `register` adds one. Losses can be weighed and added:
`5 * get("nce") + 5 * get("mae")`.
"""

from postmax.losses.base import Loss
from postmax.losses.catalogue import (
    check_names,
    describe,
    get,
    names,
    needs_transition,
    option_names,
    register,
    register_sum,
    summary,
)
from postmax.losses.catalogue import published as preset
from postmax.losses.dmi import DMILoss
from postmax.losses.facts import Facts, Preset
from postmax.losses.fpml import FPMLLoss
from postmax.losses.l1 import l1_penalty
from postmax.losses.term import LabelledLogits, Term
from postmax.losses.term_loss import TermLoss

__all__ = [
    "DMILoss",
    "FPMLLoss",
    "Facts",
    "LabelledLogits",
    "Loss",
    "Preset",
    "Term",
    "TermLoss",
    "check_names",
    "describe",
    "get",
    "l1_penalty",
    "names",
    "needs_transition",
    "option_names",
    "preset",
    "register",
    "register_sum",
    "summary",
]
