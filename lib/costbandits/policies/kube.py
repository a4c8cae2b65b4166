"""KUBE, fractional KUBE and epsilon-first: known costs and a budget that may not be exceeded.

Tran-Thanh, Chapman, Rogers and Jennings, "Knapsack based Optimal Policies for Budget-Limited Multi-Armed Bandits"
(2012); epsilon-first: Tran-Thanh et al., "Epsilon-First Policies for Budget-Limited Multi-Armed Bandits" (2010).

Algorithm 1 begins with a pull of every arm, whatever is left; here one that is not affordable is passed over, always.
"""

from dataclasses import dataclass
from functools import partial
from math import floor, inf, log, sqrt
from typing import NamedTuple

import numpy as np

from ..checks import number, rounding
from ..engine.driver import END
from .base import ChoiceRule, IndexRule, NamedRule, Problem, Scale, _PerCost, checked, choose, index, require_hard, rule


@index
def density(t, arm, p: Scale):
    """Density (r + sqrt(2 ln t / n)) / c of an arm with the known cost c (Tran-Thanh et al., 2012, Algorithm 1)."""
    n, c = arm.n, arm.told
    return (arm.reward / n / p.reward_scale + sqrt(2.0 * log(t) / n)) / c if n > 0 else inf


@dataclass(frozen=True)
class FractionalKUBE(_PerCost, IndexRule):
    """Fractional KUBE: the affordable arm with the largest density (r + sqrt(2 ln t / n)) / c.

    Rewards are divided by `reward_scale` before the bonus is added: their common range, which the analysis takes to be
    1. At round 101, of an arm at cost 2 that has paid 10 in 25 pulls:

    >>> round(cb.FractionalKUBE.rule(101, 25, 10.0, 50.0, 10.0, 100.0, 2.0, np.array([1.0])), 3)
    0.504
    """
    rule = staticmethod(density)


class KnownCosts(NamedTuple):
    """What KUBE is told: the arms' costs, and what may be spent in all."""
    costs: np.ndarray
    ceiling: float


@rule
def kube(t, spent, arms, told, p, memory, rng):
    """KUBE (Tran-Thanh et al., 2012, Algorithm 1): any item of the density-ordered greedy filling, equally likely."""
    K, costs, (density, picks, counts) = arms.n.size, told.costs, memory
    for k in range(K):
        density[k] = inf
        if arms.n[k] > 0:
            density[k] = (arms.reward[k] / arms.n[k] / p.reward_scale + sqrt(2.0 * log(t) / arms.n[k])) / costs[k]
    kinds, rest, arm = 0, told.ceiling - spent, 0
    while arm >= 0 and kinds < K:                      # the densest arm that fits, as often as it does; and so on
        arm = -1
        for k in range(K):
            fits = costs[k] <= rest and spent + costs[k] <= told.ceiling
            if fits and (arm < 0 or density[k] > density[arm]):
                arm = k
        if arm >= 0:
            picks[kinds], counts[kinds] = arm, floor(rest / costs[arm])
            rest -= counts[kinds] * costs[arm]
            kinds += 1
    if kinds == 0:                                     # but for rounding, none is affordable any more
        return END
    if arms.n[picks[0]] == 0:                          # one that was never pulled is not left to chance
        return picks[0]
    at, i = rng.random() * counts[:kinds].sum(), 0
    while at >= counts[i]:
        at, i = at - counts[i], i + 1
    return picks[i]


class Filling(NamedTuple):
    """Room for the arms' densities, and for a filling: which arms, in order, and how often each."""
    density: np.ndarray
    picks: np.ndarray
    counts: np.ndarray


@dataclass(frozen=True)
class KUBE(_PerCost, NamedRule):
    """KUBE (Algorithm 1): an arm drawn from the density-ordered greedy filling of what is left of the budget.

    Densities and `reward_scale` are those of `FractionalKUBE`; items of the filling are equally likely.

    >>> cb.KUBE(reward_scale=5)
    KUBE(reward_scale=5)
    """
    rule = staticmethod(kube)
    check = require_hard

    @property
    def p(self) -> Scale:
        return Scale(float(self.reward_scale))

    def told(self, problem: Problem) -> KnownCosts:
        return KnownCosts(problem.cost_means.copy(), problem.budget + rounding(problem.budget))

    def remember(self, problem: Problem) -> Filling:
        return Filling(np.zeros(problem.K), np.zeros(problem.K, np.int64), np.zeros(problem.K))


@choose
def epsilon_first(t, spent, arms, told, p, memory, rng):
    """Epsilon-first (Tran-Thanh et al., 2010); memory: an arm, whether exploring is over, densities."""
    K, explore, total, costs = arms.n.size, told[0], told[1], told[2:]
    at, exploring, density = int(memory[0]), memory[1] == 0.0, memory[2:]
    arm = -1
    for i in range(K if exploring else 0):             # sweep after sweep, past arms that do not fit any more
        k = (at + i) % K
        if spent + costs[k] <= explore:
            arm, memory[0] = k, k + 1
            break
    if exploring and arm < 0:                          # estimates freeze here; an arm never pulled comes last
        memory[1], at = 1.0, -1
        for k in range(K):
            density[k] = arms.reward[k] / arms.n[k] / costs[k] if arms.n[k] > 0 else -inf
    if arm < 0:
        arm = at
        if at < 0 or spent + costs[at] > total:        # the densest while it fits, then the densest that does
            arm = -1
            for k in range(K):
                if spent + costs[k] <= total and (arm < 0 or density[k] > density[arm]):
                    arm = k
        memory[0] = arm
    return arm


@dataclass(frozen=True)
class EpsilonFirst(ChoiceRule):
    """Epsilon-first: sweeps through all arms with a share epsilon of the budget, then the greedy filling of the rest.

    The filling is density-ordered, by the mean rewards at the end of the sweeps, which are not updated after. If the
    share, in (0, 1), is too small to pull every arm, those never pulled come last: `Runs.unpulled` counts them.

    >>> cb.EpsilonFirst(0.1)
    EpsilonFirst(epsilon=0.1)
    """
    epsilon: float = checked(partial(number, above=0, below=1, allowed="must be a number in (0, 1)"))
    rule = staticmethod(epsilon_first)
    check = require_hard

    def prepare(self, problem: Problem) -> np.ndarray:
        parts = self.epsilon * problem.budget, problem.budget
        return np.concatenate([[part + rounding(part) for part in parts], problem.cost_means])

    def memory(self, K: int) -> int:
        return K + 2
