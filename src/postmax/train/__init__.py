"""Training: what a run is made of, and the loop that trains it."""

from postmax.extras import need

for _package in ("pydantic", "yaml", "safetensors"):
    need(_package, "train")

from postmax.train.config import RunConfig, make_config, read_config
from postmax.train.own_files import resolve
from postmax.train.settings import with_overrides

__all__ = ["RunConfig", "make_config", "read_config", "resolve", "with_overrides"]
