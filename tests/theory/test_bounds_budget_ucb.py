"""Lemmas 1 and 4, Theorems 3 and 7 of the Budget-UCB paper as numbers, and what judges them."""

from itertools import product
from math import exp, inf, log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import costbandits as cb
from costbandits.theory.bounds import budget_ucb as bounds
from costbandits.theory.bounds.omega_ucb import excess_rounds

unit = st.floats(0, 1)
cost = st.floats(0.02, 1)
arms = st.integers(2, 6).flatmap(lambda K: st.tuples(st.lists(unit, min_size=K, max_size=K),
                                                     st.lists(cost, min_size=K, max_size=K)))


def coins(rewards, costs):
    return cb.Bandit([cb.Bernoulli(p) for p in rewards], [cb.Bernoulli(p) for p in costs])


PAIR = coins([0.6, 0.3], [0.4, 0.5])                    # ratios 1.5 and 0.6
LINE = cb.LinearBandit([[1, 0], [0, 2]], [0.6, 0.2], [0.4, 0.25], noise_sd=0.1)    # ratios 1.5 and 0.8, L = 2


# ---- Lemmas 1 and 4 ---------------------------------------------------------------------------------

def test_gaps_by_hand():
    table = bounds.gaps(PAIR)
    np.testing.assert_allclose(table.gap, [0, 0.9])
    np.testing.assert_allclose(table.loss, [0, 0.45])


def test_rounding_does_not_tell_equal_ratios_apart():
    assert (bounds.gaps(coins([0.3, 0.1], [0.9, 0.3])).gap == 0).all()      # 0.3 / 0.9 and 0.1 / 0.3 differ in a bit


def test_lemmas_by_hand():
    assert bounds.lemma_1(PAIR, [7, 10]) == pytest.approx(4.5 + 1.5)
    np.testing.assert_allclose(bounds.lemma_1(PAIR, [[7, 10], [7, 0]]), [6, 1.5])
    assert bounds.lemma_4(PAIR, 10) == pytest.approx(9 + 1.5)
    assert bounds.regret_identity(PAIR, [7, 10], spent=8, optimum=11) == pytest.approx(11 - 12 + 4.5)


def enumerated(chances, rewards, steps, policy):
    """Expected reward, cost in steps and pulls by going through every sequence of costs; none of them 0."""
    K, m = len(chances), len(chances[0]) - 1
    total = np.zeros(2 + K)
    for costs in product(range(1, m + 1), repeat=steps + 1):
        left, chance, row = steps, 1.0, np.zeros(2 + K)
        for c in costs:
            if left < 0:                                # the rest of the sequence is not played: its chances sum to 1
                chance *= chances[0][c]
                continue
            arm = policy[left]
            chance *= chances[arm][c]
            row += rewards[arm][c], c, *(np.arange(K) == arm)
            left -= c
        total += chance * row
    return total


def test_exact_game_equals_enumeration_of_all_paths():
    rng = np.random.default_rng(0)
    for _ in range(5):
        chances = np.c_[np.zeros(2), rng.dirichlet(np.ones(3), 2)]
        rewards, policy = rng.random((2, 4)), rng.integers(0, 2, 5)
        game = bounds.exact_game(chances, rewards, 4, policy)
        reward, spent, *pulls = enumerated(chances, rewards, 4, policy)
        np.testing.assert_allclose([game.reward, game.spent * 3, *game.pulls], [reward, spent, *pulls])


def test_exact_game_of_coins_is_a_negative_binomial():
    # Cost 0 or 1: with B = 2 the game lasts until the third 1.
    game = bounds.exact_game([[0.75, 0.25]], [[0.1, 0.5]], 2)
    assert game.pulls == pytest.approx([12]) and game.spent == pytest.approx(3)
    assert game.reward == pytest.approx(9 * 0.1 + 3 * 0.5)
    uncounted = bounds.exact_game([[0.75, 0.25]], [[0.1, 0.5]], 2, crossing=False)
    assert uncounted.reward == pytest.approx(9 * 0.1 + 2 * 0.5)


def test_exact_game_finds_the_best_of_all_policies():
    rng = np.random.default_rng(1)
    chances, rewards = rng.dirichlet(np.ones(4), 2), rng.random((2, 4))
    values = [bounds.exact_game(chances, rewards, 5, np.array(p)).reward for p in product((0, 1), repeat=6)]
    best = bounds.exact_game(chances, rewards, 5)
    assert best.reward == pytest.approx(max(values), rel=1e-12) and max(values) > min(values)
    assert bounds.exact_game(chances, rewards, 5, best.arms).reward == best.reward


