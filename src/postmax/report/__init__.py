"""The report of a table: one self-contained page, and each plot as a file."""

from __future__ import annotations

from postmax.report.collect import collect, make_report
from postmax.report.content import Group, NoiseMatrix, ReportContent, Run, Series
from postmax.report.page import write_report

__all__ = ["Group", "NoiseMatrix", "ReportContent", "Run", "Series", "collect", "make_report", "write_report"]
