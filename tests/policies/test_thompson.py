"""Budgeted Thompson sampling by bells plays exactly by its law, and these tests would notice if it did not.

The law is known without drawing: `Grid` has the density of log V = log(R/C), accurate to 1e-8, and probabilities of
choices to 1e-10. Counts are held against it by chi-square tests that pool the cells expected below 10, and full runs
against the definition by two-sample tests. Blocks of pulls are held against single pulls: with outcomes 0 and 1 the
runs are the same. There are fewer than 200 p-values, each of which must exceed 1e-9: the seeds
are fixed, but with fresh ones a false alarm would have a probability below 1e-6, with room for the chi-square
approximation. Errors made on purpose must give a p-value below 1e-12. The environment variable COSTBANDITS_DEEP
multiplies the sample sizes.
"""

import inspect
import itertools
import os
import types
from collections import Counter
from functools import cache, partial
from math import exp, log, sqrt

import chains
import mpmath
import numba as nb
import numpy as np
import pytest
from chains import pearson as p_value
from numba import types as T
from numpy.polynomial import legendre
from reference import FAMILIES, choice_of, proving
from scipy import special, stats

import costbandits as cb
from costbandits.engine.compilation import Kernel, around, keep
from costbandits.engine.driver import DONE, LAST_ROUND, loop
from costbandits.engine.run import Run
from costbandits.engine.stacks import Stacks
from costbandits.engine.state import GAME, Game, Limits, Money, new_record
from costbandits.engine.trees import total
from costbandits.fast import thompson
from costbandits.fast.thompson import BELL, CHANCE, RACE, RATE, TILT, USUAL, Bells, Tuning

pytestmark = pytest.mark.slow

DEEP = int(os.environ.get("COSTBANDITS_DEEP", "1"))
ALARM, CAUGHT = 1e-9, 1e-12
FINE, FINER = 1.0, 1.6                                     # the grid in use, and one to compare it with
TAIL = special.ndtr(-9.0)                                  # 1e-19: what lies further out is left out
LOOP = T.int64(nb.typeof(Bells.of(1, USUAL)), T.npy_rng, GAME)


def typed(signature, function):
    """A function compiled for a signature, or as it was compiled in an earlier run of the tests."""
    made = nb.njit(error_model="numpy")(function)
    if not nb.config.DISABLE_JIT:
        keep(made)
        made.compile(signature)
        made.disable_compile()
    return made


def compiled(made):
    """A loop of the driver's, as a function that compiled code can be given."""
    return typed(LOOP, made.py_func)


@cache
def bells():
    """The library's loop."""
    return compiled(thompson.bells)


def lower(a, b, tail=TAIL):
    """Quantile of Beta(a, b)."""
    return special.betaincinv(a, b, tail)


def upper(a, b, tail=TAIL):
    return special.betainccinv(a, b, tail)


class Grid:
    """Densities and distribution functions of log V for arms (a, b, c, d), by Gauss's rule on panels.

    Panels end at the kink 0, at log theta and at quantiles for every arm, so that each function is smooth within them.
    """

    def __init__(self, arms, theta=1.0, fineness=FINE):
        tails = special.ndtr(-np.arange(0.0, 9.01, 1.0 / fineness))
        ratios = [ratio for a, b, c, d in arms for ratio in (lower(a, b, tails) / upper(c, d, tails),
                                                             upper(a, b, tails) / lower(c, d, tails))]
        ends = np.unique(np.log(np.concatenate([[1.0, theta], *ratios])))
        nodes, weights = legendre.leggauss(8)
        self.half, self.fineness = np.diff(ends)[:, None] / 2, fineness
        self.x, self.weights = ends[:-1, None] + self.half * (1 + nodes), self.half * weights
        self.above = self.x > log(theta)
        # From values at the nodes to the integrals of their interpolation from the left end to each node.
        primitives = legendre.legval(nodes, legendre.legint(np.eye(8), lbnd=-1, axis=1).T)
        self.integrate = np.linalg.solve(legendre.legvander(nodes, 7).T, primitives)

    def density(self, arm):
        a, b, c, d = arm
        low, high = log(lower(a, b) / upper(c, d)), log(upper(a, b) / lower(c, d))
        left, right = (low < self.x) & (self.x < 0), (0 < self.x) & (self.x < high)
        density = np.zeros_like(self.x)
        density[left] = self._below_zero(a, b, c, d, self.x[left])
        density[right] = self._below_zero(c, d, a, b, -self.x[right])
        return density

    def _below_zero(self, a, b, c, d, x):
        """Density of log(R/C) at x <= 0: the integral over C of f_C(C) f_R(r) r at r = C exp(x) <= 1."""
        nodes, weights = legendre.leggauss(int(50 * self.fineness))
        low, high = lower(c, d), upper(c, d)
        C = low + (high - low) * (1 + nodes) / 2
        r = np.exp(x)[:, None] * C
        logs = special.xlogy(c - 1, C) + special.xlog1py(d - 1, -C) + a * np.log(r) + special.xlog1py(b - 1, -r)
        values = np.exp(logs - special.betaln(c, d) - special.betaln(a, b))
        return (values * weights).sum(axis=1) * (high - low) / 2       # not `@`, which would wake a second core

    def total(self, density):
        return (self.weights * density).sum()

    def cdf(self, density):
        panels = (self.weights * density).sum(axis=1)
        return (np.cumsum(panels) - panels)[:, None] + self.half * (density @ self.integrate)

    def largest(self, densities, cdfs):
        """The probability, for each arm, that it has the largest V."""
        return np.array([self.total(density * np.prod([*cdfs[:k], *cdfs[k + 1:]], axis=0))
                         for k, density in enumerate(densities)])


def chernoff(arm, s, theta):
    """E[(V / theta)^s]."""
    a, b, c, d = arm
    return exp(special.betaln(a + s, b) - special.betaln(a, b) + special.betaln(c - s, d) - special.betaln(c, d)
               - s * log(theta))


