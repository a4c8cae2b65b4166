"""A bandit whose pulls cost something: K arms, each with a law of rewards and a law of costs, or one of pairs."""

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..checks import frozen, number, numbers, ours, require
from .distributions import Distribution, TruncatedNormal, check_law
from .joint import Pairs, Units, _read_log

if TYPE_CHECKING:
    import pandas as pd


class Linear(NamedTuple):
    """What a policy may know of a linear bandit.

    >>> LinearBandit([[0.5, 0.1]], reward=[0.6, 0.8], cost=[0.3, 0.4], noise_sd=0.1).linear.size
    1.0
    """
    vertices: np.ndarray    # the arms, shape (K, d)
    noise: float            # the noise of rewards and costs is sub-Gaussian with this constant (C in Xia et al.)
    size: float             # no less than the norm of either parameter vector (S in Xia et al.)

    def ordered(self, order: np.ndarray) -> "Linear":
        """The same for arms in another order."""
        return self._replace(vertices=frozen(np.ascontiguousarray(self.vertices[order])))


class Bandit:
    """K arms that pay a random reward and charge a random cost at every pull.

    Parameters
    ----------
    rewards, costs : sequence of distributions, one per arm
        Anything with `mean`, `variance`, `support` and `sample(rng, size)`; reward and cost of a pull are independent.
    outcomes : sequence, one per arm, instead of both
        `Pairs`, if reward and cost of a pull depend on each other; or a tuple of two independent distributions.
    names : sequence of labels, optional
        What the arms are called; all different.

    Attributes
    ----------
    reward_means, cost_means : ndarray of shape (K,)
        Expected reward and cost of a pull (mu^r, mu^c in the papers); read-only.
    rewards, costs : tuple of distributions
        Of arms with joint outcomes the two columns on their own.
    outcomes : tuple or None
        What was given as such.
    joint : tuple of bool
        Of each arm, whether reward and cost of a pull depend on each other.
    names : tuple or None
    units : Units
        What a reward of 1 and a cost of 1 stand for: (1.0, 1.0), unless `from_log` has divided.
    linear : Linear or None
        What a policy may know of it, if rewards and costs are linear in the arms.

    Examples
    --------
    >>> Bandit([cb.Bernoulli(0.5), cb.Beta(1, 3)], [cb.Constant(2.0), cb.Bernoulli(0.1)]).ratios
    array([0.25, 2.5 ])
    >>> Bandit(outcomes=[cb.Pairs([0, 1], [0.5, 1]), (cb.Beta(1, 3), cb.Bernoulli(0.1))], names=["a", "b"]).ratios
    array([0.6667, 2.5   ])
    """
    linear = None       # or a `Linear`, if rewards and costs are linear in the arms

    def __init__(self, rewards: Iterable[Distribution] | None = None, costs: Iterable[Distribution] | None = None, *,
                 outcomes: Iterable[Pairs | tuple[Distribution, Distribution]] | None = None,
                 names: Sequence | None = None):
        joint, self.outcomes, self.units = None, None, Units()
        if outcomes is not None:
            require(rewards is None and costs is None, "rewards, costs", "given", "must be left out beside outcomes")
            require(hasattr(outcomes, "__iter__"), "outcomes", outcomes, "must be a sequence, one per arm")
            self.outcomes = tuple(outcomes)
            require(len(self.outcomes) > 0, "outcomes", self.outcomes, "a bandit needs at least one arm")
            for arm, outcome in enumerate(self.outcomes):
                require(isinstance(outcome, Pairs) or (isinstance(outcome, tuple | list) and len(outcome) == 2),
                        f"outcomes[{arm}]", outcome, "must be Pairs(rewards, costs), or (law of rewards, law of costs)")
            joint = tuple(isinstance(each, Pairs) for each in self.outcomes)
            parts = [(each.rewards, each.costs) if isinstance(each, Pairs) else each for each in self.outcomes]
            rewards, costs = zip(*parts, strict=True)
        for name, laws in (("rewards", rewards), ("costs", costs)):
            require(hasattr(laws, "__iter__"), name, laws, "must be a sequence of distributions, one per arm")
            require(not isinstance(laws, dict), name, laws,
                    "must be a sequence of distributions, one per arm: of a dict of arms, list(arms.values())")
        self.rewards, self.costs = tuple(rewards), tuple(costs)
        require(len(self.rewards) > 0, "rewards", self.rewards, "a bandit needs at least one arm")
        require(len(self.rewards) == len(self.costs), "costs", f"{len(self.costs)} distributions",
                f"must be one per arm, as many as rewards ({len(self.rewards)})")
        for what, laws in (("rewards", self.rewards), ("costs", self.costs)):
            for arm, law in enumerate(laws):
                # Our own laws have checked themselves; asking them all again would be half the work of an instance.
                if not ours(type(law)):
                    check_law(f"{what}[{arm}]", law)
                require(math.isfinite(law.mean), f"{what}[{arm}].mean", law.mean, "must be finite")
        self.joint = joint or (False,) * len(self.rewards)
        self.names = names if names is None else _labels(names, len(self.rewards))

    @classmethod
    def from_log(cls, frame: "pd.DataFrame", arm: str = "arm", reward: str = "reward", cost: str = "cost",
                 max_reward: float | None = None, max_cost: float | None = None) -> "Bandit":
        """A bandit that pulls rows of a log: drawn with replacement, reward and cost of a row together.

        Arms are sorted by name. Rewards and costs are divided by `max_reward` and `max_cost`, the largest there can be,
        and keep their zero: a ratio of reward and cost may be scaled, not shifted. Budgets are then in units of
        `max_cost`, and `units` brings results back.

        Parameters
        ----------
        frame : DataFrame
            A row for each pull that was made.
        arm, reward, cost : str
            Its columns. Arms are any labels, rewards finite numbers, costs 0 or more.
        max_reward, max_cost : float, optional
            The largest that can occur, not the largest so far. Outcomes are divided by it, into 0 to 1, for which most
            policies are made; rewards must then be 0 or more. By default nothing is divided.

        Raises
        ------
        ValueError
            For an unknown column, a missing arm, and what is no number in range, with the first row that is wrong.

        Examples
        --------
        >>> import pandas as pd
        >>> log = pd.DataFrame({"ad": ["red", "blue", "red"], "sales": [30.0, 12.0, 0.0], "spent": [0.5, 0.2, 0.25]})
        >>> bandit = cb.Bandit.from_log(log, arm="ad", reward="sales", cost="spent", max_reward=40, max_cost=2.5)
        >>> bandit.names, bandit.reward_means * bandit.units.reward
        (('blue', 'red'), array([12., 15.]))
        """
        outcomes, names, units = _read_log(frame, arm, reward, cost, max_reward, max_cost)
        bandit = cls(outcomes=outcomes, names=names)
        bandit.units = units
        return bandit

    @property
    def K(self) -> int:
        """Number of arms."""
        return len(self.rewards)

    @cached_property
    def reward_means(self) -> np.ndarray:
        return frozen(np.array([law.mean for law in self.rewards]))

    @cached_property
    def cost_means(self) -> np.ndarray:
        return frozen(np.array([law.mean for law in self.costs]))

    @property
    def ratios(self) -> np.ndarray:
        """Expected reward per expected cost of each arm, shape (K,) (rho_k in the papers)."""
        return self.reward_means / self.cost_means

    def label(self, arm: int) -> str:
        """What messages call an arm: its name, or its position from 0."""
        return str(arm) if self.names is None else repr(self.names[arm])

    def __setstate__(self, state):
        # Pickle forgets that arrays are read-only; the means are made anew.
        vars(self).update({name: part for name, part in state.items() if name not in ("reward_means", "cost_means")})
        if self.linear is not None:
            frozen(self.linear.vertices)

    def __repr__(self):
        if self.outcomes is not None:
            return f"Bandit(outcomes={list(self.outcomes)!r})"
        return f"Bandit(rewards={list(self.rewards)!r}, costs={list(self.costs)!r})"


