"""Indices against numbers worked out by hand, and what policies refuse."""

from dataclasses import replace
from math import inf, log, sqrt

import joblib
import numpy as np
import pytest
from reference import INDICES

import costbandits as cb
from costbandits.fast import greedy
from costbandits.policies import budget_ucb, classics, omega_ucb, pd_bwk, thompson
from costbandits.policies.base import Problem
from costbandits.policies.rules import by_sums


def value(rule, t, n, r, c, *params, constant=0.0, v_r=None, v_c=None):
    """The index of an arm with mean reward r and cost c and sample variances v (None: Bernoulli outcomes)."""
    squares = [n * m if v is None else (n - 1) * v + n * m * m for m, v in ((r, v_r), (c, v_c))]
    return by_sums(rule)(t, n, n * r, n * c, *squares, constant, np.array(params, float))


def rho(z2, t):
    """The rho for which z^2 = 2 rho log t is the number wanted."""
    return z2 / (2 * log(t))


OMEGA = {
    # w = z^2/n = 1: upper (1 + 1 + sqrt(1 + 1)) / 4 = 0.853553, lower (1/2 + 1 - sqrt(3/4 + 1)) / 4 = 0.0442811
    "inside": (8, 4, 0.5, 0.25, 4, 19.27580069602),
    # all rewards 1: upper 1; lower (2 - sqrt 2) / 4 = 0.146447
    "full reward": (8, 4, 1.0, 0.5, 4, 4 + 2 * sqrt(2)),
    # no rewards, all costs 1, w = 1: upper w / (1 + w) = 1/2, lower 1 / (1 + w) = 1/2
    "no reward": (8, 4, 0.0, 1.0, 4, 1.0),
    # n = 1, w = 4: upper 4/5, lower 1/5
    "one pull": (8, 1, 0.0, 1.0, 4, 4.0),
    "zero cost": (8, 4, 0.5, 0.0, 4, inf),
    "zero cost and reward": (8, 4, 0.0, 0.0, 4, inf),
    # m = 1e-9: lower 2 m^2 / (2 m + 1 + sqrt(1 + 4 m)) = 1e-18 / (1 + 2e-9); centre minus half-width is noise here
    "small cost": (8, 4, 0.5, 1e-9, 4, 0.85355339059327 / 1e-18 * (1 + 2e-9)),
}


@pytest.mark.parametrize("case", OMEGA)
def test_omega_by_hand(case):
    t, n, r, c, z2, expected = OMEGA[case]
    for rule in (omega_ucb.omega_ucb, omega_ucb.omega_star_ucb):        # n < 30: the same
        assert value(rule, t, n, r, c, rho(z2, t)) == pytest.approx(expected, rel=1e-8)


OMEGA_STAR = {
    # z^2 = n, so w = eta; r = c = 1/2. eta = 1: (2 + sqrt 2) / (2 - sqrt 2)
    "29 pulls": (29, 0.5, 0.5, 1 / 16, 1 / 16, 3 + 2 * sqrt(2)),
    # eta = (1/16) / (1/4) = 1/4: (5/4 + sqrt(5)/4) / (5/4 - sqrt(5)/4) = the golden ratio squared
    "30 pulls": (30, 0.5, 0.5, 1 / 16, 1 / 16, (3 + sqrt(5)) / 2),
    # Bernoulli outcomes: the sample variance exceeds 1/4 by 30/29, and eta stops at 1
    "capped": (30, 0.5, 0.5, None, None, 3 + 2 * sqrt(2)),
    # all outcomes alike: the intervals have no width
    "no variance": (30, 0.5, 0.25, 0.0, 0.0, 2.0),
    # each has its own eta: upper (5 + sqrt 5) / 10 as above, lower 1/2 without variance
    "two etas": (30, 0.5, 0.5, 1 / 16, 0.0, (5 + sqrt(5)) / 5),
    # means on the boundary: eta = 1, upper 1, lower 1 / (1 + w) = 1/2
    "boundary": (30, 1.0, 1.0, None, None, 2.0),
    "zero cost": (30, 0.5, 0.0, None, None, inf),
}


@pytest.mark.parametrize("case", OMEGA_STAR)
def test_omega_star_by_hand(case):
    n, r, c, v_r, v_c, expected = OMEGA_STAR[case]
    found = value(omega_ucb.omega_star_ucb, 8, n, r, c, rho(n, 8), v_r=v_r, v_c=v_c)
    assert found == pytest.approx(expected, rel=1e-12)


