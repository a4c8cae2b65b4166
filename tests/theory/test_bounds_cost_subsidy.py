"""The theorems of the cost-subsidy paper as numbers, their instances, and the exact laws that judge them."""

from functools import cache
from itertools import product
from math import inf, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from scipy.stats import binom, norm

from costbandits.environments.bandits import Bandit
from costbandits.environments.distributions import Bernoulli, Constant
from costbandits.theory import factory
from costbandits.theory.bounds import cost_subsidy as bounds

pytestmark = pytest.mark.slow     # exhaustive checks

subsidy = st.floats(0, 0.95)


# ---- the lower bound ---------------------------------------------------------------------------------

def test_family_by_hand():
    bandit = bounds.family(3, 0.2, 0.4, 0.1, better=2)
    np.testing.assert_allclose(bandit.reward_means, [0.4, 0.5, 0.625, 0.5])
    np.testing.assert_allclose(bandit.cost_means, [0, 1, 1, 1])
    np.testing.assert_allclose(bounds.family(3, 0.2, 0.4, 0.1).reward_means, [0.4, 0.5, 0.5, 0.5])


@given(st.integers(1, 5), subsidy, st.floats(0.05, 0.95), st.floats(0.01, 0.99), st.integers(0, 5))
def test_the_free_arm_is_good_enough_unless_an_arm_is_better(K, theta, share, step, better):
    p = share * (1 - theta) / 2
    epsilon, better = step * (1 - theta - p), min(better, K)
    means = bounds.family(K, theta, p, epsilon, better).reward_means
    tolerated = (1 - theta) * means.max()
    assert means[0] == pytest.approx(tolerated) if better == 0 else means[0] == pytest.approx(tolerated - epsilon)


def test_divergence_by_hand_and_within_lemma_4():
    assert bounds.divergence(0.5, 0.25) == pytest.approx(0.5 * log(2) + 0.5 * log(2 / 3))
    p, ratio = np.meshgrid(np.linspace(0.01, 0.5, 50), np.linspace(0.01, 0.5, 50))
    kl = bounds.divergence(p, p * (1 + ratio))
    assert (kl <= 4 / 3 * p * ratio**2).all() and (kl >= 2 * (p * ratio) ** 2).all()


def test_lemma_1_by_hand():
    # epsilon = 0.25 * 0.1 = 0.025
    assert bounds.lemma_1(1, 1000, 0.5) == pytest.approx(12.5 - 0.025**4 * 1e6 / (2 * 0.975))
    for K, T, p in product((1, 3, 10), (10, 1000, 10**6), (0.1, 0.5)):
        assert bounds.lemma_1(K, T, p) >= 47 / 192 * p * K ** (1 / 3) * T ** (2 / 3)


def test_theorem_2_is_lemma_1_over_the_coins():
    assert bounds.theorem_2(2, 5000, 0.1) == pytest.approx(bounds.lemma_1(2, 5000, 0.3) * 0.9 / 19)
    assert bounds.theorem_2(2, 5000, 0.0) == bounds.lemma_1(2, 5000, 0.5)          # without a factory
    assert bounds.theorem_2(1, 10**6, 0.4) / bounds.theorem_2(1, 10**6, 0.1) == pytest.approx((6 / 9) ** 2, rel=0.01)


def test_a_faked_game_is_the_game_and_costs_what_the_factory_charges():
    """The reduction of Theorem 2: expensive pulls faked from coins of probability p + epsilon, alpha = 0.4.

    "Ten expensive pulls, then the expensive arm for good if six succeeded", over 40 pulls. It fails by chance in one
    of 10,000 seeds.
    """
    rng, alpha, p, epsilon, games = np.random.default_rng(302), 0.4, 0.2, 0.1, 2000
    seen, paid = np.zeros(games), np.zeros(games)
    for game in range(games):
        flips = [factory.flip(lambda: rng.random() < p + epsilon, 1 / (1 - alpha), 0.5, rng) for _ in range(10)]
        if sum(flip.heads for flip in flips) >= 6:
            flips += [factory.flip(lambda: rng.random() < p + epsilon, 1 / (1 - alpha), 0.5, rng) for _ in range(30)]
        seen[game], paid[game] = len(flips), sum(flip.coins for flip in flips)
    direct = 10 + 30 * binom.sf(5, 10, (p + epsilon) / (1 - alpha))
    assert abs(seen.mean() - direct) < 4 * seen.std() / games**0.5
    coins = factory.law(p + epsilon, 1 / (1 - alpha), 0.5).coins
    assert coins <= 19 / (1 - alpha) and abs(paid.sum() / seen.sum() / coins - 1) < 0.05


