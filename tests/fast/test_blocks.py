"""Blocks of pulls change nothing: pull for pull a run by blocks is the full scan's, on the same stacks."""

import math

import numba as nb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import FAMILIES, INDICES, INSTANCE, proving, stream

import costbandits as cb
from costbandits import fast as kernels
from costbandits.engine.compilation import around, compiled_for
from costbandits.engine.driver import DONE, LAST_ROUND, pull_many
from costbandits.engine.numerics import SLACK
from costbandits.engine.run import Run
from costbandits.engine.stacks import Stacks
from costbandits.engine.state import Arm, Arms, Money
from costbandits.fast.lower import lower_bound, lower_for, lower_of
from costbandits.policies.base import Problem
from costbandits.studies.study import FURTHEST, PATIENCE, PROBED, Study

RULES = {**INDICES, "UCB1": cb.UCB1(), "Budget-UCB": cb.BudgetUCB(0.125), "UCB-BV1": cb.UCBBV1(0.125, 0.01),
         "vUCB-BV1": cb.VUCBBV1(0.125, 0.1), "UCB1, costs": cb.FractionalKUBE(),
         "KL-UCB, costs": cb.KLUCB()}
BORDERS = sorted({64 * leaf + d for leaf in (1, 2, 3, 4, 5, 8, 12, 16, 32, 64) for d in (-1, 0, 1)})
NO_LIMITS = (None, np.inf, 0.0)


class Typed(cb.Bernoulli):
    """A subclass may sample as it likes: its outcomes are drawn in Python."""


def play(policy, bandit, due, ends=None, limits=NO_LIMITS, seed=0, slots=64, rounds=10**9, stacks=None, fast=True):
    """A run below `simulate`, its arms in the bandit's order; what it is and how it ended."""
    K = bandit.K
    run = Run(stacks or Stacks(bandit, seed, 0, range(K), slots), due, rounds, *limits, ends)
    problem = Problem(K, bandit.cost_means, np.inf, known_costs=True, hard=limits is not NO_LIMITS)
    return run, kernels.play(policy, run, problem, None, fast)


def same(one, two):
    """Whether two runs are the same to the last bit, at all checkpoints and in the end."""
    return (all(a.tobytes() == b.tobytes() for a, b in zip(one.state.arms, two.state.arms, strict=True))
            and all(np.array_equal(*pair) for pair in zip(one.record, two.record, strict=True)))


def agree(policy, bandit, due, ends=None, **options):
    """Whether a run by blocks and the full scan, on the same stacks, are the same."""
    options["stacks"] = Stacks(bandit, options.pop("seed", 0), 0, range(bandit.K), 64)
    (blocks, status), (full, ended) = (play(policy, bandit, due, ends, fast=fast, **options) for fast in (True, False))
    assert status == ended and status in (DONE, LAST_ROUND)
    return same(blocks, full)


def never(ends):
    return np.full(len(ends), np.inf), np.array(ends)


# --- the same pulls

# Of an index that is solved for, the full scan of a hundred arms would take as long as all other rules together.
ARMS = [(rule, K) for rule in RULES for K in (1, 2, 10, 30 if "KL" in rule else 100)]
MANY_ARMS = [(rule, K) for rule, K in ARMS if K > 10 and rule not in ("omega 1/4", "omega* 1/4", "UCB-B2", "UCB1")]


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "K"), proving(ARMS, *MANY_ARMS))
def test_blocks_change_nothing(rule, K):
    """With budgets and rounds at the borders of blocks, one below and one above, and with a single checkpoint."""
    for family, make in FAMILIES.items():
        bandit = make(K)(stream(11, K, INSTANCE))
        budgets = np.array(BORDERS, float)
        assert agree(RULES[rule], bandit, budgets), family
        assert agree(RULES[rule], bandit, *never(BORDERS)), family
        for last in (4095, 4096, 4097) if K < 100 else ():
            assert agree(RULES[rule], bandit, [float(last)]) and agree(RULES[rule], bandit, *never([last]))


