"""RENT and DWS: what is drawn, with which probabilities, and when nothing is drawn."""

import pytest
import torch
from small_runs import small_config

from postmax.errors import InputError
from postmax.methods.rent import dirichlet_weights, times_drawn
from postmax.train.build import build

WEIGHTS = torch.tensor([0.1, 0.4, 0.0, 1.5])


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def built(method, noise):
    return build(small_config(f"method={method}", "method.estimator=given", noise, "loss=ce")).trainer


def test_rows_are_drawn_as_often_as_their_weights_say():
    drawn = torch.stack([times_drawn(WEIGHTS, generator(seed)) for seed in range(3000)])
    assert (drawn.sum(1) == 4).all()
    # Four draws with the probabilities 0.05, 0.2, 0 and 0.75.
    assert drawn.mean(0).tolist() == pytest.approx([0.2, 0.8, 0.0, 3.0], abs=0.06)


@pytest.mark.parametrize("alpha", [0.5, 10.0])
def test_dirichlet_weights_have_the_mean_and_spread_of_their_distribution(alpha):
    weights = WEIGHTS + torch.tensor([0.0, 0.0, 0.2, 0.0])
    mean = weights / weights.sum()
    drawn = torch.stack([dirichlet_weights(weights, alpha, generator(seed), draws=1) for seed in range(4000)]) / 4
    torch.testing.assert_close(drawn.sum(1), torch.ones(4000))
    torch.testing.assert_close(drawn.mean(0), mean, atol=0.03, rtol=0)
    torch.testing.assert_close(drawn.var(0), mean * (1 - mean) / (alpha + 1), atol=0.02, rtol=0)


def test_with_a_large_alpha_the_weights_are_those_of_reweighting():
    found = dirichlet_weights(WEIGHTS + 0.1, 1e8, generator())
    torch.testing.assert_close(found, 4 * (WEIGHTS + 0.1) / 2.4, atol=1e-3, rtol=0)


@pytest.mark.parametrize("alpha", [1e-6, 10.0])
@pytest.mark.parametrize("weights", [torch.tensor([1e-6]), torch.tensor([1e-6, 1e3]), torch.full((500,), 1e-6)])
def test_extreme_weights_give_numbers(weights, alpha):
    found = dirichlet_weights(weights, alpha, generator())
    assert found.isfinite().all()
    assert float(found.sum()) == pytest.approx(len(weights), rel=1e-4)


@pytest.mark.parametrize("method", ["rent", "dws"])
def test_the_loss_of_a_batch_is_weighed_by_what_was_drawn(method):
    trainer = build(
        small_config(f"method={method}", "method.estimator=given", "noise=symmetric:0.3", "loss=ce")
    ).trainer
    made, batch = trainer.method, next(iter(trainer.batches.epoch(0)))
    weighed = []
    draw = made.random_weights

    def spy(weights, source):
        weighed.append((weights, draw(weights, source)))
        return weighed[-1][1]

    made.random_weights = spy
    step = next(trainer.steps(0))
    p = step.logits.detach().double().softmax(1)
    expected = torch.stack([p[n, y] / (0.7 * p[n, y] + 0.3 * p[n, 1 - y]) for n, y in enumerate(batch.labels.tolist())])
    torch.testing.assert_close(weighed[0][0], expected)
    losses = -p.log()[range(len(p)), batch.labels]
    assert float(step.loss.detach()) == pytest.approx(float((weighed[0][1] * losses).mean()), rel=1e-5)


@pytest.mark.parametrize("method", ["rent", "dws"])
def test_without_noise_all_rows_count(method):
    trainer = build(
        small_config(f"method={method}", "method.estimator=given", "noise=symmetric:0.01", "loss=ce")
    ).trainer
    batch = next(iter(trainer.batches.epoch(0)))
    step = next(trainer.steps(0))
    expected = torch.nn.functional.cross_entropy(step.logits, batch.labels)
    torch.testing.assert_close(step.loss.detach(), expected.detach())


@pytest.mark.parametrize("option", ["least_noise=1", "least_noise=-0.1", "alpha=0"])
def test_options_that_cannot_be(option):
    with pytest.raises(InputError, match=f"method.{option.partition('=')[0]} must be a number"):
        build(small_config("method=dws", f"method.{option}"))


def test_a_loss_of_the_whole_batch_is_refused():
    with pytest.raises(InputError, match="the method dws weighs the losses of single labels"):
        build(small_config("method=dws", "loss=dmi"))
