"""The folder of a run: its checkpoint, its result, and running it to the end."""

from postmax.runs.checkpoint import DamagedRun
from postmax.runs.execution import Progress, execute
from postmax.runs.folder import RunFolder
from postmax.runs.predictor import Predictor

__all__ = ["DamagedRun", "Predictor", "Progress", "RunFolder", "execute"]
