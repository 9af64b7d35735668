"""How a loss is printed."""

from __future__ import annotations

from typing import Any


def changed(**settings: tuple[Any, Any]) -> list[str]:
    """`name=value` for each setting, given as (value, default), that is not its default.

    Example:
        >>> changed(reduction=("sum", "mean"), ignore_index=(-100, -100))
        ["reduction='sum'"]
    """
    return [f"{name}={value!r}" for name, (value, default) in settings.items() if value != default]


def changed_contract(loss: Any) -> list[str]:
    """The same for what every loss shares with `nn.CrossEntropyLoss`."""
    return changed(
        ignore_index=(loss.ignore_index, -100),
        reduction=(loss.reduction, "mean"),
        label_smoothing=(loss.label_smoothing, 0.0),
    )
