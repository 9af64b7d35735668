"""Checks of the shape of a row and of the number of classes."""

from __future__ import annotations

from collections.abc import Sequence

from postmax.errors import InputError


def check_classes(num_classes: int) -> int:
    """Return `num_classes` if it is a number of classes.

    Raises:
        InputError: If it is not a whole number of at least 2.
    """
    if not is_count(num_classes) or num_classes < 2:
        raise InputError(f"num_classes must be a whole number of at least 2, got {num_classes!r}.")
    return num_classes


def check_row(input_shape: Sequence[int]) -> tuple[int, ...]:
    """Return `input_shape` as a tuple.

    Raises:
        InputError: If it is not the shape of one row.
    """
    if not are_counts(input_shape) or not input_shape:
        raise InputError(
            f"input_shape is the shape of one row, such as (30,) or (3, 32, 32), and not {input_shape!r}; "
            "take inputs.shape[1:]."
        )
    return tuple(input_shape)


def check_image(network: str, input_shape: Sequence[int], *, least: int, instead: str) -> tuple[int, int, int]:
    """Return `input_shape` as (channels, height, width).

    Args:
        network: The name of the network, for error messages.
        input_shape: The shape of one row.
        least: The side of the smallest image that the network can take.
        instead: What to use for smaller images, for error messages.

    Raises:
        InputError: If it is not the shape of an image, or if the image is too small.
    """
    shape = check_row(input_shape)
    if len(shape) != 3:
        raise InputError(
            f"{network} takes images, (channels, height, width); rows of shape {shape} are not images. "
            "For the rows of a table use 'mlp'; grey images need their one channel: (1, height, width)."
        )
    channels, height, width = shape
    if min(height, width) < least:
        raise InputError(
            f"{network} needs images of at least {least}×{least} pixels, these have {height}×{width}. "
            f"Enlarge them, or use {instead}."
        )
    return channels, height, width


def is_count(value: object) -> bool:
    """Return whether this is a whole number of at least 1."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def are_counts(values: object) -> bool:
    """Return whether this is a sequence of whole numbers of at least 1."""
    return isinstance(values, Sequence) and all(is_count(value) for value in values)
