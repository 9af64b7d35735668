"""Launchers: who runs the jobs of a sweep. A new launcher is one more file here."""

from postmax.sweep.launchers.base import Launcher, LauncherError
from postmax.sweep.launchers.in_process import InProcess
from postmax.sweep.launchers.local_processes import LocalProcesses

__all__ = ["InProcess", "Launcher", "LauncherError", "LocalProcesses"]
