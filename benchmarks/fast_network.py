"""How fast the network `fast` trains: images a second, the share of the machine's peak, and where a step's time goes.

A step is augmentation, forward, loss, backward, optimiser and average of the weights. All forms of the network take
turns of two steps, so that whatever else the machine does hits them alike; what counts are the ratios. With
--threads 1 processor time is measured, which other programs hardly change: use it on a machine that is busy.

    plain           the same layers as an `nn.Sequential`, float32, in torch's usual memory layout
    channels_last   `postmax.models.fast.Fast`, float32, channels_last
    bf16            the same in bfloat16 where that is safe (autocast)
    compiled        the same after `torch.compile`, only with --compile: the first step takes minutes
    postmax         what a user gets: the training loop, with its schedule, checks and metrics

The peak is the most that this torch reaches with the same threads in a product of square matrices or in a 3×3
convolution of 256 channels, whichever is faster: on some machines a matrix product in float32 is slower than a
convolution. The operations of a step are counted by torch: two for a multiplication with its addition, convolutions
and matrix products only.

    python benchmarks/fast_network.py [--widths 16 32 64] [--batches 250 500] [--rounds 5] [--threads 1]
        [--compile] [--return-memory]
"""

from __future__ import annotations

import argparse
import copy
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode
from training import random_images

from postmax.data import Batches
from postmax.models.fast import Fast
from postmax.train import build as building
from postmax.train import make_config, prepare
from postmax.train.ema import Average
from postmax.train.optimisers import make_optimiser
from postmax.train.precision import bf16_on_cpu
from postmax.train.trainer import OneSeedTrainer

Seconds = dict[str, float]  # by part
Epoch = Callable[[int], Seconds]
PARTS = ("augmentation", "network", "optimiser", "average")
STEPS = 2  # of an epoch
RECIPE: dict[str, Any] = {
    "data": {"name": "cifar10", "augment": "shift-flip", "cutout": 8},
    "loss": "ce",
    "optimiser": {"name": "sgd", "lr": 0.05, "momentum": 0.85, "nesterov": True, "weight_decay": 1e-3, "bias_rate": 8},
    "ema": 0.99,
    "epochs": 1000,
    "accelerator": "cpu",
}


def clock() -> float:
    """Seconds. With one thread those of the processor, which go on only while this program runs."""
    return time.process_time() if torch.get_num_threads() == 1 else time.perf_counter()


def plain_form(network: Fast) -> nn.Sequential:
    """The same network as one writes it down, with the same weights."""
    convolutions = [module for module in network.modules() if isinstance(module, nn.Conv2d)]
    filters, last = network.whitening.filters, network.fc
    whitening = nn.Conv2d(filters.shape[1], len(filters), filters.shape[2], bias=False).requires_grad_(False)
    layers: list[nn.Module] = [whitening, nn.GELU()]
    for number, convolution in enumerate(convolutions):
        norm = nn.BatchNorm2d(convolution.out_channels, momentum=0.4)
        norm.weight.requires_grad_(False)  # a shift and no scale
        pool = [nn.MaxPool2d(2)] if number % 2 == 0 else []
        layers += [copy.deepcopy(convolution), *pool, norm, nn.GELU()]
    head = copy.deepcopy(last)
    whitening.weight.data.copy_(filters)
    head.weight.data.div_(9)  # the network scales its features
    return nn.Sequential(*layers, nn.AdaptiveMaxPool2d(1), nn.Flatten(), head)


def new_network(width: int) -> Fast:
    """The network, as the training loop makes it."""
    torch.manual_seed(0)
    network = Fast((3, 32, 32), 10, width=width)
    network.look_at(torch.randn(100, 3, 32, 32))
    return network


