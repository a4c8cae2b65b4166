"""Theorems 1, 7 and 8 of the KUBE paper as numbers, and the exact laws that judge them."""

from fractions import Fraction
from math import ceil, floor, inf, log, pi, sqrt

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import proving
from scipy.integrate import quad
from scipy.stats import binom, norm

import costbandits as cb
from costbandits.theory import optimum
from costbandits.theory.bounds import kube as bounds
from costbandits.theory.bounds.kl_ucb import divergence

unit = st.floats(0.01, 1)
cost = st.floats(1, 20)
arms = st.integers(2, 6).flatmap(lambda K: st.tuples(st.lists(unit, min_size=K, max_size=K),
                                                     st.lists(cost, min_size=K, max_size=K)))
PLAIN = ([0.9, 0.1], [1, 2])               # densities 0.9 and 0.05


# ---- the bounds -------------------------------------------------------------------------------------

def test_gaps_by_hand():
    table = bounds.gaps(*PLAIN)
    np.testing.assert_allclose(table.loc[1, ["density", "reward", "cost", "loss"]].astype(float), [0.85, 0.8, 1, 1.7])
    assert (table.loc[0] == 0).all()


@given(arms)
def test_a_loss_is_a_gap_in_reward_plus_a_gap_in_cost(arms):
    rewards, costs = map(np.array, arms)
    table, best = bounds.gaps(*arms), np.argmax(rewards / costs)
    np.testing.assert_allclose(table.loss, table.reward + table.cost * rewards[best] / costs[best], atol=1e-9)
    assert (table.loss >= 0).all()
    assert ((table.reward > 0) | (table.cost > 0))[table.loss > 0].all()


def test_theorems_1_and_7_by_hand():
    weight, log_n = 0.8 + 1, log(160)
    assert bounds.kube(*PLAIN, 160) == pytest.approx(
        (8 / 0.85**2 + 4) * weight * log_n + weight * (pi**2 / 3 + 1) + 1)
    assert bounds.fractional_kube(*PLAIN, 160) == pytest.approx(
        8 / 0.85**2 * weight * log_n + weight * (pi**2 / 3 + 1) + 1)


def test_theorem_1_is_negative_below_every_cost_though_regret_is_0():
    assert bounds.kube(*PLAIN, 0.1) < 0 and bounds.fractional_kube(*PLAIN, 0.1) < 0
    assert bounds.kube_sharper(*PLAIN, 0.1) == bounds.fractional_kube_sharper(*PLAIN, 0.1) == 0


def test_ties_make_the_printed_bounds_infinite_and_leave_the_sharper_ones_alone():
    # 0.3 / 3 and 0.1 / 1 differ in the last bit, so arm 2 is I*.
    tied = ([0.3, 0.1, 0.05], [3, 1, 1])
    assert bounds.kube(*tied, 100) == bounds.fractional_kube(*tied, 100) == inf
    assert bounds.fractional_kube_sharper(*tied, 100) == pytest.approx(
        8 * log(100) / 0.05 + 0.05 * (1 + bounds.chance_failures(3)) + 0.1, rel=1e-9)


def test_a_single_arm():
    assert bounds.kube([0.5], [2], 11) == bounds.fractional_kube([0.5], [2], 11) == 1
    assert bounds.fractional_kube_sharper([0.5], [2], 11) == 0.5
    assert bounds.kube_sharper([0.5], [2], 11) == 0.5      # one leader, nothing else to draw: at most c_min is left


def test_sharper_bounds_by_hand():
    learning = 8 * log(160) / 1.7 + 1.7 * (1 + bounds.chance_failures(3))
    assert bounds.fractional_kube_sharper(*PLAIN, 160) == pytest.approx(learning + 0.9)
    assert bounds.kube_sharper(*PLAIN, 160) == pytest.approx(learning + 0.9 * 2 * (1 + log(80)))


@given(arms, st.floats(1, 1e9))
def test_the_sharper_bounds_never_exceed_the_printed_ones(arms, times):
    budget = min(arms[1]) * times
    assert bounds.kube_sharper(*arms, budget) <= bounds.kube(*arms, budget) * (1 + 1e-9)
    assert bounds.fractional_kube_sharper(*arms, budget) <= bounds.fractional_kube(*arms, budget) * (1 + 1e-9)


