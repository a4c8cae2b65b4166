"""Cost subsidy, played fast: the very pulls of the definitions, many at once.

A policy that keeps to an arm for a spell is asked once a spell, which is pulled at once. CS-UCB and CS-ETC look anew in
every round: there an arm that is pulled again is tried for as many pulls as it has `room` for, and gets them if it
`stays`. While all arms are explored in turn, whole sweeps are pulled arm by arm.
"""

import functools
from collections.abc import Callable
from math import inf, sqrt
from typing import NamedTuple

import numpy as np

from ..engine.driver import FAR, MOST, Money, if_counted, jit, loop, one, pull, pull_many, step, unless_typed
from ..engine.numerics import SLACK
from ..engine.run import Run
from ..engine.state import new_record
from ..engine.trees import LEAF, block, is_counted, is_typed, settle, skip, total
from ..policies import cost_subsidy as defined
from ..policies.base import Policy, Problem
from ..policies.cost_subsidy import Notes, Told, bound_all, cheapest, commit_once, lowest_price, reward_bounds
from ..policies.subsidy_repairs import CSElimination
from . import kernel

SHORTEST = 4        # a block of fewer pulls is not worth a try

# The last choice, how often in a row it was made, and how often it must be before a block is tried.
LOCAL = np.dtype([("arm", "i8"), ("spell", "i8"), ("patience", "i8")])


class Bounds(NamedTuple):
    """What `by_bounds` works on."""
    told: Told
    pessimistic: bool       # arms compare with the largest lower bound
    upper: np.ndarray
    lower: np.ndarray
    price: np.ndarray
    local: np.record


class Spells(NamedTuple):
    """What `by_spells` works on."""
    told: Told
    once: bool              # bounds are looked at once, after exploring
    notes: Notes


