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

from ..checks import number, positive, require
from ..engine.compilation import around
from ..engine.loops import INDEX, RUNNING, Run, all_affordable_below, checkpoint, end_run, kernel, pull
from ..engine.search import lazy_argmax, lent, new_search, pulled
from .base import ChoiceRule, IndexRule, Problem, choose, index, require_known_costs

_floats, _ints = T.float64[::1], T.int64[::1]


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
def draw(u, kinds, arms, counts):
    """The item at the share u of the filling."""
    at, i = u * counts[:kinds].sum(), 0
    while at >= counts[i]:
        at -= counts[i]
        i += 1
    return arms[i]


@kernel(T.FunctionType(INDEX), _floats, _floats, *map(nb.typeof, new_search(1)), _ints, _floats, T.npy_rng)
def by_filling(index, costs, params, search, tree, bounds, arms, counts, rng, outcomes, state, record, limits):
    """Pull an arm drawn from the filling; only as much of the filling is worked out as the draw depends on.

    The densest arm, found by `lazy_argmax`, fills the budget but for a rest. If the rest has room for others, they are
    at most rest / c_min, and nearly always the draw falls on the densest arm whatever they are.
    """
    pool, at, filled = outcomes.pool, outcomes.at, outcomes.filled
    n, sums, now = lent(state.n), lent(state.sums), state.now
    costs, params, tree, bounds = lent(costs), lent(params), lent(tree), lent(bounds)
    last, max_cost, ceiling, _ = limits
    status, pause, least = RUNNING, all_affordable_below(max_cost, ceiling), costs.min()
    t, spent, collected = now.rounds, now.spent, now.reward
    while status == RUNNING:
        going, due = True, record.due[now.checkpoint]
        while going:
            sure, u = spent < pause, -1.0
            if sure:
                arm = search.leader
                if not (t < search.expires and index(t + 1, n[arm], sums[0, arm], sums[1, arm], sums[2, arm],
                                                     sums[3, arm], costs[arm], params) > search.rival_bound):
                    arm = lazy_argmax(index, t, search, tree, bounds, n, sums, costs, params, last)
                often = floor((ceiling - spent) / costs[arm])
                rest = ceiling - spent - often * costs[arm]
                if n[arm] > 0 and rest >= least:
                    u = rng.random()
                    sure = u * (often + floor(rest / least)) < often
            if not sure:
                kinds = fill(index, t, spent, ceiling, n, sums, costs, params, arms, counts)
                if kinds == 0:
                    return end_run(t, state, record)
                arm = arms[0]
                if n[arm] > 0 and kinds > 1:
                    arm = draw(u if u >= 0.0 else rng.random(), kinds, arms, counts)
            reward, cost = pull(arm, n, sums, pool, at)
            t, spent, collected = t + 1, spent + cost, collected + reward
            going = spent < due and t < last and n[arm] < filled[arm]
            if arm != search.leader:
                pulled(arm, search, tree, bounds)
        status = checkpoint(arm, t, spent, collected, outcomes, state, record, limits)
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

    def check(self, problem: Problem) -> None:
        super().check(problem)
        require(problem.hard, "stop", "no hard budget", "KUBE needs HardBudget(total)")

    def play(self, run: Run, problem: Problem, rng: np.random.Generator) -> int:
        costs, K = self.prepare(problem), problem.K
        return run.play(around(self.loop, self.rule), costs, self.parameters, *run.search(), np.zeros(K, np.int64),
                        np.zeros(K), rng)


@choose
def epsilon_first(t, n, reward, cost, reward_sq, cost_sq, problem, params, memory, rng):
    """Epsilon-first (Tran-Thanh et al., 2010); memory: what was spent, an arm, whether exploring is over, densities."""
    K, explore, total, costs = len(n), problem[0], problem[1], problem[2:]
    spent, at, exploring, density = memory[0], int(memory[1]), memory[2] == 0.0, memory[3:]
    arm = -1
    for i in range(K if exploring else 0):             # sweep after sweep, past arms that do not fit any more
        k = (at + i) % K
        if spent + costs[k] <= explore:
            arm, memory[1] = k, k + 1
            break
    if exploring and arm < 0:                          # estimates freeze here; an arm never pulled comes last
        memory[2], at = 1.0, -1
        for k in range(K):
            density[k] = reward[k] / n[k] / costs[k] if n[k] > 0 else -inf
    if arm < 0:
        arm = at
        if at < 0 or spent + costs[at] > total:        # the densest while it fits, then the densest that does
            arm = -1
            for k in range(K):
                if spent + costs[k] <= total and (arm < 0 or density[k] > density[arm]):
                    arm = k
        memory[1] = arm
    memory[0] = spent + costs[arm]
    return arm


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

    def __post_init__(self):
        allowed = "must be a number in (0, 1)"
        require(0 < number("epsilon", self.epsilon, allowed=allowed) < 1, "epsilon", self.epsilon, allowed)

    def check(self, problem: Problem) -> None:
        require_known_costs(self, problem)
        require(problem.hard, "stop", "no hard budget", "EpsilonFirst needs HardBudget(total)")

    def prepare(self, problem: Problem) -> np.ndarray:
        return np.concatenate([[self.epsilon * problem.budget, problem.budget], problem.cost_means])

    def memory(self, K: int) -> int:
        return K + 3
