"""Index policies whose index does not fall while its arm rests: the very arms of the full scan.

The leader is found by `search`, and pulled many times at once where a lower bound of its index until the end of a block
(`lower`) shows that it stays ahead.
"""

import functools
from collections.abc import Callable
from math import inf
from typing import NamedTuple

import numpy as np

from ..engine.compilation import address, called_at, compiled_for, ready
from ..engine.driver import FAR, NEAR_CEILING, NOT_NUMBER, PAUSE, Money, driven, jit, nothing, one, step, unless_typed
from ..engine.numerics import SLACK
from ..engine.plain import INDEX, index_at, index_from
from ..engine.run import Run
from ..engine.state import Arm, Limits, new_record
from ..engine.trees import LEAF, block, is_counted, read_on, settle, skip, total
from ..policies.base import IndexRule, Problem
from . import kernel
from .lower import BOUND, lower_for, no_lower
from .search import lazy_argmax, new_search

bound_from = called_at(BOUND)
SHORTEST = 4        # a block of fewer pulls is not worth a try

# (relative lead) x (pulls so far) x this: for about so many more pulls a leader is likely to stay ahead.
LOCAL = np.dtype([("share", "f8")])


class Lazy(NamedTuple):
    """The arms' constants, shape (K,), the index's parameters, the search, and how far to try."""
    constant: np.ndarray
    params: np.ndarray
    search: np.record
    tree: np.ndarray
    rivals: np.ndarray
    local: np.record


def new_lazy(constant: np.ndarray, params: np.ndarray) -> Lazy:
    """What a run begins with, for arms of these constants.

    >>> float(new_lazy(np.zeros(3), np.ones(1)).local.share)
    0.45
    """
    local = new_record(LOCAL)
    local.share = 0.45
    return Lazy(constant, params, *new_search(constant.size), local)


class Bounded(NamedTuple):
    """An index, its lower bound over a block of pulls, what they are searched and tried by, and a kernel's own."""
    index: Callable
    lower: Callable
    lazy: Lazy
    more: tuple = ()


def all_affordable_below(limits: Limits) -> float:
    """The spending below which every arm is affordable, with a little to spare.

    >>> all_affordable_below(Limits(10**8, max_cost=np.array([0.5, 2.0]), ceiling=100.0, rate=0.0)) < 98.0
    True
    """
    return float((limits.ceiling - limits.max_cost.max()) * (1 - SLACK)) if limits.ceiling < inf else inf


@step
def known(arm, own, arms):
    """What is known of one arm."""
    return Arm(arms.n[arm], arms.reward[arm], arms.cost[arm], arms.reward_sq[arm], arms.cost_sq[arm],
               own.constant[arm])


@jit
def try_blocks(lower, arm, m, t, money, own, arms, outcomes):
    """Pull the next block of the tree, of up to m outcomes, if that is safe."""
    i, now = arms.n[arm], known(arm, own, arms)
    while m >= LEAF:
        m = block(arm, i, m, outcomes)
        r, c = total(arm, 0, outcomes), total(arm, 1, outcomes)
        if money.spent + c < money.due and lower(t + 1, m, now, r, c, own.params) > own.search.rival_bound:
            skip(arm, arms, outcomes)
            return Money(money.spent + c, money.collected + r, money.due)
        m >>= 1
    return money


@step
def try_leaf(lower, arm, m, t, money, own, arms, outcomes):
    """Pull the next m outcomes, which are at hand, if that is safe."""
    (s, w, due), pool, row, now = money, outcomes.pool, outcomes.at[arm] + arms.n[arm], known(arm, own, arms)
    r, c, rr, cc = now.reward, now.cost, now.reward_sq, now.cost_sq
    for j in range(row, row + m):
        x, y = pool[j, 0], pool[j, 1]
        r, c, rr, cc, s, w = r + x, c + y, rr + x * x, cc + y * y, s + y, w + x
    least = lower(t + 1, m, now, r - now.reward, c - now.cost, own.params)
    if s < due and least > own.search.rival_bound:
        arms.n[arm] += m
        arms.reward[arm], arms.cost[arm], arms.reward_sq[arm], arms.cost_sq[arm] = r, c, rr, cc
        own.local.share = min(own.local.share * 1.1, 64.0)
        return Money(s, w, due)
    own.local.share = max(own.local.share * 0.6, 0.05)
    return money


@step
def likely(value, t, own, arms, limits):
    """For how many pulls a leader of this index, which is ahead now, is likely to stay ahead."""
    most = own.search.rival_bound
    lead = (1.0 if value == inf else (value - most) / abs(value)) * own.local.share * arms.n[own.search.leader]
    m = np.int64(min(lead, FAR)) if lead > 0.0 else 0
    return min(m, own.search.expires - t, limits.last_round - t)


