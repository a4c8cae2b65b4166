"""Spending is what was paid, however many pulls there were."""

from fractions import Fraction

import numpy as np
import pytest
from reference import proving

import costbandits as cb

LONG = 10**6        # as many additions of 0.1 are off by 1e-6, a budget's tolerance is 1e-7


@cb.index
def balanced(t, n, reward, cost, reward_sq, cost_sq, constant, params):
    return -float(n)


@cb.choose
def in_turn(t, n, reward, cost, reward_sq, cost_sq, problem, params, memory, rng):
    return t % len(n)


SOFT = {"blocks": cb.MUCB(), "full scan": cb.IndexPolicy(balanced), "choice": cb.ChoosePolicy(in_turn),
        "bells": cb.BTS(), "draws": cb.BTS(naive=True), "exploring": cb.EpsilonGreedy(1, 0.1)}
HARD = {"filling": cb.KUBE(), "ratio": cb.FractionalKUBE(), "sweeps": cb.EpsilonFirst(0.1), "events": cb.KnownCostTS(),
        "full scan": cb.IndexPolicy(balanced), "blocks": cb.KLUCB(), "draws": cb.KnownCostTS(naive=True)}
TIES = {"blocks": cb.IndexPolicy(balanced, monotone=True), "full scan": cb.IndexPolicy(balanced)}
TURNS = {"in turn": cb.ChoosePolicy(in_turn)}
COSTS = ["0.1", "0.3", "0.35", "0.6", "0.7"]


STOPS = {"soft": (SOFT, cb.Budget), "hard": (HARD, cb.HardBudget)}
SECOND = {"worse": cb.Bernoulli(0.4), "alike": cb.Bernoulli(0.5), "uncounted": cb.TruncatedNormal(0.3, 0.1, 0, 1)}
MILLIONS = [(stop, cost, fast, second) for stop in STOPS for second in SECOND
            for cost, fast in (("0.1", True), ("0.3", True), ("0.7", True), ("0.7", False))]
SHORT = [("soft", "0.1", True, "alike"), ("soft", "0.3", True, "worse"), ("soft", "0.7", True, "uncounted"),
         ("soft", "0.7", False, "alike"), ("hard", "0.1", True, "worse"), ("hard", "0.7", True, "alike"),
         ("hard", "0.3", True, "uncounted")]


