"""Numerical functions that loss terms share. Their values and derivatives keep all digits for every logit."""
