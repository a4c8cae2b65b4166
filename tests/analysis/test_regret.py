"""Regret by hand, and the identity between its two readings."""

import numpy as np
import pytest
from reference import POLICIES, small_study

import costbandits as cb


def by_hand(pulls, total=10.0):
    """Two arms of ratios 3 and 1/2: a pull of the second loses mu_c (3 - 1/2) = 0.4 * 2.5 = 1."""
    bandit = cb.Bandit([cb.Bernoulli(0.6), cb.Bernoulli(0.2)], [cb.Bernoulli(0.2), cb.Bernoulli(0.4)])
    pulls = np.array(pulls, np.int32)[None, None]
    nothing = np.zeros(pulls.shape[:3])
    return cb.Runs(["p"], np.array([0]), np.array([0.5, 1.0]), pulls, nothing, nothing, nothing, nothing, [bandit],
                   [cb.Budget(total)], 0)


def test_by_hand():
    runs = by_hand([[20, 3], [40, 9]])
    assert cb.regret.budgeted(runs)[0, 0].tolist() == pytest.approx([3.0, 9.0])
    # budget x 3 - expected reward: 5 * 3 - (20 * 0.6 + 3 * 0.2) = 2.4 and 10 * 3 - (40 * 0.6 + 9 * 0.2) = 4.2
    assert cb.regret.budgeted(runs, against="budget")[0, 0].tolist() == pytest.approx([2.4, 4.2])


def test_the_best_plan_may_spend_what_a_run_may():
    """A budget that is a sum of costs, as floating point adds them, is short of it by more than a few roundings."""
    bandit = cb.Bandit([cb.Constant(0.5)], [cb.Constant(0.1)])
    total = float(np.add.accumulate(np.full(20_000, 0.1))[-1])
    runs = cb.simulate({"KUBE": cb.KUBE()}, bandit, cb.HardBudget(total), checkpoints=1)
    assert total < 2000 and runs.pulls.tolist() == [[[[20_000]]]] and cb.regret.knapsack(runs).tolist() == [[[0.0]]]


def test_the_best_arm_alone_has_no_regret():
    assert cb.regret.budgeted(by_hand([[25, 0], [50, 0]]))[0, 0].tolist() == [0.0, 0.0]


@pytest.fixture(scope="module")
def studies():
    return small_study(POLICIES)


def test_never_negative_and_never_falling(studies):
    for runs in studies.values():
        regret = cb.regret.budgeted(runs)
        assert regret.shape == (len(POLICIES), 2, 20) and regret.dtype == float
        assert (regret >= 0).all() and (np.diff(regret) >= -1e-9).all() and regret[:, :, -1].min() > 0


def test_the_two_readings_differ_by_what_is_left_of_the_budget(studies):
    """mu_c rho* - mu_r and B f rho* - (sum of mu_r) summed over pulls differ by rho* (f B - sum of mu_c)."""
    for runs in studies.values():
        for r, (bandit, stop) in enumerate(zip(runs.bandits, runs.stops, strict=True)):
            expected_cost = runs.pulls[:, r] @ bandit.cost_means
            left = bandit.ratios.max() * (runs.fractions * stop.total - expected_cost)
            difference = cb.regret.budgeted(runs, against="budget")[:, r] - cb.regret.budgeted(runs)[:, r]
            assert difference == pytest.approx(left, rel=1e-9, abs=1e-9 * stop.total)


def test_unknown_reading():
    with pytest.raises(ValueError, match="against = 'time': must be 'spent' or 'budget'"):
        cb.regret.budgeted(by_hand([[1, 1], [2, 2]]), against="time")
