"""The layers of the networks written out from their definitions, on a dictionary of parameters."""

import torch


class Naive:
    """`Naive(network)("layer1.0.conv1", x)` and so on; batch statistics in train mode, running ones in eval mode."""

    def __init__(self, network):
        self.values = {name: value.clone() for name, value in network.state_dict().items()}
        self.training = network.training

    def conv(self, name, x, stride=1, padding=None):
        weight = self.values[f"{name}.weight"]
        side = weight.shape[-1]
        pad = side // 2 if padding is None else padding
        batch, channels, height, width = x.shape
        padded = x.new_zeros(batch, channels, height + 2 * pad, width + 2 * pad)
        padded[:, :, pad : pad + height, pad : pad + width] = x
        rows, columns = ((size + 2 * pad - side) // stride + 1 for size in (height, width))
        out = x.new_zeros(batch, len(weight), rows, columns)
        for i in range(side):
            for j in range(side):
                seen = padded[
                    :, :, i : i + stride * (rows - 1) + 1 : stride, j : j + stride * (columns - 1) + 1 : stride
                ]
                out += torch.einsum("bcyx,oc->boyx", seen, weight[:, :, i, j])
        bias = self.values.get(f"{name}.bias")
        return out if bias is None else out + bias[:, None, None]

    def norm(self, name, x):
        axes = (0, 2, 3) if x.dim() == 4 else (0,)
        shape = (1, -1, 1, 1) if x.dim() == 4 else (1, -1)
        if self.training:
            mean = x.mean(axes)
            variance = (x - mean.view(shape)).square().mean(axes)
        else:
            mean, variance = self.values[f"{name}.running_mean"], self.values[f"{name}.running_var"]
        scaled = (x - mean.view(shape)) / (variance.view(shape) + 1e-5).sqrt()
        return scaled * self.values[f"{name}.weight"].view(shape) + self.values[f"{name}.bias"].view(shape)

    def linear(self, name, x):
        bias = self.values.get(f"{name}.bias")
        product = x @ self.values[f"{name}.weight"].T
        return product if bias is None else product + bias

    def has(self, name):
        return f"{name}.weight" in self.values


def relu(x):
    return x * (x > 0)


def max_pool(x, side, stride, pad=0):
    batch, channels, height, width = x.shape
    padded = x.new_full((batch, channels, height + 2 * pad, width + 2 * pad), -torch.inf)
    padded[:, :, pad : pad + height, pad : pad + width] = x
    rows, columns = ((size + 2 * pad - side) // stride + 1 for size in (height, width))
    best = x.new_full((batch, channels, rows, columns), -torch.inf)
    for i in range(side):
        for j in range(side):
            seen = padded[:, :, i : i + stride * (rows - 1) + 1 : stride, j : j + stride * (columns - 1) + 1 : stride]
            best = torch.maximum(best, seen)
    return best


def unlike_new(network):
    """Batch normalisation with scales, shifts and statistics of its own, so that its place in the order shows."""
    generator = torch.Generator().manual_seed(7)
    for module in network.modules():
        if isinstance(module, (torch.nn.BatchNorm1d, torch.nn.BatchNorm2d)):
            for value, low in ((module.weight, 0.5), (module.running_var, 0.5), (module.bias, -0.5)):
                value.data.copy_(torch.rand(value.shape, generator=generator) + low)
            module.running_mean.copy_(torch.rand(module.running_mean.shape, generator=generator) - 0.5)
    return network.double()


def images(count, channels, side, seed=1):
    return torch.randn(count, channels, side, side, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def parameters(network):
    return sum(p.numel() for p in network.parameters())
