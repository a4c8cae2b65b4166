"""UCB-BV1, vUCB-BV1, UCB1 and eps_n-greedy: known answers, literal transcriptions, what is refused."""

from functools import partial
from math import inf, log, sqrt

import numpy as np
import pytest
from reference import (
    INSTANCE,
    Index,
    bits,
    in_plain_python,
    index_value,
    literal_trajectory,
    run,
    same_record,
    stream,
    trajectory,
)

import costbandits as cb
from costbandits.engine.driver import DONE
from costbandits.policies import budget_ucb, classics
from costbandits.policies.base import Problem
from costbandits.policies.rules import by_sums

pytestmark = pytest.mark.filterwarnings("ignore:.*is above the smallest expected cost")

# Costs of a cent would make runs of thousands of pulls, and the slow players are slow.
FAMILIES = {"bernoulli": partial(cb.instances.bernoulli, cost_low=0.2), "discrete": cb.instances.generalized_bernoulli,
            "beta": partial(cb.instances.beta, low=1)}
INDICES = {"BV1": cb.UCBBV1(), "BV1 .1": cb.UCBBV1(exploration=0.1), "BV1 lambda .8": cb.UCBBV1(min_cost=0.8),
           "vBV1": cb.VUCBBV1(), "vBV1 .05": cb.VUCBBV1(exploration=0.05), "vBV1 lambda .6": cb.VUCBBV1(min_cost=0.6),
           "UCB1": cb.UCB1()}
POLICIES = {**INDICES, "greedy": cb.EpsilonGreedy(1.0, 0.5), "greedy 5": cb.EpsilonGreedy(5.0, 1.0)}


# ---- known answers ----------------------------------------------------------------------------------

def value(rule, t, n, r, c, *params, smallest=0.0):
    """The index of an arm with mean reward r and mean cost c."""
    return by_sums(rule)(t, n, n * r, n * c, 0.0, 0.0, smallest, np.array(params, float))


# At t = 17, n = 4: eps = sqrt(2 log(16) / 4) = sqrt(2 log 2) = 1.1774100225; at n = 40000 a hundredth of that. r = 1/2
# and c = 1/4, lambda = 0.1: 1 + 1/lambda = 11.
KNOWN = {
    "vBV1": (budget_ucb.vucb_bv1, (17, 4, 0.5, 0.25, 1.0), 21.42726537165),              # 2 + 1.5 * 11 * eps
    "vBV1, half as far": (budget_ucb.vucb_bv1, (17, 4, 0.5, 0.25, 0.5), 11.71363268583),
    "vBV1, log 1": (budget_ucb.vucb_bv1, (2, 1, 0.5, 0.25, 1.0), 2.0),
    "vBV1, zero cost": (budget_ucb.vucb_bv1, (17, 4, 0.5, 0.0, 1.0), inf),
    "BV1": (budget_ucb.ucb_bv1, (17, 40000, 0.5, 0.25, 1.0), 3.467994124256),            # 2 + 0.12951510 / 0.08822590
    "BV1, a hundredth": (budget_ucb.ucb_bv1, (17, 4, 0.5, 0.25, 0.01), 3.467994124256),
    "BV1, eps above lambda": (budget_ucb.ucb_bv1, (17, 4, 0.5, 0.25, 1.0), inf),         # printed: 2 - 12.0 < 0
    "BV1, log 1": (budget_ucb.ucb_bv1, (2, 1, 0.5, 0.25, 1.0), 2.0),
    "BV1, zero cost": (budget_ucb.ucb_bv1, (17, 40000, 0.5, 0.0, 1.0), inf),
    "UCB1": (classics.ucb1, (17, 4, 0.5, 0.25), 1.677410022515),
    "UCB1, zero cost": (classics.ucb1, (17, 4, 0.5, 0.0), 1.677410022515),
    "UCB1, log 1": (classics.ucb1, (2, 1, 0.5, 0.25), 0.5),
}