def test_floor_on_by_hand():
    kl = bounds.divergence(0.5, 0.6)
    assert bounds.floor_on(2, 100, 0.2, 0.4, 0.08) == pytest.approx(4 - 16 * kl / (8 * 2 * 0.46))


@given(st.integers(1, 100), subsidy, st.floats(0.05, 0.95), st.floats(0.02, 0.9), st.floats(0.05, 0.95),
       st.floats(0.05, 1))
def test_the_floor_with_a_price_is_below_the_best_policy(T, alpha, share, step, weight, price):
    p = share * (1 - alpha) / 2
    epsilon = min(step, 0.9 * price * weight / (1 - weight)) * (1 - alpha - p) * 0.99
    exact = bounds.bayes_regret(T, alpha, p, epsilon, weight, price)
    assert bounds.floor_on(1, T, alpha, p, epsilon, weight, price) <= exact + 1e-12


def test_theorem_4_floor_is_of_a_consistent_family():
    for K, T, alpha, delta in product((1, 5), (20, 1000, 10**6), (0.05, 0.5, 0.9), (0.1, 2.0, 50.0)):
        value, p, epsilon = bounds.theorem_4_floor(K, T, alpha, delta)
        r = p / (1 - alpha)
        price = min(1.0, delta * alpha * r)
        assert value == pytest.approx(bounds.floor_on(K, T, alpha, p, epsilon, 1 / 3, price)) and value > 0
        for better in (0, 1):
            means = bounds.family(K, alpha, p, epsilon, better).reward_means
            assert bounds.consistency(means, [0.0] + [price] * K) <= delta * (1 + 1e-9)
    limit = 0.397 * (8 / 4) ** (1 / 3) * 5e14 ** (2 / 3)
    assert bounds.theorem_4_floor(8, 10**15, 0.5, 1.0).value == pytest.approx(limit, rel=0.01)


def test_theorem_4_repaired_by_hand():
    # L = log 10,000 = 9.21034; C = 0.5: 6 (2 * 0.5 * L)^(1/3) 10^(8/3) = 5837.72; 6 sqrt(2 * 10^4 L) = 2575.16
    assert bounds.theorem_4_repaired(2, 10_000, 0.1, 5) == pytest.approx(5837.72 + 1 + 6 * (2575.16 + 2), rel=1e-5)
    assert bounds.theorem_4_repaired(2, 10_000, 0.0, 5) == pytest.approx(6 * (2575.16 + 2), rel=2e-5)


def test_theorem_4_margins_by_hand():
    # Tolerated: 0.81. Arm 0 is 0.01 better than needed, arm 2 short by 0.31; 0.4 + 1 is what a sweep costs too much.
    L = log(10**10)
    quality, cost, sweeps = bounds.theorem_4_margins(bounds.counterexample(), 0.1, 10**10)
    assert sweeps == pytest.approx(36e4 * L + 1) and cost == pytest.approx(1.4 * sweeps)
    assert quality == pytest.approx(36 * L / 0.31 + 0.31)
    # Tolerated: 0.64. An arm that is cheaper than the cheapest good one is short by 0.02 only: that must be seen.
    close = Bandit([Bernoulli(m) for m in (0.62, 0.7, 0.8)], [Constant(c) for c in (0.0, 0.5, 1.0)])
    assert bounds.theorem_4_margins(close, 0.2, 1000).sweeps == pytest.approx(36 * log(1000) / 0.02**2 + 1)
    # The border; two cheapest arms, of which the better counts.
    assert bounds.theorem_4_margins(bounds.family(2, 0.1, 0.45, 0.05), 0.1, 100).sweeps == inf
    twins = Bandit([Bernoulli(m) for m in (0.46, 0.48, 0.5)], [Constant(c) for c in (0.0, 0.0, 1.0)])
    assert bounds.theorem_4_margins(twins, 0.1, 1000).sweeps == pytest.approx(36 * log(1000) / 0.03**2 + 1)


