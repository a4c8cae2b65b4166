"""SUAK and its rivals: never more than c per round on average, and rounds that may be skipped.

Elumar, Tekin and Yagan, "Bandits with Anytime Knapsacks". A round costs nothing if no arm is pulled. Two ways to that:
a *skip*, because a pull might break the constraint, and a *pass*, because the mixture of arms that is played has a
share for the null arm, which costs 0 and pays 0.

The best mixture is a linear program with two rows, so two arms are enough (a base): the ends of the edge of the upper
hull of the points (cost, reward), null arm included, that crosses the line cost = c. `bridge` finds it.
"""

import warnings
from dataclasses import dataclass
from math import inf, log, sqrt

import numba as nb
import numpy as np
from numba import types as T

from ..checks import ROUNDING, number, positive, require
from ..engine.loops import IDLE, NO_SUCH_ARM, RUNNING, SKIP, TOO_DEAR, kernel, pull, ready, settle
from ..environments.hull import bridge
from .base import Policy

_floats, _ints, _table = T.float64[::1], T.int64[::1], T.float64[:, ::1]
ROUND = T.int64(T.int64, T.float64, _ints, _table, _floats, _floats, _table, _floats, T.npy_rng)

# What a rule is told of the problem.
RATE, HORIZON = range(2)
# Rows of its `hull`, a column per arm and one for the null arm: bounds on rewards and on costs, and a mark per arm.
UPPER, LOWER, MARK = range(3)


def rule(function):
    """Compile what a policy does in a round: an arm, SKIP, or IDLE for the null arm.

    From (t, spent, n, sums, told, params, hull, kept, rng): t is the coming round, counted from 1, `spent` what was
    spent before it, n and sums the arms' pulls and sums; `hull` and `kept` are the policy's own arrays.
    """
    return nb.njit(cache=True, error_model="numpy")(function)


@kernel(T.FunctionType(ROUND), _floats, _floats, _table, _floats, T.npy_rng)
def by_rounds(rule, told, params, hull, kept, rng, pool, table, filled, shift, n, sums, clock, purse,
              marks, pulls_at, clock_at, purse_at, max_rounds, top, ceiling, rate):
    """Do what `rule` says in every round, and see to it that no pull could break the constraint.

    The step is that of `engine.free_choice`; a function of its own for both costs each of them 40 ns a round.
    """
    K, status = n.size, RUNNING
    t, spent, collected = clock[0], purse[0], purse[1]
    while status == RUNNING:
        going, due, arm = True, marks[clock[2]], 0
        while going:
            chosen = rule(t + 1, spent, n, sums, told, params, hull, kept, rng)
            if chosen < IDLE or chosen >= K:
                clock[0] = t
                return NO_SUCH_ARM
            if chosen < 0:
                t += 1
                clock[1] += chosen == SKIP
                going = t < max_rounds
            elif spent + top[chosen] > ceiling + rate * (t + 1):
                clock[0] = t
                return TOO_DEAR
            else:
                arm = chosen
                going, t, spent, collected = pull(arm, t, spent, collected, due, pool, table, filled, shift, n, sums,
                                                  max_rounds)
        status = settle(arm, t, spent, collected, filled, n, clock, purse, marks, pulls_at, clock_at, purse_at,
                        max_rounds)
    return status


@nb.njit(error_model="numpy")
def worth(mu, rho, rate):
    """The reward of the best mixture; -inf if there is none, for want of the null arm."""
    low, high = bridge(mu, rho, rate)
    if mu[low] == -inf:
        return -inf
    return mu[low] if high < 0 else mu[low] + (rate - rho[low]) * (mu[high] - mu[low]) / (rho[high] - rho[low])


@nb.njit(error_model="numpy")
def bounds(n, sums, width, upper, lower):
    """Upper bounds of rewards and lower bounds of costs, within [0, 1] (Eq. 8, 9); radius sqrt(width / n)."""
    for k in range(n.size):
        radius = sqrt(width / n[k])
        upper[k], lower[k] = min(sums[0, k] / n[k] + radius, 1.0), max(sums[1, k] / n[k] - radius, 0.0)


# ---- SUAK -------------------------------------------------------------------------------------------

