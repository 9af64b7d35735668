"""One network, one loss."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor

from postmax.losses import CostLoss, FPMLLoss, PosteriorLoss
from postmax.methods.catalogue import register
from postmax.methods.method import Method, Setting, Step

if TYPE_CHECKING:
    from postmax.train.lanes import LaneBatch


class Standard(Method):
    """Minimise the loss of the labels as they are; whatever is done about noise, the loss does it."""

    def __init__(self, setting: Setting) -> None:
        super().__init__()
        self.networks = setting.networks()
        self.loss = setting.loss
        self._epochs = setting.epochs
        self._objective = setting.loss.objective if isinstance(setting.loss, FPMLLoss) else None

    def training_step(self, batch: LaneBatch, epoch: int) -> Step:
        """The mean loss of each lane."""
        logits = self.networks(batch.inputs)
        loss = self.loss.at(epoch / self._epochs) if isinstance(self.loss, CostLoss) else self.loss
        if getattr(loss, "mixes_rows", False):  # but not rows of different seeds
            losses = torch.stack([loss(*lane) for lane in zip(logits, batch.labels, strict=True)])
        else:
            losses = loss(logits.flatten(0, 1), batch.labels.flatten()).view_as(batch.labels)
        return Step(losses.mean(1), logits.detach())

    def forward(self, inputs: Tensor) -> Tensor:
        """The logits of every lane."""
        logits: Tensor = self.networks(inputs)
        return logits

    def readings(self, logits: Tensor) -> dict[str, Tensor]:
        """The posterior; beside one that is corrected afterwards, also what it was before."""
        rows = logits.flatten(0, 1)
        found = {"model": cast("PosteriorLoss", self.loss).posterior(rows)}
        if self._objective is not None and self._objective.correction == "posterior":
            found["uncorrected"] = replace(self._objective, correction=None, transition=None).posterior(rows)
        return {name: posterior.view_as(logits) for name, posterior in found.items()}

    def label_posterior(self, logits: Tensor) -> Tensor:
        """A corrected posterior sent through the noise again; the posterior itself where nothing is corrected."""
        if isinstance(self.loss, CostLoss):
            return self.loss.label_posterior(logits.flatten(0, 1)).view_as(logits)
        readings = self.readings(logits)
        if "uncorrected" in readings:
            return readings["uncorrected"]
        noise = None if self._objective is None else self._objective.transition
        return readings["model"] if noise is None else readings["model"] @ noise.matrix.to(logits)

    def lane_state(self, lane: int) -> dict[str, Tensor]:
        """The weights of the network of one seed."""
        return self.networks.lane_state(lane)


register("standard", Standard, "one network trained with one loss")