# At t = 17, n = 4: sqrt(log(16) / 4) = sqrt(log 2) = 0.832554611; times alpha = 2^-4, 2^-3, 2^-2 this is
# eps = 0.0520346632, 0.1040693264, 0.2081386527. Example 2 of the omega-UCB paper has eps = 0.0959699972.
RIVALS = {
    "m": (classics.m_ucb, (17, 4, 0.5, 0.25, 2**-4), 2.788542035254),               # 0.5520346632 / 0.1979653368
    "m, reward capped": (classics.m_ucb, (17, 4, 0.98, 0.25, 2**-4), 5.051389380338),         # 1 / 0.1979653368
    "m, cost below eps": (classics.m_ucb, (17, 4, 0.5, 0.05, 2**-4), inf),
    "m, Example 2, arm 1": (classics.m_ucb, (10000, 1000, 0.8, 0.2, 1.0), 8.612611490007),    # not 2.95, as printed
    "m, Example 2, arm 2": (classics.m_ucb, (10000, 1000, 0.1, 0.1, 1.0), 48.62775736525),    # 0.19597 / 0.0040300
    "m, log 1": (classics.m_ucb, (2, 1, 0.5, 0.25, 2**-4), 2.0),                    # t = 2: no width at all
    "m, log 1, zero cost": (classics.m_ucb, (2, 1, 0.0, 0.0, 2**-4), inf),
    "c": (classics.c_ucb, (17, 4, 0.5, 0.25, 2**-3), 2.416277305579),               # 2 + 0.1040693264 / 0.25
    "c, log 1": (classics.c_ucb, (2, 1, 0.5, 0.25, 2**-3), 2.0),
    "c, zero cost": (classics.c_ucb, (2, 1, 0.0, 0.0, 2**-3), inf),
    "i": (classics.i_ucb, (17, 4, 0.5, 0.25, 2**-2), 2.208138652789),               # 2 + 0.2081386527
    "i, log 1": (classics.i_ucb, (2, 1, 0.5, 0.25, 2**-2), 2.0),
    "i, zero cost": (classics.i_ucb, (17, 4, 0.0, 0.0, 2**-2), inf),
    # L = log(16/4) = 1.386294361: alpha = sqrt(L / (4 - L)) = 0.7282816893, index (1 + alpha) / (1 - alpha)
    "UCB-SC+": (classics.ucb_sc_plus, (16, 4, 0.5, 0.5), 6.360563942766),
    "UCB-SC+, 2 n c^2 = 0.5 < L": (classics.ucb_sc_plus, (16, 4, 0.5, 0.25), inf),
    # L = log 2 = 0.6931471806, r = 0: index = alpha = sqrt(L / (2 - L))
    "UCB-SC+, one pull": (classics.ucb_sc_plus, (2, 1, 0.0, 1.0), 0.7282816893445),
    # g = 1, n = 16: rad(1/4) = 1/8 + 1/16, rad(1/2) = sqrt(1/32) + 1/16
    "PD-BwK": (pd_bwk.pd_bwk, (99, 16, 0.25, 0.5), 0.4375 / (0.4375 - sqrt(1 / 32))),
    "PD-BwK, zero cost": (pd_bwk.pd_bwk, (99, 16, 0.25, 0.0), inf),
    # c = rad(c, n) at sqrt(c) = (1 + sqrt 5)/2 sqrt(g/n): 0.1636 here
    "PD-BwK, below": (pd_bwk.pd_bwk, (99, 16, 0.25, 0.163), inf),
    "UCB-SC+, zero cost": (classics.ucb_sc_plus, (16, 4, 0.5, 0.0), inf),
    # Bounds over blocks ask for rounds before the last pull: from t = n on back there is no width.
    "UCB-SC+, t = n": (classics.ucb_sc_plus, (4, 4, 0.5, 0.25), 2.0),
    "UCB-SC+, t below n": (classics.ucb_sc_plus, (3, 40, 0.5, 0.25), 2.0),
    # rewards near 1: eps = 0.0520346632 takes the bound beyond 1, and 1.2081386527 stays as it is
    "m, reward 1": (classics.m_ucb, (17, 4, 1.0, 0.25, 2**-4), 5.051389380338),
    "i, reward 1": (classics.i_ucb, (17, 4, 1.0, 1.0, 2**-2), 1.208138652789),
    # c^2 a little above the border 2 n c^2 = L: alpha r is below c by a little, and the index large
    "UCB-SC+, near its pole": (classics.ucb_sc_plus, (16, 4, 0.0, sqrt(1.01 * log(4) / 8)), 10.0),
}


