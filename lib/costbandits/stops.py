"""When a run ends."""

from dataclasses import dataclass

import numpy as np

from .checks import positive, require


@dataclass(frozen=True)
class Budget:
    """Random costs, a total budget: pull while less than `total` is spent; the pull that crosses it counts.

    Parameters
    ----------
    total : float
        The budget B, in units of cost; positive and finite.
    """

    total: float

    def __post_init__(self):
        positive("Budget total", self.total)

    def marks(self, fractions):
        """The spending at which each checkpoint is due, shape of `fractions`."""
        return np.asarray(fractions) * self.total

    def check(self, bandit):
        """Raise ValueError if a run on `bandit` might never end."""
        for arm, mean in enumerate(bandit.cost_means):
            require(0 < mean < np.inf, f"expected cost of arm {arm}", float(mean),
                    "under a budget every expected cost must be positive and finite, or a run may never end")
