"""Budgeted Thompson sampling by bells plays exactly by its law, and these tests would notice if it did not.

The law is known without drawing: `Grid` has the density of log V = log(R/C), accurate to 1e-8, and probabilities of
choices to 1e-10. Counts are held against it by chi-square tests that pool the cells expected below 10, and full runs
against the definition by two-sample tests. There are fewer than 200 p-values, each of which must exceed 1e-9: the seeds
are fixed, but with fresh ones a false alarm would have a probability below 1e-6, with room for the chi-square
approximation. Errors made on purpose must give a p-value below 1e-12. The environment variable COSTBANDITS_DEEP
multiplies the sample sizes.
"""

import inspect
import itertools
import os
from functools import cache
from math import exp, log

import numba as nb
import numpy as np
import pytest
from numba import types as T
from numpy.polynomial import legendre
from reference import FAMILIES
from scipy import special, stats

import costbandits as cb
from costbandits.engine import loops as engine
from costbandits.engine.stacks import Stacks
from costbandits.engine.state import TYPES, Limits, Outcomes, new_record
from costbandits.policies import thompson
from costbandits.policies.thompson import BELL, CHANCE, RACE, TILT, Tuning

pytestmark = pytest.mark.slow

DEEP = int(os.environ.get("COSTBANDITS_DEEP", "1"))
ALARM, CAUGHT = 1e-9, 1e-12
FINE, FINER = 1.0, 1.6                                     # the grid in use, and one to compare it with
TAIL = special.ndtr(-9.0)                                  # 1e-19: what lies further out is left out
USUAL = cb.BTS.tuning
OWN = USUAL, np.ones((9, 1)), new_record(RACE), np.zeros(2, np.int64), np.random.default_rng(0)
LOOP = T.int64(*map(nb.typeof, OWN), *TYPES)


@cache
def bells():
    """The library's loop, as a function that compiled code can be given."""
    return nb.njit(LOOP, error_model="numpy")(thompson.bells.py_func)


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


def p_value(counts, probabilities):
    """Chi-square test; the cells expected below 10 are pooled, if need be together with the next larger ones."""
    expected = np.ravel(probabilities) * counts.sum()
    order = np.argsort(expected)
    observed, expected = np.ravel(counts)[order], expected[order]
    rare = np.searchsorted(expected, 10.0)
    while 0 < rare < len(expected) and expected[:rare].sum() < 10.0:
        rare += 1
    cells = np.r_[0, rare:len(expected)] if rare else np.arange(len(expected))
    observed, expected = np.add.reduceat(observed, cells), np.add.reduceat(expected, cells)
    return stats.chi2.sf(((observed - expected)**2 / expected).sum(), max(len(cells) - 1, 1))


# Errors made on purpose. What stands in the source once is replaced by a choice between it and something wrong, by a
# number that stands in a ninth row of the arms' state: so one compilation serves them all.

FAULTS = {
    "the recursion of the chance dropped": ("(a + x * s) * (c - y * s) * N * N / (a * c * (N * N - s * s))", "1.0"),
    "its cost factor dropped": ("(c - y * s) * N * N / (a * c * (N * N - s * s))", "N / (a * (N + s))"),
    "a pulled rival's bell not wound anew": ("wind(arm, t, arms, rng)", "None"),
    "a pulled rival's bell at the old pace": ("pace(arm, arms)", "None"),
    "refreshed when the next bell is far": ("race.work >= lazy", "race.ring > t + 3"),
    "no false alarms below theta": ("not 0.0 < s * log(V / theta) < rng.standard_exponential()",
                                    "not 0.0 < s * log(V / theta)"),
    "no false alarms above theta": ("rung[i], rng.standard_exponential()", "rung[i], inf"),
    "the leader drawn unconditioned": ("V if V > theta else 0.0", "V"),
    "silent rivals drawn unconditioned": ("V if V <= theta else 0.0", "V"),
    "drawn as if the best were e theta": ("arms[TILT, k] * room < kept", "arms[TILT, k] < kept"),
    "drawn, but not compared with the best": ("V > best and arms[TILT, k] * log(V / theta) < kept",
                                              "V > theta and kept > arms[TILT, k] * log(V / theta)"),
    "kept by a second exponential": ("arms[TILT, k] * log(V / theta) < kept",
                                     "arms[TILT, k] * log(V / theta) < rng.standard_exponential()"),
}
NUMBER = {None: 0, **{fault: number for number, fault in enumerate(FAULTS, start=1)}}