B, C, D = cb.Bernoulli, cb.Constant, cb.Discrete
TIES = {"equal": [(B(0.5), B(0.5))] * 3, "constant": [(C(0.5), C(1.0))] * 3, "two constants": [(C(0.5), C(0.5))] * 2,
        "two equal and a bad one": [(B(0.75), C(0.5)), (B(0.75), C(0.5)), (B(0.1), C(1.0))],
        "always and never": [(C(1.0), B(1)), (B(1), C(1.0)), (B(0), B(1)), (B(0), C(1.0))],
        "a constant among others": [(B(0.5), C(0.5)), (C(0.5), B(0.5)), (C(0.5), C(0.5)), (B(0.5), B(0.5))],
        "values alike": [(D([0, 0.5, 1], [0.25, 0.5, 0.25]), D([0.5, 1], [0.5, 0.5]))] * 4}
FREE = {"free": [(B(0.5), C(0.0)), (B(0.9), C(0.0)), (B(0.9), C(1.0))],
        "free and worthless": [(C(0.0), C(0.0))] * 2 + [(B(0), B(0))],
        "rarely free": [(B(0.5), B(0.02)), (B(0.5), B(0.02)), (B(0.5), B(1))]}


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
def test_ties_and_extreme_laws(rule):
    if rule.endswith(", costs"):
        pytest.skip("divides by a known cost")
    for laws in {**TIES, **FREE}.values():
        bandit = cb.Bandit(*zip(*laws, strict=True))
        assert agree(RULES[rule], bandit, *never(BORDERS[:18])) and agree(RULES[rule], bandit, *never([3001]))
    for laws in TIES.values():
        bandit = cb.Bandit(*zip(*laws, strict=True))
        assert agree(RULES[rule], bandit, np.array(BORDERS[:18], float)) and agree(RULES[rule], bandit, [1500.0])


@pytest.mark.slow
@pytest.mark.parametrize("K", [1, 2, 10, 100])
def test_hard_budgets(K):
    """Fractional KUBE and KL-UCB, whose costs are known, to the last affordable pull."""
    rng = np.random.default_rng(K)
    costs = rng.choice([0.25, 0.5, 0.75, 1.0, 2.0], K)
    for rewards in ([cb.Bernoulli(p) for p in rng.random(K)], [cb.Beta(a, 2) for a in 1 + rng.random(K)],
                    [cb.Bernoulli(0.5)] * K):
        bandit = cb.Bandit(rewards, [cb.Constant(cost) for cost in costs])
        for total in (63.0, 64.25, 127.5, 128.0, 129.0, 1024.0, 4095.0, 4096.25):
            for due in ([total], total * np.arange(1, 41) / 40):
                assert agree(cb.FractionalKUBE(), bandit, due, limits=(costs, total, 0.0))
                assert agree(cb.KLUCB(), bandit, due, limits=(costs, total, 0.0))


@pytest.mark.parametrize("rule", ["omega 1/4", "omega* 1/4", "m", "UCB-B2", "UCB1"])
def test_other_laws(rule):
    """Continuous ones, those of the reader's own, and arms of which only rewards or only costs are counted."""
    laws = [(cb.Beta(1, 2), B(0.5)), (B(0.4), cb.TruncatedNormal(0, 1, 0, 1)), (Typed(0.5), B(0.6)), (B(0.5), C(0.75)),
            (Typed(0.6), Typed(0.5)), (D([0, 0.25, 1], [0.25, 0.5, 0.25]), Typed(0.7))]
    for some in (laws, laws[2:3], laws[4:], laws[:2] + laws[3:4]):
        bandit = cb.Bandit(*zip(*some, strict=True))
        for due, ends in ((np.array(BORDERS, float), None), ([3000.0], None), never(BORDERS)):
            assert agree(RULES[rule], bandit, due, ends, seed=3)


@settings(max_examples=60)
@given(K=st.integers(1, 6), seed=st.integers(0, 2**32), rounds=st.booleans(),
       rule=st.sampled_from(["omega 1/4", "omega* 1/4", "m", "UCB-SC+"]),
       due=st.lists(st.integers(1, 6000), min_size=1, max_size=6, unique=True),
       chances=st.sampled_from([(0.5,), (0.02, 0.98), (0, 0.5, 1), (0.3, 0.7)]))
