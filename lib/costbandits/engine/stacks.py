"""Reward stacks: what the n-th pull of an arm will pay and cost is fixed before anyone plays.

The pair (reward, cost) of sample n of arm k in replication r is a function of (seed, r, k, n) alone,
so all policies of a replication face the same luck and their difference is a paired one.
"""

from math import inf, log

import numpy as np
from numpy.typing import ArrayLike

from ..environments import distributions as dist
from ..environments.bandits import Bandit
from . import trees
from .compilation import compiled_for
from .state import Arms, Outcomes
from .trees import LEAF, read_leaf, read_on_all

# What a random stream is for: spawn keys of different meaning do not collide, for replications below 2**32.
INSTANCE, REWARD, COST, POLICY, ORDER, TREES, ROWS = range(7)

COUNTED = 32            # a law with more values is sampled value by value
SLOTS = 1 << 13         # nodes and leaves that are kept for the other policies; results do not depend on it
SHORTEST, LONGEST = 4, 64    # leaves that a law is asked for at once which Python samples
ROOM = 1 << 22          # numbers of such laws that are kept for the other policies


@compiled_for()
def _read_on(arms, outcomes):
    """`read_on_all`, for Python."""
    read_on_all(arms, outcomes)


@compiled_for()
def _read_leaves(k, n, row, leaves, outcomes):
    """Write several leaves into the pool."""
    for leaf in range(leaves):
        read_leaf(k, n + leaf * LEAF, row + leaf * LEAF, False, outcomes)