@cache
def faulty():
    """`contest` and `bells` that can make any of the errors; the functions they call are the module's own."""
    parts = thompson.learn, thompson.knock, thompson.contest, thompson.bells
    source = "\n".join(inspect.getsource(part.py_func) for part in parts)
    for fault, (right, wrong) in FAULTS.items():
        assert source.count(right) == 1
        source = source.replace(right, f"(({wrong}) if arms[8, 0] == {NUMBER[fault]} else ({right}))")
    names = {**vars(thompson), "compiled_for": lambda: nb.njit(LOOP, error_model="numpy")}
    exec(source, names)
    return names["contest"], names["bells"]


def state(posteriors, fault=None):
    """The kernel's array of the arms, with the number of an error in a ninth row."""
    arms = np.ones((9, len(posteriors)))
    arms[:4], arms[8] = np.transpose(posteriors), NUMBER[fault]
    return arms


# 1. Posteriors that stay as they are.

@cache
def frozen(contest):
    """A pull loop without pulls: how often which bells rang (bit k: arm k) and which arm was chosen."""

    @nb.njit(error_model="numpy")
    def loop(rounds, tuning, arms, race, rng):
        K = arms.shape[1]
        rung, counts = np.zeros(K + 1, np.int64), np.zeros((1 << K, K), np.int64)
        race.work = np.inf
        for t in range(rounds):
            if race.work >= tuning.lazy * K:
                thompson.refresh(t, tuning, arms, race, rng)
            arm = race.leader
            low_rang = rng.random() < arms[CHANCE, arm]
            event = (1 << arm) * low_rang
            for k in range(K):
                event += (1 << k) * (arms[BELL, k] <= t + 1)
            if low_rang or race.ring <= t + 1:
                arm = contest(t + 1, low_rang, arms, race, rung, rng)
            counts[event, arm] += 1
            if arm != race.leader:
                thompson.wind(arm, t + 1, arms, rng)
                race.ring = min(race.ring, arms[BELL, arm])
        return counts

    return loop


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


def frozen_counts(contest, number, fault=None):
    """Counts of (bells, arm) in a setting, and what else their law depends on."""
    posteriors, tuning = SETTINGS[number]
    arms, race, rng = state(posteriors, fault), new_record(RACE), np.random.default_rng(number)
    counts = frozen(contest)(30_000 * DEEP, Tuning(*map(float, tuning)), arms, race, rng)
    return counts, (tuple(map(tuple, posteriors)), int(race.leader), float(race.theta), tuple(arms[TILT]))


@pytest.mark.parametrize("number", range(len(SETTINGS)))
def test_choices_follow_the_law_of_frozen_posteriors(number):
    counts, given = frozen_counts(thompson.contest, number)
    law = frozen_law(*given)
    assert law.sum() == pytest.approx(1, abs=1e-9)
    assert p_value(counts, law) > ALARM
    assert p_value(counts.sum(axis=0), law.sum(axis=0)) > ALARM


# 2. Whole paths through the kernel, in which the posteriors learn from outcomes that are fixed beforehand.

@nb.njit(T.int64[::1](T.FunctionType(LOOP), T.int64, T.int64, *LOOP.args))
def play_paths(loop, repeats, length, tuning, start, race, rung, rng, outcomes, state, record, limits):
    """How often each sequence of `length` pulls was played, by its number in base K."""
    n, _, now = state
    _, max_cost, ceiling, rate = limits
    K, arms = n.size, start.copy()
    counts, pulled = np.zeros(K**length, np.int64), np.zeros(K, np.int64)
    for _ in range(repeats):
        path, now.rounds = 0, 0
        for k in range(K):
            n[k] = pulled[k] = 0
            for row in range(9):
                arms[row, k] = start[row, k]
        for limit in range(1, length + 1):                 # so the kernel is left and entered at every pull
            loop(tuning, arms, race, rung, rng, outcomes, state, record, Limits(limit, max_cost, ceiling, rate))
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
    "a dear leader": ([(20, 10, 8, 22), (9, 9, 9, 9)], ([(1, 1)], MIXED), 10, (1.5, 0.95, 24.0)),
    "a fine leader": ([(20, 10, 8, 22), (9, 9, 9, 9), (3, 2, 2, 3)], (LUCKY, MIXED, MIXED), 6, (1.5, 0.95, 1e9)),
    "always refreshed": ([(20, 10, 8, 22), (9, 9, 9, 9), (3, 2, 2, 3)], (MIXED, MIXED, LUCKY), 6, (1.5, 0.95, 0.0)),
}


