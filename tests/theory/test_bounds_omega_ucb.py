"""Theorems 4 to 6 of the omega-UCB paper as numbers, and the exact quantities that judge them."""

from math import exp, floor, inf, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

import costbandits as cb
from costbandits.theory.bounds import omega_ucb as bounds


def bernoulli(rewards, costs):
    return cb.Bandit([cb.Bernoulli(p) for p in rewards], [cb.Bernoulli(p) for p in costs])


PLAIN = bernoulli([0.8, 0.2], [0.4, 0.6])          # ratios 2 and 1/3, delta = 1/2
DEAR = bernoulli([1.0, 0.96], [0.005, 0.016])      # a best arm whose first pull can look 200 times too dear
unit = st.floats(0.01, 0.99)
rhos = st.sampled_from([1 / 64, 0.25, 1.0, 2.0])


# ---- alpha and xi -----------------------------------------------------------------------------------

def test_alpha_by_hand():
    assert bounds.alpha(1, 0.25) == 1.0
    assert bounds.alpha(16, 0.25) == pytest.approx(1 - sqrt(0.5), rel=1e-15)
    # For tiny t^-rho it is half of it; the printed form would return 0.
    assert bounds.alpha(1e20, 1.0) == pytest.approx(0.5e-20, rel=1e-12)


def test_xi_by_hand():
    assert bounds.xi(5, 5, 1.0) == 0.0
    # K = 1, tau = 2, rho = 1: alpha(2) twice.
    assert bounds.xi(2, 1, 1.0) == pytest.approx(2 - sqrt(2), rel=1e-15)


@pytest.mark.parametrize("rho", [1 / 64, 0.25, 1.0, 2.0, 5.0])
@pytest.mark.parametrize(("K", "tau"), [(1, 7), (2, 1000), (2, 1001), (10, 2718), (1500, 1501), (100, 200_000)])
def test_xi_is_the_sum_it_stands_for(rho, K, tau):
    u = np.arange(K + 1, tau + 1, dtype=np.longdouble) ** np.longdouble(-rho)
    terms = u / (1 + np.sqrt(1 - u))
    assert bounds.xi(tau, K, rho) == pytest.approx(float((tau - K) * terms[-1] + terms.sum()), rel=1e-12)


@given(st.integers(1, 50), st.integers(0, 10**12), rhos)
def test_xi_lies_below_its_bound_and_grows(K, more, rho):
    tau = K + more
    assert 0 <= bounds.xi(tau, K, rho) <= bounds.xi_bound(tau, K, rho) * (1 + 1e-12)
    # Each further round adds alpha(tau + 1); what it takes from the first term is smaller.
    if rho <= 1:
        assert bounds.xi(tau, K, rho) <= bounds.xi(tau + 1000, K, rho) * (1 + 1e-12)


@pytest.mark.parametrize(("rho", "scale", "limit"), [(0.25, lambda t: t**0.75, 7 / 6), (0.5, lambda t: t**0.5, 1.5),
                                                     (1.0, log, 0.5)])
def test_xi_grows_as_theorem_6_says(rho, scale, limit):
    # (2 - rho) / (2 (1 - rho)) tau^(1 - rho), or half a logarithm; a decade's increments are free of the constant.
    tau = 10**40
    slope = (bounds.xi(10 * tau, 2, rho) - bounds.xi(tau, 2, rho)) / (scale(10.0 * tau) - scale(float(tau)))
    assert slope == pytest.approx(limit, rel=1e-9)


def test_xi_converges_above_rho_1():
    assert bounds.xi(10**12, 2, 2.0) == pytest.approx(bounds.xi(10**6, 2, 2.0), rel=1e-6)
    assert [bounds.asymptotic_exponent(rho) for rho in (0.25, 1, 3)] == [0.75, 0, 0]


# ---- gap and plays ----------------------------------------------------------------------------------

