"""A bandit whose pulls cost something: K arms, each with a law of rewards and a law of costs."""

import math
from functools import cached_property

import numpy as np

from .checks import require
from .distributions import Distribution

LAW = ("mean", "variance", "support", "sample")


class Bandit:
    """K arms that pay a random reward and charge a random cost at every pull.

    Parameters
    ----------
    rewards, costs : sequence of distributions, one per arm
        Anything with `mean`, `variance`, `support` and `sample(rng, size)`.

    Attributes
    ----------
    reward_means, cost_means : ndarray of shape (K,)
        Expected reward and cost of a pull (mu^r, mu^c in the papers).
    """

    def __init__(self, rewards, costs):
        for name, laws in (("rewards", rewards), ("costs", costs)):
            require(hasattr(laws, "__iter__"), name, laws, "must be a sequence of distributions, one per arm")
        self.rewards, self.costs = tuple(rewards), tuple(costs)
        require(len(self.rewards) > 0, "rewards", self.rewards, "a bandit needs at least one arm")
        require(len(self.rewards) == len(self.costs), "costs", f"{len(self.costs)} distributions",
                f"must be one per arm, as many as rewards ({len(self.rewards)})")
        for what, laws in (("rewards", self.rewards), ("costs", self.costs)):
            for arm, law in enumerate(laws):
                # Our own laws have checked themselves; asking them all again would be half the work of an instance.
                if not isinstance(law, Distribution):
                    require(all(hasattr(law, a) for a in LAW), f"{what}[{arm}]", law,
                            f"must be a distribution ({', '.join(LAW)})")
                require(math.isfinite(law.mean), f"{what}[{arm}].mean", law.mean, "must be finite")

    @property
    def K(self):
        """Number of arms."""
        return len(self.rewards)

    @cached_property
    def reward_means(self):
        return np.array([law.mean for law in self.rewards])

    @cached_property
    def cost_means(self):
        return np.array([law.mean for law in self.costs])

    @property
    def ratios(self):
        """Expected reward per expected cost of each arm, shape (K,) (rho_k in the papers)."""
        return self.reward_means / self.cost_means

    def __repr__(self):
        return f"Bandit(rewards={list(self.rewards)!r}, costs={list(self.costs)!r})"
