"""Budgeted Thompson sampling: Xia et al., "Thompson Sampling for Budgeted Multi-Armed Bandits" (2015)."""

from dataclasses import dataclass

from ..checks import flag
from .base import ChoiceRule, checked, choose, require_soft


@choose
def bts(t, spent, arms, told, p, memory, rng):
    """Budgeted Thompson sampling by its definition; memory: successes by arm, then the last arm and its sums."""
    K, n = arms.n.size, arms.n
    won, paid = memory[:K], memory[K:2 * K]            # successes of the Bernoulli trials
    if t > 1:
        # The last outcome, as what its arm's sums have grown by, becomes one trial each for reward and cost.
        last = int(memory[2 * K])
        won[last] += rng.random() < arms.reward[last] - memory[2 * K + 1]
        paid[last] += rng.random() < arms.cost[last] - memory[2 * K + 2]
    arm, best = 0, -1.0
    for k in range(K):
        ratio = rng.beta(won[k] + 1.0, n[k] - won[k] + 1.0) / rng.beta(paid[k] + 1.0, n[k] - paid[k] + 1.0)
        if ratio > best:
            arm, best = k, ratio
    memory[2 * K], memory[2 * K + 1], memory[2 * K + 2] = arm, arms.reward[arm], arms.cost[arm]
    return arm


@dataclass(frozen=True)
class BTS(ChoiceRule):
    """Budgeted Thompson sampling: the largest V = R/C, drawn from Beta posteriors of an arm's mean reward and cost.

    Priors are Beta(1, 1). A fractional outcome x in [0, 1] becomes a Bernoulli trial with probability x. There are no
    forced first pulls.

    If `naive`, every arm is drawn in every round, as the definition says. By default `fast.thompson` plays by the same
    law with few draws, usually ten times faster or more; so runs agree in distribution and not one by one.

    >>> cb.BTS().memory(K=10)       # successes of rewards and of costs, by arm; the last arm and its two sums
    23
    """
    naive: bool = checked(flag, False)
    rule = staticmethod(bts)
    support = (0.0, 1.0)
    check = require_soft

    def memory(self, K: int) -> int:
        return 2 * K + 3