@given(unit, unit, st.floats(0, 100))
def test_proportional_gap_closes_the_gap(reward, cost, best):
    delta = bounds.proportional_gap(reward, cost, best)
    assert (reward + delta * (1 - reward)) / (cost - delta * cost) == pytest.approx(best, rel=1e-9, abs=1e-9)
    difference = best - reward / cost
    assert delta == pytest.approx(difference / (difference + 1 / cost), rel=1e-9, abs=1e-12)


def test_minimum_plays_by_hand():
    # delta = 1/2; odds 1/4 and 2/3: 8 rho log(tau) / (1/4) * 2/3.
    assert bounds.proportional_gap(0.2, 0.6, 2.0) == pytest.approx(0.5)
    expected = 8 * 0.25 * log(1000) * 4 * 2 / 3
    assert bounds.minimum_plays(0.2, 0.6, 2.0, 1000, 0.25) == pytest.approx(expected)
    # Larger odds of 2/3 exceed 1 - delta = 1/2, so the correction changes nothing.
    assert bounds.minimum_plays_corrected(0.2, 0.6, 2.0, 1000, 0.25) == pytest.approx(expected)
    # The reward's odds of 4 decide, delta being 1/2 again.
    assert bounds.minimum_plays(0.8, 0.9, 2.0, 1000, 0.25) == pytest.approx(8 * 0.25 * log(1000) * 4 * 4)


def test_minimum_plays_of_an_arm_that_never_pays_and_always_charges():
    delta = 0.5 / 1.5
    assert bounds.minimum_plays(0, 1, 0.5, 1000, 1.0) == 0
    # Odds 0: the printed factor 0 becomes (1 - delta) delta.
    assert bounds.minimum_plays_corrected(0, 1, 0.5, 1000, 1.0) == pytest.approx(8 * log(1000) * (1 - delta) / delta)


def test_minimum_plays_without_a_finite_value():
    assert bounds.minimum_plays(1, 0.5, 3.0, 1000, 1.0) == inf            # mu_r = 1
    assert bounds.minimum_plays_corrected(1, 0.5, 3.0, 1000, 1.0) == inf
    np.testing.assert_array_equal(bounds.minimum_plays([0.5, 0.6], 0.5, 1.0, 1000, 1.0), inf)   # not below the best


@given(unit, unit, st.floats(0.01, 50), rhos)
def test_the_correction_never_lowers_the_plays_and_matters_at_small_odds_only(reward, cost, above, rho):
    arm = (reward, cost, reward / cost + above, 5000, rho)
    printed, corrected = bounds.minimum_plays(*arm), bounds.minimum_plays_corrected(*arm)
    assert corrected >= printed
    odds, delta = max(reward / (1 - reward), (1 - cost) / cost), bounds.proportional_gap(*arm[:3])
    if abs(odds + delta - 1) > 1e-9:
        assert (corrected > printed) == (odds < 1 - delta)


def test_suboptimal_plays_puts_the_parts_together():
    plays = bounds.suboptimal_plays(PLAIN, 1000, 0.25)
    expected = 1 + bounds.xi(1000, 2, 0.25) + bounds.minimum_plays(0.2, 0.6, 2.0, 1000, 0.25)
    np.testing.assert_allclose(plays, [inf, expected], rtol=1e-12)


# ---- Theorem 5 --------------------------------------------------------------------------------------

def exact_excess(budget, mu):
    """E max(T_B - tau_B, 0) of one Bernoulli(mu) arm: sum over t of P(fewer than ceil(B) charges in t pulls)."""
    tau = floor(2 * budget / mu)
    t = np.arange(tau, tau + int(400 / mu))
    return binom.cdf(np.ceil(budget) - 1, t, mu).sum()


def test_excess_rounds_bounds_the_exact_excess():
    rng, closest = np.random.default_rng(1), 0.0
    for _ in range(300):
        mu = rng.uniform(0.02, 1)
        budget = mu * 10 ** rng.uniform(0, 3)
        exact, bound = exact_excess(budget, mu), bounds.excess_rounds(budget, mu)
        assert exact <= bound * (1 + 1e-9)
        closest = max(closest, exact / bound if bound else 0.0)
    assert closest > 0.2                               # a bound, not a blanket


