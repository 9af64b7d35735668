"""The hashes of noisy labels: they prove which runs were trained on exactly the same labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from postmax.train.records import NoiseRecord


@dataclass(frozen=True)
class NoiseHash:
    """The noisy labels of one seed, and how many runs were trained on exactly these labels."""

    seed: int
    rate: str
    rows: int
    sha256: str
    runs: int


def noise_hashes(runs: Iterable[Mapping[int, NoiseRecord]]) -> list[NoiseHash]:
    """Return each set of labels once.

    Args:
        runs: The noise of each run, by seed.
    """
    found: dict[tuple[str, int], NoiseHash] = {}
    for noise in runs:
        for seed, record in noise.items():
            key = (record["sha256"], seed)
            before = found[key].runs if key in found else 0
            found[key] = NoiseHash(seed, rate_in_words(record["rate"]), record["rows"], record["sha256"], before + 1)
    return list(found.values())


def rate_in_words(rate: float | None) -> str:
    """Return the share of wrong labels in per cent, or "not known"."""
    return "not known" if rate is None else f"{100 * rate:.1f} %"
