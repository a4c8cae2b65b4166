"""PD-BwK where money is the only resource: Badanidiyuru, Kleinberg and Slivkins, "Bandits with Knapsacks" (2018).

PD-BwK plays the arm with the largest optimistic reward per dual price of its optimistic consumption. Of a single
resource the price is the same for all arms and cancels: what is left is an index.
"""

from dataclasses import dataclass
from math import inf, log, sqrt

import numba as nb
import numpy as np

from ..checks import positive, require
from .base import IndexRule, Problem, checked, index


@nb.njit(inline="always", error_model="numpy")
def rad(v, n, g):
    """The confidence radius of a mean v of n outcomes in [0, 1]."""
    return sqrt(g * v / n) + g / n


@index
def pd_bwk(t, arm, p):
    """PD-BwK with one resource (Badanidiyuru et al., 2018), as in `PDBwK`."""
    n, r, c, g = arm.n, arm.reward / arm.n, arm.cost / arm.n, arm.told
    lower = c - rad(c, n, g)
    return (r + rad(r, n, g)) / lower if lower > 0.0 else inf


@dataclass(frozen=True)
class PDBwK(IndexRule):
    """PD-BwK with one resource: (r + rad(r, n)) / (c - rad(c, n)), rad(v, n) = sqrt(g v / n) + g / n.

    Infinite where the denominator is not positive. g stands in place of log t, for the logarithm of the whole run.

    The paper has g of the order of log(T K d), for d resources and T rounds, and leaves the factor open. Our readings:
    the factor is 1; d = 1; the price of time, the paper's second resource, is 0; and with a budget B the number of
    rounds T is B over the smallest expected cost, the most that it pays for in expectation.

    Parameters
    ----------
    constant : float, optional
        g; by default log(T K).

    Examples
    --------
    At any round, of an arm that has paid 10 and cost 5 in 25 pulls, with g = 1/4:

    >>> round(cb.PDBwK.rule(101, 25, 10.0, 5.0, 10.0, 5.0, 0.25, np.empty(0)), 3)
    3.258
    """
    constant: float | None = checked(positive, None)
    rule = staticmethod(pd_bwk)
    support = (0.0, 1.0)

    @property
    def parameters(self) -> np.ndarray:
        return np.empty(0)

    def check(self, problem: Problem) -> None:
        rounds = problem.horizon or problem.budget
        require(self.constant is not None or rounds < inf, "stop", "no budget and no horizon",
                "PDBwK needs one of them, or a constant")

    def prepare(self, problem: Problem) -> np.ndarray:
        g = self.constant
        if g is None:
            rounds = problem.horizon or problem.budget / problem.min_cost
            g = log(max(rounds, 1.0) * problem.K)
        return np.full(problem.K, g)
