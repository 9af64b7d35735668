"""The divergences once more, independently: generators in mpmath with 50 digits, everything else derived from them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath as mp

Number = Any  # mpmath has no types
Generator = tuple[Callable[[Number], Number], Callable[[Number], Number], Callable[[Number], Number]]

mp.mp.dps = 50

# name: (f, f', u·f''): the generator and derivatives worked out by hand, nothing shared with the package.
GENERATORS: dict[str, Generator] = {
    "kl": (lambda u: u * mp.log(u), lambda u: mp.log(u) + 1, lambda _: mp.mpf(1)),
    "gan": (
        lambda u: u * mp.log(u) - (u + 1) * mp.log(u + 1),
        lambda u: -mp.log1p(1 / u),
        lambda u: 1 / (u + 1),
    ),
    "sl": (lambda u: -mp.log1p(u), lambda u: -1 / (u + 1), lambda u: u / (u + 1) ** 2),
    "js": (
        lambda u: u * mp.log(u) - (u + 1) * mp.log((u + 1) / 2),
        lambda u: mp.log(2) - mp.log1p(1 / u),
        lambda u: 1 / (u + 1),
    ),
    "rkl": (lambda u: -mp.log(u), lambda u: -1 / u, lambda u: 1 / u),
    "pearson": (lambda u: (u - 1) ** 2, lambda u: 2 * (u - 1), lambda u: 2 * u),
    "neyman": (lambda u: (1 - u) ** 2 / u, lambda u: 1 - 1 / u**2, lambda u: 2 / u**2),
    "hellinger": (
        lambda u: (mp.sqrt(u) - 1) ** 2,
        lambda u: 1 - 1 / mp.sqrt(u),
        lambda u: 1 / (2 * mp.sqrt(u)),
    ),
    "jeffreys": (lambda u: (u - 1) * mp.log(u), lambda u: mp.log(u) + 1 - 1 / u, lambda u: 1 + 1 / u),
    "lecam": (
        lambda u: (u - 1) ** 2 / (2 * (u + 1)),
        lambda u: (u - 1) * (u + 3) / (2 * (u + 1) ** 2),
        lambda u: 4 * u / (u + 1) ** 3,
    ),
}


def alpha(a: str) -> Generator:
    """Generators of the α family for a rational α other than 0 and 1."""
    r = mp.mpf(a)
    return (
        lambda u: (u**r - 1 - r * (u - 1)) / (r * (r - 1)),
        lambda u: (u ** (r - 1) - 1) / (r - 1),
        lambda u: u ** (r - 1),
    )


def shifted_log(k: str) -> Generator:
    """Generators of the shifted-log family."""
    shift = mp.mpf(k)
    return lambda u: -mp.log(u + shift), lambda u: -1 / (u + shift), lambda u: u / (u + shift) ** 2


GENERATORS |= {f"alpha:{a}": alpha(a) for a in ("0.5", "1.5", "-1", "3")}
GENERATORS |= {f"sl:{k}": shifted_log(k) for k in ("0.5", "2")}


def exact(name: str, quantity: str, s: float) -> Number:
    """score, penalty, score_slope or penalty_slope at s = log u, to 50 digits beyond any cancellation."""
    f, f_prime, slope = GENERATORS[name]
    with mp.workdps(60 + int(4 * abs(s))):
        u = mp.exp(mp.mpf(s))
        value = {
            "score": lambda: f_prime(u),
            "penalty": lambda: u * f_prime(u) - f(u),
            "score_slope": lambda: slope(u),
            "penalty_slope": lambda: u * slope(u),
        }[quantity]()
        return mp.chop(value, tol=mp.mpf(10) ** (8 - mp.mp.dps))  # log(exp(−1)) + 1 is zero


def error_in_ulps(value: float, true: Number, largest: float, tiny: float, eps: float) -> float:
    """The relative error in units of eps; under- and overflow are exact where the true value does the same."""
    if abs(true) > largest:
        return 0.0 if value == math.copysign(math.inf, true) else math.inf
    if abs(true) < tiny:
        return 0.0 if abs(value) <= 2 * tiny else math.inf
    return float(abs(mp.mpf(value) - true) / abs(true) / eps) if math.isfinite(value) else math.inf
