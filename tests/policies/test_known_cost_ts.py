"""Thompson sampling over known costs: the law of few draws, against the definition's by quadrature."""

import inspect
from functools import cache, partial
from math import inf

import chains
import mpmath
import numba as nb
import numpy as np
import pytest
from reference import digest, in_plain_python, proving
from scipy.stats import beta, binom

import costbandits as cb
from costbandits.checks import rounding
from costbandits.engine.compilation import Kernel, around
from costbandits.engine.driver import Money
from costbandits.engine.state import Arms, new_record
from costbandits.engine.thinning import CLOCK
from costbandits.fast import known_cost_ts as ts

ALARM = 1e-6        # of a false alarm


class Law:
    """How likely each arm has the largest score, by Gauss's rule on panels of R in [0, 1]; k's ends where j's is 1."""

    def __init__(self, costs, panels=24, order=24):
        nodes, weights = np.polynomial.legendre.leggauss(order)
        self.costs, self.nodes, self.weights = costs, [], []
        for own in costs:
            ends = np.union1d(np.linspace(0, 1, panels + 1), [own / cost for cost in costs if cost > own])
            half = np.diff(ends)[:, None] / 2
            self.nodes.append((ends[:-1, None] + half * (1 + nodes)).ravel())
            self.weights.append((half * weights).ravel())
        self.density, self.below = cache(self.density), cache(self.below)

    def density(self, k, posterior):
        return self.weights[k] * beta.pdf(self.nodes[k], *posterior)

    def below(self, j, posterior, k):
        return beta.cdf(self.nodes[k] * self.costs[j] / self.costs[k], *posterior)

    def __call__(self, posteriors, fits):
        found = np.zeros(len(self.costs))
        for k in fits:
            rivals = [self.below(j, posteriors[j], k) for j in fits if j != k]
            found[k] = np.sum(self.density(k, posteriors[k]) * np.prod(rivals, axis=0))
        assert abs(found.sum() - 1) < 1e-9
        return found


# ---- a round --------------------------------------------------------------------------------------

# Posteriors (successes + 1, failures + 1), costs, the leader and theta: events are as frequent as may be.
FROZEN = {"two": ([(30, 12), (14, 16)], [1.0, 1.0], 0, 0.61), "order": ([(14, 16), (30, 12)], [1.0, 1.0], 1, 0.61),
          "costs": ([(60, 140), (100, 100), (9, 30)], [0.5, 1.5, 0.75], 0, 0.53),
          "expensive": ([(20, 10), (90, 10)], [1.0, 3.0], 0, 0.56),
          "several": ([(4, 16), (60, 25), (4, 16), (3, 4), (4, 16)], [1.0, 1.0, 0.75, 2.0, 0.9], 1, 0.64)}


@Kernel
def ask(candidate, often, clock, post, rng, pulls):
    """Count whose candidates they are, according to a function that may have been typed."""
    for _ in range(often):
        pulls[candidate(clock, post, rng)] += 1


def frozen(case, candidate, rounds=100_000):
    """How often each arm is pulled if nothing is learned."""
    posteriors, costs, leader, theta = FROZEN[case]
    post, clock, rng = np.zeros((ts.RATE + 1, len(costs))), new_record(CLOCK), np.random.default_rng(3)
    post[ts.A], post[ts.N] = np.array(posteriors).T[0], np.sum(posteriors, axis=1)
    post[ts.COST], post[ts.LEVEL], pulls = costs, theta * np.array(costs), np.zeros(len(costs), int)
    for k in range(len(costs)):
        ts.measure(k, -1 if k == leader else 1, post)
    post[ts.RATE] = post[ts.CHANCE] * np.where(np.arange(len(costs)) == leader, 1.4, 1.0)
    clock.arm, clock.rate = leader, post[ts.RATE].sum()
    assert 0.2 < clock.rate < 1
    often = rng.binomial(rounds, clock.rate)
    pulls[leader] += rounds - often
    around(ask, candidate)(often, clock, post, rng, pulls)
    return pulls