def test_any_bernoulli_arms(K, seed, rule, due, rounds, chances):
    rng = np.random.default_rng(seed)
    costs = [chance for chance in chances if chance > 0 or rounds]
    bandit = cb.Bandit([B(p) for p in rng.choice(chances, K)], [B(p) for p in rng.choice(costs, K)])
    end = never(sorted(due)) if rounds else (np.array(sorted(due), float), None)
    assert agree(RULES[rule], bandit, *end, seed=seed)


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["omega 1/4", "omega* 1/4", "m", "UCB-B2", "UCB1"])
@pytest.mark.parametrize("laws", proving(["counted", "typed"], "counted"))
def test_a_run_cut_anywhere_is_the_same(rule, laws):
    """After every round, and after some: what a loop remembers of the others is gone each time."""
    some = [(B(0.75), B(0.5)), (B(0.5), C(0.5)), (D([0, 0.25, 1], [0.25, 0.5, 0.25]), B(0.7))]
    if laws == "typed":
        some[0] = (Typed(0.75), B(0.5))
    bandit, due = cb.Bandit(*zip(*some, strict=True)), np.array([63.0, 64.0, 65.0, 320.0, 1500.0])
    whole, status = play(RULES[rule], bandit, due)
    assert status == DONE
    for step in (1, 7, 64, 500):
        cut, status = play(RULES[rule], bandit, due, rounds=step)
        while status == LAST_ROUND:
            cut.max_rounds += step
            status = kernels.play(RULES[rule], cut, Problem(3, bandit.cost_means, np.inf, True), None)
        assert status == DONE and same(whole, cut)


# --- sums that only grow

@pytest.mark.slow
@pytest.mark.parametrize("values", ([-1, 1], [-1, 0], [-0.5, 2]))
def test_negative_outcomes_are_pulled_one_by_one(values):
    """A block whose rewards or costs go up and down may have been left before its end."""
    odd = cb.Discrete(values, [0.25, 0.75])
    mine = cb.IndexPolicy(cb.CUCB.rule, (0.125,), monotone=True, regular=True)
    for seed in range(5):
        rewards = cb.Bandit([odd, cb.Discrete([-1, 1], [0.5, 0.5])], [C(1.0)] * 2)
        assert agree(mine, rewards, [3000.0], seed=seed)
        if odd.mean > 0:
            costs = cb.Bandit([B(0.5)] * 2, [odd, cb.Discrete([0.25, 0.5], [0.5, 0.5])])
            assert agree(mine, costs, [500.0], seed=seed) and agree(mine, costs, *never([3000]), seed=seed)


@pytest.mark.parametrize("rule", ["UCB1", "vUCB-BV1", "UCB1, costs"])
def test_outcomes_above_one_are_pulled_by_blocks(rule):
    """By a bound that does not ask for outcomes of at most 1, which would be wrong here."""
    rare, often = cb.Discrete([0, 9], [0.9, 0.1]), cb.Discrete([0.8, 1], [0.5, 0.5])
    for seed, cost in enumerate((cb.Constant(1.0), cb.Discrete([0, 6], [0.5, 0.5]), cb.Constant(7.0))):
        bandit = cb.Bandit([rare, often, cb.Bernoulli(0.2)], [cost] * 3)
        assert Stacks(bandit, 0, 0, range(3), 1).most == np.inf
        assert agree(RULES[rule], bandit, np.array([500.0, 20_000.0]), seed=seed)


@cb.index
def honest(t, n, reward, cost, reward_sq, cost_sq, constant, params):
    r, c, bonus, kind = reward / n, cost / n, np.sqrt(np.log(t) / n), params[0]
    if kind == 1.0:
        return r - 2.0 / np.sqrt(n) + np.log(t)     # rises with n
    if kind == 2.0:
        return 1.0 - reward_sq / n + bonus          # squares
    if kind == 3.0:
        return 1.0 - r + bonus                      # falls with the mean reward
    if kind == 4.0:
        return c + bonus                            # rises with the mean cost
    return r - c + bonus


BROKEN = {"rises with n": 1.0, "squares": 2.0, "falls with the mean reward": 3.0, "rises with the mean cost": 4.0}


