"""Which labels are wrong, what they should be, and what else is wrong with the data."""

from __future__ import annotations

from postmax.auditing.from_memory import audit
from postmax.auditing.result import Audit, Issues
from postmax.fitting.label_table import LabelTable

__all__ = ["Audit", "Issues", "LabelTable", "audit"]
