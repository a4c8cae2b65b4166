"""Cost subsidy, two policies of our own: one keeps a promise that CS-UCB breaks, one looks where it pays.

The bounds of `CSElimination` are `theory.bounds.cost_subsidy.theorem_4_repaired` and `theorem_4_margins`; of `CSVOI`
nothing is proved.
"""

from dataclasses import dataclass
from math import ceil, erfc, exp, inf, log, pi, sqrt
from typing import NamedTuple

import numba as nb
import numpy as np

from ..checks import ROUNDING, positive, share
from .base import Problem, checked, rule
from .cost_subsidy import ACTIVE, BEATEN, Notes, _Subsidy, cheapest, next_of, reward_bounds

# ---- exploring with elimination ---------------------------------------------------------------------

LATER = 8       # after so many pulls of an arm the next look comes with one more, after twice as many with two more
# The arm that is pulled until some round without a look; the sweep after which the next look is due, 0 once the policy
# has ceased to explore.
LOOK = np.dtype([("arm", "i8"), ("until", "i8"), ("sweep", "i8")])


def sweeps(horizon: int, K: int, price: float) -> int:
    """How often all arms may be explored: (2 T sqrt(2 log T) / (K C))^(2/3), rounded up, and never more than T.

    There K C tau + 4 T sqrt(2 log T / tau) is smallest: what tau sweeps may cost, and what may be lost after them. C,
    the price, is by how much the cost of a pull can exceed that of the optimal arm.

    >>> sweeps(10_000, 2, 1.0), sweeps(100, 2, 0.0)
    (1226, 100)
    """
    if price == 0.0:
        return horizon
    return max(ceil(min((2.0 * horizon * sqrt(2.0 * log(horizon)) / (K * price)) ** (2 / 3), horizon)), 1)


@nb.njit(error_model="numpy")
def look_at(arms, told, notes):
    """New bounds of the active arms. Arms are dropped that are surely not good enough, or surely worse and no cheaper.

    The arm to pull for good, if one of the cheapest that are left is surely good enough; else -1.
    """
    part, upper, lower, price = 1.0 - told.alpha, notes.upper, notes.lower, notes.price
    for k in range(arms.n.size):
        if notes.standing[k] == ACTIVE:
            upper[k], lower[k] = reward_bounds(k, arms, told.width)
    top = lower.max()
    for k in range(arms.n.size):
        if upper[k] < part * top * (1.0 - ROUNDING) or lower[price <= price[k]].max() > upper[k]:
            notes.standing[k] = BEATEN
    out = notes.standing != ACTIVE
    upper[out], lower[out] = -inf, -inf
    arm = np.argmax(np.where(price == np.where(out, inf, price).min(), lower, -inf))
    return arm if lower[arm] >= part * max(upper.max(), 0.0) * (1.0 - ROUNDING) else -1


