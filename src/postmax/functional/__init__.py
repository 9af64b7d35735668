"""Losses as functions: one for each Module in `postmax.losses`."""

from postmax.functional.fpml import fpml_loss

__all__ = ["fpml_loss"]
