"""Budgeted Thompson sampling: the law of its definition, exactly, with almost nothing drawn.

"Chernoff bells", to our knowledge not published before: ten times as many rounds take about three times as long. Each
arm's mean reward and cost have the posteriors R ~ Beta(a, b) and C ~ Beta(c, d), and V = R/C.

Bells. For a threshold theta and an exponent s in (-a, c) the density of (R, C) is f = M(s) V^-s f_s, where f_s is the
density of Beta(a + s, b) x Beta(c - s, d) and M(s) = E[V^s]. So on {V > theta} (s > 0) or {V < theta} (s < 0) f is at
most q f_s, with Chernoff's bound q = M(s) theta^-s: with probability q a "bell" rings, V is drawn from f_s, and it is
kept with probability (V/theta)^-s if it lies on that side. What is kept has the law of V there; else V lies on the
other side. An error in q changes the law by as much, relatively, and no more.

Waiting. One arm, the leader, has a bell for falling below theta; its rivals have bells for rising above it. If none
rings in a round, the leader is pulled. The posterior of a resting arm does not change: the round of its next bell is
drawn once and waited for. The leader's chance q changes with every pull, so its bell has a cap, a number of at least q.
Its *candidates* come at the rate of the cap, and in a candidate's round the bell rings with probability q/cap, with q
as it is then: the law of a bell that rings with probability q in every round, while q does not exceed the cap. At the
first pull after which it does, there is a new cap and a new wait.

Blocks. Of a block of m pulls the totals are known before their order is. A success of the leader's reward lowers q.
One of its cost multiplies q by (c - s)/c at most, and each pull by N^2/(N^2 - s^2) at most, with N = a + b: these
factors fall as c and N grow. So within a block with Y successes of the cost, in whatever order, q never exceeds
q ((c - s)/c)^Y (N^2/(N^2 - s^2))^m. If that is at most the cap, and nothing else happens, the block is pulled as a
whole; else half of it is tried, down to single pulls. Fractional outcomes become Bernoulli trials: Y is at most the
number of outcomes that are not 0.

Why that is exact. A geometric wait has no memory: it may be drawn anew at any moment that is decided by what has been
revealed so far, but never because of a wait that is not over. Waits are drawn anew when a bell or candidate has come,
when q exceeds the cap, when a rival was pulled, after so much work, and at a round fixed at the last refresh. None of
this depends on how a run is cut into blocks: with outcomes 0 and 1 it is the same, pull for pull, without them.
"""

from math import exp, frexp, inf, ldexp, log, log1p, sqrt
from typing import NamedTuple

import numpy as np

from ..engine.driver import FAR, Money, if_counted, jit, loop, step
from ..engine.numerics import SLACK, bent, excess, tail
from ..engine.run import Run
from ..engine.state import new_record
from ..engine.trees import KIND, LEAF, block, is_counted, read_on, settle, skip, total
from ..policies.base import Problem
from ..policies.thompson import BTS
from . import kernel

# Rows of the posteriors: its posteriors, its tilt, the probability q that its bell rings in a round, the round
# at which it rings next (the leader's: of its next candidate), and -log(1 - q) (the leader's: of its cap).
A, B, C, D, TILT, CHANCE, BELL, RATE = range(8)
# State of a run: the leader, the threshold, the leader's cap, pairs drawn since the last refresh, the last round before
# the next one, and the first round in which a bell rings, a candidate comes or a refresh is due.
RACE = np.dtype([("leader", "i8"), ("theta", "f8"), ("cap", "f8"), ("work", "f8"), ("until", "f8"), ("ring", "f8")])


class Tuning(NamedTuple):
    """What only speed depends on: the law is exact for all values, if `room` is at least 1."""
    depth: float = 3.2      # how far below the leader's centre theta lies, in standard errors; more after STEADY pulls
    loud: float = 0.95      # above this probability a bell is not worth having
    lazy: float = 24.0      # after so many pairs drawn per arm leader and theta are chosen anew
    room: float = 1.5       # the leader's cap is at least so many times its chance,
    calm: float = 0.06      # and at least this, divided by the root of its pulls