# Errors made on purpose. What stands in the source once is replaced by a choice between it and something wrong, by a
# number that stands in a ninth row of the arms' state: so one compilation serves them all.

IN_CONTESTS = {
    "every candidate rings": ("rng.random() * race.cap < post[CHANCE, leader]", "True"),
    "no false alarms below theta": ("knock(a, b, c, d, s, theta, rng)", "eager(a, b, c, d, s, theta, rng)"),
    "no false alarms above theta": ("rung[i], rng.standard_exponential()", "rung[i], inf"),
    "the leader drawn unconditioned": ("V if V > theta else 0.0", "V"),
    "silent rivals drawn unconditioned": ("V if V <= theta else 0.0", "V"),
    "drawn as if the best were e theta": ("s * room < kept", "s < kept"),
    "drawn, but not compared with the best": ("V > best and s * log(V / theta) < kept",
                                              "V > theta and kept > s * log(V / theta)"),
    "kept by a second exponential": ("s * log(V / theta) < kept", "s * log(V / theta) < rng.standard_exponential()"),
}
IN_PULLS = {
    "the recursion of the chance dropped": ("s != 0.0", "False"),
    "its cost factor dropped": ("gain(a, c, N, s, x, y)", "gain(a, c, N, s, x, 0.0)"),
    "the cap kept though exceeded": ("post[CHANCE, arm] > race.cap", "False"),
    "a pulled rival's bell not wound anew": ("wind(t, arm, post[CHANCE, arm], post, rng)", "None"),
    "a pulled rival's bell at the old pace": ("wind(t, arm, post[CHANCE, arm], post, rng)",
                                              "at_old_pace(t, arm, post, rng)"),
    "refreshed when the next bell is far": ("race.work >= tuning.lazy * arms.n.size", "race.ring > t + 3"),
}
IN_BLOCKS = {
    "a block across bells": ("min(free, space * (a + b) / -s)", "space * (a + b) / -s"),
    "a block across a checkpoint": ("money.spent + cost < money.due", "True"),
    "the bound of a block without its costs": ("how_many(arm, 1, 0.0, inf, outcomes) * by_cost", "0.0"),
    "the chance not renewed after a block": ("bound(a, b, c, d, s, race.theta)", "post[CHANCE, arm]"),
    "the expected number of successes": ("trials(arm, 0, 1.0, outcomes, rng)", "expected(arm, 0, outcomes)"),
}
SINGLE = "no blocks"                                       # not an error: a reference for those who make one
FAULTS = {**IN_CONTESTS, **IN_PULLS, **IN_BLOCKS, SINGLE: ("free >= LEAF", "False")}
NUMBER = {None: 0, **{fault: number for number, fault in enumerate(FAULTS, start=1)}}


@nb.njit
def eager(a, b, c, d, s, theta, rng):
    """`knock` that keeps all that is below theta."""
    V = thompson.draw(a + s, b, c - s, d, rng)
    return V if s == 0.0 or V < theta else 0.0


@nb.njit
def at_old_pace(t, arm, post, rng):
    """`wind` by the chance that the arm had when its bell was wound last."""
    post[BELL, arm] = t + thompson.wait(post[RATE, arm], rng)


@nb.njit
def expected(arm, column, outcomes):
    """`trials` without chance."""
    return np.int64(total(arm, column, outcomes))


@cache
def faulty():
    """`contest`, `attend`, `leap`, `pull_on` and the driver's steps that can err, and a loop of these, `bells`.

    What they call is the module's own.
    """
    parts = [getattr(thompson, name) for name in ("contest", "attend", "leap", "pull_on", "choose", "advance", "learn")]
    source = "\n".join(inspect.getsource(part.py_func) for part in parts)
    for fault, (right, wrong) in FAULTS.items():
        assert source.count(right) == 1
        before = source[:source.index(right)]
        table = "own.posteriors" if "own" in before[before.rindex("def "):].partition(":")[0] else "post"
        source = source.replace(right, f"(({wrong}) if {table}[8, 0] == {NUMBER[fault]} else ({right}))")
    names = {**vars(thompson), "eager": eager, "at_old_pace": at_old_pace, "expected": expected}
    exec(source, names)
    bells = compiled(loop(*(names[step] for step in ("choose", "advance", "learn", "if_counted"))))
    return types.SimpleNamespace(**{part.py_func.__name__: names[part.py_func.__name__] for part in parts}, bells=bells)


def state(posteriors, fault=None):
    """The kernel's array of the posteriors, with the number of an error in a ninth row."""
    post = np.ones((9, len(posteriors)))
    post[:4], post[8] = np.transpose(posteriors), NUMBER[fault]
    return post


def own_of(posteriors, tuning=USUAL, fault=None):
    """What the kernel works on before the first pull of arms with these posteriors."""
    return Bells(Tuning(*map(float, tuning)), state(posteriors, fault), new_record(RACE),
                 np.zeros(len(posteriors) + 1, np.int64))


# 1. Posteriors that stay as they are.

@Kernel
def frozen(attend, contest, rounds, tuning, post, race, rng):
    """A pull loop without pulls: how often which bells rang (bit k: arm k) and which arm was chosen."""
    K = post.shape[1]
    rung, counts = np.zeros(K + 1, np.int64), np.zeros((1 << K, K), np.int64)
    race.work = np.inf
    for t in range(1, rounds + 1):
        if race.work >= tuning.lazy * K:
            thompson.refresh(t - 1, tuning, post, race, rng)
        low_rang = False
        if post[BELL, race.leader] <= t or race.until < t:
            low_rang = attend(t, tuning, post, race, rng)
        arm = race.leader
        event = (1 << arm) * low_rang
        for k in range(K):
            event += (1 << k) * (k != arm and post[BELL, k] <= t)
        if low_rang or race.ring <= t:
            arm = contest(t, low_rang, post, race, rung, rng)
        counts[event, arm] += 1
        if arm != race.leader:
            post[BELL, arm] = t + thompson.wait(post[RATE, arm], rng)
            race.ring = min(race.ring, post[BELL, arm])
    return counts


