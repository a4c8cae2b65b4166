"""Divergences of two moments: by hand, against the exact ones of random laws, and what follows for rates."""

from math import e, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import costbandits as cb
from costbandits.policies.imed import of_coins, of_moments
from costbandits.theory.bounds import imed as bounds
from costbandits.theory.bounds.kl_ucb import closest, divergence, pulls
from costbandits.theory.bounds.kl_ucb import rates as least_rates


def test_exact_divergence_by_hand():
    # The points -2 and 1 with 2/3 and 1/3; a law of one value, -1, whose l is 1 / top; one with a mean above 0.
    assert bounds.exact_divergence([-2, 1], [2 / 3, 1 / 3], 1.0) == pytest.approx(log(2) / 3, rel=1e-14)
    assert bounds.exact_divergence([-1], [1.0], 1.0) == pytest.approx(log(2), rel=1e-14)
    assert bounds.exact_divergence([-1, 1], [0.25, 0.75], 1.0) == 0.0
    # 0 instead of top = 1: E log(1 - l X) = log(3) / 2 at l = 1.
    assert bounds.exact_divergence([-2, 0], [0.5, 0.5], 1.0) == pytest.approx(log(3) / 2, rel=1e-14)
    with pytest.raises(ValueError, match=r"^values = .*: must be at most 1\.0$"):
        bounds.exact_divergence([-3, 2], [0.5, 0.5], 1.0)


def random_law(rng):
    """A law with mean below 0 on up to seven values below 1, often with 1 among them, some of them rare."""
    n = int(rng.integers(1, 8))
    x, p = 1 - 10**rng.uniform(-2, 1) * rng.random(n), rng.dirichlet(np.full(n, rng.choice([0.2, 1.0, 5.0])))
    if rng.random() < 0.5:
        x[0] = 1.0
    return x, p, p @ x


def test_no_law_is_closer_than_the_two_points():
    rng, seen, equal = np.random.default_rng(1), 0, 0
    while seen < 5000:
        x, p, mean = random_law(rng)
        if mean > -1e-3:
            continue
        exact, least = bounds.exact_divergence(x, p, 1.0), float(bounds.moment_divergence(mean, p @ (x - mean)**2, 1.0))
        assert least <= exact * (1 + 1e-9)
        seen, equal = seen + 1, equal + (exact < least * (1 + 1e-6))
    assert equal < seen / 2


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.floats(0.01, 0.95), st.floats(1.05, 20), st.floats(0.1, 50))
def test_two_points_are_two_points(chance, factor, top):
    low = -top * chance / (1 - chance) * factor
    mean, variance = chance * top + (1 - chance) * low, chance * (1 - chance) * (top - low)**2
    exact = bounds.exact_divergence([low, top], [1 - chance, chance], top)
    assert float(bounds.moment_divergence(mean, variance, top)) == pytest.approx(exact, rel=1e-9)
    assert float(bounds.moment_divergence(mean, variance, top)) == pytest.approx(of_moments(-mean, variance, top), 1e-9)


@pytest.mark.parametrize("variance", [1e-20, 1e-7, 0.5, 30.0])
def test_small_gaps_keep_their_digits(variance):
    for u in np.geomspace(1e-12, 1e-6, 7).tolist():
        found = float(bounds.moment_divergence(-u, variance, 1.0))
        assert found == pytest.approx(of_moments(u, variance, 1.0), rel=1e-9, abs=0)
        if variance >= 0.5:
            assert found == pytest.approx(u * u / variance / 2, rel=1e-4, abs=0)
        assert float(bounds.moment_divergence(-u, 0.0, 1.0)) == pytest.approx(u - u * u / 2, rel=1e-12, abs=0)
    assert np.signbit(bounds.moment_divergence([0.0, 1.0], variance, 1.0)).tolist() == [False] * 2


def test_coins_at_a_known_cost_have_their_own_divergence():
    r, price = 0.3, np.array([0.31, 0.5, 0.9])
    for p in price:
        assert float(bounds.moment_divergence(r - p, r * (1 - r), 1 - p)) == pytest.approx(float(divergence(r, p)))


def test_the_price_rises_with_the_ratio_where_the_cost_is_known():
    """And so the top, 1 less what is paid, falls: "Known costs" in book/imed.md."""
    for r, share in np.random.default_rng(7).random((300, 2)):
        paid = np.linspace(r, 1, 12)[1:-1]      # between the mean and the largest reward
        prices = [float(bounds.moment_divergence(r - p, share * r * (1 - r), 1 - p)) for p in paid]
        assert (np.diff(prices) > 0).all()


