"""The method seam: what a training strategy is given, and what it must do.

A method sees one seed and owns its epoch: it decides which rows, in which views, go through which network, and which
loss is minimised. The training loop owns everything around it: it makes the networks, optimisers and per-row state that
the method asks for, sets learning rates, clips gradients, watches for divergence, writes checkpoints and measures.

Because the loop hands out all state, it can save and restore all of it. A method therefore keeps no tensors of its own:
what it must remember from one epoch to the next comes from `Setup.network`, `Setup.optimiser`, `Setup.row_state` or
`Setup.state`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, NamedTuple, Protocol

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from postmax.data import Batch, Dataset
from postmax.estimation import TransitionEstimate
from postmax.losses import Loss
from postmax.transition import Transition


class MakeNetwork(Protocol):
    """Makes a new network, initialised from the seed of the run, on the device of the run."""

    def __call__(self, *, outputs: int | None = None) -> nn.Module:
        """Return a network with this many outputs; by default one for each class."""
        ...


class MakeOptimiser(Protocol):
    """Makes an optimiser. The loop sets its learning rate before each step and saves its state in checkpoints."""

    def __call__(
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
        """Return an optimiser of these parameters.

        Args:
            parameters: The tensors that it moves.
            name: A name that no other optimiser of the method has; checkpoints use it.
            kind: "sgd", "adam" or "adamw", instead of the one in the configuration.
            lr: The learning rate, instead of the one in the configuration.
            momentum: The same for the momentum of SGD.
            weight_decay: The same for weight decay.
            betas: The same for the two decay rates of Adam.
            scheduled: Whether the learning rate follows the schedule of the run, or stays constant.
            regularised: Whether gradient clipping, the L1 term and the rate for biases of the configuration apply.
            span: The first epoch, and the epoch after the last one, over which the schedule of the run is stretched. A
                method that trains one network after the other gives each its own part of the training. By default all
                epochs.
        """
        ...


class MakeRowState(Protocol):
    """Makes per-row state: a tensor with one entry for each training row."""

    def __call__(self, name: str, shape: tuple[int, ...] = (), *, dtype: torch.dtype = torch.float32) -> Tensor:
        """Return zeros of shape (N, *shape), indexed by the row numbers in `Batch.rows`.

        The loop saves the tensor in checkpoints. It is not a parameter of any network: it is never averaged, decayed,
        clipped or counted. A method that learns it calls `requires_grad_()` on it and gives it an optimiser of its own.
        """
        ...


class MakeModule(Protocol):
    """Makes a part of a network that is not a network by itself, such as a second head."""

    def __call__(self, name: str, make: Callable[[], nn.Module]) -> nn.Module:
        """Return what `make` returns, on the device of the run.

        Its random weights depend on the seed and the name. The loop saves it, and puts it into training or evaluation
        mode together with the networks. It is no part of the answer, and is not averaged.
        """
        ...


@dataclass(frozen=True)
class Setup:
    """Everything a method is built from.

    Attributes:
        train: The training rows with their noisy labels, which are on the device of the run. The clean labels are not
            there.
        loss: The loss of the run, with reduction "none".
        epochs: How many epochs there will be.
        batch_size: How many rows a batch has.
        device: Where the networks and batches are.
        network: Makes a network.
        module: Makes a part of a network, such as a second head.
        optimiser: Makes an optimiser.
        row_state: Makes per-row state.
        state: Registers any other tensor that must survive a restart, under a name. It returns a copy on the device of
            the run; the method uses this copy from then on.
        generator: Makes a random generator from a key, for random initial values. It depends on the seed and the key.
        estimate: Returns the noise of the training labels, estimated from the training rows alone. A method that needs
            a noise rate takes it from here, unless its options give one. Call it when the method is built: it may take
            minutes, and the run then records it. The same rows and labels are estimated only once on a machine.
        transition: Returns the noise that the configuration names in `transition`: known, estimated or assumed. It
            raises an `InputError` if that is not known.
    """

    train: Dataset
    loss: Loss
    epochs: int
    batch_size: int
    device: torch.device
    network: MakeNetwork
    module: MakeModule
    optimiser: MakeOptimiser
    row_state: MakeRowState
    state: Callable[[str, Tensor], Tensor]
    generator: Callable[[str], torch.Generator]
    estimate: Callable[[], TransitionEstimate]
    transition: Callable[[], Transition]


class Step(NamedTuple):
    """What a method reports for each batch, after its updates.

    Attributes:
        loss: The value that was minimised, a scalar.
        rows: The training rows that were seen, (B,); None if the method cannot name them.
        logits: The network's output for these rows, (B, K), before the update. The loop computes training metrics,
            such as the share of wrong labels that were learnt, from it.
        values: Other numbers that the method wants to report, by name, such as the share of rows that it used. The
            means over the epoch are in the run's metrics.
    """

    loss: Tensor
    rows: Tensor | None = None
    logits: Tensor | None = None
    values: Mapping[str, float] = MappingProxyType({})


class Epoch(Protocol):
    """One epoch, as the loop offers it to a method.

    Everything random in it is a function of the seed, the number of the epoch and the name of the stream. So a run that
    was killed continues exactly, without any saved generator.
    """

    @property
    def number(self) -> int:
        """The number of the epoch, counted from 0."""
        ...

    @property
    def share(self) -> float:
        """The share of the training that is over: number / epochs. `Loss.at` takes it."""
        ...

    @property
    def steps(self) -> int:
        """How many batches one pass over all rows has."""
        ...

    def batches(
        self,
        rows: Tensor | None = None,
        *,
        views: Sequence[str] = ("weak",),
        size: int | None = None,
        stream: str = "",
        endless: bool = False,
    ) -> Iterator[Batch]:
        """Yield shuffled batches of training rows.

        Args:
            rows: Row numbers to go through; by default all rows.
            views: The augmentations, by name; `Batch.views` has one tensor for each, `Batch.inputs` is the first.
            size: Rows of a batch; by default the batch size of the run.
            stream: A name for this pass. Two passes over the same rows in one epoch need different names, else both
                get the same order and the same augmentations.
            endless: Start again with a new order whenever all rows were seen. Without any row there is no batch, also
                not then.
        """
        ...

    def evaluate(self, network: nn.Module) -> Tensor:
        """Return the outputs (N, K) of a network for all training rows, in row order.

        The network is in evaluation mode, no gradient is recorded, and the rows are not augmented.
        """
        ...

    def update(self, loss: Tensor, *optimisers: Optimizer, rate: float = 1.0) -> None:
        """Compute the gradient of a scalar loss once, and make one step with each optimiser.

        Args:
            loss: The scalar to minimise.
            optimisers: Optimisers from `Setup.optimiser`.
            rate: A factor for the learning rate of this step, on top of the schedule.
        """
        ...

    def generator(self, key: str) -> torch.Generator:
        """Return a random generator that depends on the seed, this epoch and the key."""
        ...


class Method(ABC):
    """A training strategy.

    A subclass takes a `Setup` and its own options, sets `answer`, and writes `epoch`.

    Attributes:
        answer: The module that gives the method's outputs (B, K) for rows that it was not trained on. It is evaluated
            after each epoch and saved when the run is done.
        loss: The loss of the run.
    """

    answer: nn.Module
    one_network_one_loss: ClassVar[bool] = False
    """Whether an epoch is nothing but one network that minimises the loss of the run on all rows.

    Several seeds of such a method can be trained side by side, in one stack of networks, without calling `epoch` at
    all. So a class must say it itself: subclasses do not inherit it.
    """

    def __init__(self, setup: Setup) -> None:
        self.loss = setup.loss

    @abstractmethod
    def epoch(self, run: Epoch) -> Iterator[Step]:
        """Train for one epoch. Yield a `Step` for each batch, after its updates."""

    @property
    def is_over(self) -> bool:
        """Whether the method has stopped early. The run then ends after this epoch, and judges the answer."""
        return False

    def learnt(self) -> dict[str, Tensor]:
        """Return what the method has learnt besides its answer, by name: a transition matrix, a value for each row.

        It is written into the folder of the run when the run is done.
        """
        return {}

    def readings(self, outputs: Tensor) -> dict[str, Tensor]:
        """Return the posteriors (B, K) that outputs (B, K) of `answer` stand for, by the name of the reading.

        "model" is the answer of the method. Where the loss removes noise after training, "uncorrected" is the posterior
        before that correction.
        """
        return loss_readings(self.loss, outputs)

    def label_noise(self) -> Tensor | None:
        """Return P(label | true class), (K, K), if the method and not the loss knows the noise; otherwise None.

        A method that overrides `label_posterior` returns the matrix through which it sends the posterior of the true
        class. It is saved with the model, so that a saved model has the same posterior of the label.
        """
        return None

    def label_posterior(self, outputs: Tensor) -> Tensor:
        """Return the posterior (B, K) of the labels *as they are given*, noise included."""
        return self.loss.label_posterior(outputs)


def loss_readings(loss: Loss, outputs: Tensor) -> dict[str, Tensor]:
    """Return the readings of outputs (B, K) that a loss alone defines; see `Method.readings`."""
    found = {"model": loss.posterior(outputs)}
    if loss.corrects_posterior:
        found["uncorrected"] = loss.label_posterior(outputs)
    return found