@pytest.mark.slow
def test_a_promise_that_holds():
    policies = {name: cb.IndexPolicy(honest, (0.0,), monotone=regular, regular=regular)
                for name, regular in (("blocks", True), ("full", False))}
    runs = cb.simulate(policies, cb.instances.bernoulli(5), cb.Budget(3000), 3)
    assert np.array_equal(runs.pulls[0], runs.pulls[1])
    negative = cb.Bandit([cb.Discrete([-1, 1], [0.5, 0.5])] * 3, [B(0.5)] * 3)
    runs = cb.simulate(policies, negative, cb.Horizon(3000), 3)             # no more is promised of such sums
    assert np.array_equal(runs.pulls[0], runs.pulls[1])


@pytest.mark.parametrize("broken", BROKEN)
@pytest.mark.parametrize("K", [1, 5])
def test_a_broken_promise_is_refused(broken, K):
    """By name and with a round; of a single arm, too, where it can make no difference."""
    mine = cb.IndexPolicy(honest, (BROKEN[broken],), monotone=True, regular=True)
    with pytest.raises(ValueError, match=r"policy 'mine' regular = True: at round \d+ within a block of pulls its "
                                         r"index falls below what the promise allows: declare regular=False"):
        cb.simulate({"mine": mine}, cb.instances.bernoulli(K), cb.Budget(300))
    allowed = cb.IndexPolicy(honest, (BROKEN[broken],), monotone=True)
    bandit = cb.instances.bernoulli(K)(stream(0, 0, INSTANCE))
    assert agree(allowed, bandit, [300.0])


def test_a_promise_about_a_rule_of_the_librarys_is_checked_too():
    """Its index with a parameter that the library's own policy refuses falls with t."""
    with pytest.raises(ValueError, match=r"policy 'mine' monotone = True: at round \d+ its index decreases"):
        cb.simulate({"mine": cb.IndexPolicy(cb.CUCB.rule, (-0.5,), monotone=True)}, cb.instances.bernoulli(5),
                    cb.Budget(300))


def test_a_broken_promise_is_refused_where_it_made_no_difference():
    """Arms so different that the leader stays the leader."""
    bandit = cb.Bandit([B(1), B(0.01)], [B(0.05), C(1.0)])
    assert agree(cb.IndexPolicy(honest, (2.0,), monotone=True, regular=True), bandit, *never([5000]))
    with pytest.raises(ValueError, match=r"policy 'mine' regular = True: at round \d+ "):
        cb.simulate({"mine": cb.IndexPolicy(honest, (2.0,), monotone=True, regular=True)}, bandit, cb.Horizon(5000))


@cb.index
def greedy_from(t, n, reward, cost, reward_sq, cost_sq, constant, params):
    return (reward + (math.sqrt(n * math.log(t)) if t < params[0] else 0.0)) / cost if cost > 0 else math.inf


@pytest.mark.slow
def test_a_promise_that_breaks_late_is_refused():
    """After the 10,000 rounds that are compared with the full scan; and in a replication longer than the first."""
    bandit = cb.Bandit([B(p) for p in (0.5, 0.505, 0.51, 0.5)], [B(p) for p in (0.5, 0.5, 0.5, 0.505)])
    early, late, latest = (cb.IndexPolicy(greedy_from, (t,), monotone=True) for t in (1000, 1.2 * PROBED, 1.2e5))
    for policy, budget, zeros in ((late, PROBED, 3), (latest, 1e5, 4)):
        with pytest.raises(ValueError, match=rf"'x' monotone = True: at round 1[2-9]\d{{{zeros}}} its index decreases"):
            cb.simulate({"x": policy}, bandit, cb.Budget(budget))

    def stop(bandit):
        return cb.Budget(1000 * bandit.cost_means.min())

    assert cb.simulate({"x": early}, cb.instances.bernoulli(5), stop, 8).rounds.max() < 1000
    with pytest.raises(ValueError, match=r"policy 'x' monotone = True: at round 10\d\d its index decreases"):
        cb.simulate({"x": early}, cb.instances.bernoulli(5), stop, 9)


@cb.index
def optimistic(t, n, reward, cost, reward_sq, cost_sq, constant, params):
    return (reward + math.sqrt(n * math.log(t))) / cost if cost > 0 else math.inf


@lower_bound(optimistic)
@nb.njit
def far_too_high(t, m, arm, rewards, costs, params):
    return 1e6