def test_coins_are_no_closer_than_their_moments():
    rng = np.random.default_rng(2)
    for r, c, more in rng.random((2000, 3)):
        rho = r / c * (1 + 5 * more)
        exact = float(closest(r, c, rho)[0])
        assert of_coins(r, c, rho) == pytest.approx(exact, rel=1e-6, abs=1e-12)
        assert of_moments(rho * c - r, r * (1 - r) + rho**2 * c * (1 - c), 1.0) <= exact * (1 + 1e-9)


def test_rare_events_have_bennetts_exponent():
    variance = 1e-7
    for x in (0.01, 1.0, 100.0):
        u = x * variance
        assert float(bounds.moment_divergence(-u, variance, 1.0) / bounds.rare_events(-u, variance, 1.0)) == \
            pytest.approx(1, abs=1e-4)
        v, y = variance * (1 + x), x / (1 + x)
        assert float(bounds.rare_events(-u, variance, 1.0)) == pytest.approx(v * ((1 - y) * np.log1p(-y) + y))
        assert bounds.rare_events(-3 * u, 9 * variance, 3.0) == pytest.approx(bounds.rare_events(-u, variance, 1.0))


def test_rates_by_hand():
    # At the ratio 2 the second arm is worth 1/2 - 2 = -3/2 with the variance 1/4 + 4 (1/4) = 5/4 and, at most, 9/4:
    # w = 5/2, D = (25/4 log 5/2 - 5/4 log 4) / (15/2), or (25/4 log 5/2 - 9/4 log 8/3) / (17/2).
    bandit = cb.Bandit([cb.Bernoulli(0.8), cb.Bernoulli(0.5)], [cb.Bernoulli(0.4), cb.Discrete([0.5, 1.5], [0.5, 0.5])])
    for how, D in (("independent", (25 * log(2.5) - 5 * log(4)) / 30), ("any", (25 * log(2.5) - 9 * log(8 / 3)) / 34)):
        for cost in (bandit.costs[0], cb.Constant(0.4)):        # a single known cost lowers no top
            each = cb.Bandit(bandit.rewards, [cost, bandit.costs[1]])
            assert bounds.rates(each, 1.0, how) == pytest.approx([0, 1 / D])
    # A pull that pays costs 3/2, so that 1/2 - 2 C is taken from 1 - 3 and 0 - 1: the variance is 1/4.
    joint = cb.Bandit(outcomes=[(cb.Bernoulli(0.8), cb.Bernoulli(0.4)), cb.Pairs([1, 0], [1.5, 0.5])])
    for kind, v in (("sample", 1 / 4), ("independent", 5 / 4), ("any", 9 / 4)):
        D = (25 * log(2.5) / 4 - v * log(1 + 15 / 4 / v)) / (25 / 4 + v)
        assert bounds.rates(joint, 1.0, kind) == pytest.approx([0, 1 / D])
    assert bounds.rates(bandit, 1.0, "sample").tolist() == bounds.rates(bandit).tolist()
    rewards = [cb.Bernoulli(0.8), cb.Bernoulli(0.3), cb.Constant(0.5)]
    known = cb.Bandit(rewards, [cb.Constant(c) for c in (0.8, 0.5, 2.0)])
    assert bounds.rates(known) == pytest.approx([0, 1 / float(divergence(0.3, 0.5)), 0])
    with pytest.raises(ValueError, match=r"^bandit = .*: must have expected costs above 0$"):
        bounds.rates(cb.Bandit(bandit.rewards, [cb.Constant(0.0), cb.Bernoulli(0.5)]))
    for rewards in ((0, 2), (-0.5, 1)):
        with pytest.raises(ValueError, match=r"^reward of arm 1 = .*: must be in \[0, max_reward\], which is \[0, 1\]"):
            bounds.rates(cb.Bandit([cb.Bernoulli(0.8), cb.Discrete(rewards, [0.5, 0.5])], bandit.costs))
    double = cb.Bandit([cb.Discrete([0, 2], [1 - p, p]) for p in (0.8, 0.5)], bandit.costs)      # in half the unit
    assert bounds.rates(double, 2.0) == pytest.approx(bounds.rates(bandit))


@pytest.mark.filterwarnings("error")
def test_arms_that_tie_but_for_rounding_have_no_rates():
    costs = (0.1, 0.2, 0.3)
    tied = cb.Bandit([cb.Bernoulli(3 * c) for c in costs], [cb.Bernoulli(c) for c in costs])
    assert len(set(tied.ratios.tolist())) > 1
    for rates in (bounds.rates(tied), least_rates(tied), least_rates(tied, box=True)):
        assert rates.tolist() == [0.0] * 3
    assert np.isinf(pulls(tied, 1000)).all()


