"""What the runs of a table have in common, and what each has of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from postmax.train.config import RunConfig
from postmax.train.settings import set_key

# Where data lie on one machine, and what the list of runs says anyhow.
_NOT_SHOWN = ("data.root", "seeds")


def common_part(configs: Sequence[RunConfig]) -> dict[str, Any]:
    """Dotted keys with the values that all the configurations have."""
    flat = [_flat(config.model_dump(mode="json")) for config in configs]
    first = flat[0] if flat else {}
    return {key: value for key, value in first.items() if all(key in one and one[key] == value for one in flat)}


def common_yaml(shared: Mapping[str, Any]) -> str:
    """The common part as it stands in a configuration file."""
    content: dict[str, Any] = {}
    for key, value in shared.items():
        if key not in _NOT_SHOWN:
            set_key(content, key, value)
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True) if content else ""


def own_settings(config: RunConfig, shared: Mapping[str, Any]) -> str:
    """The rest, as texts that `postmax train` takes as overrides."""
    own = _flat(config.model_dump(mode="json"))
    return " ".join(f"{key}={value}" for key, value in own.items() if key not in shared and key not in _NOT_SHOWN)


def _flat(content: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in content.items():
        if isinstance(value, Mapping):
            found.update(_flat(value, f"{prefix}{key}."))
        else:
            found[f"{prefix}{key}"] = value
    return found
