"""Spending is what was paid, however many pulls there were."""

from fractions import Fraction

import numpy as np
import pytest

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
        "full scan": cb.IndexPolicy(balanced), "blocks": cb.KLUCB()}


@pytest.mark.parametrize("second", [cb.Bernoulli(0.4), cb.Bernoulli(0.5), cb.TruncatedNormal(0.3, 0.1, 0, 1)])
@pytest.mark.parametrize("cost", ["0.1", "0.3", "0.7"])
@pytest.mark.parametrize(("policies", "stop"), [(SOFT, cb.Budget), (HARD, cb.HardBudget)])
def test_a_budget_for_a_million_pulls_is_spent_on_a_million(policies, stop, cost, second):
    """Of two arms alike most pulls are made one by one; so are those of an arm whose rewards are not counted."""
    bandit = cb.Bandit([cb.Bernoulli(0.5) if second.variance > 0.01 else second, second],
                       [cb.Constant(float(cost))] * 2)
    runs = cb.simulate(policies, bandit, stop(float(Fraction(cost) * LONG)), checkpoints=[0.25, 0.5, 1])
    assert runs.rounds[:, 0].tolist() == [[LONG // 4, LONG // 2, LONG]] * len(policies)
    assert runs.spent[:, 0, -1] == pytest.approx(float(cost) * LONG, rel=1e-12)


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