USUAL = Tuning()        # a flat optimum
STEADY = 7.0            # logarithm of a number of pulls
INFINITE = np.float64(inf).view(np.int64)


class Bells(NamedTuple):
    """What the kernel works on: the posteriors, the run's state, and room for the arms whose bells ring."""
    tuning: Tuning
    posteriors: np.ndarray      # (RATE + 1, K)
    race: np.record
    rung: np.ndarray            # (K + 1,)

    @classmethod
    def of(cls, K: int, tuning: Tuning) -> "Bells":
        """What it works on before the first pull."""
        return cls(tuning, np.ones((RATE + 1, K)), new_record(RACE), np.zeros(K + 1, np.int64))


@jit
def bound(a, b, c, d, s, theta):
    """Chernoff's M(s) theta^-s, for a + b = c + d, relatively to 1e-9 even after 1e13 pulls.

    By Stirling's formula for its Gammas, in differences that do not cancel. What is multiplied by s is the logarithm of
    (a + s)(N - s) / (theta (c - s)(N + s)), which is close to 0 where s is close to the saddle point.
    """
    N = a + b
    away = s * (b + theta * d) - N * excess(theta, c, a) + (theta - 1.0) * s * s
    return exp(s * log1p(away / (theta * (c - s) * (N + s)))
               + (a - 0.5) * bent(s / a) + (c - 0.5) * bent(-s / c) - (N - 0.5) * log1p(-(s / N)**2)
               + 0.5 * s * (1.0 / c - 1.0 / a)
               + tail(a + s) - tail(a) + tail(c - s) - tail(c) + 2.0 * tail(N) - tail(N + s) - tail(N - s))


@jit
def chernoff(a, b, c, d, theta, side):
    """Exponent s and Chernoff's bound q on P(V > theta) (side = 1) or P(V < theta) (side = -1); (0, 1) if s misses.

    s is the saddle point with log(x - 1/3) in place of digamma: with a, c and N = a + b = c + d each less 1/3 it solves
    (a + s)(N - s) = theta (c - s)(N + s).
    """
    N, third = a + b, 1.0 / 3.0
    h, m = (N - third) * (theta * (c - third) - (a - third)), b + theta * d
    s = 2.0 * h / (m + sqrt(max(m * m + 4.0 * (theta - 1.0) * h, 0.0)))
    if not s * side > 0.0:
        return 0.0, 1.0
    q = bound(a, b, c, d, s, theta)
    return (s, q) if q < 1.0 else (0.0, 1.0)


@step
def gamma(shape, z):
    """Marsaglia and Tsang's candidate for Gamma(shape) from a normal z; a bound on the chance that it is refused."""
    d = shape - 1.0 / 3.0
    w = z / sqrt(9.0 * d)
    return d * (1.0 + w)**3, 1.8 * d * w**4


@jit
def kept(shape, z):
    """Logarithm of the probability with which that candidate is kept."""
    d = shape - 1.0 / 3.0
    v = (1.0 + z / sqrt(9.0 * d))**3
    return 0.5 * z * z + d * (1.0 - v + log(v))


@jit
def draw(a, b, c, d, rng):
    """V = R/C of a posterior: a Beta is a share of two Gammas. All four are kept or refused by one uniform number."""
    if a < 1.0 or c < 1.0:
        return rng.beta(a, b) / rng.beta(c, d)
    while True:
        i, j, k, m = rng.standard_normal(), rng.standard_normal(), rng.standard_normal(), rng.standard_normal()
        (w, p), (x, q), (y, r), (z, s) = gamma(a, i), gamma(b, j), gamma(c, k), gamma(d, m)
        if min(w, x, y, z) > 0.0:
            u = rng.random()
            if u < 1.0 - (p + q + r + s) or log(u) < kept(a, i) + kept(b, j) + kept(c, k) + kept(d, m):
                return w * (y + z) / (y * (w + x))


