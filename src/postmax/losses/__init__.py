"""Losses as Modules: thin classes over `postmax.functional`."""

from postmax.losses.base import Loss
from postmax.losses.catalogue import PosteriorLoss, describe, get, names, needs_transition, preset, register, summary
from postmax.losses.cost import CostLoss
from postmax.losses.dmi import DMILoss
from postmax.losses.fpml import FPMLLoss
from postmax.losses.l1 import l1_penalty

__all__ = [
    "CostLoss",
    "DMILoss",
    "FPMLLoss",
    "Loss",
    "PosteriorLoss",
    "describe",
    "get",
    "l1_penalty",
    "names",
    "needs_transition",
    "preset",
    "register",
    "summary",
]
