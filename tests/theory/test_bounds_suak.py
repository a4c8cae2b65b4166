"""Theorem 3.2, Lemma 3.1 and Table 1 of the SUAK paper as numbers, and the exact law that judges its lemmas."""

from itertools import product
from math import exp, inf, log, pi

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from costbandits.theory import optimum
from costbandits.theory.bounds import suak as bounds

FIGURE_1 = ([0.45, 0.7, 0.8], [0.3, 0.75, 0.8], 0.5)
FIGURE_2 = ([0.35, 0.45, 0.52, 0.72, 0.84, 0.9, 0.92, 0.9], [0.25, 0.3, 0.4, 0.6, 0.7, 0.75, 0.8, 0.85], 0.5)
SINGLE = ([0.6, 0.5], [0.3, 0.8], 0.5)                   # the cheap arm alone is best
unit = st.floats(0, 1)
arms = st.integers(1, 5).flatmap(lambda K: st.tuples(st.lists(unit, min_size=K, max_size=K),
                                                     st.lists(unit, min_size=K, max_size=K)))
rate = st.floats(0.05, 1)


def random_instance(rng, K):
    return rng.random(K), rng.random(K), rng.uniform(0.1, 1)


# ---- the linear program -----------------------------------------------------------------------------

def test_pair_by_hand():
    value, share = bounds.pair([[0.8, 0.45], [0.45, 0.8], [0.8, 0.0], [0.3, 0.6], [0.8, 0.9]],
                               [[0.8, 0.3], [0.3, 0.8], [0.8, 0.0], [0.9, 0.2], [0.6, 0.7]], 0.5)
    np.testing.assert_allclose(value, [0.59, 0.59, 0.5, 0.6, -inf])
    np.testing.assert_allclose(share[:4], [0.4, 0.6, 0.625, 0])
    assert bounds.pair([0.4, 0.7], [0.2, 0.2], 0.5) == (0.7, 0)


def test_pair_is_the_linear_program():
    rng = np.random.default_rng(1)
    for _ in range(100):
        rewards, costs, c = rng.integers(0, 11, 2) / 10, rng.integers(0, 11, 2) / 10, rng.integers(1, 11) / 10
        found = linprog(-rewards, costs[None], [c], [[1, 1]], [1], method="highs")
        value = bounds.pair(rewards, costs, c).value
        assert value == (pytest.approx(-found.fun, abs=1e-9) if found.status == 0 else -inf)


def test_bases_by_hand():
    table = bounds.bases(*FIGURE_1).set_index("arms")
    assert set(table.index) == {(0,), (0, 1), (0, 2), (0, 3), (1, 3), (2, 3)}
    assert table.index[table.optimal].tolist() == [(0, 2)]
    np.testing.assert_allclose(table.value.loc[[(0, 2), (0, 1), (2, 3), (0,), (0, 3)]],
                               [0.59, 0.45 + 0.25 * 0.2 / 0.45, 0.5, 0.45, 0.45])


@pytest.mark.slow
def test_the_best_base_is_the_best_mixture():
    rng = np.random.default_rng(2)
    for _ in range(300):
        instance = random_instance(rng, rng.integers(1, 6))
        table, best = bounds.bases(*instance), optimum.mixture(*instance)
        found = linprog(-np.append(instance[0], 0), np.append(instance[1], 0)[None], [instance[2]],
                        np.ones((1, len(instance[0]) + 1)), [1], method="highs")
        assert table.value.max() == pytest.approx(best.value) == pytest.approx(-found.fun)
        assert table.optimal.sum() == 1 and table.gap[table.optimal].item() == 0
        assert (table.gap >= 0).all()


def test_a_base_around_the_best_arm_has_no_gap_though_it_is_another():
    table = bounds.bases(*SINGLE).set_index("arms")
    assert table.index[table.optimal].tolist() == [(0,)]
    assert table.gap[[(0, 1), (0, 2)]].tolist() == [0, 0]
    assert bounds.gaps(*SINGLE)["base"].tolist() == [0, 0]


