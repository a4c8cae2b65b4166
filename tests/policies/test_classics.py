"""Indices against numbers worked out by hand; the greedy rules' kernel plays what the definitions say, in law."""

from functools import cache, partial
from math import inf, log, sqrt

import chains
import numpy as np
import pytest
from reference import choice_of, digest, in_plain_python, index_value, proving

import costbandits as cb
from costbandits import fast
from costbandits.engine.run import Run
from costbandits.engine.stacks import Stacks
from costbandits.engine.state import new_record
from costbandits.engine.thinning import CLOCK, look_ahead
from costbandits.fast import greedy
from costbandits.policies import classics
from costbandits.policies.base import Policy, Problem

# What each compares, from pulls, sum of rewards and sum of costs; how often it explores, times t.
MEAN = (cb.EpsilonGreedy(2.0, 0.8), lambda n, r, c: r / n, lambda K: 2.0 * K / 0.64)
RATIO = (cb.BGreedy(), lambda n, r, c: r / c if c > 0 else np.inf, float)
COINS = cb.Bandit([cb.Bernoulli(p) for p in (0.3, 0.8, 0.6)], [cb.Bernoulli(p) for p in (0.2, 0.6, 0.5)])
HALVES = cb.Discrete((0.0, 0.5, 1.0), (0.3, 0.3, 0.4))
EQUAL = cb.Bandit([cb.Constant(0.5)] * 3, [cb.Constant(1.0)] * 3)
FREE = cb.Bandit([cb.Constant(0.5), cb.Constant(0.0), cb.Bernoulli(0.5)],
                 [cb.Bernoulli(0.02), cb.Constant(0.5), HALVES])
BELOW = cb.Bandit([cb.Discrete((-3.0, 1.0), (0.4, 0.6)), cb.Constant(-0.7)], [cb.Bernoulli(0.5)] * 2)
SMOOTH = cb.Bandit([cb.Beta(2, 3), cb.Beta(3, 2)], [cb.Beta(2, 2), cb.Beta(1, 1)])


class Coin:
    """A law that the trees do not know."""

    mean, variance, support = 0.6, 0.24, (0.0, 1.0)

    def sample(self, rng, size):
        return (rng.random(size) < 0.6).astype(float)


OWN = cb.Bandit([Coin(), cb.Bernoulli(0.5)], [cb.Bernoulli(0.5), cb.Constant(0.5)])
CASES = {"coins": (COINS, cb.Budget(20)), "equal": (EQUAL, cb.Budget(30)), "free": (FREE, cb.Budget(20)),
         "below": (BELOW, cb.Budget(60)), "smooth": (SMOOTH, cb.Budget(120)), "own": (OWN, cb.Budget(170)),
         "long": (cb.Bandit(COINS.rewards[1:], COINS.costs[1:]), cb.Budget(400)), "rounds": (COINS, cb.Horizon(64)),
         "values": (cb.Bandit([HALVES, cb.Constant(0.5)], [HALVES, HALVES]), cb.Budget(300)),
         "falls": (cb.Bandit([cb.Discrete((-30.0, 1.0), (0.02, 0.98)), cb.Constant(0.25)], [cb.Constant(1.0)] * 2),
                   cb.Budget(60))}


def chances(value, often, K, sums, n):
    """Of each arm in the next round, as the definitions have it."""
    t = sum(n) + 1
    if t <= K:
        return np.eye(K)[t - 1]
    values = [value(n[k], sums[0, k, n[k]], sums[1, k, n[k]]) for k in range(K)]
    explores = min(often / t, 1.0)
    return explores / K + (1 - explores) * np.eye(K)[values.index(max(values))]


class Defined(Policy):
    """A policy that no kernel plays, but its definition."""

    def __init__(self, policy):
        self.policy = policy

    def play(self, run, problem, rng):
        return self.policy.play(run, problem, rng)


RULES = {"mean": MEAN, "ratio": RATIO}


@cache
def law_of(rule, case, fraction):
    """The exact law of the pulls at a checkpoint, on the stacks of seed 0."""
    (_, value, explores), (bandit, stop) = RULES[rule], CASES[case]
    sums, due = chains.sums_of(chains.stacks_of(bandit), 1200), stop.due([fraction])[0]

    def ended(n):
        if stop.horizon:
            return sum(n) >= stop.ends(fraction)
        return sum(sums[1, k, n[k]] for k in range(bandit.K)) >= due

    return chains.law(bandit.K, partial(chances, value, explores(bandit.K), bandit.K, sums), ended)


LAWS = [(rule, case, player) for rule in RULES for case in CASES for player in ("kernel", "definition")]
SHORT = [("mean", "own", "kernel"), ("mean", "values", "definition"), ("ratio", "smooth", "kernel"),
         ("ratio", "below", "kernel"), ("ratio", "coins", "definition")]


