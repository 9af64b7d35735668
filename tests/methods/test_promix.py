"""ProMix: its choice of rows, its objective and its phases."""

import pytest
import torch
from small_runs import small_config
from torch import nn
from torch.nn import functional as F

from postmax.data import Batch
from postmax.errors import InputError
from postmax.methods import promix
from postmax.methods.parts import two_heads
from postmax.methods.parts.clean_rows import smallest_of_each_class
from postmax.methods.parts.two_heads import Selection, Weights
from postmax.methods.promix import agreed, matched
from postmax.train.build import build

SHORT = ("method=promix", "method.warmup_epochs=1", "method.start_share=0.5", "epochs=8", "batch_size=64")


def built(*overrides):
    return build(small_config(*SHORT, *overrides)).trainer


# Which rows are chosen


def test_small_losses_of_each_class_by_a_loop():
    generator = torch.Generator().manual_seed(0)
    losses, labels = torch.rand(50, generator=generator), torch.randint(3, (50,), generator=generator)
    labels[:40] = 0  # one class has most rows
    found = smallest_of_each_class(losses, labels, 0.3, 3)
    for row in range(50):
        smaller = sum(1 for other in range(50) if labels[other] == labels[row] and losses[other] < losses[row])
        assert bool(found[row]) == (smaller < 5)  # 0.3 · 50 / 3


def test_a_share_is_not_rounded_up_by_floating_point():
    assert smallest_of_each_class(torch.arange(100.0), torch.arange(100) % 10, 0.7, 10).sum() == 70


def test_a_label_must_be_surer_than_the_confidence():
    posterior = torch.tensor([[0.99, 0.01], [0.995, 0.005], [0.995, 0.005]])
    assert matched(posterior, torch.tensor([0, 0, 1]), 0.99).tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("room", "taken"),
    [(-1, []), (0, []), (1, [3]), (2, [0, 3]), (5, [0, 3])],
    ids=["over", "full", "one", "two", "all"],
)
def test_the_surest_common_guesses_are_taken_first(room, taken):
    first = torch.tensor([[0.98, 0.02], [0.97, 0.03], [0.99, 0.01], [0.01, 0.99], [0.999, 0.001]])
    second = torch.tensor([[0.97, 0.03], [0.80, 0.20], [0.01, 0.99], [0.02, 0.98], [0.999, 0.001]])
    wanted = torch.tensor([True, True, True, True, False])
    assert agreed(first, second, 0.95, wanted, room).nonzero()[:, 0].tolist() == taken


# The objective


ALL = Weights(1.0, 0.1)


def objective(method, learner, batch, weak, selection, guesses, weights=ALL):
    """What a learner minimises for a batch."""
    generator = torch.Generator().manual_seed(0)
    return method._heads.objective(method.loss, learner, batch, weak, selection, guesses, weights, generator)


def test_the_terms_of_one_network_by_hand(monkeypatch):
    """All terms with cross-entropy, where the adjusted logits are z + d·log π. Mixtures are replaced by the rows."""
    seen = []

    def unmixed(inputs, targets, alpha, generator, **options):
        seen.append(alpha)
        return type("Mixed", (), {"inputs": inputs, "targets": targets})

    monkeypatch.setattr(two_heads, "mixup", unmixed)
    monkeypatch.setattr(two_heads, "fmix", unmixed)
    method = built("loss=ce").method
    learner = method._learners[0]
    learner.selected_prior.copy_(torch.tensor([0.7, 0.3]))
    learner.other_prior.copy_(torch.tensor([0.2, 0.8]))
    weak, strong = torch.randn(2, 4, 30, generator=torch.Generator().manual_seed(0))
    batch = Batch(weak, torch.tensor([0, 1, 1, 0]), torch.arange(4), (weak, strong))
    rows = torch.tensor([True, True, False, True])
    selection = Selection(rows, torch.tensor([0, 1, 1, 1]), torch.tensor([False, False, False, True]))
    debiased = torch.tensor([[0.9, 0.1], [0.5, 0.5], [0.3, 0.7], [0.2, 0.8]])
    found = objective(method, learner, batch, learner.heads(weak), selection, debiased, Weights(0.25, 0.1))

    def fit(logits, targets, prior):
        return F.cross_entropy(logits + 0.8 * prior.log(), targets)

    expected = 0.0
    for head in (learner.network.fc, learner.pseudo_head):
        z, z_strong = head(learner.network.features(weak)), head(learner.network.features(strong))
        labels = torch.tensor([0, 1, 1])
        on_weak = fit(z[rows], labels, learner.selected_prior)
        on_strong = fit(z_strong[rows], labels, learner.selected_prior)
        expected = expected + on_weak + 0.25 * (on_strong + on_weak + on_weak)
    guess = torch.tensor([[0.3**2, 0.7**2]]) / (0.3**2 + 0.7**2)
    expected = expected + 0.1 * fit(z[2:3], guess, learner.other_prior)
    expected = expected + 0.1 * 0.25 * fit(z_strong[2:3], guess, learner.other_prior)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    assert seen == [4.0, 1.0, 4.0, 1.0]