def frozen_law(posteriors, leader, theta, tilts, fineness=FINE):
    """The joint law of which bells ring in a round and which arm has the largest V.

    An arm's bell rings with probability q. Given that it does, V lies on the bell's side of theta with probability
    P/q, where P is that of this side; else V lies on the other. The arms are independent.
    """
    K, grid, options = len(posteriors), Grid(posteriors, theta, fineness), []
    for k, arm in enumerate(posteriors):
        density, side = grid.density(arm), grid.above != (k == leader)
        P, q = grid.total(density * side), chernoff(arm, tilts[k], theta)
        rings = density * np.where(side, 1.0, (q - P) / (1 - P))
        options.append([(each, grid.cdf(each)) for each in (density - rings, rings)])
    return np.array([grid.largest(*zip(*(options[k][event >> k & 1] for k in range(K)), strict=True))
                     for event in range(1 << K)])


PRIOR = (1, 1, 1, 1)
LEADING = (300, 100, 125, 275), (5, 5, 5, 5)
TIES = (121, 81, 92, 110), (119, 81, 91, 109), (12, 8, 9, 11)
FEW = (20, 12, 9, 23), (18, 12, 9, 21), (6, 6, 6, 6), (2, 3, 3, 2)
# Posteriors (a, b, c, d) of the arms, and DEPTH, LOUD, LAZY: the usual ones, and some that make rare branches common.
SETTINGS = [
    ([PRIOR] * 2, USUAL),
    ([PRIOR] * 2, (1.0, 0.99, 24.0)),
    ([PRIOR] * 6, (0.5, 0.9, 1.0)),
    (LEADING, USUAL),
    (LEADING, (1.0, 0.95, 24.0)),
    ([(300, 100, 125, 275), (50, 30, 20, 60), PRIOR], (1.0, 0.95, 24.0)),
    (TIES, (1.0, 0.95, 24.0)),
    (TIES, (2.0, 0.3, 0.1)),
    (FEW, (1.5, 0.99, 1e9)),                                                                    # hardly ever refreshed
    (FEW, (1.0, 0.02, 24.0)),                                                                   # all drawn always
    (FEW, (-2.0, 0.9, 3.0)),                                                                    # theta above them all
    ([(3, 498, 3, 498), (2, 250, 1, 251), (5, 700, 9, 696)], (2.0, 0.95, 24.0)),                # hardly any success
    ([(100, 1, 1, 100), (90, 1, 2, 89)], USUAL),                                                # hardly any cost
    ([(400, 100, 100, 400), (50, 450, 440, 60), (3, 30, 25, 8)], USUAL),                        # a leader far ahead
]


def any_setting(number):
    """Random posteriors of K = 2, ..., 6 arms after up to a thousand pulls each, and a random tuning."""
    rng = np.random.default_rng([7, number])
    n = np.floor(10 ** rng.uniform(0, 3, 2 + number % 5)).astype(int)
    mean = rng.beta(0.7, 0.7, (2, 1)) if number % 2 else rng.uniform(size=(2, n.size))          # alike, or not
    won, paid = rng.binomial(n, mean)
    tuning = rng.choice([0.5, 1.0, 2.0, 3.2]), rng.choice([0.3, 0.8, 0.95, 0.999]), rng.choice([0.1, 2.0, 24.0])
    return np.stack([1 + won, 1 + n - won, 1 + paid, 1 + n - paid], axis=1), tuning


SETTINGS += [any_setting(number) for number in range(24)]


def frozen_counts(number, kernel=thompson, fault=None):
    """Counts of (bells, arm) in a setting, and what else their law depends on."""
    posteriors, tuning = SETTINGS[number]
    post, race, rng = state(posteriors, fault), new_record(RACE), np.random.default_rng(number)
    counts = around(frozen, kernel.attend, kernel.contest)(30_000 * DEEP, Tuning(*map(float, tuning)), post, race, rng)
    return counts, (tuple(map(tuple, posteriors)), int(race.leader), float(race.theta), tuple(post[TILT]))


@pytest.mark.parametrize("number", range(len(SETTINGS)))
def test_choices_follow_the_law_of_frozen_posteriors(number):
    counts, given = frozen_counts(number)
    law = frozen_law(*given)
    assert law.sum() == pytest.approx(1, abs=1e-9)
    assert p_value(counts, law) > ALARM
    assert p_value(counts.sum(axis=0), law.sum(axis=0)) > ALARM


# 2. Whole paths through the kernel, in which the posteriors learn from outcomes that are fixed beforehand.

@partial(typed, T.int64[::1](T.FunctionType(LOOP), T.int64, T.int64, *LOOP.args))
def play_paths(loop, repeats, length, start, rng, game):
    """How often each sequence of `length` pulls was played, by its number in base K."""
    outcomes, state, record, limits = game
    n, own, K = state.arms.n, Bells(start.tuning, start.posteriors.copy(), start.race, start.rung), state.arms.n.size
    counts, pulled = np.zeros(K**length, np.int64), np.zeros(K, np.int64)
    for _ in range(repeats):
        path, state.now.rounds = 0, 0
        for k in range(K):
            n[k] = pulled[k] = 0
            for row in range(9):
                own.posteriors[row, k] = start.posteriors[row, k]
        for last in range(1, length + 1):                  # so the kernel is left and entered at every pull
            until = Limits(last, limits.max_cost, limits.ceiling, limits.rate, limits.pause, limits.beat,
                           limits.near)
            loop(own, rng, Game(outcomes, state, record, until))
            path *= K
            for k in range(K):
                path += k * (n[k] - pulled[k])
                pulled[k] = n[k]
        counts[path] += 1
    return counts


