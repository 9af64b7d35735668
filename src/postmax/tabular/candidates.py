"""Which networks are tried on a table, and into how many folds its rows are divided."""

from __future__ import annotations

from postmax.errors import InputError
from postmax.registry import unknown_name
from postmax.tabular.networks import BUILDERS
from postmax.tabular.training import Settings

# More rows need fewer folds: five networks that saw 80 % of the rows each, or three that saw two thirds.
_MANY_ROWS = 20_000

DEFAULTS = {
    "linear": (
        Settings("linear", rate=2e-2, decay=0.03, steps=400),
        Settings("linear", rate=2e-2, decay=1.0, steps=400),
    ),
    "additive": (Settings("additive", rate=1e-2, decay=0.03, steps=400),),
    "mlp": (Settings("mlp", rate=3e-3, decay=0.1), Settings("mlp", rate=3e-3, decay=5.0)),
    "residual": (Settings("residual", rate=1e-3, decay=0.1, steps=600, width=128),),
}


def candidates(
    network: str,
    *,
    max_iter: int | None = None,
    batch_size: int | None = None,
    learning_rate: float | None = None,
    weight_decay: float | None = None,
) -> list[Settings]:
    """Return the candidates, those of the same shape after one another.

    Args:
        network: "auto" for all kinds, or the name of one.
        max_iter: The number of epochs, instead of that of the candidate; likewise the other settings.
        batch_size: See above.
        learning_rate: See above.
        weight_decay: See above. Candidates that differ in nothing else become one.

    Raises:
        UnknownNameError: If there is no network of this name.

    Example:
        >>> [one.kind for one in candidates("auto")]
        ['linear', 'linear', 'additive', 'mlp', 'mlp', 'residual']
    """
    if network != "auto" and network not in DEFAULTS:
        raise unknown_name("network", network, ("auto", *DEFAULTS))
    kinds = tuple(DEFAULTS) if network == "auto" else (network,)
    changes: dict[str, object] = {}
    if max_iter is not None:
        changes |= {"epochs": max_iter, "steps": 0}
    if batch_size is not None:
        changes["batch"] = batch_size
    if learning_rate is not None:
        changes["rate"] = learning_rate
    if weight_decay is not None:
        changes["decay"] = weight_decay
    found = [one._replace(**changes) for kind in kinds for one in DEFAULTS[kind]]  # type: ignore[arg-type]
    return list(dict.fromkeys(found))


def fold_count(wanted: int | None, rows: int) -> int:
    """Return into how many folds rows are divided.

    Raises:
        InputError: If fewer than two folds are wanted.
    """
    if wanted is not None and wanted < 2:
        raise InputError(f"n_folds is the number of folds, 2 or more, and not {wanted}.")
    usual = 3 if rows >= _MANY_ROWS else 5
    return max(2, min(wanted or usual, rows // 2))


def repeat_count(rows: int) -> int:
    """Return how often rows are divided into folds: more often where rows are few and a division is mostly chance."""
    return 3 if rows < 250 else 2 if rows < 600 else 1


assert set(DEFAULTS) == set(BUILDERS)  # noqa: S101  (a kind without settings would never be tried)
