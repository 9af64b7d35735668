"""What the answer of a method consists of, in plain values, so that a saved model can answer without its method.

An answer is a network, or networks that are put together by one of the modules in this folder. Its *composition* says
how: `{"kind": "mean", "of": [{"kind": "network", "outputs": 10}, {"kind": "network", "outputs": 10}]}`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from postmax.errors import InputError
from postmax.methods.method import Method
from postmax.methods.parts.ensemble import MeanOutputs
from postmax.methods.parts.log_ratios import log_ratio_basis
from postmax.methods.parts.outputs import FirstOutputs, LogRatioLogits
from postmax.methods.parts.stages import Stages

Composition = Mapping[str, Any]

# Names that no weight of a network can have.
STAGE = "postmax/stage"
LABEL_NOISE = "postmax/label-noise"
_PARTS = "networks"


def composition_of_method(method: Method, outputs: Mapping[nn.Module, int]) -> dict[str, Any]:
    """Return the composition of the answer of a method, with the source of the posterior of the labels as "labels".

    That is "loss" if the loss gives it, "noise" if it is the posterior of the true class sent through
    `Method.label_noise`, and "unknown" if the method has a way of its own.

    Args:
        method: The method.
        outputs: Its networks, with the number of outputs of each.

    Raises:
        InputError: If a saved model cannot answer as the method does.
    """
    kind = type(method)
    if kind.readings is not Method.readings:
        raise InputError("the method turns outputs into posteriors in a way of its own (`readings`)")
    by_loss = kind.label_posterior is Method.label_posterior
    labels = "loss" if by_loss else "unknown" if method.label_noise() is None else "noise"
    return {**composition_of(method.answer, outputs), "labels": labels}


def composition_of(answer: nn.Module, outputs: Mapping[nn.Module, int]) -> dict[str, Any]:
    """Return the composition of an answer.

    Args:
        answer: The answer of a method.
        outputs: The networks of the method, with the number of outputs of each.

    Raises:
        InputError: If the answer has a part that is none of these networks and none of the known modules.

    Example:
        >>> network = nn.Linear(3, 5)
        >>> composition_of(FirstOutputs(network, 4), {network: 5})
        {'kind': 'first', 'count': 4, 'of': [{'kind': 'network', 'outputs': 5}]}
    """
    if answer in outputs:
        return {"kind": "network", "outputs": outputs[answer]}
    if isinstance(answer, MeanOutputs):
        return {"kind": "mean", "of": [composition_of(part, outputs) for part in answer.networks]}
    if isinstance(answer, Stages):
        return {"kind": "stages", "of": [composition_of(part, outputs) for part in answer.networks]}
    if isinstance(answer, FirstOutputs):
        return {"kind": "first", "count": answer.count, "of": [composition_of(answer.network, outputs)]}
    if isinstance(answer, LogRatioLogits):
        return {"kind": "log-ratios", "classes": answer.basis.shape[1], "of": [composition_of(answer.network, outputs)]}
    raise InputError(
        f"the answer has a part of the class {type(answer).__name__}, and a saved model knows only networks from "
        "setup.network and the modules of postmax.methods.parts that put networks together"
    )


def state_of(method: Method) -> dict[str, Tensor]:
    """Return what the answer of a method needs besides its weights, as it is now: the stage, and the label noise."""
    found = {}
    if isinstance(method.answer, Stages):
        found[STAGE] = method.answer.stage
    noise = method.label_noise()
    if noise is not None:
        found[LABEL_NOISE] = noise
    return found


def at_stage(composition: Composition, tensors: Mapping[str, Tensor]) -> tuple[Composition, dict[str, Tensor]]:
    """Return the composition and the tensors of the network that answers at the stage of the tensors, without others.

    Raises:
        InputError: If the stage is needed and not known.
    """
    if composition["kind"] != "stages":
        return composition, dict(tensors)
    if STAGE not in tensors:
        raise InputError("it is not known which of the networks answered at the selected epoch")
    stage = int(tensors[STAGE])
    own = f"{_PARTS}.{stage}."
    kept = {name.removeprefix(own): tensor for name, tensor in tensors.items() if name.startswith(own)}
    besides = {name: tensor for name, tensor in tensors.items() if "/" in name and name != STAGE}
    return {**composition["of"][stage], "labels": composition["labels"]}, kept | besides


def build(composition: Composition, make_network: Callable[[int], nn.Module]) -> nn.Module:
    """Return the answer that a composition describes.

    Args:
        composition: The composition. Its networks have no stages any more.
        make_network: Makes a network with this many outputs.

    Raises:
        KeyError: If the composition is of another kind than those that are known.

    Example:
        >>> build({"kind": "mean", "of": [{"kind": "network", "outputs": 2}] * 2}, lambda k: nn.Linear(3, k))
        MeanOutputs(
          (networks): ModuleList(
            (0-1): 2 x Linear(in_features=3, out_features=2, bias=True)
          )
        )
    """
    if composition["kind"] == "network":
        return make_network(composition["outputs"])
    parts = [build(part, make_network) for part in composition["of"]]
    return _TOGETHER[composition["kind"]](composition, parts)


def _first(composition: Composition, parts: Sequence[nn.Module]) -> nn.Module:
    return FirstOutputs(parts[0], composition["count"])


def _log_ratios(composition: Composition, parts: Sequence[nn.Module]) -> nn.Module:
    return LogRatioLogits(parts[0], log_ratio_basis(composition["classes"]))


_TOGETHER: Mapping[str, Callable[[Composition, Sequence[nn.Module]], nn.Module]] = {
    "mean": lambda _, parts: MeanOutputs(parts),
    "first": _first,
    "log-ratios": _log_ratios,
}


def networks_of(answer: nn.Module) -> list[nn.Module]:
    """Return the networks of an answer that `build` made."""
    if isinstance(answer, MeanOutputs | Stages):
        return [network for part in answer.networks for network in networks_of(part)]
    if isinstance(answer, FirstOutputs | LogRatioLogits):
        return networks_of(answer.network)
    return [answer]
