"""What a method asks the loop for: networks, optimisers and state. The loop knows all of it and can save all of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from pydantic import ValidationError
from torch import Tensor, nn
from torch.optim import Optimizer

from postmax.errors import InputError
from postmax.train.config import OptimiserConfig, RunConfig
from postmax.train.explanation import explain
from postmax.train.optimisers import ScheduledOptimiser, make_optimiser, optimiser_state, restore_optimiser
from postmax.train.state import State, named
from postmax.train.work import Work

if TYPE_CHECKING:
    from lightning_fabric import Fabric


class Resources:
    """Makes the networks, optimisers and tensors of one method, and remembers them.

    Args:
        config: The configuration of the run.
        fabric: Puts networks on their device, in their precision.
        new_network: Makes a network from its number (0, 1, …) and its number of outputs.
        seed_module: Sets torch's global generator for the random weights of a module with this name.
        rows: How many training rows there are.
        classes: How many outputs a network has if the method does not say it.

    Attributes:
        networks: The networks in the order in which they were made.
        outputs: How many outputs each network has.
    """

    def __init__(
        self,
        config: RunConfig,
        fabric: Fabric,
        new_network: Callable[[int, int | None], nn.Module],
        seed_module: Callable[[str], None],
        rows: int,
        classes: int,
    ) -> None:
        self._config, self._fabric, self._new_network, self._rows = config, fabric, new_network, rows
        self._classes = classes
        self._seed_module = seed_module
        self.networks: list[nn.Module] = []
        self.outputs: dict[nn.Module, int] = {}
        self.modules: dict[str, nn.Module] = {}
        self.work = Work()
        self.optimisers: dict[str, ScheduledOptimiser] = {}
        self._tensors: dict[str, Tensor] = {}

    def network(self, *, outputs: int | None = None) -> nn.Module:
        """Make a network; see `postmax.methods.method.MakeNetwork`."""
        plain = self._new_network(len(self.networks), outputs)
        self.work.watch(plain)
        network = on_device(self._fabric, plain, self._config.precision)
        self.networks.append(network)
        self.outputs[network] = self._classes if outputs is None else outputs
        return network

    def module(self, name: str, make: Callable[[], nn.Module]) -> nn.Module:
        """Make a part of a network; see `postmax.methods.method.MakeModule`."""
        _check_free(name, self.modules, "modules")
        self._seed_module(name)
        self.modules[name] = on_device(self._fabric, make(), self._config.precision)
        return self.modules[name]

    def optimiser(
        self,
        parameters: Sequence[Tensor],
        name: str = "main",
        *,
        kind: str | None = None,
        lr: float | None = None,
        momentum: float | None = None,
        weight_decay: float | None = None,
        betas: tuple[float, float] | None = None,
        scheduled: bool = True,
        regularised: bool = True,
        span: tuple[int, int] | None = None,
    ) -> Optimizer:
        """Make an optimiser; see `postmax.methods.method.MakeOptimiser`."""
        _check_free(name, self.optimisers, "optimisers")
        wanted = {"name": kind, "lr": lr, "momentum": momentum, "weight_decay": weight_decay, "betas": betas}
        changes: dict[str, Any] = {key: value for key, value in wanted.items() if value is not None}
        if changes.get("momentum") == 0:
            changes["nesterov"] = False
        if not regularised:
            changes |= {"l1": 0.0, "clip_norm": None, "bias_rate": 1.0}
        config = _changed(self._config.optimiser, changes, name)
        parameters = list(parameters)
        optimiser = make_optimiser(config, parameters, fused=self._fabric.device.type in ("cpu", "cuda"))
        schedule = self._config.schedule if scheduled else None
        self.optimisers[name] = ScheduledOptimiser(optimiser, parameters, config, schedule, span)
        return optimiser

    def row_state(self, name: str, shape: tuple[int, ...] = (), *, dtype: torch.dtype = torch.float32) -> Tensor:
        """Make per-row state; see `postmax.methods.method.MakeRowState`."""
        return self.state(name, torch.zeros(self._rows, *shape, dtype=dtype))

    def state(self, name: str, tensor: Tensor) -> Tensor:
        """Register a tensor that must survive a restart, and return a copy of it on the device of the run."""
        _check_free(name, self._tensors, "tensors")
        self._tensors[name] = tensor.detach().to(self._fabric.device, copy=True)
        return self._tensors[name]

    def settings_of(self, optimiser: Optimizer) -> ScheduledOptimiser:
        """Return what belongs to an optimiser that this object made.

        Raises:
            InputError: If another object made it.
        """
        for found in self.optimisers.values():
            if found.optimiser is optimiser:
                return found
        raise InputError("a method must take its optimisers from setup.optimiser: this one would not be saved.")

    @property
    def trained(self) -> list[Tensor]:
        """All tensors that optimisers move."""
        return [parameter for found in self.optimisers.values() for parameter in found.parameters]

    def check_answer(self, answer: object, method: str) -> None:
        """Check that a method's answer consists of networks that this object made, and of nothing else.

        Raises:
            InputError: If the method has no answer, or the answer has weights that a checkpoint would not have.
        """
        if not isinstance(answer, nn.Module):
            raise InputError(f"the method {method} must set `answer` to the module that gives its outputs.")
        known = {id(t) for network in self.networks for t in (*network.parameters(), *network.buffers())}
        if any(id(tensor) not in known for tensor in (*answer.parameters(), *answer.buffers())):
            raise InputError(
                f"the answer of the method {method} has weights that do not come from setup.network: a checkpoint "
                "would not have them."
            )

    def train(self, mode: bool) -> None:
        """Put all networks and modules into training mode, or into evaluation mode."""
        for part in (*self.networks, *self.modules.values()):
            part.train(mode)

    def save(self) -> State:
        """Return everything a checkpoint must know."""
        tensors, values = named("state", self._tensors), {}
        for number, network in enumerate(self.networks):
            tensors |= named(f"network/{number}", network.state_dict())
        for name, module in self.modules.items():
            tensors |= named(f"module/{name}", module.state_dict())
        for name, found in self.optimisers.items():
            state, values[name] = optimiser_state(found.optimiser)
            tensors |= named(f"optimiser/{name}", state)
        return State(tensors, {"optimisers": values})

    def restore(self, state: State) -> None:
        """Put back what `save` returned."""
        tensors = state.part("state")
        if tensors.keys() != self._tensors.keys():
            raise ValueError(f"it has the tensors {sorted(tensors)}, the method needs {sorted(self._tensors)}")
        for number, network in enumerate(self.networks):
            network.load_state_dict(state.part(f"network/{number}"))
        for name, module in self.modules.items():
            module.load_state_dict(state.part(f"module/{name}"))
        for name, found in self.optimisers.items():
            restore_optimiser(found.optimiser, state.part(f"optimiser/{name}"), state.values["optimisers"][name])
        with torch.no_grad():
            for name, tensor in tensors.items():
                self._tensors[name].copy_(tensor)


def on_device(fabric: Fabric, network: nn.Module, precision: str) -> nn.Module:
    """Return a network on the device of the run, in its precision.

    In plain float32 the network stays as it is. Fabric's wrapper would convert inputs and outputs that need no
    conversion, which takes a seventh of the time of a step of a small network.
    """
    if precision == "32-true":
        return network.to(fabric.device)
    wrapped = fabric.setup_module(network)
    if hasattr(network, "features"):
        wrapped.mark_forward_method("features")
    return wrapped


def _check_free(name: str, taken: Mapping[str, object], kind: str) -> None:
    if name in taken:
        raise InputError(f"the method uses the name {name!r} for two {kind}: give each a name of its own.")


def _changed(config: OptimiserConfig, changes: Mapping[str, Any], name: str) -> OptimiserConfig:
    try:
        return OptimiserConfig.model_validate({**config.model_dump(), **changes})
    except ValidationError as error:
        raise InputError(f"the optimiser {name!r} of the method: {explain(error, OptimiserConfig)}") from None
