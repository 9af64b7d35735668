"""A saved model as a module: from rows, as a file has them, to the posterior of the true class."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps

import torch
from torch import Tensor, nn

from postmax import losses, models
from postmax.errors import DataError, InputError, PostmaxWarning, UnknownNameError
from postmax.losses import Loss
from postmax.methods.parts.answers import build, networks_of
from postmax.methods.parts.corrections import true_posterior
from postmax.runs.model_file import SavedModel
from postmax.runs.remedies import missing_plugins
from postmax.runs.trained import Trained
from postmax.train.scaling import scaled
from postmax.transition import Transition


class TrainedModel(Trained):
    """One trained seed of a run.

    Args:
        saved: What was saved.
        precision: "32-true" or "bf16-mixed", in which the networks compute. None for that in which they were judged.

    Raises:
        InputError: If the model needs something that is not here, such as a plugin, or cannot be used at all.
    """

    def __init__(self, saved: SavedModel, precision: str | None = None) -> None:
        super().__init__()
        if saved.answer is None:
            raise InputError(f"the model cannot be used without the program that trained it: {saved.why_not}.")
        self.saved: SavedModel = saved
        self.precision = precision or saved.precision
        try:
            self.answer = _answer(saved)
            self.loss = _loss(saved)
        except UnknownNameError as error:
            raise UnknownNameError(f"{error}{missing_plugins(saved.about.get('plugins') or ())}") from error
        if self.precision == "bf16-mixed":
            for network in networks_of(self.answer):
                network.forward = _in_bfloat16(network.forward)
        self._scaling = None if saved.scaling is None else saved.scaling.tensors()
        self.eval().requires_grad_(requires_grad=False)

    def prepared(self, rows: Tensor) -> Tensor:
        """Return rows as the networks get them: features filled in and scaled, images cropped and normalised."""
        if self._scaling is not None:
            return scaled(rows, self._scaling)
        return rows if self.saved.pixels is None else self.saved.pixels(rows)

    def afresh(self) -> TrainedModel:
        """Return the same model, made again: on the CPU and in float32."""
        return TrainedModel(self.saved, "32-true")

    @property
    def spread(self) -> tuple[Tensor, Tensor] | None:
        """The mean and 1 / standard deviation of the training features."""
        return None if self._scaling is None else self._scaling[1:]

    def posterior(self, outputs: Tensor) -> Tensor:
        """Return P(true class | row) for outputs (B, K) of the answer. If noise is corrected, it is gone."""
        return self.loss.posterior(outputs)

    def label_posterior(self, outputs: Tensor) -> Tensor:
        """Return P(label as given | row), noise included, for outputs (B, K) of the answer.

        Raises:
            InputError: If the method has a way of its own to this posterior.
        """
        source = (self.saved.answer or {}).get("labels")
        if source == "unknown":
            raise InputError("the method of this model does not say what the noise of the labels is.")
        if source == "noise" and self.saved.label_noise is not None:
            noise = self.saved.label_noise.to(outputs.device)
            return (true_posterior(self.loss, outputs) @ noise).to(outputs.dtype)
        return self.loss.label_posterior(outputs)


def _answer(saved: SavedModel) -> nn.Module:
    shape = saved.rows.shape if saved.pixels is None else saved.pixels.shape(saved.rows.shape)
    options = {name: value for name, value in saved.network.items() if name != "name"}
    name = saved.network["name"]

    def make_network(outputs: int) -> nn.Module:
        network: nn.Module = models.get(name, num_classes=outputs, input_shape=shape, **options)
        if models.describe(name).channels_last:
            network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return network

    with torch.random.fork_rng(devices=[]):  # new networks have random weights, which are replaced
        answer = build(saved.answer or {}, make_network)
    try:
        answer.load_state_dict(dict(saved.weights))
    except (RuntimeError, KeyError) as error:
        raise DataError(
            f"the weights do not fit the network {name} as it is in this version of postmax; the model was written by "
            f"{saved.version}. {error}"
        ) from error
    return answer


def _loss(saved: SavedModel) -> Loss:
    transition = None
    if saved.transition is not None:
        transition = Transition(saved.transition)
        # Rows were normalised before they were saved. Doing it again could change the last digit.
        transition.matrix = saved.transition.double()
    options = {name: value for name, value in saved.loss.items() if name != "name"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PostmaxWarning)  # advice for training
        return losses.get(saved.loss["name"], transition=transition, reduction="none", **options)


def _in_bfloat16(forward: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Return the same computation in bfloat16 where that is safe, as Fabric does it in training."""

    @wraps(forward)
    def mixed(inputs: Tensor) -> Tensor:
        with torch.autocast(inputs.device.type, torch.bfloat16):
            return forward(inputs).float()

    return mixed
