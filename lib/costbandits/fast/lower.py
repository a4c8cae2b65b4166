"""Lower bounds of an index over a block of pulls: while one is above all rivals, the whole block may be pulled.

Of a *regular* index the bound follows from the index itself (`lower_of`). Another brings its own, under `lower_bound`,
as the two do that look at variances: omega*-UCB and UCB-B2.
"""

import functools
from collections.abc import Callable
from math import inf, log, sqrt

import numba as nb
from numba import types as T

from ..engine.state import Arm
from ..policies.base import IndexRule
from ..policies.classics import ucb_b2
from ..policies.omega_ucb import omega_ratio, omega_star_ucb
from ..policies.rules import by_sums

# Its type for Numba, of (t, m, arm, rewards, costs, params).
BOUND = T.float64(T.int64, T.int64, nb.typeof(Arm(1, 0.0, 0.0, 0.0, 0.0, 0.0)), T.float64, T.float64, T.float64[::1])
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
def lower_of(index: Callable, most: float = 1.0) -> Callable:
    """A lower bound of a regular index over a block of pulls, whatever the order of its outcomes; none exceeds `most`.

    It does not fall in the mean reward nor in t, and does not rise in the mean cost nor, at the same means, in n. Its
    worst moment is no worse than this: all that pays nothing has come, and nothing else, so that n + m - r pulls have
    the old rewards; and all that costs has come, and nothing else, so that n + c pulls have the old costs and c more.
    """
    def lower(t, m, arm, rewards, costs, params):
        N = arm.n + m
        return index(t, N, arm.reward * N / (N - rewards / most), (arm.cost + costs) * N / (arm.n + costs / most),
                     arm.reward_sq, arm.cost_sq, arm.told, params)

    return nb.njit(error_model="numpy")(lower)


@nb.njit(error_model="numpy")
def no_lower(t, m, arm, rewards, costs, params):
    """Of an index that promises nothing for a block of pulls."""
    return -inf


def lower_for(policy: IndexRule, most: float = 1.0) -> Callable:
    """The lower bound of a policy's index over a block of outcomes of at most `most`; `no_lower` if it has none.

    >>> lower_for(cb.UCB1()) is lower_of(cb.UCB1.rule, 1.0), lower_for(cb.IndexPolicy(cb.UCB1.rule)) is no_lower
    (True, True)
    """
    return lower_of(policy.rule, most) if policy.regular else LOWER.get(policy.rule, no_lower)


@nb.njit(inline="always", error_model="numpy")
def least_eta(total, square, more, n, m):
    """A lower bound of `eta` while m more outcomes come in, which sum to `more`: squared deviations never get less."""
    low, high = total / (n + m), min((total + more) / n, 1.0)       # between these the mean stays
    middle = min(max(0.5, low), high)
    if middle * (1.0 - middle) <= 0.0:
        return 1.0
    return min(max(square - total * total / n, 0.0) / (n + m - 1) / (middle * (1.0 - middle)), 1.0)


@lower_bound(omega_star_ucb)
@nb.njit(error_model="numpy")
def omega_star_lower(t, m, arm, rewards, costs, params):
    """A lower bound of `omega_star_ucb` over a block of m pulls: rewards so far, all its costs, the least eta."""
    n, w = arm.n, 2.0 * params[0] * log(t) / (arm.n + m)
    w_r = least_eta(arm.reward, arm.reward_sq, rewards, n, m) * w
    w_c = least_eta(arm.cost, arm.cost_sq, costs, n, m) * w
    return omega_ratio(arm.reward / (n + m), (arm.cost + costs) / n, w_r, w_c)


@lower_bound(ucb_b2)
@nb.njit(error_model="numpy")
def ucb_b2_lower(t, m, arm, rewards, costs, params):
    """A lower bound of `ucb_b2` over a block of m pulls: rewards so far, all costs, squared deviations as they are."""
    n, N, x = arm.n, arm.n + m, 2.01 * log(t)
    r, c = arm.reward / N, (arm.cost + costs) / n
    v_r = max(arm.reward_sq - arm.reward * arm.reward / n, 0.0) / (N - 1)
    v_c = max(arm.cost_sq - arm.cost * arm.cost / n, 0.0) / (N - 1)
    e_r, e_c = sqrt(2.0 * v_r * x / N) + 3.0 * x / N, sqrt(2.0 * v_c * x / N) + 3.0 * x / N
    if e_c >= c:
        return inf
    q = r / max(c, arm.told)
    return q + 1.4 * (e_r + q * e_c) / c
