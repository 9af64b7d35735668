"""The errors that postmax raises, all of them a `PostmaxError`, and its warnings."""

from __future__ import annotations


class PostmaxError(Exception):
    """The root of all errors of postmax. The message says what is wrong, where, and what to do."""


class InputError(PostmaxError, ValueError, RuntimeError):
    """An argument, a setting or a file that the user gave cannot be used.

    It is a `ValueError`, as Python programmers expect, and also a `RuntimeError`, because code written around
    `torch.nn.CrossEntropyLoss` catches that.
    """


class PostmaxWarning(UserWarning):
    """Something that works, but that is known to give poor results. The message says what to do instead."""


class UnknownNameError(InputError):
    """A name that nothing has, such as a misspelt one. The message suggests the nearest known name."""


class LabelError(InputError, IndexError):
    """A label names a class that does not exist. It is also an `IndexError`, which torch raises in this case."""


class NotFiniteError(InputError):
    """Logits are NaN or infinite. In a training loop this means that the training has diverged."""


class DataError(InputError):
    """A file or folder is missing, damaged or has the wrong content. The message names it and says what to do."""


class MissingDependency(InputError, ImportError):  # noqa: N818
    """A feature was used that needs an extra of postmax, and that extra is not installed."""


class DivergedError(PostmaxError, ArithmeticError):
    """A training run diverged: its loss became NaN, infinite, or thousands of times what it was at the start."""


class BusyError(PostmaxError):
    """Another process works on the same run folder at this moment."""