def path_counts(loop, case, fault=None):
    posteriors, outcomes, length, tuning = PATHS[case]
    K = len(posteriors)
    stacks = Stacks(cb.Bandit([cb.Constant(0.5)] * K, [cb.Constant(0.5)] * K), 0, 0, range(K), page=16)
    for k in range(K):
        stacks.pool[stacks.table[k, 0]] = np.resize(outcomes[k], (16, 2))
    run = engine.Run(stacks, [np.inf], 1)
    outcomes = Outcomes(stacks.pool, stacks.table, stacks.filled, stacks.shift)
    return play_paths(loop, 30_000 * DEEP, length, Tuning(*map(float, tuning)), state(posteriors, fault),
                      new_record(RACE), np.zeros(K + 1, np.int64), np.random.default_rng(1), outcomes, run.state,
                      run.record, run.limits)


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


FULL = {"Bernoulli": five_arms(cb.Bernoulli), "Beta": five_arms(lambda mean: cb.Beta(2 * mean, 2 - 2 * mean)),
        "discrete": five_arms(lambda mean: cb.Discrete([0, 0.5, 1], [(1 - mean)**2, 2 * mean * (1 - mean), mean**2]))}


class FaultyBTS(cb.BTS):
    def play(self, run, problem, rng):
        arms = state([PRIOR] * problem.K, "drawn, but not compared with the best")
        return run.play(faulty()[1], self.tuning, arms, new_record(RACE), np.zeros(problem.K + 1, np.int64), rng)


@cache
def figures_of_runs(policy, family, seed):
    """Rounds and pulls of the best arm after half and all of the budget, and regrets: shape (5, replications)."""
    runs = cb.simulate({"": policy}, FULL[family], cb.Budget(150), 300 * DEEP, seed=seed, checkpoints=2)
    best = runs.pulls[0, ..., FULL[family].ratios.argmax()]
    return [*runs.rounds[0].T, *best.T, cb.regret.budgeted(runs)[0, :, -1]]


def difference(policy, family):
    """The smallest p-value of ten tests of a policy against the definition, on independent stacks."""
    pairs = list(zip(figures_of_runs(policy, family, 1), figures_of_runs(cb.BTS(naive=True), family, 2), strict=True))
    return min(test(*pair).pvalue for pair in pairs for test in (stats.ks_2samp, stats.mannwhitneyu))


@pytest.mark.parametrize("family", FULL)
def test_runs_are_distributed_as_those_of_the_definition(family):
    assert difference(cb.BTS(), family) > ALARM


# 4. What these tests would notice, and what they rest on.

@pytest.mark.parametrize("fault", FAULTS)
def test_errors_change_the_law_of_paths(fault):
    # The old countdown does little harm: only a rival that is pulled although far behind, and gains by it, shows it.
    case = "a lucky rival" if "a pulled rival" in fault else "a failing leader"
    assert p_value(path_counts(faulty()[1], case, fault), path_law(case)) < CAUGHT


@pytest.mark.parametrize("fault", list(FAULTS)[5:])        # the others are in the kernel, not in `contest`
def test_errors_change_the_law_of_choices(fault):
    found = (frozen_counts(faulty()[0], number, fault) for number in (1, 3, 4))
    assert min(p_value(counts, frozen_law(*given)) for counts, given in found) < CAUGHT


def test_errors_change_full_runs():
    assert difference(FaultyBTS(), "Bernoulli") < CAUGHT


def test_the_functions_that_can_err_do_not_unless_told_to():
    for number in (1, 3, 4):
        counts = [frozen_counts(contest, number)[0] for contest in (thompson.contest, faulty()[0])]
        assert np.array_equal(*counts)
    for case in ("a lucky rival", "a failing leader"):
        assert np.array_equal(path_counts(bells(), case), path_counts(faulty()[1], case))


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
    _, given = frozen_counts(thompson.contest, number)
    assert frozen_law(*given) == pytest.approx(frozen_law(*given, FINER), abs=1e-10)


@pytest.mark.parametrize("case", ["two new arms", "a lucky rival"])
def test_a_finer_grid_gives_the_same_law_of_paths(case):
    assert path_law(case) == pytest.approx(path_law(case, FINER), abs=1e-10)


# 5. The draws.