def test_theorem_2_repaired_is_the_best_of_its_family():
    for K, T, alpha in (*product((1, 5), (20, 1000, 10**6), (0.0, 0.1, 0.8)), (1, 20, 0.9), (34, 10**6, 0.99996)):
        found = bounds.theorem_2_repaired(K, T, alpha)
        assert found.value == pytest.approx(bounds.floor_on(K, T, alpha, found.p, found.epsilon, 1 / 3))
        for e in np.geomspace(1e-3, min(0.999, 0.499 / (1 - alpha)), 60):
            other = bounds.floor_on(K, T, alpha, (1 - alpha) * (1 - e) / 2, (1 - alpha) * e, 1 / 3)
            assert other <= found.value * (1 + 1e-6)


@pytest.mark.parametrize("power", [12, 18, 24, 30, 48])
def test_the_floors_reach_their_limits(power):
    """However small the best e, and the divergence at it, are: 1e-32 for T = 10^48."""
    for K, alpha in product((1, 8), (0.1, 0.5, 0.9)):
        limit = (K * (1 - alpha)**2) ** (1 / 3) * 10 ** (2 * power / 3) / 4 ** (2 / 3)
        assert bounds.theorem_2_repaired(K, 10**power, alpha).value == pytest.approx(limit, rel=10 ** (1 - power / 4))
        limit *= (0.5 * alpha / 2) ** (1 / 3)
        assert bounds.theorem_4_floor(K, 10**power, alpha, 0.5).value == pytest.approx(limit, rel=10 ** (2 - power / 4))


def test_bayes_regret_by_hand():
    # One round: pull the free arm for (1 - w) epsilon, or the dear one for w.
    assert bounds.bayes_regret(1, 0.0, 0.5, 0.2, weight=0.05) == pytest.approx(0.05)
    assert bounds.bayes_regret(1, 0.0, 0.5, 0.2, weight=0.5) == pytest.approx(0.1)


@pytest.mark.parametrize("alpha, p, epsilon, weight, price", [(0.0, 0.5, 0.3, 0.4, 1.0), (0.2, 0.3, 0.3, 0.1, 0.5),
                                                              (0.5, 0.2, 0.2, 0.3, 0.2)])
def test_bayes_regret_is_the_best_of_all_policies(alpha, p, epsilon, weight, price):
    """Against a program in which a policy may pull either arm in each round."""
    T, usual, better = 12, p / (1 - alpha), (p + epsilon) / (1 - alpha)

    @cache
    def best(t, n, s):
        if t == T:
            return 0.0
        none = weight * usual**s * (1 - usual) ** (n - s)
        some = (1 - weight) * better**s * (1 - better) ** (n - s)
        some /= none + some
        q = (1 - some) * usual + some * better
        return min(some * epsilon + best(t + 1, n, s),
                   (1 - some) * price + q * best(t + 1, n + 1, s + 1) + (1 - q) * best(t + 1, n + 1, s))

    assert bounds.bayes_regret(T, alpha, p, epsilon, weight, price) == pytest.approx(best(0, 0, 0), rel=1e-12)


@pytest.mark.parametrize("T, epsilon, weight, price", [(400, 0.5, 0.3, 1.0), (400, 0.9, 0.98, 0.05),
                                                       (1000, 0.2, 0.02, 1.0), (1000, 0.05, 0.5, 0.3)])
def test_bayes_regret_leaves_out_no_state_that_counts(T, epsilon, weight, price):
    """Against all states, also those after which it is certain which arm is better."""
    usual, better = (1 - epsilon) / 2, (1 + epsilon) / 2
    value = np.zeros(T + 1)
    for n in range(T - 1, -1, -1):
        s = np.arange(n + 1)
        some = expit(log(1 / weight - 1) + s * log(better / usual) + (n - s) * log((1 - better) / (1 - usual)))
        q = (1 - some) * usual + some * better
        value = np.minimum(some * epsilon * (T - n), (1 - some) * price + q * value[1:] + (1 - q) * value[:-1])
    assert bounds.bayes_regret(T, 0.0, usual, epsilon, weight, price) == pytest.approx(value[0], rel=1e-12)


@given(st.integers(1, 150), subsidy, st.floats(0.05, 0.95), st.floats(0.02, 0.9), st.floats(0.02, 0.98))
def test_the_floor_is_below_the_best_policy(T, alpha, share, step, weight):
    p = share * (1 - alpha) / 2
    epsilon = min(step, 0.9 * weight / (1 - weight)) * (1 - alpha - p) * 0.99
    exact = bounds.bayes_regret(T, alpha, p, epsilon, weight)
    assert bounds.floor_on(1, T, alpha, p, epsilon, weight) <= exact + 1e-12


