"""The protocol that every loss follows."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor, nn


class Loss(nn.Module, ABC):
    """A loss that knows what the logits it trains mean."""

    mixes_rows: bool
    corrects_posterior: bool = False

    @abstractmethod
    def posterior(self, logits: Tensor) -> Tensor: ...

    @abstractmethod
    def label_posterior(self, logits: Tensor) -> Tensor: ...

    @abstractmethod
    def predict(self, logits: Tensor) -> Tensor: ...

    @abstractmethod
    def at(self, share: float) -> Loss: ...

    def logits_of(self, posterior: Tensor) -> Tensor:
        """Return logits whose posterior is the given one."""
        return posterior.log()
