"""What every trained model can do, whatever it consists of: from rows to posteriors."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor, nn

from postmax.data.row_form import RowForm
from postmax.estimation.threads import SMALL_NETWORK


class Saved(Protocol):
    """What is kept of a trained model in a file."""

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes."""
        ...

    @property
    def rows(self) -> RowForm:
        """What the rows are, and how they are read."""
        ...

    @property
    def seed(self) -> int:
        """The seed."""
        ...

    @property
    def seeds(self) -> tuple[int, ...]:
        """All seeds of the run."""
        ...

    @property
    def run_id(self) -> str | None:
        """The run that the models of several seeds belong to."""
        ...

    @property
    def file_name(self) -> str:
        """The name of its file."""
        ...

    def to_bytes(self) -> bytes:
        """Return the content of its file."""
        ...


class Trained(nn.Module):
    """A trained model.

    Attributes:
        saved: What is kept of it in a file.
        precision: In which precision it computes: "32-true" or "bf16-mixed".
        answer: From prepared rows to outputs.
        any_device: Whether it computes on every device; otherwise only on the CPU.
    """

    saved: Saved
    precision: str
    answer: nn.Module
    any_device: bool = True

    def afresh(self) -> Trained:
        """Return the same model, made again from what was saved: on the CPU and in float32."""
        raise NotImplementedError

    @property
    def spread(self) -> tuple[Tensor, Tensor] | None:
        """What features of the training rows are like: their mean, and 1 / standard deviation. None for images."""
        raise NotImplementedError

    @property
    def is_small(self) -> bool:
        """Whether a second thread would slow it down."""
        return sum(weight.numel() for weight in self.answer.parameters()) < SMALL_NETWORK

    def prepared(self, rows: Tensor) -> Tensor:
        """Return rows as the answer gets them."""
        raise NotImplementedError

    def posterior(self, outputs: Tensor) -> Tensor:
        """Return P(true class | row) for outputs of the answer."""
        raise NotImplementedError

    def label_posterior(self, outputs: Tensor) -> Tensor:
        """Return P(label as given | row) for outputs of the answer."""
        raise NotImplementedError

    def forward(self, rows: Tensor) -> Tensor:
        """Return P(true class | row), float32 (B, K), for float32 features (B, d) or uint8 images (B, C, H, W)."""
        return self.posterior(self.answer(self.prepared(rows)))
