"""Random numbers that are the same on every platform and in every version."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from postmax.errors import InputError


def random_bits(count: int, seed: int, stream: str) -> npt.NDArray[np.uint64]:
    """Return `count` random 64-bit words. They depend on `seed` and on the name of the `stream` only.

    These are raw words of the Philox-4x64 generator, which is a published function. The distributions of numpy and
    torch are not used, because their output may change from version to version.

    Example:
        >>> random_bits(2, seed=0, stream="example")
        array([8087654407386846276, 3723109404749072691], dtype=uint64)
    """
    # The text of the seed is hashed, so 0.0 and False would be other seeds than 0. They are refused.
    if isinstance(seed, bool) or not hasattr(seed, "__index__") or int(seed) < 0:
        raise InputError(f"a seed is a whole number from 0 on, got {seed!r}.")
    seed = int(seed)
    digest = hashlib.sha256(f"{stream}:{seed}".encode()).digest()
    key = int.from_bytes(digest[:16], "little")
    words: npt.NDArray[np.uint64] = np.random.Philox(key=key).random_raw(count)
    return words


def random_uniform(count: int, seed: int, stream: str) -> npt.NDArray[np.float64]:
    """Return `count` numbers in the open interval (0, 1), multiples of 2⁻⁵³ plus half a step."""
    return ((random_bits(count, seed, stream) >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


def random_normal(count: int, seed: int, stream: str) -> npt.NDArray[np.float64]:
    """Return `count` standard normal numbers (Box–Muller)."""
    radius = np.sqrt(-2 * np.log(random_uniform(count, seed, f"{stream}/radius")))
    normal: npt.NDArray[np.float64] = radius * np.cos(2 * np.pi * random_uniform(count, seed, f"{stream}/angle"))
    return normal
