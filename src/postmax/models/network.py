"""The base class of all networks: features of a row, and one linear layer on top."""

from __future__ import annotations

from torch import Tensor, nn


class Network(nn.Module):
    """A network whose logits are `fc(features(rows))`.

    The two parts have the same names in every network. So code that needs features, or a second head of the same width
    (`network.fc.in_features`), works with all of them. A subclass defines `features` and sets `fc`.

    Attributes:
        fc: The last layer.
        rows_before_training: How many training rows `look_at` wants to see; 0 for none.

    Example:
        >>> import torch
        >>> from postmax import models
        >>> network = models.get("mlp", num_classes=3, input_shape=(5,))
        >>> rows = torch.randn(2, 5)
        >>> network.features(rows).shape, network.fc
        (torch.Size([2, 64]), Linear(in_features=64, out_features=3, bias=True))
        >>> torch.equal(network(rows), network.fc(network.features(rows)))
        True
    """

    fc: nn.Linear
    rows_before_training: int = 0

    def look_at(self, inputs: Tensor) -> None:
        """Compute, before training, what the network derives from training rows, without their labels."""

    def features(self, inputs: Tensor) -> Tensor:
        """Return the input of `fc`: (B, `fc.in_features`)."""
        raise NotImplementedError

    def forward(self, inputs: Tensor) -> Tensor:
        """Return logits (B, K)."""
        logits: Tensor = self.fc(self.features(inputs))
        return logits
