"""KUBE, fractional KUBE and epsilon-first: known costs and a budget that may not be exceeded.

Tran-Thanh, Chapman, Rogers and Jennings, "Knapsack based Optimal Policies for Budget-Limited Multi-Armed Bandits"
(2012); epsilon-first: Tran-Thanh et al., "Epsilon-First Policies for Budget-Limited Multi-Armed Bandits" (2010).

Algorithm 1 begins with a pull of every arm, whatever is left of the budget; here an arm that is not affordable is
passed over, then and always.
"""

from dataclasses import dataclass
from math import floor, inf, log, sqrt

import numba as nb
import numpy as np
from numba import types as T

from ..checks import number, positive, require, rounding
from ..engine.compilation import around
from ..engine.loops import (
    FAR,
    INDEX,
    LOWER,
    RUNNING,
    Run,
    afresh,
    all_affordable_below,
    approach,
    checkpoint,
    end_run,
    goes_on,
    kernel,
    lower_of,
    no_lower,
    pull,
    pull_many,
)
from ..engine.search import lazy_argmax, lent, new_search, pulled
from ..engine.state import new_record
from ..engine.thinning import CLOCK, look_ahead
from ..engine.trees import KIND, TYPED, read_on, settle
from .base import ChoiceRule, IndexRule, Problem, choose, index, require_known_costs

_floats, _ints = T.float64[::1], T.int64[::1]
MANY = 16           # pulls that are worth a call of `pull_many`


@index
def density(t, n, reward, cost, reward_sq, cost_sq, constant, params):
    """Density (r + sqrt(2 ln t / n)) / c of an arm with the known cost c (Tran-Thanh et al., 2012, Algorithm 1)."""
    return (reward / n / params[0] + sqrt(2.0 * log(t) / n)) / constant if n > 0 else inf


@dataclass(frozen=True)
class FractionalKUBE(IndexRule):
    """Fractional KUBE: the affordable arm with the largest density (r + sqrt(2 ln t / n)) / c.

    Rewards are divided by `reward_scale` before the bonus is added: their common range, which the analysis takes to be
    1. At round 101, of an arm at cost 2 that has paid 10 in 25 pulls:

    >>> round(cb.FractionalKUBE.rule(101, 25, 10.0, 50.0, 10.0, 100.0, 2.0, np.array([1.0])), 3)
    0.504
    """

    reward_scale: float = 1.0
    rule = staticmethod(density)

    def __post_init__(self):
        positive("reward_scale", self.reward_scale)

    def check(self, problem: Problem) -> None:
        require_known_costs(self, problem)

    def prepare(self, problem: Problem) -> np.ndarray:
        return problem.cost_means


@nb.njit(error_model="numpy")
def fill(index, t, spent, ceiling, n, sums, costs, params, arms, counts):
    """Density-ordered greedy filling of what is left of the budget: `arms` in order, how often each; how many arms."""
    rest, kinds, arm = ceiling - spent, 0, 0
    while arm >= 0:
        arm, best = -1, -inf
        for k in range(n.size):
            if costs[k] <= rest and spent + costs[k] <= ceiling and kinds < n.size:
                value = index(t + 1, n[k], sums[0, k], sums[1, k], sums[2, k], sums[3, k], costs[k], params)
                if value > best:
                    arm, best = k, value
        if arm >= 0:
            arms[kinds], counts[kinds] = arm, floor(rest / costs[arm])
            rest -= counts[kinds] * costs[arm]
            kinds += 1
    return kinds


@nb.njit(error_model="numpy")
def item(at, arms, counts):
    """The arm of item `at` of a filling, counted from 0."""
    i = 0
    while at >= counts[i]:
        at -= counts[i]
        i += 1
    return arms[i]


@nb.njit(error_model="numpy")
def any_item(index, t, spent, ceiling, n, sums, costs, params, arms, counts, rng):
    """An item of the filling; -1 if it is empty. An arm that was never pulled is not left to chance."""
    kinds = fill(index, t, spent, ceiling, n, sums, costs, params, arms, counts)
    if kinds > 1 and n[arms[0]] > 0:
        return item(rng.random() * counts[:kinds].sum(), arms, counts)
    return arms[0] if kinds > 0 else -1


@nb.njit(error_model="numpy")
def shares(left, cost, least):
    """How often the leader fits into what is left of the budget, and how many other items the rest has room for."""
    often = floor(left / cost)
    return often, max(floor((left - often * cost) / least), 0.0)