def test_gaps_by_hand():
    table = bounds.gaps(*FIGURE_1)
    np.testing.assert_allclose(table["reward"], [0.35, 0.1, 0])
    np.testing.assert_allclose(table["cost"], [0.2, 0.25, 0.3])
    np.testing.assert_allclose(table["base"], [0.59 - 0.45 - 1 / 9, 0.59 - 0.45 - 1 / 9, 0.09])
    np.testing.assert_allclose(table["dual"], [0, 0.24 + 0.7 * 0.75 - 0.7, 0])
    assert bounds.gaps([0.5], [0.8], 0.4)["base"].tolist() == [inf]  # its only base is the best


@given(arms, rate)
def test_dual_gaps_are_never_negative_and_bound_the_gaps_of_bases(arms, c):
    table, others = bounds.gaps(*arms, c), bounds.bases(*arms, c)
    assert (table.dual >= 0).all()
    floor = optimum.mixture(*arms, c).floor
    loss = np.append(table.dual, floor)
    assert all(gap >= min(loss[list(base)]) - 1e-9 for base, gap in zip(others.arms, others.gap, strict=True))


def test_kappa_by_hand():
    assert bounds.kappa(*FIGURE_2[:2]) == pytest.approx(2)
    assert bounds.kappa(*FIGURE_2[:2], null_arm=False) == pytest.approx(2)
    assert bounds.kappa([0.5, 0.6], [0.2, 0.6]) == pytest.approx(2.5)
    assert bounds.kappa([0.5, 0.6], [0.2, 0.6], null_arm=False) == pytest.approx(0.25)
    assert bounds.kappa([0.5, 0.6], [0.2, 0.2]) == inf
    assert bounds.kappa([0.5], [0.2], null_arm=False) == 0


@given(arms)
def test_kappa_is_large_enough_and_no_larger(arms):
    rewards, costs = np.append(arms[0], 0), np.append(arms[1], 0)
    least = bounds.kappa(*arms)
    rise, run = (np.abs(np.subtract.outer(x, x)) for x in (rewards, costs))
    if least < inf:
        assert (rise <= least * run * (1 + 1e-9)).all()
        assert least == 0 or (rise > least * run * (1 - 1e-9)).any()


# ---- Lemma 3.1 --------------------------------------------------------------------------------------

def test_omega_by_hand():
    assert bounds.omega(0.1, 0.5) == pytest.approx(0.0625)
    np.testing.assert_allclose(bounds.omega_interval([0.1, 0.2], 0.5), [[0.2 / 9, 0.4 / 9], [0.0625, 0.2 / 1.7]])


@given(unit, rate, st.floats(2 / 3, 1))
def test_lemma_3_1_holds_wherever_lemma_d_3_does(gap, c, share):
    low, high = bounds.omega_interval(gap, c)
    assert low <= bounds.omega(share * gap, c) * (1 + 1e-12)
    assert bounds.omega(share * gap, c) <= high <= gap


# ---- Theorem 3.2 ------------------------------------------------------------------------------------

def test_theorem_3_2_by_hand():
    bound, log_t = bounds.regret(*FIGURE_1, 500_000), log(500_000)
    small = 0.59 - 0.45 - 1 / 9
    wrong = 432 * 0.59 / 0.2 * (36 / small**2 + 25 / small**2 + (1.3 / 0.3) ** 2 / 0.09**2) * log_t
    assert bound.wrong_bases == pytest.approx(wrong)
    assert bound.learning == pytest.approx(241 * 3 * 0.59 * log_t / (0.5 * 0.04))
    assert bound.skips == pytest.approx(3 * pi**2 * 0.59 / 0.04)
    assert bound.failures == pytest.approx(2 * pi**2 * 9)
    assert bound.total == pytest.approx(bound.wrong_bases + bound.learning + bound.skips + bound.failures)


def test_one_round_leaves_the_constants():
    bound = bounds.regret(*FIGURE_1, 1)
    assert bound.wrong_bases == bound.learning == 0 < bound.skips < bound.total
    # The pull that exceeds the limit: each arm's largest loss in a wrong base, over omega_min.
    assert bounds.wrong_bases_repaired(*FIGURE_1, 1) == pytest.approx((0.065 + 0.24 + 0.24) / (0.15 / 1.65))