# ---- Theorem 1 ---------------------------------------------------------------------------------------

def test_theorem_1_instance_by_hand():
    bandit = bounds.theorem_1_instance(3, 0.1, 10_000, shift=1.0)
    np.testing.assert_allclose(bandit.reward_means, [0.46, 0.5, 0.5])
    np.testing.assert_allclose(bandit.cost_means, [0, 1, 1])


@given(st.integers(2, 6), subsidy, st.floats(0.01, 1), st.floats(0, 1), st.integers(6, 10**6))
def test_all_arms_of_theorem_1_are_good_enough_and_the_dear_ones_best(K, alpha, quality, share, T):
    means = bounds.theorem_1_instance(K, alpha, T, quality, share * alpha * quality * sqrt(T)).reward_means
    assert means.max() == quality and means.min() >= (1 - alpha) * quality


def test_theorem_1_by_hand():
    assert bounds.theorem_1_repaired(2, 1002, 0.1) == 1 + 1000 / 4
    assert bounds.theorem_1_repaired(4, 1004, 0.0) == 3 + 1000 * 7 / 16
    assert bounds.theorem_1_repaired(2, 1002, 0.1, prior_sd=1e9) == pytest.approx(251)
    assert bounds.theorem_1(2, 1000, 0.1, 1e-9) == pytest.approx(250 / (8 * np.pi**0.5))
    for d in (0.1, 1.0):          # both cases of the proof give the same
        value = bounds.theorem_1(2, 1000, 0.1, d)
        x = value / 500
        assert value == pytest.approx(250 * np.exp(-28 * x * d**2 / 0.81) / (8 * np.pi**0.5))
    assert bounds.theorem_1(1, 1000, 0.1, 1.0) == 0


def test_the_repaired_theorem_1_is_a_lower_bound_of_the_probability():
    """Directly: the chance that a dear arm's score reaches the bar, with any numbers of pulls."""
    rng = np.random.default_rng(4)
    for _ in range(200):
        alpha, q, prior, noise = rng.uniform(0, 0.9), rng.random(), rng.uniform(0.3, 3), rng.uniform(0.3, 3)
        T = int(rng.integers(10, 10**5))
        d = rng.random() * alpha * q * T**0.5
        n = rng.integers(1, T + 1, 4)
        bar = q + d / ((1 - alpha) * T**0.5)
        mean, sd = q * n / (noise**2 / prior**2 + n), (1 / prior**2 + n / noise**2) ** -0.5
        true = 0.5 * (1 - norm.cdf((bar - mean) / sd).prod())
        assert (bounds.theorem_1_repaired(5, T, alpha, q, d, prior, noise) - 4) / (T - 5) <= true + 1e-12


def test_ucb_share_is_what_the_radii_settle_at():
    alpha, n, width = 0.2, [1, 1], sqrt(2 * log(50_000))
    for _ in range(50_000):
        low, high = 0.4 + width / n[0] ** 0.5, 0.5 + width / n[1] ** 0.5
        n[min(low, 1) < 0.8 * max(min(low, 1), min(high, 1)) - 1e-12] += 1
    assert n[1] / 50_000 == pytest.approx(bounds.ucb_share(alpha), abs=0.01)


# ---- Theorem 3 ---------------------------------------------------------------------------------------

def test_theorem_3_by_hand():
    T = 8000                                                            # (T / 8)^(2/3) = 100
    error = 4 * T * sqrt(2 * log(T) / 100)
    found = bounds.theorem_3(8, T)
    assert found.quality == pytest.approx(800 + error + 2 / T) and found.cost == pytest.approx(800 + 2 / T)
    assert found.total == found.quality + found.cost
    assert bounds.theorem_3(8, T, costs="unknown").cost == pytest.approx(800 + error / 2 + 4 / T)
    assert bounds.theorem_3(8, T, pulls=25).quality == pytest.approx(200 + 2 * error + 2 / T)


@given(st.integers(2, 6), st.integers(1, 50), st.lists(st.integers(0, 400), min_size=6, max_size=6))
def test_radii_of_the_pulled_arms_add_up_to_less(K, tau, more):
    more = np.array(more[:K])
    T = K * tau + int(more.sum()) + 2
    summed = sum(2 * sqrt(2 * log(T) / n) for k in range(K) for n in range(tau, tau + more[k]))
    known, unknown = (bounds.theorem_3_repaired(K, T, 0.3, tau, costs) for costs in ("known", "unknown"))
    assert summed <= unknown.cost - known.cost


