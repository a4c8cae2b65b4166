"""IMED by hand, against 50 digits, and what its kernel relies on."""

import itertools
from math import exp, inf, log

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import FAMILIES, same
from test_kl_ucb import kl, least

import costbandits as cb
from costbandits.engine.compilation import compiled_for
from costbandits.engine.driver import Money, pull_many
from costbandits.engine.stacks import Stacks
from costbandits.engine.state import Arms
from costbandits.fast import imed as quick
from costbandits.policies import imed
from costbandits.policies.base import Problem

MOMENTS = {
    # b = 1, mean -1, variance 2: the points 1 and -2, of which 1 has 1/3 and would need 2/3. kl(1/3, 2/3) = log(2)/3.
    "two points": (1.0, 2.0, 1.0, log(2) / 3),
    "no variance": (1.0, 0.0, 1.0, log(2)),
    "ten times as large": (10.0, 200.0, 10.0, log(2) / 3),
    "nothing above -1": (1.0, 2.0, -1.0, inf), "nothing above 0": (1.0, 0.0, 0.0, inf),
    # A reward of 1/2 in the mean at a price of 4/5: kl(1/2, 4/5) = log(5/4).
    "a coin at a known cost": (0.3, 0.25, 0.2, log(5 / 4)),
}


@pytest.mark.parametrize("case", MOMENTS)
def test_divergence_of_moments_by_hand(case):
    *given_, expected = MOMENTS[case]
    assert imed.of_moments(*given_) == pytest.approx(expected, rel=1e-14)


COINS = {       # as in test_kl_ucb.py, where ratio and divergence change places
    "inside": (0.5, 0.5, 9 / 5, 0.5 * log(75 / 64)), "no reward": (0.0, 0.5, 3 / 5, log(5 / 4) + 0.5 * log(9 / 8)),
    "full reward": (1.0, 0.5, 5.0, log(5 / 4)), "full cost, little": (0.0, 1.0, 1 / 4, log(4 / 3)),
    "full cost, border": (0.0, 1.0, 1 / 2, log(2)), "full cost, much": (0.0, 1.0, exp(3) / 2, log(2) + 3),
    "full cost and reward": (1.0, 1.0, exp(2), 2.0),
    "next to full reward": (1.0 - 2**-53, 0.5, 5.0, log(5 / 4)),
}


@pytest.mark.parametrize("case", COINS)
def test_divergence_of_coins_by_hand(case):
    *given_, expected = COINS[case]
    assert imed.of_coins(*given_) == pytest.approx(expected, rel=1e-14)


def one_arm(rewards, costs):
    """What is known of one arm after these outcomes, and the sum of their products."""
    x, y = np.array(rewards, float), np.array(costs, float)
    return Arms(np.array([x.size]), *(np.array([part.sum()]) for part in (x, y, x * x, y * y))), np.array([x @ y])


def divergence(rewards, costs, rho, policy, known=False):
    arms, products = one_arm(rewards, costs)
    return imed.least_divergence(0, rho, arms, known, policy.p, products)


def test_the_variance_is_that_of_the_dependence():
    # Rewards 0, 0, 4 and costs 1, 1, 4 have the variances 32/9 and 2, and X = R - 2 C is -2, -2, -4.
    of = {name: divergence([0, 0, 4], [1, 1, 4], 2.0, cb.MomentIMED(1.0, 4.0, name)) for name in imed.DEPENDENCE}
    for name, variance in {"independent": 32 / 9 + 8, "any": (32**0.5 / 3 + 2 * 2**0.5)**2, "sample": 8 / 9}.items():
        assert of[name] == pytest.approx(imed.of_moments(8 / 3, variance, 4.0), rel=1e-14)