@nb.njit(error_model="numpy")
def watch(clock, rng, t, arm, left, cost, least):
    """Set the clock to the next round that may draw another item than the leader's.

    While only the leader is pulled, it has one item less in each round, and the rest stays what it is.
    """
    often, others = shares(left, cost, least)
    stretch = max(often // 2, 1.0)
    look_ahead(clock, rng, t, np.int64(stretch), others / (often - stretch + 1.0 + others))
    clock.arm = arm


@nb.njit(error_model="numpy")
def item_of_candidate(index, t, spent, ceiling, least, n, sums, costs, params, clock, arms, counts, rng):
    """An item of the filling, given that round t + 1 is a candidate: the leader's, unless the candidate is accepted."""
    arm, u = clock.arm, rng.random() * clock.rate
    often, others = shares(ceiling - spent, costs[arm], least)
    if u * (often + others) < others:
        kinds = fill(index, t, spent, ceiling, n, sums, costs, params, arms, counts)
        at = u * counts[:kinds].sum()
        if at < counts[1:kinds].sum():
            return item(at, arms[1:], counts[1:])
    return arm


@nb.njit(error_model="numpy")
def safe_pulls(lower, t, arm, value, most, n, sums, costs, params):
    """For how many pulls the leader is sure to stay above `most`, whatever it pays; 1 if they are few or not known.

    Its density is at least (n / (n + m)) of what it is now after m pulls, and twice that is tried first.
    """
    i = n[arm]
    m = np.int64(min(2.0 * i * (value - most) / most, FAR)) if most > 0.0 else np.int64(FAR)
    for _ in range(2):
        if m >= MANY and lower(t + 1, i, m, sums[0, arm], sums[1, arm], sums[2, arm], sums[3, arm], 0.0,
                               m * costs[arm], costs[arm], params) > most:
            return m
        m >>= 1
    return 1


@kernel(T.FunctionType(INDEX), T.FunctionType(LOWER), _floats, _floats, *map(nb.typeof, new_search(1)),
        nb.typeof(new_record(CLOCK)), _ints, _floats, T.npy_rng)
def by_filling(index, lower, costs, params, search, tree, bounds, clock, arms, counts, rng, outcomes, state, record,
               limits):
    """Pull an arm drawn from the filling; only as much of the filling is worked out as the draw depends on.

    The densest arm, found by `lazy_argmax`, fills the budget but for a rest. If the rest has room for others, they are
    at most rest / c_min, and nearly always the draw falls on the densest arm whatever they are. The rounds in which it
    may not are found by thinning; in between the densest arm is pulled many times at once where it stays ahead.
    """
    pool, at, filled, kinds = outcomes.pool, outcomes.at, outcomes.filled, outcomes.arms
    n, sums, now = lent(state.n), lent(state.sums), state.now
    costs, params, tree, bounds = lent(costs), lent(params), lent(tree), lent(bounds)
    last, max_cost, ceiling, _ = limits
    status, pause, least = RUNNING, all_affordable_below(max_cost, ceiling), costs.min()
    t, spent, collected = now.rounds, now.spent, now.reward
    while status == RUNNING:
        going, sure, due = True, spent < pause, record.due[now.checkpoint]
        due = min(due, pause) if sure else due
        near = approach(spent, due)
        while going:
            arm, m = search.leader, 1
            if sure:
                value = index(t + 1, n[arm], sums[0, arm], sums[1, arm], sums[2, arm], sums[3, arm], costs[arm], params)
                ahead = t < search.expires and value > search.rival_bound
                if not ahead:
                    arm = lazy_argmax(index, t, search, tree, bounds, n, sums, costs, params, last)
                if n[arm] > 0:
                    if arm != clock.arm or t >= clock.until:
                        watch(clock, rng, t, arm, ceiling - spent, costs[arm], least)
                    if t == clock.candidate:
                        arm = item_of_candidate(index, t, spent, ceiling, least, n, sums, costs, params, clock, arms,
                                                counts, rng)
                    elif ahead:
                        m = safe_pulls(lower, t, arm, value, search.rival_bound, n, sums, costs, params)
                        m = min(m, search.expires - t, clock.candidate - t, last - t)
            else:
                arm = any_item(index, t, spent, ceiling, n, sums, costs, params, arms, counts, rng)
                if arm < 0:
                    return end_run(t, state, record)
            i = n[arm]
            if m >= MANY:
                spent, collected = pull_many(arm, m, spent, collected, due, n, sums, outcomes)
            else:
                if i == filled[arm]:
                    read_on(arm, n, sums, outcomes)
                reward, cost = pull(arm, n, sums, pool, at)
                spent, collected = spent + cost, collected + reward
                if n[arm] == filled[arm]:
                    settle(arm, sums, kinds, outcomes.laws, outcomes.counts)
            t += n[arm] - i
            if spent > near:
                spent, collected, near = afresh(due, state)
            going = spent < due and t < last and goes_on(arm, n, filled, kinds)
            if arm != search.leader:
                pulled(arm, search, tree, bounds)
        status = checkpoint(arm, t, spent, collected, outcomes, state, record, limits)
        spent, collected = now.spent, now.reward
    return status


@dataclass(frozen=True)
class KUBE(FractionalKUBE):
    """KUBE (Algorithm 1): an arm drawn from the density-ordered greedy filling of what is left of the budget.

    Densities and `reward_scale` are those of `FractionalKUBE`; items of the filling are equally likely.

    >>> cb.KUBE(reward_scale=5)
    KUBE(reward_scale=5)
    """

    loop = staticmethod(by_filling)
    monotone = False       # promises nothing to the engine: it has a pull loop of its own
    in_blocks = True

    def check(self, problem: Problem) -> None:
        super().check(problem)
        require(problem.hard, "stop", "no hard budget", "KUBE needs HardBudget(total)")

    def play(self, run: Run, problem: Problem, rng: np.random.Generator) -> int:
        costs, K = self.prepare(problem).copy(), problem.K
        lower = no_lower if run.stacks.negative else lower_of(self.rule)
        return run.play(around(self.loop, self.rule, lower), costs, self.parameters, *run.search(), new_record(CLOCK),
                        np.zeros(K, np.int64), np.zeros(K), rng)


@choose
def epsilon_first(t, n, reward, cost, reward_sq, cost_sq, problem, params, memory, rng):
    """Epsilon-first (Tran-Thanh et al., 2010); memory: an arm, whether exploring is over, densities."""
    K, explore, total, costs = len(n), problem[0], problem[1], problem[2:]
    at, exploring, density = int(memory[0]), memory[1] == 0.0, memory[2:]
    arm, spent = -1, 0.0
    for k in range(K):
        spent += cost[k]
    for i in range(K if exploring else 0):             # sweep after sweep, past arms that do not fit any more
        k = (at + i) % K
        if spent + costs[k] <= explore:
            arm, memory[0] = k, k + 1
            break
    if exploring and arm < 0:                          # estimates freeze here; an arm never pulled comes last
        memory[1], at = 1.0, -1
        for k in range(K):
            density[k] = reward[k] / n[k] / costs[k] if n[k] > 0 else -inf
    if arm < 0:
        arm = at
        if at < 0 or spent + costs[at] > total:        # the densest while it fits, then the densest that does
            arm = -1
            for k in range(K):
                if spent + costs[k] <= total and (arm < 0 or density[k] > density[arm]):
                    arm = k
        memory[0] = arm
    return arm


@nb.njit(error_model="numpy")
def sweeps(t, spent, due, explore, last, n, costs, outcomes):
    """How many whole sweeps are sure to end before anything happens, and through how many arms: those that still fit.

    None becomes too expensive on the way, no checkpoint is reached, and no law need be sampled in Python.
    """
    fit, total = 0, 0.0
    for k in range(n.size):
        if spent + costs[k] <= explore:
            fit, total = fit + 1, total + costs[k]
    m = np.int64(min((min(due, explore) - spent) / total, FAR)) - 1 if fit > 0 else 0
    for k in range(n.size):
        if outcomes.arms[k, KIND] == TYPED:
            m = min(m, outcomes.filled[k] - n[k] - 1)
    return min(m, (last - t) // max(fit, 1)), fit


@nb.njit(error_model="numpy")
def sweep(m, spent, explore, n, sums, costs, outcomes):
    """Pull every arm that fits m times; what is spent and collected."""
    paid, gained = 0.0, 0.0
    for k in range(n.size):
        if spent + costs[k] <= explore:
            paid, gained = pull_many(k, m, paid, gained, inf, n, sums, outcomes)
    return spent + paid, gained


@nb.njit(error_model="numpy")
def next_that_fits(at, spent, explore, costs):
    """The first position from `at` on, past the last one to the first, of an arm that fits; -1 if none does."""
    for i in range(costs.size):
        k = (at + i) % costs.size
        if spent + costs[k] <= explore:
            return k
    return -1


@nb.njit(error_model="numpy")
def densest_that_fits(spent, ceiling, costs, density):
    """The densest arm that fits, ties to the lowest position; -1 if none does."""
    arm = -1
    for k in range(costs.size):
        if spent + costs[k] <= ceiling and (arm < 0 or density[k] > density[arm]):
            arm = k
    return arm


@kernel(T.float64, _floats, _floats, _ints)
def by_sweeps(explore, costs, density, place, outcomes, state, record, limits):
    """The same arms as `epsilon_first`: whole sweeps arm by arm, then the densest arm as often as it fits.

    The library never plays `epsilon_first` itself: tests/policies/test_kube.py compares both.
    `place`: where the sweep goes on, -1 when exploring is over. What is spent is summed in another order than pull by
    pull; what `explore` and the ceiling leave for rounding covers that.
    """
    n, sums, now = state
    last, _, ceiling, _ = limits
    status, t, spent, collected = RUNNING, now.rounds, now.spent, now.reward
    while status == RUNNING:
        going, due, arm = True, record.due[now.checkpoint], 0
        near = approach(spent, due)
        while going:
            arm, m, fit = -1, 1, 0
            if place[0] >= 0:
                m, fit = sweeps(t, spent, due, explore, last, n, costs, outcomes)
                if m > 0:
                    spent, gained = sweep(m, spent, explore, n, sums, costs, outcomes)
                    t, collected = t + m * fit, collected + gained
                    arm, going = 0, t < last
                    continue
                arm, m = next_that_fits(place[0], spent, explore, costs), 1
                place[0] = arm + 1 if arm >= 0 else -1
                if arm < 0:
                    for k in range(n.size):     # estimates freeze here; an arm never pulled comes last
                        density[k] = sums[0, k] / n[k] / costs[k] if n[k] > 0 else -inf
            if arm < 0:
                arm = densest_that_fits(spent, ceiling, costs, density)
                if arm < 0:
                    return end_run(t, state, record)
                m = np.int64(min((ceiling - spent) / costs[arm], FAR)) - 1
            i = n[arm]
            spent, collected = pull_many(arm, min(max(m, 1), last - t), spent, collected, due, n, sums, outcomes)
            t += n[arm] - i
            if spent > near:
                spent, collected, near = afresh(due, state)
            going = spent < due and t < last and (n[arm] < outcomes.filled[arm] or outcomes.arms[arm, KIND] != TYPED)
        status = checkpoint(arm, t, spent, collected, outcomes, state, record, limits)
        spent, collected = now.spent, now.reward
    return status


@dataclass(frozen=True)
class EpsilonFirst(ChoiceRule):
    """Epsilon-first: sweeps through all arms with a share epsilon of the budget, then the greedy filling of the rest.

    The filling is density-ordered, by the mean rewards at the end of the sweeps, which are not updated after. If the
    share is too small to pull every arm, those never pulled come last: `Runs.unpulled` counts them. Epsilon is in
    (0, 1).

    >>> cb.EpsilonFirst(0.1)
    EpsilonFirst(epsilon=0.1)
    """

    epsilon: float
    rule = staticmethod(epsilon_first)
    in_blocks = True

    def __post_init__(self):
        allowed = "must be a number in (0, 1)"
        require(0 < number("epsilon", self.epsilon, allowed=allowed) < 1, "epsilon", self.epsilon, allowed)

    def check(self, problem: Problem) -> None:
        require_known_costs(self, problem)
        require(problem.hard, "stop", "no hard budget", "EpsilonFirst needs HardBudget(total)")

    def prepare(self, problem: Problem) -> np.ndarray:
        parts = self.epsilon * problem.budget, problem.budget
        return np.concatenate([[part + rounding(part) for part in parts], problem.cost_means])

    def memory(self, K: int) -> int:
        return K + 2

    def play(self, run: Run, problem: Problem, rng: np.random.Generator) -> int:
        explore, _, *costs = self.prepare(problem).tolist()
        return run.play(by_sweeps, explore, np.array(costs), np.empty(problem.K), np.zeros(1, np.int64))