@step
def sweep(t, left, money, arms, outcomes):
    """Pull as many whole sweeps as fit into the rounds left and into a step; the money then, and how many rounds.

    None if they are few, or none begins now.
    """
    K, more = arms.n.size, Money(0.0, 0.0, inf)
    turns = left // K if t % K == 0 else 0
    turns = turns if turns >= SHORTEST else 0
    for k in range(K if turns > 0 else 0):
        turns = turns if is_counted(k, outcomes) else min(turns, max(MOST // K, SHORTEST))
        turns = 0 if is_typed(k, outcomes) else turns       # it may run out halfway
    for k in range(K if turns > 0 else 0):
        more = pull_many(k, turns, more, arms, outcomes)
    return Money(money.spent + more.spent, money.collected + more.collected, money.due), turns * K


@jit
def room(arm, own, arms):
    """How often an arm can be pulled, about, until it may not be the cheapest feasible one any more."""
    standard, part, worst = own.lower if own.pessimistic else own.upper, 1.0 - own.told.alpha, 0.0
    for k in range(arms.n.size):
        worst = worst if k == arm else max(worst, standard[k])
    gap = own.upper[arm] - part * worst
    for k in range(arms.n.size):
        cheaper = own.price[k] < own.price[arm] or (own.price[k] == own.price[arm] and k < arm)
        if cheaper and own.upper[k] >= part * worst:
            gap = min(gap, standard[arm] - own.upper[k] / part)
        elif own.told.unknown and own.price[k] > own.price[arm] and k != arm:
            gap = min(gap, own.price[k] - own.price[arm])
    lost = max(1.0 - arms.reward[arm] / arms.n[arm], 1.0 / arms.n[arm])     # of a reward of 1, per pull
    return 0.8 * arms.n[arm] * gap / (own.upper[arm] * lost)


@jit
def stays(arm, m, rewards, costs, own, arms):
    """Whether an arm stays the cheapest feasible one while it is pulled m times, with these rewards and costs in all.

    Bounds of all others rest. Its own mean reward is lowest if the pulls without a reward come first, for no reward
    exceeds 1; its mean cost is at most all costs over n. A narrow miss by rounding must not decide.
    """
    i, width, part, worst, unknown = arms.n[arm], own.told.width, 1.0 - own.told.alpha, 0.0, own.told.unknown
    low = arms.reward[arm] / (i + (m - rewards))
    upper, standard = min(low + sqrt(width / (i + m)), 1.0), low + sqrt(width / (i + m))
    price = own.price[arm]
    if unknown:
        price = max((arms.cost[arm] + costs) / i - sqrt(width / (i + m)), 0.0)
    if own.pessimistic:
        standard = max(low - sqrt(width / i), 0.0)
    for k in range(arms.n.size):
        if k != arm:
            worst = max(worst, own.lower[k] if own.pessimistic else own.upper[k])
    if not upper > part * worst * (1.0 + SLACK):
        return False
    bar = part * max(min(standard, 1.0), worst) * (1.0 - SLACK)
    for k in range(arms.n.size):
        if k != arm and own.upper[k] >= bar:
            equal = own.price[k] == price and k > arm and (price == 0.0 or not unknown)
            if not (own.price[k] > price or equal):
                return False
    return True


@jit
def pull_block(arm, m, money, own, arms, outcomes):
    """Pull an arm up to m times at once if it stays the choice; the money then."""
    i, pool, row = arms.n[arm], outcomes.pool, outcomes.at[arm] + arms.n[arm]
    size, reward, cost, whole = min(m, outcomes.filled[arm] - i), 0.0, 0.0, i == outcomes.filled[arm]
    if whole:
        size = block(arm, i, m, outcomes)
        reward, cost = total(arm, 0, outcomes), total(arm, 1, outcomes)
    for j in range(row, row if whole else row + size):
        reward, cost = reward + pool[j, 0], cost + pool[j, 1]
    if not stays(arm, size, reward, cost, own, arms):
        return money
    if whole:
        skip(arm, arms, outcomes)
    for _ in range(0 if whole else size):
        pull(arm, arms, outcomes)
    return Money(money.spent + cost, money.collected + reward, money.due)


@step
def look(t, money, own, arms, limits, rng):
    """All arms in turn, then the cheapest one by the bounds of the round, for as long as it has room."""
    local, explored, arm, m = own.local, arms.n.size * own.told.sweeps, t % arms.n.size, 1
    if t < explored:
        m = min(explored, limits.last_round) - t
    else:
        arm = cheapest(own.told.alpha, own.lower if own.pessimistic else own.upper, own.upper, own.price)
        local.spell = local.spell + 1 if arm == local.arm else 0
        local.arm = arm
        if local.spell >= local.patience:
            m = min(np.int64(min(max(room(arm, own, arms), 0.0), FAR)), limits.last_round - t)
            # The question takes as long as the choice.
            local.patience = SHORTEST if m >= SHORTEST else min(2 * local.patience, LEAF)
            local.spell = local.spell if m >= SHORTEST else 0
    return arm, m


@step
def pull_far(arm, m, t, money, own, arms, outcomes, rng):
    """Whole sweeps, or the arm up to m times if it stays the choice, or once."""
    i, filled, done = arms.n[arm], outcomes.filled[arm], 0
    if t < arms.n.size * own.told.sweeps:
        money, done = sweep(t, m, money, arms, outcomes)
        if done > 0:
            bound_all(arms, own.told, own)
    elif m >= SHORTEST and (i < filled or (m >= LEAF and is_counted(arm, outcomes))):
        money = pull_block(arm, m, money, own, arms, outcomes)
    if arms.n[arm] == i:
        money, _ = one(arm, m, t, money, own, arms, outcomes, rng)
    elif arms.n[arm] == outcomes.filled[arm]:
        settle(arm, arms, outcomes)
    return money, max(done, arms.n[arm] - i)


@step
def bound(arm, m, t, own, arms, outcomes, rng):
    """The bounds of the arm that was pulled."""
    own.upper[arm], own.lower[arm] = reward_bounds(arm, arms, own.told.width)
    if own.told.unknown:
        own.price[arm] = lowest_price(arm, arms, own.told.width)


by_bounds = loop(look, pull_far, bound, if_counted)


@kernel(defined.CSETC)
@kernel(defined.CSUCB)
def cs_bounds(policy: defined.CSUCB | defined.CSETC, run: Run, problem: Problem, rng: object) -> int:
    """One bound moves in a round, and many pulls are made at once where it cannot matter."""
    local = new_record(LOCAL)
    local.patience = SHORTEST
    pessimistic, bounds = isinstance(policy, defined.CSETC), policy.remember(problem)[:3]
    return run.play(by_bounds, Bounds(policy.told(problem), pessimistic, *bounds, local), None)


@functools.cache
def by_spells(rule: Callable) -> Callable:
    """The loop around the rule of a policy that keeps to an arm for a spell, and may explore before that."""
    inlined = step(getattr(rule, "py_func", rule))      # to hand over all arrays takes as long as the rule

    @step
    def ask(t, money, own, arms, limits, rng):
        arm = inlined(t + 1, money.spent, arms, own.told, (), own.notes, rng)
        until = arms.n.size * own.told.sweeps if explores(t, own, arms) else own.notes.spell.until
        return arm, min(until, limits.last_round) - t

    return loop(ask, pull_spell, goes_on=unless_typed)


@step
def explores(t, own, arms):
    """Whether all arms are still pulled in turn."""
    return own.once and t < arms.n.size * own.told.sweeps


@step
def pull_spell(arm, m, t, money, own, arms, outcomes, rng):
    """Whole sweeps or once while exploring; else the arm m times."""
    i, done, exploring = arms.n[arm], 0, explores(t, own, arms)
    if exploring:
        money, done = sweep(t, m, money, arms, outcomes)
    if done == 0:
        money = pull_many(arm, 1 if exploring else m, money, arms, outcomes)
    return money, max(done, arms.n[arm] - i)


@kernel(CSElimination)
@kernel(defined.PairwiseElimination)
@kernel(defined.CommitOnce)
def spells(policy: Policy, run: Run, problem: Problem, rng: object) -> int:
    """The rule is asked once a spell."""
    own = Spells(policy.told(problem), isinstance(policy, defined.CommitOnce), policy.remember(problem))
    return run.play(by_spells(policy.rule), own, None)


@kernel(defined.BlindETC)
def blind(policy: defined.BlindETC, run: Run, problem: Problem, rng: object) -> int:
    """`CommitOnce` that may give up all of the reward, so that it commits to the cheapest arm."""
    told = defined.CommitOnce(0.0, policy.exploration_pulls).told(problem)._replace(alpha=1.0)
    return run.play(by_spells(commit_once), Spells(told, True, policy.remember(problem)), None)