DRAWN = [(PRIOR, 0.0), ((2, 1, 1, 2), 0.0), ((1, 3, 3, 1), 2.5), ((9, 4, 5, 8), -3.0), ((3, 9, 9, 3), -2.9),
         ((30, 12, 9, 33), 4.0), ((400, 3, 2, 401), 0.0), ((3000, 5000, 4000, 4000), 60.0)]


def drawn(draw, posterior, tilt):
    """The p-value of 200,000 draws from a tilted posterior, counted by the panels of a grid."""

    @nb.njit(error_model="numpy")
    def many(number, tilt, arms, rng):
        return [draw(0, tilt, arms, rng) for _ in range(number)]

    a, b, c, d = posterior
    grid = Grid([(a + tilt, b, c - tilt, d)])
    law = (grid.weights * grid.density((a + tilt, b, c - tilt, d))).sum(axis=1)
    ends = np.r_[grid.x[:, 0] - grid.half[:, 0] * (1 + legendre.leggauss(8)[0][0]), np.inf]
    found = np.log(many(200_000 * DEEP, tilt, state([posterior]), np.random.default_rng(8)))
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


def kernel_run(tuning, page=1024, steps=(10**6,), family="Bernoulli", seed=6):
    """A run of the kernel: its own arrays and the engine's, after each of some numbers of rounds."""
    arms, race, rung = state([PRIOR] * 5), new_record(RACE), np.zeros(6, np.int64)
    rng, tuning = np.random.default_rng(seed), Tuning(*map(float, tuning))
    table = engine.Run(Stacks(FULL[family], seed, 0, range(5), page), [150.0], 1)
    for table.max_rounds in steps:
        status = table.play(bells(), tuning, arms, race, rung, rng)
        yield arms, race, table
        if status == engine.DONE:
            return


@pytest.mark.parametrize(("tuning", "refreshes"), [(USUAL, 5), ((2.0, 0.5, 0.5), 20), ((1.0, 0.95, 1e9), 0)])
def test_the_state_after_every_pull(tuning, refreshes):
    thresholds = []
    for arms, race, table in kernel_run(tuning, steps=range(1, 10**6)):
        t, n, leader, theta = table.state.now.rounds, table.state.n, int(race.leader), float(race.theta)
        rivals = [k for k in range(5) if k != leader]
        won, paid = table.state.sums[:2]
        assert np.array_equal(arms[:4], [1 + won, 1 + n - won, 1 + paid, 1 + n - paid])
        q = np.array([chernoff(arms[:4, k], arms[TILT, k], theta) for k in range(5)])
        assert arms[CHANCE] == pytest.approx(q, rel=1e-9) and arms[TILT, leader] <= 0.0
        assert (arms[TILT, rivals] >= 0.0).all() and (q[arms[TILT] != 0.0] <= Tuning(*tuning).loud).all()
        assert t < race.ring <= arms[BELL].min() and arms[BELL, leader] == np.inf
        thresholds.append(theta)
    assert t > 200 and np.count_nonzero(np.diff(thresholds)) >= refreshes


@pytest.mark.parametrize("family", FULL)
def test_a_kernel_left_and_entered_plays_on(family):
    """The same bits from two runs, whether they are left at every page of two pairs, after every pull, or never."""
    *_, (arms, race, table) = kernel_run(USUAL, family=family)
    for options in ({}, {"page": 2}, {"page": 256}, {"steps": range(1, 10**6)}):
        *_, other = kernel_run(USUAL, family=family, **options)
        assert np.array_equal(arms, other[0]) and race == other[1]
        assert np.array_equal(table.state.n, other[2].state.n) and table.state.now == other[2].state.now
    *_, other = kernel_run(USUAL, family=family, seed=7)
    assert not np.array_equal(arms, other[0])


@pytest.mark.parametrize("family", FAMILIES)
def test_one_arm_leaves_no_choice(family):
    runs = cb.simulate({"fast": cb.BTS(), "naive": cb.BTS(naive=True)}, FAMILIES[family](1), cb.Budget(30))
    assert np.array_equal(runs.pulls[0], runs.pulls[1]) and np.array_equal(runs.spent[0], runs.spent[1])
    assert np.array_equal(runs.rounds[0], runs.pulls[0, ..., 0])


@pytest.mark.parametrize("wrong", [1, 0, "yes", None, np.True_])
def test_naive_is_true_or_false(wrong):
    with pytest.raises(ValueError, match=r"naive = .*: must be True or False"):
        cb.BTS(naive=wrong)
