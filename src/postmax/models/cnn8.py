"""The 8-layer CNN that the literature compares losses for noisy labels on."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from postmax.models.catalogue import register
from postmax.models.initialisation import initialise
from postmax.models.network import Network
from postmax.models.shapes import check_classes, check_image

_WIDTHS = (64, 128, 196)


class CNN8(Network):
    """Six 3×3 convolutions in three pairs, each pair ending in a 2×2 max-pool, then 256 units and the logits.

    Batch normalisation and ReLU follow every layer but the last, and every layer has a bias. It came with SCE (Wang et
    al., 2019); Ma et al. (APL, 2020) and their successors use it for CIFAR-10.

    Args:
        input_shape: (channels, height, width), at least 8×8. At 32×32 the 256 units see 4·4·196 = 3136 features.
        num_classes: K.
        init: One of `INITIALISATIONS`; "apl" is what these papers do.

    Raises:
        InputError: If the rows are not images, the images are too small, or an argument is unknown.

    Example:
        >>> sum(p.numel() for p in CNN8((3, 32, 32), 10).parameters())
        1639794
    """

    def __init__(self, input_shape: Sequence[int], num_classes: int, *, init: str = "apl") -> None:
        super().__init__()
        channels, height, width = check_image("cnn8", input_shape, least=8, instead="'mlp'")
        layers: list[nn.Module] = []
        for wide in _WIDTHS:
            layers += [*convolution(channels, wide), *convolution(wide, wide), nn.MaxPool2d(2)]
            channels = wide
        self.body = nn.Sequential(*layers)
        self.hidden = nn.Sequential(
            nn.Linear(channels * (height // 8) * (width // 8), 256), nn.BatchNorm1d(256), nn.ReLU()
        )
        self.fc = nn.Linear(256, check_classes(num_classes))
        initialise(self, init)

    def features(self, inputs: Tensor) -> Tensor:
        """Return the 256 hidden units."""
        units: Tensor = self.hidden(self.body(inputs).flatten(1))
        return units


def convolution(channels: int, wide: int) -> list[nn.Module]:
    """Return a 3×3 convolution with its batch normalisation and ReLU."""
    return [nn.Conv2d(channels, wide, 3, padding=1), nn.BatchNorm2d(wide), nn.ReLU()]


register("cnn8", CNN8, summary="8-layer CNN of the active-passive-loss papers (APL, ALFs, ANL)", channels_last=True)
