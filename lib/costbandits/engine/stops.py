"""When a run ends, and what it may never spend."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from ..checks import Plain, count, floats, number, positive, require, rounding
from ..environments.bandits import Bandit
from ..environments.distributions import Constant

FURTHEST = 2**62    # rounds


class StopRule(Plain):
    """Base of all stop rules.

    >>> cb.Budget(100).due([0.5, 1]), cb.Horizon(100).ends([0.5, 1])      # the spending, the rounds
    (array([ 50., 100.]), array([ 50, 100]))

    Attributes
    ----------
    total : float
        What can be spent in all, in units of cost; infinite where nothing limits it.
    hard : bool
        Whether the total may not be exceeded, so that a run ends when no arm is affordable.
    rate : float or None
        What may be spent per round on average, at any time.
    horizon : int or None
        The number of rounds, where that is what ends a run.
    """
    hard, rate, horizon = False, None, None

    def due(self, fractions: ArrayLike) -> np.ndarray:
        """The spending at which each checkpoint is due, shape of `fractions`."""
        return np.array([spending - rounding(spending) for spending in np.multiply(fractions, self.total)])

    def ends(self, fractions: ArrayLike) -> np.ndarray | None:
        """The round at which each checkpoint is due, whole, shape of `fractions`; None where spending decides."""
        return None

    def limits(self, bandit: Bandit) -> tuple[np.ndarray, float, float]:
        """The most that a pull of each arm can cost, shape (K,), and two numbers, `ceiling` and `rate`: after round t
        the spending may not exceed ceiling + rate t."""
        return np.zeros(bandit.K), np.inf, 0.0

    def check(self, bandit: Bandit) -> None:
        """Raise ValueError if a run on `bandit` might never end, or breaks the rule's assumptions."""


def require_usable(stop: StopRule, fractions: np.ndarray, bandit: Bandit) -> None:
    """Raise ValueError unless a rule of the reader's own returns what the engine takes."""
    name = type(stop).__name__
    total, ends = floats(getattr(stop, "total", None)), stop.ends(fractions)
    require(total is not None and total.shape == () and total > 0, f"{name} total", getattr(stop, "total", None),
            "must be a number above 0; infinite where nothing limits what is spent")
    _require_rising(f"{name} due(fractions)", stop.due(fractions), fractions, "numbers")
    if ends is not None:
        _require_rising(f"{name} ends(fractions)", ends, fractions, "whole numbers, 1 or more, or None", whole=True)
    limits = stop.limits(bandit)
    parts = list(map(floats, limits)) if isinstance(limits, tuple) else [None]
    require(all(part is not None for part in parts) and [part.shape for part in parts] == [(bandit.K,), (), ()],
            f"{name} limits(bandit)", limits, f"must be an array of {bandit.K} numbers, one per arm, and two numbers")


def _require_rising(name, given, fractions, what, whole=False):
    values = floats(given)
    good = (values is not None and values.shape == fractions.shape and not np.isnan(values).any()
            and (values[1:] >= values[:-1]).all()
            and (not whole or np.array_equal(values, np.maximum(1, np.rint(values)))))
    require(good, name, given, f"must be {what} that do not decrease, one for each of the {len(fractions)} fractions")


@dataclass(frozen=True)
class Budget(StopRule):
    """Random costs, a total budget: pull while less than `total` is spent; the pull that crosses it counts.

    `total` is B, in units of cost, positive and finite.

    >>> runs = cb.simulate({"m": cb.MUCB()}, cb.instances.bernoulli(3), cb.Budget(20))
    >>> float(runs.spent[0, 0, -1])
    20.0
    """
    total: float

    def __post_init__(self):
        positive(f"{type(self).__name__} total", self.total)

    def check(self, bandit: Bandit) -> None:
        for arm, mean in enumerate(bandit.cost_means):
            require(0 < mean < np.inf, f"expected cost of arm {bandit.label(arm)}", float(mean),
                    "under a budget every expected cost must be positive and finite, or a run may never end")


class HardBudget(Budget):
    """Known costs, a total budget that is never exceeded: a run ends when no arm is affordable any more.

    An arm is affordable if its cost added to what was spent is at most `total`, but for rounding. The last checkpoint
    is the end of the run, at whatever was spent by then: nothing, if the budget is below every cost.

    >>> cb.HardBudget(20).hard
    True
    """
    hard = True

    def limits(self, bandit: Bandit) -> tuple[np.ndarray, float, float]:
        return bandit.cost_means, self.total + rounding(self.total), 0.0

    def check(self, bandit: Bandit) -> None:
        super().check(bandit)
        for arm, law in enumerate(bandit.costs):
            require(isinstance(law, Constant), f"cost of arm {bandit.label(arm)}", law,
                    "under a hard budget every cost must be known in advance: Constant(value)")


class _Rounds(StopRule):
    """A run of `horizon` rounds, whatever was spent."""

    def due(self, fractions: ArrayLike) -> np.ndarray:
        return np.full(np.shape(fractions), np.inf)

    def ends(self, fractions: ArrayLike) -> np.ndarray | None:
        rounds = np.asarray(fractions) * self.horizon
        whole = np.rint(rounds)
        rounds = np.where(np.abs(rounds - whole) <= self.horizon * 2.0**-51, whole, np.ceil(rounds))
        return np.where(np.asarray(fractions) == 1, self.horizon, rounds.astype(np.int64))


@dataclass(frozen=True)
class AnytimeBudget(_Rounds):
    """Random costs in [0, 1]: after every round t the spending is at most rate t (Elumar et al., Eq. 1).

    An arm whose largest cost would exceed that in round t, in floating point, must not be pulled then. A round may be
    skipped, that is, nothing pulled: because an arm might exceed the limit, or to save for later ones. A run ends after
    `horizon` rounds (T), whatever was spent, even if too short to pull every arm (`Runs.unpulled`). `rate`, in (0, 1],
    is what may be spent per round (c in the paper).

    >>> cb.AnytimeBudget(rate=0.25, horizon=1000).total
    250.0
    """
    rate: float = field()          # without the default of a rule that has none
    horizon: int = field()

    def __post_init__(self):
        allowed = "must be a number in (0, 1]"
        object.__setattr__(self, "rate", number("rate", self.rate, high=1, allowed=allowed, above=0))
        count("horizon", self.horizon, high=FURTHEST)

    @property
    def total(self) -> float:
        return self.rate * self.horizon

    def limits(self, bandit: Bandit) -> tuple[np.ndarray, float, float]:
        return np.array([law.support[1] for law in bandit.costs], float), 0.0, self.rate

    def check(self, bandit: Bandit) -> None:
        for arm, law in enumerate(bandit.costs):
            low, high = law.support
            require(0 <= low and high <= 1, f"cost of arm {bandit.label(arm)}", law,
                    "under an anytime budget every cost must be in [0, 1]")


@dataclass(frozen=True)
class Horizon(_Rounds):
    """T rounds and no budget (Sinha et al., section 1.1): what is spent is compared, not limited.

    Costs may be random, and 0 or less, but not unbounded.

    >>> cb.Horizon(1000).total
    inf
    """
    rounds: int
    total = np.inf

    def __post_init__(self):
        count("rounds", self.rounds, high=FURTHEST)

    @property
    def horizon(self) -> int:
        return self.rounds

    def check(self, bandit: Bandit) -> None:
        for arm, law in enumerate(bandit.costs):
            require(bool(np.isfinite(law.support).all()), f"cost of arm {bandit.label(arm)}", law,
                    "must have a finite support")