@pytest.mark.parametrize("case", KNOWN)
def test_indices_by_hand(case):
    rule, arguments, expected = KNOWN[case]
    assert value(rule, *arguments, smallest=0.1) == pytest.approx(expected, rel=1e-11)


def test_ucb_bv1_has_its_pole_at_lambda():
    eps = sqrt(2 * log(16) / 4)
    assert value(budget_ucb.ucb_bv1, 17, 4, 0.5, 0.25, 1.0, smallest=eps) == inf
    # Near it and far, 2 + (1 + 1/lambda) eps / (lambda - eps); on its other side it would be negative.
    for off in (1e-6, 0.5, 3.0):
        assert value(budget_ucb.ucb_bv1, 17, 4, 0.5, 0.25, 1.0, smallest=eps * (1 + off)) == pytest.approx(
            2 + (1 + 1 / (eps * (1 + off))) / off, rel=1e-9)
    assert value(budget_ucb.ucb_bv1, 17, 4, 0.5, 0.25, 1.0, smallest=0.5 * eps) == inf


def ask(t, n, reward, cost, c, d, rng=None):
    n, reward, cost = np.array(n), np.array(reward, float), np.array(cost, float)
    nothing = np.zeros(len(n))
    return by_sums(classics.epsilon_greedy)(t, n, reward, cost, reward, cost, nothing, np.array([c, d], float), nothing,
                                            rng or np.random.default_rng(0))


def test_epsilon_greedy_by_hand():
    assert [ask(t, [0, 0, 0], [0, 0, 0], [0, 0, 0], 1, 1) for t in (1, 2, 3)] == [0, 1, 2]
    late = 10**12                                                                   # exploring has probability 3e-12
    assert ask(late, [2, 2, 2], [1, 2, 1], [1, 1, 1], 1, 1) == 1
    assert ask(late, [1, 4, 2], [1, 3, 1], [1, 1, 1], 1, 1) == 0                    # means, not sums
    assert ask(late, [2, 2, 2], [1, 2, 1], [0, 9, 0], 1, 1) == 1                    # costs are ignored
    assert ask(late, [2, 2, 4], [1, 1, 2], [1, 1, 1], 1, 1) == 0                    # a tie: the lowest position


@pytest.mark.parametrize(("t", "c", "d", "chance"), [(48, 1, 0.5, 0.25), (60, 5, 1, 0.25), (11, 1, 0.5, 1)])
def test_epsilon_greedy_explores_with_probability_cK_over_d2t(t, c, d, chance):
    rng, rounds = np.random.default_rng(3), 10_000
    chosen = np.bincount([ask(t, [2, 2, 3], [0, 2, 0], [1, 1, 1], c, d, rng) for _ in range(rounds)], minlength=3)
    # Each of the arms 0 and 2 with a third of the chance; 5 standard errors, a false alarm once in 800,000 tests.
    share = chance / 3
    assert (np.abs(chosen[[0, 2]] / rounds - share) < 5 * sqrt(share * (1 - share) / rounds)).all()


def test_what_prepare_tells():
    costs = Problem(3, np.array([0.3, 0.2, 0.7]), 100.0, False)
    for make in (cb.UCBBV1, cb.VUCBBV1):
        assert make().prepare(costs).tolist() == [0.2] * 3 and make().parameters.tolist() == [1.0]
        assert make(min_cost=0.1).prepare(costs).tolist() == [0.1] * 3
    assert cb.EpsilonGreedy(3, 0.2).parameters.tolist() == [3.0, 0.2]


# ---- literal transcriptions -------------------------------------------------------------------------

def bv1(exploration=1.0, min_cost=None):
    """Xia et al., Eq. (20-b), infinite where the denominator is not positive."""
    def index(t, arm, lam):
        lam, eps = min_cost or lam, exploration * sqrt(2 * log(t - 1) / arm.n)
        return arm.r / arm.c + (1 + 1 / lam) * eps / (lam - eps) if arm.c > 0 and lam > eps else inf
    return index