def test_known_costs_lower_the_top():
    # Rewards 0 and 1 at a cost of 1/2 and a ratio of 8/5: kl(1/2, 4/5) = log(5/4); none is worth 1 or more.
    for policy in (cb.IMED(), cb.MomentIMED()):
        assert divergence([0, 1], [0.5, 0.5], 1.6, policy, known=True) == pytest.approx(log(5 / 4))
        assert divergence([0, 1], [0.5, 0.5], 2.0, policy, known=True) == inf
        assert divergence([0, 1], [0.5, 0.5], 1.0, policy, known=True) == 0.0


@pytest.mark.parametrize("policy", [cb.MomentIMED(), cb.MomentIMED(dependence="sample")], ids=repr)
@pytest.mark.parametrize("fast", [True, False])
def test_a_run_by_hand(policy, fast):
    # Rewards of 4/5 and 1/2 for sure, at known costs of 1/2: D = log((1 - 1/2) / (1 - 4/5)) = log 5/2. After its first
    # pull the second is pulled as soon as the first was pulled oftener than n (5/2)^n times, n = 1, 2, 3: at 3, 13, 47.
    bandit = cb.Bandit([cb.Constant(0.8), cb.Constant(0.5)], [cb.Constant(0.5)] * 2)
    runs = cb.simulate({"p": policy}, bandit, cb.Horizon(60), checkpoints=np.arange(1, 61) / 60, shuffle=False,
                       fast=fast)
    assert (np.flatnonzero(np.diff(runs.pulls[0, 0, :, 1])) + 2).tolist() == [2, 3 + 2, 13 + 3, 47 + 4]


def test_costs_may_be_next_to_nothing():
    tiny = cb.Bandit([cb.Beta(1, 1), cb.Bernoulli(0.5), cb.Constant(0.5)],
                     [cb.Beta(0.01, 1), cb.Constant(1e-250), cb.Discrete([1e-200, 1.0], [0.5, 0.5])])
    for policy in (cb.IMED(), cb.MomentIMED(), cb.MomentIMED(dependence="any")):
        quick, slow = (cb.simulate({"p": policy}, tiny, cb.Horizon(500), 20, fast=fast) for fast in (True, False))
        assert same(quick, slow)
    # Rewards 1 and 0 at a ratio of 1e150: X is 0 or -2, of mean -1 and variance 1.
    found = divergence([1, 0], [1e-150, 2e-150], 1e150, cb.MomentIMED(dependence="sample"))
    assert found == pytest.approx(imed.of_moments(1.0, 1.0, 1.0))


def test_scale_multiplies_the_logarithm():
    arms, products = one_arm([0.5, 0.5], [1.0, 1.0])
    policy = cb.MomentIMED(0.25)
    assert imed.index(0, 1.0, arms, False, policy.p, products) == pytest.approx(2 * log(1.5) + log(2) / 4)
    whole, quarter = (imed.index(0, 1.0, one_arm([0, 1], [1, 1])[0], False, cb.IMED(scale).p, products)
                      for scale in (1.0, 0.25))
    assert whole - quarter == pytest.approx(0.75 * log(2))


def test_ties_and_free_arms():
    same = cb.Bandit([cb.Constant(0.5)] * 3, [cb.Constant(0.5)] * 3)
    free = cb.Bandit([cb.Constant(0.5)] * 3, [cb.Constant(0.5), cb.Constant(0.0), cb.Constant(0.0)])
    seldom = cb.Bandit([cb.Constant(0.5)] * 3, [cb.Bernoulli(0.5), cb.Bernoulli(1e-9), cb.Constant(0.0)])
    for policy in (cb.IMED(), cb.MomentIMED()):
        for fast in (True, False):
            pulls = [cb.simulate({"p": policy}, bandit, cb.Horizon(8), shuffle=False, fast=fast).pulls[0, 0, -1]
                     for bandit in (same, free, seldom)]
            assert [one.tolist() for one in pulls[:2]] == [[3, 3, 2], [0, 8, 0]] and pulls[2][2] == 1


