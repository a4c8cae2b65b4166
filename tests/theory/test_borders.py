"""At the borders of what they allow, bounds are what their limits are, or are refused in a sentence; none is NaN."""

from decimal import Decimal
from math import inf, log

import mpmath
import numpy as np
import pytest

import costbandits as cb

B = cb.bounds
# But for rounding.
TIED = cb.Bandit([cb.Bernoulli(0.7), cb.Bernoulli(0.07)], [cb.Bernoulli(0.1), cb.Bernoulli(0.01)])


@pytest.mark.parametrize("p", [0.49, 1e-3, 0.999])
@pytest.mark.parametrize("away", [0.3, 0.01, 1e-5, 1e-9, 1e-13])
def test_a_divergence_keeps_its_digits_where_laws_are_close(p, away):
    for q in (p - away * p, p + away * (1 - p)):
        with mpmath.workdps(50):
            a, b = mpmath.mpf(p), mpmath.mpf(q)
            exact = a * mpmath.log(a / b) + (1 - a) * mpmath.log((1 - a) / (1 - b))
        assert B.kl_ucb.divergence(p, q) == pytest.approx(float(exact), rel=1e-13 + 1e-15 / away, abs=0)
        assert B.cost_subsidy.divergence(p, q) == B.kl_ucb.divergence(p, q)
    assert B.kl_ucb.divergence(p, p) == 0


def test_rates_of_arms_next_to_the_best():
    for gap in (1e-7, 1e-9):
        bandit = cb.Bandit([cb.Bernoulli(0.5), cb.Bernoulli(0.5 - gap)], [cb.Bernoulli(0.5)] * 2)
        assert B.kl_ucb.rates(bandit)[1] * gap**2 == pytest.approx(1.0, rel=1e-5)       # two normal laws in the limit
        assert 1 < B.kl_ucb.rates(bandit, box=True)[1] * gap**2 < 2 + 1e-5
        assert np.isfinite(B.kl_ucb.pulls(bandit, 1000)[1])
        assert B.kube.theorem_10([0.5, 0.5 - gap], [1, 1], 100) > 0
    assert B.kl_ucb.low_rounds(0.5, 0.17, 1.58) > 0


def test_ties_but_for_rounding_are_ties():
    assert B.omega_ucb.regret(TIED, 100, 1.0).total == pytest.approx(2 * 7)
    assert B.omega_ucb.locked_plays(TIED, 10**6, 0.25) == B.omega_ucb.locked_exponent(TIED, 0.25) == 0
    assert B.kl_ucb.locked_plays(TIED, 10**6, 0.25) == 0
    assert np.isinf(B.omega_ucb.suboptimal_plays(TIED, 1000, 0.25)).all()
    at = [B.suak.two_accounts([0.75, 0.5], [cost, 0.25], 0.3, 1000).total for cost in (0.1 + 0.2, 0.3)]
    assert at == [inf, inf] and B.suak.regret([0.75, 0.5], [0.1 + 0.2, 0.25], 0.3, 1000).total == inf
    assert (B.suak.table_1([0.75, 0.5], [0.1 + 0.2, 0.25], 0.3, 1000).value.to_numpy()
            == B.suak.table_1([0.75, 0.5], [0.3, 0.25], 0.3, 1000).value.to_numpy()).all()


def test_kubes_law_in_decimals_is_that_in_whole_numbers():
    tenths, whole = B.kube.TwoArms((0.1, 0.1), 1.0), B.kube.TwoArms((1, 1), 10)
    assert tenths.ends((0.9, 0.1)).equals(whole.ends((0.9, 0.1)))
    assert tenths.regret((0.9, 0.1)) == whole.regret((0.9, 0.1))
    assert B.kube.TwoArms((0.1, 0.2), 0.3).ends((0.5, 0.5)).pulls_1.tolist() == [1]


