"""Run any training strategy of postmax on rows in memory, once for each fold.

The loop, the optimisers and the strategies are those of `postmax train`; only the rows come from an array, and nothing
is written.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from postmax import data, methods
from postmax.data import Dataset
from postmax.errors import InputError
from postmax.estimation import TransitionEstimate
from postmax.estimation.threads import SMALL_NETWORK, one_thread
from postmax.losses import Loss
from postmax.methods.parts.answers import STAGE, Composition, at_stage
from postmax.methods.parts.stages import Stages
from postmax.tabular.committee import Committee
from postmax.tabular.lanes import Lanes
from postmax.tabular.training import Folds, Rows
from postmax.train import RunConfig, make_config
from postmax.train.build import make_fabric, one_seed_trainer
from postmax.train.trainer import Trainer
from postmax.train.work import unwatch
from postmax.transition import Transition

NewNetwork = Callable[[int], nn.Module]
_EPOCHS, _FEWEST_STEPS, _MOST_BATCH, _FEWEST_BATCH = 30, 400, 128, 16


@dataclass(frozen=True)
class KnownNoise:
    """Answers what a method asks about the noise."""

    estimated: Callable[[], TransitionEstimate]
    given: Transition | None

    def estimate(self) -> TransitionEstimate:
        """Return the estimate."""
        return self.estimated()

    def transition(self) -> Transition:
        """Return the noise that was given; the estimate if none was given."""
        return self.estimated().transition if self.given is None else self.given


@dataclass(frozen=True)
class EngineSettings:
    """How a strategy is run.

    Attributes:
        method: Its name.
        options: Its options.
        epochs: How many epochs; None to choose it by the number of rows.
        batch: Rows in a batch; None to choose it by the number of rows.
        rate: The learning rate.
        decay: The weight decay.
        seed: The seed of everything random.
        stop_early: Keep the epoch that was best on the held-out rows.
    """

    method: str
    options: Mapping[str, Any]
    epochs: int | None
    batch: int | None
    rate: float
    decay: float
    seed: int
    stop_early: bool

    def config(self, rows: int) -> RunConfig:
        """Return the configuration of a run on so many rows."""
        batch = min(rows, self.batch or min(_MOST_BATCH, max(_FEWEST_BATCH, rows // 8)))
        epochs = self.epochs or max(_EPOCHS, -(-_FEWEST_STEPS * batch // rows))
        return make_config(
            {
                "data": {"name": "rows in memory"},
                "method": {"name": self.method, **self.options},
                "optimiser": {"name": "adamw", "lr": self.rate, "weight_decay": self.decay},
                "epochs": epochs,
                "batch_size": batch,
                "accelerator": "cpu",
                "seeds": [self.seed],
            },
            where="FPMLClassifier",
        )


@dataclass(frozen=True)
class Answered:
    """What a strategy has learnt on the rows outside of one fold.

    Attributes:
        answer: Its network, in evaluation mode.
        composition: What the answer consists of; None if that cannot be said.
        why_not: Why it cannot be said.
        label_posterior: float64 (m, K), the posterior of the label for the held-out rows.
        posterior: The same for the true class.
        history: The score of each epoch on the held-out rows: the mean of −log P(label).
    """

    answer: nn.Module
    composition: Composition | None
    why_not: str
    label_posterior: Tensor
    posterior: Tensor
    history: tuple[float, ...]


def check_method(name: str) -> None:
    """Check that a strategy works on features.

    Raises:
        InputError: If it does not, or there is none of this name.
    """
    facts = methods.describe(name).facts
    if facts is not None and (facts.images_only or facts.complementary):
        what = "images only" if facts.images_only else "labels that name a class which a row does not have"
        raise InputError(f"method={name!r} is for {what}; FPMLClassifier trains on features.")


def run_fold(
    settings: EngineSettings,
    rows: Rows,
    train: Tensor,
    held: Tensor,
    loss: Loss,
    new_network: NewNetwork,
    noise: KnownNoise,
) -> Answered:
    """Train on some rows, and return the network of the epoch that foresaw the labels of the held-out rows best.

    Args:
        settings: How the strategy is run.
        rows: All rows.
        train: The numbers of the rows to train on.
        held: The numbers of the held-out rows.
        loss: The loss, with reduction "none".
        new_network: Makes a network with so many outputs. Torch's global generator is seeded before it is called.
        noise: What is known about the noise.
    """
    config = settings.config(len(train))
    classes = tuple(str(number) for number in range(rows.num_classes))
    dataset = Dataset("rows in memory", rows.features[train], rows.labels[train], classes)

    def seeded_network(number: int, outputs: int | None) -> nn.Module:
        torch.manual_seed(data.generator_for(settings.seed, "network", number).initial_seed())
        return new_network(outputs or rows.num_classes)

    # Networks and dropout draw from torch's global generator. Whoever calls us finds it as it was.
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings(), one_thread(_is_small(new_network, rows)):
        warnings.filterwarnings("ignore", category=UserWarning, module="lightning_fabric")
        trainer = one_seed_trainer(config, dataset, data.Views(), make_fabric(config), loss, seeded_network, noise)
        best, state, scores = float("inf"), {}, []
        features, labels = rows.features[held], rows.labels[held]
        for number in range(config.epochs):
            trainer.epoch(number)
            outputs = _outputs(trainer.method.answer, features)
            chance = trainer.method.label_posterior(outputs)[torch.arange(len(held)), labels]
            scores.append(float(-chance.clamp_min(1e-12).log().mean()))
            if scores[-1] < best or not settings.stop_early:
                best = scores[-1]
                state = {key: value.clone() for key, value in trainer.weights(0).items()}
                posteriors = trainer.method.label_posterior(outputs), trainer.method.readings(outputs)["model"]
            if trainer.is_over:
                break
        answer = trainer.method.answer
        answer.load_state_dict({name: value for name, value in state.items() if "/" not in name})
        unwatch(answer)
        composition, why_not = _composition(trainer, state)
    if STAGE in state:  # the network that answered in that epoch, and not the one that came last
        answer = cast("Stages", answer).networks[int(state[STAGE])]
    label_posterior, posterior = (found.double() for found in posteriors)
    answer.eval().requires_grad_(requires_grad=False)
    return Answered(answer, composition, why_not, label_posterior, posterior, tuple(scores))


def _is_small(new_network: NewNetwork, rows: Rows) -> bool:
    """Return whether a second thread would slow training down, much so where other programs use the processor."""
    return sum(weight.numel() for weight in new_network(rows.num_classes).parameters()) < SMALL_NETWORK


def _composition(trainer: Trainer, state: dict[str, Tensor]) -> tuple[Composition | None, str]:
    try:
        return at_stage(trainer.composition(), state)[0], ""
    except InputError as error:
        return None, str(error)


def committee_of(answers: list[Answered], loss: Loss, network: str | None, inputs: int) -> Committee:
    """Return the networks of all folds as a committee of equals.

    Args:
        answers: What was learnt outside of each fold.
        loss: The loss.
        network: The name of the network; None if it has none.
        inputs: The number of features.
    """
    lanes = Lanes([one.answer for one in answers])
    found = [one.composition for one in answers]
    lanes.why_not = next((one.why_not for one in answers if one.why_not), "")
    if network is None:
        lanes.why_not = "its network was given as a module or a function, and not by name"
    elif not lanes.why_not:
        lanes.form = {"network": network, "inputs": inputs, "answers": found}
    return Committee([lanes], [torch.full((len(answers),), 1 / len(answers))], loss)


def held_out(folds: Folds, answers: list[Answered], rows: Rows) -> tuple[Tensor, Tensor]:
    """Return the posteriors of the label and of the true class (N, K) by networks that did not see the row."""
    found = []
    for parts in ([one.label_posterior for one in answers], [one.posterior for one in answers]):
        whole = torch.zeros(len(rows), rows.num_classes, dtype=torch.float64)
        for rows_of_fold, part in zip(folds.held, parts, strict=True):
            whole[rows_of_fold] = part
        found.append(whole)
    return found[0], found[1]


@torch.no_grad()
def _outputs(answer: nn.Module, features: Tensor) -> Tensor:
    answer.eval()
    outputs: Tensor = answer(features)
    return outputs
