"""Reward stacks: what the n-th pull of an arm will pay and cost is fixed before anyone plays.

The pair (reward, cost) of sample n of arm k in replication r is a function of (seed, r, k, n) alone,
so all policies of a replication face the same luck and their difference is a paired one.
"""

import numpy as np
from numpy.typing import ArrayLike

from ..environments.bandits import Bandit

# What a random stream is for. One SeedSequence per (replication, purpose, arm): unlike plain lists such
# as [seed, replication], spawn keys of different meaning never collide.
INSTANCE, REWARD, COST, POLICY, ORDER = range(5)

PAGE = 256        # pairs per page; a power of two; results do not depend on it
LARGEST_DRAW = 64  # pages drawn at once at most


def stream(seed: int, replication: int, purpose: int, arm: int = 0) -> np.random.Generator:
    """The random generator of one purpose in one replication.

    >>> stream(0, 7, ORDER).permutation(3), stream(0, 7, ORDER).permutation(3)
    (array([1, 2, 0]), array([1, 2, 0]))
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(replication, purpose, arm)))


class Stacks:
    """The stacks of one replication, drawn page by page as policies ask for them.

    Arms stand at *positions*: `order[position]` is the arm. The engine works in positions throughout.

    Attributes
    ----------
    pool : ndarray of shape (pages, page, 2)
        Pairs (reward, cost) of all arms, page after page in the order they were drawn.
    table : ndarray of shape (K, ...)
        `table[i, j]` is where in the pool page j of position i lies.
    filled : ndarray of shape (K,)
        How many pairs of each position have been drawn.

    Examples
    --------
    >>> stacks = Stacks(cb.Bandit([cb.Bernoulli(0.5)], [cb.Constant(0.25)]), seed=0, replication=0, order=[0])
    >>> stacks.pool[stacks.table[0, 0], :2]             # reward and cost of its first and second pull
    array([[0.  , 0.25],
           [1.  , 0.25]])
    """

    def __init__(self, bandit: Bandit, seed: int, replication: int, order: ArrayLike, page: int | None = None):
        self.page = page or PAGE
        self.shift = self.page.bit_length() - 1
        if self.page != 1 << self.shift:
            raise ValueError(f"page = {page!r}: must be a power of two")
        self._laws = [(bandit.rewards[arm], bandit.costs[arm]) for arm in order]
        self._streams = [[stream(seed, replication, purpose, arm) for purpose in (REWARD, COST)] for arm in order]
        K = len(order)
        self._used = 0
        self._draws = np.ones(K, np.int64)
        self.pool = np.empty((2 * K, self.page, 2))
        self.table = np.zeros((K, 8), np.int32)
        self.filled = np.zeros(K, np.int64)
        for position in range(K):
            self.grow(position)

    def grow(self, position: int) -> None:
        """Draw the next pages of one position: 1, then 2, 4, ... up to 64 at a time."""
        pages = int(self._draws[position])
        self._draws[position] = min(2 * pages, LARGEST_DRAW)
        first, old = self._used, int(self.filled[position]) // self.page
        self._reserve(first + pages, old + pages)
        values = self.pool[first:first + pages].reshape(-1, 2)
        for column in (0, 1):
            values[:, column] = self._laws[position][column].sample(self._streams[position][column], len(values))
        self.table[position, old:old + pages] = np.arange(first, first + pages)
        self._used += pages
        self.filled[position] += len(values)

    def _reserve(self, pages, columns):
        if pages > len(self.pool):
            pool = np.empty((max(pages, len(self.pool) * 3 // 2), self.page, 2))
            pool[:self._used] = self.pool[:self._used]
            self.pool = pool
        if columns > self.table.shape[1]:
            wider = np.zeros((len(self.table), max(columns, 2 * self.table.shape[1])), np.int32)
            wider[:, :self.table.shape[1]] = self.table
            self.table = wider