def law_of(case):
    posteriors, costs, *_ = FROZEN[case]
    return Law(costs)(posteriors, range(len(costs)))


@pytest.mark.parametrize("case", FROZEN)
@pytest.mark.slow
def test_rounds_follow_the_law_of_frozen_posteriors(case):
    assert chains.pearson(frozen(case, ts.candidate), law_of(case)) > ALARM


@pytest.mark.parametrize("case", FROZEN)
def test_leader_and_threshold_make_candidates_rare(case):
    """Once as much was seen as a thousand of these pulls would show."""
    posteriors, costs, leader, _ = FROZEN[case]
    post, clock = np.zeros((ts.RATE + 1, len(costs))), new_record(CLOCK)
    post[ts.A], post[ts.N] = 1000 * np.array(posteriors).T[0], 1000 * np.sum(posteriors, axis=1)
    post[ts.COST] = costs
    ts.prepare(0, post, clock, np.random.default_rng(0))
    assert clock.arm == leader and 0 < clock.rate < 0.01
    assert post[ts.RATE, leader] > post[ts.CHANCE, leader]
    post[ts.A], post[ts.N] = 1.0, 2.0
    ts.prepare(0, post, clock, np.random.default_rng(0))
    assert clock.arm == ts.ALL and clock.until == ts.MOMENT


FAULTS = {"an earlier event is ignored": ("if k < first and", "if k < 0 and"),
          "all that ring are kept": ("or (x / h)**-s <= rng.random()", ""),
          "the other side": ("(x < h) != (first == leader)", "(x < h) == (first == leader)"),
          "the cap for the chance": ("u >= post[CHANCE, first]", "u >= inf"),
          "the posterior for the tilted one": ("rng.beta(a + s, n - a)", "rng.beta(a, n - a)")}


def with_error(fault):
    source = inspect.getsource(getattr(ts.candidate, "py_func", ts.candidate)).partition("\n")[2]
    assert FAULTS[fault][0] in source
    return source.replace(*FAULTS[fault])


def test_each_error_has_its_place():
    assert len({with_error(fault) for fault in FAULTS}) == len(FAULTS)


@pytest.mark.parametrize("fault", proving(FAULTS, *list(FAULTS)[1:]))
@pytest.mark.slow
def test_errors_change_the_law_of_rounds(fault):
    names = {**vars(ts), "inf": inf}
    exec(with_error(fault), names)
    wrong = nb.njit(error_model="numpy")(names["candidate"])
    assert min(chains.pearson(frozen(case, wrong), law_of(case)) for case in ("order", "costs")) < ALARM


# ---- runs -----------------------------------------------------------------------------------------

def coins(chances, costs):
    return cb.Bandit([cb.Bernoulli(p) for p in chances], [cb.Constant(c) for c in costs])


# A clear leader, pulled by blocks; an arm that cannot win; three of different costs; a fight; one that ends early.
RUNS = {"clear": (coins((0.9, 0.2), (1.0, 1.0)), 420.0), "hopeless": (coins((0.9, 0.9), (1.0, 3.0)), 300.0),
        "three": (coins((0.5, 0.8, 0.1), (1.0, 2.5, 0.75)), 45.0), "fight": (coins((0.5, 0.45), (1.0, 1.0)), 90.0),
        "short": (coins((0.5, 0.9), (2.0, 5.0)), 11.0)}


def law_of_run(bandit, budget, stacks, ended):
    """Exact: on given stacks the pulls decide the posteriors."""
    costs, total, law = bandit.cost_means, budget + rounding(budget), Law(bandit.cost_means)
    won = chains.sums_of(stacks, int(budget / costs.min()) + 2)[0].astype(int)

    def chances(n):
        fits = [k for k in range(bandit.K) if np.dot(n, costs) + costs[k] <= total]
        posteriors = [(won[k, m] + 1, m - won[k, m] + 1) for k, m in enumerate(n)]
        return law(posteriors, fits) if fits else np.zeros(bandit.K)

    return chains.law(bandit.K, chances, partial(ended, costs))