def test_identity_and_lemmas_on_exact_games():
    rng = np.random.default_rng(2)
    for _ in range(50):
        chances, rewards, steps = rng.dirichlet(np.ones(4), 3), rng.random((3, 4)), int(rng.integers(0, 10))
        bandit = coins((chances * rewards).sum(axis=1).tolist(), (chances @ np.arange(4) / 3).tolist())
        best = bounds.exact_game(chances, rewards, steps).reward
        game = bounds.exact_game(chances, rewards, steps, rng.integers(0, 3, steps + 1))
        regret = best - game.reward
        assert bounds.regret_identity(bandit, game.pulls, game.spent, best) == pytest.approx(regret, abs=1e-12)
        assert best <= (steps / 3 + 1) * bandit.ratios.max() * (1 + 1e-12)
        wrong = game.pulls.sum() - game.pulls[bandit.ratios.argmax()]
        assert regret <= bounds.lemma_1(bandit, game.pulls) <= bounds.lemma_4(bandit, wrong) * (1 + 1e-12)


# ---- Lemma 2 and the index --------------------------------------------------------------------------

@pytest.mark.parametrize("mean", [0.1, 0.5, 0.83])
@pytest.mark.parametrize("exploration", [0.4, 1.0])
def test_worst_miss_equals_enumeration_of_all_paths(mean, exploration):
    t, chance = 9, 0.0
    for path in product((0, 1), repeat=t - 1):
        n = np.arange(1, t)
        off = np.abs(np.cumsum(path) / n - mean) >= exploration * np.sqrt(2 * log(t - 1) / n) - 1e-12
        chance += off.any() * mean ** sum(path) * (1 - mean) ** (t - 1 - sum(path))
    assert bounds.worst_miss(mean, [t], exploration)[0] == pytest.approx(chance, rel=1e-9)
    assert 0 < bounds.worst_miss(mean, [t], 0.4)[0] < 1


def test_worst_miss_keeps_lemma_2():
    rounds = [3, 4, 5, 8, 20, 60]
    for mean in (0.1, 1 / 6, 0.5):
        assert (bounds.worst_miss(mean, rounds) <= 2 / (np.array(rounds) - 1.0) ** 3).all()


@pytest.mark.parametrize("K", [2, 7])
def test_chance_failures_is_the_sum_it_stands_for(K):
    t = np.arange(K + 1, 10**6).astype(float)
    assert bounds.chance_failures(K) == pytest.approx((4 * (t - K) / (t - 1) ** 4).sum(), rel=1e-9)
    assert 1 + bounds.chance_failures(K) < 3


@given(st.integers(1, 50), unit, st.just(0.0) | st.floats(1e-6, 1), st.integers(3, 10**6), cost)
def test_bonus_is_what_the_policy_adds(n, reward, cost_mean, t, lowest):
    played = cb.BudgetUCB.rule(t, n, reward * n, cost_mean * n, 0.0, 0.0, lowest, np.array([1.0]))
    H = bounds.bonus(reward, cost_mean, sqrt(2 * log(t - 1) / n), lowest)
    assert (H if cost_mean == 0 else reward / cost_mean + H) == pytest.approx(played, rel=1e-9)


def worst_index(bandit, eps, lowest):
    r, c = bandit.reward_means + eps, bandit.cost_means - eps
    return r / c + bounds.bonus(r, c, eps, lowest)


@settings(max_examples=50)
@given(arms, st.floats(0.2, 1))
def test_width_is_where_the_worst_index_meets_the_best_ratio(arms, share):
    bandit = coins(*arms)
    lowest = share * min(arms[1])
    printed, width = bounds.printed_width(bandit, lowest), bounds.width(bandit, lowest)
    worse = (bounds.gaps(bandit).gap > 1e-6).to_numpy()
    assert (width >= printed).all()
    best = bandit.ratios.max()
    assert (worst_index(bandit, width, lowest)[worse] <= best * (1 + 1e-9)).all()
    assert (worst_index(bandit, width * (1 + 1e-5), lowest)[worse] > best).all()


# ---- Theorem 3 --------------------------------------------------------------------------------------

def test_tail_by_hand():
    assert bounds.tail(20, 0.5) == pytest.approx(exp(-0.5 * 19.5**2 / 20) + 120 * exp(-5) + 4 * exp(-19))


@given(st.floats(0.02, 1), st.floats(0, 2))
def test_tail_bounds_the_late_rounds_of_a_coin(mu, decades):
    budget = mu * 10**decades
    first = int(2 * budget / mu)
    late = binom.cdf(budget, np.arange(first, 3 * first + 400), mu).sum()
    assert late <= bounds.tail(budget, mu)
    assert excess_rounds(budget, mu) <= bounds.tail(budget, mu)


