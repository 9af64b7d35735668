"""Where a frozen model comes from: a package that has it, and the name that the package knows it by."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from postmax.errors import InputError, PostmaxError
from postmax.registry import Registry

T = TypeVar("T")


@dataclass(frozen=True)
class Source(Generic[T]):
    """A package with frozen models.

    Attributes:
        open: Returns the model with a name, such as "resnet18". It gets "" if there is only one model.
        modules: The modules that it imports. If one of them is missing, the source cannot be used.
        example: The name of a model, for messages; empty if the source has only one model.
    """

    open: Callable[[str], T]
    modules: tuple[str, ...]
    example: str = ""


def opened(sources: Registry[Source[T]], given: str) -> T:
    """Return the model with a name like `timm:resnet18`, or `efficientnet-lite0` for a source with one model.

    Raises:
        InputError: If there is no such source or model, or if it cannot be loaded.
        MissingDependency: If its package is not installed.
    """
    prefix, colon, name = given.partition(":")
    source = sources.get(prefix)
    if source.example and not name:
        raise InputError(f"{prefix} has many models, so one must be named, such as {prefix}:{source.example}.")
    if colon and not source.example:
        raise InputError(f"{prefix} is one model, so {given!r} should be {prefix!r}.")
    try:
        with _weights_only():
            return source.open(name)
    except PostmaxError:
        raise
    except Exception as error:  # packages and downloads fail in many ways
        reason = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise InputError(f"{given} could not be loaded: {reason}") from error


@contextmanager
def _weights_only() -> Iterator[None]:
    """Let `torch.load` read weights and nothing else, whatever a package asks for: a pickle could run code."""
    settings = {"TORCH_FORCE_WEIGHTS_ONLY_LOAD": "1", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": None}
    before = {name: os.environ.get(name) for name in settings}
    _set(settings)
    try:
        yield
    finally:
        _set(before)


def _set(settings: Mapping[str, str | None]) -> None:
    for name, value in settings.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value
