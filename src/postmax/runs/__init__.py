"""The folder of a run: its checkpoint, its result, and running it to the end."""

from postmax.runs.checkpoint import DamagedRun
from postmax.runs.execution import Progress, execute
from postmax.runs.folder import RunFolder

__all__ = ["DamagedRun", "Progress", "RunFolder", "execute"]
