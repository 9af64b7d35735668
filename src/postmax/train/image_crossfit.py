"""Cross-fitting on images: probabilities for every image from small networks that were not trained on it."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor, nn

from postmax.data import Dataset
from postmax.errors import InputError
from postmax.estimation.crossfit import folds_of
from postmax.estimation.threads import one_thread
from postmax.losses import FPMLLoss
from postmax.progress import Stage, tell
from postmax.train.image_network import augmentation_for, learn, make_network, plan_for, predict

_FOLDS, _FEWEST = 2, 20
_FIRST_STEPS, _STEPS = 2, 4
# An image and its mirror image are passed forward, which takes about two thirds of the time of learning an image.
_PREDICTING = 2 / 3


def cross_fit_images(
    images: Tensor,
    labels: Tensor,
    num_classes: int,
    *,
    loss: FPMLLoss | None = None,
    seed: int = 0,
    what: str = "cross-fitting networks",
) -> Tensor:
    """Return out-of-sample log-posteriors (N, K), float64, of small networks trained on the other folds.

    The networks are trained at the same time, each by one thread. So the result does not depend on the number of
    threads.

    Args:
        images: uint8 (N, C, H, W), at least 9×9 pixels.
        labels: (N,) class indices.
        num_classes: K.
        loss: The loss; KL with softmax by default. With a forward correction the posteriors are those of the true
            label.
        seed: The seed of folds, initial weights, order and augmentation.
        what: What the work is called when its progress is told.

    Raises:
        InputError: If there are too few images, or the networks diverge on them.
    """
    if len(labels) < _FEWEST:
        raise InputError(f"{len(labels)} images are too few to estimate the noise of their labels; {_FEWEST} or more.")
    loss = FPMLLoss("kl", "softmax") if loss is None else loss
    dataset = _dataset(images, labels, num_classes)
    augment = augmentation_for(images)
    fold = folds_of(labels, torch.Generator().manual_seed(seed), _FOLDS)
    log_posterior = torch.empty(len(labels), num_classes, dtype=torch.float64)
    plan = plan_for(int((fold != 0).sum()))

    def work(number: int, network: nn.Module) -> Iterator[None]:
        others, own = (fold != number).nonzero()[:, 0], (fold == number).nonzero()[:, 0]
        yield from learn(network, dataset, others, plan, augment, loss, seed)
        yield from predict(network, images, own, augment, loss, log_posterior)

    # Random weights come from the one generator that all threads share, so networks are made one after the other.
    networks = [make_network(images, augment, num_classes, seed, number) for number in range(_FOLDS)]
    for step in _together([work(number, network) for number, network in enumerate(networks)]):
        tell(Stage(what, min(step, plan.steps), plan.steps, "batches"))
    if not log_posterior.isfinite().all():
        raise InputError("the noise of these labels cannot be estimated: the networks diverge on the images.")
    return log_posterior


def measure_cross_fit_seconds(some_images: Tensor, count: int, num_classes: int) -> float:
    """Return about how many seconds a cross-fit of `count` images takes, from a few steps on some of them."""
    plan = plan_for(count - count // _FOLDS)
    images = some_images[torch.arange((_FIRST_STEPS + _STEPS) * plan.batch) % len(some_images)]
    dataset = _dataset(images, torch.arange(len(images)) % num_classes, num_classes)
    augment, loss = augmentation_for(images), FPMLLoss("kl", "softmax")

    def work(number: int) -> Iterator[None]:
        network = make_network(images, augment, num_classes, 0, number)
        return learn(network, dataset, torch.arange(len(images)), plan, augment, loss, 0)

    start = time.perf_counter()
    for step in _together([work(number) for number in range(_FOLDS)]):
        if step == _FIRST_STEPS:  # the first steps also prepare what the others use
            start = time.perf_counter()
        if step == _FIRST_STEPS + _STEPS:
            break
    seconds = (time.perf_counter() - start) / _STEPS
    return seconds * (plan.steps + _PREDICTING * math.ceil(count / _FOLDS / plan.batch))


def _dataset(images: Tensor, labels: Tensor, num_classes: int) -> Dataset:
    return Dataset("images", images, labels, tuple(map(str, range(num_classes))))


def _together(works: Sequence[Iterator[None]]) -> Iterator[int]:
    """Do all works at the same time, one step of each at a time, and count the steps.

    Each work uses one thread of torch. As many works run at once as torch may use threads.
    """
    at_once = min(len(works), torch.get_num_threads())
    over = object()
    step = 0
    with one_thread(True), ThreadPoolExecutor(at_once, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        while any(result is not over for result in list(pool.map(lambda work: next(work, over), works))):
            step += 1
            yield step
