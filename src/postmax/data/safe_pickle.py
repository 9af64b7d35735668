"""Read pickles of plain numpy arrays without running code from them.

A pickle is a program that can import and call anything. The few data sets that are published as pickles need four
names. Each of them is replaced by a stand-in from this file, so that no code of other packages runs.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from postmax.errors import DataError

Plain: TypeAlias = Mapping[str, Any]

# The instructions for containers, numbers, strings and arrays. Persistent ids, extensions, classes and buffers are not
# among them.
_ALLOWED_OPCODES = frozenset(
    """
    PROTO STOP FRAME MARK POP POP_MARK MEMOIZE PUT BINPUT LONG_BINPUT GET BINGET LONG_BINGET
    NONE NEWTRUE NEWFALSE INT BININT BININT1 BININT2 LONG LONG1 FLOAT BINFLOAT
    STRING BINSTRING SHORT_BINSTRING BINBYTES SHORT_BINBYTES BINBYTES8
    UNICODE BINUNICODE SHORT_BINUNICODE BINUNICODE8
    EMPTY_DICT DICT SETITEM SETITEMS EMPTY_LIST LIST APPEND APPENDS EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3
    GLOBAL STACK_GLOBAL REDUCE BUILD
    """.split()  # noqa: SIM905  (a list of words is easier to read)
)
_DTYPES = {code: np.dtype(code) for code in ("b1", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f4", "f8")}


def load_plain(data: bytes, where: str) -> Plain:
    """Return the dictionary in a pickle of plain values and numeric arrays; keys become `str`.

    Args:
        data: The pickle. Pickles of Python 2 are read too; their strings become bytes.
        where: The name of the file, for error messages.

    Raises:
        DataError: If the pickle is damaged, needs anything else, or is not a dictionary.

    Example:
        >>> load_plain(pickle.dumps({"labels": [3, 1], "data": np.arange(2)}), "example")
        {'labels': [3, 1], 'data': array([0, 1])}
        >>> load_plain(pickle.dumps(print), "evil.pkl")
        Traceback (most recent call last):
        ...
        postmax.errors.DataError: evil.pkl wants to run builtins.print; it is refused. Use the official file.
    """
    try:
        _check_opcodes(data, where)
        content = dict(_Unpickler(data, where).load())
        return {_text(key): v.build() if isinstance(v, _Array) else v for key, v in content.items()}
    except DataError:
        raise
    except Exception as error:  # a damaged pickle can raise errors of any kind
        raise DataError(f"{where} is damaged or truncated: it cannot be unpickled ({error}).") from error


def _check_opcodes(data: bytes, where: str) -> None:
    for opcode, argument, _ in pickletools.genops(data):
        if opcode.name not in _ALLOWED_OPCODES:
            raise DataError(f"{where} uses the pickle instruction {opcode.name}; it is refused. Use the official file.")
        # The memo is allocated for its largest index, so a few bytes could otherwise use all memory.
        if opcode.name in {"PUT", "LONG_BINPUT"} and int(argument or 0) > len(data):
            raise DataError(f"{where} is damaged: it asks for a memo of {argument} entries.")


class _Unpickler(pickle.Unpickler):
    def __init__(self, data: bytes, where: str) -> None:
        super().__init__(io.BytesIO(data), encoding="bytes")
        self.where = where

    def find_class(self, module: str, name: str) -> Any:
        known = _STAND_INS.get((module, name))
        if known is None:
            raise DataError(f"{self.where} wants to run {module}.{name}; it is refused. Use the official file.")
        return _StandIn(known)


class _StandIn:
    """A function that the pickle may call. Nothing else can be done with it."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)

    def __setstate__(self, state: object) -> None:
        raise ValueError("a function has no state")


class _Dtype:
    __slots__ = ("dtype",)

    def __init__(self, code: Any, *_flags: Any) -> None:
        if _text(code) not in _DTYPES:
            raise ValueError(f"arrays of {_text(code)!r} are refused")
        self.dtype = _DTYPES[_text(code)]

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.dtype = self.dtype.newbyteorder(">" if _text(state[1]) == ">" else "<")


class _Array:
    __slots__ = ("state",)

    def __init__(self, *_arguments: Any) -> None:
        self.state: tuple[Any, ...] | None = None

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.state = state

    def build(self) -> npt.NDArray[Any]:
        if self.state is None:
            raise ValueError("an array without content")
        _version, shape, dtype, fortran, content = self.state
        if not isinstance(dtype, _Dtype) or not isinstance(content, bytes):
            raise TypeError("an array of something other than numbers")
        flat = np.frombuffer(content, dtype.dtype)
        return flat.reshape(shape, order="F" if fortran else "C").astype(flat.dtype.newbyteorder("="))


def _latin1(text: str, encoding: Any) -> bytes:
    """Stand in for `_codecs.encode`, which pickles of protocol 2 use for bytes."""
    if _text(encoding) != "latin1":
        raise ValueError(f"the encoding {encoding!r} is refused")
    return text.encode("latin1")


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("ascii")
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} where a string was expected")
    return value


_STAND_INS: dict[tuple[str, str], Callable[..., Any]] = {
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Dtype,
    ("_codecs", "encode"): _latin1,
}