def test_limits():
    assert B.omega_ucb.minimum_plays(1.0, 0.5, 3.0, tau=1, rho=1.0) == inf
    assert B.omega_ucb.minimum_plays_corrected(1.0, 0.5, 3.0, tau=1, rho=1.0) == inf
    assert B.omega_ucb.proportional_gap(1.0, 1.0, 0) == -inf
    assert B.omega_ucb.regret(cb.Bandit([cb.Bernoulli(0.5)] * 3, [cb.Constant(0.7)] * 3), 0.7 * 3 / 2, 1.0).tau == 3
    assert B.budget_ucb.tail(1e160, 0.5) == 0
    assert B.budget_ucb.informative_from(lambda budget: budget - 10, 2.0) == 2
    assert B.imed.rare_events(-1, 0, 1) == 1 and B.imed.moment_divergence(-1, 1e-310, 1) == pytest.approx(log(2))
    assert np.isfinite(B.suak.table_1([0.5], [0.25], 0.5, 1000).value[:2]).all()
    found = cb.coverage.ratio_bounds(0.5, 0.5, 100, delta=1e-17)["ω-UCB"]
    assert 2 < found < cb.coverage.ratio_bounds(0.5, 0.5, 100, delta=1e-18)["ω-UCB"]
    assert cb.coverage.ratio_bounds(0.5, 0.5, 100, delta=Decimal("0.01")) \
        == cb.coverage.ratio_bounds(0.5, 0.5, 100, delta=0.01)


ONE = cb.Bandit([cb.Constant(0.5)], [cb.Constant(0.5)])


@pytest.mark.parametrize(("asked", "said"), [
    (lambda: B.kl_ucb.low_rounds(1.0, 0.5, 2.0), "level = 2.0: must be above 0 and below the ratio"),
    (lambda: B.kl_ucb.rates(cb.Bandit([cb.Bernoulli(0.5)] * 2, [cb.Constant(0), cb.Bernoulli(0.5)])), "cost_mean"),
    (lambda: B.kl_ucb.pulls(cb.Bandit([cb.Bernoulli(0.5)] * 2, [cb.Constant(0), cb.Bernoulli(0.5)]), 9), "cost_mean"),
    (lambda: B.kl_ucb.rates(cb.Bandit([cb.Constant(5), cb.Bernoulli(0.5)], [cb.Bernoulli(0.5)] * 2)), "reward_mean"),
    (lambda: B.budget_ucb.theorem_3_sharper(ONE, -5), "budget = -5"),
    (lambda: B.budget_ucb.bonus(0.5, 0.5, 0.6, 0), "min_cost = 0"),
    (lambda: B.budget_ucb.bonus("a", 0.5, 0.6, 0.1), "reward = 'a'"),
    (lambda: B.budget_ucb.radius(-1000, 2, 0.1, 1, 1, 1, 0.1), "t = -1000"),
    (lambda: B.budget_ucb.regret_identity(ONE, [3], np.nan, 2), "spent = nan"),
    (lambda: B.budget_ucb.regret_identity(ONE, [3], 1, "a"), "optimum = 'a'"),
    (lambda: B.imed.rare_events(2, 1, 1), "mean = .*must be below 0"),
    (lambda: B.suak.two_accounts([0, 0], [0.75, 0.25], 0.5, 1000), "must allow a reward"),
    (lambda: B.suak.table_1([0, 0], [0.75, 0.25], 0.5, 1000), "must allow a reward"),
    (lambda: B.suak.wrong_bases_repaired([0.75, 0.5], [0.75, 0.25], 0.5, 9, share=0), "share = 0"),
    (lambda: B.suak.wrong_bases_repaired([0.75, 0.5], [0.75, 0.25], 0.5, 9, width=-1), "width = -1"),
    (lambda: B.cost_subsidy.theorem_2_repaired(2, 100, 0.1, delta=-1), "delta = -1"),
    (lambda: B.cost_subsidy.theorem_2_repaired(2, 100, 0.0, delta=1), "alpha = 0.0: must be above 0"),
    (lambda: B.cost_subsidy.lemma_1(2, 100, "x"), "p = 'x'")])
def test_what_is_not_allowed_is_refused(asked, said):
    with pytest.raises(ValueError, match=said):
        asked()