@nb.njit(inline="always", error_model="numpy")
def next_spell(arms, told, notes):
    """The next arm, and how often it is pulled before the next look."""
    look = notes.spell
    while look.sweep > 0:
        arm = next_of(ACTIVE, look.sweep, arms, notes)
        if arm >= 0:
            return arm, look.sweep - arms.n[arm]
        arm = look_at(arms, told, notes)
        if arm >= 0:
            return arm, told.horizon
        later = min(look.sweep + max(1, look.sweep // LATER), told.sweeps)
        look.sweep = later if later > look.sweep else 0
    if look.arm >= 0 and notes.standing[look.arm] == ACTIVE:
        notes.upper[look.arm], notes.lower[look.arm] = reward_bounds(look.arm, arms, told.width)
    arm = cheapest(told.alpha, notes.lower, notes.upper, notes.price)
    return arm, max(1, arms.n[arm] // LATER)


@rule
def elimination(t, spent, arms, told, p, memory, rng):
    """Arms are pulled for spells; between them what is known is looked at, as in `CSElimination`."""
    look = memory.spell
    if t > look.until:
        look.arm, pulls = next_spell(arms, told, memory)
        look.until = t - 1 + pulls
    return look.arm


@dataclass(frozen=True)
class CSElimination(_Subsidy):
    """Explores with elimination, then buys cheap: keeps what Theorem 4 promises as far as any policy can; ours.

    The active arms are pulled equally often. At looks, after 1, 2, ... sweeps and later whenever the number of sweeps
    has grown by an eighth, an arm with bounds mean +- beta within [0, 1], beta = sqrt(2 log T / n), is dropped if its
    upper bound is below 1 - alpha times the largest lower bound, or below the lower bound of an arm that costs no more.
    If a cheapest active arm's lower bound is at least 1 - alpha times the largest upper bound, it is pulled to the end.
    After tau sweeps (`sweeps`) the cheapest active arm whose upper bound is at least 1 - alpha times the largest lower
    bound is pulled, until its pulls have grown by an eighth, and so on. Between two looks an arm's pulls are made at a
    stretch, so that a run may have 1e12 rounds.

    alpha is the subsidy factor, in [0, 1). If delta, above 0, is given, costs of two arms differ by at most delta times
    as much as their mean rewards: then C = min(delta alpha, c_max - c_min) stands in tau, else C = c_max - c_min.

    >>> two = cb.Bandit([cb.Bernoulli(0.7), cb.Bernoulli(0.5)], [cb.Constant(0.0), cb.Constant(1.0)])
    >>> cb.simulate({"e": cb.CSElimination(0.1)}, two, cb.Horizon(10**9)).pulls[0, 0, -1]
    array([999996193,      3807])
    """
    alpha: float = checked(share)
    delta: float = checked(lambda name, value: value == inf or positive(name, value), inf)
    rule = staticmethod(elimination)
    spell = LOOK

    def tau(self, problem: Problem) -> int:
        price = float(problem.cost_means.max() - problem.cost_means.min())
        return sweeps(problem.horizon, problem.K, price if self.delta == inf else min(price, self.delta * self.alpha))

    def remember(self, problem: Problem) -> Notes:
        notes = super().remember(problem)
        notes.spell.arm, notes.spell.sweep = -1, 1
        return notes


# ---- the value of one more look ----------------------------------------------------------------------

# What the rule keeps of the arms, one row each: posterior mean and variance of the reward; the expected loss of a pull;
# by how many standard deviations the arm falls short of the worst bar, and this deviation.
MEAN, VARIANCE, LOSS, SHORT, SPREAD, ROWS = range(6)


@nb.njit(error_model="numpy")
def density(z):
    """Of the standard normal law."""
    return exp(-0.5 * z * z) / sqrt(2.0 * pi)


@nb.njit(error_model="numpy")
def below(z):
    """Probability that a standard normal number is below z."""
    return 0.5 * erfc(-z / sqrt(2.0))


@nb.njit(error_model="numpy")
def gap(i, j, keep, belief):
    """How far arm i falls short of the bar that arm j sets, in standard deviations, and this deviation."""
    spread = sqrt(belief[VARIANCE, i] + keep * keep * belief[VARIANCE, j])
    return (keep * belief[MEAN, j] - belief[MEAN, i]) / spread, spread


@nb.njit(error_model="numpy")
def believe(n, reward, costs, order, keep, belief):
    """Posteriors, and the expected loss of a pull of each arm: quality that is lacking, and price above the optimum."""
    K = n.size
    belief[MEAN] = (reward + 1.0) / (n + 2.0)
    belief[VARIANCE] = belief[MEAN] * (1.0 - belief[MEAN]) / (n + 3.0)
    for i in range(K):
        belief[LOSS, i], belief[SHORT, i], belief[SPREAD, i] = 0.0, -inf, 1.0
        for j in range(K):
            if j != i:
                z, spread = gap(i, j, keep, belief)
                belief[LOSS, i] = max(belief[LOSS, i], spread * (density(z) + z * below(z)))
                if z > belief[SHORT, i]:
                    belief[SHORT, i], belief[SPREAD, i] = z, spread
    for i in range(K):
        none = 1.0                                      # probability that no cheaper arm so far is good enough
        for place in range(K):
            k = int(order[place])
            if costs[k] >= costs[i]:
                break
            good = below(-belief[SHORT, k])
            belief[LOSS, i] += (costs[i] - costs[k]) * none * good
            none *= 1.0 - good


@nb.njit(error_model="numpy")
def worth(arm, default, n, costs, keep, belief):
    """What one more pull of an arm, which sharpens its posterior, takes off the loss of a pull of the default."""
    sharper = belief[VARIANCE, arm] / (n[arm] + 3.0)
    z, spread = gap(default, arm, keep, belief)
    gain = density(z) * keep * keep * sharper / (2.0 * spread)              # as the bar of the default
    z, spread = belief[SHORT, arm], belief[SPREAD, arm]
    if costs[arm] < costs[default] and z > 0.0:                             # as a cheaper arm that may be good enough
        gain += (costs[default] - costs[arm]) * density(z) * z / spread * sharper / (2.0 * spread)
    return gain


class Alpha(NamedTuple):
    """The subsidy factor."""
    alpha: float


@rule
def value_of_a_look(t, spent, arms, told, p: Alpha, memory, rng):
    """The rule of `CSVOI`; `told` holds the costs, the arms in order of cost and the horizon."""
    K, n, keep = arms.n.size, arms.n, 1.0 - p.alpha
    if t <= K:
        return t - 1
    costs, order, left = told[:K], told[K:2 * K], told[2 * K] - t + 1.0
    belief = memory.reshape((ROWS, K))
    believe(n, arms.reward, costs, order, keep, belief)
    default = 0
    for k in range(1, K):
        if belief[LOSS, k] < belief[LOSS, default]:
            default = k
    arm, most = default, 0.0
    for k in range(K):
        if k != default:
            value = left * worth(k, default, n, costs, keep, belief) - (belief[LOSS, k] - belief[LOSS, default])
            if value > most:
                arm, most = k, value
    return arm


@dataclass(frozen=True)
class CSVOI(_Subsidy):
    """CS-VOI, the value of one more look, for a cheap arm just good enough or just not; ours, without a theorem.

    Each arm once. Then the default is the arm whose pull is expected to lose least, quality and cost together, with
    Beta(1, 1) posteriors, their differences taken as normal. Another arm is pulled instead if the rounds left, times
    what one more look at it takes off the default's expected loss, exceed what its pull loses more; the arm for which
    the difference is largest. It weighs a unit of quality like a unit of cost, and has no parameter but `alpha`, the
    subsidy factor, in [0, 1): good enough is 1 - alpha times the best.

    A choice takes K^2 steps, and rounds cannot be skipped: each pull moves all losses, each round the value of a look,
    and no bound of these is known that would hold for a block of pulls.

    >>> cb.CSVOI(0.1)
    CSVOI(alpha=0.1)
    """
    alpha: float = checked(share)
    rule = staticmethod(value_of_a_look)

    @property
    def p(self) -> Alpha:
        return Alpha(float(self.alpha))

    def told(self, problem: Problem) -> np.ndarray:
        costs = problem.cost_means
        return np.concatenate([costs, np.argsort(costs, kind="stable"), [problem.horizon]])

    def remember(self, problem: Problem) -> np.ndarray:
        return np.zeros(ROWS * problem.K)
