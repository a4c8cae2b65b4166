"""Bandits, and which of them may be played."""

from math import inf, nan
from types import SimpleNamespace

import numpy as np
import pytest

import costbandits as cb

HALF = cb.Bernoulli(0.5)


def law(mean):
    return SimpleNamespace(mean=mean, variance=1.0, support=(0, inf), sample=None)


def test_means_and_ratios():
    bandit = cb.Bandit([cb.Bernoulli(0.2), cb.Constant(0.6)], [cb.Constant(0.4), cb.Beta(1, 3)])
    assert bandit.K == 2
    assert bandit.reward_means.tolist() == [0.2, 0.6] and bandit.cost_means.tolist() == [0.4, 0.25]
    assert bandit.ratios.tolist() == [0.5, 2.4]


def test_any_sequence_of_any_distribution():
    law = SimpleNamespace(mean=0.5, variance=0.0, support=(0, 1), sample=lambda rng, size: np.full(size, 0.5))
    assert cb.Bandit((law for _ in range(3)), [law] * 3).reward_means.tolist() == [0.5] * 3


@pytest.mark.parametrize(("rewards", "costs", "message"), [
    ([], [], r"rewards = \(\): a bandit needs at least one arm"),
    ([HALF, HALF], [HALF], r"costs = '1 distributions': must be one per arm, as many as rewards \(2\)"),
    (HALF, [HALF], r"rewards = Bernoulli\(p=0.5\): must be a sequence of distributions"),
    ([HALF], HALF, r"costs = Bernoulli\(p=0.5\): must be a sequence of distributions"),
    ([0.5], [HALF], r"rewards\[0\] = 0.5: must be a distribution"),
    ([HALF, HALF], [HALF, None], r"costs\[1\] = None: must be a distribution"),
    ([HALF], [law(inf)], r"costs\[0\]\.mean = inf: must be finite"),
    ([law(nan)], [HALF], r"rewards\[0\]\.mean = nan: must be finite"),
])
def test_bad_arms(rewards, costs, message):
    with pytest.raises(ValueError, match=message):
        cb.Bandit(rewards, costs)


@pytest.mark.parametrize("cost", [cb.Constant(0), cb.Bernoulli(0), cb.Constant(-1)])
def test_under_a_budget_every_expected_cost_must_be_positive(cost):
    with pytest.raises(ValueError, match=r"expected cost of arm 1 = .*must be positive and finite"):
        cb.simulate({"b": cb.BGreedy()}, cb.Bandit([HALF] * 2, [HALF, cost]), cb.Budget(5))


@pytest.mark.parametrize("total", [0, -3, nan, inf, "ten", None])
def test_a_budget_is_positive_and_finite(total):
    with pytest.raises(ValueError, match=r"Budget total = .*must be a finite number above 0"):
        cb.Budget(total)


BOUNDED = {"omega": cb.OmegaUCB(), "omega*": cb.OmegaStarUCB(), "m": cb.MUCB(), "c": cb.CUCB(), "i": cb.IUCB(),
           "Budget-UCB": cb.BudgetUCB(), "UCB-SC+": cb.UCBSCPlus(), "UCB-B2": cb.UCBB2(), "BTS": cb.BTS(),
           "BTS naive": cb.BTS(naive=True)}


@pytest.mark.parametrize("label", BOUNDED)
def test_policies_made_for_the_unit_interval_refuse_larger_outcomes(label):
    policy, large = BOUNDED[label], cb.Discrete([0, 2], [0.5, 0.5])
    name = rf"policy {label!r} \({type(policy).__name__}\)".replace("*", r"\*").replace("+", r"\+")
    for bandit, what in ((cb.Bandit([HALF], [large]), "cost"), (cb.Bandit([large], [HALF]), "reward"),
                         (cb.Bandit([cb.Constant(-0.1)], [HALF]), "reward")):
        with pytest.raises(ValueError, match=rf"{what} support = .*{name} is made for {what}s in \(0.0, 1.0\)"):
            cb.simulate({label: policy}, bandit, cb.Budget(5))


def test_a_refusal_says_how_outcomes_are_brought_into_range():
    def refused(policy, law):
        with pytest.raises(ValueError) as told:
            cb.simulate({"p": policy}, cb.Bandit([law], [cb.Constant(0.5)]), cb.HardBudget(5))
        return str(told.value)

    large, negative = cb.Discrete([0, 2], [0.5, 0.5]), cb.Constant(-0.5)
    assert refused(cb.MUCB(), large).endswith("in (0.0, 1.0); divide rewards by their largest value")
    assert refused(cb.KnownCostTS(), large).endswith("largest value, or give it reward_scale=that value")
    assert refused(cb.MUCB(), negative).endswith("in (0.0, 1.0)")
    cb.simulate({"p": cb.KnownCostTS(reward_scale=2)}, cb.Bandit([large], [cb.Constant(0.5)]), cb.HardBudget(5))


def test_b_greedy_takes_outcomes_of_any_size():
    bandit = cb.Bandit([cb.Constant(-9.0), cb.Constant(-7.0), cb.Constant(-8.0)], [cb.Constant(3.0)] * 3)
    pulls = cb.simulate({"b": cb.BGreedy()}, bandit, cb.Budget(3000), replications=3).pulls[0, :, -1]
    # Exploring takes 3 (1 + log(1000 / 3)) = 20 of 1000 pulls on average; the best arm must have nearly all others.
    assert (pulls.argmax(axis=1) == 1).all() and (pulls[:, 1] > 900).all()
