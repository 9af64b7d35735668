"""Look before you train: what in some data would make a result wrong, and what mends it."""

from __future__ import annotations

from postmax.checking.examination import check, check_dataset, check_file, examine
from postmax.checking.examined import Examined
from postmax.checking.finding import CANNOT_TELL, Finding, Findings

__all__ = [
    "CANNOT_TELL",
    "Examined",
    "Finding",
    "Findings",
    "check",
    "check_dataset",
    "check_file",
    "examine",
]