class Bounded(cb.policies.base.IndexRule):
    """With a bound of its own for a block."""

    rule = staticmethod(optimistic)
    regular = False


def test_a_lower_that_is_too_high_is_refused_by_name():
    with pytest.raises(ValueError, match=r"policies\['x'\] = Bounded.*: at round \d+ its lower is above its "
                                         "index within a block"):
        cb.simulate({"x": Bounded()}, cb.instances.bernoulli(3), cb.Budget(100))


# --- the bound

@compiled_for()
def breach(index, lower, t, n, pairs, constant, params):
    """The first pull of a block after n pulls, of which the bound asked for at round t says too much; -1 for none."""
    sums = np.zeros((2, 4))
    for i in range(len(pairs)):
        part, x, y = int(i >= n), pairs[i, 0], pairs[i, 1]
        sums[part] += np.array([x, y, x * x, y * y])
    now, m = sums[0], len(pairs) - n
    least = lower(t, m, Arm(n, now[0], now[1], now[2], now[3], constant), sums[1, 0], sums[1, 1], params)
    for j in range(m):
        value = index(t + j, n + j, now[0], now[1], now[2], now[3], constant, params)
        if least > value + SLACK * abs(value) or value != value:
            return j
        x, y = pairs[n + j]
        now += np.array([x, y, x * x, y * y])
    return -1


def histories(rng, count):
    """Outcomes of one kind, in [0, 1]: all alike, Bernoulli, tenths, continuous; in an order of some kind."""
    kind = rng.integers(7)
    p = rng.choice([0.0, 1.0, 0.01, 0.99, 0.5, rng.random()])
    found = [np.full(count, p), (rng.random(count) < p) * 1.0, rng.integers(0, 11, count) / 10, rng.random(count),
             rng.beta(0.2, 0.2, count), np.full(count, 0.7), np.where(rng.random(count) < p, 0.1, 0.7)][kind]
    return [np.sort(found), np.sort(found)[::-1], found, found][rng.integers(4)]


@pytest.mark.parametrize(("most", "reward", "cost"), [(1.0, 9 / 15, 12 / 16), (math.inf, 9 / 20, 12 / 10)])
def test_the_bound_by_hand(most, reward, cost):
    """Ten pulls have paid 9 and cost 6; the next ten pay 5 and cost 6. If no outcome is above 1, at the worst moment
    five of them have paid nothing, or six have cost 1 each; if one may be, it may be the last, or the first."""
    bound, params = lower_of(cb.MUCB.rule, most), np.array([0.25])
    found = bound(100, 10, Arm(10, 9.0, 6.0, 9.0, 6.0, 0.0), 5.0, 6.0, params)
    assert found == pytest.approx(cb.MUCB.rule(100, 20, 20 * reward, 20 * cost, 0.0, 0.0, 0.0, params), rel=1e-15)


@pytest.mark.slow
@pytest.mark.parametrize("count", proving([500, 4000], 4000))
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("most", proving([1.0, math.inf], math.inf))
def test_no_index_falls_below_the_bound_within_a_block(rule, count, most):
    """Whatever was seen before, whatever comes, in the worst order, too: rewards at the end, costs at the beginning."""
    policy, rng, blocks = RULES[rule], np.random.default_rng(5), 0
    lower = lower_for(policy, most)
    first_breach = around(breach, policy.rule, lower)
    for _ in range(count):
        n, m = int(rng.choice([1, 2, 3, 10, 29, 30, 31, 64, 200])), int(rng.choice([1, 2, 4, 7, 30, 64, 256]))
        pairs = np.empty((n + m, 2))
        for part in (slice(n), slice(n, None)):
            for column in range(2):
                pairs[part, column] = histories(rng, len(pairs[part]))
        if rng.random() < 0.3:
            pairs[n:] = np.column_stack([np.sort(pairs[n:, 0]), np.sort(pairs[n:, 1])[::-1]])
        t = int(n + 1 + rng.choice([0, 1, 5, 100, 10**6, 10**12]))
        constant = float(rng.choice([0.125, 0.5, 1.0]))
        if rule.endswith(", costs"):
            pairs[:, 1] = constant
        assert first_breach(t, n, pairs, constant, policy.parameters) == -1, \
            "the index falls below its bound: set regular = False, and bring a lower bound as UCBB2 does"
        with np.errstate(all="ignore"):
            arm = Arm(n, *np.hstack([pairs[:n], pairs[:n]**2]).sum(axis=0).tolist(), constant)
        blocks += lower(t, m, arm, *pairs[n:].sum(axis=0).tolist(), policy.parameters) > -np.inf
    assert blocks > 0.975 * count, "the bound must say something nearly everywhere: bring a lower bound as UCBB2 does"


