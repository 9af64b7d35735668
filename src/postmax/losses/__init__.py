"""Losses as Modules: thin classes over `postmax.functional`."""

from postmax.losses.fpml import FPMLLoss

__all__ = ["FPMLLoss"]