def test_an_arm_that_costs_c_makes_everything_infinite():
    bound = bounds.regret([0.5, 0.9], [0.5, 0.8], 0.5, 100)
    assert bound.wrong_bases == bound.learning == bound.skips == bound.total == inf
    assert bounds.wrong_bases_repaired([0.5, 0.9], [0.5, 0.8], 0.5, 100) == inf


def test_theorem_3_2_is_infinite_where_a_single_arm_is_best():
    bound = bounds.regret(*SINGLE, 1000)
    assert bound.wrong_bases == inf > bound.learning
    assert bounds.informative_from(*SINGLE) == inf
    # A cheap and a dear arm of the same reward: nobody tells apart what is as good.
    assert bounds.wrong_bases_repaired([0.5, 0.5], [0.2, 0.8], 0.5, 1000) == inf
    assert bounds.wrong_bases_repaired(*SINGLE, 1000) < inf


def test_repaired_first_term_by_hand():
    # {0} alone: L = 12 log T / 0.14^2, loses nothing. {0, 1}: slope 0.25 / 0.45. {1, null}: slope 14/15, {2, null}: 1.
    T, least = 1000, 0.15 / 1.65
    scale = 12 * log(T) / least
    first = (1 + 5 / 9) ** 2 / (0.14 - 1 / 9) ** 2
    lone, null_1, null_2 = 1 / 0.14**2, (1 + 14 / 15) ** 2 / (0.59 - 0.7 / 1.5) ** 2, 4 / 0.09**2
    arm_0 = first * 0.065
    arm_1 = null_1 * 0.24 + (first - null_1) * 0.065
    arm_2 = null_2 * 0.24
    assert lone < first and null_1 < first
    assert bounds.wrong_bases_repaired(*FIGURE_1, T) == pytest.approx(
        scale * (arm_0 + arm_1 + arm_2) + (0.065 + 0.24 + 0.24) / least)


def test_repaired_first_term_of_a_single_best_arm_by_hand():
    # {1, 0} and {1, null} are the only wrong bases; the best arm is 0, the other loses 0.1, the null arm 0.6.
    least = 0.15 / 1.65
    with_0, with_null = 1 / 0.1**2, (1 + 0.5 / 0.8) ** 2 / (0.6 - 0.5 * 0.5 / 0.8) ** 2
    expected = 12 * log(50) * (with_null * 0.6 + (with_0 - with_null) * 0.1) + 0.6
    assert bounds.wrong_bases_repaired(*SINGLE, 50) == pytest.approx(expected / least)


def test_the_repaired_first_term_is_smaller_than_the_printed_one():
    rng = np.random.default_rng(3)
    for _ in range(200):
        instance = random_instance(rng, 4)
        printed = bounds.regret(*instance, 10**6).wrong_bases
        # A choice may lose up to r* / c, where the paper counts r*.
        assert bounds.wrong_bases_repaired(*instance, 10**6) <= printed / instance[2]


def test_the_constants_of_the_repaired_first_term():
    # Half the width means half of every limit; what a last pull loses stays.
    whole, half = (bounds.wrong_bases_repaired(*FIGURE_1, 1000, width, 0.05) for width in (3.0, 1.5))
    assert 2 * half - whole == pytest.approx((0.065 + 0.24 + 0.24) / 0.05)
    assert bounds.wrong_bases_repaired(*FIGURE_1, 1000, share=0.15 / 1.65) == pytest.approx(
        bounds.wrong_bases_repaired(*FIGURE_1, 1000))


# ---- two accounts -----------------------------------------------------------------------------------

