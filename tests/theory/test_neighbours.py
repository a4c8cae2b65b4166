"""The steps of book/neighbours.md on random cases: each holds, and fails where one hypothesis is dropped."""

import numpy as np
import pytest
from scipy.stats import binom

import costbandits as cb
from costbandits.theory.bounds import kl_ucb as bounds
from costbandits.theory.bounds.kl_ucb import divergence


def tail_over_bound(mu, reference, n, y):
    """Logarithm of Lemma 2's exact tail Pr[Y > y] of a binomial mean over its bound."""
    k = np.arange(n + 1)
    Y = np.where(k / n < reference, n * divergence(k / n, reference), 0.0)
    theta = np.log1p(-mu) / np.log1p(-reference)
    exact = np.logaddexp.reduce(binom.logpmf(k, n, mu)[Y > y], initial=-np.inf)
    return exact + max(theta * y, y + n * divergence(reference, mu))


def test_lemma_2_bounds_the_exact_tail_if_the_reference_is_below_the_mean():
    rng = np.random.default_rng(70)
    draws = [*zip(rng.uniform(0.02, 0.98, 1000), rng.uniform(0.05, 0.999, 1000), rng.integers(1, 400, 1000),
                  rng.exponential(3, 1000), strict=True)]
    assert max(tail_over_bound(mu, mu * u, n, y) for mu, u, n, y in draws) <= 1e-9
    assert np.mean([tail_over_bound(mu, 1 - (1 - mu) * u, n, y) > 0 for mu, u, n, y in draws]) > 0.5


@pytest.mark.parametrize("factor", [1, 0.9])
def test_lemma_3_needs_references_of_the_levels_ratio(factor):
    r, c, mu_r, mu_c, u, v = np.random.default_rng(71).uniform(0.02, 0.98, (6, 20_000))
    h = mu_r / mu_c * u
    y0 = mu_c + v * (np.minimum(mu_r / h, 1) - mu_c)
    x0 = factor * h * y0
    Y = np.where(r < x0, divergence(r, x0), 0) + np.where(c > y0, divergence(c, y0), 0)
    assert (bounds.closest(r, c, h)[0] > Y + 1e-9).any() == (factor < 1)


@pytest.mark.parametrize("box", [False, True])
def test_lemma_5_fails_with_the_wrong_sign(box):
    def slack(r, c, mu_r, mu_c, u, sign):
        h = mu_r / mu_c * (1 + 3 * u)
        away = bounds.distance(mu_r, mu_c, h, box)
        seen = bounds.distance(r, c, h, box).divergence if r < h * c else 0.0
        return seen - (away.divergence - sign * away.reward * (r - mu_r) + away.cost * (c - mu_c))

    draws = np.random.default_rng(72).uniform(0.02, 0.98, (300, 5))
    assert min(slack(*draw, 1) for draw in draws) > -1e-6
    assert np.mean([slack(*draw, -1) < 0 for draw in draws]) > 0.1


@pytest.mark.parametrize(("r", "c", "h"), [(0.2, 0.6, 1.5), (0.7, 0.4, 3.0)])
def test_lemma_6_is_above_the_counts_on_simulated_stacks(r, c, h):
    """300 stacks each: the bound is twice the mean count and more, dozens of standard errors away."""
    rng = np.random.default_rng(73)
    n, L, away = np.arange(1, 1001), np.log(1e4), bounds.distance(r, c, h)
    means = [np.cumsum(rng.random((300, 1000)) < p, axis=1) / n for p in (r, c)]
    counted = (n * bounds.closest(*means, h)[0] <= L).sum(axis=1).mean()
    e, V = np.linspace(0.02, 2, 200), away.reward**2 + away.cost**2
    bound = ((1 + e) * L / away.divergence + V / 2 * ((1 + e) / e / away.divergence) ** 2).min()
    assert L / away.divergence / 10 < counted <= bound


def test_theorem_8_no_better_alternative_is_nearer_than_the_rate_says():
    p, q = np.random.default_rng(74).uniform(0.001, 0.999, (2, 100_000))
    assert (divergence(p, q) >= (1 - p) * np.log(1 / (1 - q)) - np.log(2)).all()
    nearest, others = bounds.distance(0.2, 0.6, 2.0).divergence, divergence(0.2, p) + divergence(0.6, q)
    assert others[p <= 2 * q].min() < nearest <= others[p > 2 * q].min() < 1.01 * nearest


def test_theorem_10_the_indices_after_outcomes_0_and_1():
    s, t = 3, 10**5
    sums = (s, 0.0, float(s), 0.0, float(s), 0.0)
    assert cb.KLUCBSC.rule(t, *sums, cb.KLUCBSC().parameters) == pytest.approx(t ** (1 / s) / 4)
    assert cb.OmegaKLUCB.rule(t, *sums, np.ones(1)) == pytest.approx(t ** (1 / s) - 1)
    exponent = {(a, u): 1 - a * np.log(2) / np.log(4 * u) for a in (1, 1.5, 1.99, 2) for u in (0.9, 0.9999)}
    assert all(exponent[a, 0.9999] > 0 for a in (1, 1.5, 1.99)) and exponent[2, 0.9999] < 0