def stream(seed: int, replication: int, purpose: int, *place: int) -> np.random.Generator:
    """The random generator of one purpose in one replication, and of one place in it, such as an arm.

    >>> stream(0, 7, ORDER).permutation(3), stream(0, 7, ORDER).permutation(3)
    (array([1, 2, 0]), array([1, 2, 0]))
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(replication, purpose, *(place or (0,)))))


def counted(law: dist.Distribution) -> tuple[np.ndarray, np.ndarray] | None:
    """The values of a law and their probabilities, if the trees are to count them.

    >>> counted(cb.Bernoulli(0.25)), counted(cb.Beta(1, 1))
    (((1.0, 0.0), (0.25, 0.75)), None)
    """
    if type(law) is dist.Bernoulli:
        return (1.0, 0.0), (law.p, 1.0 - law.p)
    if type(law) is dist.Constant:
        return (law.value,), (1.0,)
    if type(law) is dist.Empirical:
        values, often = np.unique(law.values, return_counts=True)
        return (values, often / len(law.values)) if len(values) <= COUNTED else None
    return (law.values, law.probabilities) if type(law) is dist.Discrete and len(law.values) <= COUNTED else None


def _counted_pair(laws, joint):
    """`counted` of a reward and a cost; of a pair of columns both or neither, since they are read together."""
    if joint and any(type(law) is dist.Empirical for law in laws):
        return [counted(law) if type(law) is dist.Constant else None for law in laws]
    return [counted(law) for law in laws]


def _tabulate(law, found, table, V):
    """Write what the trees need of a law into its row of the tables, and return its kind."""
    if found is not None:
        (values, chances), left = found, 1.0
        table[:len(values)] = values
        last = max(v for v, chance in enumerate(chances) if chance > 0)     # takes what is left, however that rounds
        for v, chance in enumerate(chances):
            table[V + v] = min(chance / left, 1.0) if v < last and left > 0 else 1.0
            left -= chance
        return len(values)
    if type(law) is dist.Beta:
        table[2 * V:2 * V + 2] = law.a, law.b
        return trees.BETA
    if type(law) is dist.TruncatedNormal:
        table[2 * V:] = law.parent_mean, law.sd, law.low, law.high, *law._ends, law._side
        return trees.NORMAL
    if type(law) is dist.ClippedLogNormal:
        table[2 * V:2 * V + 5] = law.mean_log, law.sd_log, law.low, law.high, log(law.high)
        return trees.LOG_NORMAL
    return trees.TYPED


class Stacks:
    """The stacks of one replication, drawn as policies ask for them.

    Arms stand at *positions*: `order[position]` is the arm. The engine works in positions throughout.

    >>> stacks = Stacks(cb.Bandit([cb.Bernoulli(0.5)], [cb.Constant(0.25)]), seed=0, replication=0, order=[0])
    >>> stacks.pairs(0, 2)                              # reward and cost of its first and second pull
    array([[1.  , 0.25],
           [1.  , 0.25]])
    """

    def __init__(self, bandit: Bandit, seed: int, replication: int, order: ArrayLike, slots: int = SLOTS):
        self.laws = [(bandit.rewards[arm], bandit.costs[arm]) for arm in order]       # by position
        self._origin, self._sampled, self._room = (seed, replication), {}, ROOM
        K = len(self.laws)
        joint = np.array(bandit.joint)[order]
        values = [_counted_pair(*each) for each in zip(self.laws, joint, strict=True)]
        V = max(len(found[0]) for pair in values for found in (*pair, ((0.0,),)) if found)
        self.trees, self._tables = np.zeros((K, 7), np.int64), np.zeros((K, 2, 2 * V + trees.PARAMETERS))
        self.trees[:, trees.ARM] = order
        for k, pair in enumerate(self.laws):
            for column, law in enumerate(pair):
                self.trees[k, trees.KIND + column] = _tabulate(law, values[k][column], self._tables[k, column], V)
        # Pairs are read by one stream; what is constant beside the other depends on nothing.
        joint &= self.trees[:, trees.KIND] == self.trees[:, trees.KIND + 1]
        self.trees[:, trees.STREAM] = 2 * self.trees[:, trees.ARM]
        self.trees[:, trees.STREAM + 1] = 2 * self.trees[:, trees.ARM] + ~joint
        # Positions with a law that is sampled in Python; whether all outcomes are counted; whether some are below 0;
        # and what none exceeds, if that is 1.
        kinds = self.trees[:, trees.KIND:trees.STREAM]
        self.typed, self.counted = np.flatnonzero((kinds == trees.TYPED).any(axis=1)).tolist(), bool((kinds > 0).all())
        self.negative = any(law.support[0] < 0 for pair in self.laws for law in pair)
        self.most = 1.0 if all(law.support[1] <= 1 for pair in self.laws for law in pair) else inf
        self.trees[:, trees.HOME] = np.arange(K) * LEAF
        self.trees[self.typed, trees.HOME] = (K + slots + LONGEST * np.arange(len(self.typed))) * LEAF
        self._pool = np.empty(((K + slots + LONGEST * len(self.typed)) * LEAF, 2))
        self._kept = np.zeros((slots, V + trees.FIRST), np.int64)
        self._key = np.random.SeedSequence(seed, spawn_key=(replication, TREES)).generate_state(1, np.uint64)[0]

    def outcomes(self) -> Outcomes:
        """What a run reads the trees by, from their beginning."""
        K, V = len(self.laws), self._kept.shape[1] - trees.FIRST
        level, counts = np.zeros((K, trees.DEPTH), np.int64), np.zeros((K, 2, trees.DEPTH, V), np.int64)
        return Outcomes(self._pool, self.trees[:, trees.HOME].copy(), np.zeros(K, np.int64), self.trees, self._tables,
                        level, counts, self._kept, np.append(np.zeros(4, np.uint64), self._key))

    def pairs(self, k: int, count: int) -> np.ndarray:
        """The first outcomes of a position, shape (count, 2)."""
        arms, outcomes, found = Arms.of(len(self.laws)), self.outcomes(), np.empty((count, 2))
        while (first := int(outcomes.filled[k])) < count:
            arms.n[k] = first
            self.read_on(outcomes, arms)
            part = outcomes.pool[outcomes.at[k] + first:outcomes.at[k] + outcomes.filled[k]]
            found[first:first + len(part)] = part[:count - first]
        return found

    @np.errstate(over="ignore")     # without compilation NumPy warns of numbers that are meant to overflow
    def read_on(self, outcomes: Outcomes, arms: Arms) -> None:
        """Read on at each position of which all that was read has been pulled."""
        _read_on(arms, outcomes)
        for k in self.typed:
            if arms.n[k] == outcomes.filled[k]:
                self._sample(k, int(arms.n[k]), outcomes)

    def _sample(self, k, n, outcomes):
        home, first = int(self.trees[k, trees.HOME]), n >> trees.SHIFT
        leaves = min(max(first, SHORTEST), LONGEST)
        _read_leaves(k, n, home, leaves, outcomes)
        for column, law in enumerate(self.laws[k]):
            if self.trees[k, trees.KIND + column] == trees.TYPED:
                drawn = self._sampled.get((k, column, first))
                if drawn is None:
                    drawn = self._draw(k, column, law, first, leaves * LEAF)
                outcomes.pool[home:home + leaves * LEAF, column] = drawn
        outcomes.at[k], outcomes.filled[k] = home - n, n + leaves * LEAF

    def _draw(self, k, column, law, first, count):
        arm, purpose = int(self.trees[k, trees.ARM]), (REWARD, COST)[self.trees[k, trees.STREAM + column] & 1]
        name = f"{type(law).__name__}.sample, {('reward', 'cost')[column]} of arm {arm}"
        drawn = dist.draw(name, law, stream(*self._origin, purpose, arm, first), count)
        if self._room > 0:
            self._sampled[k, column, first] = drawn
            self._room -= count
        return drawn
