"""Thompson sampling over a known cost.

After Luedtke, Kaufmann and Chambaz, "Asymptotically Optimal Algorithms for Budgeted Multiple Play Bandits" (2019).
"""

from dataclasses import dataclass
from math import inf

import numpy as np

from ..checks import flag, rounding
from .base import ChoiceRule, Problem, Scale, _PerCost, checked, choose


@choose
def known_cost_ts(t, spent, arms, told, p: Scale, memory, rng):
    """Thompson sampling over the cost by its definition; memory: successes, the last arm and its sum of rewards."""
    K, n, ceiling, costs = arms.n.size, arms.n, told[0], told[1:]
    won = memory[:K]
    if t > 1:
        # The last outcome, as what its arm's sum has grown by, becomes one trial.
        last = int(memory[K])
        won[last] += rng.random() * p.reward_scale < arms.reward[last] - memory[K + 1]
    arm, best = -1, -1.0
    for k in range(K):
        if spent + costs[k] <= ceiling:
            score = rng.beta(won[k] + 1.0, n[k] - won[k] + 1.0) / costs[k]
            if score > best:
                arm, best = k, score
    memory[K], memory[K + 1] = arm, arms.reward[arm]
    return arm


@dataclass(frozen=True)
class KnownCostTS(_PerCost, ChoiceRule):
    """Thompson sampling over the known cost: the largest R/c, R from Beta(1 + successes, 1 + failures).

    Under a hard budget, of the arms that it affords. A reward becomes a Bernoulli trial, with its share of
    `reward_scale` as its probability. There are no forced first pulls. Luedtke et al. (2019) prove Thompson sampling
    over the cost optimal where a budget is set for each round; to fill one hard budget by it is our reading.

    Parameters
    ----------
    reward_scale : float
        Rewards lie between 0 and this.
    naive : bool
        Draw every arm in every round, as in `BTS`. By default (`fast.known_cost_ts`) many pulls are made at once while
        one arm is ahead; while several arms contend, and near the end of a hard budget, every round is drawn.

    Examples
    --------
    >>> cb.KnownCostTS(reward_scale=5)
    KnownCostTS(reward_scale=5, naive=False)
    """
    naive: bool = checked(flag, False)
    rule = staticmethod(known_cost_ts)

    @property
    def reward_support(self) -> tuple[float, float]:
        return 0.0, float(self.reward_scale)

    def memory(self, K: int) -> int:
        return K + 2

    def prepare(self, problem: Problem) -> np.ndarray:
        ceiling = problem.budget + rounding(problem.budget) if problem.hard else inf
        return np.append(ceiling, problem.cost_means)