# Posteriors; outcomes (x, y) of each arm, over and over; length; tuning.
LUCKY, MIXED = [(1, 0)], [(1, 1), (0, 1), (1, 0), (0, 0), (0, 1)]
PATHS = {
    "two new arms": ([PRIOR] * 2, (MIXED, MIXED), 8, USUAL),
    "three new arms": ([PRIOR] * 3, (MIXED, MIXED[::-1], [(0, 1), (1, 1)]), 6, (1.0, 0.9, 2.0)),
    "a lucky rival": (LEADING, ([(0, 0), (1, 0)], LUCKY), 8, USUAL),
    "a failing leader": ([(20, 10, 8, 22), (9, 9, 9, 9)], ([(0, 1)], MIXED), 10, (1.0, 0.95, 1e9)),
    "a sinking leader": ([(20, 5, 4, 21), (30, 30, 20, 40)], ([(0, 1)], MIXED), 10, (2.5, 0.95, 1e9)),
    "a dear leader": ([(20, 10, 8, 22), (9, 9, 9, 9)], ([(1, 1)], MIXED), 10, (1.5, 0.95, 24.0)),
    "a fine leader": ([(20, 10, 8, 22), (9, 9, 9, 9), (3, 2, 2, 3)], (LUCKY, MIXED, MIXED), 6, (1.5, 0.95, 1e9)),
    "always refreshed": ([(20, 10, 8, 22), (9, 9, 9, 9), (3, 2, 2, 3)], (MIXED, MIXED, LUCKY), 6, (1.5, 0.95, 0.0)),
}


def path_counts(loop, case, fault=None):
    posteriors, outcomes, length, tuning = PATHS[case]
    K = len(posteriors)
    run = Run(Stacks(cb.Bandit([cb.Constant(0.5)] * K, [cb.Constant(0.5)] * K), 0, 0, range(K)), [np.inf], 1)
    for k, first in enumerate(run.outcomes.at):
        run.outcomes.pool[first:first + 16] = np.resize(outcomes[k], (16, 2))
    run.outcomes.filled[:] = 16
    return play_paths(loop, 30_000 * DEEP, length, own_of(posteriors, tuning, fault), np.random.default_rng(1),
                      Game(run.outcomes, run.state, run.record, run.limits))


def learned(arm, outcomes, n):
    """The posterior after n pulls."""
    x, y = np.resize(outcomes, (16, 2))[:n].sum(axis=0)
    return arm[0] + x, arm[1] + n - x, arm[2] + y, arm[3] + n - y


@cache
def path_law(case, fineness=FINE):
    """The law of all sequences of pulls: products of the probabilities of the choices."""
    posteriors, outcomes, length, _ = PATHS[case]
    K = len(posteriors)
    arms = [[learned(posteriors[k], outcomes[k], n) for n in range(length)] for k in range(K)]
    grid = Grid(set(itertools.chain(*arms)), fineness=fineness)
    densities = [[grid.density(arm) for arm in each] for each in arms]
    cdfs = [[grid.cdf(density) for density in each] for each in densities]
    law = {(0,) * K: {0: 1.0}}                             # pulls of each arm -> sequence -> probability
    for _ in range(length):
        longer = {}
        for n, paths in law.items():
            chosen = grid.largest([densities[k][n[k]] for k in range(K)], [cdfs[k][n[k]] for k in range(K)])
            for k in range(K):
                after = longer.setdefault((*n[:k], n[k] + 1, *n[k + 1:]), {})
                after.update({path * K + k: p * chosen[k] for path, p in paths.items()})
        law = longer
    flat = {path: p for paths in law.values() for path, p in paths.items()}
    return np.array([flat[path] for path in range(K**length)])


@pytest.mark.parametrize("case", PATHS)
def test_paths_follow_their_law(case):
    assert path_law(case).sum() == pytest.approx(1, abs=1e-9)
    assert p_value(path_counts(bells(), case), path_law(case)) > ALARM


# 3. Full runs, against the definition.

def five_arms(law):
    """A bandit whose laws have given means."""
    rewards, costs = (0.7, 0.5, 0.6, 0.3, 0.8), (0.4, 0.3, 0.5, 0.2, 0.6)
    return cb.Bandit([law(mean) for mean in rewards], [law(mean) for mean in costs])


def of_three(mean):
    return cb.Discrete([0, 0.5, 1], [(1 - mean)**2, 2 * mean * (1 - mean), mean**2])


FULL = {"Bernoulli": five_arms(cb.Bernoulli), "Beta": five_arms(lambda mean: cb.Beta(2 * mean, 2 - 2 * mean)),
        "discrete": five_arms(of_three)}


# Long enough for blocks of pulls.
CLEAR = {name: cb.Bandit([law(0.7), law(0.3)], [law(0.4), law(0.5)])
         for name, law in (("two Bernoulli", cb.Bernoulli), ("two discrete", of_three))}
PLAYED = {**dict.fromkeys(FULL, 150.0), **dict.fromkeys(CLEAR, 10_000.0)}


class FaultyBTS(cb.BTS):
    def play(self, run, problem, rng):
        own = own_of([PRIOR] * problem.K, fault="drawn, but not compared with the best")
        return run.play(faulty().bells, own, rng)


@cache
def figures_of_runs(policy, family, seed):
    """Rounds and pulls of the best arm after half and all of the budget, and regrets: shape (5, replications)."""
    bandit, number = {**FULL, **CLEAR}[family], (300 if family in FULL else 100) * DEEP
    runs = cb.simulate({"": policy}, bandit, cb.Budget(PLAYED[family]), number, seed=seed, checkpoints=2)
    best = runs.pulls[0, ..., bandit.ratios.argmax()]
    return [*runs.rounds[0].T, *best.T, cb.regret.budgeted(runs)[0, :, -1]]


def difference(policy, family):
    """The smallest p-value of ten tests of a policy against the definition, on independent stacks."""
    pairs = list(zip(figures_of_runs(policy, family, 1), figures_of_runs(cb.BTS(naive=True), family, 2), strict=True))
    return min(test(*pair).pvalue for pair in pairs for test in (stats.ks_2samp, stats.mannwhitneyu))