@pytest.mark.parametrize(("rule", "case", "player"), proving(LAWS, *{*LAWS} - {*SHORT}))
@pytest.mark.slow
def test_the_law_of_the_pulls(rule, case, player):
    """At two checkpoints, against the exact law on the same stacks: a false alarm once in a million each."""
    (policy, *_), (bandit, stop) = RULES[rule], CASES[case]
    policy = policy if player == "kernel" else Defined(policy)
    assert (fast.kernel_of(policy) is not None) is (player == "kernel")
    found = chains.runs(policy, bandit, stop, chains.stacks_of(bandit), 6000, (0.45, 1.0))
    for fraction, pulls in zip((0.45, 1.0), found, strict=True):
        expected = law_of(rule, case, fraction)
        assert sum(expected.values()) == pytest.approx(1, abs=1e-8)
        assert chains.p_value(pulls, expected) > 1e-6


class Unexplored(Run):
    """A run of a greedy kernel in which the probability of exploring is 0."""

    def play(self, loop, own, rng):
        return super().play(loop, own._replace(often=0.0), rng)


@pytest.mark.slow
@pytest.mark.parametrize("rule", [MEAN, RATIO], ids=["mean", "ratio"])
@pytest.mark.parametrize("case", CASES)
def test_without_exploring_it_is_the_greedy_scan(case, rule):
    """Pull for pull at many checkpoints: exploring in no round but the first K leaves nothing to chance."""
    (policy, value, _), (bandit, _) = rule, CASES[case]
    for seed in range(4):
        stacks, total = chains.stacks_of(bandit, seed), 700.0
        sums, due = chains.sums_of(stacks, 5000), np.linspace(1, total, 97)
        run = Unexplored(stacks, due, 4000)
        fast.play(policy, run, Problem.of(bandit, cb.Budget(total), np.arange(bandit.K)), np.random.default_rng(0))
        n, spent, checkpoint = [0] * bandit.K, 0.0, 0
        for t in range(4000):
            chosen = chances(value, 0.0, bandit.K, sums, n).argmax()
            n[chosen] += 1
            spent = sum(sums[1, k, n[k]] for k in range(bandit.K))
            while checkpoint < due.size and spent >= due[checkpoint]:
                assert run.record.pulls[checkpoint].tolist() == n and run.record.noted["rounds"][checkpoint] == t + 1
                checkpoint += 1
        assert run.state.now.checkpoint == checkpoint and (checkpoint == due.size or run.state.arms.n.tolist() == n)


@pytest.mark.parametrize("rule", [MEAN, RATIO], ids=["mean", "ratio"])
def test_the_pull_that_crosses_the_budget_is_the_last(rule):
    """Whatever the blocks: with costs of 0 and 1 the spending at a checkpoint is the next whole number."""
    due = np.unique(np.geomspace(50, 1e7, 400).astype(int))
    stop = cb.Budget(float(due[-1]))
    runs = cb.simulate({"p": rule[0]}, COINS, stop, 3, checkpoints=(due - 0.5) / stop.total)
    assert (runs.spent[0] == due).all() and (runs.rounds[0] == runs.pulls[0].sum(axis=2)).all()


@pytest.mark.parametrize("rule", [MEAN, RATIO], ids=["mean", "ratio"])
@pytest.mark.parametrize("bandit", [COINS, SMOOTH, OWN], ids=["coins", "smooth", "own"])
def test_checkpoints_change_nothing(rule, bandit):
    for stop in (cb.Budget(3000.0), cb.Horizon(5000)):
        many, few = (cb.simulate({"p": rule[0]}, bandit, stop, 3, checkpoints=count) for count in (60, 3))
        assert np.array_equal(many.pulls[:, :, 19::20], few.pulls)
        assert np.array_equal(many.spent[:, :, 19::20], few.spent)


@pytest.mark.slow
def test_the_number_of_exploring_rounds():
    """In 1e12 rounds; 5 standard deviations of a sum of independent draws: a false alarm once in a million each."""
    bandit = cb.Bandit([cb.Constant(1.0), *[cb.Constant(0.0)] * 9], [cb.Constant(1.0)] * 10)
    for policy, often in ((cb.BGreedy(), 10.0), (cb.EpsilonGreedy(5.0, 0.25), 800.0)):
        pulls = cb.simulate({"p": policy}, bandit, cb.Horizon(10**12), 20, checkpoints=1).pulls[0, :, 0]
        others = (10**12 - pulls.max(axis=1)).sum()
        # Those that are certain, and then the sum of often / t; nine of ten exploring rounds pull another arm.
        mean = 20 * (9 + 0.9 * (often - 10 + often * np.log(1e12 / often)))
        assert abs(others - mean) < 5 * np.sqrt(mean) + 20


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.9, 0.2, 0.003])
def test_candidates_come_at_their_rate(rate):
    """The wait is geometric, cut off at the end of the stretch: a false alarm once in a million."""
    clock, rng, stretch = new_record(CLOCK), np.random.default_rng(1), 40
    found = []
    for _ in range(20_000):
        look_ahead(clock, rng, 100, stretch, rate)
        assert clock.until - clock.candidate == (clock.candidate < 140) and 100 <= clock.candidate <= 140
        found.append(int(clock.candidate) - 100)
    expected = {i: rate * (1 - rate)**i for i in range(stretch)} | {stretch: (1 - rate)**stretch}
    assert chains.p_value(found, expected) > 1e-6