@given(arms, st.floats(1.5, 10))
def test_scales(arms, scale):
    rewards, costs = map(np.array, arms)
    budget = 100 * costs.max()
    for printed, sharper in ((bounds.kube, bounds.kube_sharper),
                             (bounds.fractional_kube, bounds.fractional_kube_sharper)):
        assert sharper(rewards, scale * costs, scale * budget) == pytest.approx(sharper(*arms, budget), rel=1e-6)
        assert printed(rewards, scale * costs, scale * budget) >= printed(*arms, budget)
        tightest = printed(rewards, costs / costs.min(), budget / costs.min())
        assert bounds.rescaled(printed, scale * rewards, costs / 7, budget / 7, scale) == pytest.approx(
            scale * tightest, rel=1e-6)


def test_chance_failures_is_the_sum_it_stands_for():
    t = np.arange(3, 10**6)
    assert bounds.chance_failures(3) == pytest.approx((2 * (t - 1) / t.astype(float) ** 4).sum(), rel=1e-9)
    assert bounds.chance_failures(3) < pi**2 / 3 - 3


@pytest.mark.slow
@given(st.lists(cost, min_size=1, max_size=4), st.integers(1, 3000))
def test_off_leader_pulls_lie_between_the_sum_and_the_papers_order(costs, n):
    q = (max(costs) / min(costs)) ** 2
    bound = bounds.off_leader_pulls(costs, n * min(costs))
    assert np.minimum(1, q / np.arange(1, n + 1)).sum() <= bound * (1 + 1e-9)
    assert bound <= (q * log(n) + 1) * (1 + 1e-9)


@pytest.mark.parametrize("budget", [0.7, 3.0, 50.0])
def test_off_leader_cost_is_an_integral(budget):
    area, _ = quad(lambda x: min(1, 3 / x), 1e-12, budget, points=[3] if budget > 3 else None)
    assert bounds.off_leader_cost([1, 3], budget) == pytest.approx(area, rel=1e-6)


# ---- the greedy set ---------------------------------------------------------------------------------

def test_greedy_set_by_hand():
    assert bounds.greedy_set([1, 3, 2], [2, 5, 4], 14) == [0, 2, 1]
    assert bounds.greedy_set([1, 1], [2, 2], 5) == [2, 0]
    # In floating point 0.1 goes only twice into 0.3; fractions stay exact.
    assert bounds.greedy_set([1], [Fraction(1, 10)], Fraction(3, 10)) == [3]


@given(st.lists(st.tuples(st.fractions(0, 1, max_denominator=20), st.fractions(1, 9, max_denominator=20)), min_size=1,
                max_size=5), st.fractions(0, 60, max_denominator=20))
def test_removing_a_drawn_item_leaves_the_rest_of_the_set(items, residual):
    densities, costs = zip(*items, strict=True)
    taken = bounds.greedy_set(densities, costs, residual)
    for arm, times in enumerate(taken):
        if times:
            rest = [m - (k == arm) for k, m in enumerate(taken)]
            assert bounds.greedy_set(densities, costs, residual - costs[arm]) == rest


def test_greedy_set_is_the_librarys_greedy():
    rng = np.random.default_rng(1)
    for _ in range(200):
        values, costs, budget = rng.random(6), rng.uniform(1, 9, 6), rng.uniform(0, 60)
        np.testing.assert_array_equal(bounds.greedy_set(values / costs, costs, budget),
                                      optimum.greedy(values, costs, budget).counts)


def test_draw_by_hand():
    # Round 8, indices 1/2 + bonus(2) and 0 + bonus(5) per cost: arm 1 leads although it is not affordable.
    assert bounds.draw(8, [2, 5], [1, 0], [1.5, 1], 1) == (0, [0, 1])
    assert bounds.draw(8, [2, 5], [1, 0], [1.5, 1], 4) == (0, [2 / 3, 1 / 3])
    assert bounds.draw(8, [2, 5], [1, 0], [1.5, 1], 4, fractional=True) == (0, [1, 0])
    assert bounds.draw(8, [2, 5], [1, 0], [1.5, 1], 1, fractional=True) == (0, [0, 1])
    assert bounds.draw(8, [2, 2], [1, 1], [1, 1], 3) == (0, [1, 0])       # the lower position wins a tie


# ---- exact laws -------------------------------------------------------------------------------------