@jit
def knock(a, b, c, d, s, theta, rng):
    """Draw V at the ringing of a bell; 0 for a false alarm."""
    V = draw(a + s, b, c - s, d, rng)
    if s != 0.0 and not 0.0 < s * log(V / theta) < rng.standard_exponential():
        V = 0.0
    return V


@step
def wait(rate, rng):
    """In how many rounds a bell rings, from 1."""
    return 1.0 + np.floor(rng.standard_exponential() / rate)


@step
def wind(t, k, q, post, rng):
    """The round after t in which an arm's bell rings, if it does with probability q in each; and the rate of that."""
    post[RATE, k] = inf if q == 1.0 else max(-log1p(-q), 1e-300)
    post[BELL, k] = t + wait(post[RATE, k], rng)


@jit
def next_bell(t, bells):
    """The round of the first bell after t. Positive numbers sort like their bits, which are compared many at a time."""
    bits, first = bells.view(np.int64), INFINITE
    for k in range(len(bells)):
        first = min(first, bits[k] if bells[k] > t else INFINITE)
    return np.int64(first).view(np.float64)


@step
def gain(a, c, N, s, x, y):
    """What a trial each, x and y, multiplies M(s) theta^-s by."""
    return (a + x * s) * (c - y * s) * N * N / (a * c * (N * N - s * s))


@jit
def cover(t, tuning, post, race, rng):
    """A new cap on the leader's chance, and the round of its next candidate after t."""
    k = race.leader
    race.cap = 1.0          # caps are powers of 2, or `loud`: what rounding does to a chance does not reach the waits
    if post[TILT, k] != 0.0:
        least = max(tuning.room * post[CHANCE, k], tuning.calm / sqrt(post[A, k] + post[B, k]))
        race.cap = min(ldexp(1.0, frexp(least)[1]), tuning.loud)
    wind(t, k, race.cap, post, rng)
    race.ring = min(next_bell(0.0, post[BELL]), race.until + 1.0)


@jit
def refresh(t, tuning, post, race, rng):
    """Choose leader and threshold from the posteriors, and wind all bells for them."""
    leader, theta = 0, -inf
    for k in range(post.shape[1]):
        a, b, c, d = post[A, k], post[B, k], post[C, k], post[D, k]
        depth = tuning.depth * sqrt(max(log(a + b) / STEADY, 1.0))
        low = a / c * exp(-depth * sqrt((b / a + d / c) / (a + b + 1.0)))
        if low > theta:
            leader, theta = k, low
    race.leader, race.theta, race.work = leader, theta, 0.0
    race.until = t + 1.0 + np.floor(0.3 * (post[A, leader] + post[B, leader]))
    for k in range(post.shape[1]):
        side = -1 if k == leader else 1
        s, q = chernoff(post[A, k], post[B, k], post[C, k], post[D, k], theta, side)
        post[TILT, k], post[CHANCE, k] = (s, q) if q <= tuning.loud else (0.0, 1.0)
        if k != leader:
            wind(t, k, post[CHANCE, k], post, rng)
    cover(t, tuning, post, race, rng)


@jit
def contest(t, low_rang, post, race, rung, rng):
    """The arm with the largest V in round t, in which some bell has rung."""
    leader, theta, bells, heard = race.leader, race.theta, post[BELL], 0
    drawn = int(low_rang)
    a, b, c, d, s = post[A, leader], post[B, leader], post[C, leader], post[D, leader], post[TILT, leader]
    x = knock(a, b, c, d, s, theta, rng) if low_rang else 0.0
    for k in range(len(bells)):
        rung[heard] = k
        heard += bells[k] <= t
    ring = next_bell(t, bells)
    while x == 0.0:                                  # silent, or a false alarm: above theta
        V = draw(a, b, c, d, rng)
        x = V if V > theta else 0.0
        drawn += 1
    arm, best = leader, x
    if x > theta:
        room = log(x / theta)
        for i in range(heard):
            # V is kept with probability (V/theta)^-s: not worth drawing if nothing above `best` would be.
            k, kept = rung[i], rng.standard_exponential()
            s = post[TILT, k]
            if s * room < kept:
                V = draw(post[A, k] + s, post[B, k], post[C, k] - s, post[D, k], rng)
                drawn += 1
                if V > best and s * log(V / theta) < kept:
                    arm, best, room = k, V, log(V / theta)
            bells[k] = t + wait(post[RATE, k], rng)
            ring = min(ring, bells[k])
    else:
        for k in range(len(bells)):
            a, b, c, d, V = post[A, k], post[B, k], post[C, k], post[D, k], 0.0
            if bells[k] <= t:
                V = knock(a, b, c, d, post[TILT, k], theta, rng)
                drawn += 1
                bells[k] = t + wait(post[RATE, k], rng)
                ring = min(ring, bells[k])
            while V == 0.0 and k != leader:          # silent, or a false alarm: not above theta
                V = draw(a, b, c, d, rng)
                V = V if V <= theta else 0.0
                drawn += 1
            if V > best:
                arm, best = k, V
    race.ring = min(ring, race.until + 1.0)
    race.work += drawn
    return arm