def check_that_both_are_the_same(width: int) -> None:
    """Outputs and gradients of the plain form agree with those of the network."""
    network, images = new_network(width), torch.randn(20, 3, 32, 32)
    plain = plain_form(network)
    torch.testing.assert_close(plain(images), network(images), atol=1e-4, rtol=1e-3)
    for form in (plain, network):
        F.cross_entropy(form(images), torch.arange(20) % 10).backward()
    mine, theirs = (
        [p.grad for p in form.parameters() if p.requires_grad and p.dim() == 4] for form in (network, plain)
    )
    torch.testing.assert_close(theirs, mine, atol=1e-4, rtol=1e-2)


def operations(network: nn.Module, batch: int) -> int:
    """How many operations the convolutions and matrix products of a step have, as torch counts them."""
    with FlopCounterMode(display=False) as counter:
        network(torch.zeros(batch, 3, 32, 32)).sum().backward()
    return int(counter.get_total_flops())


def by_hand(network: nn.Module, batches: Batches, bf16: bool) -> Epoch:
    """An epoch as one would write it by hand: no schedule, no checks, no metrics."""
    optimiser = make_optimiser(make_config(RECIPE).optimiser, [p for p in network.parameters() if p.requires_grad])
    average = Average(network, RECIPE["ema"])

    def epoch(number: int) -> Seconds:
        spent = dict.fromkeys(PARTS, 0.0)
        rows = batches.epoch(number)
        for _ in range(len(batches)):
            times = [clock()]
            batch = next(rows)
            times.append(clock())
            optimiser.zero_grad()
            with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
                logits = network(batch.inputs)
            F.cross_entropy(logits.float(), batch.labels).backward()
            times.append(clock())
            optimiser.step()
            times.append(clock())
            average.update()
            times.append(clock())
            for part, start, end in zip(PARTS, times, times[1:], strict=False):
                spent[part] += end - start
        return spent

    return epoch


def in_the_loop(trainer: OneSeedTrainer) -> Epoch:
    """An epoch of the training loop."""

    def epoch(number: int) -> Seconds:
        start = clock()
        trainer.epoch(number)
        return {"epoch": clock() - start}

    return epoch


def forms(width: int, batch: int, bf16: bool, compiled: bool) -> dict[str, Epoch]:
    """All forms of the network, ready to make steps."""
    # The readers of the catalogue are left out: the loop gets its rows from here.
    images = random_images(STEPS * batch)
    prepare.load_rows = lambda _: (images, images)  # type: ignore[assignment]
    precision = "bf16-mixed" if bf16 else "32-true"
    model = {"name": "fast", "width": width}
    built = building.build(make_config({**RECIPE, "model": model, "batch_size": batch, "precision": precision}))
    trainer = built.trainer
    assert isinstance(trainer, OneSeedTrainer)

    def last() -> nn.Module:
        return new_network(width).to(memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]

    found = {
        "plain": by_hand(plain_form(new_network(width)), trainer.batches, bf16=False),
        "channels_last": by_hand(last(), trainer.batches, bf16=False),
    }
    if bf16:
        found["bf16"] = by_hand(last(), trainer.batches, bf16=True)
    if compiled:
        network = last()
        network.compile()
        found["compiled"] = by_hand(network, trainer.batches, bf16=bf16)
    return found | {"postmax": in_the_loop(trainer)}


def in_turns(contenders: dict[str, Epoch], rounds: int) -> dict[str, list[Seconds]]:
    """Let each make an epoch in each round, after a round that warms up."""
    found: dict[str, list[Seconds]] = {name: [] for name in contenders}
    for number in range(rounds + 1):
        for name, epoch in contenders.items():
            found[name].append(epoch(number))
    return {name: epochs[1:] for name, epochs in found.items()}


