"""KUBE and epsilon-first, played fast."""

import functools
from collections.abc import Callable, Sequence
from math import floor, inf
from typing import NamedTuple

import numba as nb
import numpy as np

from ..engine.compilation import address, around, compiled_for, ready
from ..engine.driver import END, FAR, MOST, Money, driven, if_counted, loop, pull_many, step, unless_typed
from ..engine.plain import INDEX, index_at
from ..engine.run import Run
from ..engine.state import new_record
from ..engine.thinning import CLOCK, look_ahead
from ..engine.trees import is_counted, is_typed
from ..policies.base import Problem
from ..policies.kube import KUBE, EpsilonFirst, density
from ..policies.rules import by_sums
from . import kernel
from .indices import Bounded, advance, all_affordable_below, bound_from, likely, new_lazy
from .lower import BOUND, lower_of, no_lower
from .search import lazy_argmax, pulled


class Filling(NamedTuple):
    """The costs, the smallest of them, and the scale of rewards; when to draw next, and room for a filling."""
    costs: np.ndarray
    least: float
    params: np.ndarray
    clock: np.record
    picks: np.ndarray
    counts: np.ndarray


@nb.njit(error_model="numpy")
def fill(index, t, spent, ceiling, own, arms):
    """Density-ordered greedy filling of what is left of the budget: `picks` in order, how often each; how many arms."""
    costs, picks, counts = own.costs, own.picks, own.counts
    rest, kinds, arm = ceiling - spent, 0, 0
    while arm >= 0:
        arm, best = -1, -inf
        for k in range(costs.size):
            if costs[k] <= rest and spent + costs[k] <= ceiling and kinds < costs.size:
                value = index_at(t + 1, k, index, arms, costs, own.params)
                if value > best:
                    arm, best = k, value
        if arm >= 0:
            picks[kinds], counts[kinds] = arm, floor(rest / costs[arm])
            rest -= counts[kinds] * costs[arm]
            kinds += 1
    return kinds


@nb.njit(error_model="numpy")
def item(at, picks, counts):
    """The arm of item `at` of a filling, counted from 0."""
    i = 0
    while at >= counts[i]:
        at -= counts[i]
        i += 1
    return picks[i]


@nb.njit(error_model="numpy")
def shares(left, cost, least):
    """How often the leader fits into what is left of the budget, and how many other items the rest has room for."""
    often = floor(left / cost)
    return often, max(floor((left - often * cost) / least), 0.0)


@nb.njit(error_model="numpy")
def item_of_candidate(index, t, spent, ceiling, own, arms, rng):
    """An item of the filling, given that round t + 1 is a candidate: the leader's, unless the candidate is accepted."""
    clock, counts, arm = own.clock, own.counts, own.clock.arm
    u, (often, others) = rng.random() * clock.rate, shares(ceiling - spent, own.costs[arm], own.least)
    if u * (often + others) < others:
        kinds = fill(index, t, spent, ceiling, own, arms)
        at = u * counts[:kinds].sum()
        if at < counts[1:kinds].sum():
            return item(at, own.picks[1:], counts[1:])
    return arm


