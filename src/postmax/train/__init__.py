"""Training: configurations, the loop, and runs that survive."""

from postmax.extras import need

for _package in ("pydantic", "yaml", "safetensors"):
    need(_package, "train")

from postmax.train.checkpoint import DamagedRun
from postmax.train.config import RunConfig, make_config, read_config
from postmax.train.folder import Busy, RunFolder
from postmax.train.loop import Diverged
from postmax.train.own_files import resolve
from postmax.train.run import Progress, execute
from postmax.train.settings import with_overrides

__all__ = [
    "Busy",
    "DamagedRun",
    "Diverged",
    "Progress",
    "RunConfig",
    "RunFolder",
    "execute",
    "make_config",
    "read_config",
    "resolve",
    "with_overrides",
]
