"""PADDLES: the amplitudes of feature maps are stopped before their phases, because they memorise wrong labels sooner.

Huang, Kang, Liu, Salvado, Rakotoarivelo, Wang and Liu, PADDLES: Phase-amplitude spectrum disentangled early stopping
for learning with noisy labels, ICCV 2023.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import nn

from postmax.losses import Loss
from postmax.methods.catalogue import register
from postmax.methods.facts import Facts, Preset
from postmax.methods.method import Epoch, Setup, Step
from postmax.methods.parts.frequencies import amplitudes_detached
from postmax.methods.parts.options import check_number
from postmax.methods.parts.phases import phase_epochs
from postmax.methods.pes import PES, SEMI_TRAINING, TRAINING

# Published: amplitudes stop after 19 of 30 epochs, and with MixMatch after 30 of 35. The second phase of PES follows: 7
# and 5 epochs in a training of 200, and with MixMatch 5 epochs in one of 300.
_PLAIN, _SEMI = (19, 30, 200 + 7 + 5), (30, 35, 300 + 5)


class Paddles(PES):
    """Stop the amplitudes of feature maps early, their phases somewhat later, and go on as PES does.

    The Fourier transform of a feature map has an amplitude and a phase at each frequency. The amplitudes say how strong
    patterns are, the phases say where they are. Amplitudes fit wrong labels sooner. So the first phase of PES has two
    parts: for some epochs the network is trained as usual. Then no gradient goes through the amplitudes of the maps
    before the last block any more, so that earlier parts learn through the phases alone. At the end of the first phase
    earlier parts are stopped altogether, and the last block and the last layer are trained anew.

    Features that are no maps, as in a perceptron, have no phase but a sign. There the earlier parts are stopped
    together with the amplitudes. In a linear model nothing is stopped.

    Args:
        setup: What the loop offers.
        amplitude_epochs: After how many epochs the amplitudes are stopped. By default 63 % of the first phase, or 86 %
            with MixMatch.
        warmup_epochs: After how many epochs the phases are stopped too, and the first phase is over. By default 14 % of
            the training, or 11 % with MixMatch.
        block_epochs: As for PES.
        layer_epochs: As for PES.
        refine_lr: As for PES.
        semi_supervised: As for PES.
        temperature: As for PES.
        alpha: As for PES.
        late_alpha: As for PES.
        unlabelled_weight: As for PES.
        ramp_epochs: As for PES.
    """

    name = "paddles"

    def __init__(
        self,
        setup: Setup,
        *,
        amplitude_epochs: int | None = None,
        warmup_epochs: int | None = None,
        block_epochs: int | None = None,
        layer_epochs: int | None = None,
        refine_lr: float | None = None,
        semi_supervised: bool = False,
        temperature: float = 0.5,
        alpha: float = 4.0,
        late_alpha: float = 0.75,
        unlabelled_weight: float | None = None,
        ramp_epochs: int | None = None,
    ) -> None:
        amplitude, warmup, epochs = _SEMI if semi_supervised is True else _PLAIN
        warmup_epochs = phase_epochs(warmup_epochs, warmup / epochs, setup.epochs)
        super().__init__(
            setup,
            warmup_epochs=warmup_epochs,
            block_epochs=block_epochs,
            layer_epochs=layer_epochs,
            refine_lr=refine_lr,
            semi_supervised=semi_supervised,
            temperature=temperature,
            alpha=alpha,
            late_alpha=late_alpha,
            unlabelled_weight=unlabelled_weight,
            ramp_epochs=ramp_epochs,
        )
        self._amplitude_epochs = phase_epochs(amplitude_epochs, amplitude / warmup, warmup_epochs)
        check_number(least=0, whole=True, amplitude_epochs=self._amplitude_epochs)

    @property
    def _place(self) -> nn.Module | None:
        """The module whose output is split: the end of the part before the last block, or before the last layer."""
        earlier = self._parts[:-2] or self._parts[:-1]
        return earlier[-1][-1] if earlier else None

    def _learn_early(self, run: Epoch, loss: Loss) -> Iterator[Step]:
        """Train the whole network on all labels, from some epoch on without the amplitudes."""
        place = self._place
        if place is None or run.number < self._amplitude_epochs:
            yield from super()._learn_early(run, loss)
        else:
            with amplitudes_detached(place):
                yield from super()._learn_early(run, loss)


_SOURCE = "Huang et al. 2023, released code"


def _semi(amplitude: int, phase: int, weight: float) -> Preset:
    options: dict[str, Any] = {"amplitude_epochs": amplitude, "warmup_epochs": phase, "layer_epochs": 5}
    options |= {"refine_lr": 1e-4, "unlabelled_weight": weight}
    return Preset({"semi_supervised": True, **options}, _SOURCE, SEMI_TRAINING)


register(
    "paddles",
    Paddles,
    "PES, with a first phase that stops the amplitudes of feature maps before their phases",
    Facts(
        idea="The frequencies of a feature map have amplitudes and phases. Amplitudes fit wrong labels sooner than "
        "phases do. So the network first stops learning through amplitudes, later also through phases. Then its last "
        "parts are trained anew, and it learns from rows whose label is the predicted class, as in PES.",
        source="Huang et al., PADDLES: Phase-amplitude spectrum disentangled early stopping for learning with noisy "
        "labels, ICCV 2023",
        remembers="whether its label was the predicted class in the last epoch",
        posterior="As in PES: the predicted class, and with MixMatch the targets and the squared error of rows without "
        "labels, are those of the posterior.",
        deviations="Each map is transformed over its two axes; the released code also transforms over channels and "
        "rows, so that rows of a batch change each other's gradients. Only the gradient is split, and the forward pass "
        "needs no transform. Features that are no maps stop together with the amplitudes. Phases stop when the last "
        "parts are trained anew; with MixMatch, the released code has one epoch in between. All deviations of PES "
        "apply too.",
    ),
    presets={
        "cifar10": Preset(
            {"amplitude_epochs": 19, "warmup_epochs": 30, "block_epochs": 7, "layer_epochs": 5, "refine_lr": 1e-4},
            _SOURCE,
            TRAINING,
        ),
        "mixmatch": _semi(30, 35, 150),
        "cifar100-symmetric-80-mixmatch": _semi(18, 30, 100),
        "cifar10n-mixmatch": _semi(20, 30, 5),
        "cifar100n-mixmatch": _semi(20, 30, 75),
    },
)
