"""DivideMix: its division, its targets and its phases."""

import pytest
import torch
from small_runs import small_config

from postmax import losses
from postmax.data import Batch
from postmax.errors import InputError
from postmax.methods import divide_mix
from postmax.methods.parts.clean_rows import clean_probability
from postmax.train.build import build

SHORT = ("method=divide-mix", "method.warmup_epochs=2", "epochs=6", "batch_size=32")


def trained(*overrides, epochs=2):
    trainer = build(small_config(*SHORT, *overrides)).trainer
    for number in range(epochs):
        trainer.epoch(number)
    return trainer


def test_each_network_learns_from_the_division_of_the_other(monkeypatch):
    trainer = trained()
    first = torch.arange(455) % 3 != 0
    divisions = iter([first.float(), (~first).float()])
    monkeypatch.setattr(divide_mix, "clean_probability", lambda _: next(divisions))
    seen = {"labelled 0": set(), "labelled 1": set()}
    plain = type(trainer.batches).epoch

    def spy(self, number, rows=None, **options):
        if options.get("stream") in seen:
            seen[options["stream"]] |= set(rows.tolist())
        return plain(self, number, rows, **options)

    monkeypatch.setattr(type(trainer.batches), "epoch", spy)
    list(trainer.steps(2))
    assert seen["labelled 0"] == set((~first).nonzero()[:, 0].tolist())
    assert seen["labelled 1"] == set(first.nonzero()[:, 0].tolist())


def test_targets_by_hand():
    trainer = trained("loss=gan-pml")
    method, loss = trainer.method, losses.get("gan-pml", reduction="none")
    batch = Batch(torch.zeros(3, 30), torch.tensor([0, 1, 1]), torch.arange(3), (torch.zeros(3, 30),) * 2)
    logits = [torch.tensor([[1.0, -1.0], [0.3, 0.0], [-2.0, 2.0]]), torch.tensor([[0.0, 0.5], [1.0, 1.0], [0.0, 1.0]])]
    clean = torch.tensor([1.0, 0.5, 0.0])
    found = method._refined(loss, batch, logits, clean)
    for row in range(3):
        p = sum(loss.posterior(part[row : row + 1])[0] for part in logits) / 2
        given = torch.eye(2)[batch.labels[row]]
        mixed = (clean[row] * given + (1 - clean[row]) * p) ** 2
        torch.testing.assert_close(found[row], mixed / mixed.sum())


def test_division_of_losses():
    generator = torch.Generator().manual_seed(0)
    right = 0.2 + 0.05 * torch.randn(300, generator=generator)
    wrong = 2.0 + 0.3 * torch.randn(100, generator=generator)
    found = clean_probability(torch.cat([right, wrong]))
    assert (found[:300] > 0.5).all()
    assert (found[300:] < 0.5).all()
    assert clean_probability(torch.full((5,), 0.7)).tolist() == [1.0] * 5


@pytest.mark.parametrize("clean_rows", [0, 1, 455, 456])
def test_a_division_with_an_empty_side(monkeypatch, clean_rows):
    """All rows clean, none, or all but one: training goes on with finite losses, also with batch normalisation."""
    monkeypatch.setattr(
        divide_mix, "clean_probability", lambda values: (torch.arange(len(values)) < clean_rows).to(values)
    )
    trainer = trained("model.batch_norm=true")
    found = [step.loss.item() for step in trainer.steps(2)]
    assert len(found) == 2 * 15
    assert all(torch.isfinite(torch.tensor(found)))


def test_losses_are_averaged_over_epochs(monkeypatch):
    seen = []

    def spy(values):
        seen.append(values.clone())
        return clean_probability(values)

    monkeypatch.setattr(divide_mix, "clean_probability", spy)
    single = trained("method.loss_memory=1", "optimiser.lr=1e-9", epochs=5)
    alone, seen = seen, []
    trained("method.loss_memory=2", "optimiser.lr=1e-9", epochs=5)
    assert len(alone) == len(seen) == 6
    # The networks hardly move, so that the same losses come in each epoch, and so do their means.
    for mine, theirs in zip(seen, alone, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)
    assert single.save().part("state")["losses of network 0"].shape == (456, 1)


def test_a_run_that_ends_in_the_warm_up_is_refused():
    with pytest.raises(InputError, match=r"warmup_epochs = 10 epochs, but the run has 4"):
        build(small_config("method=divide-mix", "method.warmup_epochs=10", "epochs=4"))


@pytest.mark.parametrize(("epochs", "warmup"), [(2, 1), (30, 7), (100, 10), (300, 10), (600, 20)])
def test_the_warm_up_takes_the_published_share_or_the_published_epochs(epochs, warmup):
    assert build(small_config("method=divide-mix", f"epochs={epochs}")).trainer.method._warmup_epochs == warmup


def test_the_default_weight_of_unlabelled_rows_suits_the_number_of_classes():
    """25 for ten classes is 5 for two."""
    assert build(small_config("method=divide-mix", "epochs=4")).trainer.method._weight == pytest.approx(5)


@pytest.mark.parametrize(("loss", "strength"), [("ce", 1), ("sl-pml", 2 / 9), ("gan-pml", 2 / 3)])
def test_unlabelled_rows_are_as_strong_as_the_loss(loss, strength, monkeypatch):
    """The slope of a loss at D = 1/2 is (1 − D) f''(D): 4/9 · 1/2 for SL, 2/3 for GAN. That of cross-entropy is 1."""
    seen = []
    plain = divide_mix.mix_and_match

    def spy(*args):
        seen.append(plain(*args))
        return seen[-1]

    monkeypatch.setattr(divide_mix, "mix_and_match", spy)
    monkeypatch.setattr(divide_mix, "clean_probability", lambda values: (torch.arange(len(values)) % 2).to(values))
    trainer = trained(f"loss={loss}", "method.unlabelled_weight=7", "method.ramp_epochs=0")
    step, found = next(trainer.steps(2)), seen[0]
    expected = found.labelled.mean() + strength * 7 * found.unlabelled + divide_mix.one_sidedness(found.posterior)
    assert step.loss.item() == pytest.approx(expected.item(), rel=1e-5)


def test_the_penalty_of_the_warm_up_is_finite_for_a_posterior_of_zero():
    trainer = build(small_config(*SHORT, "loss=ce", "method.warmup_penalty=1", "model.hidden=[]")).trainer
    with torch.no_grad():
        for network in trainer.resources.networks:
            network.fc.weight.mul_(1e4)
    assert all(torch.isfinite(step.loss) for step in trainer.steps(0))
    for network in trainer.resources.networks:
        assert network.fc.weight.isfinite().all()


def test_the_answer_is_the_mean_of_both_networks():
    trainer = trained()
    trainer.resources.train(False)
    inputs = torch.randn(5, 30)
    first, second = (network(inputs) for network in trainer.resources.networks)
    torch.testing.assert_close(trainer.method.answer(inputs), (first + second) / 2)


@pytest.mark.parametrize(
    "option", ["threshold=1", "temperature=0", "alpha=-1", "unlabelled_weight=-2", "loss_memory=0"]
)
def test_options_that_cannot_be(option):
    with pytest.raises(InputError, match=f"method.{option.partition('=')[0]}"):
        build(small_config("method=divide-mix", f"method.{option}", "epochs=20"))
