"""The settings that several runs share, and the settings in which a run differs from the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from postmax.train.config import RunConfig
from postmax.train.settings import as_overrides, set_key

# The folder of the data sets is different on every machine, and the seeds are shown elsewhere on the page.
_NOT_SHOWN = ("data.root", "seeds")


def common_settings(configs: Sequence[RunConfig]) -> dict[str, Any]:
    """Return the dotted keys, with their values, that are equal in all configurations."""
    flat = [_flat(config.model_dump(mode="json")) for config in configs]
    first = flat[0] if flat else {}
    return {key: value for key, value in first.items() if all(key in one and one[key] == value for one in flat)}


def settings_as_yaml(settings: Mapping[str, Any]) -> str:
    """Return settings with dotted keys as they are written in a configuration file."""
    content: dict[str, Any] = {}
    for key, value in settings.items():
        if key not in _NOT_SHOWN:
            set_key(content, key, value)
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True) if content else ""


def differing_settings(config: RunConfig, common: Mapping[str, Any]) -> str:
    """Return the settings of a run that are not common to all runs, as texts that `postmax train` takes."""
    flat = _flat(config.model_dump(mode="json"))
    return as_overrides({key: flat[key] for key in flat if key not in common and key not in _NOT_SHOWN})


def _flat(content: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in content.items():
        if isinstance(value, Mapping):
            found.update(_flat(value, f"{prefix}{key}."))
        else:
            found[f"{prefix}{key}"] = value
    return found