def play(costs, budget, means, fractional):
    """All histories of the literal algorithm: (probability, pulls, [(t, leader, arm, pulls of arm 1 before)])."""
    def go(pulls, rewards, chance, history):
        residual = budget - pulls[0] * costs[0] - pulls[1] * costs[1]
        t = sum(pulls) + 1
        if t <= 2:
            leader, chances = t - 1, [float(t == 1), float(t == 2)]
        elif residual < min(costs):
            yield chance, pulls, history[2:]
            return
        else:
            leader, chances = bounds.draw(t, pulls, rewards, costs, residual, fractional)
        for arm in (0, 1):
            for outcome in (0, 1):
                step = chances[arm] * (means[arm] if outcome else 1 - means[arm])
                if step > 0:
                    after = [list(pulls), list(rewards)]
                    after[0][arm] += 1
                    after[1][arm] += outcome
                    yield from go(*after, chance * step, [*history, (t, leader, arm, pulls[0])])
    yield from go([0, 0], [0, 0], 1.0, [])


CASES = [((1, 2), 8, False), ((1, 2), 9, True), ((1.3, 1), 7.4, False), ((3, 1), 9.5, True), ((3, 1), 10, False)]


@pytest.mark.parametrize(("costs", "budget", "fractional"), CASES)
def test_two_arms_is_the_literal_algorithm(costs, budget, fractional):
    means = np.array([0.35, 0.6])
    law, off, T_law, t = {}, {}, {}, 5
    for chance, pulls, history in play(costs, budget, means, fractional):
        law[tuple(pulls)] = law.get(tuple(pulls), 0) + chance
        row = T_law.setdefault(sum(pulls), np.zeros(3))
        for s, leader, arm, n in history:
            part = off.setdefault((s, n), np.zeros(4))
            part += chance * np.array([1, leader == 0, leader != arm, (leader != arm) * costs[arm]])
            if s == t:
                row += chance * np.array([1, arm == 0, leader == 0])
    two = bounds.TwoArms(costs, budget, fractional)

    ends = two.ends(means).set_index(["pulls_1", "pulls_2"])
    assert sum(law.values()) == pytest.approx(1)
    assert ends.probability.to_dict() == pytest.approx(law)
    best = max(n * means[0] + floor((budget - n * costs[0]) / costs[1]) * means[1]
               for n in range(floor(budget / costs[0]) + 1))
    np.testing.assert_allclose(two.pulls(means), sum(p * np.array(n) for n, p in law.items()))
    assert two.regret(means) == pytest.approx(best - sum(p * (n @ means) for n, p in law.items()))

    rounds = two.rounds(means).set_index(["t", "pulls_1"])
    pd.testing.assert_frame_equal(
        rounds[["played", "leads_1", "off_leader", "off_cost"]].sort_index(),
        pd.DataFrame(off, index=["played", "leads_1", "off_leader", "off_cost"]).T.rename_axis(["t", "pulls_1"])
        .sort_index())
    np.testing.assert_allclose(rounds.leads_1 + rounds.leads_2, rounds.played)

    given_T = two.given_total(means, t)
    expected = {T: row for T, row in T_law.items() if row[0] > 0}
    assert sorted(expected) == list(given_T.index)
    for T, (chance, pulled, leads) in expected.items():
        np.testing.assert_allclose(given_T.loc[T], [chance, pulled / chance, leads / chance])


def test_lemma_3_is_false():
    # With costs 1 and 2 the budget is spent to the last unit, so T decides N_2 = B - T.
    B, means = 140, (0.98, 0.02)
    ends = bounds.TwoArms((1, 2), B).ends(means)
    assert (ends.pulls_2 == B - ends["T"]).all()
    d = means[0] - means[1] / 2
    promised = (8 / d**2 + 4) * np.log(ends["T"]) + pi**2 / 3 + 1
    broken = ends[(ends.pulls_2 > promised) & (ends.probability > 0)]
    assert len(broken) >= 1
    # While the expectation over all T obeys the lemma with room to spare.
    assert ends.probability @ ends.pulls_2 < ends.probability @ promised / 5


def test_lemma_5_is_false():
    row = bounds.TwoArms((1, 2), 40).given_total((0.99, 0.99), 11).loc[35]
    assert row.pulled > row.leads + 4 / (35 - 11 + 1) + 0.05
    assert row.probability > 1e-12