@given(st.floats(0.01, 1), st.floats(1, 1000))
def test_excess_rounds_is_inside_the_papers_order(mu, budget):
    # The multiple is largest, 2.48, at the smallest budget and just above mu = 2/3, where tau_B jumps.
    assert bounds.excess_rounds(budget, mu) <= 2.5 * budget / mu * exp(-budget * mu / 2)


def test_regret_term_by_term():
    bound = bounds.regret(PLAIN, 100, 0.25)
    assert bound.tau == 500 and bound.last == 4.0
    np.testing.assert_allclose(bound.gaps, [0, 5 / 3])
    plays = bounds.suboptimal_plays(PLAIN, 500, 0.25)[1]
    assert bound.total == pytest.approx(5 / 3 * (plays + bounds.excess_rounds(100, 0.4)) + 4)


def test_a_single_arm_has_no_suboptimal_plays():
    assert bounds.regret(bernoulli([0.5], [0.5]), 10, 1.0).total == 2.0


def test_regret_is_infinite_where_a_worse_arm_always_pays():
    assert bounds.regret(bernoulli([1, 1], [0.2, 0.4]), 100, 1.0).total == inf


# ---- exact probabilities ----------------------------------------------------------------------------

def test_exceedance_by_enumeration():
    reward, cost, ratio, n, t, rho = 0.3, 0.6, 1.7, 5, 40, 0.25
    rule, total = cb.OmegaUCB.rule, 0.0
    for i in range(n + 1):
        for j in range(n + 1):
            if rule(t, n, float(i), float(j), 0.0, 0.0, 0.0, np.array([rho])) >= ratio:
                total += binom.pmf(i, n, reward) * binom.pmf(j, n, cost)
    assert bounds.exceedance(reward, cost, ratio, n, t, rho) == pytest.approx(total, rel=1e-12)


def test_exceedance_without_chance():
    # Never pays, always charges: the index is 2 rho log(t) / n exactly.
    assert bounds.exceedance(0, 1, 0.5, 10, 13, 1.0) == 1.0               # 2 log(13) / 10 = 0.513
    assert bounds.exceedance(0, 1, 0.5, 10, 12, 1.0) == 0.0               # 2 log(12) / 10 = 0.497


def test_lemma_1_fails_just_where_its_widths_do():
    cases = bounds.lemma_cases(np.random.default_rng(2), 300, longest=500)
    assert len(cases) == 300 and (cases.printed_n <= cases.corrected_n).all()
    assert (cases.printed[~cases["sound"]] > 1).any()
    assert (cases.printed[cases["sound"]] <= 1).all() and (cases.corrected <= 1).all()


# ---- the lower bound --------------------------------------------------------------------------------

def test_locked_plays_by_hand():
    # tau = e^10 rounded down, rho = 1: reach just below 20, so from level 21 on one pull locks; below 21 two or more.
    tau = 22026
    values = []
    for h in range(2, 60):
        s = 1 + floor(2 * log(tau) / (h - 1))
        values.append((0.96 - 0.016 * h) / (0.96 * 0.984) * 0.005**s * (tau - s))
    assert bounds.locked_plays(DEAR, tau, 1.0) == pytest.approx(max(values), rel=1e-12)
    assert bounds.locked_exponent(DEAR, 1.0) == pytest.approx(1 - 2 * log(200) / 58)


def test_locked_plays_contradict_theorem_4():
    assert bounds.locked_plays(DEAR, 10**8, 1.0) > 5 * bounds.suboptimal_plays(DEAR, 10**8, 1.0)[1]


def test_locked_plays_lie_below_the_measured_ones():
    bandit, rho = bernoulli([1.0, 0.9], [0.1, 0.12]), 0.25
    runs = cb.simulate({"omega": cb.OmegaUCB(rho)}, bandit, cb.Budget(500), replications=200, seed=3)
    tau = int(runs.rounds.min())
    # Fewest rounds of any run: what was pulled by then can only be less than what was pulled at the end.
    assert bounds.locked_plays(bandit, tau, rho) <= runs.pulls[0, :, -1, 1].mean()
    # The lock itself. Of 2,000 runs with another seed 9.7 % were locked, nearly all whose first pull cost 1
    # (probability 0.1): fewer than 4 of 200 have a probability below 1e-5.
    assert (runs.pulls[0, :, -1, 0] <= 3).sum() >= 4


