"""The variational bound, against quadrature, exact evidences and other libraries' divergences."""

import math

import attrs
import numpy as np
import pytest
import torch

from oracles.comparison import assert_same
from symdsl.evidence import Bound, Categorical, Gaussian, WeightPosterior, normal_pairs


def noise(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def posterior(outputs, features, seed=0):
    """Some posterior that is not the prior."""
    roots = noise(outputs, features, features, seed=seed)
    prior = torch.rand(features, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) + 0.5
    return WeightPosterior(roots @ roots.mT, noise(outputs, features, seed=seed + 1), prior)


def hermite(dimensions, nodes):
    """Points and weights of Gauss-Hermite quadrature over independent standard normal numbers."""
    line, weight = np.polynomial.hermite_e.hermegauss(nodes)
    points = torch.tensor(np.stack(np.meshgrid(*[line] * dimensions, indexing="ij"), -1).reshape(-1, dimensions))
    weights = torch.tensor(weight / math.sqrt(2 * math.pi))
    every = torch.cartesian_prod(*[weights] * dimensions).reshape(-1, dimensions).prod(1)
    return points, every


# ---------------------------------------------------------------- expectations


def test_the_expected_cross_entropy_is_that_of_quadrature():
    mean, variance, y = noise(4, 3), noise(4, 3, seed=1).square(), torch.tensor([0, 2, 1, 2])
    points, weights = hermite(3, 24)
    leaf = mean.clone().requires_grad_()
    logits = leaf[:, None] + variance.sqrt()[:, None] * points
    losses = logits.logsumexp(2) - logits.gather(2, y[:, None, None].expand(-1, len(points), 1)).squeeze(2)
    expected = (losses @ weights).sum()
    (gradient,) = torch.autograd.grad(expected, leaf)
    p = logits.detach().softmax(2)
    found = Categorical().expected(mean, variance, y, normal_pairs(40_000, mean, torch.Generator().manual_seed(0)))
    assert float(found.loss) == pytest.approx(float(expected.detach()), abs=0.02)
    torch.testing.assert_close(found.gradient, gradient, atol=0.01, rtol=0)
    torch.testing.assert_close(found.hessian, torch.einsum("nkc,k->nc", p * (1 - p), weights), atol=0.01, rtol=0)


def test_the_expected_squared_error_needs_no_draws():
    mean, variance, y = noise(4, 2), noise(4, 2, seed=1).square(), noise(4, 2, seed=2)
    points, weights = hermite(1, 5)
    outputs = mean[..., None] + variance.sqrt()[..., None] * points[:, 0]
    expected = 0.5 * ((outputs - y[..., None]).square() @ weights).sum()
    found = Gaussian().expected(mean, variance, y, torch.empty(0))
    assert_same(found.loss, expected, 1e-12)
    assert_same(found.gradient, mean - y, 1e-12)
    assert_same(found.hessian, torch.ones(4, 2, dtype=torch.float64), 0)


def test_draws_come_in_pairs():
    found = normal_pairs(6, torch.zeros(2, 3), torch.Generator().manual_seed(0))
    assert found.shape == (6, 2, 3)
    assert_same(found[3:], -found[:3], 0)


# ---------------------------------------------------------------- the posterior


def test_outputs_moments_and_divergence_are_those_of_the_normal_distribution():
    q, features = posterior(3, 4), noise(5, 4, seed=9)
    normal = torch.distributions.MultivariateNormal(q.mean, precision_matrix=q.hessian + torch.diag(q.prior))
    prior = torch.distributions.MultivariateNormal(torch.zeros(4).double(), precision_matrix=torch.diag(q.prior))
    mean, variance = q.outputs(features)
    assert_same(mean, features @ normal.loc.T, 1e-10)
    assert_same(variance, torch.einsum("nd,cde,ne->nc", features, normal.covariance_matrix, features), 1e-10)
    assert_same(q.second_moments(), (normal.loc.square() + normal.variance).sum(0), 1e-10)
    assert q.divergence() == pytest.approx(float(torch.distributions.kl_divergence(normal, prior).sum()), rel=1e-10)


def test_the_posterior_before_any_data_is_the_prior():
    q = WeightPosterior.at_prior(3, torch.tensor([2.0, 0.5], dtype=torch.float64))
    assert q.divergence() == pytest.approx(0, abs=1e-12)
    torch.testing.assert_close(q.effective(), torch.zeros(2, dtype=torch.float64), atol=1e-12, rtol=0)
    assert_same(q.covariance, torch.diag(torch.tensor([0.5, 2.0], dtype=torch.float64)).expand(3, 2, 2), 1e-12)


def test_the_divergence_is_least_at_one_over_the_mean_second_moment():
    q = posterior(3, 4)
    covariance = q.covariance

    def divergence(precision):
        """Of the same Gaussian from another prior."""
        prior = torch.full((4,), precision, dtype=torch.float64)
        kept = torch.linalg.inv(covariance)
        return WeightPosterior(kept - torch.diag(prior), (kept @ q.mean[:, :, None])[:, :, 0], prior).divergence()

    best = 12 / float(q.second_moments().sum())
    assert divergence(best) < min(divergence(0.99 * best), divergence(1.01 * best))


# ---------------------------------------------------------------- bounds


def bound(q, features, y, likelihood, noise_variance=1.0, draws=20_000):
    normal = normal_pairs(draws, torch.zeros(len(features), len(q.mean)).double(), torch.Generator().manual_seed(5))
    loss = float(likelihood.expected(*q.outputs(features), y, normal).loss)
    nll = likelihood.nll(loss, len(y), len(q.mean), noise_variance)
    return Bound(-nll, q.divergence(), len(y), {}, {}, {}).log_evidence()


def step(q, features, y, likelihood, noise_variance=1.0, share=1.0, weight=1.0, draws=2000):
    mean, variance = q.outputs(features)
    expected = likelihood.expected(mean, variance, y, normal_pairs(draws, mean, torch.Generator().manual_seed(6)))
    return q.step(features, expected, noise_variance, weight, share)


def test_the_bound_of_a_linear_regression_is_the_exact_evidence_after_one_whole_step():
    features, y, prior = noise(11, 3), noise(11, 2, seed=1), torch.tensor([0.7, 2.0, 1.3], dtype=torch.float64)
    q = step(attrs.evolve(posterior(2, 3), prior=prior), features, y, Gaussian(), 0.4)
    covariance = features @ torch.diag(1 / prior) @ features.T + 0.4 * torch.eye(11).double()
    exact = torch.distributions.MultivariateNormal(torch.zeros(11).double(), covariance).log_prob(y.T).sum()
    assert bound(q, features, y, Gaussian(), 0.4) == pytest.approx(float(exact), rel=1e-9)


def test_any_other_posterior_of_a_linear_regression_has_a_lower_bound():
    features, y, prior = noise(11, 3), noise(11, 2, seed=1), torch.tensor([0.7, 2.0, 1.3], dtype=torch.float64)
    start = attrs.evolve(posterior(2, 3), prior=prior)
    bounds = [
        bound(step(start, features, y, Gaussian(), 0.4, share), features, y, Gaussian(), 0.4) for share in (0, 0.5, 1)
    ]
    assert bounds == sorted(bounds)
    assert bounds[2] - bounds[0] > 1


def test_the_bound_of_a_classifier_is_below_its_evidence_and_near_it():
    """The evidence is the mean likelihood over the prior of four weights, by quadrature."""
    features = torch.cat((noise(9, 1), torch.ones(9, 1).double()), 1)
    y, prior = (noise(9, 1, seed=0)[:, 0] + 0.5 * noise(9, seed=3) > 0).long(), torch.tensor([0.5, 2.0]).double()
    points, weights = hermite(4, 24)
    drawn = points.view(-1, 2, 2) / prior.sqrt()
    logits = torch.einsum("nd,kcd->knc", features, drawn)
    likelihood = -(logits.logsumexp(2) - logits.gather(2, y.expand(len(points), -1)[..., None])[..., 0]).sum(1)
    evidence = float(torch.logsumexp(likelihood + weights.log(), 0))
    q = WeightPosterior.at_prior(2, prior)
    bounds = [bound(q, features, y, Categorical())]
    for number in range(60):
        q = step(q, features, y, Categorical(), share=0.3)
        if number % 10 == 9:
            bounds.append(bound(q, features, y, Categorical()))
    assert max(bounds) < evidence
    assert bounds[0] < evidence - 1
    assert bounds[-1] > evidence - 0.25


def test_steps_by_halves_of_the_data_find_the_posterior_of_all():
    features, y, prior = noise(12, 3), noise(12, 2, seed=1), torch.ones(3).double()
    whole = step(WeightPosterior.at_prior(2, prior), features, y, Gaussian())
    q = WeightPosterior.at_prior(2, prior)
    for number in range(4000):
        part = slice(0, 6) if number % 2 else slice(6, 12)
        q = step(q, features[part], y[part], Gaussian(), share=1 / (number + 1), weight=2.0, draws=2)
    torch.testing.assert_close(q.mean, whole.mean, atol=2e-3, rtol=0)
    torch.testing.assert_close(q.covariance, whole.covariance, atol=2e-3, rtol=0)
