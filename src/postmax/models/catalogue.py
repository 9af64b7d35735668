"""Networks by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from postmax.models.network import Network
from postmax.registry import Registry, check_options, options_of


@dataclass(frozen=True)
class Architecture:
    """A registered network.

    Attributes:
        name: Its name.
        summary: What it is, in a line.
        build: Makes the network from the shape of a row, the number of classes and the options.
        channels_last: Whether `torch.channels_last` is the faster memory format, see docs/models.md.
    """

    name: str
    summary: str
    build: Callable[..., Network]
    channels_last: bool = False

    @property
    def options(self) -> Mapping[str, Any]:
        """The options and their defaults: the keyword-only arguments of `build`."""
        return options_of(self.build)

    def check_options(self, given: Iterable[str]) -> None:
        """Check that every given name is an option of this network.

        Raises:
            InputError: If one is not. The message suggests the nearest option.
        """
        check_options(self.name, given, self.options)


_ARCHITECTURES: Registry[Architecture] = Registry("model", package="postmax.models")


def register(
    name: str,
    build: Callable[..., Network],
    *,
    summary: str,
    channels_last: bool = False,
    aliases: Iterable[str] = (),
) -> None:
    """Make a network known under `name`.

    Every module of `postmax.models` is imported before the first lookup, so a new file that calls `register` adds a
    network. Modules of other packages call it when they are imported.

    Args:
        name: The name for `get`.
        build: A class or function `build(input_shape, num_classes, *, option=default, …)`.
        summary: What it is, in a line.
        channels_last: Whether `torch.channels_last` is the faster memory format.
        aliases: Other names. Case, spaces, `-` and `_` do not matter in any name.

    Raises:
        InputError: If a name is taken.
    """
    _ARCHITECTURES.add(Architecture(name, summary, build, channels_last), name, aliases=aliases)


def names() -> tuple[str, ...]:
    """Return the names that `get` knows, in alphabetical order.

    Example:
        >>> "resnet34" in names()
        True
    """
    return tuple(sorted(_ARCHITECTURES.names()))


def describe(name: str) -> Architecture:
    """Return the description of a network, without building it.

    Raises:
        InputError: If there is no such network.

    Example:
        >>> describe("cnn8").summary
        '8-layer CNN of the active-passive-loss papers (APL, ALFs, ANL)'
        >>> dict(describe("mlp").options)
        {'hidden': (128, 64), 'dropout': 0.0, 'batch_norm': False, 'activation': 'relu'}
    """
    return _ARCHITECTURES.get(name)


def get(name: str, *, num_classes: int, input_shape: Sequence[int], **options: Any) -> Network:
    """Return a new network with random weights.

    The weights come from torch's global generator. Call `torch.manual_seed` first to get the same weights again.

    Args:
        name: One of `names()`.
        num_classes: K, the number of logits.
        input_shape: The shape of one row, `inputs.shape[1:]`: (d,) for tables, (channels, height, width) for images.
        **options: Options of that network, see `describe(name).options`.

    Raises:
        InputError: If there is no such network or option, or it cannot take such rows.

    Example:
        >>> import torch
        >>> get("mlp", num_classes=2, input_shape=(30,), hidden=(16,))(torch.zeros(5, 30)).shape
        torch.Size([5, 2])
        >>> get("mlp", num_classes=2, input_shape=(30,), hiden=(16,))
        Traceback (most recent call last):
        ...
        postmax.errors.UnknownNameError: unknown option of mlp 'hiden'. Did you mean 'hidden'? Known: activation, \
batch_norm, dropout, hidden.
    """
    architecture = describe(name)
    architecture.check_options(options)
    return architecture.build(input_shape, num_classes, **options)
