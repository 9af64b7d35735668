"""The errors postmax raises about what it was given."""

from __future__ import annotations


class InputError(ValueError, RuntimeError):
    """Something handed to postmax has the wrong shape, type or value.

    It is a `ValueError`, as Python has it, and a `RuntimeError`, because code written around
    `torch.nn.CrossEntropyLoss` catches that.
    """


class LabelError(InputError, IndexError):
    """A label names a class that does not exist (torch raises `IndexError` there)."""


class DataError(InputError):
    """A file or folder is missing, damaged or not what it should be; the message names it and says what to do."""


class MissingDependency(InputError, ImportError):  # noqa: N818  (says what it is)
    """Something that lives in an extra of postmax was used without that extra."""