def _labels(names, K):
    """The arms' names as a tuple; ValueError unless they are K different labels."""
    listed = hasattr(names, "__iter__") and not isinstance(names, str | bytes)
    names = tuple(names) if listed else names
    try:
        good = listed and len(set(names)) == len(names) == K
    except TypeError:       # a list, for instance, is no label
        good = False
    require(good, "names", names, f"must be {K} different labels, one per arm")
    return names


class LinearBandit(Bandit):
    """Arms in R^d whose expected reward and cost are linear: x . reward and x . cost.

    Noise is normal, cut off at the same distance on both sides of the mean, as far as outcomes in [0, 1] allow: cut
    off at 0 and 1 it would move the mean, which would not be linear any more.

    Parameters
    ----------
    vertices : array_like of shape (K, d)
        The arms; of a polytope, its vertices (`polytopes.vertices`).
    reward, cost : array_like of shape (d,)
        The parameter vectors (mu^r, mu^c in Xia et al.). All means must lie in (0, 1).
    noise_sd : float
        Standard deviation of the noise before it is cut off.

    Examples
    --------
    >>> LinearBandit([[0.5, 0.1], [0.0, 1.0]], reward=[0.6, 0.8], cost=[0.3, 0.4], noise_sd=0.1).reward_means
    array([0.38, 0.8 ])
    """

    def __init__(self, vertices: ArrayLike, reward: ArrayLike, cost: ArrayLike, noise_sd: float):
        vertices = frozen(numbers("vertices", vertices, shape=("K", "d")).copy())
        reward = numbers("reward", reward, shape=vertices.shape[1:])
        cost = numbers("cost", cost, shape=vertices.shape[1:])
        noise = number("noise_sd", noise_sd, 0, 1e6, "must be a finite number above 0, at most 1e6", above=0)
        laws = []
        for what, parameter in (("reward", reward), ("cost", cost)):
            for arm, mean in enumerate(means := vertices @ parameter):
                number(f"expected {what} of arm {arm}", float(mean), allowed="must be in (0, 1)", above=0, below=1)
            laws.append([TruncatedNormal(m, noise, max(2 * m - 1, 0.0), min(2 * m, 1.0)) for m in means.tolist()])
        super().__init__(*laws)
        self.linear = Linear(vertices, noise, float(max(np.linalg.norm(reward), np.linalg.norm(cost))))