@jit
def attend(t, tuning, post, race, rng):
    """See to the leader before round t, if a refresh is due or a candidate comes; whether its bell rings."""
    if t > race.until:
        refresh(t - 1, tuning, post, race, rng)
    leader, low_rang = race.leader, False
    if post[BELL, leader] <= t:
        low_rang = rng.random() * race.cap < post[CHANCE, leader]
        cover(t, tuning, post, race, rng)
    return low_rang


@step
def trials(arm, column, scale, outcomes, rng):
    """How many succeed of a Bernoulli trial for each outcome of the next block, as a share of the scale."""
    won, d = 0, outcomes.level[arm, 0]
    for v in range(outcomes.trees[arm, KIND + column]):
        share, often = outcomes.laws[arm, column, v] / scale, outcomes.counts[arm, column, d, v]
        if share > 0.0:
            won += often if share >= 1.0 else rng.binomial(often, share)
    return won


@step
def how_many(arm, column, low, high, outcomes):
    """How many outcomes of the next block lie between two numbers."""
    often, d = 0, outcomes.level[arm, 0]
    for v in range(outcomes.trees[arm, KIND + column]):
        often += outcomes.counts[arm, column, d, v] * (low < outcomes.laws[arm, column, v] < high)
    return often


@jit
def leap(free, money, own, arms, outcomes, rng):
    """Pull the leader's next block, of up to `free` outcomes, if its chance cannot exceed the cap on the way."""
    post, race, arm = own.posteriors, own.race, own.race.leader
    a, b, c, d, s = post[A, arm], post[B, arm], post[C, arm], post[D, arm], post[TILT, arm]
    space = (1.0 - SLACK) * log(race.cap / post[CHANCE, arm])
    by_cost, by_pull = log1p(-s / c), -log1p(-(s / (a + b))**2)
    m = np.int64(min(free, space * (a + b) / -s))
    while m >= LEAF:
        m = block(arm, arms.n[arm], m, outcomes)
        cost = total(arm, 1, outcomes)
        if money.spent + cost < money.due and how_many(arm, 1, 0.0, inf, outcomes) * by_cost + m * by_pull <= space:
            won, paid = trials(arm, 0, 1.0, outcomes, rng), trials(arm, 1, 1.0, outcomes, rng)
            reward = total(arm, 0, outcomes)
            skip(arm, arms, outcomes)
            a, b, c, d = a + won, b + (m - won), c + paid, d + (m - paid)
            post[A, arm], post[B, arm], post[C, arm], post[D, arm] = a, b, c, d
            post[CHANCE, arm] = bound(a, b, c, d, s, race.theta)
            return Money(money.spent + cost, money.collected + reward, money.due)
        m >>= 1
    return money


