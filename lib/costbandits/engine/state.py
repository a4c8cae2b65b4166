"""What a pull loop works on, by name.

All of it lives in arrays, so that a loop can return and be called again. A loop unpacks these tuples once, at its head:
to read a field inside a loop costs twice the time of a pull.
"""

from typing import NamedTuple

import numba as nb
import numpy as np
from numpy.typing import ArrayLike

# Where a run stands: elapsed rounds, skipped ones, the next checkpoint; what was spent and collected.
NOW = np.dtype([("rounds", "i8"), ("skips", "i8"), ("checkpoint", "i8"), ("spent", "f8"), ("reward", "f8")])


class Outcomes(NamedTuple):
    """The stacks as loops read them: outcome i of position k is `pool[table[k, i >> shift], i & (2**shift - 1)]`."""

    pool: np.ndarray        # (pages, page, 2)  pairs (reward, cost)
    table: np.ndarray       # (K, ...)          the page of the pool that is page j of position k
    filled: np.ndarray      # (K,)              how many outcomes of each position have been drawn
    shift: int              # a page holds 2**shift pairs


class State(NamedTuple):
    """What is known of the arms, and where the run stands."""

    n: np.ndarray           # (K,)    pulls of each position
    sums: np.ndarray        # (4, K)  sums of reward, cost, reward^2, cost^2
    now: np.record          # NOW


class Record(NamedTuple):
    """The checkpoints, and what was noted at each."""

    due: np.ndarray         # (C,)    the spending at which each is due; infinite where rounds decide
    pulls: np.ndarray       # (C, K)
    noted: np.ndarray       # (C,)    of NOW


class Limits(NamedTuple):
    """What ends a run, and what may not be spent: after round t at most ceiling + rate t."""

    last_round: int
    max_cost: np.ndarray    # (K,)    the most a pull of each position can cost
    ceiling: float
    rate: float


def new_record(dtype: np.dtype) -> np.record:
    """A single record of this type, all zeros; its fields are read and written as attributes.

    >>> int(new_record(NOW).rounds)
    0
    """
    return np.zeros(1, dtype).view(np.recarray)[0]


def new_limits(last_round: int, max_cost: ArrayLike, ceiling: float, rate: float) -> Limits:
    """`Limits` of the types that the loops are compiled for.

    >>> new_limits(100, max_cost=[1, 1], ceiling=20, rate=0).ceiling
    20.0
    """
    return Limits(int(last_round), np.ascontiguousarray(max_cost, float), float(ceiling), float(rate))


_state = State(np.zeros(1, np.int64), np.zeros((4, 1)), new_record(NOW))
_record = Record(np.zeros(1), np.zeros((1, 1), np.int64), np.zeros(1, NOW))
_outcomes = Outcomes(np.zeros((1, 1, 2)), np.zeros((1, 1), np.int32), np.zeros(1, np.int64), 0)

# Their types for Numba.
TYPES = tuple(nb.typeof(part) for part in (_outcomes, _state, _record, new_limits(1, [0.0], 0.0, 0.0)))
