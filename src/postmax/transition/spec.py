"""Noise as a text, as it is written on the command line or in a configuration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from postmax.errors import DataError, InputError
from postmax.files import existing_file, load_arrays
from postmax.registry import Registry
from postmax.transition.estimate_file import read_estimate
from postmax.transition.matrix import Transition

_Kind = Callable[[str, int], Transition]
_KINDS: Registry[_Kind] = Registry("kind of noise")
_COMPLEMENTARY = "complementary"


def kinds() -> tuple[str, ...]:
    """Return the named kinds of noise, with the parameters that follow the colon."""
    return (
        "none",
        "symmetric:ETA",
        "symmetric-inclusive:ETA",
        _COMPLEMENTARY,
        "pair:ETA",
        "binary:E0,E1",
        "uniform:E0,E1,…",
        "uniform:low",
        "uniform:high",
        "asymmetric-cifar10:ETA",
        "asymmetric-cifar100:ETA",
        "asymmetric-cifar100-superclass:ETA",
    )


def parse_noise(text: str, num_classes: int, classes: Sequence[str | int] | None = None) -> Transition:
    """Return the transition matrix that `text` describes: a kind of noise with parameters, or a file with a matrix.

    Args:
        text: One of `kinds()`, such as "symmetric:0.4", or the path of a K×K matrix (.csv, .npy, or the .json of an
            estimate).
        num_classes: K. The matrix must be K×K.
        classes: The names of the classes in the order of their indices. The file of an estimate has names too; its
            matrix is put into this order.

    Example:
        >>> parse_noise("pair:0.2", num_classes=3).matrix[0].tolist()
        [0.8, 0.2, 0.0]
        >>> parse_noise("uniform:low", num_classes=10)
        Transition(K=10, noise rate 18.0% under equal classes, condition number 1.3)
    """
    if is_matrix_file(text):
        transition = read_matrix(text, classes)
    else:
        kind, _, parameters = text.partition(":")
        transition = _KINDS.get(kind)(parameters.strip(), num_classes)
    if transition.num_classes != num_classes:
        raise InputError(
            f"the noise {text!r} is for {transition.num_classes} classes, but the labels have {num_classes}."
        )
    return transition


def names_noise(text: str) -> bool:
    """Return whether a text is a kind of noise or the path of a matrix file, so that `parse_noise` can read it.

    Example:
        >>> names_noise("symmetric:0.4"), names_noise("noise.csv"), names_noise("estimated")
        (True, True, False)
    """
    return is_matrix_file(text) or text == _COMPLEMENTARY or (":" in text and text.partition(":")[0] in _KINDS)


def is_matrix_file(text: str) -> bool:
    """Return whether a text is the path of a matrix file.

    Example:
        >>> is_matrix_file("noise.csv"), is_matrix_file("symmetric:0.4")
        (True, False)
    """
    return Path(text).suffix.lower() in (".csv", ".npy", ".json")


def read_matrix(path: str | Path, classes: Sequence[str | int] | None = None) -> Transition:
    """Return a transition matrix from a `.csv` of numbers, an `.npy` array, or the `.json` of an estimate.

    Raises:
        DataError: If the file does not hold a transition matrix.
        InputError: If the file is an estimate for other classes than `classes`.
    """
    path = existing_file(path)
    if path.suffix.lower() == ".json":
        return _read_estimate(path, classes)
    if path.suffix.lower() == ".npy":
        matrix = load_arrays(path).get("array", np.empty(0))
    else:
        try:
            lines = [line for line in path.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
            matrix = np.array([[float(cell) for cell in line.split(",")] for line in lines])
        except (OSError, ValueError) as error:
            raise DataError(f"{path} must be rows of numbers separated by commas: {error}.") from error
    try:
        return Transition(matrix, definition=f"the matrix in {path.name}")
    except InputError as error:
        raise DataError(f"{path}: {error}") from error


def _read_estimate(path: Path, classes: Sequence[str | int] | None) -> Transition:
    estimate = read_estimate(path)
    transition = estimate["transition"]
    if classes is None:
        return transition
    known, wanted = [_plain(name) for name in estimate["classes"]], [_plain(name) for name in classes]
    if sorted(known) != sorted(wanted):
        raise InputError(f"{path} is for the classes {', '.join(known[:8])}, the labels are {', '.join(wanted[:8])}.")
    order = [known.index(name) for name in wanted]
    return Transition(transition.matrix[order][:, order], definition=transition.definition)


def _plain(name: str | int) -> str:
    """Return the name of a class as text. The names 3.0 and 3 are the same."""
    text = str(name)
    return text.removesuffix(".0") if text.removesuffix(".0").lstrip("-").isdecimal() else text


def _numbers(kind: str, text: str, count: int | None = None) -> list[float]:
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    if not values or (count is not None and len(values) != count):
        wanted = "a rate" if count == 1 else f"{count or 'its'} rates, separated by commas,"
        raise InputError(f"{kind} needs {wanted} after a colon, such as {kind}:{'0.1' if count == 1 else '0.1,0.3'}.")
    return values


def _uniform(text: str, num_classes: int) -> Transition:  # noqa: ARG001  (every kind takes K)
    named = text.isalpha()
    return Transition.uniform_off_diagonal(text if named else _numbers("uniform", text))


def _rate(make: Callable[[int, float], Transition], kind: str) -> _Kind:
    return lambda text, k: make(k, _numbers(kind, text, 1)[0])


def _asymmetric(dataset: str) -> _Kind:
    return lambda text, _: Transition.asymmetric(dataset, _numbers(f"asymmetric-{dataset}", text, 1)[0])


def _inclusive(num_classes: int, eta: float) -> Transition:
    return Transition.symmetric(num_classes, eta, include_true_class=True)


def _complementary(text: str, num_classes: int) -> Transition:
    if text:
        raise InputError(
            f"complementary:{text} has a number too many: all complementary labels are wrong. Write complementary."
        )
    return Transition.complementary(num_classes)


_KINDS.refuse(
    "it depends on the features of each row, so no matrix describes it. Put it into a file: "
    "postmax noise inject FILE --noise instance:0.3, or postmax.transition.corrupt_by_features.",
    "instance",
)
_KINDS.add(lambda _, k: Transition.identity(k), "none", aliases=("identity", "clean"))
_KINDS.add(_rate(Transition.symmetric, "symmetric"), "symmetric", aliases=("symmetric-exclusive",))
_KINDS.add(_rate(_inclusive, "symmetric-inclusive"), "symmetric-inclusive")
_KINDS.add(_complementary, _COMPLEMENTARY)
_KINDS.add(_rate(Transition.pair, "pair"), "pair")
_KINDS.add(lambda text, _: Transition.binary(*_numbers("binary", text, 2)), "binary")
_KINDS.add(_uniform, "uniform")
for _dataset in ("cifar10", "cifar100", "cifar100-superclass"):
    _KINDS.add(_asymmetric(_dataset), f"asymmetric-{_dataset}")