@pytest.mark.parametrize("fractional", [False, True])
@pytest.mark.parametrize(("costs", "budget"), [((1, 2), 30), ((1, 1.3), 21), ((5, 1), 40)])
def test_exact_regret_and_off_leader_pulls_obey_the_bounds(costs, budget, fractional):
    rng = np.random.default_rng(2)
    two = bounds.TwoArms(costs, budget, fractional)
    sharper = bounds.fractional_kube_sharper if fractional else bounds.kube_sharper
    closest = 0.0
    for means in [(1, 1), (0, 1), *rng.random((60, 2))]:
        closest = max(closest, two.regret(means) / sharper(means, costs, budget))
    assert 0.05 < closest <= 1
    rounds, ends = two.rounds((0.5, 0.6)), two.ends((0.5, 0.6))
    left = budget - ends.probability @ (ends[["pulls_1", "pulls_2"]] @ costs)
    assert 0 < rounds.off_leader.sum() <= bounds.off_leader_pulls(costs, budget)
    assert rounds.off_cost.sum() + left <= bounds.off_leader_cost(costs, budget)


def test_equal_densities_cost_nothing_but_the_remainder():
    two = bounds.TwoArms((1, 2), 31)
    assert two.regret((0.5, 1.0)) == pytest.approx(0, abs=1e-12)


# ---- Theorems 9 and 10: any scale, and KL-UCB over the cost ----------------------------------------

def low_sum(luck, mean, most=inf, longest=1500):
    """sum over n of E[min(most, exp(Y)); Y > 0], Y = luck(n, mean of n Bernoulli rewards), exactly."""
    total = 0.0
    for n in range(1, longest):
        k = np.arange(n + 1)
        Y = luck(n, k / n)
        total += np.exp(np.minimum(Y, log(most)) + binom.logpmf(k, n, mean))[Y > 0].sum()
    return total


def bonus_luck(reference, R):
    return lambda n, x: n * np.maximum(reference - x, 0) ** 2 / (2 * R**2)


def test_low_rounds_by_hand():
    # kappa = 1/2; R >= sigma: 2 + log 3. R = sigma / 2: p = 3/4, and kappa = 2^2 / (2 2^2) again
    assert bounds.low_rounds(1.0, 99, 1.0, 1.0) == bounds.low_rounds(1.0, 1, 2.0, 1.0) == pytest.approx(2 + log(3))
    assert bounds.low_rounds(2.0, 16, 1.0, 2.0) == pytest.approx(2 * (1 + 8 / 0.75))


@pytest.mark.slow
@pytest.mark.parametrize("mean", proving([0.3, 0.5, 0.8], 0.3, 0.8))
def test_low_rounds_against_exact_sums(mean):
    for gap in (0.25, 0.15):
        assert low_sum(bonus_luck(mean - gap, 0.5), mean) <= bounds.low_rounds(gap, 1e9)
        exact = [low_sum(bonus_luck(mean - gap, 0.25), mean, most) for most in (1e3, 1e6)]
        allowed = [bounds.low_rounds(gap, most, 0.25) for most in (1e3, 1e6)]
        assert exact[0] <= allowed[0] and exact[1] <= allowed[1]
    # With half the bonus the sum is not bounded: for a mean of 1/2, whose deviation is 1/2, it soon is too large.
    assert mean != 0.5 or exact[1] > 5 * bounds.low_rounds(0.15, 1e6)


def test_low_rounds_of_normal_rewards():
    """E[exp(Y); Y > 0] = phi(sqrt n d) / (sqrt n d) where R = sigma = 1, phi the normal density."""
    for gap in (0.1, 0.3, 1.0):
        z = gap * np.sqrt(np.arange(1, 200_000))
        assert 0.1 < (norm.pdf(z) / z).sum() / bounds.low_rounds(gap, 1, 1.0, 1.0) <= 1


@pytest.mark.parametrize("fractional", [False, True])
@pytest.mark.parametrize(("costs", "budget"), [((1, 2), 30), ((1, 1.3), 21), ((5, 1), 40)])
def test_exact_regret_obeys_theorem_9(costs, budget, fractional):
    two = bounds.TwoArms(costs, budget, fractional)
    for means in [(1, 1), (0, 1), *np.random.default_rng(2).random((60, 2))]:
        assert two.regret(means) <= bounds.theorem_9(means, costs, budget, fractional=fractional)


@pytest.mark.slow
@given(arms, st.floats(1.5, 10))
def test_scales_of_theorems_9_and_10(arms, scale):
    rewards, costs = map(np.array, arms)
    budget = 100 * costs.max()
    bound = bounds.theorem_9(*arms, budget)
    assert bounds.theorem_9(scale * rewards, costs, budget, scale, scale / 2) == pytest.approx(scale * bound, rel=1e-6)
    assert bounds.theorem_9(rewards, scale * costs, scale * budget) == pytest.approx(bound, rel=1e-6)
    assert bounds.theorem_10(rewards, scale * costs, scale * budget) == pytest.approx(
        bounds.theorem_10(*arms, budget), rel=1e-6)


