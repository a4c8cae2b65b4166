"""What the driver works on, by name; all of it lives in arrays, so that the driver can return and be called again."""

import math
from typing import NamedTuple

import numba as nb
import numpy as np

# Where a run stands: elapsed rounds, skipped ones, the next checkpoint; what was spent and collected.
NOW = np.dtype([("rounds", "i8"), ("skips", "i8"), ("checkpoint", "i8"), ("spent", "f8"), ("reward", "f8")])


class Outcomes(NamedTuple):
    """The trees as loops read them: outcome i of position k is `pool[at[k] + i]`, for i below `filled[k]`
    in what was read last.

    How far a run has read an arm's tree is a stack of blocks, which follow each other, the next one on top. Column 0 is
    for rewards, column 1 for costs.
    """
    pool: np.ndarray        # (rows, 2)         pairs (reward, cost), leaf by leaf
    at: np.ndarray          # (K,)
    filled: np.ndarray      # (K,)
    trees: np.ndarray       # (K, 7)            columns HOME, ARM, USED, KIND, STREAM of `trees`: row of the position's
    #                                           own leaf in the pool; its arm; slots with a place in the pool (row 0
    #                                           only); of rewards and of costs: number of values, or a kind of law, and
    #                                           the random stream, which is one for both if they are drawn as pairs
    laws: np.ndarray        # (K, 2, 2 V + 7)   the values; the chance of each, if none before it came; parameters
    level: np.ndarray       # (K, D)            of each block on the stack: LEAF * 2**level outcomes; first, how many
    counts: np.ndarray      # (K, 2, D, V)      how often each value occurs in a block; first, in all that was read
    kept: np.ndarray        # (slots, V + 4)    columns NODE, LEFT, READER, PLACE, FIRST, ... of `trees`
    random: np.ndarray      # (5,)              state of the generator, and the key of the replication


class Arm(NamedTuple):
    """What is known of one arm: pulls, sums over them, and what the policy was told of it beforehand."""
    n: int
    reward: float
    cost: float
    reward_sq: float
    cost_sq: float
    told: float


class Arms(NamedTuple):
    """What is known of the arms: the pulls of each position, and sums over them; each of shape (K,).

    >>> Arms.of(K=3).n
    array([0, 0, 0])
    """
    n: np.ndarray
    reward: np.ndarray
    cost: np.ndarray
    reward_sq: np.ndarray
    cost_sq: np.ndarray

    @classmethod
    def of(cls, K: int) -> "Arms":
        """K arms that were never pulled."""
        return cls(np.zeros(K, np.int64), *np.zeros((4, K)))


class Outcome(NamedTuple):
    """What a pull paid and cost."""
    reward: float
    cost: float


class State(NamedTuple):
    """What is known of the arms, and where the run stands."""
    arms: Arms
    now: np.record          # NOW


class Money(NamedTuple):
    """What was spent and collected so far, and the spending at which a run must stop to look up."""
    spent: float
    collected: float
    due: float


class Record(NamedTuple):
    """The checkpoints, and what was noted at each."""
    due: np.ndarray         # (C,)    the spending at which each is due; infinite where rounds decide
    pulls: np.ndarray       # (C, K)
    noted: np.ndarray       # (C,)    of NOW


class Limits(NamedTuple):
    """What ends a run, and what may be spent: after round t at most ceiling + rate t."""
    last_round: int
    max_cost: np.ndarray    # (K,)    the most a pull of each position can cost
    ceiling: float
    rate: float
    pause: float = math.inf     # the spending from which on an arm may be too expensive; infinite where nobody asks
    beat: np.ndarray = np.zeros(1, np.int64)    # calls the driver back to Python whenever it changes;
    near: np.ndarray = np.zeros(1)      # it notes the spending at which it was to add up; 0 if it was not called back


class Game(NamedTuple):
    """All that a run is, but for its policy."""
    outcomes: Outcomes
    state: State
    record: Record
    limits: Limits


def new_record(dtype: np.dtype) -> np.record:
    """A single record of this type, all zeros; its fields are read and written as attributes.

    >>> int(new_record(NOW).rounds)
    0
    """
    return np.zeros(1, dtype).view(np.recarray)[0]


_outcomes = Outcomes(np.zeros((1, 2)), *np.zeros((2, 1), np.int64), np.zeros((1, 7), np.int64), np.zeros((1, 2, 9)),
                     np.zeros((1, 1), np.int64), np.zeros((1, 2, 1, 1), np.int64), np.zeros((1, 4), np.int64),
                     np.zeros(5, np.uint64))
_record = Record(np.zeros(1), np.zeros((1, 1), np.int64), np.zeros(1, NOW))

# Types for Numba.
GAME = nb.typeof(Game(_outcomes, State(Arms.of(1), new_record(NOW)), _record, Limits(1, np.zeros(1), 0.0, 0.0)))
OUTCOMES, STATE, RECORD, LIMITS = GAME.types
ARMS, MONEY = STATE.types[0], nb.typeof(Money(0.0, 0.0, 0.0))