# Its parameters, and the numbers that it keeps: S_p and N_p of the paper; the spending before a pull that is to be
# added to S_p, else -1; skips of lines 5 and 16, and of line 18; the round in which phase 2 began; extremes of omega.
UNDER_USE, KNOWS_T, COUNTING, LEAST = range(4)
S_P, N_P, PENDING, SKIPS_P, SKIPS_C, PHASE_2, LEAST_OMEGA, MOST_OMEGA = range(8)
READINGS = ("skips", "coming", "needed", "printed")
SKIPS, COMING, NEEDED, PRINTED = range(4)


@rule
def suak(t, spent, n, sums, told, params, hull, kept, rng):
    c = told[RATE]
    if kept[PENDING] >= 0.0:
        kept[S_P] += spent - kept[PENDING]
        kept[PENDING] = -1.0
    log_t = log(t)
    unsure, delta = -1, inf                                       # an arm with c within its wide interval (4), (5)
    for k in range(n.size):
        radius, gap = inf, 0.0
        if n[k] > 0:
            radius, gap = sqrt(1.5 * log_t / n[k]), abs(sums[1, k] / n[k] - c)
        delta = min(delta, gap - radius)                          # (7)
        if gap <= 7.0 * radius and (unsure < 0 or (params[LEAST] and n[k] < n[unsure])):
            unsure = k
    rounds = kept[N_P] + (params[COUNTING] == COMING)
    if kept[S_P] + 1.0 > c * rounds and (params[COUNTING] != NEEDED or unsure >= 0):
        kept[N_P] += params[COUNTING] != PRINTED                  # departs from the paper: as printed nothing is pulled
        kept[SKIPS_P] += 1.0
        return SKIP
    if spent + 1.0 > c * t:
        kept[SKIPS_C] += 1.0
        return SKIP
    if unsure >= 0:
        kept[N_P] += 1.0
        kept[PENDING] = spent
        hull[MARK, unsure] += 1.0
        return unsure
    if kept[PHASE_2] == 0.0:
        kept[PHASE_2] = t
    omega = delta / (2.0 + delta - c)                             # (6)
    kept[LEAST_OMEGA], kept[MOST_OMEGA] = min(kept[LEAST_OMEGA], omega), max(kept[MOST_OMEGA], omega)
    bounds(n, sums, 3.0 * (log(told[HORIZON]) if params[KNOWS_T] else log_t), hull[UPPER], hull[LOWER])
    k, j = bridge(hull[UPPER], hull[LOWER], c)
    if j >= 0:
        # No arm is unsure, so j costs more than c by its mean, too, and k costs less.
        cost_j, cost_k = sums[1, j] / n[j], sums[1, k] / n[k] if k < n.size else 0.0
        b = c * t - spent - params[UNDER_USE] * log_t / (omega * omega)
        p = min(max((b - cost_k) / (cost_j - cost_k), omega), 1.0 - omega)       # lines 27 to 34
        k = j if rng.random() < p else k
    return k if k < n.size else IDLE


# ---- Its rivals -------------------------------------------------------------------------------------

@nb.njit(error_model="numpy")
def first_pull(t, spent, n, c):
    """An arm that was not pulled yet, SKIP if a pull might cost too much, else IDLE."""
    if spent + 1.0 > c * t:
        return SKIP
    for k in range(n.size):
        if n[k] == 0:
            return k
    return IDLE


@nb.njit(error_model="numpy")
def adaptive(t, spent, told, upper, lower, rng):
    """An arm drawn from the best mixture for what is left per round; the null arm has no share in the draw."""
    rate = (told[RATE] * told[HORIZON] - spent) / (told[HORIZON] - t + 1.0)
    low, high = bridge(upper, lower, rate)
    if low == upper.size - 1:
        return high if high >= 0 else IDLE
    if high < 0:
        return low
    return high if rng.random() < (rate - lower[low]) / (lower[high] - lower[low]) else low


@rule
def one_phase(t, spent, n, sums, told, params, hull, kept, rng):
    arm = first_pull(t, spent, n, told[RATE])
    if arm == IDLE:
        bounds(n, sums, params[0] * log(told[HORIZON] if params[1] else t), hull[UPPER], hull[LOWER])
        if params[2]:
            return adaptive(t, spent, told, hull[UPPER], hull[LOWER], rng)
        arm = 0                                                   # one row, one arm: the best ratio
        for k in range(1, n.size):
            if hull[UPPER, k] * hull[LOWER, arm] > hull[UPPER, arm] * hull[LOWER, k]:
                arm = k
    return arm