@pytest.mark.parametrize("case", RIVALS)
def test_rivals_by_hand(case):
    rule, arguments, expected = RIVALS[case]
    assert value(rule, *arguments, constant=1.0) == pytest.approx(expected, rel=1e-11)


BUDGET = {
    # eps = sqrt(2 log 2) = 1.1774100225: reward bound 1, cost bound lambda: 2 + eps/0.25 (1 + 1/0.1)
    "wide": (17, 4, 0.5, 0.25, 1.0, 53.80604099068),
    # eps as the omega-UCB paper's Table 2 prints it, without the 2: 0.8325546112
    "Table 2": (17, 4, 0.5, 0.25, sqrt(0.5), 38.63240289094),
    # n = 400: eps = 0.1177410023: 2 + eps/0.25 (1 + 0.6177410023 / 0.1322589977)
    "narrow": (17, 400, 0.5, 0.25, 1.0, 4.670691694084),
    "log 1": (2, 1, 0.5, 0.25, 1.0, 2.0),
    "zero cost": (17, 4, 0.5, 0.0, 1.0, inf),
}


@pytest.mark.parametrize("case", BUDGET)
def test_budget_ucb_by_hand(case):
    *arguments, expected = BUDGET[case]
    assert value(budget_ucb.budget_ucb, *arguments, constant=0.1) == pytest.approx(expected, rel=1e-11)


# t = 2: x = 2.01 log 2 = 1.3932258329. Bernoulli outcomes with mean 1/2 of n = 100: V = 25/99,
# e = sqrt(2 V x / 100) + 3 x / 100 = 0.1256805881.
B2 = {
    "costs above c_min": (100, 0.5, 0.1, None, 1.703811293475),                     # q = 1: 1 + 1.4 (2 e) / 0.5
    "costs below c_min": (100, 0.5, 0.8, None, 1.196846675948),                     # q = 5/8: q + 1.4 (e + q e) / 0.5
    "no variance": (100, 0.5, 0.1, 0.0, 1.234061939931),                            # e = 3 x / 100 = 0.0417967750
    "one pull": (1, 1.0, 0.1, None, inf),                                           # V = 1/4: e = 5.014 > c
    "zero cost": (100, 0.0, 0.1, None, inf),
}


@pytest.mark.parametrize("case", B2)
def test_ucb_b2_by_hand(case):
    n, c, smallest, v, expected = B2[case]
    assert value(classics.ucb_b2, 2, n, 0.5, c, constant=smallest, v_r=v, v_c=v) == pytest.approx(expected, rel=1e-11)


def test_ucb_b2_takes_the_largest_variance_for_a_single_sample():
    # n = 1, c = 6: e = sqrt(x / 2) + 3 x = 5.0143109012 < 6; q = 0.5 / 6 = 1/12; 1/12 + 1.4 (e + e/12) / 6
    expected = 1 / 12 + 1.4 * (13 / 12) * 5.014310901213 / 6
    assert value(classics.ucb_b2, 2, 1, 0.5, 6.0) == pytest.approx(expected, rel=1e-11)


def ask(rule, t, n, reward, cost, memory=(), rng=None):
    arrays = [np.array(values, float) for values in (reward, cost, reward, cost)]
    nothing, memory = np.zeros(len(n)), np.array(memory, float)
    return by_sums(rule)(t, np.array(n), *arrays, nothing, nothing, memory, rng or np.random.default_rng(0))


def test_b_greedy_by_hand():
    assert [ask(classics.b_greedy, t, [0, 0, 0], [0, 0, 0], [0, 0, 0]) for t in (1, 2, 3)] == [0, 1, 2]
    late = 10**12                                                                   # exploring has probability 3e-12
    assert ask(classics.b_greedy, late, [2, 2, 2], [1, 2, 1], [1, 1, 1]) == 1
    assert ask(classics.b_greedy, late, [2, 2, 2], [1, 2, 0], [1, 1, 0]) == 2       # zero cost: infinite
    assert ask(classics.b_greedy, late, [2, 2, 2], [2, 2, 1], [1, 1, 1]) == 0       # a tie: the lowest position


