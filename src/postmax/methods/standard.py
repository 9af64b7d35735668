"""One network, one loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn

from postmax.losses import Loss
from postmax.methods.catalogue import register
from postmax.methods.method import Method, Setting, Step

if TYPE_CHECKING:
    from postmax.train.side_by_side import LaneBatch


class Standard(Method):
    """Minimise the loss of the labels as they are; whatever is done about noise, the loss does it."""

    def __init__(self, setting: Setting) -> None:
        super().__init__()
        self.networks = setting.networks()
        self.loss = setting.loss
        self._epochs = setting.epochs

    def training_step(self, batch: LaneBatch, epoch: int) -> Step:
        """The mean loss of each lane."""
        logits = self.networks(batch.inputs)
        share = epoch / self._epochs
        if self._one_for_all:
            losses = _at(self.loss, share)(logits.flatten(0, 1), batch.labels.flatten()).view_as(batch.labels)
        else:
            lanes = zip(self._lane_losses(len(logits)), logits, batch.labels, strict=True)
            losses = torch.stack([_at(loss, share)(rows, labels) for loss, rows, labels in lanes])
        return Step(losses.mean(1), logits.detach())

    def forward(self, inputs: Tensor) -> Tensor:
        """The logits of every lane."""
        logits: Tensor = self.networks(inputs)
        return logits

    def readings(self, logits: Tensor) -> dict[str, Tensor]:
        """The posterior; beside one that is corrected afterwards, also what it was before."""
        lanes = [_readings(*lane) for lane in zip(self._lane_losses(len(logits)), logits, strict=True)]
        return {name: torch.stack([lane[name] for lane in lanes]) for name in lanes[0]}

    def label_posterior(self, logits: Tensor) -> Tensor:
        """A corrected posterior sent through the noise again; the posterior itself where nothing is corrected."""
        return torch.stack(
            [_label_posterior(*lane) for lane in zip(self._lane_losses(len(logits)), logits, strict=True)]
        )

    @property
    def _one_for_all(self) -> bool:
        # Rows of different seeds must not meet in a loss that mixes rows, nor in one that knows another noise.
        return not isinstance(self.loss, nn.ModuleList) and not getattr(self.loss, "mixes_rows", False)

    def _lane_losses(self, lanes: int) -> list[nn.Module]:
        return list(self.loss) if isinstance(self.loss, nn.ModuleList) else [self.loss] * lanes

    def lane_state(self, lane: int) -> dict[str, Tensor]:
        """The weights of the network of one seed."""
        return self.networks.lane_state(lane)


def _at(loss: nn.Module, share: float) -> nn.Module:
    """The loss after this share of the training, for those that change on the way."""
    later = getattr(loss, "at", None)
    return loss if later is None else cast("nn.Module", later(share))


def _readings(loss: nn.Module, rows: Tensor) -> dict[str, Tensor]:
    known = cast("Loss", loss)
    found = {"model": known.posterior(rows)}
    if known.corrects_posterior:
        found["uncorrected"] = known.label_posterior(rows)
    return found


def _label_posterior(loss: nn.Module, rows: Tensor) -> Tensor:
    return cast("Loss", loss).label_posterior(rows)


register("standard", Standard, "one network trained with one loss")