def test_two_accounts_by_hand():
    # r* = 0.59, alpha = 0.24, lambda = 0.7; omega = 0.2 / 1.7, and with half the gap 0.1 / 1.6. Wrong bases: {0, 1} has
    # slope 5/9 and gap 0.14 - 1/9, {2, null} with slope 1 and gap 0.09; {0} and {1, null} are less severe.
    T, F, w, least = 1000, 2.58 * 3, 0.2 / 1.7, 0.1 / 1.6
    L_01, L_2 = 6 * log(T) * ((14 / 9) / (0.14 - 1 / 9)) ** 2, 6 * log(T) * (2 / 0.09) ** 2
    bound = bounds.two_accounts(*FIGURE_1, T)
    assert bound.wrong_bases == pytest.approx((1.18 + 0.59) * (2 * L_01 + L_2 + 3) / least)
    assert bound.failures == pytest.approx((1.18 + 0.59) * F)
    asked = 24 * log(T) * (1 / 0.04 + 1 / 0.0625 + 1 / 0.09) + 3 + F
    unspent = log(T) / (4 * least) + 1 + log(T + 1) / (16 * 0.5 * w)
    assert bound.learning == pytest.approx(1.18 * (1 + 2 * asked) + 0.7 * unspent)
    skips = exp(3 * w) * (1 + 2.62 * exp(6 * w) + F) / (1 - exp(-1.5 * w**2))
    assert bound.skips == pytest.approx(0.24 * skips)


def test_two_accounts_of_a_single_best_arm_by_hand():
    # Arm 1 is 0.1 worse, arm 0 loses nothing; the price of cost is 0, so nothing is lost by unspent budget. With a
    # margin of 7 the smallest omega is that of 3/4 of the gap.
    T, F, least = 50, 2.58 * 2, 0.15 / 1.65
    bound = bounds.two_accounts(*SINGLE, T, margin=7)
    assert bound.wrong_bases == pytest.approx((1.2 + 0.6) * (6 * log(T) / 0.01 + 2) / least)
    assert bound.learning == pytest.approx(1.2 * (1 + 2 * (96 * log(T) * (1 / 0.04 + 1 / 0.09) + 2 + F)))


def test_where_two_accounts_promise_nothing():
    costs_c, as_good = ([0.5, 0.9], [0.5, 0.8], 0.5), ([0.6, 0.6], [0.3, 0.8], 0.5)
    assert bounds.two_accounts(*costs_c, 100).total == inf
    assert bounds.two_accounts(*as_good, 100).wrong_bases == inf > bounds.two_accounts(*as_good, 100).learning
    # A small c limits delta: the null arm's cost is 0.1 off.
    poor = bounds.two_accounts([0.5], [0.9], 0.1, 100)
    asked, unspent = 24 * log(100) / 0.64 + 1 + 2.58, log(100) / (4 * 0.05 / 1.95) + 1 + log(101) / (16 * 0.9 * 0.05)
    assert poor.learning == pytest.approx((1 + 2 * asked + unspent) * 5 / 9)
    assert poor.skips == 0                                  # alpha = 0: a skip loses nothing


def test_two_accounts_are_promised_less_than_theorem_3_2():
    # Where the null arm is not the closest to c; for a small c its r* / c in place of r* may be the larger.
    rng = np.random.default_rng(4)
    for _ in range(200):
        instance = (*rng.random((2, 4)), rng.uniform(0.5, 0.95))
        assert bounds.two_accounts(*instance, 10**6).total < bounds.regret(*instance, 10**6).total / 2


@pytest.mark.parametrize("bound", [bounds.regret, bounds.wrong_bases_repaired, bounds.two_accounts])
def test_informative_from_is_the_first_horizon(bound):
    start = bounds.informative_from(*FIGURE_1, bound)
    best = optimum.mixture(*FIGURE_1).value

    def ratio(T):
        value = bound(*FIGURE_1, T)
        return getattr(value, "total", value) / (T * best)

    assert ratio(start) < 1 <= ratio(start - 1)
    assert start > 10**6
    assert bounds.informative_from([1, 0], [1, 0], 0.9, lambda *_: -1.0) == 1