@pytest.mark.parametrize("rule", [MEAN, RATIO], ids=["mean", "ratio"])
def test_by_their_definitions_on_request(rule):
    """Without kernels the rule is asked in every round, as if the reader had typed it."""
    policies = {"mine": cb.ChoosePolicy(rule[0].rule, rule[0].parameters), "p": rule[0]}
    for bandit, stop in CASES.values():
        mine, slow, quick = (cb.simulate({label: policies[label]}, bandit, stop, 4, seed=5, checkpoints=10, fast=way)
                             for label, way in (("mine", True), ("p", False), ("p", True)))
        for name in ("pulls", "rounds", "spent", "reward"):
            assert np.array_equal(getattr(slow, name), getattr(mine, name))
        assert bandit is EQUAL or not np.array_equal(slow.pulls, quick.pulls)


def everything(**options):
    policies = {"mean": MEAN[0], "ratio": RATIO[0]}
    every = [cb.simulate(policies, bandit, stop, 3, seed=4, checkpoints=10, **options)
             for bandit, stop in CASES.values() if bandit is not OWN]
    return digest(*(getattr(runs, name) for runs in every for name in ("pulls", "rounds", "spent", "reward")))


@pytest.mark.slow
def test_the_same_bits_in_plain_python():
    assert in_plain_python("test_classics", "m.everything()") == everything() == everything(n_jobs=2)


def test_what_they_need():
    for policy in (MEAN[0], RATIO[0]):
        with pytest.raises(ValueError, match="a hard budget"):
            policy.check(Problem(2, np.ones(2), 10.0, True, hard=True))


@pytest.mark.parametrize("policy", [MEAN[0], RATIO[0]])
@pytest.mark.parametrize("values", [(-100.0, 101.0), (-1.0, 1.2)])
def test_where_costs_can_be_negative_a_run_ends_when_the_budget_is_first_reached(policy, values):
    odd, budget = cb.Bandit([cb.Bernoulli(0.5)], [cb.Discrete(values, (0.5, 0.5))]), 20 * values[1]
    rounds = cb.simulate({"p": policy}, odd, cb.Budget(budget), replications=20).rounds[0, :, -1]
    for replication, ended in enumerate(rounds.tolist()):
        spent = np.cumsum(Stacks(odd, 0, replication, [0]).pairs(0, ended)[:, 1])
        assert spent[-1] >= budget * (1 - 1e-9) and (spent[:-1] < budget * (1 - 1e-9)).all()


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
    assert index_value(rule, *arguments, constant=1.0) == pytest.approx(expected, rel=1e-11)


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
    found = index_value(classics.ucb_b2, 2, n, 0.5, c, constant=smallest, v_r=v, v_c=v)
    assert found == pytest.approx(expected, rel=1e-11)


def test_ucb_b2_takes_the_largest_variance_for_a_single_sample():
    # n = 1, c = 6: e = sqrt(x / 2) + 3 x = 5.0143109012 < 6; q = 0.5 / 6 = 1/12; 1/12 + 1.4 (e + e/12) / 6
    expected = 1 / 12 + 1.4 * (13 / 12) * 5.014310901213 / 6
    assert index_value(classics.ucb_b2, 2, 1, 0.5, 6.0) == pytest.approx(expected, rel=1e-11)


def test_b_greedy_by_hand():
    assert [choice_of(classics.b_greedy, t, [0, 0, 0], [0, 0, 0], [0, 0, 0]) for t in (1, 2, 3)] == [0, 1, 2]
    late = 10**12                                                                   # exploring has probability 3e-12
    assert choice_of(classics.b_greedy, late, [2, 2, 2], [1, 2, 1], [1, 1, 1]) == 1
    assert choice_of(classics.b_greedy, late, [2, 2, 2], [1, 2, 0], [1, 1, 0]) == 2       # zero cost: infinite
    assert choice_of(classics.b_greedy, late, [2, 2, 2], [2, 2, 1], [1, 1, 1]) == 0       # a tie: the lowest position


def test_b_greedy_explores_with_probability_K_over_t():
    rng, rounds = np.random.default_rng(3), 20_000
    chosen = [choice_of(classics.b_greedy, 8, [2, 2, 3], [0, 2, 0], [1, 1, 1], rng=rng) for _ in range(rounds)]
    # Arms 0 and 2 with probability 3/8 * 2/3 = 1/4 together; 5 standard errors: a false alarm once in a million.
    assert abs(np.mean(np.array(chosen) != 1) - 0.25) < 5 * sqrt(0.25 * 0.75 / rounds)


def test_how_long_a_mean_stays_above_by_hand():
    # 3 pulls of 2 in all: with m more of nothing 2 / (3 + m) is above 1/4 while m < 5; without a lowest reward never.
    assert greedy.room(2.0, 3.0, 0.25, 0.0) == pytest.approx(5.0, rel=1e-6)
    assert greedy.room(2.0, 3.0, 0.25, -inf) == 0.0