def test_the_logarithms_of_theorems_9_and_10():
    """2 R^2 / l and l / kl(mu, c rho*) for each unit of ln B in the limit, from above; mu* c_max / c* more for KUBE."""
    means, costs = [0.75, 0.5, 0.4], [1, 2, 1.2]            # losses 1 and 0.5; the second arm is too expensive
    def per_log(bound, low, high, *more):
        return (bound(means, costs, high, *more) - bound(means, costs, low, *more)) / log(high / low)
    windows = (1e6, 1e20), (1e20, 1e80), (1e150, 1e300)
    # The remainder is of order (ln n)^(2/3): the constant is near only where 2 R^2 ln n is large beside it.
    for R, nearly in ((0.5, 1.9), (1.0, 1.6), (10.0, 1.15)):
        early, later, last = (per_log(bounds.theorem_9, *window, R) / (2 * R**2 * 3) for window in windows)
        assert early > later > last > 1 and last < nearly
    assert per_log(bounds.theorem_9, *windows[2], 1.0, 0.5, False) == pytest.approx(
        per_log(bounds.theorem_9, *windows[2]) + 0.75 * 2)
    early, later, last = (per_log(bounds.theorem_10, *each) * float(divergence(0.4, 0.9)) / 0.5 for each in windows)
    assert early > later > last > 1 and last < 2.6
    # Below the deviation it is a power.
    assert log(bounds.theorem_9(means, costs, 1e300, 0.25) / bounds.theorem_9(means, costs, 1e200, 0.25)) / (
        100 * log(10)) == pytest.approx(0.75, abs=0.01)


def test_an_arm_that_costs_alone_rule_out_needs_no_logarithm():
    assert bounds.theorem_10([0.75, 0.5], [1, 2], 1e300) == pytest.approx(bounds.theorem_10([0.75, 0.5], [1, 2], 1e6))
    assert bounds.theorem_10([0.75, 0.5], [1, 1.2], 1e300) > 5 * bounds.theorem_10([0.75, 0.5], [1, 1.2], 1e6)
    # A best arm that always pays never errs: the other is pulled once, and at the end less than mu* is lost.
    assert bounds.theorem_10([1, 0.5], [1, 2], 1e6) == pytest.approx(1.5 + 1)
    assert bounds.theorem_9([0.5], [2], 11) == bounds.theorem_10([0.5], [2], 11) == 0.5
    assert bounds.theorem_9(*PLAIN, 0.1) == bounds.theorem_10(*PLAIN, 0.1) == 0


def test_low_rounds_are_shared():
    """Levels 1 > 2 of arms with losses 1 and 3: rounds low at both cost 3, those low at the first only 1."""
    low, high = np.array([[5.0, 9.0], [9.0, 2.0]]), np.array([[1.0, 1.0], [1.0, 0.5]])
    assert bounds._by_levels(np.array([1.0, 3.0]), low, high) == pytest.approx(1 * 2 + 3 * 1.5 + 5 * 1 + 2 * 2)


def test_runs_obey_theorems_9_and_10():
    """Means of 60 runs; the bounds are so large that only a wrong formula comes near."""
    bandit = cb.Bandit([cb.Bernoulli(p) for p in (0.75, 0.6, 0.3)], [cb.Constant(c) for c in (1.0, 2.0, 1.0)])
    runs = cb.simulate({"half": cb.FractionalKUBE(0.5), "KUBE": cb.KUBE(0.5), "KL": cb.KLUCB()}, bandit,
                       cb.HardBudget(5000), 60, 3, [1.0])
    lost = cb.regret.knapsack(runs)[:, :, 0].mean(axis=1)
    game = bandit.reward_means, bandit.cost_means, 5000
    allowed = [bounds.theorem_9(*game, 0.5), bounds.theorem_9(*game, 0.5, fractional=False), bounds.theorem_10(*game)]
    assert ((0.05 < lost / allowed) & (lost < allowed)).all()


# ---- Theorem 8 --------------------------------------------------------------------------------------

@given(st.integers(1, 10**9), st.floats(0.2, 0.8), st.floats(0.02, 0.15))
def test_worse_of_two_solves_its_equation(n, mean, gap):
    x, low, high = bounds.worse_of_two(n, mean, gap), mean - gap, mean + gap
    kl = low * log(low / high) + (1 - low) * log((1 - low) / (1 - high))
    assert 2 * x == pytest.approx(n * gap / 4 * np.exp(-x * kl / gap), rel=1e-6)