@pytest.mark.parametrize("family", PLAYED)
def test_runs_are_distributed_as_those_of_the_definition(family):
    assert difference(cb.BTS(), family) > ALARM


WHOLE, FRACTIONS = ((1.0, 0.0), (1.0, 1.0)), ((0.7, 0.2), (0.5, 0.9))


@pytest.mark.parametrize(("naive", "rewards", "costs"), proving(
    [(naive, *values) for naive in (False, True) for values in (WHOLE, FRACTIONS)],
    (False, *WHOLE), (True, *FRACTIONS)))
def test_the_first_rounds_follow_from_uniform_priors_and_trials_of_fractions(naive, rewards, costs):
    """Four rounds as a player of the library's own priors plays them, each outcome x a success with probability x."""
    layer = {(PRIOR, PRIOR): 1.0}                          # posteriors of two arms -> their probability
    for _ in range(4):
        after = Counter()
        for arms, p in layer.items():
            grid = Grid(arms)
            densities = [grid.density(arm) for arm in arms]
            chosen = grid.largest(densities, [grid.cdf(density) for density in densities])
            for k, x, y in itertools.product(range(2), range(2), range(2)):
                chance = chosen[k] * (rewards[k] if x else 1 - rewards[k]) * (costs[k] if y else 1 - costs[k])
                a, b, c, d = arms[k]
                learned = a + x, b + 1 - x, c + y, d + 1 - y
                after[(learned, arms[1]) if k == 0 else (arms[0], learned)] += p * chance
        layer = +after
    expected = Counter()
    for (first, second), p in layer.items():
        expected[sum(first[:2]) - 2, sum(second[:2]) - 2] += p
    assert sum(expected.values()) == pytest.approx(1, abs=1e-8)
    bandit = cb.Bandit(*([cb.Constant(value) for value in values] for values in (rewards, costs)))
    (found,) = chains.runs(cb.BTS(naive), bandit, cb.Horizon(4), chains.stacks_of(bandit), 6000 * DEEP)
    assert chains.p_value(found, expected) > ALARM


@pytest.mark.parametrize("rounds", [50, 4000])                # single pulls alone, and blocks
def test_fractions_become_trials(rounds):
    """What an arm has learned from outcomes 0.3 and 0.6 is whole, and binomial within six standard deviations."""
    run = Run(Stacks(cb.Bandit([cb.Constant(0.3)], [cb.Constant(0.6)]), 0, 0, [0]), [np.inf], rounds)
    own = Bells.of(1, USUAL)
    assert run.play(thompson.bells, own, np.random.default_rng(3)) == LAST_ROUND
    a, b, c, d = own.posteriors[:4, 0]
    assert a + b == c + d == rounds + 2 and (a, c) == (int(a), int(c))
    for successes, mean in ((a - 1, 0.3), (c - 1, 0.6)):
        assert abs(successes - rounds * mean) < 6 * sqrt(rounds * mean * (1 - mean))


# 4. What these tests would notice, and what they rest on.

@pytest.mark.proof          # the altered kernel takes half a minute to compile
@pytest.mark.parametrize("fault", [*IN_CONTESTS, *IN_PULLS])
def test_errors_change_the_law_of_paths(fault):
    # An old countdown does little harm: only a rival that is pulled although far behind, and gains by it, shows it.
    # An old cap does little harm, too, unless the leader's chance was small and grows much.
    case = {"a pull": "a lucky rival", "refres": "a lucky rival", "the ca": "a sinking leader"}
    case = case.get(fault[:6], "a failing leader")
    assert p_value(path_counts(faulty().bells, case, fault), path_law(case)) < CAUGHT


@pytest.mark.proof
@pytest.mark.parametrize("fault", IN_CONTESTS)
def test_errors_change_the_law_of_choices(fault):
    found = (frozen_counts(number, faulty(), fault) for number in (1, 3, 4))
    assert min(p_value(counts, frozen_law(*given)) for counts, given in found) < CAUGHT


@pytest.mark.proof
def test_errors_change_full_runs():
    assert difference(FaultyBTS(), "Bernoulli") < CAUGHT


@pytest.mark.proof
def test_the_functions_that_can_err_do_not_unless_told_to():
    for number in (1, 3, 4):
        assert np.array_equal(*(frozen_counts(number, kernel)[0] for kernel in (thompson, faulty())))
    for case in ("a lucky rival", "a failing leader"):
        assert np.array_equal(path_counts(bells(), case), path_counts(faulty().bells, case))


def test_the_grid_by_hand():
    # New arms: P(V <= v) = v/2 up to v = 1, then 1 - 1/(2v). For R ~ Beta(2, 1), C uniform: v^2/3, then 1 - 2/(3v).
    new, better = PRIOR, (2, 1, 1, 1)
    grid = Grid([new, better])
    densities = [grid.density(arm) for arm in (new, better)]
    cdfs, v = [grid.cdf(density) for density in densities], np.exp(grid.x)
    assert cdfs[0] == pytest.approx(np.where(v < 1, v / 2, 1 - 1 / (2 * v)), abs=1e-8)
    assert cdfs[1] == pytest.approx(np.where(v < 1, v**2 / 3, 1 - 2 / (3 * v)), abs=1e-8)
    assert grid.largest(densities, cdfs) == pytest.approx([7 / 18, 11 / 18], abs=1e-10)
    three = grid.largest([densities[0], *densities], [cdfs[0], *cdfs])
    assert three == pytest.approx([41 / 144, 41 / 144, 31 / 72], abs=1e-10)


@pytest.mark.parametrize("number", [*range(0, 14, 2), 23, 33])
def test_a_finer_grid_gives_the_same_law_of_choices(number):
    _, given = frozen_counts(number)
    assert frozen_law(*given) == pytest.approx(frozen_law(*given, FINER), abs=1e-10)


@pytest.mark.parametrize("case", ["two new arms", "a lucky rival"])
def test_a_finer_grid_gives_the_same_law_of_paths(case):
    assert path_law(case) == pytest.approx(path_law(case, FINER), abs=1e-10)


