"""When a run ends, and what it may never spend."""

from dataclasses import dataclass

import numpy as np

from .checks import positive, require
from .distributions import Constant


@dataclass(frozen=True)
class StopRule:
    """Base of all stop rules that count spending against a total.

    Parameters
    ----------
    total : float
        The budget B, in units of cost; positive and finite.
    """

    total: float

    def __post_init__(self):
        positive(f"{type(self).__name__} total", self.total)

    def marks(self, fractions):
        """The spending at which each checkpoint is due, shape of `fractions`."""
        return np.asarray(fractions) * self.total

    def limits(self, bandit):
        """The most that a pull of each arm can cost, shape (K,), and the spending that no pull may exceed."""
        return np.zeros(bandit.K), np.inf

    def check(self, bandit):
        """Raise ValueError if a run on `bandit` might never end, or breaks the rule's assumptions."""
        for arm, mean in enumerate(bandit.cost_means):
            require(0 < mean < np.inf, f"expected cost of arm {arm}", float(mean),
                    "under a budget every expected cost must be positive and finite, or a run may never end")


class Budget(StopRule):
    """Random costs, a total budget: pull while less than `total` is spent; the pull that crosses it counts.

    Parameters
    ----------
    total : float
        The budget B, in units of cost; positive and finite.
    """


class HardBudget(StopRule):
    """Known costs, a total budget that is never exceeded: a run ends when no arm is affordable any more.

    An arm is affordable if its cost added to what was spent, in the order of the pulls and in floating point, is at
    most `total`. The last checkpoint is the end of the run, at whatever was spent by then: nothing, if the budget is
    below every cost.

    Parameters
    ----------
    total : float
        The budget B, in units of cost; positive and finite.
    """

    def limits(self, bandit):
        return bandit.cost_means, self.total

    def check(self, bandit):
        super().check(bandit)
        for arm, law in enumerate(bandit.costs):
            require(isinstance(law, Constant), f"cost of arm {arm}", law,
                    "under a hard budget every cost must be known in advance: Constant(value)")