@step
def choose(t, money, own, arms, limits, rng):
    """The leader, until it may be passed or a candidate comes; then one item of the filling."""
    lazy, mine, ceiling, last = own.lazy, own.more, limits.ceiling, limits.last_round
    search, clock, costs = lazy.search, mine.clock, mine.costs
    arm, m, spent = search.leader, 1, money.spent
    if spent < limits.pause:
        value = index_at(t + 1, arm, own.index, arms, costs, lazy.params)
        ahead = t < search.expires and value > search.rival_bound
        if not ahead:
            arm = lazy_argmax(own.index, t, lazy, arms, last)
        if arms.n[arm] > 0:
            if arm != clock.arm or t >= clock.until:
                often, others = shares(ceiling - spent, costs[arm], mine.least)
                stretch = max(often // 2, 1.0)
                look_ahead(clock, rng, t, np.int64(stretch), others / (often - stretch + 1.0 + others))
                clock.arm = arm
            if t == clock.candidate:
                arm = item_of_candidate(own.index, t, spent, ceiling, mine, arms, rng)
            elif ahead:
                m = min(likely(value, t, lazy, arms, limits), clock.candidate - t)
    else:
        kinds, picks, counts = fill(own.index, t, spent, ceiling, mine, arms), mine.picks, mine.counts
        arm = picks[0] if kinds > 0 else END
        if kinds > 1 and arms.n[arm] > 0:       # one that was never pulled is not left to chance
            arm = item(rng.random() * counts[:kinds].sum(), picks, counts)
    return arm, m


@step
def after(arm, m, t, own, arms, outcomes, rng):
    """The search hears of a rival's pull."""
    if arm != own.lazy.search.leader:
        pulled(arm, own.lazy)


@compiled_for()
def by_filling(index, lower, lazy, own, rng, game):
    """The loop for KUBE with any density, compiled into it: a third faster. The lower bound is called by its address.

    The densest arm fills the budget but for a rest, with room for at most rest / c_min others: nearly always the draw
    falls on the densest arm, whatever they are. The rounds in which it may not are found by thinning; in between it is
    pulled many times at once where it stays ahead. Then it has one item less in each round, and the rest stays.
    """
    return driven(choose, advance, after, if_counted, Bounded(index, bound_from(lower), lazy, own), rng, game)


@kernel(KUBE, same="law")
def kube(policy: KUBE, run: Run, problem: Problem, rng: np.random.Generator, index: Callable = density,
         params: Sequence[float] = ()) -> int:
    """Only as much of the filling is worked out as the draw depends on. (Another index and its params may count.)"""
    K, costs, index = problem.K, problem.cost_means.copy(), by_sums(index)
    lower = no_lower if run.stacks.negative else lower_of(index, run.stacks.most)
    params = np.array(params if len(params) else policy.p, float)
    own = Filling(costs, float(costs.min()), params, new_record(CLOCK), np.zeros(K, np.int64), np.zeros(K))
    loop = functools.partial(around(by_filling, ready(index, INDEX)), address(lower, BOUND))
    return run.play(loop, new_lazy(costs, params), own, rng, pause=all_affordable_below(run.limits))


class Sweeping(NamedTuple):
    """What exploring may cost, and the arms' costs; their densities once that is over; where the sweep goes on."""
    explore: float
    costs: np.ndarray
    density: np.ndarray
    place: np.ndarray       # (1,)    -1 when exploring is over


@step
def next_pull(t, money, own, arms, limits, rng):
    """The next arm of the sweep that fits; once none does, the densest that the budget affords, as often as it does."""
    _, costs, density, place = own
    arm, m, spent, ceiling = -1, limits.last_round - t, money.spent, limits.ceiling
    if place[0] >= 0:
        for i in range(costs.size):
            k = (place[0] + i) % costs.size
            if spent + costs[k] <= own.explore:
                arm = k
                break
        if arm < 0:
            place[0] = -1
            for k in range(costs.size):     # estimates freeze here; an arm never pulled comes last
                density[k] = arms.reward[k] / arms.n[k] / costs[k] if arms.n[k] > 0 else -inf
    if arm < 0:
        for k in range(costs.size):
            if spent + costs[k] <= ceiling and (arm < 0 or density[k] > density[arm]):
                arm = k
        arm = arm if arm >= 0 else END
        m = min(max(np.int64(min((ceiling - spent) / costs[arm], FAR)) - 1, 1), m) if arm >= 0 else 1
    return arm, m


@step
def sweep_or_pull(arm, m, t, money, own, arms, outcomes, rng):
    """Whole sweeps through the arms that fit, where nothing can happen on the way; else the arm, once while exploring.

    No arm becomes too expensive on the way, no checkpoint is reached, no law need be sampled in Python, and it does not
    take long. What is spent is summed in another order than pull by pull; what `explore` and the ceiling leave for
    rounding covers that.
    """
    (explore, costs, _, place), i, more, fit, total = own, arms.n[arm], Money(0.0, 0.0, inf), 0, 0.0
    if place[0] >= 0:
        for k in range(costs.size):
            if money.spent + costs[k] <= explore:
                fit, total = fit + 1, total + costs[k]
        turns = np.int64(min((min(money.due, explore) - money.spent) / total, FAR)) - 1 if fit > 0 else 0
        for k in range(costs.size):
            turns = turns if is_counted(k, outcomes) else min(turns, MOST // costs.size)
            turns = min(turns, outcomes.filled[k] - arms.n[k] - 1) if is_typed(k, outcomes) else turns
        turns = min(turns, m // max(fit, 1))
        if turns > 0:
            for k in range(costs.size):
                if money.spent + costs[k] <= explore:
                    more = pull_many(k, turns, more, arms, outcomes)
            return Money(money.spent + more.spent, money.collected + more.collected, money.due), turns * fit
        m, place[0] = 1, arm + 1
    return pull_many(arm, m, money, arms, outcomes), arms.n[arm] - i


by_sweeps = loop(next_pull, sweep_or_pull, goes_on=unless_typed)


@kernel(EpsilonFirst)
def epsilon_first(policy: EpsilonFirst, run: Run, problem: Problem, rng: object) -> int:
    """Whole sweeps arm by arm, then the densest arm as often as it fits."""
    explore, _, *costs = policy.prepare(problem).tolist()
    return run.play(by_sweeps, Sweeping(explore, np.array(costs), np.empty(problem.K), np.zeros(1, np.int64)), None)