def vbv1(exploration=1.0, min_cost=None):
    """Xia et al., Eq. (20-a)."""
    def index(t, arm, lam):
        lam, eps = min_cost or lam, exploration * sqrt(2 * log(t - 1) / arm.n)
        return arm.r / arm.c + 1.5 * (1 + 1 / lam) * eps if arm.c > 0 else inf
    return index


class LiteralGreedy(Index):
    """Auer et al. (2002), Fig. 3, after each arm once: a random arm with probability min(1, c K / (d^2 t))."""

    def __init__(self, c, d):
        super().__init__(lambda t, arm, lam: arm.r)
        self.c, self.d = c, d

    def choose(self, t, arms, lam, rng):
        if t > len(arms) and rng.random() < min(1, self.c * len(arms) / (self.d**2 * t)):
            return int(rng.random() * len(arms))
        return super().choose(t, arms, lam, rng)


LITERAL = {"BV1": Index(bv1()), "BV1 .1": Index(bv1(0.1)), "BV1 lambda .8": Index(bv1(min_cost=0.8)),
           "vBV1": Index(vbv1()), "vBV1 .05": Index(vbv1(0.05)), "vBV1 lambda .6": Index(vbv1(min_cost=0.6)),
           "UCB1": Index(lambda t, arm, lam: arm.r + sqrt(2 * log(t - 1) / arm.n)),
           "greedy": LiteralGreedy(1.0, 0.5), "greedy 5": LiteralGreedy(5.0, 1.0)}


def path(label, family, K, replication, length=120):
    bandit = FAMILIES[family](K)(stream(2025, replication, INSTANCE))
    budget = length * bandit.cost_means.mean()
    return bandit, budget, literal_trajectory(LITERAL[label], bandit, budget, 2025, replication)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("label", POLICIES)
@pytest.mark.slow
def test_pull_for_pull(label, family):
    for replication, K in enumerate((2, 5)):
        bandit, budget, literal = path(label, family, K, replication)
        policy = POLICIES[label]
        if "greedy" in label:           # its kernel plays by the same law, but not pull for pull: see test_classics
            policy = cb.ChoosePolicy(policy.rule, policy.parameters)
        found = trajectory(policy, bandit, budget, 2025, replication, len(literal))
        assert found.tolist() == literal.tolist()


def test_the_transcriptions_differ():
    """Or pull for pull would test little: on Beta outcomes each goes its own way, and changes arms over and over."""
    paths = {label: path(label, "beta", 4, 1)[2].tolist() for label in POLICIES}
    assert len({tuple(each) for each in paths.values()}) == len(paths)
    for label, each in paths.items():
        # UCB-BV1 with a small lambda knows of no arm enough to compare it: it stays with the first.
        assert (np.diff(each) != 0).sum() > 5 or label == "BV1"


@pytest.mark.parametrize("K", [1, 2, 10, 60])
@pytest.mark.parametrize("family", FAMILIES)
def test_lazy_is_full_scan(family, K):
    bandit = FAMILIES[family](K)(stream(8, K, INSTANCE))
    marks = 1500 * np.median(bandit.cost_means) * np.arange(1, 41) / 40
    for policy in INDICES.values():
        lazy, full = (run(policy, bandit, marks, fast=lazy) for lazy in (True, False))
        assert lazy[0] == full[0] == DONE
        assert same_record(lazy[1], full[1])


def test_no_index_falls_while_its_arm_rests():
    """What the lazy scan relies on, on random statistics, poles included."""
    rng, poles = np.random.default_rng(6), 0
    for label, policy in INDICES.items():
        for _ in range(300):
            n, smallest = int(rng.integers(1, 2000)), rng.uniform(0.01, 0.9)
            r, c = rng.random(), rng.random() * rng.random()
            values = np.array([policy.rule(int(t), n, n * r, n * c, 0.0, 0.0, smallest, policy.parameters)
                               for t in n + 1 + np.arange(0, 20_000, 2500)])
            assert (values >= 0).all() and (values[1:] >= values[:-1] * (1 - 1e-12)).all(), label
            poles += values[-1] == inf > values[0]
    assert poles > 10


# ---- what is refused --------------------------------------------------------------------------------

