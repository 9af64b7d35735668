"""A plugin of postmax: it registers one value of each kind when it is imported."""

from functools import partial
from pathlib import Path

import torch

import postmax as pm


def three_halves():
    """f(u) = u^1.5, which is strictly convex."""
    return pm.divergences.Divergence(f=lambda u: u**1.5, name="three-halves")


def linear(input_shape, num_classes, *, hidden=()):
    return pm.models.MLP(input_shape, num_classes, hidden=hidden)


def two_moons(request):
    """Two classes on two half circles."""
    generator = torch.Generator().manual_seed(0 if request.split == "train" else 1)
    rows = 200 if request.split == "train" else 50
    labels = torch.arange(rows) % 2
    angle = torch.rand(rows, generator=generator) * torch.pi
    x = torch.stack([angle.cos() + labels, angle.sin() * (1 - 2 * labels)], 1)
    return pm.data.Dataset("two-moons", x, labels, ("upper", "lower"))


class KeepsLabels:
    """An estimator that finds no noise."""

    def rows(self, evidence):
        return (evidence.labels,)

    def solve(self, rows, num_classes, start=None):
        prior = torch.bincount(rows[0], minlength=num_classes).double() / len(rows[0])
        return pm.estimation.Solution(torch.eye(num_classes, dtype=torch.float64), prior)


class Patient(pm.methods.Method):
    """Train as usual, but only on the first half of each batch."""

    def __init__(self, setup, *, share=0.5):
        super().__init__(setup)
        self.share = share
        self.answer = setup.network()
        self.optimiser = setup.optimiser(list(self.answer.parameters()))

    def epoch(self, run):
        for batch in run.batches():
            used = slice(max(1, int(self.share * len(batch.labels))))
            logits = self.answer(batch.inputs[used])
            value = self.loss(logits, batch.labels[used]).mean()
            run.update(value, self.optimiser)
            yield pm.methods.Step(value, batch.rows[used], logits)


pm.divergences.register("three-halves", three_halves)
pm.losses.register("three-halves-pml", partial(pm.FPMLLoss, "three-halves"), "f-PML with a divergence of a plugin")
pm.models.register("plugin-linear", linear, summary="a linear model of a plugin, for tests")
pm.data.register("two-moons", two_moons)
pm.estimation.register("keeps-labels", KeepsLabels())
pm.methods.register("patient", Patient, "train on half of each batch, for tests")
pm.tables.register(Path(__file__).with_name("moons.yaml"))