def test_table_1_by_hand():
    table = bounds.table_1(*FIGURE_1, 1000).set_index("work").value
    gap, log_t = 0.14 - 1 / 9, log(1000)
    singular = np.linalg.svd([[0.3, 0.8], [1, 1]], compute_uv=False)[1]
    removed = 0.59 - 0.45 - 1 / 9                       # without arm 2; without arm 0 it is 0.09
    expected = {
        "SUAK": 3 * log_t * (1 / (0.2 * gap**2) + 1 / 0.04) + 1,
        "Bernasconi": 1000**0.5,
        "Kumar": 3 * log_t / (gap * 0.2) ** 2,
        "Li": 3 * log_t / (0.125 * removed**2) + 4 / (removed * singular) ** 2,
        "Flajolet": 9 * log_t / 0.008 * (25 / gap + 1 / 0.8),
    }
    assert singular > 0.2
    for work, value in expected.items():
        assert table[[name for name in table.index if name.startswith(work)]].item() == pytest.approx(value)
    # Where c itself is smaller than what any arm is off it, the null arm's drift is the smallest.
    rewards, costs = np.array([0.9, 0.5]), np.array([0.9, 0.3])
    gaps = bounds.bases(rewards, costs, 0.1).gap
    table = bounds.table_1(rewards, costs, 0.1, 1000).set_index("work").value
    assert table.filter(like="Kumar").item() == pytest.approx(2 * log_t / (gaps[gaps > 0].min() * 0.1) ** 2)


def test_table_1_is_infinite_where_a_gap_is_none():
    at_c = bounds.table_1([0.75, 0.5], [0.5, 0.25], 0.5, 1000).value          # an arm costs c
    twins = bounds.table_1([0.75, 0.75], [0.25, 0.25], 0.5, 1000).value       # neither would be missed
    assert np.isinf(at_c).tolist() == [True, False, True, False, True]
    assert np.isinf(twins).tolist() == [False, False, False, True, False]


# ---- a known pair, exactly --------------------------------------------------------------------------

def played(costs, high, low, a, b, omega, held_back):
    """Probability of a sequence of costs (None is a skip), its skips and what it leaves, by Algorithm 2's lines."""
    spent, chance, skips, drawn = 0, 1.0, 0, iter(costs)
    for t, held in enumerate(held_back, 1):
        if b * (spent + 1) > a * t:
            skips += 1
            continue
        p = min(max((a * t / b - spent - held - low) / (high - low), omega), 1 - omega)
        mean = p * high + (1 - p) * low
        cost = next(drawn, None)
        if cost is None:
            return None
        chance *= mean if cost else 1 - mean
        spent += cost
    return (chance, skips, a * len(held_back) - b * spent) if next(drawn, None) is None else None


@pytest.mark.parametrize(("high", "low", "a", "b"), [(0.8, 0.3, 1, 2), (0.9, 0.0, 1, 3), (0.7, 0.5, 3, 5),
                                                     (1.0, 0.2, 1, 1)])
def test_slack_law_is_the_sum_over_all_plays(high, low, a, b):
    held = 0.3 * np.log(np.arange(1, 9))
    law = bounds.slack_law(high, low, a / b, 0.1, held)
    skips, left = 0.0, np.zeros(law.probability.size)
    for pulls in range(9):
        for costs in product((0, 1), repeat=pulls):
            outcome = played(costs, high, low, a, b, 0.1, held)
            if outcome:
                skips += outcome[0] * outcome[1]
                left[outcome[2]] += outcome[0]
    assert law.skips.sum() == pytest.approx(skips)
    np.testing.assert_allclose(law.probability, left, atol=1e-14)
    np.testing.assert_allclose(law.unspent, np.arange(left.size) / b)


def test_an_adversary_in_some_rounds_by_hand():
    # c = 1/2, rounds 1 to 4: skip, an arm that always costs 1, skip, one that is free. Then 1 may be spent: no skip.
    law = bounds.slack_law(0.8, 0.2, 0.5, 0.1, np.zeros(5), forced=[np.nan, 1, np.nan, 0, 0])
    assert law.skips.tolist() == [1, 0, 1, 0, 0] and law.unspent @ law.probability == 1.5


@given(st.floats(0.51, 1), st.floats(0, 0.49), st.floats(0, 0.5), st.floats(-5, 5))
def test_slack_law_is_a_law_and_never_overspends(high, low, omega, held):
    law = bounds.slack_law(high, low, 0.5, omega, np.full(60, held))
    assert law.probability.sum() == pytest.approx(1)
    assert (law.unspent >= 0).all() and law.unspent[-1] <= 30
    assert ((law.skips >= 0) & (law.skips <= 1 + 1e-12)).all() and law.skips[0] == 1


