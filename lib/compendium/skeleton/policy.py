"""The policies of the skeleton paper: authors, "title" (year)."""

from dataclasses import dataclass
from math import inf, log, sqrt
from typing import NamedTuple

from ..checks import positive
from .base import IndexRule, checked, index


class Alpha(NamedTuple):
    """The policy's parameter."""
    alpha: float


@index
def skeleton(t, arm, p: Alpha):
    """An arm's index from the sums over its pulls; t is the coming round. To be replaced by the paper's equation."""
    return inf if arm.cost <= 0.0 else (arm.reward + p.alpha * sqrt(arm.n * log(t))) / arm.cost


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
    alpha: float = checked(positive, 1.0)
    rule = staticmethod(skeleton)
    support = (0.0, 1.0)     # of rewards and costs, for which the paper proves something