def test_exact_regrets_obey_the_lower_bound():
    rng, closest = np.random.default_rng(3), inf
    two = bounds.TwoArms((1, 1), 40)
    for _ in range(100):
        mean = rng.uniform(0.1, 0.9)
        gap = rng.uniform(0.05, 0.99) * min(mean, 1 - mean)
        worse = max(two.regret((mean, mean - gap)), two.regret((mean, mean + gap)))
        closest = min(closest, worse / bounds.worse_of_two(40, mean, gap))
    assert 1 <= closest < 20


def test_the_lower_bound_grows_like_a_logarithm():
    steps = np.diff([bounds.worse_of_two(10**k, 0.5, 0.2) for k in (20, 40, 60)])
    assert steps == pytest.approx(0.2 / (0.4 * log(0.7 / 0.3)) * 20 * log(10), rel=0.02)


# ---- bad input --------------------------------------------------------------------------------------

TWO = bounds.TwoArms((1, 2), 5)


@pytest.mark.parametrize(("call", "message"), [
    (lambda: bounds.kube([1.5, 0.5], [1, 2], 10), r"reward_means\[0\] = 1.5: must be numbers in \[0, 1\]"),
    (lambda: bounds.kube(["x"], [1], 10), "reward_means"),
    (lambda: bounds.kube([], [], 10), "reward_means"),
    (lambda: bounds.kube([0.5], [0.5], 10), "costs = .*must be 1 or more; `rescaled`"),
    (lambda: bounds.kube([0.5, 0.5], [1], 10), r"costs = .* of shape \(2,\)"),
    (lambda: bounds.kube([0.5], [inf], 10), "costs"),
    (lambda: bounds.kube([0.5], [1], 0), "budget = 0"),
    (lambda: bounds.fractional_kube([float("nan")], [1], 1), "reward_means"),
    (lambda: bounds.kube_sharper([0.5], [0], 10), r"costs\[0\] = 0.0: .* above 0"),
    (lambda: bounds.fractional_kube_sharper([0.5], [1], inf), "budget = inf"),
    (lambda: bounds.gaps([[0.5]], [1]), "reward_means"),
    (lambda: bounds.rescaled(bounds.kube, [5], [1], 10, reward_scale=4), r"must be numbers in \[0, 4\]"),
    (lambda: bounds.rescaled(bounds.kube, [5], [1], 10, reward_scale=0), "reward_scale = 0"),
    (lambda: bounds.chance_failures(1), "first_round = 1: must be a whole number, 2 or more"),
    (lambda: bounds.off_leader_pulls([], 3), "costs"),
    (lambda: bounds.off_leader_cost([1], -1), "budget = -1"),
    (lambda: bounds.low_rounds([0.1, 0.0], 10), r"shortfall\[1\] = 0.0: must be above 0"),
    (lambda: bounds.low_rounds(0.1, 10, -1), "reward_scale = -1"),
    (lambda: bounds.low_rounds(0.1, 10, 1, 0), "deviation = 0"),
    (lambda: bounds.theorem_9([-0.5], [1], 10), r"reward_means\[0\] = -0.5"),
    (lambda: bounds.theorem_9([0.5], [1], inf), "budget = inf"),
    (lambda: bounds.theorem_10([1.5], [1], 10), r"reward_means\[0\] = 1.5"),
    (lambda: bounds.worse_of_two(0, 0.5, 0.1), "pulls = 0"),
    (lambda: bounds.worse_of_two(10, 0.5, 0.5), "gap = 0.5: must be below 0.5"),
    (lambda: bounds.worse_of_two(10, "half", 0.1), "mean = 'half'"),
    (lambda: bounds.worse_of_two(10, 2, 0.1), r"mean = 2: must be a number in \(0, 1\)"),
    (lambda: bounds.TwoArms((1, 2, 3), 10), r"costs = .* of shape \(2,\)"),
    (lambda: bounds.TwoArms((1, 2), 2.5), r"budget = 2.5: must be in \[3, 1000\]"),
    (lambda: bounds.TwoArms((1, 900), 1001), "budget = 1001"),
    (lambda: TWO.ends((0.5, 2)), "reward_means"),
    (lambda: TWO.regret((0.5,)), "costs"),
    (lambda: TWO.given_total((0.5, 0.5), 2), "t = 2"),
])
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_rounds_that_cannot_happen_have_no_rows():
    assert TWO.given_total((0.5, 0.5), 3 + ceil(sqrt(100))).empty
