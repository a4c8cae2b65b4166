"""Budgeted Thompson sampling: the definition, and an exact way to draw almost nothing of it.

Xia et al., "Thompson Sampling for Budgeted Multi-Armed Bandits" (2015). Each arm's mean reward and cost have Beta
posteriors R ~ Beta(a, b) and C ~ Beta(c, d); a round draws V = R/C of every arm and pulls the largest.

The second half plays by the same law with few draws ("Chernoff bells"; to our knowledge not published before). For a
threshold theta and an exponent s in (-a, c) the density of (R, C) is f = M(s) V^-s f_s, where f_s is the density of
Beta(a + s, b) x Beta(c - s, d) and M(s) = E[V^s]. So on {V > theta} (s > 0) or {V < theta} (s < 0) f is at most
q f_s, with Chernoff's bound q = M(s) theta^-s: with probability q a "bell" rings, V is drawn from f_s, and it is
kept with probability (V/theta)^-s if it lies on that side. What is kept has the law of V there; else V lies on the
other side. The posterior of a resting arm does not change, so the round of its next bell is drawn once and waited for.
"""

from dataclasses import dataclass
from math import exp, inf, lgamma, log, log1p, sqrt
from typing import NamedTuple

import numba as nb
import numpy as np

from ..checks import require
from ..engine.compilation import compiled_for
from ..engine.loops import RUNNING, Run, checkpoint, pull
from ..engine.state import new_record
from .base import ChoiceRule, Problem, choose, require_soft


@choose
def bts(t, n, reward, cost, reward_sq, cost_sq, problem, params, memory, rng):
    """Budgeted Thompson sampling by its definition; memory: successes by arm, then the last arm and its sums."""
    K = len(n)
    won, paid = memory[:K], memory[K:2 * K]            # successes of the Bernoulli trials
    if t > 1:
        # The last outcome, as what its arm's sums have grown by, becomes one trial each for reward and cost.
        last = int(memory[2 * K])
        won[last] += rng.random() < reward[last] - memory[2 * K + 1]
        paid[last] += rng.random() < cost[last] - memory[2 * K + 2]
    arm, best = 0, -1.0
    for k in range(K):
        ratio = rng.beta(won[k] + 1.0, n[k] - won[k] + 1.0) / rng.beta(paid[k] + 1.0, n[k] - paid[k] + 1.0)
        if ratio > best:
            arm, best = k, ratio
    memory[2 * K], memory[2 * K + 1], memory[2 * K + 2] = arm, reward[arm], cost[arm]
    return arm


# State of an arm, one row each: its posteriors, its tilt, the probability q that its bell rings in a round, the round
# at which it rings next (the leader's bell has none, it is asked in every round), and -log(1 - q).
A, B, C, D, TILT, CHANCE, BELL, RATE = range(8)
# State of a run: the leader, the threshold, the round of its rivals' first bell, pairs drawn since a refresh.
RACE = np.dtype([("leader", "i8"), ("theta", "f8"), ("ring", "f8"), ("work", "f8")])


class Tuning(NamedTuple):
    """What only speed depends on; the law is exact for all values."""

    depth: float = 3.2      # how far below the leader's centre theta lies, in standard errors
    loud: float = 0.95      # above this probability a bell is not worth having
    lazy: float = 24.0      # after so many pairs drawn per arm leader and theta are chosen anew


INFINITE = np.float64(inf).view(np.int64)


def state(K: int) -> tuple[np.ndarray, np.record, np.ndarray]:
    """The kernel's arrays before the first pull: of the arms, of the run, and room for the arms whose bells ring.

    >>> [np.shape(part) for part in state(K=10)]
    [(8, 10), (), (11,)]
    """
    return np.ones((RATE + 1, K)), new_record(RACE), np.zeros(K + 1, np.int64)


@nb.njit(error_model="numpy")
def chernoff(a, b, c, d, theta, side):
    """Exponent s and Chernoff's bound q on P(V > theta) (side = 1) or P(V < theta) (side = -1); (0, 1) if s misses.

    s is the saddle point with log(x - 1/3) in place of digamma: with a, c and N = a + b = c + d each less 1/3 it solves
    (a + s)(N - s) = theta (c - s)(N + s).
    """
    N, third = a + b, 1.0 / 3.0
    h, m = (N - third) * (theta * (c - third) - (a - third)), b + theta * d
    s = 2.0 * h / (m + sqrt(max(m * m + 4.0 * (theta - 1.0) * h, 0.0)))
    q = exp(lgamma(a + s) - lgamma(a) + lgamma(c - s) - lgamma(c) + 2.0 * lgamma(N) - lgamma(N + s) - lgamma(N - s)
            - s * log(theta))
    return (s, q) if s * side > 0.0 and q < 1.0 else (0.0, 1.0)


