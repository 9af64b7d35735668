"""Training strategies. Each is one file that registers itself."""

from postmax.methods.catalogue import describe, get, names, register, summary
from postmax.methods.facts import Facts, Preset
from postmax.methods.method import Epoch, Method, Setup, Step

__all__ = ["Epoch", "Facts", "Method", "Preset", "Setup", "Step", "describe", "get", "names", "register", "summary"]
