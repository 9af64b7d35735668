"""f-divergences by name, by family, or from a function of your own.

Example:
    >>> import torch
    >>> from postmax import divergences
    >>> divergences.get("shifted log") == divergences.get("sl") == divergences.ShiftedLog(k=1)
    True
    >>> divergences.get("alpha:1.5").score(torch.zeros(1))  # a member of a family: its parameter follows the colon
    tensor([0.])
    >>> divergences.get("tv")
    Traceback (most recent call last):
    ...
    postmax.errors.InputError: divergence 'tv' is refused: total variation, f(u) = |u − 1|/2, is not strictly convex: \
f' takes two values only, so a score tells whether the posterior is above a threshold but never what it is.
"""

from __future__ import annotations

from postmax.divergences.alpha import Alpha
from postmax.divergences.base import Divergence, Tempered
from postmax.divergences.catalogue import get, names, parameter, register, summary
from postmax.divergences.gan import GAN
from postmax.divergences.hellinger import SquaredHellinger
from postmax.divergences.jeffreys import Jeffreys
from postmax.divergences.jensen_shannon import JensenShannon
from postmax.divergences.kl import KullbackLeibler
from postmax.divergences.le_cam import LeCam
from postmax.divergences.neyman import Neyman
from postmax.divergences.pearson import Pearson
from postmax.divergences.reverse_kl import ReverseKL
from postmax.divergences.shifted_log import ShiftedLog

__all__ = [
    "GAN",
    "Alpha",
    "Divergence",
    "Jeffreys",
    "JensenShannon",
    "KullbackLeibler",
    "LeCam",
    "Neyman",
    "Pearson",
    "ReverseKL",
    "ShiftedLog",
    "SquaredHellinger",
    "Tempered",
    "get",
    "names",
    "parameter",
    "register",
    "summary",
]