# --- many pulls of one arm

@compiled_for()
def pull_often(arm, steps, due, told, arms, outcomes):
    """Pull an arm so many times, or until so much is spent; what is known after each step."""
    money = Money(0.0, 0.0, 0.0)
    for i in range(len(steps)):
        money = pull_many(arm, steps[i], Money(money.spent, money.collected, due[i]), arms, outcomes)
        told[i, 0], told[i, 1], told[i, 2] = arms.n[arm], money.spent, money.collected


MANY = cb.Bandit([B(0.5), D([0, 0.25, 1], [0.5, 0.25, 0.25]), C(0.5), cb.Beta(1, 2), B(0.5), B(0.001)],
                 [B(0.25), D([0.5, 0.25, 1, 0], [0.25, 0.25, 0.25, 0.25]), C(0.25), B(0.5), cb.Beta(1, 2), B(0.01)])


def often(arm, steps, due, slots=16):
    made, told = Stacks(MANY, 0, 0, range(MANY.K), slots), np.zeros((len(steps), 3))
    arms = Arms.of(MANY.K)
    pull_often(arm, np.array(steps, np.int64), np.array(due, float), told, arms, made.outcomes())
    return told, np.array(arms)[1:, arm], made


@pytest.mark.slow
@settings(max_examples=150)
@given(arm=st.integers(0, MANY.K - 1), slots=st.sampled_from([1, 16]),
       steps=st.lists(st.tuples(st.one_of(st.integers(0, 3000), st.sampled_from([63, 64, 65, 128, 4096])),
                                st.one_of(st.just(np.inf), st.integers(0, 700))), min_size=1, max_size=5))
def test_many_pulls_are_single_pulls(arm, slots, steps):
    """The same pulls, sums and money, and the end right after the pull that reaches what is due."""
    sizes, due = zip(*steps, strict=True)
    told, sums, made = often(arm, sizes, due, slots)
    pairs = made.pairs(arm, sum(sizes) + 1)
    collected, spent = pairs.cumsum(axis=0).T
    n = 0
    for size, limit, (pulled, money, gain) in zip(sizes, due, told.tolist(), strict=True):
        reached = np.flatnonzero(np.append(0.0, spent)[n:] >= limit)
        n += min(size, int(reached[0]) if len(reached) else size)
        assert (pulled, money, gain) == pytest.approx((n, *([spent[n - 1], collected[n - 1]] if n else [0, 0])),
                                                      rel=1e-12, abs=0)
        assert pulled == n
    singly, sums_singly, _ = often(arm, [1] * n, [np.inf] * n)
    assert sums.tobytes() == sums_singly.tobytes()
    if MANY.costs[arm].support != (0.0, 1.0) or arm not in (3, 4):
        assert n == 0 or np.array_equal(singly[-1], told[-1])      # quarters add up exactly


def test_pulls_that_must_be_sampled_end_a_block():
    bandit = cb.Bandit([Typed(0.5)], [B(0.5)])
    made, told = Stacks(bandit, 0, 0, [0]), np.zeros((2, 3))
    run = Run(made, [np.inf], 10)
    made.read_on(run.outcomes, run.state.arms)
    pull_often(0, np.array([10**6, 5]), np.full(2, np.inf), told, run.state.arms, run.outcomes)
    pairs = made.pairs(0, 256)
    assert told.tolist() == [[256, *pairs.sum(axis=0)[::-1]]] * 2


# --- long runs

SOME = cb.instances.bernoulli(5)(np.random.default_rng(3))


