"""eps_n-greedy and b-greedy: the rounds that explore found by thinning, the greedy arm pulled many times at once.

Until the next round that explores (`engine.thinning`) only the greedy arm's own value moves, and the arm is pulled many
times at once where its value is sure to stay above the others'.
"""

from math import inf
from typing import NamedTuple

import numpy as np

from ..engine.driver import MANY, Money, if_counted, jit, loop, pull_many, pull_once, step
from ..engine.numerics import SLACK, with_slack
from ..engine.run import Run
from ..engine.state import new_record
from ..engine.thinning import CLOCK, look_ahead
from ..policies.base import Problem
from ..policies.classics import BGreedy, EpsilonGreedy
from . import kernel

# The greedy arm, -1 if it must be found anew; the largest of the others' values, and whose; what may be spent before
# the greedy arm has to be looked at again.
GREEDY = np.dtype([("leader", "i8"), ("rival", "i8"), ("most", "f8"), ("cap", "f8")])


class Exploring(NamedTuple):
    """How often to explore, whether rewards are divided by costs, what they are at least, and when to explore next."""
    often: float            # times 1 / t
    by_cost: bool           # else by the number of pulls
    least: np.ndarray       # (K,)    for each unit of what rewards are divided by; -inf if not known
    clock: np.record
    local: np.record


@step
def value_of(k, by_cost, arms):
    """What the policy compares, a mean reward or a ratio, infinite without a cost; and what rewards are divided by."""
    base = arms.cost[k] if by_cost else float(arms.n[k])
    return arms.reward[k] / base if base > 0.0 else inf, base


@jit
def room(reward, base, most, least):
    """By how much an arm's `base` may grow, while reward / base is sure to stay above `most`.

    Each unit of it brings `least` or more: after m units the ratio exceeds that by (reward - base least) / (base + m).
    """
    if least == -inf or most == inf:
        return 0.0
    above, gain = with_slack(most) - least + SLACK * abs(least), reward - base * least
    if above <= 0.0:
        return inf if above < gain else 0.0
    return gain / above - base


@jit
def best_two(by_cost, arms):
    """The arm of the largest value, the largest of the others', and whose; ties to the lowest position."""
    arm, rival, best, most = 0, 0, -inf, -inf
    for k in range(arms.n.size):
        mine, _ = value_of(k, by_cost, arms)
        if k == 0 or mine > best:
            arm, rival, best, most = k, arm, mine, best
        elif k == 1 or mine > most:
            rival, most = k, mine
    return arm, most, rival


@step
def choose(t, money, own, arms, limits, rng):
    """Each arm once, then a random one with probability min(1, often / t), else the one with the largest value."""
    K, by_cost, clock, local, arm, m = arms.n.size, own.by_cost, own.clock, own.local, t, 1
    local.cap = inf
    if t >= K:
        if t >= clock.until:
            look_ahead(clock, rng, t, t, own.often / (t + 1))
        if t == clock.candidate and rng.random() * clock.rate < own.often / (t + 1):
            arm, local.leader = int(rng.random() * K), -1
        else:
            arm = local.leader
            best, _ = value_of(max(arm, 0), by_cost, arms)
            if arm < 0 or not (best > local.most or (best == local.most and arm < local.rival)):
                arm, local.most, local.rival = best_two(by_cost, arms)
                local.leader = arm
            m = min(clock.candidate, limits.last_round) - t
            _, base = value_of(arm, by_cost, arms)
            more = room(arms.reward[arm], base, local.most, own.least[arm])
            if by_cost:
                local.cap = more
            elif more < m:
                m = int(more)
    return arm, m


@step
def pull_while_ahead(arm, m, t, money, own, arms, outcomes, rng):
    """Pull the arm once, or up to m times while the others cannot pass it."""
    (spent, collected, due), cap, i = money, own.local.cap, arms.n[arm]
    if m >= MANY and cap > 0.0:
        paid, gained, _ = pull_many(arm, m, Money(0.0, 0.0, min(due - spent, cap)), arms, outcomes)
    else:
        gained, paid = pull_once(arm, arms, outcomes)
    return Money(spent + paid, collected + gained, due), arms.n[arm] - i


by_exploring = loop(choose, pull_while_ahead, goes_on=if_counted)


@kernel(BGreedy, same="law")
@kernel(EpsilonGreedy, same="law")
def play(policy: BGreedy | EpsilonGreedy, run: Run, problem: Problem, rng: np.random.Generator) -> int:
    """b-greedy explores K / t of its rounds, eps_n-greedy c K / (d^2 t); no bound is of use where spending can fall."""
    by_cost, local = isinstance(policy, BGreedy), new_record(GREEDY)
    local.leader = -1
    often = float(problem.K) if by_cost else policy.c * problem.K / (policy.d * policy.d)
    least = [-inf if cost.support[0] < 0 or (by_cost and reward.support[0] < 0) else 0.0 if by_cost
             else reward.support[0] for reward, cost in run.stacks.laws]
    return run.play(by_exploring, Exploring(often, by_cost, np.array(least, float), new_record(CLOCK), local), rng)
