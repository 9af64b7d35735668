"""The training loop for one seed of a method."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from statistics import fmean
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor, nn

from postmax.data import Batches, generator_for
from postmax.errors import NotFiniteError
from postmax.methods import Method, Step
from postmax.methods.parts import answers
from postmax.methods.parts.answers import Composition
from postmax.train.config import RunConfig
from postmax.train.ema import NetworkAverages
from postmax.train.epoch import EpochRun
from postmax.train.evaluation import Evaluator, outputs_of
from postmax.train.metrics import Scores, Truth, epoch_records
from postmax.train.predictions import Predictions
from postmax.train.randomness import set_random_numbers
from postmax.train.records import EpochRecord
from postmax.train.resources import Resources
from postmax.train.state import State
from postmax.train.watch import LossWatch

if TYPE_CHECKING:
    from lightning_fabric import Fabric


class Trainer(Protocol):
    """What a run needs of a training loop. One loop trains one seed, another trains several seeds side by side."""

    @property
    def parameters(self) -> int:
        """How many numbers the network that answers for a seed has. Per-row state does not count."""
        ...

    @property
    def networks(self) -> int:
        """How many networks are trained for each seed."""
        ...

    @property
    def updates(self) -> int:
        """How many batches have been trained on so far."""
        ...

    @property
    def is_over(self) -> bool:
        """Whether the method has stopped before the last epoch."""
        ...

    def learnt(self, lane: int) -> dict[str, Tensor]:
        """Return what the method has learnt for one seed besides its answer; see `postmax.methods.Method.learnt`."""
        ...

    def epoch(self, number: int) -> list[EpochRecord]:
        """Train for one epoch, counted from 0, and return one record for each seed.

        Raises:
            DivergedError: If the training has diverged.
        """
        ...

    def steps(self, number: int) -> Iterator[object]:
        """Train for one epoch, step by step, without records. Used to measure how long a step takes."""
        ...

    def judge(self, evaluator: Evaluator, records: list[EpochRecord]) -> dict[str, Scores]:
        """Judge the networks on held-out rows, add the metrics to the records, and return the scores by reading.

        Raises:
            DivergedError: If the networks give outputs that are not finite.
        """
        ...

    def averaged(self) -> AbstractContextManager[None]:
        """Inside, the networks have their averaged weights, if the run averages weights."""
        ...

    def composition(self) -> Composition:
        """Return what the answer consists of; see `postmax.methods.parts.answers`.

        Raises:
            InputError: If it has a part that a saved model cannot have.
        """
        ...

    def weights(self, lane: int) -> dict[str, Tensor]:
        """Return the weights of the module that answers for one seed, and what else its answer needs.

        What is not a weight has a name with a slash; see `postmax.methods.parts.answers`.
        """
        ...

    def save(self) -> State:
        """Return everything a checkpoint must know."""
        ...

    def restore(self, state: State) -> None:
        """Put back what `save` returned."""
        ...


class OneSeedTrainer:
    """Trains one seed of any method.

    Args:
        config: The configuration of the run.
        method: The method, built from `resources`.
        resources: The networks, optimisers and state of the method.
        fabric: Computes gradients.
        batches: The batches of the training rows.
        plain: The same rows in their order, without augmentation.
        truth: The training labels as given and, where known, the clean ones.
    """

    def __init__(
        self,
        config: RunConfig,
        method: Method,
        resources: Resources,
        fabric: Fabric,
        batches: Batches,
        plain: Batches,
        truth: Truth,
    ) -> None:
        self.method = method
        self.resources = resources
        self.batches = batches
        self._config, self._fabric, self._plain, self._truth = config, fabric, plain, truth
        self._watch = LossWatch(config, method.loss, len(batches))
        resources.check_answer(getattr(method, "answer", None), config.method.name)
        self._averages = NetworkAverages(resources.networks, resources.trained, config.ema)
        self.updates = 0

    @property
    def parameters(self) -> int:
        """How many numbers the module that answers has."""
        return sum(parameter.numel() for parameter in self.method.answer.parameters())

    @property
    def networks(self) -> int:
        """How many networks the method trains."""
        return len(self.resources.networks)

    @property
    def epochs(self) -> int:
        """How many epochs the training has."""
        return self._config.epochs

    @property
    def is_over(self) -> bool:
        """Whether the method has stopped before the last epoch."""
        return self.method.is_over

    def learnt(self, lane: int) -> dict[str, Tensor]:  # noqa: ARG002  (there is one seed)
        """Return what the method has learnt besides its answer."""
        return self.method.learnt()

    def epoch(self, number: int) -> list[EpochRecord]:
        """Train for one epoch; see `Trainer`."""
        start = time.perf_counter()
        predictions = Predictions(self._readings, self._truth.labels.shape, self._truth.labels.device)
        self.resources.work.take()
        values: dict[str, list[float]] = {}
        for step in self.steps(number):
            if step.rows is not None and step.logits is not None:
                predictions.add(step.rows[None], step.logits.detach()[None])
            for name, value in step.values.items():
                values.setdefault(name, []).append(float(value))
        losses = self._watch.finish()
        seconds = time.perf_counter() - start
        (record,) = epoch_records(
            number, self._config.seeds, losses, self._run.rate(), self._truth, predictions.finish(), seconds
        )
        record["passes"], record["operations"] = self.resources.work.take()
        if values:
            record["method"] = {name: fmean(found) for name, found in values.items()}
        return [record]

    def steps(self, number: int) -> Iterator[Step]:
        """Train for one epoch, step by step."""
        # Modules such as dropout draw from torch's global generator. It is set for each epoch, so it is never saved.
        set_random_numbers(generator_for(*self._config.seeds, "epoch", number).initial_seed())
        self.resources.train(True)
        self._watch.start(number)
        self._run = run = EpochRun(
            number,
            self._config.epochs,
            self.batches,
            self.resources,
            self._fabric,
            self._all_outputs,
            self._averages.update,
        )
        try:
            for step in self.method.epoch(run):
                self.updates += 1
                self._watch.add(step.loss.detach()[None])
                yield step
        except NotFiniteError as error:
            if self._watch.is_first_step:  # the first batch fails for what it was given, not for what became of it
                raise
            raise self._watch.diverged(str(error)) from error

    def judge(self, evaluator: Evaluator, records: list[EpochRecord]) -> dict[str, Scores]:
        """Judge the answer of the method on held-out rows; see `Trainer`."""
        self.resources.train(False)
        method = self.method
        method.answer.eval()
        try:
            return evaluator.judge(
                lambda inputs: method.answer(inputs[0])[None],
                self._readings,
                lambda outputs: method.label_posterior(outputs[0])[None],
                records,
            )
        except NotFiniteError as error:
            raise self._watch.diverged(str(error), len(self.batches) - 1) from error

    def averaged(self) -> AbstractContextManager[None]:
        """Inside, the networks have their averaged weights, if the run averages weights."""
        return self._averages.in_place()

    def weights(self, lane: int) -> dict[str, Tensor]:  # noqa: ARG002  (there is one seed)
        """Return the weights of the module that answers, and what else its answer needs."""
        return self.method.answer.state_dict() | answers.state_of(self.method)

    def composition(self) -> Composition:
        """Return what the answer consists of."""
        return answers.composition_of_method(self.method, self.resources.outputs)

    def save(self) -> State:
        """Return everything a checkpoint must know."""
        found, averages = self.resources.save(), self._averages.save()
        values = {**found.values, "first_loss": self._watch.first_loss, "updates": self.updates}
        return State({**found.tensors, **averages.tensors}, values)

    def restore(self, state: State) -> None:
        """Put back what `save` returned."""
        self.resources.restore(state)
        self._averages.restore(state)
        self._watch.first_loss, self.updates = state.values["first_loss"], state.values["updates"]

    def _readings(self, outputs: Tensor) -> dict[str, Tensor]:
        return {name: posterior[None] for name, posterior in self.method.readings(outputs[0]).items()}

    @torch.no_grad()
    def _all_outputs(self, network: nn.Module) -> Tensor:
        return outputs_of(network, self._plain)