def peak(dtype: torch.dtype, seconds: float) -> dict[str, float]:
    """The most operations a second of a product of matrices, and of a convolution."""
    matrix = torch.randn(2048, 2048).to(dtype)
    images = torch.randn(64, 256, 16, 16).to(dtype).to(memory_format=torch.channels_last)
    weight = torch.randn(256, 256, 3, 3).to(dtype).to(memory_format=torch.channels_last)
    kinds: dict[str, tuple[Callable[[], Tensor], int]] = {
        "a matrix product": (lambda: matrix @ matrix, 2 * 2048**3),
        "a convolution": (lambda: F.conv2d(images, weight, padding=1), 2 * images.numel() * 9 * 256),
    }
    best = dict.fromkeys(kinds, 0.0)
    end = clock() + seconds
    while clock() < end or not all(best.values()):
        for kind, (work, count) in kinds.items():
            start = clock()
            work()
            best[kind] = max(best[kind], count / (clock() - start))
    return best


def middle(epochs: list[Seconds]) -> float:
    """The median of the seconds of a step."""
    return statistics.median(sum(epoch.values()) for epoch in epochs) / STEPS


def rows_of(width: int, batch: int, found: dict[str, list[Seconds]], peaks: dict[bool, float], count: int) -> list[str]:
    """The rows of the table of forms."""
    rows = []
    for form, epochs in found.items():
        seconds = middle(epochs)
        in_bf16 = form not in ("plain", "channels_last") and True in peaks
        share = count / seconds / peaks[in_bf16]
        cells = (width, batch, form, f"{batch / seconds:,.0f}", f"{middle(found['plain']) / seconds:.2f}")
        rows.append("| " + " | ".join(map(str, (*cells, f"{share:.0%}"))) + " |")
    return rows


def parts_of(width: int, batch: int, epochs: list[Seconds]) -> str:
    """A row of the table of parts: the share of each in the time of a step, the median over epochs."""
    shares = [statistics.median(epoch[part] / sum(epoch.values()) for epoch in epochs) for part in PARTS]
    return f"| {width} | {batch} | " + " | ".join(f"{share:.1%}" for share in shares) + " |"


def main(arguments: list[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--widths", type=int, nargs="+", default=[16, 32, 64], help="widths of the network")
    parser.add_argument("--batches", type=int, nargs="+", default=[250, 500], help="images of a step")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each form, two steps each (default: 5)")
    parser.add_argument("--seconds", type=float, default=4, help="time spent on each peak (default: 4)")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="threads of torch")
    parser.add_argument("--compile", action="store_true", help="also measure torch.compile, which needs a C++ compiler")
    parser.add_argument("--return-memory", action="store_true", help="let the C library return freed memory, as usual")
    args = parser.parse_args(arguments)
    torch.set_num_threads(args.threads)
    if args.return_memory:
        building.keep_freed_memory = lambda: False  # type: ignore[attr-defined,assignment]
    bf16 = bf16_on_cpu().reason is None
    peaks = {}
    kind_of_time = "processor time" if args.threads == 1 else "time"
    print(f"torch {torch.__version__}, threads: {args.threads} ({kind_of_time}), {args.rounds} rounds\n")
    for kind in (False, True) if bf16 else (False,):
        dtype = torch.bfloat16 if kind else torch.float32
        best = peak(dtype, args.seconds)
        peaks[kind] = max(best.values())
        reached = ", ".join(f"{most / 1e9:,.0f} in {name}" for name, most in best.items())
        print(f"most GFLOP/s, {str(dtype).removeprefix('torch.')}: {reached}", flush=True)
    print("\n| width | batch | form | images/s | times plain | share of peak |\n|---|---|---|---|---|---|")
    parts = []
    for width in args.widths:
        check_that_both_are_the_same(width)
        for batch in args.batches:
            found = in_turns(forms(width, batch, bf16, args.compile), args.rounds)
            count = operations(new_network(width), batch)
            print(*rows_of(width, batch, found, peaks, count), sep="\n", flush=True)
            parts.append(parts_of(width, batch, found["bf16" if bf16 else "channels_last"]))
    print(f"\n| width | batch | {' | '.join(PARTS)} |\n|---|---|---|---|---|---|")
    print(*parts, sep="\n")


if __name__ == "__main__":
    main()