BAD = [0, -1, float("nan"), inf, "a", True]


@pytest.mark.parametrize("make", [cb.UCBBV1, cb.VUCBBV1])
@pytest.mark.parametrize("name", ["min_cost", "exploration"])
@pytest.mark.parametrize("bad", BAD)
def test_lambda_and_exploration_must_be_positive(make, name, bad):
    with pytest.raises(ValueError, match=rf"{name} = .*must be a finite number above 0"):
        make(**{name: bad})


@pytest.mark.parametrize("bad", [*BAD, None])
def test_c_must_be_positive(bad):
    with pytest.raises(ValueError, match=r"c = .*must be a finite number above 0"):
        cb.EpsilonGreedy(bad, 0.5)


@pytest.mark.parametrize("bad", [*BAD, None, 1.5])
def test_d_is_a_gap_of_rewards(bad):
    with pytest.raises(ValueError, match=r"d = .*must be (a finite number above 0|in \(0, 1\])"):
        cb.EpsilonGreedy(1.0, bad)


@pytest.mark.parametrize("policy", [cb.UCBBV1(), cb.VUCBBV1(), cb.UCB1()])
def test_outcomes_must_lie_between_0_and_1(policy):
    half, large = cb.Bernoulli(0.5), cb.Discrete([0, 2], [0.5, 0.5])
    for bandit, what in ((cb.Bandit([half], [large]), "cost"), (cb.Bandit([large], [half]), "reward")):
        with pytest.raises(ValueError, match=rf"{what} support = .*{type(policy).__name__}.* in \(0\.0, 1\.0\)"):
            cb.simulate({"p": policy}, bandit, cb.Budget(5))


def test_epsilon_greedy_takes_outcomes_of_any_size_and_ignores_costs():
    bandit = cb.Bandit([cb.Constant(-9.0), cb.Constant(-7.0), cb.Constant(-8.0)], [cb.Constant(v) for v in (3, 9, 3)])
    pulls = cb.simulate({"p": cb.EpsilonGreedy(1.0, 1.0)}, bandit, cb.Budget(9000), 3).pulls[0, :, -1]
    # About 3 (1 + log(1000 / 3)) = 20 of some 1000 pulls explore; the best arm must have nearly all others.
    assert (pulls.argmax(axis=1) == 1).all() and (pulls[:, 1] > 900).all()


def test_the_store_tells_them_apart():
    from costbandits.engine import fingerprint
    others = [*POLICIES.values(), cb.UCBBV1(min_cost=0.2), cb.EpsilonGreedy(1.0, 0.25), cb.BudgetUCB()]
    assert len({fingerprint.digest(policy) for policy in others}) == len(others)


# ---- the same bits everywhere -----------------------------------------------------------------------

def everything(**options):
    runs = {family: cb.simulate(POLICIES, make(5), cb.Budget(12), 3, seed=4, checkpoints=10, **options)
            for family, make in FAMILIES.items()}
    return bits(runs, "pulls", "rounds", "skips", "spent", "reward")


def test_workers_change_nothing():
    assert everything(n_jobs=2) == everything(n_jobs=1)


@pytest.mark.slow
def test_compiled_and_plain_python_agree_bit_by_bit():
    assert in_plain_python("test_budget_ucb", "m.everything()") == everything()


@pytest.mark.parametrize("make", [cb.BudgetUCB, cb.UCBBV1, cb.VUCBBV1])
def test_a_lambda_that_is_no_lower_bound_is_allowed_and_reported(make):
    bandit = cb.Bandit([cb.Bernoulli(0.5)] * 2, [cb.Bernoulli(0.5), cb.Bernoulli(0.4)])
    with pytest.warns(UserWarning, match=r"min_cost = 0\.45 is above the smallest expected cost, 0\.4"):
        assert cb.simulate({"p": make(min_cost=0.45)}, bandit, cb.Budget(20)).rounds[0, 0, -1] > 20


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
    assert index_value(budget_ucb.budget_ucb, *arguments, constant=0.1) == pytest.approx(expected, rel=1e-11)