def test_b_greedy_explores_with_probability_K_over_t():
    rng, rounds = np.random.default_rng(3), 20_000
    chosen = [ask(classics.b_greedy, 8, [2, 2, 3], [0, 2, 0], [1, 1, 1], rng=rng) for _ in range(rounds)]
    # Arms 0 and 2 with probability 3/8 * 2/3 = 1/4 together; 5 standard errors: a false alarm once in a million.
    assert abs(np.mean(np.array(chosen) != 1) - 0.25) < 5 * sqrt(0.25 * 0.75 / rounds)


@pytest.mark.slow
def test_bts_draws_from_the_posteriors():
    # won = (3, 1), paid = (1, 3) out of n = 4: arm 0 has Beta(4, 2) / Beta(2, 4), arm 1 the inverse. How often arm 0
    # is chosen, against drawing with NumPy: 5 standard errors of the difference, a false alarm once in a million.
    size, rng = 40_000, np.random.default_rng(4)
    x = [rng.beta(a, 6 - a, size) for a in (4, 2, 2, 4)]
    expected = np.mean(x[0] / x[1] > x[2] / x[3])
    memory, kernel_rng, rounds = [3, 1, 1, 3, 0, 3, 1], np.random.default_rng(5), 4000
    # The last outcome was nothing: the arm's sums have not grown.
    share = np.mean([ask(thompson.bts, 9, [4, 4], [3, 1], [1, 3], memory, kernel_rng) == 0 for _ in range(rounds)])
    assert abs(share - expected) < 5 * sqrt(0.25 / rounds + 0.25 / size)


def test_defaults_are_the_papers_recommendations():
    assert (cb.MUCB().alpha, cb.CUCB().alpha, cb.IUCB().alpha) == (1 / 16, 1 / 8, 1 / 4)
    assert cb.OmegaUCB().rho == cb.OmegaStarUCB().rho == 0.25
    assert cb.BudgetUCB().parameters.tolist() == [1.0]
    costs = Problem(3, np.array([0.3, 0.2, 0.7]), 100.0, False)
    assert cb.BudgetUCB().prepare(costs).tolist() == cb.UCBB2().prepare(costs).tolist() == [0.2] * 3
    assert cb.BudgetUCB(min_cost=0.1).prepare(costs).tolist() == [0.1] * 3
    assert cb.PDBwK().prepare(costs).tolist() == [log(100 / 0.2 * 3)] * 3
    assert cb.PDBwK(2).prepare(costs).tolist() == [2] * 3
    assert cb.PDBwK().prepare(replace(costs, budget=inf, horizon=50)).tolist() == [log(50 * 3)] * 3


@pytest.mark.parametrize("make", [cb.OmegaUCB, cb.OmegaStarUCB, cb.MUCB, cb.CUCB, cb.IUCB, cb.BudgetUCB,
                                  lambda bad: cb.BudgetUCB(exploration=bad), cb.PDBwK])
@pytest.mark.parametrize("bad", [0, -1, float("nan"), inf, "a", True])
def test_parameters_must_be_positive_numbers(make, bad):
    with pytest.raises(ValueError, match="must be a finite number above 0"):
        make(bad)


def test_pd_bwk_needs_an_end():
    with pytest.raises(ValueError, match="no budget and no horizon': PDBwK needs one of them, or a constant"):
        cb.PDBwK().check(Problem(2, np.array([0.3, 0.2]), inf, False))


def test_how_long_a_mean_stays_above_by_hand():
    # 3 pulls of 2 in all: with m more of nothing 2 / (3 + m) is above 1/4 while m < 5; without a lowest reward never.
    assert greedy.room(2.0, 3.0, 0.25, 0.0) == pytest.approx(5.0, rel=1e-6)
    assert greedy.room(2.0, 3.0, 0.25, -inf) == 0.0


def too_few(t, n):
    return 1.0


@pytest.mark.parametrize(("decorator", "taken"), [(cb.index, "t, arm, p"), (cb.choose, "t, spent, arms, .* rng")])
def test_wrong_number_of_arguments(decorator, taken):
    with pytest.raises(ValueError, match=rf"too_few.*must take \({taken}\)"):
        decorator(too_few)


