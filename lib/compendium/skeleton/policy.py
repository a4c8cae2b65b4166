"""The policies of the skeleton paper: authors, "title" (year)."""

from dataclasses import dataclass
from math import inf, log, sqrt

from ..checks import positive
from .base import IndexRule, index


@index
def skeleton(t, n, reward, cost, reward_sq, cost_sq, constant, params):
    """An arm's index from the sums of its n pulls; t is the coming round. To be replaced by the paper's equation."""
    return inf if cost <= 0.0 else (reward + params[0] * sqrt(n * log(t))) / cost


@dataclass(frozen=True)
class Skeleton(IndexRule):
    """Which equation of the paper this is: mean reward plus alpha sqrt(log t / n), over mean cost.

    Parameters
    ----------
    alpha : float
        Exploration, above 0.

    Examples
    --------
    >>> Skeleton(0.5)
    Skeleton(alpha=0.5)
    """

    alpha: float = 1.0
    rule = staticmethod(skeleton)
    support = (0.0, 1.0)     # of rewards and costs, for which the paper proves something

    def __post_init__(self):
        positive("alpha", self.alpha)