@nb.njit(inline="always", error_model="numpy")
def gamma(shape, z):
    """Marsaglia and Tsang's candidate for Gamma(shape) from a normal z; a bound on the chance that it is refused."""
    d = shape - 1.0 / 3.0
    w = z / sqrt(9.0 * d)
    return d * (1.0 + w)**3, 1.8 * d * w**4


@nb.njit(error_model="numpy")
def kept(shape, z):
    """Logarithm of the probability with which that candidate is kept."""
    d = shape - 1.0 / 3.0
    v = (1.0 + z / sqrt(9.0 * d))**3
    return 0.5 * z * z + d * (1.0 - v + log(v))


@nb.njit(error_model="numpy")
def draw(arm, tilt, arms, rng):
    """V from f_tilt: a Beta is a share of two Gammas. All four are kept or refused by one uniform number."""
    a, b, c, d = arms[A, arm] + tilt, arms[B, arm], arms[C, arm] - tilt, arms[D, arm]
    if a < 1.0 or c < 1.0:
        return rng.beta(a, b) / rng.beta(c, d)
    while True:
        i, j, k, m = rng.standard_normal(), rng.standard_normal(), rng.standard_normal(), rng.standard_normal()
        (w, p), (x, q), (y, r), (z, s) = gamma(a, i), gamma(b, j), gamma(c, k), gamma(d, m)
        if min(w, x, y, z) > 0.0:
            u = rng.random()
            if u < 1.0 - (p + q + r + s) or log(u) < kept(a, i) + kept(b, j) + kept(c, k) + kept(d, m):
                return w * (y + z) / (y * (w + x))


@nb.njit(inline="always", error_model="numpy")
def knock(arm, theta, arms, rng):
    """Draw V at the ringing of the arm's bell; 0 for a false alarm."""
    s = arms[TILT, arm]
    V = draw(arm, s, arms, rng)
    if s != 0.0 and not 0.0 < s * log(V / theta) < rng.standard_exponential():
        V = 0.0
    return V


@nb.njit(inline="always", error_model="numpy")
def pace(arm, arms):
    """Keep what `wind` needs of the arm's chance: it winds far more often than chances change."""
    if arms[TILT, arm] != 0.0:
        arms[RATE, arm] = max(-log1p(-arms[CHANCE, arm]), 1e-300)


@nb.njit(inline="always", error_model="numpy")
def wind(arm, t, arms, rng):
    """When the bell rings next: after a geometric number of rounds, or in every round if the arm has no tilt."""
    if arms[TILT, arm] == 0.0:
        arms[BELL, arm] = t + 1.0
    else:
        arms[BELL, arm] = t + 1.0 + np.floor(rng.standard_exponential() / arms[RATE, arm])


@nb.njit(inline="always", error_model="numpy")
def learn(arm, x, y, loud, arms):
    """Posteriors after one more trial each, and M(s) theta^-s of the new ones; True if the tilt is given up."""
    a, c, s, N = arms[A, arm], arms[C, arm], arms[TILT, arm], arms[A, arm] + arms[B, arm]
    arms[A, arm] += x
    arms[B, arm] += 1.0 - x
    arms[C, arm] += y
    arms[D, arm] += 1.0 - y
    if s != 0.0:
        arms[CHANCE, arm] *= (a + x * s) * (c - y * s) * N * N / (a * c * (N * N - s * s))
        if arms[CHANCE, arm] > loud:
            arms[TILT, arm], arms[CHANCE, arm] = 0.0, 1.0
            return True
    return False


@nb.njit(error_model="numpy")
def refresh(t, tuning, arms, race, rng):
    """Choose leader and threshold from the posteriors, and wind all bells for them."""
    leader, theta = 0, -inf
    for k in range(arms.shape[1]):
        a, b, c, d = arms[A, k], arms[B, k], arms[C, k], arms[D, k]
        low = a / c * exp(-tuning.depth * sqrt((b / a + d / c) / (a + b + 1.0)))
        if low > theta:
            leader, theta = k, low
    for k in range(arms.shape[1]):
        side = -1 if k == leader else 1
        s, q = chernoff(arms[A, k], arms[B, k], arms[C, k], arms[D, k], theta, side)
        arms[TILT, k], arms[CHANCE, k] = (s, q) if q <= tuning.loud else (0.0, 1.0)
        pace(k, arms)
        wind(k, t, arms, rng)
    arms[BELL, leader] = inf
    race.leader, race.theta, race.ring, race.work = leader, theta, arms[BELL].min(), 0.0


@nb.njit(error_model="numpy")
def next_bell(t, bells):
    """The round of the first bell after t. Positive numbers sort like their bits, which are compared many at a time."""
    bits, first = bells.view(np.int64), INFINITE
    for k in range(len(bells)):
        first = min(first, bits[k] if bells[k] > t else INFINITE)
    return np.int64(first).view(np.float64)