def test_theorem_3_by_hand():
    tail = bounds.tail(100, 0.4)
    learning = 8 * (1 + 2.5 + 0.45) ** 2 / (0.9 * 0.5) * log(500)
    assert bounds.theorem_3(PAIR, 100) == pytest.approx(learning + (3 + tail) * 0.45 + 1.5)
    careful = 8 * (1 + 5 + 0.45) ** 2 / (0.9 * 0.5) * log(500)
    assert bounds.theorem_3(PAIR, 100, min_cost=0.2) == pytest.approx(careful + (3 + tail) * 0.45 + 1.5)


def test_theorem_3_fails_below_the_smallest_cost():
    assert bounds.theorem_3(PAIR, 0.001) < 0


def test_theorem_3_sharper_by_hand():
    pulls = 2 * log(5e6) / bounds.width(PAIR)[1] ** 2 + 1 + bounds.chance_failures(2) + excess_rounds(1e6, 0.4)
    assert bounds.theorem_3_sharper(PAIR, 1e6) == pytest.approx(0.45 * pulls + 1.5)
    # At B = 1 money runs out first: at most B + 1 is spent, all of it on arm 2.
    assert bounds.theorem_3_sharper(PAIR, 1) == pytest.approx(2 * 0.9 + 1.5)
    # Three arms: what is left after the worst arm goes to the next.
    three = coins([0.9, 0.0, 0.8], [0.5, 0.5, 0.5])
    first = 2 * log(4000) / bounds.width(three)[1] ** 2 + 1 + bounds.chance_failures(3) + excess_rounds(1000, 0.5)
    assert 0.5 * first < 1001
    rest = 1001 - 0.5 * first
    assert bounds.theorem_3_sharper(three, 1000) == pytest.approx(1.8 * 0.5 * first + 0.2 * rest + 1.8)


@settings(max_examples=50)
@given(arms, st.floats(0, 6), st.floats(0.2, 1))
def test_theorem_3_sharper_never_exceeds_the_printed_one(arms, decades, share):
    bandit, smallest = coins(*arms), min(arms[1])
    budget = smallest * 10**decades
    sharper = bounds.theorem_3_sharper(bandit, budget, share * smallest)
    assert sharper <= bounds.theorem_3(bandit, budget, share * smallest) * (1 + 1e-9)
    assert sharper <= (budget + 1) * bounds.gaps(bandit).gap.max() + bandit.ratios.max() + 1e-9


def test_equal_ratios_cost_nothing():
    tied = coins([0.2, 0.4, 0.1], [0.4, 0.8, 0.5])
    alone = coins([0.4, 0.1], [0.8, 0.5])
    assert bounds.theorem_3(tied, 50, 0.4) - bounds.tail(50, 0.4) * 0.15 == pytest.approx(
        bounds.theorem_3(alone, 50, 0.4) + 2 * log(0.5 / 0.4) * 0.15 / bounds.printed_width(alone, 0.4)[1] ** 2
        - bounds.tail(50, 0.5) * 0.15)
    assert bounds.theorem_3_sharper(coins([0.2, 0.4], [0.4, 0.8]), 50) == 0.5


@pytest.mark.parametrize(("value", "expected"), [(100, 49.0), (1e40, inf), (1, 2)])
def test_informative_from_a_constant(value, expected):
    assert bounds.informative_from(lambda budget: value, 2) == pytest.approx(expected)


def test_informative_from_theorem_3():
    start = bounds.informative_from(lambda B: bounds.theorem_3(PAIR, B), 1.5)
    assert bounds.theorem_3(PAIR, start) == pytest.approx(1.5 * (start + 1))
    assert bounds.theorem_3(PAIR, 2 * start) < 1.5 * (2 * start + 1)


# ---- Theorem 7 --------------------------------------------------------------------------------------

def test_radius_by_hand():
    inside, outside = 4 * log(1 + 10 * 9 / (2 * 4)), 2 * log(20)
    case = {"t": 10, "d": 4, "noise": 0.5, "length": 3, "size": 7, "ridge": 2, "delta": 0.05}
    assert bounds.radius(**case) == pytest.approx(0.5 * sqrt(inside + outside) + 7 * sqrt(2))
    assert bounds.radius(**case, printed=True) == pytest.approx(0.5 * sqrt(inside) + outside + 7 * sqrt(2))
    assert bounds.radius(**(case | {"t": np.array([1, 10])})).shape == (2,)