def test_guesses_do_not_reach_the_primary_head():
    method = built("loss=ce").method
    learner = method._learners[0]
    rows = torch.randn(4, 30)
    batch = Batch(rows, torch.zeros(4, dtype=torch.long), torch.arange(4), (rows, rows))
    nothing = torch.zeros(4, dtype=torch.bool)
    selection = Selection(nothing, batch.labels, nothing)
    objective(method, learner, batch, learner.heads(rows), selection, torch.full((4, 2), 0.5)).backward()
    assert learner.network.fc.weight.grad is None
    assert learner.pseudo_head.weight.grad.abs().sum() > 0


@pytest.mark.parametrize(("shared", "passes"), [(False, 5), (True, 3)])
def test_passes_of_a_batch(shared, passes):
    method = built(f"method.shared_mixtures={str(shared).lower()}").method
    learner, rows = method._learners[0], torch.randn(4, 30)
    batch = Batch(rows, torch.tensor([0, 1, 0, 1]), torch.arange(4), (rows, rows))
    everything = torch.ones(4, dtype=torch.bool)
    weak, seen = learner.heads(rows), []
    learner.pseudo_head.register_forward_hook(lambda *_: seen.append(1))
    selection = Selection(everything, batch.labels, ~everything)
    objective(method, learner, batch, weak, selection, torch.full((4, 2), 0.5))
    assert len(seen) == passes  # besides that of the weak view


# Phases


def test_phases(monkeypatch):
    trainer = built("method.ramp_epochs=4", "method.pseudo_epochs=3", "method.guess_epochs=2", "method.end_share=0.9")
    method, seen = trainer.method, []
    monkeypatch.setattr(type(method), "_small", lambda self, logits, _, share: seen.append(share) or self._labels >= 0)
    extras, weights, guessing = [], [], []
    plain = type(method)._now

    def spy(self, run, loss):
        now = plain(self, run, loss)
        extras.append(now.weights.extra)
        weights.append(round(now.weights.guesses, 4))
        guessing.append(now.guessing)
        return now

    monkeypatch.setattr(type(method), "_now", spy)
    for number in range(8):
        trainer.epoch(number)
    assert extras == [0.25, 0.5, 0.75, 1, 1, 1, 1]
    assert weights == [0.0333, 0.0667, 0, 0, 0, 0, 0]
    assert guessing == [False] * 5 + [True] * 2
    assert seen[::2] == pytest.approx([0.6, 0.7, 0.8, 0.9, 0.9, 0.9, 0.9])


def test_the_share_of_rows_comes_from_the_estimated_noise(monkeypatch):
    for rate, share in ((0.4, 0.54), (0.0, 0.9), (0.95, 0.2)):
        monkeypatch.setattr(promix, "noise_rate", lambda *_, rate=rate, **__: rate)
        found = build(small_config("method=promix", "epochs=4")).trainer.method._shares
        assert found == pytest.approx((share, share))


def test_priors_follow_selected_and_other_rows():
    trainer = built("method.prior_momentum=0.5")
    trainer.epoch(0)
    state = trainer.save().part("state")
    assert all(torch.equal(prior, torch.full((2,), 0.5)) for prior in state.values())
    trainer.epoch(1)
    for prior in trainer.save().part("state").values():
        assert float(prior.sum()) == pytest.approx(1, abs=1e-5)
        assert float(prior[0]) != 0.5


# What must not break


@pytest.mark.parametrize("selected", [0, 1, 456], ids=["none", "one", "all"])
def test_an_empty_side(monkeypatch, selected):
    trainer = built("model.batch_norm=true", "method.confidence=1", "method.pseudo_epochs=8")
    monkeypatch.setattr(type(trainer.method), "_small", lambda self, *_: torch.arange(len(self._labels)) < selected)
    for number in range(3):
        assert all(torch.isfinite(step.loss) for step in trainer.steps(number))


def test_batches_of_one_row():
    trainer = built("batch_size=1", "data.train_rows=20", "epochs=3", "loss=sl-pml")
    for number in range(3):
        found = [step.loss for step in trainer.steps(number)]
        assert found
        assert all(torch.isfinite(value) for value in found)


def test_a_network_without_features_is_refused(monkeypatch):
    monkeypatch.setattr("postmax.train.build.models.get", lambda *_, **__: nn.Linear(30, 2))
    with pytest.raises(InputError, match="needs the features of a network"):
        built()


def test_losses_that_cannot_be_used():
    with pytest.raises(InputError, match="one number for a whole batch"):
        built("loss=dmi")
    with pytest.raises(InputError, match="cannot express every posterior"):
        built("loss=logit-clip")


@pytest.mark.parametrize(
    "option",
    [
        "confidence=-1",
        "start_share=0",
        "end_share=-1",
        "prior_momentum=1",
        "temperature=0",
        "alpha=0",
        "warmup_epochs=-1",
    ],
)
def test_options_that_cannot_be(option):
    with pytest.raises(InputError, match=f"method.{option.partition('=')[0]}"):
        built(f"method.{option}")


def test_presets():
    for preset in ("cifar10n", "cifar100-symmetric-50"):
        method = build(small_config("method=promix", f"method.preset={preset}", "epochs=40")).trainer.method
        assert method._shares == (0.5, 0.5)


def test_what_to_do_if_the_noise_cannot_be_estimated():
    """The option is the share of rows to select, and not the share of wrong labels."""

    def estimate(train):
        raise InputError(f"{len(train)} rows are too few.")

    with pytest.raises(InputError, match=r"rows are too few. .* such as method.start_share=0.5"):
        build(small_config("method=promix"), estimate=estimate)
