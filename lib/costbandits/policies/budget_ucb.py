"""Budget-UCB and its forerunner: Xia, Ding, Zhang, Yu and Qin, "Budgeted Bandit Problems with Continuous Random Costs".

UCB-BV1: Ding et al., "Multi-Armed Bandit with Budget Constraint and Variable Costs" (2013). The examples show indices
at round 101, in which an arm has paid 10 and cost 5 in 25 pulls, with lambda = 0.1.
"""

import warnings
from dataclasses import dataclass
from math import inf, log, sqrt
from typing import NamedTuple

import numpy as np

from ..checks import positive, require
from .base import IndexRule, Policy, Problem, checked, index


class Exploration(NamedTuple):
    """How much to explore: the factor of eps."""
    exploration: float


@index
def budget_ucb(t, arm, p: Exploration):
    """Budget-UCB (Xia et al., Eq. 2), as in `BudgetUCB`."""
    r, c, smallest = arm.reward / arm.n, arm.cost / arm.n, arm.told    # smallest: lambda
    if c <= 0.0:
        return inf
    eps = p.exploration * sqrt(2.0 * log(t - 1) / arm.n)
    return r / c + eps / c * (1.0 + min(r + eps, 1.0) / max(c - eps, smallest))


@index
def ucb_bv1(t, arm, p: Exploration):
    """UCB-BV1 (Xia et al., Eq. 20-b), as in `UCBBV1`."""
    r, c, smallest = arm.reward / arm.n, arm.cost / arm.n, arm.told
    eps = p.exploration * sqrt(2.0 * log(t - 1) / arm.n)
    # As printed it is negative for eps > lambda, where nothing is known of the arm yet.
    return inf if c <= 0.0 or eps >= smallest else r / c + (1.0 + 1.0 / smallest) * eps / (smallest - eps)


@index
def vucb_bv1(t, arm, p: Exploration):
    """vUCB-BV1 (Xia et al., Eq. 20-a), as in `VUCBBV1`."""
    r, c, smallest = arm.reward / arm.n, arm.cost / arm.n, arm.told
    eps = p.exploration * sqrt(2.0 * log(t - 1) / arm.n)
    return inf if c <= 0.0 else r / c + 1.5 * (1.0 + 1.0 / smallest) * eps


@dataclass(frozen=True)
class _LowestCost(Policy):
    """A policy that is told lambda, a lower bound of the expected costs."""
    min_cost: float | None = checked(positive, None)

    def lowest_cost(self, problem: Problem) -> float:
        """`min_cost`, or else the smallest expected cost."""
        return problem.min_cost if self.min_cost is None else self.min_cost

    def rehearse(self, name: str, problem: Problem) -> None:
        super().rehearse(name, problem)         # the caller's filters of warnings apply here, but not in workers
        if self.lowest_cost(problem) > problem.min_cost:
            warnings.warn(f"{type(self).__name__}: min_cost = {self.min_cost!r} is above the smallest expected cost, "
                          f"{problem.min_cost!r}; the analysis takes it to be a lower bound", stacklevel=2)


@dataclass(frozen=True)
class _LowestCostIndex(_LowestCost, IndexRule):
    """An index with a bonus eps and lambda."""
    exploration: float = checked(positive, 1.0)
    support = (0.0, 1.0)

    @property
    def parameters(self):
        return np.array([self.exploration], float)

    def check(self, problem: Problem) -> None:
        least = self.lowest_cost(problem)
        require(least > 0, "smallest expected cost", least, f"{type(self).__name__} needs one above 0, or a min_cost")

    def prepare(self, problem: Problem) -> np.ndarray:
        return np.full(problem.K, self.lowest_cost(problem))


@dataclass(frozen=True)
class BudgetUCB(_LowestCostIndex):
    """Budget-UCB: r/c + (eps/c) (1 + min(r + eps, 1) / max(c - eps, lambda)), eps = sqrt(2 log(t-1) / n).

    Table 2 of the omega-UCB paper prints eps without the 2; that is `exploration=sqrt(1/2)`.

    Parameters
    ----------
    min_cost : float, optional
        lambda, a lower bound of the expected costs; by default the instance's smallest expected cost.
    exploration : float
        Multiplies eps.

    Examples
    --------
    >>> round(cb.BudgetUCB.rule(101, 25, 10.0, 5.0, 10.0, 5.0, 0.1, np.array([0.25])), 2)
    6.94
    """
    rule = staticmethod(budget_ucb)


@dataclass(frozen=True)
class UCBBV1(_LowestCostIndex):
    """UCB-BV1: r/c + (1 + 1/lambda) eps / (lambda - eps), eps = sqrt(2 log(t-1) / n); infinite for eps >= lambda.

    Xia et al., Eq. (20-b); parameters as in `BudgetUCB`. Where eps is just below lambda one pull takes much off the
    index: among 100 arms every second round has another, for ten million rounds and more; few pulls are made at once.

    >>> cb.UCBBV1.rule(101, 25, 10.0, 5.0, 10.0, 5.0, 0.1, np.array([0.25]))     # eps >= lambda: nothing is known yet
    inf
    """
    rule = staticmethod(ucb_bv1)


@dataclass(frozen=True)
class VUCBBV1(_LowestCostIndex):
    """vUCB-BV1: r/c + 1.5 (1 + 1/lambda) eps, eps = sqrt(2 log(t-1) / n).

    Xia et al., Eq. (20-a); parameters as in `BudgetUCB`.

    >>> round(cb.VUCBBV1.rule(101, 25, 10.0, 5.0, 10.0, 5.0, 0.1, np.array([0.25])), 2)
    4.5
    """
    rule = staticmethod(vucb_bv1)