def test_moments_need_no_fewer_pulls_than_the_lower_bound():
    for seed in range(50):
        bandit = cb.instances.bernoulli(6)(np.random.default_rng(seed))
        assert (bounds.rates(bandit) >= least_rates(bandit) * (1 - 1e-9)).all()


def slope(g, R, C, rho):
    """Of D at the moments of R - rho C, rewards at most 1: its derivative by log rho, and what Lemma 6 proves of it."""
    def at(x):
        X = R - rho * np.exp(x) * C
        return float(bounds.moment_divergence(g @ X, g @ (X - g @ X)**2, 1.0))

    X = R - rho * C
    u, v, w = -(g @ X), g @ (X - g @ X)**2, 1 - g @ X
    p, q = v / (w * w + v), (v + u * w) / (w * w + v)
    s = (q - p) / (q * (1 - p))
    rough, fine = ((at(step) - at(-step)) / (2 * step) for step in (1e-3, 5e-4))
    return (4 * fine - rough) / 3, p * (1 - q) / s * (s * s / (1 - s) - np.log1p(-s)**2)


def test_the_price_rises_with_the_ratio_however_rewards_and_costs_depend():
    """Lemma 6 of book/imed.md, on random laws of up to five points and on those that come closest."""
    rng = np.random.default_rng(6)
    for _ in range(2000):
        k = rng.integers(2, 6)
        g, R, C = rng.dirichlet(np.ones(k)), rng.beta(0.3, 0.3, k), 10**rng.uniform(-2, 1, k)
        C = (C, C + R * 10**rng.uniform(-1, 1), C - 0.9 * C.min())[rng.integers(3)]
        found, bound = slope(g, R, C, (g @ R + 10**rng.uniform(-1, 1)) / (g @ C))
        assert found >= bound * (1 - 1e-4) - 1e-9 and bound > 0
    for s in (0.3, 0.9):
        near = [slope(*closest_laws(s, p), 1.0) for p in (1e-2, 1e-3)]
        ratios = [found / bound for found, bound in near]
        assert 0 <= ratios[1] - 1 < (ratios[0] - 1) / 8 < 0.01      # of order p
    assert slope(*closest_laws(0.1, 1e-3, most=2.0), 1.0)[0] < 0      # a reward of twice what the price knows of


def closest_laws(s, p, most=1.0):
    """Chances, rewards and costs of two points, the lower of which pays most."""
    q = p / (p + (1 - p) * (1 - s))
    a, z = -q / (1 - q), s / (2 * (-np.log1p(-s) - s))
    h = np.sqrt(z * z + 2 * z * p + p)
    X, R, low = a + (1 - a) * np.array([-z - h, -z + h]), np.array([most, 0.0]), (1 - (p + z) / h) / 2
    return np.array([low, 1 - low]), R, R - X


def test_prices_are_honest():
    """Lemma 3 of book/imed.md by all counts: rewards of 0 and 1, costs of 0 and 3, at levels up to the ratio."""
    for n, r, c, share in [(1, 0.05, 0.9, 1.0), (4, 0.5, 0.5, 0.7), (12, 0.05, 0.9, 0.95), (12, 0.9, 0.2, 1.0),
                           (40, 0.05, 0.5, 0.5)]:
        won, paid = np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij")
        chance, h, mean = binom.pmf(won, n, r) * binom.pmf(paid, n, c), share * r / (3 * c), (1 - share) * r
        x, y = won / n, paid / n
        price = n * bounds.moment_divergence(x - 3 * h * y, x * (1 - x) + 9 * h * h * y * (1 - y), 1.0)
        for level in np.unique(price[price > 0]):
            assert chance[price >= level].sum() <= e * (2 * n + 1) * np.exp(-level)
        wide, below = 1 + 3 * h, x < 3 * h * y
        least = min(0.5, mean**2 / (wide**2 * 3 * h))
        bound = np.exp(-n * (mean / wide)**2) + e * (2 * n + 1) * np.exp(-n * least * mean)
        assert (chance * np.exp(price))[below].sum() <= bound or share == 1


def test_where_a_jackpot_brings_the_trap_back():
    """The lesson's shop: 40 with chance 1/20, a rival's ratio of 3/2, costs of 1/2 and 3/2; scales below 0.69."""
    price = float(bounds.moment_divergence(-1.5, 1.5**2 / 4, 40.0))
    assert price == pytest.approx(0.0353, abs=5e-5) and price / -log(0.95) == pytest.approx(0.69, abs=5e-3)