def test_a_known_cost_may_rule_an_arm_out():
    # A reward of 1/2 at 1/4, so a ratio of 2: what costs 1/2 cannot be better, what costs 0.49 may be.
    for last, pulls in ((0.5, 0), (0.49, 1)):
        bandit = cb.Bandit([cb.Constant(0.0), cb.Constant(0.5)], [cb.Constant(last), cb.Constant(0.25)])
        for fast in (True, False):
            runs = cb.simulate({"IMED": cb.IMED(), "moments": cb.MomentIMED()}, bandit, cb.Budget(9), fast=fast)
            assert (runs.pulls[:, 0, -1, 0] == pulls).all()


def test_a_hard_budget_is_spent_on_what_it_affords():
    bandit = cb.Bandit([cb.Bernoulli(0.5), cb.Bernoulli(0.9)], [cb.Constant(0.1), cb.Constant(1.0)])
    for policy, fast in itertools.product((cb.IMED(), cb.MomentIMED()), (True, False)):
        for budget, pulls in ((0.95, 9), (0.3, 3)):         # as floats three times 0.1 are more than 0.3
            runs = cb.simulate({"p": policy}, bandit, cb.HardBudget(budget), 3, fast=fast)
            assert (runs.pulls[0, :, -1] == [pulls, 0]).all()


# ---- against 50 digits, and what the kernel relies on ------------------------------------------------

outcomes = st.lists(st.tuples(st.floats(0, 1), st.floats(1e-3, 1)), min_size=1, max_size=6)
positive = st.floats(-12, 3).map(lambda power: 10.0**power)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(positive, positive, positive)
def test_the_divergence_of_moments_is_exact_but_for_rounding(u, variance, top):
    with mpmath.workdps(80):
        m, v, b = -mpmath.mpf(u), mpmath.mpf(variance), mpmath.mpf(top)
        a = m - v / (b - m)
        expected = kl(v / (v + (b - m)**2), -a / (b - a))
    # Of a mean far below, the distance to the top is all that is known of the top.
    assert abs(imed.of_moments(u, variance, top) / expected - 1) < 1e-14 * max(u / top, 1)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(1, 10**9), st.floats(0, 1), st.floats(0, 1), st.floats(-6, 6))
def test_the_divergence_of_coins_is_exact_but_for_rounding(n, r, c, power):
    won, paid = round(n * r), max(round(n * c), 1)
    r, c = won / n, paid / n
    rho = (max(won, 1) / paid) * (1 + 10.0**power)
    with mpmath.workdps(60):
        expected = least(*map(mpmath.mpf, (r, c, rho)))
    assert abs(imed.of_coins(r, c, rho) / expected - 1) < 1e-9


@settings(max_examples=1000, deadline=None, derandomize=True)
@given(outcomes, st.floats(1e-3, 50), st.floats(1, 2), st.booleans(),
       st.sampled_from([cb.IMED(), cb.MomentIMED(), cb.MomentIMED(dependence="any"), cb.MomentIMED(max_reward=20.0)]))
def test_a_larger_ratio_is_further_away(pairs, rho, more, known, policy):
    rewards, costs = zip(*pairs, strict=True)
    costs = costs[:1] * len(costs) if known else costs
    near, far = (divergence(rewards, costs, ratio, policy, known) for ratio in (rho, rho * more))
    assert near <= far * (1 + 1e-12) + 1e-14