@pytest.mark.parametrize("case", proving([*RUNS], "hopeless", "fight"))
@pytest.mark.slow
def test_the_law_of_the_pulls(case):
    """At two checkpoints, against the exact law on the same stacks."""
    (bandit, budget), fractions = RUNS[case], (0.6, 1.0)
    stacks, stop = chains.stacks_of(bandit), cb.HardBudget(budget)
    found = chains.runs(cb.KnownCostTS(), bandit, stop, stacks, 5000, fractions)
    for fraction, pulls in zip(fractions, found, strict=True):
        def ended(costs, n, fraction=fraction):
            return fraction < 1 and np.dot(n, costs) >= stop.due([fraction])[0]

        expected = law_of_run(bandit, budget, stacks, ended)
        assert sum(expected.values()) == pytest.approx(1, abs=1e-8)
        assert chains.p_value(pulls, expected) > ALARM


def test_without_its_kernel_every_arm_is_drawn():
    bandit, seeds = coins((0.5, 0.8, 0.1), (1.0, 2.5, 0.75)), range(4)
    for stop in (cb.HardBudget(45.0), cb.Budget(45.0)):
        pulls = [[cb.simulate({"p": policy}, bandit, stop, seed=seed, checkpoints=9, fast=way).pulls for seed in seeds]
                 for policy, way in ((cb.KnownCostTS(naive=True), True), (cb.KnownCostTS(), False),
                                     (cb.KnownCostTS(), True))]
        assert np.array_equal(pulls[0], pulls[1]) and not np.array_equal(pulls[0], pulls[2])


@pytest.mark.slow
def test_fractional_rewards_by_the_definition():
    """The mean pulls of each arm, with few draws and with all: six standard errors of the difference."""
    rewards = [cb.Discrete((0, 1.5, 3), (0.3, 0.5, 0.2)), cb.TruncatedNormal(1, 1, 0, 3), cb.Beta(2, 9)]
    for budget in (cb.HardBudget(600), cb.Budget(600)):
        few, all_ = (cb.simulate({"p": cb.KnownCostTS(3.0, naive)}, cb.Bandit(rewards, [cb.Constant(1.0)] * 3), budget,
                                 400, seed=int(naive)).pulls[0, :, -1].astype(float) for naive in (False, True))
        error = np.sqrt((few.var(axis=0) + all_.var(axis=0)) / 400)
        assert (abs(few.mean(axis=0) - all_.mean(axis=0)) < 6 * error).all() and (few[:, 0] > 64).any()


def everything(**options):
    """Digest of runs with counted and continuous, whole and fractional rewards, near the end of the budget, too."""
    rewards = [cb.Discrete((0, 1.5, 3), (0.3, 0.5, 0.2)), cb.TruncatedNormal(1, 1, 0, 3), cb.Bernoulli(0.9)]
    bandit = cb.Bandit(rewards, [cb.Constant(c) for c in (1.0, 1.3, 0.9)])
    policies = {"TS": cb.KnownCostTS(3.0), "naive": cb.KnownCostTS(3.0, naive=True), "KL-UCB": cb.KLUCB(3.0)}
    runs = cb.simulate(policies, bandit, cb.HardBudget(400.3), 2, checkpoints=5, **options)
    return digest(runs.pulls, runs.rounds, runs.spent, runs.reward)


@pytest.mark.slow
def test_the_same_bits_in_plain_python():
    assert in_plain_python("test_known_cost_ts", "m.everything()") == everything() == everything(n_jobs=2)


