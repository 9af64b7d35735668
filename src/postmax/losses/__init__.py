"""Losses as Modules: thin classes over `postmax.functional`."""

from postmax.losses.catalogue import PosteriorLoss, get, names, register, summary
from postmax.losses.fpml import FPMLLoss

__all__ = ["FPMLLoss", "PosteriorLoss", "get", "names", "register", "summary"]
