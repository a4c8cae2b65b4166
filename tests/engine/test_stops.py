"""Stop rules: when checkpoints are due, and which rules are told apart."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import costbandits as cb


@pytest.mark.parametrize(("fraction", "horizon", "end"), [
    (0.07, 100, 7), (0.0701, 100, 8), (1 / 3, 300, 100), (0.29, 100, 29), (1e-9, 100, 1), (1.0, 2**31 - 1, 2**31 - 1),
    (0.57, 2 * 10**9, 1_140_000_000), (0.1, 3, 1), (1.0, 1, 1), (4.1e-12, 10**12, 5)])
def test_a_checkpoint_is_due_at_a_round(fraction, horizon, end):
    """At f T rounded up, where f T may be a little more than whole only because 0.07 x 100 is in floating point."""
    for stop in (cb.AnytimeBudget(0.5, horizon), cb.Horizon(horizon)):
        assert stop.ends(np.array([fraction])).tolist() == [end]


@given(horizon=st.integers(1, 10**7), steps=st.integers(1, 60))
def test_equal_steps_end_at_the_horizon(horizon, steps):
    for stop in (cb.AnytimeBudget(0.5, horizon), cb.Horizon(horizon)):
        ends = stop.ends(np.arange(1, steps + 1) / steps)
        assert ends.tolist() == [-(-horizon * i // steps) for i in range(1, steps + 1)]


def test_what_a_rule_says():
    bandit = cb.Bandit([cb.Bernoulli(0.5)] * 2, [cb.Constant(0.25), cb.Constant(1.0)])
    fractions = np.array([0.5, 1.0])
    for stop, marks, ends, (top, ceiling, rate) in [
            (cb.Budget(8), [4, 8], None, ([0, 0], np.inf, 0)),
            (cb.HardBudget(8), [4, 8], None, ([0.25, 1], 8 + 8e-12, 0)),
            (cb.AnytimeBudget(0.25, 32), [np.inf] * 2, [16, 32], ([0.25, 1], 0, 0.25)),
            (cb.Horizon(32), [np.inf] * 2, [16, 32], ([0, 0], np.inf, 0))]:
        stop.check(bandit)
        limits = stop.limits(bandit)
        assert stop.due(fractions) == pytest.approx(marks, rel=1e-11)
        assert stop.total == (np.inf if stop == cb.Horizon(32) else 8)
        assert (None if stop.ends(fractions) is None else stop.ends(fractions).tolist()) == ends
        assert limits[0].tolist() == top and limits[1:] == (ceiling, rate)


@pytest.mark.parametrize(("total", "slack"), [(1.0, 1e-12), (8.0, 8e-12), (5e8, 5e-4), (1e9, 1e-3), (4e9, 1e-3),
                                              (2.0**44, 1e-3)])
def test_a_sum_may_miss_its_total_by_rounding(total, slack):
    """1e-12 of it, and never more than a thousandth."""
    bandit = cb.Bandit([cb.Bernoulli(0.5)], [cb.Constant(0.25)])
    assert cb.HardBudget(total).limits(bandit)[1] - total == pytest.approx(slack, rel=0.03, abs=total * 2**-53)
    assert total - cb.Budget(total).due(np.array([1.0]))[0] == pytest.approx(slack, rel=0.03, abs=total * 2**-53)


@pytest.mark.parametrize("rate", [Fraction(1, 4), np.float16(0.25), np.float32(0.25), 0.25])
def test_a_rate_is_a_number_of_any_kind(rate):
    stop = cb.AnytimeBudget(rate, 64)
    assert (type(stop.rate), stop, stop.total) == (float, cb.AnytimeBudget(0.25, 64), 16.0)


def test_rules_are_equal_only_in_kind_and_numbers():
    rules = [cb.Budget(8), cb.HardBudget(8), cb.Budget(9), cb.AnytimeBudget(0.5, 16), cb.AnytimeBudget(0.5, 17),
             cb.AnytimeBudget(0.25, 32), cb.Horizon(8), cb.Horizon(16)]
    assert len(set(rules)) == len(rules) and cb.AnytimeBudget(0.5, 16) == rules[3]
    with pytest.raises(AttributeError):
        rules[3].rate = 1.0


@pytest.mark.parametrize("rounds", [0, -3, 2.5, np.nan, np.inf, "a", None, True])
def test_rounds_of_a_horizon(rounds):
    with pytest.raises(ValueError, match=r"rounds = .*: must be a whole number, 1 or more"):
        cb.Horizon(rounds)


def test_a_number_too_long_to_be_written_is_refused_without_it():
    with pytest.raises(ValueError, match="total = int that cannot be shown: must be"):
        cb.Budget(10**5000)


class Cauchy(cb.distributions.Distribution):
    mean, variance, support = 0.0, np.inf, (-np.inf, np.inf)

    def sample(self, rng, size):
        return rng.standard_cauchy(size)


def test_costs_under_a_horizon():
    """May be random, free or negative, but not unbounded."""
    laws = [cb.Constant(0.0), cb.Discrete((-2.0, 5.0), (0.5, 0.5)), cb.Bernoulli(0.5)]
    bandit = cb.Bandit([cb.Bernoulli(0.5)] * 3, laws)
    runs = cb.simulate({"e": cb.EpsilonGreedy(5, 0.1)}, bandit, cb.Horizon(200), 3, checkpoints=[0.1, 0.501, 1])
    assert (runs.rounds == [20, 101, 200]).all() and (runs.pulls.sum(axis=-1) == runs.rounds).all()
    with pytest.raises(ValueError, match=r"cost of arm 1 = .*Cauchy.*: must have a finite support"):
        cb.simulate({"e": cb.EpsilonGreedy(5, 0.1)}, cb.Bandit([cb.Bernoulli(0.5)] * 2, [laws[0], Cauchy()]),
                    cb.Horizon(9))
    with pytest.raises(ValueError, match=r"max_rounds = 99: must be at least the horizon \(100\)"):
        cb.simulate({"e": cb.EpsilonGreedy(5, 0.1)}, bandit, cb.Horizon(100), max_rounds=99)


@pytest.mark.parametrize("total", [1.0, 1e6, 1e12, 1e15])
def test_what_is_granted_for_rounding_buys_no_pull(total):
    """However large a budget is: no arm costs less than a thousandth here, and a trillion times 1e-12 would be 1."""
    bandit = cb.Bandit([cb.Bernoulli(0.5)], [cb.Constant(0.01)])
    _, ceiling, _ = cb.HardBudget(total).limits(bandit)
    assert total <= ceiling <= total + 1e-3 and ceiling <= total * (1 + 2e-12)
    assert total - 1e-3 <= cb.Budget(total).due([1.0])[0] <= total


def test_rounding_adds_no_pull():
    """Ten pulls that cost 0.1 each have spent 0.9999999999999999."""
    tenths = cb.Bandit([cb.Bernoulli(0.5)], [cb.Constant(0.1)])
    runs = cb.simulate({"m": cb.MUCB()}, tenths, cb.Budget(2.0), checkpoints=20)
    assert runs.pulls[0, 0, :, 0].tolist() == list(range(1, 21))
    assert cb.regret.budgeted(runs, "budget")[0, 0] == pytest.approx(np.zeros(20), abs=1e-12)
    coins = cb.simulate({"m": cb.MUCB()}, cb.instances.bernoulli(3), cb.Budget(10_000))
    assert (coins.spent[0, 0] == np.arange(1, 51) * 200).all()       # 0.14 * 10000 is 1400.0000000000002
