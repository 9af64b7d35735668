"""The 7-layer CNN of JoCoR."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from postmax.models.catalogue import register
from postmax.models.cnn8 import convolution
from postmax.models.initialisation import initialise
from postmax.models.network import Network
from postmax.models.shapes import check_classes, check_image

# The widths of three pairs of convolutions.
_PAIRS = ((64, 64), (128, 128), (196, 16))


class CNN7(Network):
    """Six 3×3 convolutions in three pairs, each pair ending in a 2×2 max-pool, then the logits.

    Batch normalisation and ReLU follow every convolution, and every layer has a bias. Wei et al. (JoCoR, 2020) train it
    on CIFAR-10 and CIFAR-100.

    Args:
        input_shape: (channels, height, width), at least 8×8. At 32×32 the logits see 4·4·16 = 256 features.
        num_classes: K.
        init: One of `INITIALISATIONS`.

    Raises:
        InputError: If the rows are not images, the images are too small, or an argument is unknown.

    Example:
        >>> sum(p.numel() for p in CNN7((3, 32, 32), 10).parameters())
        518150
    """

    def __init__(self, input_shape: Sequence[int], num_classes: int, *, init: str = "torch") -> None:
        super().__init__()
        channels, height, width = check_image("cnn7", input_shape, least=8, instead="'mlp'")
        layers: list[nn.Module] = []
        for first, second in _PAIRS:
            layers += [*convolution(channels, first), *convolution(first, second), nn.MaxPool2d(2)]
            channels = second
        self.body = nn.Sequential(*layers)
        self.fc = nn.Linear(channels * (height // 8) * (width // 8), check_classes(num_classes))
        initialise(self, init)

    def features(self, inputs: Tensor) -> Tensor:
        """Return what the last max-pool leaves, as one row."""
        found: Tensor = self.body(inputs).flatten(1)
        return found


register("cnn7", CNN7, summary="7-layer CNN of JoCoR, for CIFAR", channels_last=True)
