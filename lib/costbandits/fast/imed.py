"""IMED and moment IMED, for which few divergences are evaluated: the very arms of the definition.

At a ratio rho the index of a resting arm is J = n D(rho) + scale log n, and it never falls as rho rises. For coins it
is plain: fewer laws have a ratio of rho' than of rho < rho'. For moments: let X' be the worst law at rho' > rho, and
share = rho / rho'. Then share X' + (1 - share) W has the moments of X at rho, where W is independent of X', has the
mean r >= 0 and whatever variance that takes. None is above b, since W can have two values and b as the upper one. Its
divergence is no larger: by Jensen's inequality it is, for each l, at most the mean of log(1 - l share X'), of which
the largest over l is at most D(rho'). This takes that variance / rho^2 does not rise with rho, which holds for all but
the sample variance.

So J(floor) is a lower bound while rho is at least some floor. Every resting arm has a floor of its own, at which about
half of what it is ahead of the least index is left. While the leader, the arm with the largest ratio, keeps its ratio
above all floors and all other ratios, and its own index, scale log n, is below all bounds, it is pulled. Else arms
whose bound is reached or whose floor is undercut are evaluated, until there are none. A tree finds them.

Blocks. The leader's ratio never falls, within a block, below its reward so far over its cost afterwards. If that is
above all floors, and n after the block not too large, the block is pulled at once.
"""

from math import exp, inf, log, sqrt
from typing import NamedTuple

import numpy as np

from ..engine.driver import FAR, NEAR_CEILING, PAUSE, Money, if_counted, inlined, jit, loop, step
from ..engine.numerics import SLACK
from ..engine.run import Run
from ..engine.state import new_record
from ..engine.trees import LEAF, block, is_counted, read_on, settle, skip, total
from ..policies.base import Problem
from ..policies.imed import IMED, MomentIMED, Told, Tuning, index
from . import kernel
from .indices import all_affordable_below
from .search import holder

ULP = 1e-15         # relative error of what a divergence is taken of; that of its own is below SLACK
LARGEST = np.finfo(float).max
SHARE = 0.5                 # how much of what an arm is ahead of the least index may be lost before it is evaluated

# The leader; its ratio and its pulls while nothing need be evaluated; the first arm that is not in the tree; how many
# arms were pulled.
RACE = np.dtype([("leader", "i8"), ("level", "f8"), ("reach", "i8"), ("aside", "i8"), ("pulled", "i8")])
# The least bound of an arm's index, the highest floor, the largest ratio; of an arm that is absent the next such arm.
NODE = np.dtype([("low", "f8"), ("floor", "f8"), ("ratio", "f8")])
ASIDE = np.dtype([("value", "f8"), ("after", "i8")])


class Bounds(NamedTuple):
    """What the kernel works on: what the policy knows, the race, the tree, and the arms beside it."""
    told: Told
    p: Tuning
    race: np.record
    tree: np.ndarray
    aside: np.ndarray
    queue: np.ndarray           # the arms in the order of their first pulls
    products: np.ndarray        # of no use without a sample variance


@step
def ratio_of(k, arms):
    """Reward per cost, infinite without a cost."""
    return arms.reward[k] / arms.cost[k] if arms.cost[k] > 0.0 else inf