@step
def choose(t, money, own, arms, limits, rng):
    """The leader, for as many pulls as it is likely to stay ahead; a search where it may have been passed."""
    lazy, search, arm, m = own.lazy, own.lazy.search, t, 0
    if money.spent >= limits.pause:
        arm = PAUSE
    elif t >= arms.n.size:
        arm = search.leader
        value = index_at(t + 1, arm, own.index, arms, lazy.constant, lazy.params)
        if t < search.expires and value > search.rival_bound:
            m = likely(value, t, lazy, arms, limits)
        else:
            arm = lazy_argmax(own.index, t, lazy, arms, limits.last_round)
            arm = arm if arm >= 0 else NOT_NUMBER
    return arm, m


@step
def advance(arm, m, t, money, own, arms, outcomes, rng):
    """Pull a block of the tree, what is left of a leaf, or once."""
    i, filled = arms.n[arm], outcomes.filled
    if m >= LEAF and i == filled[arm] and is_counted(arm, outcomes):
        money = try_blocks(own.lower, arm, m, t, money, own.lazy, arms, outcomes)
    if arms.n[arm] == i and m >= SHORTEST:
        if i == filled[arm]:
            read_on(arm, arms, outcomes)
        m = min(m, filled[arm] - i)
        if m >= SHORTEST:
            money = try_leaf(own.lower, arm, m, t, money, own.lazy, arms, outcomes)
            if arms.n[arm] == filled[arm]:
                settle(arm, arms, outcomes)
    if arms.n[arm] == i:
        money, _ = one(arm, m, t, money, own, arms, outcomes, rng)
    return money, arms.n[arm] - i


@compiled_for()
def by_blocks(index, lower, own, game):
    """The loop around any index and its lower bound.

    They are called by their addresses: to compile them into it takes eight seconds, and wins nothing measurable.
    """
    return driven(choose, advance, nothing, unless_typed, Bounded(index_from(index), bound_from(lower), own), 0, game)


def _lower_in(run, policy):
    return no_lower if run.stacks.negative else lower_for(policy, run.stacks.most)


@np.errstate(all="ignore")      # without compilation NumPy warns
def _broken(policy, run, problem, rounds):
    """A promise that breaks and a round at which it does, looked for on the outcomes of a run up to `rounds`."""
    def above(value, other):
        return value > other + SLACK * abs(other)

    @functools.cache
    def later(n):
        return np.unique(np.geomspace(n + 1, max(rounds, n + 1), 32).astype(np.int64)).tolist()

    constants, lower = policy.constants(problem).tolist(), _lower_in(run, policy)
    rule, params = ready(policy.rule, INDEX), policy.parameters
    for k in np.flatnonzero(run.state.arms.n).tolist():
        pairs = run.stacks.pairs(k, int(run.state.arms.n[k]))
        sums, last, constant = np.cumsum(np.hstack([pairs, pairs**2]), axis=0), len(pairs), constants[k]
        for n in np.unique(np.geomspace(1, last, 48).astype(np.int64)).tolist():
            arm = Arm(n, *sums[n - 1].tolist(), constant)
            index = np.array([rule(t, *arm, params) for t in later(n)])
            falls = np.flatnonzero(above(index[:-1], index[1:]))
            if falls.size:
                return "monotone", later(n)[falls[0] + 1]
            for m in {min(m, last - n) for m in (4, n // 4, n)} - {0} if lower is not no_lower else ():
                rewards, costs = (sums[n + m - 1] - sums[n - 1]).tolist()[:2]
                for t in later(n)[::8]:
                    least = lower(t, m, arm, rewards, costs, params)
                    for j in np.unique(np.linspace(0, m - 1, 8).astype(int)).tolist():
                        if above(least, rule(t + j, n + j, *sums[n + j - 1].tolist(), constant, params)):
                            return "regular", t + j
    return None


@kernel(IndexRule, when=lambda policy: policy.monotone, blocks=lambda policy: lower_for(policy) is not no_lower,
        broken=_broken)
def play(policy: IndexRule, run: Run, problem: Problem, rng: object) -> int:
    """Lazily while every arm is affordable, then by full scans."""
    blocks = functools.partial(by_blocks, address(policy.rule, INDEX), address(_lower_in(run, policy), BOUND))
    own = new_lazy(policy.constants(problem), policy.parameters)
    status = run.play(blocks, own, pause=all_affordable_below(run.limits))
    return policy.play(run, problem, rng) if status == NEAR_CEILING else status
