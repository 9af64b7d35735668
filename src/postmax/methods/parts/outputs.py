"""Networks whose outputs are turned into the logits of K classes."""

from __future__ import annotations

from torch import Tensor, nn


class FirstOutputs(nn.Module):
    """The first outputs of a network, those of classes that exist.

    Example:
        >>> import torch
        >>> FirstOutputs(nn.Identity(), 2)(torch.tensor([[1.0, 2.0, 3.0]]))
        tensor([[1., 2.]])
    """

    def __init__(self, network: nn.Module, count: int) -> None:
        super().__init__()
        self.network, self.count = network, count

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the outputs (B, K)."""
        outputs: Tensor = self.network(inputs)[:, : self.count]
        return outputs


class LogRatioLogits(nn.Module):
    """A network whose first outputs are log-ratios, as a network whose outputs are logits of K classes.

    Args:
        network: A network with 2·(K − 1) outputs.
        basis: The basis of the log-ratios, (K − 1, K).
    """

    def __init__(self, network: nn.Module, basis: Tensor) -> None:
        super().__init__()
        self.network = network
        self.basis = basis  # no buffer: it follows from K, so a saved model need not hold it

    def forward(self, inputs: Tensor) -> Tensor:
        """Return logits (B, K); their softmax is the distribution with the predicted log-ratios."""
        outputs: Tensor = self.network(inputs)
        return outputs.chunk(2, -1)[0] @ self.basis.to(outputs.device)