@pytest.mark.slow
def test_rewards_of_a_block_succeed_one_by_one():
    """Of 64 counted rewards: those of the full scale surely, the others with their share as probability."""
    stacks = chains.stacks_of(cb.Bandit([cb.Discrete((0, 1, 2), (0.2, 0.5, 0.3))], [cb.Constant(1.0)]))
    outcomes, rng = stacks.outcomes(), np.random.default_rng(5)
    assert nb.njit(lambda outcomes: ts.block(0, 0, 64, outcomes))(outcomes) == 64
    none, half, full = outcomes.counts[0, 0, outcomes.level[0, 0], :3]
    assert none + half + full == 64 and ts.how_many(0, 0, -inf, 2.0, outcomes) == none + half
    won = np.bincount([ts.trials(0, 0, 2.0, outcomes, rng) - full for _ in range(20_000)], minlength=half + 1)
    assert chains.pearson(won, binom.pmf(np.arange(half + 1), half, 0.5)) > ALARM


@pytest.mark.parametrize("n", [3, 40, 10**6, 10**12])
def test_the_chance_is_chernoffs_bound(n):
    """Against 60 digits, and never below the probability itself."""
    post = np.zeros((ts.RATE + 1, 1))
    for mean in (0.1, 0.5, 0.93):
        for side in (1, -1):
            for away in (0.5, 2.0, 5.0):
                a, h = max(mean * n, 1.0), mean + side * away * (mean * (1 - mean) / n)**0.5
                if not 0 < h < 1:
                    continue
                post[ts.A], post[ts.N], post[ts.LEVEL] = a, n, h
                ts.measure(0, side, post)
                s, q = post[ts.TILT, 0], post[ts.CHANCE, 0]
                if q == 1.0:
                    continue
                with mpmath.workdps(60):
                    s, a = mpmath.mpf(s), mpmath.mpf(a)
                    gamma = [mpmath.loggamma(x) for x in (a + s, mpmath.mpf(n), a, n + s)]
                    exact = mpmath.exp(gamma[0] + gamma[1] - gamma[2] - gamma[3] - s * mpmath.log(h))
                assert s * side > 0 and abs(q / exact - 1) < 1e-8
                assert n > 1e6 or q >= (beta.sf if side > 0 else beta.cdf)(h, float(a), n - float(a))


@cache
def stock():
    """Outcomes of one arm, and the arm; what a pull pays can be written into them."""
    return chains.stacks_of(cb.Bandit([cb.Bernoulli(0.5)], [cb.Constant(1.0)])).outcomes(), Arms.of(1)


def learn(reward, post, rng):
    """What is learned from a pull of the only arm that paid this: the clock then."""
    (outcomes, arms), clock = stock(), new_record(CLOCK)
    clock.until = 10**6
    arms.n[0] = 1
    outcomes.pool[outcomes.at[0], 0] = reward
    ts.learn(0, 1, 5, ts.Events(1.0, post, clock), arms, outcomes, rng)
    return clock


def test_a_leader_learns_as_its_chance_does():
    """After each reward the chance is the bound for the new posterior, with the same exponent and level."""
    post, rng = np.array([[40.0], [60.0], [1.0], [0.4], [0.0], [0.0], [1.0]]), np.random.default_rng(1)
    ts.measure(0, -1, post)
    for reward in (1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0):
        assert learn(reward, post, rng).until == 10**6
        assert post[ts.CHANCE, 0] == pytest.approx(ts.bound(post[ts.A, 0], post[ts.N, 0], post[ts.TILT, 0], 0.4), 1e-12)
    assert post[ts.A, 0] == 43 and post[ts.N, 0] == 67
    post[ts.RATE] = post[ts.CHANCE]             # the next failure lifts the chance above the cap: look around anew
    assert learn(0.0, post, rng).until == 5


