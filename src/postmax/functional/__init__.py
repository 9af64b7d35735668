"""Losses as functions: one for each Module in `postmax.losses`."""

from postmax.functional.cost import cost_loss
from postmax.functional.dmi import dmi_loss
from postmax.functional.fpml import fpml_loss

__all__ = ["cost_loss", "dmi_loss", "fpml_loss"]
