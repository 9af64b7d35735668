"""Networks that are trained one after the other."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn


class Stages(nn.Module):
    """The answer of a method that trains several networks one after the other: the network of the present stage.

    Args:
        networks: The networks, in the order in which they are trained.
        stage: The number of the present stage, a whole number in a tensor from `Setup.state`. The method changes it in
            place, so that a resumed run knows it too.

    Example:
        >>> import torch
        >>> stage = torch.tensor(0)
        >>> answer = Stages([nn.Identity(), nn.Flatten(0)], stage)
        >>> answer(torch.zeros(2, 3)).shape, stage.fill_(1), answer(torch.zeros(2, 3)).shape
        (torch.Size([2, 3]), tensor(1), torch.Size([6]))
    """

    def __init__(self, networks: Sequence[nn.Module], stage: Tensor) -> None:
        super().__init__()
        self.networks = nn.ModuleList(networks)
        self.stage = stage

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the outputs of the network of the present stage."""
        outputs: Tensor = self.networks[int(self.stage)](inputs)
        return outputs