def test_best_pulls_is_the_minimum_of_the_larger_terms():
    K, T, alpha = 3, 10**6, 0.2
    def larger(tau):
        return (2 - alpha) * K * tau + 2 * (1 - alpha) * T * sqrt(2 * log(T) / tau)
    best = bounds.best_pulls(K, T, alpha)
    assert all(larger(best) <= larger(best * factor) for factor in (0.5, 0.9, 1.1, 2))
    assert bounds.best_pulls(5, 5, 0.0) == 1


@given(st.integers(2, 8), st.integers(200, 10**6), subsidy)
def test_a_regret_that_cs_etc_has_is_below_the_bounds(K, T, alpha):
    has = bounds.etc_floor(K, T, alpha)
    assert has <= min(bounds.theorem_3(K, T).quality, bounds.theorem_3_repaired(K, T, alpha).quality)


def test_arms_that_cs_etc_cannot_tell_apart():
    bandit = bounds.etc_hard(3, 10_000, 0.1, 200)
    radius = sqrt(2 * log(10_000) / 200)
    np.testing.assert_allclose(bandit.reward_means, [0.9 * (1 - radius), 1, 1])
    expected = 0.9 * radius * (10_000 - 400) * (1 - 1e-12)
    assert bounds.etc_floor(3, 10_000, 0.1, 200) == pytest.approx(expected)
    assert bounds.etc_floor(3, 20, 0.1) == 0


@pytest.mark.parametrize("bound", [bounds.theorem_3, bounds.theorem_3_repaired])
def test_informative_from_is_the_first(bound):
    T = bounds.informative_from(2, 0.1, bound)
    assert bound(2, T, 0.1).total < 0.9 * T
    assert bound(2, T - 1, 0.1).total >= 0.9 * (T - 1)


def test_leaves_by_hand():
    T, tau = 5000, 184
    needed = int(np.ceil(tau * (0.3 / 0.9 + sqrt(2 * log(T) / tau))))
    assert bounds.leaves((0.3, 0.5), 0.1, T) == pytest.approx(binom.sf(needed - 1, tau, 0.5) + T**-3.0)
    assert bounds.leaves((0.0, 1.0), 0.0, T) == 1
    assert bounds.leaves((0.46, 0.5), 0.1, 10_000) < 1e-11


@pytest.mark.parametrize("at_once", [False, True])
def test_sees_from_is_the_first(at_once):
    T = bounds.sees_from((0.3, 0.5), 0.1, at_once)
    def gap_seen(T):
        tau = (T / 2) ** (2 / 3)
        radius, other = sqrt(2 * log(T) / tau), sqrt(2 * log(T) / (tau if at_once else T - tau))
        return 0.3 + other < 0.9 * (0.5 - radius)
    assert gap_seen(T) and not gap_seen(T - 1)
    assert bounds.sees_from((0.45, 0.5), 0.1) == inf


# ---- Theorem 4 ---------------------------------------------------------------------------------------

def test_theorem_4_by_hand():
    found, root = bounds.theorem_4(3, 1000, 2.0), sqrt(24_000 * log(1000))
    assert found.quality == pytest.approx(root + 3.002) and found.cost == pytest.approx(2 * root + 3.002)
    assert bounds.ucb_two_arms(10**6, 0.5, 0.5) == pytest.approx(1 + 8 * log(10**6) + 2e-6)
    assert bounds.ucb_two_arms(100, 0.1, 0.01) == 100


def test_consistency_by_hand():
    assert bounds.consistency([0.5, 0.4, 0.2], [1, 0.5, 0]) == pytest.approx(5)
    assert bounds.consistency([0.5, 0.5], [0.3, 0.3]) == 0
    assert bounds.consistency([0.5, 0.5], [0.3, 0.4]) == inf


def test_counterexample_is_one():
    bandit = bounds.counterexample()
    means, costs = bandit.reward_means, bandit.cost_means
    assert bounds.consistency(means, costs) == pytest.approx(5)
    good = means >= 0.9 * means.max() + 0.005
    assert good.tolist() == [True, True, False] and costs[good].argmin() == 0
    assert 0.4 * bounds.counterexample_pulls(10**6) > bounds.theorem_4(3, 10**6, 5.0).total
    assert bounds.counterexample_pulls(10) == 0


