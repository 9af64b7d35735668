"""Noise that the literature defines by name: which classes are confused, and how often."""

from __future__ import annotations

from postmax.cifar_classes import CIFAR100_COARSE
from postmax.registry import unknown_name

# truck→automobile, bird→airplane, cat→dog, dog→cat, deer→horse.
_CIFAR10_FLIPS = {9: 1, 2: 0, 3: 5, 5: 3, 4: 7}

# The paper's uniform off-diagonal matrices for CIFAR-10: e_j = P(noisy = j | true ≠ j).
_UNIFORM_RATES = {
    "low": (0.02, 0.03, 0.01, 0.023, 0.017, 0.022, 0.021, 0.018, 0.019, 0.02),
    "high": (0.05, 0.07, 0.04, 0.05, 0.06, 0.04, 0.06, 0.07, 0.08, 0.07),
}


def flips_of(dataset: str) -> tuple[int, dict[int, int]]:
    """Return the number of classes and the flips of a data set's asymmetric noise."""
    makers = {"cifar10": _cifar10, "cifar100": _cifar100_blocks, "cifar100-superclass": _cifar100_superclasses}
    key = dataset.lower().replace("_", "-").replace("cifar-", "cifar")
    if key not in makers:
        raise unknown_name("data set with asymmetric noise", dataset, makers)
    return makers[key]()


def rates_of(name: str) -> tuple[float, ...]:
    """Return the vector e of one of the paper's uniform off-diagonal matrices."""
    if name.lower() not in _UNIFORM_RATES:
        raise unknown_name("uniform off-diagonal matrix", name, _UNIFORM_RATES)
    return _UNIFORM_RATES[name.lower()]


def _cifar10() -> tuple[int, dict[int, int]]:
    return 10, _CIFAR10_FLIPS


def _cifar100_blocks() -> tuple[int, dict[int, int]]:
    """Return flips within blocks of five consecutive indices, which all published results use.

    The blocks are alphabetical and are not the superclasses.
    """
    return 100, {i: i - 4 if i % 5 == 4 else i + 1 for i in range(100)}


def _cifar100_superclasses() -> tuple[int, dict[int, int]]:
    """Return flips of each class to the next of the five in its true superclass, and of the last to the first."""
    flips: dict[int, int] = {}
    for coarse in range(20):
        members = [fine for fine, parent in enumerate(CIFAR100_COARSE) if parent == coarse]
        flips.update(zip(members, members[1:] + members[:1], strict=True))
    return 100, flips
