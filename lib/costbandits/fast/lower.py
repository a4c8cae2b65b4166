"""Lower bounds of an index over a block of pulls: while one is above all rivals, the whole block may be pulled.

Of a *regular* index the bound follows from the index itself (`lower_of`). Another brings its own, under `lower_bound`.
"""

import functools
import math
from collections.abc import Callable

import numba as nb

from ..policies.base import IndexRule
from ..policies.rules import by_sums

LOWER: dict[Callable, Callable] = {}       # index -> its lower bound over a block


def lower_bound(index: Callable) -> Callable[[Callable], Callable]:
    """Give an index that is not regular a lower bound over a block of pulls, a function under `numba.njit`.

    From (t, m, arm, rewards, costs, params): of m pulls that begin at round t `rewards` and `costs` are the sums; `arm`
    is what was known of the arm before (`state.Arm`). At no pull of the block may the index be below it.

    >>> LOWER[cb.OmegaStarUCB.rule].__name__
    'omega_star_lower'
    """
    def register(function):
        LOWER[by_sums(index)] = function
        return function

    return register


@functools.lru_cache(256)
def lower_of(index: Callable) -> Callable:
    """A lower bound of a regular index over a block: the old rewards spread over n + m pulls, the new costs over n.

    For any j < m its index after j more pulls is no less: it does not fall in the mean reward nor in t, and does not
    rise in the mean cost nor, at the same means, in n.

    >>> from costbandits.engine.state import Arm
    >>> lower_of(cb.UCB1.rule)(2, 3, Arm(1, 1.0, 0.5, 1.0, 0.25, 0.0), 2.0, 1.5, np.empty(0))   # 1/4, ln(t - 1) is 0
    0.25
    """
    def lower(t, m, arm, rewards, costs, params):
        stretch = (arm.n + m) / arm.n
        return index(t, arm.n + m, arm.reward, (arm.cost + costs) * stretch, arm.reward_sq, arm.cost_sq * stretch,
                     arm.told, params)

    return nb.njit(error_model="numpy")(lower)


@nb.njit(error_model="numpy")
def no_lower(t, m, arm, rewards, costs, params):
    """Of an index that promises nothing for a block of pulls."""
    return -math.inf


def lower_for(policy: IndexRule) -> Callable:
    """The lower bound of a policy's index over a block of pulls; `no_lower` if it has none.

    >>> lower_for(cb.UCB1()) is lower_of(cb.UCB1.rule), lower_for(cb.IndexPolicy(cb.UCB1.rule)) is no_lower
    (True, True)
    """
    return lower_of(policy.rule) if policy.regular else LOWER.get(policy.rule, no_lower)


def in_blocks(policy: IndexRule) -> bool:
    """Whether a policy's arms are pulled many times at once.

    >>> in_blocks(cb.UCB1()), in_blocks(cb.IndexPolicy(cb.UCB1.rule, monotone=True))
    (True, False)
    """
    return lower_for(policy) is not no_lower