@jit
def pull_on(arm, free, money, own, arms, outcomes, rng):
    """Pull an arm up to `free` times, as long as its leaf reaches and its chance is at most the cap."""
    post, pool, (spent, collected, due), i, done = own.posteriors, outcomes.pool, money, arms.n[arm], 0
    a, b, c, d = post[A, arm], post[B, arm], post[C, arm], post[D, arm]
    s, q, cap, N = post[TILT, arm], post[CHANCE, arm], own.race.cap, a + b
    r, k, rr, kk = arms.reward[arm], arms.cost[arm], arms.reward_sq[arm], arms.cost_sq[arm]
    row = outcomes.at[arm] + i
    for j in range(row, row + min(free, outcomes.filled[arm] - i)):
        x, y = pool[j, 0], pool[j, 1]
        r, k, rr, kk = r + x, k + y, rr + x * x, kk + y * y
        spent, collected, done = spent + y, collected + x, done + 1
        # A fractional outcome becomes a Bernoulli trial.
        x = x if x == 0.0 or x == 1.0 else 1.0 * (rng.random() < x)
        y = y if y == 0.0 or y == 1.0 else 1.0 * (rng.random() < y)
        if s != 0.0:
            q *= gain(a, c, N, s, x, y)
        a, b, c, d, N = a + x, b + (1.0 - x), c + y, d + (1.0 - y), N + 1.0
        if q > cap or not spent < due:
            break
    post[A, arm], post[B, arm], post[C, arm], post[D, arm], post[CHANCE, arm] = a, b, c, d, q
    arms.reward[arm], arms.cost[arm], arms.reward_sq[arm], arms.cost_sq[arm] = r, k, rr, kk
    arms.n[arm] = i + done
    return Money(spent, collected, due)


@step
def choose(t, money, own, arms, limits, rng):
    """The leader, for all rounds that certainly pull it, or whoever is best where a bell rings."""
    tuning, post, race, rung = own
    if t == 0:
        refresh(t, tuning, post, race, rng)
    arm = race.leader
    free = min(np.int64(min(race.ring - 1.0, 2.0 * FAR)), limits.last_round) - t
    if free <= 0:
        low_rang, free = False, 1
        if post[BELL, arm] <= t + 1 or race.until < t + 1:
            low_rang = attend(t + 1, tuning, post, race, rng)
            arm = race.leader
        if low_rang or race.ring <= t + 1:
            arm = contest(t + 1, low_rang, post, race, rung, rng)
    return arm, free


@step
def advance(arm, free, t, money, own, arms, outcomes, rng):
    """Pull the arm by a block, else as far as its leaf reaches."""
    i, filled = arms.n[arm], outcomes.filled
    if i == filled[arm]:
        if free >= LEAF and is_counted(arm, outcomes):
            money = leap(free, money, own, arms, outcomes, rng)
        if arms.n[arm] == i:
            read_on(arm, arms, outcomes)
    if arms.n[arm] == i:
        money = pull_on(arm, free, money, own, arms, outcomes, rng)
    if arms.n[arm] == filled[arm]:
        settle(arm, arms, outcomes)
    return money, arms.n[arm] - i


@step
def learn(arm, m, t, own, arms, outcomes, rng):
    """Wind the bell of a rival that was pulled, cover the leader's chance, and look around anew after so much work."""
    tuning, post, race, _ = own
    if post[CHANCE, arm] > tuning.loud:
        post[TILT, arm], post[CHANCE, arm] = 0.0, 1.0
    if arm != race.leader:
        wind(t, arm, post[CHANCE, arm], post, rng)
        race.ring = min(race.ring, post[BELL, arm])
    elif post[CHANCE, arm] > race.cap:
        cover(t, tuning, post, race, rng)
        if post[TILT, arm] == 0.0:          # pragma: no cover - in compiled runs: the leader has fallen behind
            race.work = inf
    if race.work >= tuning.lazy * arms.n.size:
        refresh(t, tuning, post, race, rng)


bells = loop(choose, advance, learn, if_counted)


@kernel(BTS, same="law", when=lambda policy: not policy.naive)
def play(policy: BTS, run: Run, problem: Problem, rng: np.random.Generator) -> int:
    """Nearly every round pulls the leader, by blocks where possible."""
    return run.play(bells, Bells.of(problem.K, USUAL), rng)
