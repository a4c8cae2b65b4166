"""Budget-UCB: Xia, Ding, Zhang, Yu and Qin, "Budgeted Bandit Problems with Continuous Random Costs"."""

from dataclasses import dataclass
from math import inf, log, sqrt

import numpy as np

from ..checks import positive
from .base import IndexRule, index


@index
def budget_ucb(t, n, reward, cost, reward_sq, cost_sq, constant, params):
    r, c, smallest = reward / n, cost / n, constant                    # smallest: lambda
    if c <= 0.0:
        return inf
    eps = params[0] * sqrt(2.0 * log(t - 1) / n)
    return r / c + eps / c * (1.0 + min(r + eps, 1.0) / max(c - eps, smallest))


@dataclass(frozen=True)
class BudgetUCB(IndexRule):
    """Budget-UCB: r/c + (eps/c) (1 + min(r + eps, 1) / max(c - eps, lambda)), eps = sqrt(2 log(t-1) / n).

    Table 2 of the omega-UCB paper prints eps without the 2; that is `exploration=sqrt(1/2)`.

    Parameters
    ----------
    min_cost : float, optional
        lambda, a lower bound of the expected costs; by default the instance's smallest expected cost.
    exploration : float
        Multiplies eps.
    """

    min_cost: float | None = None
    exploration: float = 1.0
    rule = staticmethod(budget_ucb)
    support = (0.0, 1.0)

    def __post_init__(self):
        if self.min_cost is not None:
            positive("min_cost", self.min_cost)
        positive("exploration", self.exploration)

    @property
    def parameters(self):
        return np.array([self.exploration])

    def prepare(self, problem):
        return np.full(problem.K, problem.min_cost if self.min_cost is None else self.min_cost)

    def identity(self):
        return (*super().identity(), self.min_cost)