@pytest.mark.parametrize("wrong", [lambda *_: 1.0, 3, thompson.bts])
def test_an_index_must_be_made_by_index(wrong):
    with pytest.raises(ValueError, match=r"rule = .* must be a function made by cb\.index"):
        cb.IndexPolicy(wrong)


@pytest.mark.parametrize("wrong", [lambda *_: 1, 3, classics.c_ucb])
def test_a_choice_must_be_made_by_choose(wrong):
    with pytest.raises(ValueError, match=r"rule = .* must be a function made by cb\.choose"):
        cb.ChoosePolicy(wrong)


def test_prepare_must_fit_the_arms():
    policy = cb.IndexPolicy(classics.c_ucb, params=(0.1,), prepare=lambda problem: [1.0, 2.0])
    bandit = cb.Bandit([cb.Bernoulli(0.5)] * 3, [cb.Bernoulli(0.5)] * 3)
    with pytest.raises(ValueError, match=r"prepare.*one number per arm"):
        cb.simulate({"p": policy}, bandit, cb.Budget(10))


def test_prepare_must_fit_every_instance():
    """Not only the first: of these every second one has two arms at the same cost."""
    def make(rng):
        return cb.Bandit([cb.Bernoulli(0.5)] * 3, [cb.Constant(c) for c in (0.5, rng.choice([0.5, 0.6]), 0.7)])

    rule = cb.IndexPolicy(cb.FractionalKUBE.rule, (1.0,), prepare=lambda problem: np.unique(problem.cost_means))
    assert cb.simulate({"p": rule}, make, cb.Budget(50), seed=2).rounds.shape == (1, 1, 50)
    with pytest.raises(ValueError, match=r"prepare\(problem\) = .*: must return one number per arm"):
        cb.simulate({"p": rule}, make, cb.Budget(50), 20, seed=2)


def test_no_index_falls_while_its_arm_rests():
    """What `fast.search` relies on, on random statistics."""
    rng = np.random.default_rng(6)
    for label, policy in INDICES.items():
        for _ in range(300):
            n = int(rng.integers(1, 60))
            x, y = rng.random(n), rng.random(n) * rng.random()
            sums, t = (x.sum(), y.sum(), (x * x).sum(), (y * y).sum()), n + 1 + np.arange(0, 2000, 250)
            values = np.array([policy.rule(int(s), n, *sums, 0.05, policy.parameters) for s in t])
            assert (values[1:] >= values[:-1] * (1 - 1e-12)).all(), label


@pytest.mark.parametrize(("policy", "bandit", "stop", "message"), [
    (cb.BudgetUCB(min_cost=0.6), cb.Bandit([cb.Beta(1, 1)] * 2, [cb.Beta(1, 1)] * 2), cb.Budget(20),
     r"BudgetUCB: min_cost = 0\.6 is above the smallest expected cost, 0\.5"),
    (cb.BudgetCB(min_cost=0.6), cb.LinearBandit(np.eye(2), [0.5, 0.5], [0.5, 0.7], 0.1), cb.Budget(20),
     r"BudgetCB: min_cost = 0\.6 is above the smallest expected cost, 0\.5"),
    (cb.SUAK(), cb.Bandit([cb.Beta(1, 1)] * 2, [cb.Beta(1, 1)] * 2), cb.AnytimeBudget(0.5, 50),
     r"an arm costs c = 0\.5 in expectation")], ids=["Budget-UCB", "Budget-CB", "SUAK"])
@pytest.mark.slow
def test_a_warning_comes_once_and_from_no_worker(policy, bandit, stop, message, capfd):
    with pytest.warns(UserWarning, match=message) as told, joblib.parallel_config(backend="loky"):
        cb.simulate({"p": policy}, bandit, stop, 4, n_jobs=2)
    assert len(told) == 1 and capfd.readouterr().err == ""


@pytest.mark.parametrize(("made", "missing"), [
    (cb.CSUCB, "alpha"), (cb.CSETC, "alpha"), (cb.CSTS, "alpha"), (cb.CSElimination, "alpha"), (cb.CSVOI, "alpha"),
    (cb.AnytimeBudget, "rate")])
def test_what_has_no_good_default_must_be_given(made, missing):
    """Not the value of a class above it, which its own check would refuse."""
    with pytest.raises(TypeError, match=f"missing .*{missing}"):
        made()
