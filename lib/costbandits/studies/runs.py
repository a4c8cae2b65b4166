"""What a study returns: pull counts and totals of every run, or what was kept of them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ..checks import require
from ..engine.stops import StopRule
from ..environments.bandits import Bandit
from . import keys

if TYPE_CHECKING:
    import pandas as pd

FIELDS = ("pulls", "rounds", "skips", "spent", "reward")


@dataclass(repr=False, eq=False)
class Results:
    """What every result of `simulate` knows of its study. Two are equal if all their numbers are, bit by bit.

    Attributes
    ----------
    policies : list of str
        Labels, the first axis of every array.
    replications : ndarray of int, shape (R,)
    fractions : ndarray, shape (C,)
        Checkpoints as shares of the budget, or of the horizon.

    Examples
    --------
    >>> runs = cb.simulate({"m": cb.MUCB(), "BTS": cb.BTS()}, cb.instances.bernoulli(3), cb.Budget(9), checkpoints=2)
    >>> runs
    Runs: m, BTS; 1 replications, 2 checkpoints, 3 arms, Budget(total=9)
    >>> runs.index("BTS"), list(runs.frame(runs.spent[:, :, -1]))
    (1, ['policy', 'replication', 'value'])
    """
    policies: list[str]
    replications: np.ndarray
    fractions: np.ndarray

    def __repr__(self):
        return (f"{type(self).__name__}: {', '.join(map(str, self.policies))}; "
                f"{len(self.replications):,} replications, {len(self.fractions)} checkpoints")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        mine, theirs = self._numbers(), other._numbers()
        return self.policies == other.policies and mine.keys() == theirs.keys() and all(
            np.array_equal(mine[name], theirs[name], equal_nan=True) for name in mine)

    __hash__ = None

    def _numbers(self):
        return {name: value for name, value in vars(self).items() if isinstance(value, np.ndarray)}

    def index(self, label: str) -> int:
        """Position of a policy on the first axis; ValueError if there is none of this label."""
        require(label in self.policies, "policy", label, f"must be one of {self.policies}")
        return self.policies.index(label)

    def frame(self, values: ArrayLike) -> "pd.DataFrame":
        """A tidy DataFrame of an array (policy, replication[, checkpoint]): these columns, and value."""
        import pandas as pd
        values = np.asarray(values)
        shape = (len(self.policies), len(self.replications), len(self.fractions))
        require(values.shape in (shape, shape[:2]), "values.shape", values.shape, f"must be {shape} or {shape[:2]}")
        levels = {"policy": self.policies, "replication": self.replications, "checkpoint": self.fractions}
        names = list(levels)[:values.ndim]
        index = pd.MultiIndex.from_product([levels[name] for name in names], names=names)
        return pd.Series(values.ravel(), index, name="value").reset_index()


@dataclass(repr=False, eq=False)
class Runs(Results):
    """Pull counts and totals of every run at every checkpoint.

    >>> runs = cb.simulate({"m": cb.MUCB()}, cb.instances.bernoulli(3), cb.Budget(9), replications=4, checkpoints=2)
    >>> runs.pulls.shape, bool((runs.spent[:, :, -1] >= 9).all())
    ((1, 4, 2, 3), True)

    Attributes
    ----------
    pulls : int64 array of shape (policy, replication, checkpoint, arm)
    rounds, skips : int64 arrays of shape (policy, replication, checkpoint)
        Elapsed rounds, skipped ones included; skipped ones alone: rounds without a pull, to save budget. Rounds that
        are neither pulls nor skips were passed, as part of a policy's mixture.
    spent, reward : float64 arrays of shape (policy, replication, checkpoint)
        What was paid and earned so far, in units of cost and of reward. Other than pulls, rounds and skips these are
        rounded. Sums of whole numbers are exact up to 2**53. Beyond, and of fractions, each arm's sum is off by a few
        units in the last place where rewards and costs have few values, which are counted; else each addition is
        rounded, so that n pulls may be off by n 2**-53 of the sum.
    bandits, stops : lists of Bandit and of stop rules, one per replication
    """
    pulls: np.ndarray
    rounds: np.ndarray
    skips: np.ndarray
    spent: np.ndarray
    reward: np.ndarray
    bandits: list[Bandit]
    stops: list[StopRule]
    seed: int

    def __repr__(self):
        one, kind = len(set(map(repr, self.stops))) == 1, type(self.stops[0]).__name__
        return f"{super().__repr__()}, {self.bandits[0].K} arms, {repr(self.stops[0]) if one else f'a {kind} for each'}"

    @property
    def unpulled(self) -> np.ndarray:
        """How many arms have never been pulled, shape (policy, replication, checkpoint)."""
        return (self.pulls == 0).sum(axis=-1)


@dataclass(repr=False, eq=False)
class Reduced(Results):
    """What `reduce` kept of each run: `values[name]`, also as `reduced[name]`, of shape (policy, replication, ...).

    Attributes
    ----------
    values : dict
    origin : bytes
        Digest of the seed, and of the bandit and the stop rule of replication 0: runs of one origin are paired.

    Examples
    --------
    >>> cb.simulate({"m": cb.MUCB()}, cb.instances.bernoulli(3), cb.Budget(9), 4, checkpoints=1,
    ...             reduce=lambda runs: {"regret": cb.regret.budgeted(runs)})["regret"].shape
    (1, 4, 1)
    """
    values: dict[str, np.ndarray]
    origin: bytes

    def __repr__(self):
        return f"{super().__repr__()}; of each run: {', '.join(map(str, self.values))}"

    def _numbers(self):
        return super()._numbers() | {("values", name): value for name, value in self.values.items()}

    def __getitem__(self, name):
        require(name in self.values, "value", name, f"must be one of {list(self.values)}")
        return self.values[name]


def join(first: Runs | Reduced, second: Runs | Reduced) -> Runs | Reduced:
    """The policies of two results side by side, on the replications they have in common.

    Both must come from the same seed, checkpoints and instances, so that their runs are paired.

    Parameters
    ----------
    first, second : Runs or Reduced
        Two of a kind, without a label in common. Policies of `first` come first, and its replications keep their order.

    Examples
    --------
    >>> study = {"bandits": cb.instances.bernoulli(3), "stop": cb.Budget(9), "checkpoints": 1}
    >>> few, more = cb.simulate({"m": cb.MUCB()}, **study), cb.simulate({"c": cb.CUCB()}, **study, replications=3)
    >>> cb.join(few, more)
    Runs: m, c; 1 replications, 1 checkpoints, 3 arms, Budget(total=9)
    """
    kinds = (type(first).__name__, type(second).__name__)
    require(isinstance(first, Results) and kinds[0] == kinds[1], "results", kinds, "must be two Runs or two Reduced")
    _, *rows = np.intersect1d(first.replications, second.replications, assume_unique=True, return_indices=True)
    rows = [row[np.argsort(rows[0])] for row in rows]       # as they stand in the first
    both = first.replications[rows[0]]
    require(len(both) > 0, "replications", (first.replications, second.replications), "must have some in common")
    require(np.array_equal(first.fractions, second.fractions), "fractions", second.fractions,
            "must be the same in both")
    twice = sorted(set(first.policies) & set(second.policies))
    require(not twice, "policies", twice, "a label may stand in only one of the two")

    def side_by_side(a, b):
        return np.concatenate([a[:, rows[0]], b[:, rows[1]]])

    common = {"policies": first.policies + second.policies, "replications": both, "fractions": first.fractions}
    if isinstance(first, Reduced):
        require(first.origin == second.origin, "results", "instances, stop rules or seeds", "must be the same in both")
        names = [set(each.values) for each in (first, second)]
        require(names[0] == names[1], "values", names, "must be the same in both")
        return Reduced(**common, values={name: side_by_side(first[name], second[name]) for name in first.values},
                       origin=first.origin)
    mine, theirs = ([(keys.instance(each.bandits[i]), each.stops[i]) for i in at]
                    for each, at in zip((first, second), rows, strict=True))
    require(mine == theirs and first.seed == second.seed, "results", "instances, stop rules or seeds",
            "must be the same in both")
    arrays = {name: side_by_side(getattr(first, name), getattr(second, name)) for name in FIELDS}
    return Runs(**common, **arrays, bandits=[first.bandits[i] for i in rows[0]],
                stops=[first.stops[i] for i in rows[0]], seed=first.seed)