def test_an_arm_of_ratio_2_locks_nobody_out():
    assert bounds.bernoulli_rivals(bernoulli([1.0, 0.5, 0.75], [0.125, 0.25, 0.25])) == (0.125, [(0.75, 0.25, 3.0)])


def test_locked_plays_where_nothing_follows():
    for bandit in (PLAIN, bernoulli([0.5, 0.5], [0.1, 0.1]), bernoulli([1.0], [0.1])):
        assert bounds.locked_plays(bandit, 10**6, 1.0) == bounds.locked_exponent(bandit, 1.0) == 0


# ---- bad input --------------------------------------------------------------------------------------

BETA = cb.Bandit([cb.Beta(1, 2), cb.Beta(2, 1)], [cb.Beta(1, 2), cb.Beta(2, 1)])


@pytest.mark.parametrize(("call", "message"), [
    (lambda: bounds.alpha(0.5, 1), "t = 0.5: must be finite, 1 or more"),
    (lambda: bounds.alpha("x", 1), "t = 'x'"),
    (lambda: bounds.alpha(2, 0), "rho = 0: must be a finite number above 0"),
    (lambda: bounds.xi(3, 5, 1.0), "tau = 3: must be a whole number, 5 or more"),
    (lambda: bounds.xi(10.5, 5, 1.0), "tau = 10.5"),
    (lambda: bounds.xi(10, 0, 1.0), "K = 0"),
    (lambda: bounds.xi_bound(10, 2, float("nan")), "rho = nan"),
    (lambda: bounds.asymptotic_exponent(-1), "rho = -1"),
    (lambda: bounds.proportional_gap(1.5, 0.5, 2), r"reward_mean = 1.5: must be in \[0, 1\]"),
    (lambda: bounds.proportional_gap(0.5, 0, 2), r"cost_mean = 0.0: must be in \(0, 1\]"),
    (lambda: bounds.proportional_gap(0.5, [0.5, float("nan")], 2), "cost_mean"),
    (lambda: bounds.proportional_gap(0.5, 0.5, inf), "best_ratio = inf"),
    (lambda: bounds.minimum_plays(0.5, 0.5, 2, 0, 1.0), "tau = 0"),
    (lambda: bounds.minimum_plays_corrected(0.5, 0.5, 2, 10, True), "rho = True"),
    (lambda: bounds.suboptimal_plays("bandit", 10, 1.0), "bandit = 'bandit': must be a Bandit"),
    (lambda: bounds.suboptimal_plays(cb.Bandit([cb.Constant(2)], [cb.Constant(1)]), 10, 1.0), "reward_mean"),
    (lambda: bounds.excess_rounds(0.1, 0.5), "budget = 0.1: must be finite and at least min_cost = 0.5"),
    (lambda: bounds.excess_rounds(10, 1.5), "min_cost = 1.5"),
    (lambda: bounds.regret(PLAIN, 0.3, 1.0), "budget = 0.3"),
    (lambda: bounds.regret(PLAIN, inf, 1.0), "budget = inf"),
    (lambda: bounds.exceedance(0.5, 0.5, 0, 10, 10, 1.0), "ratio = 0"),
    (lambda: bounds.exceedance(0.5, 0.5, 1, 0, 10, 1.0), "n = 0"),
    (lambda: bounds.exceedance(0.5, 0.5, 1, 10, 10, -1.0), "rho = -1.0"),
    (lambda: bounds.lemma_cases(np.random.default_rng(0), 0), "cases = 0"),
    (lambda: bounds.locked_plays(BETA, 10, 1.0), "must have Bernoulli rewards and costs"),
    (lambda: bounds.locked_plays(PLAIN, 1, 1.0), "tau = 1"),
    (lambda: bounds.locked_exponent(PLAIN, 0), "rho = 0"),
])
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
