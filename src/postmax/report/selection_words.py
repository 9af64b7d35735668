"""The rules by which the epoch of a result is selected, in words. The pages and the terminal use the same words."""

from __future__ import annotations

# In the order in which results are shown: rules that can be used in practice first, the oracle last.
SELECTION_IN_WORDS = {
    "last": "last epoch",
    "noisy-val": "best epoch on noisy validation labels",
    "oracle": "oracle, best epoch on the test set: it cannot be chosen without the true labels",
}


def headline_first(rule: str, headline: str) -> tuple[bool, int]:
    """Return a key for sorting rules: the headline comes first, then the order of `SELECTION_IN_WORDS`.

    Example:
        >>> sorted(["oracle", "last", "noisy-val"], key=lambda rule: headline_first(rule, "noisy-val"))
        ['noisy-val', 'last', 'oracle']
    """
    return rule != headline, list(SELECTION_IN_WORDS).index(rule)