@rule
def primal_dual(t, spent, n, sums, told, params, hull, kept, rng):
    c, T_, K, member = told[RATE], told[HORIZON], n.size, hull[MARK]
    if spent + 1.0 > c * t:
        return SKIP
    upper, lower = hull[UPPER], hull[LOWER]
    if member.sum() < 2.0:
        for k in range(1, K):                                     # the sweep under way
            if n[k] < n[k - 1]:
                return k
        if n[0] == 0:
            return 0
        width = 2.0 * log(T_) / n[0]
        for k in range(K):                                        # pessimistic, for a moment
            upper[k] = max(sums[0, k] / n[k] - sqrt(width), 0.0)
            lower[k] = min(sums[1, k] / n[k] + sqrt(width), 1.0)
        sure = worth(upper, lower, c)
        bounds(n, sums, 2.0 * log(T_), upper, lower)
        for k in range(K + 1):
            reward, upper[k] = upper[k], -inf
            if worth(upper, lower, c) < sure:
                member[k] = 1.0
            upper[k] = reward
        if member.sum() < 2.0:
            return 0
    bounds(n, sums, 2.0 * log(T_), upper, lower)
    for k in range(K):
        if member[k] == 0.0:
            upper[k] = -inf
    return adaptive(t, spent, told, upper, lower, rng)


@rule
def ucb_simplex(t, spent, n, sums, told, params, hull, kept, rng):
    c, K, upper, cost = told[RATE], n.size, hull[UPPER], hull[LOWER]
    last = int(kept[0]) - 1                                    # the pair that was played last
    if last >= 0:
        kept[2 + 2 * last] += spent - kept[1]
        kept[0] = 0.0
    arm = first_pull(t, spent, n, c)
    if arm == IDLE:
        for k in range(K):
            upper[k] = sums[0, k] / n[k] + params[0] * sqrt(2.0 * log(t) / n[k])
            cost[k] = sums[1, k] / n[k]
        arm, high = bridge(upper, cost, c)
        if high >= 0:
            pair = arm * K + high
            arm = high if kept[2 + 2 * pair] <= c * kept[3 + 2 * pair] else arm
            kept[3 + 2 * pair] += 1.0
            kept[0], kept[1] = pair + 1.0, spent
    return arm if arm < K else IDLE


@rule
def knowing(t, spent, n, sums, told, params, hull, kept, rng):
    c, K = told[RATE], n.size
    if spent + 1.0 > c * t:
        return SKIP
    low, high = bridge(hull[UPPER], hull[LOWER], c)
    if high >= 0:
        share = (c - hull[LOWER, low]) / (hull[LOWER, high] - hull[LOWER, low])
        rich = spent + params[0] <= c * t if params[0] > 0.0 else rng.random() < share
        low = high if rich else low
    return low if low < K else IDLE


class _Anytime(Policy):
    """A policy of rounds under an anytime budget."""

    skips = True
    support = (0.0, 1.0)
    loop = staticmethod(by_rounds)

    def check(self, problem):
        require(problem.rate is not None, "stop", "no anytime budget",
                f"{type(self).__name__} needs AnytimeBudget(rate, horizon)")

    def play(self, run, problem, rng):
        told, hull = np.array([problem.rate, problem.horizon], float), np.zeros((3, problem.K + 1))
        kept = self.start(problem, hull)
        run.notes = hull, kept                                    # for those who watch a run
        return run.play(self.loop, ready(self.rule, ROUND), told, self.parameters, hull, kept, rng)

    def start(self, problem, hull):
        """The numbers that the rule keeps, before the first round; `hull` is all zeros."""
        return np.zeros(0)

    def identity(self):
        return (type(self).__name__, self.rule, self.loop, tuple(self.parameters), self.start)