def test_the_family_of_the_lower_bound_is_consistent():
    for alpha, better in product((0.1, 0.5, 0.9), (0, 1)):
        found = bounds.theorem_2_repaired(3, 10**6, alpha)
        bandit = bounds.family(3, alpha, found.p, found.epsilon, better)
        limit = (1 - alpha) / (alpha * found.p) * (1 + 1e-9)
        assert bounds.consistency(bandit.reward_means, bandit.cost_means) <= limit


# ---- bad input ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("call, name", [
    (lambda: bounds.family(0, 0.1, 0.3, 0.1), "K"), (lambda: bounds.family(2, 1.0, 0.3, 0.1), "theta"),
    (lambda: bounds.family(2, 0.1, 0.6, 0.1), "p"), (lambda: bounds.family(2, 0.1, 0.0, 0.1), "p"),
    (lambda: bounds.family(2, 0.1, 0.3, 0.0), "epsilon"), (lambda: bounds.family(2, 0.5, 0.3, 0.2), "epsilon"),
    (lambda: bounds.family(2, 0.1, 0.3, 0.1, better=3), "better"),
    (lambda: bounds.divergence(0.0, 0.5), "p = 0.0"), (lambda: bounds.lemma_1(5, 4, 0.5), "horizon"),
    (lambda: bounds.theorem_2(2, 100, -0.1), "alpha"),
    (lambda: bounds.floor_on(1, 100, 0.0, 0.4, 0.4, weight=0.2), "weight"),
    (lambda: bounds.bayes_regret(20_001, 0.0, 0.4, 0.1), "horizon"),
    (lambda: bounds.bayes_regret(10, 0.0, 0.4, 0.1, weight=1.0), "weight"),
    (lambda: bounds.bayes_regret(10, 0.0, 0.4, 0.1, price=0.0), "price"),
    (lambda: bounds.theorem_1_instance(1, 0.1, 100), "K"), (lambda: bounds.theorem_1_instance(2, 0.1, 1), "horizon"),
    (lambda: bounds.theorem_1_instance(2, 0.1, 100, quality=0.0), "quality"),
    (lambda: bounds.theorem_1_instance(2, 0.1, 100, shift=0.6), "shift"),
    (lambda: bounds.theorem_1_repaired(2, 100, 0.1, prior_sd=0.0), "prior_sd"),
    (lambda: bounds.theorem_1(2, 100, 0.1, 0.0), "shift"), (lambda: bounds.ucb_share(1.0), "alpha"),
    (lambda: bounds.theorem_3(2, 1), "horizon"), (lambda: bounds.theorem_3(2, 100, pulls=51), "pulls"),
    (lambda: bounds.theorem_3(2, 100, costs="some"), "costs"),
    (lambda: bounds.theorem_3_repaired(2, 100, 1.0), "alpha"),
    (lambda: bounds.etc_hard(2, 1000, 0.1, 10), "pulls"), (lambda: bounds.etc_hard(2, 1000, 0.1, 10.5), "pulls"),
    (lambda: bounds.informative_from(2, 0.1, lambda K, T, a: bounds.Regrets(T, T)), "bound"),
    (lambda: bounds.leaves((0.5,), 0.1, 100), "means"), (lambda: bounds.leaves((0.5, 1.1), 0.1, 100), "means"),
    (lambda: bounds.sees_from("ab", 0.1), "means"), (lambda: bounds.leaves((0.3, 0.5), 0.1, 100, 51), "pulls"),
    (lambda: bounds.consistency([0.5], [0.1, 0.2]), "costs"), (lambda: bounds.consistency([], []), "reward_means"),
    (lambda: bounds.floor_on(1, 100, 0.0, 0.4, 0.1, price=0.0), "price"),
    (lambda: bounds.theorem_4_floor(2, 100, 0.0, 1.0), "alpha"),
    (lambda: bounds.theorem_4_floor(2, 100, 0.1, 0.0), "delta"),
    (lambda: bounds.theorem_4_repaired(2, 100, 0.1, 0.0), "delta"),
    (lambda: bounds.theorem_4_margins(bounds.counterexample(), 1.0, 100), "alpha"),
    (lambda: bounds.theorem_4(2, 100, 0.0), "delta"), (lambda: bounds.ucb_two_arms(100, 0.1, 0.0), "margin"),
])
def test_bad_input_is_named(call, name):
    with pytest.raises(ValueError, match=name):
        call()
