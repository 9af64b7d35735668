"""Which matrix products and convolutions torch is asked for in half precision."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode

HALF = (torch.bfloat16, torch.float16)
PRODUCTS = (
    "mm",
    "bmm",
    "addmm",
    "baddbmm",
    "addbmm",
    "mv",
    "addmv",
    "dot",
    "linear",
    "convolution",
    "convolution_backward",
)


class HalfProducts(TorchDispatchMode):
    """Notes them in `seen` while the `with` block runs. On some CPUs such an operation ends the process."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        name = operation.overloadpacket.__name__
        if name in PRODUCTS and any(getattr(value, "dtype", None) in HALF for value in args):
            self.seen.append(name)
        return operation(*args, **(kwargs or {}))
