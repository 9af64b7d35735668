"""Initial weights as in the published code of several papers.

All of them are drawn from torch's global generator, so `torch.manual_seed` before building a network fixes them.
"""

from __future__ import annotations

from torch import nn

from postmax.registry import unknown_name

INITIALISATIONS = {
    "torch": "the default of torch.nn",
    "apl": "convolutions uniform (He, fan in), linear weights uniform (Glorot): APL, ALFs, ANL",
    "fan-out": "convolutions normal (He, fan out): torchvision, ProMix",
}


def initialise(network: nn.Module, init: str) -> None:
    """Draw new weights for `network`. Biases and batch normalisation stay as torch initialises them.

    Args:
        network: Its convolutions and linear layers are changed in place.
        init: One of `INITIALISATIONS`.

    Raises:
        InputError: If there is no such initialisation.
    """
    if init not in INITIALISATIONS:
        raise unknown_name("initialisation", str(init), INITIALISATIONS)
    if init == "torch":
        return
    for module in network.modules():
        if isinstance(module, nn.Conv2d) and init == "apl":
            nn.init.kaiming_uniform_(module.weight, mode="fan_in", nonlinearity="relu")
        elif isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        elif isinstance(module, nn.Linear) and init == "apl":
            nn.init.xavier_uniform_(module.weight)