def test_holding_more_back_saves_skips_and_leaves_more():
    log_t = np.log(np.arange(1, 2001))
    laws = [bounds.slack_law(0.8, 0.3, 0.5, 0.1, factor * log_t) for factor in (0, 1, 2, 5)]
    skips, unspent = [law.skips.sum() for law in laws], [law.unspent @ law.probability for law in laws]
    assert skips == sorted(skips, reverse=True) and unspent == sorted(unspent)
    assert skips[0] > 20 * skips[-1]


def test_maximal_inequality_behind_the_repair():
    # Costs of 0 and 1 with mean c - d: the exact chance of ever being h above c per round is at most exp(-8 d h).
    c, drift, above = 0.5, 0.1, 3.0
    chance = ((c - drift) / (1 - c + drift)) ** (2 * above)
    assert chance <= exp(-8 * drift * above) < 1.2 * chance


# ---- bad input --------------------------------------------------------------------------------------

@pytest.mark.parametrize(("call", "message"), [
    (lambda: bounds.bases([0.5, 1.2], [0.1, 0.2], 0.5), "reward_means"),
    (lambda: bounds.bases([0.5], [0.1, 0.2], 0.5), r"cost_means = .* of shape \(1,\)"),
    (lambda: bounds.bases([0.5], [-0.1], 0.5), "cost_means"),
    (lambda: bounds.bases([], [], 0.5), "reward_means"),
    (lambda: bounds.bases([[0.5]], [[0.5]], 0.5), r"reward_means = .* of shape \(K,\)"),
    (lambda: bounds.bases("ab", [0.5], 0.5), "reward_means"),
    (lambda: bounds.gaps([0.5], [0.1], 0), "rate = 0"),
    (lambda: bounds.gaps([0.5], [0.1], 1.5), "rate = 1.5"),
    (lambda: bounds.regret([0.5], [0.1], True, 10), "rate = True"),
    (lambda: bounds.regret([0.5], [0.1], 0.5, 0), "horizon = 0"),
    (lambda: bounds.regret([0.5], [0.1], 0.5, 10.0), "whole number"),
    (lambda: bounds.wrong_bases_repaired([np.nan], [0.1], 0.5, 10), "reward_means"),
    (lambda: bounds.table_1([0.5], [0.1], 0.5, 0), "horizon = 0"),
    (lambda: bounds.informative_from([0, 0], [0.1, 0.9], 0.5), "must allow a reward"),
    (lambda: bounds.kappa([0.5], [0.1, 0.3]), "cost_means"),
    (lambda: bounds.omega(-0.1, 0.5), "gap"),
    (lambda: bounds.omega_interval(0.1, 2), "rate = 2"),
    (lambda: bounds.pair([0.1, 0.2, 0.3], [0.1, 0.2, 0.3], 0.5), "two in the last axis"),
    (lambda: bounds.slack_law(0.3, 0.8, 0.5, 0.1, [0.0]), "cost_high"),
    (lambda: bounds.slack_law(0.3, 0.3, 0.5, 0.1, [0.0]), "above cost_low"),
    (lambda: bounds.slack_law(0.8, 0.3, pi / 10, 0.1, [0.0]), "denominator"),
    (lambda: bounds.slack_law(0.8, 0.3, 0.5, 0.6, [0.0]), "omega = 0.6"),
    (lambda: bounds.slack_law(0.8, 0.3, 0.5, 0.1, []), "held_back"),
    (lambda: bounds.slack_law(0.8, 0.3, 0.5, 0.1, [np.nan]), "held_back"),
    (lambda: bounds.slack_law(0.8, 0.3, 0.5, 0.1, [0.0], [1.5]), r"forced\[0\] = 1.5: .*or NaN"),
    (lambda: bounds.slack_law(0.8, 0.3, 0.5, 0.1, [0.0], [0.0, 1.0]), r"forced = .* \(1,\)"),
    (lambda: bounds.two_accounts([0.5], [0.1], 0.5, 10, margin=1.9), "margin = 1.9: must be a number, 2 or more"),
])
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
