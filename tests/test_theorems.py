"""Every theorem and corollary of the paper, for every divergence, with exact expectations over a finite X."""

import pytest
import torch
import torch.nn.functional as F
from finite_problem import (
    DIVERGENCES,
    binary_noise,
    invertible,
    joint_minimiser,
    minimiser,
    problems,
    symmetric_noise,
    uniform_noise,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

import postmax as pm

every_divergence = pytest.mark.parametrize("name", DIVERGENCES)
few = settings(max_examples=10, deadline=None, derandomize=True)
seeds = st.integers(0, 2**31 - 1)


def random_log_ratios(problem, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(problem.posterior.shape, dtype=torch.float64, generator=generator)


def bias_term(problem, divergence, s):
    """B_f(T) of the paper, term by term."""
    e = problem.noise.uniform_rates
    inside = (e * divergence.score(s)).sum(-1) - e.sum() * divergence.penalty(s).sum(-1)
    return problem.expect(inside)


def check_objective_relation(problem, name, seed):
    s = random_log_ratios(problem, seed)
    noisy = problem.objective(name, s, problem.noisy_posterior)
    clean = problem.objective(name, s, problem.posterior)
    kept = 1 - problem.noise.uniform_rates.sum()
    assert_close(noisy, kept * clean + bias_term(problem, pm.divergences.get(name), s), rtol=1e-9, atol=1e-9)


@every_divergence
@few
@given(problem=problems(binary_noise, max_classes=2), seed=seeds)
def test_theorem_binary_objective_under_noise(name, problem, seed):
    check_objective_relation(problem, name, seed)


@every_divergence
@few
@given(problem=problems(uniform_noise, min_classes=3), seed=seeds)
def test_theorem_multiclass_objective_under_noise(name, problem, seed):
    check_objective_relation(problem, name, seed)


@every_divergence
@few
@given(problem=problems(uniform_noise), seed=seeds)
def test_corollary_corrected_objective_has_the_clean_argmax(name, problem, seed):
    """J^η − B is maximal at the clean posterior: T° = argmax J = argmax (J^η − B)."""
    divergence = pm.divergences.get(name)

    def corrected(s):
        return problem.objective(name, s, problem.noisy_posterior) - bias_term(problem, divergence, s)

    best = minimiser(lambda z: -corrected(z), problem.posterior.shape)
    assert_close(best.exp(), problem.posterior, rtol=1e-6, atol=1e-9)
    assert corrected(best) >= corrected(best + 0.1 * random_log_ratios(problem, seed))


@every_divergence
@few
@given(problem=problems(uniform_noise), seed=seeds)
def test_objective_correction_is_the_papers_up_to_a_factor(name, problem, seed):
    """Training on rows of P⁻¹ gives (J^η − B)/(1 − Σe), row by row and not only in expectation."""
    s = random_log_ratios(problem, seed)
    divergence, e = pm.divergences.get(name), problem.noise.uniform_rates
    for label in range(problem.noise.num_classes):
        labels = torch.full((len(s),), label)
        ours = pm.functional.fpml_loss(
            s, labels, name, "exp", transition=problem.noise, correction="objective", floor=0, reduction="none"
        )
        noisy = pm.functional.fpml_loss(s, labels, name, "exp", reduction="none")
        bias = (e * divergence.score(s)).sum(-1) - e.sum() * divergence.penalty(s).sum(-1)
        assert_close(ours, (noisy + bias) / (1 - e.sum()), rtol=1e-8, atol=1e-8)


@every_divergence
@few
@given(problem=problems(invertible), seed=seeds)
def test_objective_correction_is_unbiased_for_any_invertible_matrix(name, problem, seed):
    s = random_log_ratios(problem, seed)
    corrected = pm.functional.fpml_loss(
        s, problem.noisy_posterior, name, "exp", transition=problem.noise, correction="objective", floor=0,
        reduction="none",
    )  # fmt: skip
    clean = pm.functional.fpml_loss(s, problem.posterior, name, "exp", reduction="none")
    assert_close(corrected, clean, rtol=1e-8, atol=1e-8)


def check_noisy_posterior(problem, name):
    """(f*)'(T°_η) = (1 − Σe)·p + e, where T°_η is found by maximising the noisy objective."""
    best = minimiser(lambda s: -problem.objective(name, s, problem.noisy_posterior), problem.posterior.shape)
    divergence, e = pm.divergences.get(name), problem.noise.uniform_rates
    estimate = divergence.conjugate_prime(divergence.score(best))
    assert_close(estimate, (1 - e.sum()) * problem.posterior + e, rtol=1e-6, atol=1e-8)


@every_divergence
@few
@given(problem=problems(binary_noise, max_classes=2))
def test_theorem_binary_posterior_under_noise(name, problem):
    check_noisy_posterior(problem, name)


@every_divergence
@few
@given(problem=problems(uniform_noise, min_classes=3))
def test_theorem_multiclass_posterior_under_noise(name, problem):
    check_noisy_posterior(problem, name)


@every_divergence
@few
@given(problem=problems(uniform_noise))
def test_corollary_corrected_posterior_has_the_clean_argmax(name, problem):
    """argmax (p^η − e) = argmax p, and the library's posterior is p itself."""
    loss = pm.FPMLLoss(name, "exp", transition=problem.noise, correction="posterior", reduction="none")
    best = minimiser(lambda z: problem.expect(loss(z, problem.noisy_posterior)), problem.posterior.shape)
    e = problem.noise.uniform_rates
    tied = problem.posterior.topk(2).values.diff().abs().squeeze(-1) < 1e-6
    papers = (best.exp() - e).argmax(-1)
    assert torch.equal(papers[~tied], problem.posterior.argmax(-1)[~tied])
    assert torch.equal(loss.predict(best)[~tied], problem.posterior.argmax(-1)[~tied])
    assert_close(loss.posterior(best), problem.posterior, rtol=0, atol=1e-5)


@every_divergence
@few
@given(problem=problems(symmetric_noise(0.0, 0.95)))
def test_theorem_symmetric_noise_is_harmless_below_the_threshold(name, problem):
    best = minimiser(lambda s: -problem.objective(name, s, problem.noisy_posterior), problem.posterior.shape)
    tied = problem.posterior.topk(2).values.diff().abs().squeeze(-1) < 1e-6
    prediction = pm.FPMLLoss(name, "exp").predict(best)
    assert torch.equal(prediction[~tied], problem.posterior.argmax(-1)[~tied])


@every_divergence
@few
@given(problem=problems(symmetric_noise(1.05, 1.2)))
def test_symmetric_noise_reverses_the_classes_past_the_threshold(name, problem):
    """Past η = (K−1)/K the noisy argmax is the clean arg*min*: the condition of the theorem is needed."""
    best = minimiser(lambda s: -problem.objective(name, s, problem.noisy_posterior), problem.posterior.shape)
    tied = (-problem.posterior).topk(2).values.diff().abs().squeeze(-1) < 1e-6
    prediction = pm.FPMLLoss(name, "exp").predict(best)
    assert torch.equal(prediction[~tied], problem.posterior.argmin(-1)[~tied])


@few
@given(problem=problems(symmetric_noise(0.0, 0.9)), seed=seeds)
def test_cross_entropy_is_a_member_and_so_robust_to_symmetric_noise(problem, seed):
    z = random_log_ratios(problem, seed)
    member = pm.functional.fpml_loss(z, problem.noisy_posterior, "kl", "softmax", reduction="none")
    assert_close(member, F.cross_entropy(z, problem.noisy_posterior, reduction="none"))
    best = joint_minimiser(
        lambda z: problem.expect(F.cross_entropy(z, problem.noisy_posterior, reduction="none")), z.shape
    )
    tied = problem.posterior.topk(2).values.diff().abs().squeeze(-1) < 1e-3
    assert torch.equal(best.argmax(-1)[~tied], problem.posterior.argmax(-1)[~tied])


@every_divergence
@few
@given(problem=problems(uniform_noise), seed=seeds)
def test_theorem_bias_bound_near_convergence(name, problem, seed):
    """|p°_η − p_η| ≤ ‖T°_η − T_η‖₂ · ‖(f*)''(T_η)‖₂ in a neighbourhood of the optimum, row by row."""
    divergence = pm.divergences.get(name)
    optimal = divergence.score(problem.noisy_posterior.log())
    now = divergence.score(problem.noisy_posterior.log() + 1e-3 * random_log_ratios(problem, seed))
    gap = divergence.conjugate_prime(optimal) - divergence.conjugate_prime(now)
    bound = (optimal - now).norm(dim=-1) * divergence.conjugate_second(now).norm(dim=-1)
    assert (gap.norm(dim=-1) <= bound * (1 + 1e-9)).all()
    assert (gap.abs().amax(-1) > 0).all()


@every_divergence
@few
@given(problem=problems(uniform_noise), seed=seeds)
def test_theorem_bias_expansion_near_convergence(name, problem, seed):
    """p − p_η ≃ (Σe)·p − e + δ·(f*)''(T°_η − δ): what is left out is of second order in δ."""
    divergence, e = pm.divergences.get(name), problem.noise.uniform_rates
    optimal = divergence.score(problem.noisy_posterior.log())
    direction = divergence.score_slope(problem.noisy_posterior.log()) * random_log_ratios(problem, seed)

    def left_out(step):
        delta = step * direction
        estimate = divergence.conjugate_prime(optimal - delta)
        expansion = e.sum() * problem.posterior - e + delta * divergence.conjugate_second(optimal - delta)
        return ((problem.posterior - estimate) - expansion).abs().max()

    coarse, fine = left_out(4e-3), left_out(1e-3)
    assert fine <= coarse / 10 + 1e-8  # a quarter of the step leaves a sixteenth of the error
    assert coarse <= 1e-3
