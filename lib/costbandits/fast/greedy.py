"""eps_n-greedy and b-greedy: the rounds that explore found by thinning, the greedy arm pulled many times at once.

The next round that explores is known at once (`engine.thinning`). Until then only the greedy arm's own value moves, and
it is pulled many times at once where that is sure to stay above the others'.
"""

import functools
from collections.abc import Callable
from math import inf
from typing import NamedTuple

import numba as nb
import numpy as np

from ..engine.driver import MANY, Money, if_counted, loop, pull_many, pull_once, step
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
    """The probability of exploring, times t; the smallest outcome of each position; when to explore next."""

    often: float
    least: np.ndarray
    clock: np.record
    local: np.record


@nb.njit(error_model="numpy")
def mean_reward(n, reward, cost):
    """What eps_n-greedy compares."""
    return reward / n


@nb.njit(error_model="numpy")
def room_of_mean(n, reward, cost, most, least):
    """For how many pulls, and how much spending, an arm's mean reward is sure to stay above `most`.

    No reward is below `least`: after m pulls the mean exceeds it by the (reward - n least) / (n + m) of now, or more.
    """
    if least == -inf:
        return 0.0, inf
    above, gain = with_slack(most) - least + SLACK * abs(least), reward - n * least
    if above <= 0.0:
        return (inf if above < gain else 0.0), inf
    return gain / above - n, inf


@nb.njit(error_model="numpy")
def ratio(n, reward, cost):
    """What b-greedy compares."""
    return reward / cost if cost > 0.0 else inf


@nb.njit(error_model="numpy")
def room_of_ratio(n, reward, cost, most, least):
    """For how many pulls, and how much spending, an arm's ratio is sure to stay above `most`.

    Until its costs reach reward / most, if nothing is negative: `least` is the smallest outcome.
    """
    if least < 0.0 or most == inf:
        return 0.0, inf
    above = with_slack(most)
    if above <= 0.0:
        return (inf if above < reward else 0.0), inf
    return inf, reward / above - cost


@nb.njit(error_model="numpy")
def best_two(value, arms):
    """The arm of the largest value, the largest of the others', and whose; ties to the lowest position."""
    arm, rival, best, most = 0, 0, -inf, -inf
    for k in range(arms.n.size):
        mine = value(arms.n[k], arms.reward[k], arms.cost[k])
        if k == 0 or mine > best:
            arm, rival, best, most = k, arm, mine, best
        elif k == 1 or mine > most:
            rival, most = k, mine
    return arm, most, rival


@functools.cache
def by_exploring(value: Callable, room: Callable) -> Callable:
    """The loop for policies that compare the arms by `value`, which stays above the others' for as long as `room` says.

    Each arm once, then a random one with probability min(1, often / t), else the one with the largest value.
    """
    @step
    def choose(t, money, own, arms, limits, rng):
        K, clock, local, arm, m = arms.n.size, own.clock, own.local, t, 1
        local.cap = inf
        if t >= K:
            if t >= clock.until:
                look_ahead(clock, rng, t, t, own.often / (t + 1))
            if t == clock.candidate and rng.random() * clock.rate < own.often / (t + 1):
                arm, local.leader = int(rng.random() * K), -1
            else:
                arm = local.leader
                best = value(arms.n[arm], arms.reward[arm], arms.cost[arm]) if arm >= 0 else -inf
                if arm < 0 or not (best > local.most or (best == local.most and arm < local.rival)):
                    arm, local.most, local.rival = best_two(value, arms)
                    local.leader = arm
                pulls, local.cap = room(arms.n[arm], arms.reward[arm], arms.cost[arm], local.most, own.least[arm])
                m = min(clock.candidate, limits.last_round) - t
                m = m if pulls >= m else int(pulls)
        return arm, m

    return loop(choose, pull_while_ahead, goes_on=if_counted)


@step
def pull_while_ahead(arm, m, t, money, own, arms, outcomes, rng):
    """Pull the arm once, or up to m times while the others cannot pass it."""
    (spent, collected, due), cap, i = money, own.local.cap, arms.n[arm]
    if m >= MANY and cap > 0.0:
        paid, gained, _ = pull_many(arm, m, Money(0.0, 0.0, min(due - spent, cap)), arms, outcomes)
    else:
        gained, paid = pull_once(arm, arms, outcomes)
    return Money(spent + paid, collected + gained, due), arms.n[arm] - i


def _explore(loop: Callable, often: float, least: list, run: Run, rng: np.random.Generator) -> int:
    """Play a greedy policy."""
    local = new_record(GREEDY)
    local.leader = -1
    return run.play(loop, Exploring(often, np.array(least, float), new_record(CLOCK), local), rng)


@kernel(BGreedy, same="law")
def b_greedy(policy: BGreedy, run: Run, problem: Problem, rng: np.random.Generator) -> int:
    """b-greedy explores K/t of its rounds."""
    least = [min(law.support[0] for law in pair) for pair in run.stacks.laws]
    return _explore(by_exploring(ratio, room_of_ratio), float(problem.K), least, run, rng)


@kernel(EpsilonGreedy, same="law")
def epsilon_greedy(policy: EpsilonGreedy, run: Run, problem: Problem, rng: np.random.Generator) -> int:
    """eps_n-greedy explores c K / (d^2 t) of its rounds; of no use is a bound where spending can fall."""
    least = [reward.support[0] if cost.support[0] >= 0 else -inf for reward, cost in run.stacks.laws]
    often = policy.c * problem.K / (policy.d * policy.d)
    return _explore(by_exploring(mean_reward, room_of_mean), often, least, run, rng)