@pytest.mark.slow
@pytest.mark.parametrize(("stop", "cost", "fast", "second"), proving(MILLIONS, *{*MILLIONS} - {*SHORT}))
def test_a_budget_for_a_million_pulls_is_spent_on_a_million(stop, cost, fast, second):
    """Of two arms alike most pulls are made one by one; so are those of an arm whose rewards are not counted."""
    (policies, stop), second = STOPS[stop], SECOND[second]
    bandit = cb.Bandit([cb.Bernoulli(0.5) if second.variance > 0.01 else second, second],
                       [cb.Constant(float(cost))] * 2)
    runs = cb.simulate(policies, bandit, stop(float(Fraction(cost) * LONG)), checkpoints=[0.25, 0.5, 1], fast=fast)
    assert runs.rounds[:, 0].tolist() == [[LONG // 4, LONG // 2, LONG]] * len(policies)
    assert runs.spent[:, 0, -1] == pytest.approx(float(cost) * LONG, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("K", "cost"), proving([(K, cost) for K in (50, 1000) for cost in COSTS],
                                                *[(50, cost) for cost in COSTS[1:]], (1000, "0.3"), (1000, "0.6")))
def test_many_arms_in_turn_spend_a_budget_to_the_last_pull(K, cost):
    """Few leaves of theirs end in the last thousandth of a run."""
    policies, pulls = (TIES, 10**5) if K == 50 else (TURNS, LONG)
    bandit = cb.Bandit([cb.Bernoulli(0.5)] * K, [cb.Constant(float(cost))] * K)
    for stop in (cb.Budget, cb.HardBudget):
        for fractions in ([1], [0.985, 1]):
            runs = cb.simulate(policies, bandit, stop(float(Fraction(cost) * pulls)), checkpoints=fractions)
            assert runs.rounds[:, 0, -1].tolist() == [pulls] * len(policies)


@pytest.mark.parametrize("replication", range(5))
def test_bells_on_equal_arms_spend_a_budget_to_the_last_pull(replication):
    bandit = cb.Bandit([cb.Bernoulli(0.5)] * 50, [cb.Constant(0.7)] * 50)
    runs = cb.simulate({"bells": cb.BTS()}, bandit, cb.Budget(70_000.0), [replication])
    assert runs.rounds[0, 0, -1] == 10**5


def test_an_arm_that_is_soon_too_expensive_changes_nothing():
    bandit = cb.Bandit([cb.Bernoulli(p) for p in (0.5, 0.4, 0.3)], [cb.Constant(c) for c in (0.1, 0.1, 90_000.0)])
    runs = cb.simulate(HARD, bandit, cb.HardBudget(100_000.0))
    for label, spent, pulls in zip(HARD, runs.spent[:, 0, -1], runs.pulls[:, 0, -1].tolist(), strict=True):
        assert spent == pytest.approx(100_000, rel=1e-12), label
        assert pulls[0] + pulls[1] == 10**6 - 900_000 * pulls[2], label


def test_a_budget_beyond_2_to_the_53_is_spent():
    """There 1 added to what is spent changes nothing."""
    one = cb.Bandit([cb.Bernoulli(0.5)], [cb.Constant(1.0)])
    for total in (2**53, 2**54, 2**60):
        runs = cb.simulate({"m": cb.MUCB()}, one, cb.Budget(total))
        assert abs(runs.rounds[0, 0, -1] - total) <= total * 2.0**-53


def test_the_sum_of_what_was_paid_is_that_over_the_arms():
    bandit = cb.Bandit([cb.Bernoulli(0.5)] * 3, [cb.Constant(c) for c in (0.1, 0.2, 0.7)])
    runs = cb.simulate(SOFT, bandit, cb.Budget(50_000), checkpoints=5)
    assert np.allclose(runs.spent, runs.pulls @ bandit.cost_means, rtol=1e-14, atol=0)


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [2**53 - 1, 10**16 + 2, 3 * 10**17 + 12_345, 2**62])
def test_beyond_whole_floats_each_sum_is_rounded_once(rounds):
    """Pulls are exact; what they cost is as exact as a float is, and so exact up to 2**53 halves."""
    costs = (1.0, 0.5, 1.0)
    bandit = cb.Bandit([cb.Bernoulli(0.5), cb.Bernoulli(0.3), cb.Bernoulli(0.45)], list(map(cb.Constant, costs)))
    runs = cb.simulate({"p": cb.EpsilonGreedy(1, 0.1)}, bandit, cb.Horizon(rounds), checkpoints=[0.01, 0.77, 1])
    assert runs.rounds[0, 0, -1] == runs.pulls[0, 0, -1].sum() == rounds
    for pulls, spent in zip(runs.pulls[0, 0].tolist(), runs.spent[0, 0].tolist(), strict=True):
        paid = sum(Fraction(c) * n for c, n in zip(costs, pulls, strict=True))
        assert abs(Fraction(spent) - paid) <= (0 if 2 * paid <= 2**53 else 4 * Fraction(np.spacing(float(paid))))


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "total"), [(cb.EpsilonFirst(1e-15), 10**16 + 2), (cb.EpsilonFirst(1e-15), 2**62),
                                               (cb.KUBE(), 10**16 + 2)])
def test_a_hard_budget_beyond_whole_floats_is_kept(policy, total):
    bandit = cb.Bandit([cb.Bernoulli(0.5), cb.Bernoulli(0.3)], [cb.Constant(4.0), cb.Constant(6.0)])
    runs = cb.simulate({"p": policy}, bandit, cb.HardBudget(total), checkpoints=1)
    paid = sum(c * n for c, n in zip((4, 6), runs.pulls[0, 0, -1].tolist(), strict=True))
    near = 4 * int(np.spacing(float(total)))
    assert abs(int(runs.spent[0, 0, -1]) - paid) <= near and total - 6 - near <= paid <= total + near
