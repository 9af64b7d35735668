"""Training strategies, one in a file."""

from postmax.methods.catalogue import get, names, register, summary
from postmax.methods.method import Method, Setting, Step

__all__ = ["Method", "Setting", "Step", "get", "names", "register", "summary"]