@nb.njit(error_model="numpy")
def contest(t, low_rang, arms, race, rung, rng):
    """The arm with the largest V in round t, in which some bell has rung."""
    leader, theta, bells, heard = race.leader, race.theta, arms[BELL], 0
    drawn = int(low_rang)
    x = knock(leader, theta, arms, rng) if low_rang else 0.0
    while x == 0.0:                                  # silent, or a false alarm: above theta
        V = draw(leader, 0.0, arms, rng)
        x = V if V > theta else 0.0
        drawn += 1
    for k in range(len(bells)):
        rung[heard] = k
        heard += bells[k] <= t
    ring = next_bell(t, bells)
    arm, best = leader, x
    if x > theta:
        room = log(x / theta)
        for i in range(heard):
            # V is kept with probability (V/theta)^-s: not worth drawing if nothing above `best` would be.
            k, kept = rung[i], rng.standard_exponential()
            if arms[TILT, k] * room < kept:
                V = draw(k, arms[TILT, k], arms, rng)
                drawn += 1
                if V > best and arms[TILT, k] * log(V / theta) < kept:
                    arm, best, room = k, V, log(V / theta)
            wind(k, t, arms, rng)
            ring = min(ring, bells[k])
    else:
        for k in range(len(bells)):
            V = 0.0
            if bells[k] <= t:
                V = knock(k, theta, arms, rng)
                drawn += 1
                wind(k, t, arms, rng)
                ring = min(ring, bells[k])
            while V == 0.0 and k != leader:          # silent, or a false alarm: not above theta
                V = draw(k, 0.0, arms, rng)
                V = V if V <= theta else 0.0
                drawn += 1
            if V > best:
                arm, best = k, V
    race.ring = ring
    race.work += drawn
    return arm


@compiled_for()
def bells(tuning, arms, race, rung, rng, outcomes, state, record, limits):
    """Budgeted Thompson sampling by Chernoff bells: nearly every round is one uniform draw and a comparison."""
    pool, at, filled = outcomes.pool, outcomes.at, outcomes.filled
    n, sums, now = state
    K, status, last = n.size, RUNNING, limits.last_round
    loud, lazy = tuning.loud, tuning.lazy * K
    t, spent, collected = now.rounds, now.spent, now.reward
    if t == 0:
        refresh(t, tuning, arms, race, rng)
    while status == RUNNING:
        going, due, arm = True, record.due[now.checkpoint], 0
        while going:
            arm = race.leader
            low_rang = rng.random() < arms[CHANCE, arm]
            if low_rang or race.ring <= t + 1:
                arm = contest(t + 1, low_rang, arms, race, rung, rng)
            x, y = pull(arm, n, sums, pool, at)
            t, spent, collected = t + 1, spent + y, collected + x
            going = spent < due and t < last and n[arm] < filled[arm]
            # A fractional outcome becomes a Bernoulli trial.
            x = x if x == 0.0 or x == 1.0 else 1.0 * (rng.random() < x)
            y = y if y == 0.0 or y == 1.0 else 1.0 * (rng.random() < y)
            too_loud = learn(arm, x, y, loud, arms)
            if arm != race.leader:
                pace(arm, arms)
                wind(arm, t, arms, rng)
                race.ring = min(race.ring, arms[BELL, arm])
            elif too_loud:
                race.work = inf                          # the leader has fallen behind
            if race.work >= lazy:
                refresh(t, tuning, arms, race, rng)
        status = checkpoint(arm, t, spent, collected, outcomes, state, record, limits)
    return status


@dataclass(frozen=True)
class BTS(ChoiceRule):
    """Budgeted Thompson sampling: the largest ratio of a draw from each posterior, Beta(1, 1) priors.

    A fractional outcome x in [0, 1] becomes a Bernoulli trial with probability x. There are no forced first pulls.

    If `naive`, every arm is drawn in every round, as the definition says. By default the same law is played with few
    draws, which is exact and usually ten times faster or more; the two use their random numbers differently, so runs
    agree in distribution and not one by one.

    >>> cb.BTS().memory(K=10)       # successes of rewards and of costs, by arm; the last arm and its two sums
    23
    """

    naive: bool = False
    rule = staticmethod(bts)
    loop = staticmethod(bells)
    tuning = Tuning()                                  # a flat optimum
    support = (0.0, 1.0)

    def __post_init__(self):
        require(isinstance(self.naive, bool), "naive", self.naive, "must be True or False")

    def memory(self, K: int) -> int:
        return 2 * K + 3

    def check(self, problem: Problem) -> None:
        require_soft(self, problem)

    def play(self, run: Run, problem: Problem, rng: np.random.Generator) -> int:
        if self.naive:
            return super().play(run, problem, rng)
        return run.play(bells, self.tuning, *state(problem.K), rng)