# 5. The draws.

DRAWN = [(PRIOR, 0.0), ((2, 1, 1, 2), 0.0), ((1, 3, 3, 1), 2.5), ((9, 4, 5, 8), -3.0), ((3, 9, 9, 3), -2.9),
         ((30, 12, 9, 33), 4.0), ((400, 3, 2, 401), 0.0), ((3000, 5000, 4000, 4000), 60.0)]


@Kernel
def many(draw, number, a, b, c, d, rng):
    """So many draws."""
    found = np.empty(number)
    for i in range(number):
        found[i] = draw(a, b, c, d, rng)
    return found


def drawn(draw, posterior, tilt):
    """The p-value of 200,000 draws from a tilted posterior, counted by the panels of a grid."""
    a, b, c, d = posterior
    tilted = tuple(map(float, (a + tilt, b, c - tilt, d)))
    grid = Grid([tilted])
    law = (grid.weights * grid.density(tilted)).sum(axis=1)
    ends = np.r_[grid.x[:, 0] - grid.half[:, 0] * (1 + legendre.leggauss(8)[0][0]), np.inf]
    found = np.log(around(many, draw)(200_000 * DEEP, *tilted, np.random.default_rng(8)))
    return p_value(np.histogram(found, ends)[0], law)


@pytest.mark.parametrize(("posterior", "tilt"), DRAWN)
def test_draws_follow_the_tilted_posterior(posterior, tilt):
    assert drawn(thompson.draw, posterior, tilt) > ALARM


@pytest.mark.parametrize(("right", "wrong"), [
    ("u < 1.0 - (p + q + r + s)", "True"), ("gamma(d, m)", "gamma(c, m)"), ("w * (y + z)", "w * (x + z)")])
def test_errors_change_the_law_of_draws(right, wrong):
    source, names = inspect.getsource(thompson.draw.py_func), dict(vars(thompson))
    assert source.count(right) == 1
    exec(source.replace(right, wrong), names)
    assert min(drawn(names["draw"], posterior, tilt) for posterior, tilt in DRAWN[1:3]) < CAUGHT


def test_a_candidate_kept_unseen_would_have_been_kept():
    """Marsaglia and Tsang's squeeze, sharper for large shapes: 1 - exp(log kept) is at most the bound."""
    for shape in [*np.linspace(1, 4, 31), 10.0, 1e2, 1e4, 1e6]:
        lowest = -3 * np.sqrt(shape - 1 / 3)               # where the candidate is 0
        for z in np.linspace(0.9999 * max(lowest, -9), 9, 1801):
            candidate, bound = thompson.gamma(shape, z)
            assert candidate == pytest.approx((shape - 1 / 3) * (1 - z / lowest)**3)
            assert -np.expm1(thompson.kept(shape, z)) <= bound + 1e-15 * shape


# 6. What the kernel keeps.

def test_the_exponent_is_the_one_derived_and_its_bound_holds():
    rng, third, found = np.random.default_rng(5), 1 / 3, 0
    for posteriors, _ in SETTINGS:
        a, b, c, d = arm = tuple(map(float, posteriors[0]))
        theta = a / c * exp(rng.normal())
        for side in (1, -1):
            s, q = thompson.chernoff(*arm, theta, side)
            if s == 0.0:
                assert q == 1.0
                continue
            found += 1
            assert -a < s < c and s * side > 0 and q < 1.0
            assert (a - third + s) * (b + a - third - s) == pytest.approx(theta * (c - third - s) * (c + d - third + s))
            assert q == pytest.approx(chernoff(arm, s, theta), rel=1e-9)
            grid = Grid([arm], theta)
            assert q >= grid.total(grid.density(arm) * (grid.above == (side == 1)))
    assert found > 30


def exact_bound(a, b, c, d, s, theta):
    a, b, c, d, s, theta = map(mpmath.mpf, (a, b, c, d, s, theta))
    up, N = mpmath.loggamma, a + b
    return mpmath.exp(up(a + s) - up(a) + up(c - s) - up(c) + 2 * up(N) - up(N + s) - up(N - s) - s * mpmath.log(theta))


