"""What a training strategy is: networks, what a batch costs them, and what their output means."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from torch import Tensor, nn

if TYPE_CHECKING:  # the loop imports methods, so methods know it by its types only
    from postmax.train.side_by_side import LaneBatch, Lanes


@dataclass(frozen=True)
class Setting:
    """What a method is built from.

    Attributes:
        networks: Makes fresh networks, one for each seed; a method that needs two calls it twice.
        loss: What is minimised, with reduction "none"; an `nn.ModuleList` has one for each seed.
        num_classes: K.
        rows: Training rows of each seed; per-row state is kept under their positions.
        epochs: How many there will be.
    """

    networks: Callable[[], Lanes]
    loss: nn.Module
    num_classes: int
    rows: int
    epochs: int


class Step(NamedTuple):
    """What a batch gives.

    Attributes:
        loss: (S,), one for each lane; their sum is what is differentiated.
        logits: (S, B, K) for the rows of the batch, for the metrics; None if the method has none for these very rows.
    """

    loss: Tensor
    logits: Tensor | None


class Method(nn.Module, ABC):
    """One training strategy. Everything it must remember is a parameter or a buffer, so that a checkpoint has it."""

    @abstractmethod
    def training_step(self, batch: LaneBatch, epoch: int) -> Step:
        """The loss of a batch, ready to be differentiated."""

    @abstractmethod
    def forward(self, inputs: Tensor) -> Tensor:
        """The logits (S, B, K) of inputs (S, B, …), for evaluation."""

    @abstractmethod
    def readings(self, logits: Tensor) -> dict[str, Tensor]:
        """Posteriors (S, B, K) by what they are: "model" is the answer; others are of interest beside it."""

    @abstractmethod
    def label_posterior(self, logits: Tensor) -> Tensor:
        """What is expected of the labels *as they are given*, noise included: (S, B, K)."""

    @abstractmethod
    def lane_state(self, lane: int) -> dict[str, Tensor]:
        """The weights of the network that answers for one seed, under the names the network has for them."""