@pytest.mark.slow
def test_longer_runs_are_played_by_blocks():
    bandit = cb.Bandit([cb.Bernoulli(p) for p in (0.5, 0.4, 0.9)], [cb.Bernoulli(p) for p in (0.3, 0.3, 0.8)])
    runs = cb.simulate({"IMED": cb.IMED(), "moments": cb.MomentIMED()}, bandit, cb.Budget(1e11))
    assert (runs.rounds[:, 0, -1] > 3e11).all() and (runs.pulls[:, 0, -1].argmax(axis=1) == 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("policy", [cb.IMED(), cb.IMED(0.25), cb.MomentIMED(), cb.MomentIMED(0.25, 40.0, "any")],
                         ids=repr)
def test_the_kernel_pulls_what_the_definition_pulls(policy):
    rng = np.random.default_rng(3)
    known = cb.Bandit([cb.Bernoulli(p) for p in rng.random(6)], [cb.Constant(c) for c in rng.random(6)])
    alike = cb.Bandit([cb.Bernoulli(0.5)] * 5, [cb.Bernoulli(0.5)] * 5)
    free = cb.Bandit([cb.Bernoulli(0.5)] * 3, [cb.Constant(0.0), cb.Bernoulli(0.01), cb.Bernoulli(0.001)])
    cases = [(make(K), lambda bandit: cb.Budget(3000 * bandit.cost_means.min()))
             for make in FAMILIES.values() for K in (1, 3, 40)]
    cases += [(known, stop) for stop in (cb.HardBudget(300.3), cb.Horizon(2000), cb.Budget(200))]
    for bandits, stop in [*cases, (alike, cb.Budget(2000)), (free, cb.Horizon(2000))]:
        quick, slow = (cb.simulate({"p": policy}, bandits, stop, 3, seed=2, checkpoints=40, fast=fast)
                       for fast in (True, False))
        assert same(quick, slow)


@compiled_for()
def first_pulls(m, arms, outcomes):
    pull_many(0, m, Money(0.0, 0.0, inf), arms, outcomes)


def test_a_block_is_pulled_only_if_the_ratio_holds_though_all_its_costs_come_first():
    """An arm that was lucky: it has cost a ninth of what its law says, so blocks cost nine times what they should."""
    bandit, policy = cb.Bandit([cb.Bernoulli(0.5)], [cb.Bernoulli(0.9)]), cb.MomentIMED()
    outcomes, arms = Stacks(bandit, 0, 0, [0]).outcomes(), Arms.of(1)
    first_pulls(1024, arms, outcomes)
    before = arms.cost[0]
    arms.reward[0], arms.cost[0] = 600.0, 100.0
    own = quick.new_bounds(policy.told(Problem.of(bandit, cb.Budget(1e6), [0])), policy.p, 1)
    own.race.level = 2.0
    quick.leap(0, 2**20, Money(0.0, 0.0, inf), own, arms, outcomes)
    assert arms.n[0] > 1024 and 600.0 >= 2.0 * (100.0 + arms.cost[0] - before)      # sums are those of the tree again


@pytest.mark.parametrize(("make", "message"), [
    (lambda: cb.MomentIMED(0), "scale = 0: must be a finite number above 0"),
    (lambda: cb.IMED(-1), "scale = -1: must be a finite number above 0"),
    (lambda: cb.MomentIMED(max_reward=inf), "max_reward = inf: must be a finite number above 0"),
    (lambda: cb.MomentIMED(dependence="no"), r"dependence = 'no': must be one of \('independent', 'any', 'sample'\)")])
def test_what_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(("policy", "bandit", "stop", "message"), [
    (cb.MomentIMED(max_reward=2.0), cb.Bandit([cb.Constant(3)], [cb.Constant(1)]), cb.Budget(9),
     r"reward support.*\(0\.0, 2\.0\).*, or give it max_reward=that value"),
    (cb.MomentIMED(), cb.Bandit([cb.Constant(1)], [cb.Constant(-1)]), cb.Horizon(9), r"cost support.*\(0\.0, inf\)"),
    (cb.IMED(), cb.Bandit([cb.Constant(1)], [cb.Constant(2)]), cb.Budget(9), r"cost support.*\(0\.0, 1\.0\)"),
    (cb.MomentIMED(), cb.Bandit([cb.Constant(1)], [cb.Constant(1)]), cb.AnytimeBudget(0.5, 9), "anytime")])
def test_what_cannot_be_played(policy, bandit, stop, message):
    with pytest.raises(ValueError, match=message):
        cb.simulate({"p": policy}, bandit, stop)
