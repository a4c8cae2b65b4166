"""The plain ways of playing, by which every policy is defined: a look at every arm, or a rule's choice, in each round.

What `cb.index` and `cb.choose` make comes in by its address, with one signature (`INDEX`, `CHOICE`), so one compiled
loop serves all of them. Around the choice of a `NamedRule` a loop is compiled of its own (`by_rule`).
"""

import functools
from collections.abc import Callable
from math import inf
from typing import NamedTuple

import numpy as np
from numba import types as T

from .compilation import called_at, compiled_for
from .driver import END, NOT_NUMBER, NULL_ARM, driven, in_leaf, last_outcome, loop, nothing, one, step
from .state import GAME

INDEX_ARGUMENTS = ("t", "n", "reward", "cost", "reward_sq", "cost_sq", "constant", "params")
CHOICE_ARGUMENTS = ("t", "n", "reward", "cost", "reward_sq", "cost_sq", "problem", "params", "memory", "rng")

_ints, _floats = T.int64[::1], T.float64[::1]
INDEX = T.float64(T.int64, T.int64, T.float64, T.float64, T.float64, T.float64, T.float64, _floats)
CHOICE = T.int64(T.int64, _ints, _floats, _floats, _floats, _floats, _floats, _floats, _floats, T.npy_rng)
index_from, choice_from = called_at(INDEX), called_at(CHOICE)


class Scan(NamedTuple):
    """An index with the arms' constants, shape (K,), and the policy's parameters."""
    index: Callable
    constant: np.ndarray
    params: np.ndarray


class Choice(NamedTuple):
    """A choice, and the arrays that it is given."""
    choose: Callable
    problem: np.ndarray
    params: np.ndarray
    memory: np.ndarray


class Ruled(NamedTuple):
    """What the choice of a `NamedRule` is given: what it is told, its parameters, and what it remembers, by name."""
    told: tuple
    params: tuple
    memory: tuple


@step
def index_at(t, k, index, arms, constant, params):
    """The index of arm k at round t."""
    return index(t, arms.n[k], arms.reward[k], arms.cost[k], arms.reward_sq[k], arms.cost_sq[k], constant[k], params)


@step
def affords_none(money, limits):
    """Whether the cheapest arm is too expensive for what is left of a hard budget."""
    hard = limits.rate == 0.0 and limits.ceiling < inf
    return hard and money.spent + limits.max_cost.min() > limits.ceiling


@step
def full_scan(t, money, own, arms, limits, rng):
    """The affordable arm with the largest index, ties to the lowest position; each arm once to begin with."""
    K, arm, best, found = arms.n.size, END, -inf, False
    # An arm that was passed over in the first K rounds was too expensive, and stays so.
    for k in range(K if t < K else 0):
        if arms.n[k] == 0 and money.spent + limits.max_cost[k] <= limits.ceiling:
            arm, found = k, True
            break
    for k in range(0 if found else K):
        if arm != NOT_NUMBER and money.spent + limits.max_cost[k] <= limits.ceiling:
            value = index_at(t + 1, k, own.index, arms, own.constant, own.params)
            if value != value:
                arm = NOT_NUMBER
            elif value > best or arm < 0:
                arm, best = k, value
    return arm, 1


@step
def free_choice(t, money, own, arms, limits, rng):
    """What a choice says, if anything: a round without a pull costs nothing but time."""
    if affords_none(money, limits):
        return END, 1
    arm = own.choose(t + 1, arms.n, arms.reward, arms.cost, arms.reward_sq, arms.cost_sq, own.problem, own.params,
                     own.memory, rng)
    return arm if arm >= NULL_ARM else arms.n.size, 1       # the driver's other words are not a rule's to say


@compiled_for(T.int64(T.int64, _floats, _floats, GAME))
def by_scanning(index, constant, params, game):
    """The loop that plays any index, by its address, by `full_scan`."""
    return driven(full_scan, one, nothing, in_leaf, Scan(index_from(index), constant, params), 0, game)


@compiled_for(T.int64(T.int64, _floats, _floats, _floats, T.npy_rng, GAME))
def by_choosing(choose, problem, params, memory, rng, game):
    """The loop that plays any choice made by `cb.choose`, by its address."""
    own = Choice(choice_from(choose), problem, params, memory)
    return driven(free_choice, one, nothing, in_leaf, own, rng, game)


@functools.lru_cache(256)
def by_rule(rule: Callable, learn: Callable | None = None) -> Callable:
    """The loop of the choice of a `policies.base.NamedRule`, which learns after each pull; own: `Ruled`.

    >>> from costbandits.policies.suak import knowing
    >>> by_rule(knowing) is by_rule(knowing)
    True
    """
    @step
    def choose(t, money, own, arms, limits, rng):
        if affords_none(money, limits):
            return END, 1
        arm = rule(t + 1, money.spent, arms, own.told, own.params, own.memory, rng)
        return arm if arm >= END else arms.n.size, 1        # the driver's other words are not a rule's to say

    @step
    def take_up(arm, m, t, own, arms, outcomes, rng):
        learn(t, arm, last_outcome(arm, arms, outcomes), arms, own.told, own.params, own.memory, rng)

    return loop(choose, one, nothing if learn is None else take_up)