@inlined
def put(tree, k, low, floor, ratio):
    """Give arm k its bound, floor and ratio."""
    one, i = np.uint64(1), np.uint64(tree.size // 2 + k)
    tree[i].low, tree[i].floor, tree[i].ratio = low, floor, ratio
    while i > one:
        other = tree[i ^ one]
        low, floor, ratio = min(low, other.low), max(floor, other.floor), max(ratio, other.ratio)
        i = i >> one
        tree[i].low, tree[i].floor, tree[i].ratio = low, floor, ratio


@inlined
def take(k, own):
    """Take arm k out of the tree."""
    put(own.tree, k, inf, -inf, -inf)
    own.aside[k].after, own.race.aside = own.race.aside, k


@jit
def bound(k, floor, own, arms):
    """A lower bound of arm k's index while rho is at least `floor`."""
    least, value = own.p.scale * log(arms.n[k]), index(k, floor, arms, own.told.known, own.p, own.products)
    paid = floor * arms.cost[k]
    if value in (inf, least) or not paid > arms.reward[k]:
        return value if value == inf else least
    return max(value - (value - least) * (SLACK + ULP * paid / (paid - arms.reward[k])), least)


@jit
def renew(k, rho, best, own, arms):
    """Put arm k back into the tree, with a bound above the least index if there is room."""
    value, least, ratio = own.aside[k].value, own.p.scale * log(arms.n[k]), ratio_of(k, arms)
    if least > best:
        put(own.tree, k, least, -inf, ratio)
        return
    # Beyond its own ratio D rises as a square, or less fast.
    lost = 1.0 if value == inf else (value - best) / (value - least) if value > best else 0.0
    floor, low = rho, -inf
    for _ in range(4):
        floor = min(ratio + sqrt(max(1.0 - SHARE * lost, 0.0)) * (rho - ratio), rho)
        low = bound(k, floor, own, arms)
        if low > best or lost == 0.0:
            break
        lost *= 0.25
    put(own.tree, k, low, floor, ratio)


@jit
def lead(own, arms):
    """The arm with the largest ratio, the lowest position of several; it is taken out of the tree."""
    tree, leader, rho, k = own.tree, -1, -inf, own.race.aside
    while k >= 0:
        ratio = ratio_of(k, arms)
        if ratio > rho or (ratio == rho and k < leader):
            leader, rho = k, ratio
        k = own.aside[k].after
    if tree[1].ratio >= rho and tree[1].ratio > -inf:
        k = holder(tree.ratio)
        if tree[1].ratio > rho or k < leader:
            leader, rho = k, tree[1].ratio
            take(k, own)
    return leader, rho


@jit
def search(own, arms):
    """The arm to pull: the first one without a cost, else that with the least index, ties to the lowest position."""
    told, p, race, tree, aside, queue, products = own
    leader, rho = lead(own, arms)
    wish = -inf                     # below this ratio the next arm is pulled for the first time
    if race.pulled < queue.size:
        first = queue[race.pulled]
        if not told.known or max(rho, 0.0) * told.price[first] < p.max_reward:
            aside[first].after, race.aside = race.aside, first
            race.pulled, race.reach = race.pulled + 1, -1
            return first
        wish = p.max_reward / told.price[first] * (1.0 + ULP)
    arm, best, k = leader, inf, race.aside
    while k >= 0 and rho < inf:
        aside[k].value = value = index(k, rho, arms, told.known, p, products)
        if value < best or (value == best and k < arm):
            arm, best = k, value
        k = aside[k].after
    while rho < inf and (tree[1].low <= best or tree[1].floor > rho):
        k = holder(tree.low)
        if tree[1].low > best or (tree[1].low == best and k > arm):
            if tree[1].floor <= rho:
                break
            k = holder(tree.floor)
        take(k, own)
        aside[k].value = value = index(k, rho, arms, told.known, p, products)
        if value < best or (value == best and k < arm):
            arm, best = k, value
    k, race.aside = race.aside, -1
    while k >= 0:
        after = aside[k].after
        if k in (leader, arm):
            aside[k].after, race.aside = race.aside, k
        elif rho < inf:
            renew(k, rho, best, own, arms)
        else:
            put(tree, k, -inf, -inf, ratio_of(k, arms))
        k = after
    race.leader, race.level, race.reach = leader, max(tree[1].floor, tree[1].ratio, wish), -1
    if arm == leader and rho == inf:
        race.level, race.reach = inf, FAR
    elif arm == leader:
        power = tree[1].low / p.scale           # the most pulls whose logarithm is below this
        race.reach = np.int64(exp(power) * (1.0 - SLACK)) if power < 42.0 else np.int64(FAR)
    return arm


@jit
def leap(arm, m, money, own, arms, outcomes):
    """Pull the leader's next block, of up to m outcomes, if its ratio surely stays above all floors."""
    level, r, c = own.race.level * (1.0 + ULP), arms.reward[arm], arms.cost[arm]
    m = np.int64(min(float(m), (r / level - c) * arms.n[arm] / c)) if level > 0.0 else m
    while m >= LEAF:
        m = block(arm, arms.n[arm], m, outcomes)
        cost = total(arm, 1, outcomes)
        if money.spent + cost < money.due and r >= level * (c + cost):
            reward = total(arm, 0, outcomes)
            skip(arm, arms, outcomes)
            return Money(money.spent + cost, money.collected + reward, money.due)
        m >>= 1
    return money


@jit
def pull_on(arm, m, money, own, arms, outcomes):
    """Pull an arm up to m times, as far as its leaf reaches, while its ratio stays above all floors."""
    (spent, collected, due), pool, i = money, outcomes.pool, arms.n[arm]
    level = min(own.race.level * (1.0 + ULP), LARGEST)         # 0 times infinity is no number
    r, c, rr, cc, row = arms.reward[arm], arms.cost[arm], arms.reward_sq[arm], arms.cost_sq[arm], outcomes.at[arm] + i
    done = 0
    for j in range(row, row + min(m, outcomes.filled[arm] - i)):
        x, y = pool[j, 0], pool[j, 1]
        r, c, rr, cc = r + x, c + y, rr + x * x, cc + y * y
        spent, collected, done = spent + y, collected + x, done + 1
        if not (r >= level * c and spent < due):
            break
    arms.reward[arm], arms.cost[arm], arms.reward_sq[arm], arms.cost_sq[arm] = r, c, rr, cc
    arms.n[arm] = i + done
    return Money(spent, collected, due)


@step
def choose(t, money, own, arms, limits, rng):
    """The leader, for as many rounds as may be, while nothing need be evaluated."""
    race, arm, m = own.race, PAUSE, 1
    if money.spent < limits.pause:
        arm = race.leader
        if not (arms.n[arm] <= race.reach and ratio_of(arm, arms) >= race.level):
            arm = search(own, arms)
        if arm == race.leader:
            m = max(min(race.reach - arms.n[arm] + 1, limits.last_round - t), 1)
    return arm, m


@step
def advance(arm, m, t, money, own, arms, outcomes, rng):
    """Pull the arm by a block, else as far as its leaf reaches."""
    i, filled = arms.n[arm], outcomes.filled
    if i == filled[arm]:
        if m >= LEAF and own.race.level < inf and is_counted(arm, outcomes):
            money = leap(arm, m, money, own, arms, outcomes)
        if arms.n[arm] == i:
            read_on(arm, arms, outcomes)
    if arms.n[arm] == i:
        money = pull_on(arm, m, money, own, arms, outcomes)
        if arms.n[arm] == filled[arm]:
            settle(arm, arms, outcomes)
    return money, arms.n[arm] - i


by_floors = loop(choose, advance, goes_on=if_counted)


def new_bounds(told: Told, p: Tuning, K: int) -> Bounds:
    """What the kernel begins with: an empty tree.

    >>> new_bounds(Told(True, np.array([3.0, 1.0, 2.0]), inf), cb.IMED().p, 3).queue
    array([1, 2, 0])
    """
    race, tree, aside = new_record(RACE), np.zeros(2 << (K - 1).bit_length(), NODE), np.zeros(K, ASIDE)
    race.leader = race.reach = race.aside = -1
    tree["low"], tree["floor"], tree["ratio"] = inf, -inf, -inf
    return Bounds(told, p, race, tree.view(np.recarray), aside.view(np.recarray),
                  np.argsort(told.price, kind="stable"), np.zeros(1))


@kernel(IMED)
@kernel(MomentIMED, when=lambda policy: policy.dependence != "sample")
def play(policy: IMED | MomentIMED, run: Run, problem: Problem, rng: np.random.Generator) -> int:
    """By floors while every arm is affordable, then by definition."""
    own = new_bounds(policy.told(problem), policy.p, problem.K)
    status = run.play(by_floors, own, None, pause=all_affordable_below(run.limits))
    return policy.play(run, problem, rng) if status == NEAR_CEILING else status
