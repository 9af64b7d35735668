"""The version of postmax."""

__version__ = "0.1.0"
