"""Networks by name.

Example:
    >>> import torch
    >>> from postmax import models
    >>> network = models.get("small", num_classes=10, input_shape=(3, 32, 32))
    >>> network(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
"""

from __future__ import annotations

from postmax.models.catalogue import Architecture, describe, get, names, register
from postmax.models.cnn7 import CNN7
from postmax.models.cnn8 import CNN8
from postmax.models.fast import Fast
from postmax.models.flops import flops
from postmax.models.initialisation import INITIALISATIONS
from postmax.models.mlp import MLP
from postmax.models.network import Network
from postmax.models.preact import PreActResNet18
from postmax.models.resnet import BasicBlock, Bottleneck, ResNet, resnet18, resnet34, resnet50
from postmax.models.small import Small
from postmax.models.wide_resnet import WRN28x2

__all__ = [
    "CNN7",
    "CNN8",
    "INITIALISATIONS",
    "MLP",
    "Architecture",
    "BasicBlock",
    "Bottleneck",
    "Fast",
    "Network",
    "PreActResNet18",
    "ResNet",
    "Small",
    "WRN28x2",
    "describe",
    "flops",
    "get",
    "names",
    "register",
    "resnet18",
    "resnet34",
    "resnet50",
]