@pytest.mark.parametrize("digits", range(0, 14))
def test_the_bound_is_right_after_many_pulls(digits):
    """For the posterior that the exponent was chosen for, and for later ones."""
    rng, found = np.random.default_rng(digits), 0
    for _ in range(30):
        n, (x, y) = int(10**digits * rng.uniform(0.5, 1.5)), rng.beta(0.7, 0.7, 2)
        z, now = rng.uniform(-9, 9), None
        for pulls in (n, n // 7, n):
            won, paid = (float(rng.binomial(pulls, p)) for p in (x, y))
            now = [1.0] * 4 if now is None else now
            now = now[0] + won, now[1] + pulls - won, now[2] + paid, now[3] + pulls - paid
            if pulls == n and now[0] + now[1] == n + 2:
                a, b, c, d = now
                theta = a / c * exp(z * sqrt((b / a + d / c) / (n + 3)))
                s, q = thompson.chernoff(*now, theta, 1 if z > 0 else -1)
                assert s == 0.0 or q == thompson.bound(*now, s, theta)
            with mpmath.workdps(50):
                right = exact_bound(*now, s, theta)
                if s != 0.0 and right > 1e-290:
                    found += 1
                    assert abs(thompson.bound(*now, s, theta) / right - 1) < 1e-10
    assert found > 40


def kernel_run(tuning, steps=(10**6,), family="Bernoulli", seed=6, **options):
    """A run of the kernel: its own arrays and the engine's, after each of some numbers of rounds."""
    own, rng = own_of([PRIOR] * 5, tuning), np.random.default_rng(seed)
    run = Run(Stacks(FULL[family], seed, 0, range(5), **options), [150.0], 1)
    for run.max_rounds in steps:
        status = run.play(bells(), own, rng)
        yield own.posteriors, own.race, run
        if status == DONE:
            return


@pytest.mark.parametrize(("tuning", "refreshes"), [(USUAL, 5), ((2.0, 0.5, 0.5), 20), ((1.0, 0.95, 1e9), 0)])
def test_the_state_after_every_pull(tuning, refreshes):
    thresholds = []
    for post, race, run in kernel_run(tuning, steps=range(1, 10**6)):
        t, n, leader, theta = run.state.now.rounds, run.state.arms.n, int(race.leader), float(race.theta)
        rivals = [k for k in range(5) if k != leader]
        won, paid = run.state.arms.reward, run.state.arms.cost
        assert np.array_equal(post[:4], [1 + won, 1 + n - won, 1 + paid, 1 + n - paid])
        q = np.array([chernoff(post[:4, k], post[TILT, k], theta) for k in range(5)])
        assert post[CHANCE] == pytest.approx(q, rel=1e-9) and post[TILT, leader] <= 0.0
        assert (post[TILT, rivals] >= 0.0).all() and (q[post[TILT] != 0.0] <= Tuning(*tuning).loud).all()
        assert post[CHANCE, leader] <= race.cap <= (1.0 if post[TILT, leader] == 0.0 else Tuning(*tuning).loud)
        assert t < race.ring <= min(post[BELL].min(), race.until + 1)
        thresholds.append(theta)
    assert t > 200 and np.count_nonzero(np.diff(thresholds)) >= refreshes


@pytest.mark.parametrize("family", FULL)
def test_a_kernel_left_and_entered_plays_on(family):
    """The same bits from two runs, whether they are left after every pull, at every leaf of a typed law, or never."""
    *_, (post, race, run) = kernel_run(USUAL, family=family)
    for options in ({}, {"slots": 4}, {"steps": range(1, 10**6)}):
        *_, other = kernel_run(USUAL, family=family, **options)
        assert np.array_equal(post, other[0]) and race == other[1]
        assert np.array_equal(run.state.arms.n, other[2].state.arms.n) and run.state.now == other[2].state.now
    *_, other = kernel_run(USUAL, family=family, seed=7)
    assert not np.array_equal(post, other[0])


# 7. Blocks of pulls.

SURE = {
    "a clear leader": cb.Bandit([cb.Bernoulli(0.8), cb.Bernoulli(0.3)], [cb.Bernoulli(0.3), cb.Bernoulli(0.6)]),
    "nearly alike": cb.Bandit([cb.Bernoulli(p) for p in (0.5, 0.47, 0.3)], [cb.Bernoulli(0.4)] * 3),
    "known costs": cb.Bandit([cb.Bernoulli(p) for p in (0.9, 0.7, 0.2)], [cb.Constant(1.0)] * 3),
    "ten arms": cb.instances.bernoulli(10)(np.random.default_rng(1)),
    "constants": cb.Bandit([cb.Constant(1.0), cb.Discrete([0, 1], [0.5, 0.5])], [cb.Constant(1.0)] * 2),
}


def run_of(bandit, fault, seed, budget=30_000.0):
    """A run of the kernel that can err, with checkpoints at uneven spendings: its own arrays and the engine's."""
    own = own_of([PRIOR] * bandit.K, fault=fault)
    run = Run(Stacks(bandit, seed, 0, range(bandit.K)), budget * np.linspace(0, 1, 14)[1:]**1.5, 10**9)
    run.play(faulty().bells, own, np.random.default_rng(seed))
    return own.posteriors, own.race, run


def same_by_blocks(bandit, fault=None, seeds=range(8)):
    """Whether runs by blocks are the same as by single pulls."""
    same = True
    for seed in seeds:
        (post, race, run), (slow_post, slow_race, slow) = (run_of(bandit, each, seed) for each in (fault, SINGLE))
        same &= np.array_equal(run.record.pulls, slow.record.pulls)
        same &= np.array_equal(run.record.noted, slow.record.noted)
        same &= np.array_equal(post[[0, 1, 2, 3, TILT]], slow_post[[0, 1, 2, 3, TILT]])
        same &= np.allclose(post[CHANCE], slow_post[CHANCE], rtol=1e-9) and race.ring == slow_race.ring
    return same


@pytest.mark.parametrize("case", SURE)
def test_blocks_are_pulled_as_if_one_by_one(case):
    assert same_by_blocks(SURE[case], seeds=range(20 * DEEP))


def test_trials_of_blocks_use_other_random_numbers():
    """So a run that differs from one by single pulls has blocks: most of those compared with the definition do."""
    pulls = [[run_of(CLEAR["two discrete"], fault, seed, PLAYED["two discrete"])[2].record.pulls
              for fault in (None, SINGLE)] for seed in range(20)]
    assert sum(not np.array_equal(*pair) for pair in pulls) > 10


@pytest.mark.parametrize("fault", ["a block across bells", "a block across a checkpoint",
                                   "the chance not renewed after a block"])
def test_errors_in_blocks_change_runs(fault):
    assert not all(same_by_blocks(SURE[case], fault) for case in ("a clear leader", "nearly alike"))


@Kernel
def jump(leap, m, money, own, arms, outcomes, rng):
    """A block by such a function."""
    return leap(m, money, own, arms, outcomes, rng)


def leaps(kernel, fault=None, law=cb.Bernoulli, blocks=400):
    """Blocks of a leader whose posterior and cap are set by hand: what its state was before and after each."""
    rng, found = np.random.default_rng(3), []
    for seed in range(blocks):
        x, y, n = rng.uniform(0.1, 0.9), rng.uniform(0.1, 0.9), 64 << rng.integers(0, 12)
        run = Run(Stacks(cb.Bandit([law(x)], [law(y)]), seed, 0, [0], slots=4), [np.inf], 1)
        won, paid = rng.binomial(n, x), rng.binomial(n, y)
        own = own_of([(1 + won, 1 + n - won, 1 + paid, 1 + n - paid)], fault=fault)
        post, race = own.posteriors, own.race
        run.state.arms.n[0] = run.outcomes.filled[0] = n
        a, b, c, d = post[:4, 0]
        race.theta = a / c * exp(-rng.uniform(2, 7) * sqrt((b / a + d / c) / n))
        post[TILT, 0], post[CHANCE, 0] = thompson.chernoff(a, b, c, d, race.theta, -1)
        race.cap = min(post[CHANCE, 0] * 2.0 ** rng.uniform(0.5, 12), 0.95)
        if 0.0 < post[CHANCE, 0] < race.cap:
            before, due = post[:, 0].copy(), rng.choice([np.inf, n * y / 20])
            money = around(jump, kernel.leap)(4 * n, Money(0.0, 0.0, due), own, run.state.arms, run.outcomes, rng)
            m = int(run.state.arms.n[0] - n)
            found.append((m, before, post[:, 0].copy(), float(race.cap), float(race.theta), money.spent < due,
                          run.outcomes.counts[0, :, 0].copy()))
    return found


def highest(before, won, paid, m):
    """The largest chance in a block, its successes of the cost first and those of the reward last."""
    a, b, c, _, s, q = before[:6]
    N, most = a + b, q
    for i in range(m - won):
        q *= (c - s) / c if i < paid else 1.0
        q *= N * N / (N * N - s * s)
        c, N, most = c + (i < paid), N + 1, max(most, q)
    return most


@pytest.mark.parametrize(("fault", "holds"), [(None, True), ("the bound of a block without its costs", False)])
def test_in_a_block_the_chance_stays_below_the_cap(fault, holds):
    worst, sizes = 0.0, []
    for m, before, after, cap, theta, sound, _ in leaps(faulty(), fault):
        sizes.append(m)
        if m > 0:
            won, paid = int(after[0] - before[0]), int(after[2] - before[2])
            worst = max(worst, highest(before, won, paid, m) / cap)
            assert sound and after[0] + after[1] == before[0] + before[1] + m
            assert after[CHANCE] == pytest.approx(chernoff(after[:4], after[TILT], theta), rel=1e-6)
    assert bool(worst <= 1.0) is holds
    assert sizes.count(0) > 50 and np.count_nonzero(sizes) > 100 and len(set(sizes)) > 5


def test_the_chance_by_its_closed_form_and_pull_by_pull():
    rng = np.random.default_rng(4)
    for posterior, theta in (((30, 12, 9, 33), 2.5), ((400, 300, 100, 600), 3.2), ((3, 9, 9, 3), 0.1)):
        a, b, c, d = map(float, posterior)
        s, q = thompson.chernoff(a, b, c, d, theta, -1)
        assert s < 0.0
        for x, y in rng.random((2000, 2)) < (0.6, 0.3):
            q *= thompson.gain(a, c, a + b, s, float(x), float(y))
            a, b, c, d = a + x, b + 1 - x, c + y, d + 1 - y
            assert q == pytest.approx(thompson.bound(a, b, c, d, s, theta), rel=1e-9)


@pytest.mark.parametrize(("fault", "sound"), [(None, True), ("the expected number of successes", False)])
def test_fractional_outcomes_of_a_block_succeed_one_by_one(fault, sound):
    """Given how many are 1/2, binomially: the sum of squared deviations is chi-square."""
    squares = []
    for m, before, after, *_, read in leaps(faulty(), fault, of_three, 2000 * DEEP):
        for column, success in enumerate((0, 2)):
            _, half, ones = read[column]                   # how often 0, 1/2 and 1 were read
            if m > 0 and half > 20 and (column == 0 or sound):
                squares.append((after[success] - before[success] - ones - half / 2)**2 / (half / 4))
    p = 2 * min(tail(sum(squares), len(squares)) for tail in (stats.chi2.cdf, stats.chi2.sf))
    assert len(squares) > 200 and (p > ALARM if sound else p < CAUGHT)


@pytest.mark.parametrize("family", FAMILIES)
def test_one_arm_leaves_no_choice(family):
    runs = cb.simulate({"fast": cb.BTS(), "naive": cb.BTS(naive=True)}, FAMILIES[family](1), cb.Budget(30))
    assert np.array_equal(runs.pulls[0], runs.pulls[1]) and np.array_equal(runs.spent[0], runs.spent[1])
    assert np.array_equal(runs.rounds[0], runs.pulls[0, ..., 0])


def test_without_kernels_every_arm_is_drawn_in_every_round():
    slow, naive, quick = (cb.simulate({"p": policy}, FULL["discrete"], cb.Budget(60), 4, seed=3, fast=way)
                          for policy, way in ((cb.BTS(), False), (cb.BTS(naive=True), True), (cb.BTS(), True)))
    for name in ("pulls", "rounds", "spent", "reward"):
        assert np.array_equal(getattr(slow, name), getattr(naive, name))
    assert not np.array_equal(slow.pulls, quick.pulls)


@pytest.mark.parametrize("wrong", [1, 0, "yes", None])
def test_naive_is_true_or_false(wrong):
    with pytest.raises(ValueError, match=r"naive = .*: must be True or False"):
        cb.BTS(naive=wrong)


def test_bts_draws_from_the_posteriors():
    # won = (3, 1), paid = (1, 3) out of n = 4: arm 0 has Beta(4, 2) / Beta(2, 4), arm 1 the inverse. How often arm 0
    # is chosen, against drawing with NumPy: 5 standard errors of the difference, a false alarm once in a million.
    size, rng = 40_000, np.random.default_rng(4)
    x = [rng.beta(a, 6 - a, size) for a in (4, 2, 2, 4)]
    expected = np.mean(x[0] / x[1] > x[2] / x[3])
    memory, kernel_rng, rounds = [3, 1, 1, 3, 0, 3, 1], np.random.default_rng(5), 4000
    # The last outcome was nothing: the arm's sums have not grown.
    share = np.mean([choice_of(cb.BTS.rule, 9, [4, 4], [3, 1], [1, 3], memory, kernel_rng) == 0 for _ in range(rounds)])
    assert abs(share - expected) < 5 * sqrt(0.25 / rounds + 0.25 / size)