@pytest.mark.parametrize("cap", [1.01, 1.5, 3.0])
def test_in_a_block_whatever_is_below_the_scale_may_fail(cap):
    """Rewards of 1.5 and 3 on a scale of 3: no 1.5 is sure to be a success."""
    a, N = 750.0, 1000.0
    stacks = chains.stacks_of(cb.Bandit([cb.Discrete((1.5, 3.0), (0.5, 0.5))], [cb.Constant(1.0)]))
    post, rng, arms = np.zeros((ts.RATE + 1, 1)), np.random.default_rng(0), Arms.of(1)
    post[ts.A], post[ts.N], post[ts.COST], post[ts.LEVEL] = a, N, 1.0, 0.71
    ts.measure(0, -1, post)
    post[ts.RATE] = cap * post[ts.CHANCE]
    before = post.copy()
    ts.leap(0, 64, Money(0.0, 0.0, 1e9), ts.Events(3.0, post, new_record(CLOCK)), arms, stacks.outcomes(), rng)
    for _ in range(round(2 * arms.n[0] - arms.reward[0] / 1.5)):
        learn(0.0, before, rng)
        assert before[ts.CHANCE, 0] <= before[ts.RATE, 0] * (1 + 1e-9)


@pytest.mark.parametrize("cap", [1.01, 1.5, 3.0, 8.0, 20.0])
def test_in_a_block_the_chance_stays_below_the_cap_whatever_the_order(cap):
    leapt = 0
    for a, N in ((40.0, 100.0), (400.0, 1000.0), (700.0, 1000.0), (4000.0, 10_000.0)):
        stacks = chains.stacks_of(cb.Bandit([cb.Bernoulli(a / N)], [cb.Constant(1.0)]))
        outcomes, post, rng = stacks.outcomes(), np.zeros((ts.RATE + 1, 1)), np.random.default_rng(0)
        post[ts.A], post[ts.N], post[ts.COST], post[ts.LEVEL] = a, N, 1.0, a / N - 3 * (a / N * (1 - a / N) / N) ** 0.5
        ts.measure(0, -1, post)
        post[ts.RATE] = cap * post[ts.CHANCE]
        before, arms = post.copy(), Arms.of(1)
        money = ts.leap(0, 64, Money(0.0, 0.0, 1e9), ts.Events(1.0, post, new_record(CLOCK)), arms, outcomes, rng)
        done, won = int(arms.n[0]), money.collected
        assert money.spent == done == post[ts.N, 0] - N and won == arms.reward[0] == post[ts.A, 0] - a
        leapt += done > 0
        for reward in [0.0] * int(done - won):
            learn(reward, before, rng)
            assert before[ts.CHANCE, 0] <= before[ts.RATE, 0] * (1 + 1e-9)
    assert leapt > 0 or cap < 3


def test_a_smallest_cost_below_zero_is_refused():
    with pytest.raises(ValueError, match=r"smallest cost = -0.5"):
        cb.simulate({"p": cb.KnownCostTS()}, cb.Bandit([cb.Bernoulli(0.5)], [cb.Constant(-0.5)]), cb.Horizon(9))
    free = cb.simulate({"p": cb.KnownCostTS()}, cb.Bandit([cb.Bernoulli(0.5)], [cb.Constant(0.0)]), cb.Horizon(9))
    assert free.rounds[0, 0, -1] == 9


@pytest.mark.slow
def test_a_hundred_billion_are_spent_to_the_last_unit():
    bandit = coins((0.2, 0.5, 0.7), (1.1, 2.0, 3.3))
    runs = cb.simulate({"TS": cb.KnownCostTS()}, bandit, cb.HardBudget(1e11), 2)
    left = 1e11 - runs.pulls[0, :, -1] @ bandit.cost_means
    assert (-1e-3 <= left).all() and (left < 1.1 + 1e-3).all() and (runs.pulls[0, :, -1].argmax(axis=1) == 1).all()


@pytest.mark.parametrize("bad", [0, 1, None, "yes"])
def test_naive_is_true_or_false(bad):
    with pytest.raises(ValueError, match=r"naive = .*: must be True or False"):
        cb.KnownCostTS(naive=bad)