def test_a_long_run_does_not_depend_on_slots():
    marks = 1e7 * np.arange(1, 51) / 50
    runs = [play(cb.OmegaUCB(), SOME, marks, slots=slots)[0] for slots in (1, 16, 2**15)]
    assert runs[0].state.now.rounds > 1.5e7 and same(runs[0], runs[1]) and same(runs[1], runs[2])


@pytest.mark.parametrize("rule", ["omega 1/4", "UCB-SC+", "UCB-B2", "m"])
def test_a_long_run_is_the_full_scan(rule):
    assert agree(RULES[rule], SOME, *never([50_000, 2**17, 200_000]))
    assert agree(RULES[rule], cb.instances.bernoulli(5)(np.random.default_rng(4)), [200_000.0])


def test_a_trillion():
    """As plausible as can be told: all is spent, the money is that of the pulls, and the best arm has nearly all."""
    policies = {"omega": cb.OmegaUCB(), "m": cb.MUCB(), "SC+": cb.UCBSCPlus()}
    runs = cb.simulate(policies, SOME, cb.Budget(1e12), checkpoints=[0.001, 0.5, 1])
    due = np.array([1e9, 5e11, 1e12])
    assert (runs.spent >= due * (1 - 1e-12)).all() and (runs.spent <= due + 1).all()
    assert (runs.pulls.sum(axis=-1) == runs.rounds).all()
    best = np.argmax(SOME.reward_means / SOME.cost_means)
    assert (runs.pulls[:2, 0, :, best] > 0.9999 * runs.rounds[:2, 0]).all() and (runs.pulls > 0).all()
    for money, laws in ((runs.reward, SOME.rewards), (runs.spent, SOME.costs)):
        means, variances = np.array([law.mean for law in laws]), np.array([law.variance for law in laws])
        # Pulls are chosen by what was seen, so this is no exact test; six standard deviations leave room for that.
        assert (np.abs(money - runs.pulls @ means) < 6 * np.sqrt(runs.pulls @ variances)).all()


def test_how_many_rounds_a_run_may_have():
    study = Study({"m": cb.MUCB()}, SOME, cb.Budget(9), 0, np.array([1.0]), None)
    laws = {FURTHEST: B(0.5), PATIENCE: cb.Beta(1, 1)}
    for rounds, law in laws.items():
        assert study.limit(cb.MUCB(), Stacks(cb.Bandit([law], [B(0.5)]), 0, 0, [0], 1), cb.Budget(9)) == rounds
    negative = Stacks(cb.Bandit([cb.Discrete([-1, 1], [0.5, 0.5])], [B(0.5)]), 0, 0, [0], 1)
    assert study.limit(cb.FractionalKUBE(), negative, cb.Budget(9)) == PATIENCE
    assert study.limit(cb.FractionalKUBE(), negative, cb.Horizon(10**9)) == 10**9
    runs = [cb.simulate({"m": cb.MUCB()}, SOME, cb.Budget(1e6), max_rounds=rounds).pulls for rounds in (None, 2**62)]
    assert np.array_equal(*runs)
    with pytest.raises(ValueError, match=r"max_rounds = 4611686018427387905: must be at most 2\*\*62"):
        cb.simulate({"m": cb.MUCB()}, SOME, cb.Budget(9), max_rounds=2**62 + 1)
    with pytest.raises(RuntimeError, match="round 1000001: the run did not end within max_rounds = 1000000"):
        cb.simulate({"m": cb.MUCB()}, SOME, cb.Budget(1e9), max_rounds=10**6)


@pytest.mark.parametrize("rounds", [2**53 + 1, 2**61 - 1, 2**61, 2**62])
def test_the_longest_horizons(rounds):
    """Rounds are whole numbers all the way: of a single arm, or of one that leads by far."""
    for arms in ([(B(0.3), B(0.7))], [(B(0.3), B(0.7)), (C(1.0), C(0.001))]):
        runs = cb.simulate({"omega": cb.OmegaUCB()}, cb.Bandit(*zip(*arms, strict=True)), cb.Horizon(rounds),
                           checkpoints=[1])
        assert runs.rounds.tolist() == [[[rounds]]] and runs.pulls.sum() == rounds
        means = [law.mean for law, _ in arms]
        assert runs.reward[0, 0, 0] == pytest.approx(runs.pulls[0, 0, 0] @ means, rel=1e-6)
