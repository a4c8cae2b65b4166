"""What holds for all policies: defaults, what they refuse, and indices that do not fall while their arm rests."""

from dataclasses import replace
from decimal import Decimal
from math import inf, log

import joblib
import numpy as np
import pytest
from reference import INDICES

import costbandits as cb
from costbandits.policies import classics, thompson
from costbandits.policies.base import Problem


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


@pytest.mark.parametrize("number", [lambda x: x, lambda x: Decimal(str(x))])
def test_decimals_are_numbers(number):
    known = cb.Bandit([cb.Bernoulli(0.5)] * 2, [cb.Constant(1.0)] * 2)
    for policy, stop in ((cb.EpsilonFirst(number(0.25)), cb.HardBudget(number(20))),
                         (cb.EpsilonGreedy(number(1), number(0.5)), cb.Budget(number(20)))):
        assert cb.simulate({"p": policy}, known, stop, checkpoints=1).rounds.ravel().tolist() == [20]
    assert cb.CSElimination(number(0.5), delta=number(0.25)) == cb.CSElimination(0.5, delta=0.25)


@pytest.mark.parametrize("policy", [cb.FractionalKUBE(), cb.KLUCB(), cb.KnownCostTS()])
def test_costs_below_0_are_refused_by_what_divides_by_them(policy):
    bandit = cb.Bandit([cb.Bernoulli(0.5)] * 2, [cb.Constant(-1.0), cb.Constant(1.0)])
    with pytest.raises(ValueError, match=r"smallest cost = -1\.0: .* needs costs of 0 or more"):
        cb.simulate({"p": policy}, bandit, cb.Horizon(20))