def test_theorem_7_by_hand():
    growth = log(1 + 2 * 100 * 4 / (0.4 * 2 * 4))       # smallest cost 0.4, rho = L^2 = 4
    size = sqrt(0.6**2 + 0.2**2)
    eps = 0.1 * sqrt(2 * growth + 2 * log(100)) + 2 * size
    parts = bounds.theorem_7(LINE, 100)
    gap = 1.5 - 0.8
    assert parts.learning == pytest.approx(32 * 2 * gap / (0.4**4 * gap**2) * eps**2 * growth)
    assert parts.failures == pytest.approx(2 / 0.4 * gap)
    assert parts.tail == pytest.approx(bounds.tail(100, 0.4) * gap)
    assert parts.crossing == pytest.approx(1.5, rel=1e-15)
    assert parts.total == pytest.approx(parts.learning + parts.failures + parts.tail + parts.crossing)
    assert bounds.theorem_7(LINE, 100, balls=2).failures == pytest.approx(2 * parts.failures)
    # With three arms the smallest gap decides how long learning takes, and the largest what a round costs.
    three = cb.LinearBandit([[1, 0], [0, 1], [0.5, 0.5]], [0.6, 0.2], [0.4, 0.4], 0.1)
    _, _, gap, _ = bounds._arms(three)
    assert sorted(gap.round(12)) == [0, 0.5, 1]
    growth = log(1 + 2 * 100 / 0.4 / 2)
    eps = 0.1 * sqrt(2 * growth + 2 * log(100)) + size
    assert bounds.theorem_7(three, 100).learning == pytest.approx(64 / (0.4**4 * 0.5**2) * eps**2 * growth)
    assert bounds.theorem_7(LINE, 100, ridge=5).learning != parts.learning
    assert bounds.theorem_7(LINE, 100, min_cost=0.2).failures == pytest.approx(2 * parts.failures)


def test_theorem_7_is_infinite_when_two_arms_share_the_best_ratio():
    tied = cb.LinearBandit([[1, 0], [0, 1], [0.5, 0.5]], [0.6, 0.3], [0.4, 0.2], noise_sd=0.1)
    assert bounds.theorem_7(tied, 100).learning == inf


# ---- bad input --------------------------------------------------------------------------------------

@pytest.mark.parametrize(("call", "name"), [
    (lambda: bounds.gaps("no bandit"), "bandit"),
    (lambda: bounds.gaps(cb.Bandit([cb.Constant(2)], [cb.Constant(1)])), "reward_means\\[0\\]"),
    (lambda: bounds.gaps(cb.Bandit([cb.Constant(1)], [cb.Constant(0)])), "cost_means\\[0\\]"),
    (lambda: bounds.lemma_1(PAIR, [1, 2, 3]), "pulls"),
    (lambda: bounds.lemma_1(PAIR, [1, -2]), "pulls"),
    (lambda: bounds.lemma_4(PAIR, -1), "wrong_pulls"),
    (lambda: bounds.exact_game([[0.5, 0.5]], [[1, 1, 1]], 3), "rewards"),
    (lambda: bounds.exact_game([[0.5, 0.6]], [[1, 1]], 3), "chances"),
    (lambda: bounds.exact_game([[1, 0]], [[1, 1]], 3), "chances"),
    (lambda: bounds.exact_game([[0, 1]], [[1, 1]], -1), "steps"),
    (lambda: bounds.exact_game([[0, 1]], [[1, 1]], 1, [0]), "arms"),
    (lambda: bounds.exact_game([[0, 1]], [[1, 1]], 1, [0, 1]), "arms"),
    (lambda: bounds.worst_miss(1.5, [3]), "mean"),
    (lambda: bounds.worst_miss(0.5, [1]), "rounds"),
    (lambda: bounds.worst_miss(0.5, [3], 0), "exploration"),
    (lambda: bounds.chance_failures(1), "K"),
    (lambda: bounds.printed_width(PAIR, 0.41), "min_cost"),
    (lambda: bounds.width(PAIR, 0), "min_cost"),
    (lambda: bounds.tail(0, 0.5), "budget"),
    (lambda: bounds.tail(10, 1.5), "min_cost"),
    (lambda: bounds.theorem_3(PAIR, 0), "budget"),
    (lambda: bounds.theorem_3_sharper(PAIR, 0.1), "budget"),
    (lambda: bounds.informative_from(lambda budget: 1, 0), "best_ratio"),
    (lambda: bounds.radius(1, 2, 0.1, 1, 1, 1, 1.0), "delta"),
    (lambda: bounds.radius(1, 2, 0.1, 1, 1, 0, 0.1), "ridge"),
    (lambda: bounds.theorem_7(PAIR, 100), "bandit"),
    (lambda: bounds.theorem_7(LINE, 1), "budget"),
    (lambda: bounds.theorem_7(LINE, 100, ridge=1), "ridge"),
    (lambda: bounds.theorem_7(LINE, 100, balls=0), "balls"),
])
def test_bad_input_is_named(call, name):
    with pytest.raises(ValueError, match=name):
        call()