@dataclass(frozen=True)
class SUAK(_Anytime):
    """SUAK (Algorithm 2): every arm until its cost is known to be above or below c, then the optimistic base.

    As printed it never pulls an arm: N_p must also count the rounds skipped at lines 5 and 16. The least pulled of the
    unsure arms is pulled. An arm that costs exactly c stays unsure for good; that is warned of.

    Parameters
    ----------
    under_use : float
        Multiplies log t / omega^2, the part of the budget that is held back.
    log : {"t", "T"}
        What stands in the radii of the bounds (8), (9): SUAK is not to know T, but there the paper prints log T.
    counting : {"skips", "coming", "needed", "printed"}
        What N_p counts besides the pulls of unsure arms: skips at lines 5 and 16; also the coming round; as "skips",
        but line 15 is asked only while an arm is unsure; nothing, as printed.
    order : {"least", "first"}
        Which unsure arm is pulled: the least pulled, or the first.
    """

    under_use: float = 1.0
    log: str = "t"
    counting: str = "skips"
    order: str = "least"
    rule = staticmethod(suak)

    def __post_init__(self):
        number("under_use", self.under_use, low=0.0, allowed="must be a number, 0 or more")
        for name, allowed in (("log", ("t", "T")), ("counting", READINGS), ("order", ("least", "first"))):
            require(getattr(self, name) in allowed, name, getattr(self, name), f"must be one of {allowed}")

    @property
    def parameters(self):
        return np.array([self.under_use, self.log == "T", READINGS.index(self.counting), self.order == "least"], float)

    def rehearse(self, name, problem):
        super().rehearse(name, problem)
        if np.isclose(problem.cost_means, problem.rate, rtol=ROUNDING, atol=0).any():
            warnings.warn(f"an arm costs c = {problem.rate} in expectation: SUAK can never tell on which side it is",
                          stacklevel=2)

    def start(self, problem, hull):
        kept = np.zeros(8)
        kept[PENDING], kept[LEAST_OMEGA] = -1.0, inf
        return kept


@dataclass(frozen=True)
class OnePhaseSkip(_Anytime):
    """The One Phase algorithm of Li, Sun and Ye with skips (Algorithm 1, "OPS").

    In every round in which no pull can break the constraint, an arm from the optimistic mixture for what is left.

    Parameters
    ----------
    radius : {"3logT", "3logt", "2logT"}
        Confidence radii are the square root of this over n.
    time_row : bool
        Whether the program knows that shares cannot exceed the rounds left. Algorithm 1 prints no such row; without it
        the best ratio is always best alone, and while some cost is bounded by 0 only, the first such arm is pulled.
    """

    radius: str = "3logT"
    time_row: bool = True
    rule = staticmethod(one_phase)

    def __post_init__(self):
        allowed = ("3logT", "3logt", "2logT")
        require(self.radius in allowed, "radius", self.radius, f"must be one of {allowed}")
        require(isinstance(self.time_row, bool), "time_row", self.time_row, "must be True or False")

    @property
    def parameters(self):
        return np.array([float(self.radius[0]), self.radius[-1] == "T", self.time_row], float)


@dataclass(frozen=True)
class PrimalDualSkip(_Anytime):
    """The Primal-Dual algorithm of Li, Sun and Ye with skips ("PDS"), as we read it.

    All arms in turn; after each sweep an arm (or the null arm) without which even optimistic bounds promise less than
    pessimistic ones with it is found to be needed. Two such make the base; then `OnePhaseSkip` on it. Where one arm is
    best alone the sweeps never end.
    """

    rule = staticmethod(primal_dual)


@dataclass(frozen=True)
class UCBSimplexSkip(_Anytime):
    """UCB-Simplex of Flajolet and Jaillet with skips ("USS"), as we read it.

    Each arm once; then the base that is best for mean rewards plus lam sqrt(2 log t / n) and mean costs. Its costly arm
    is pulled if what the base has been charged so far is at most c times the rounds it was chosen in.

    Parameters
    ----------
    lam : float
        lambda = 1 + 2 kappa; 9 in the paper.
    """

    lam: float = 9.0
    rule = staticmethod(ucb_simplex)

    def __post_init__(self):
        positive("lam", self.lam)

    def start(self, problem, hull):
        return np.zeros(2 + 2 * problem.K * (problem.K + 1))


@dataclass(frozen=True)
class KnownMeans(_Anytime):
    """For comparison: the best base, by an agent who knows all means.

    Parameters
    ----------
    threshold : float or None
        The costly arm is pulled when at least this much may be spent, the cheap one else. None: independent draws from
        the best mixture, whose spending wanders, so that more and more rounds must be skipped.
    """

    threshold: float | None = 2.0
    rule = staticmethod(knowing)

    def __post_init__(self):
        if self.threshold is not None:
            positive("threshold", self.threshold)

    @property
    def parameters(self):
        return np.array([self.threshold or 0.0])

    def start(self, problem, hull):
        hull[UPPER, :-1], hull[LOWER, :-1] = problem.reward_means, problem.cost_means
        return np.zeros(0)
