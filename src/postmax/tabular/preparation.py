"""What an `Encoder` does to rows of numbers, as a module: for models that are read from a file, and for ONNX."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from postmax.errors import InputError
from postmax.tabular.columns import FARTHEST, Encoder, Numbers

_VALUE, _IS_MISSING, _IS_CODE = 0, 1, 2
_TRUTH = {"True": 1.0, "False": 0.0}


class Preparation(nn.Module):
    """From features as they are read, float32 (B, d) with NaN for what is missing, to scaled features, float32 (B, D).

    Each feature of the result is a number, whether this number is missing, or whether it is a certain category.

    Args:
        encoder: What is done.
        one_hot: Whether each category of a column is a feature of its own already, as `data.TableEncoder` gives them.
            Otherwise categories are numbers.

    Raises:
        InputError: If a category is no number, though it has to be.
    """

    source: Tensor
    what: Tensor
    code: Tensor
    fill: Tensor
    mean: Tensor
    factor: Tensor

    def __init__(self, encoder: Encoder, *, one_hot: bool) -> None:
        super().__init__()
        source, what, code, fill = [], [], [], []
        place = 0
        for column, name in zip(encoder.columns, encoder.names, strict=True):
            if isinstance(column, Numbers):
                found = [(_VALUE, 0.0, column.fill)] + [(_IS_MISSING, 0.0, 0.0)] * column.flag
                places = [place] * len(found)
                place += 1
            elif one_hot:
                found = [(_VALUE, 0.0, 0.0)] * len(column.names)
                places = list(range(place, place + len(found)))
                place += len(found)
            else:
                found = [(_IS_CODE, _number(text, name), 0.0) for text in column.names]
                places = [place] * len(found)
                place += 1
            source += places
            what += [one[0] for one in found]
            code += [one[1] for one in found]
            fill += [one[2] for one in found]
        self.inputs = place
        self.register_buffer("source", torch.tensor(source))
        self.register_buffer("what", torch.tensor(what))
        for attribute, values in (("code", code), ("fill", fill), ("mean", encoder.mean), ("factor", encoder.factor)):
            self.register_buffer(attribute, torch.tensor(values, dtype=torch.float64))

    def forward(self, rows: Tensor) -> Tensor:
        """Return the features, as `Encoder.encode` does."""
        wide = rows.double()[:, self.source]
        missing = wide.isnan()
        is_code = (wide == self.code) | (missing & self.code.isnan())
        value = torch.where(missing, self.fill, wide)
        # Some runtimes cannot choose between truth values with `where`.
        asked = self.what == _IS_CODE
        is_so = (asked & is_code) | (~asked & missing)
        found = torch.where(self.what == _VALUE, value, is_so.double())
        return ((found - self.mean) * self.factor).clamp(-FARTHEST, FARTHEST).float()

    @property
    def spread(self) -> tuple[Tensor, Tensor]:
        """The mean and 1 / standard deviation of the features as they are read; 0 and 1 for codes of categories."""
        mean, factor = torch.zeros(self.inputs, dtype=torch.float64), torch.ones(self.inputs, dtype=torch.float64)
        values = self.what == _VALUE
        mean[self.source[values]], factor[self.source[values]] = self.mean[values], self.factor[values]
        return mean, factor


def _number(text: str, name: str) -> float:
    """Return a category of numbers as a number; NaN for a missing one."""
    try:
        return _TRUTH[text] if text in _TRUTH else float(text or "nan")
    except ValueError:
        raise InputError(
            f"column {name} has categories of text, and a model with such columns is saved only if all columns have "
            "names: fit it to a data frame whose columns are named by strings."
        ) from None
