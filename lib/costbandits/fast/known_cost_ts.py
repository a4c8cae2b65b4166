"""Thompson sampling over a known cost: the law of its definition, exactly, with almost nothing drawn.

For a threshold theta let h = theta c, of an arm with the cost c. It is an *event* that a rival's R is above its h, or
the leader's below. In a round without events the leader is pulled. Only the first event in the order of the arms is
looked for: arm k's comes first with probability p_k prod_{j<k} (1 - p_j), with p_j that of arm j's event. So

* with probability q_k, Chernoff's bound E[R^s] h^-s >= p_k, the round is a candidate of arm k;
* then R is drawn from Beta(a + s, N - a) and kept with probability (R/h)^-s if it lies on the event's side: what is
  kept has the law of R there, and is kept with probability p_k/q_k;
* then all other arms are drawn. If one before k has its event, too, the round counts as one without events, since k's
  was not the first. Else all scores are there, with their law, and the best is pulled.

The round of the next candidate, of whichever arm, is drawn at once (`engine.thinning`). The leader learns in the
meantime: a cap takes the place of its q, and each of its candidates counts with probability q/cap. While q stays below
the cap, which is known for whole blocks of pulls, nothing need be drawn.
"""

from math import exp, inf, log, log1p, sqrt
from typing import NamedTuple

import numpy as np

from ..engine.driver import END, Money, if_counted, jit, last_outcome, loop, one, step
from ..engine.numerics import bent, tail
from ..engine.run import Run
from ..engine.state import new_record
from ..engine.thinning import CLOCK, look_ahead
from ..engine.trees import LEAF, block, is_counted, skip, total
from ..policies.base import Problem
from ..policies.known_cost_ts import KnownCostTS
from . import kernel
from .indices import all_affordable_below
from .thompson import how_many, trials

# Rows of the posteriors: a and N; the cost; the level h; exponent s and Chernoff's bound q; the rate at which
# candidates come, which is q but for the leader, whose cap it is.
A, N, COST, LEVEL, TILT, CHANCE, RATE = range(7)
ALL = -1            # in place of the leader: all arms are drawn in every round

# What only speed depends on: how many standard errors below the leader's centre theta lies; above which rate of
# candidates all arms are drawn, and for how many rounds; how far the leader's cap is above its chance, at least, and
# how high it is, divided by the root of its pulls.
DEPTH, LOUD, MOMENT, ROOM, CALM = 3.2, 0.25, 16, 1.5, 0.06


class Events(NamedTuple):
    """What the kernel works on: the scale of rewards, the posteriors, and when to draw next."""
    scale: float
    posteriors: np.ndarray      # (RATE + 1, K)
    clock: np.record


@jit
def bound(a, N, s, h):
    """Chernoff's bound E[R^s] h^-s for R ~ Beta(a, N - a), by differences that do not cancel after 1e12 pulls."""
    return exp(s * log1p((a + s - (N + s) * h) / ((N + s) * h)) + (a - 0.5) * bent(s / a) - (N - 0.5) * bent(s / N)
               + 0.5 * s * (1.0 / N - 1.0 / a) + tail(a + s) - tail(a) + tail(N) - tail(N + s))


@jit
def measure(k, side, post):
    """Exponent and chance of an arm's event, R above its level (side 1) or below (-1); 1 without a useful bound.

    s is the saddle point, with log(x - 1/2) in place of digamma: (a - 1/2 + s) = h (N - 1/2 + s).
    """
    a, n, h = post[A, k], post[N, k], post[LEVEL, k]
    if h >= 1.0:
        post[TILT, k], post[CHANCE, k] = 0.0, 0.0 if side > 0 else 1.0
        return
    s = (h * (n - 0.5) - (a - 0.5)) / (1.0 - h)
    q = bound(a, n, s, h) if s * side > 0.0 else 1.0
    post[TILT, k], post[CHANCE, k] = (s, q) if q < 1.0 else (0.0, 1.0)


@jit
def prepare(t, post, clock, rng):
    """Choose leader and threshold from the posteriors, and the round of the next candidate."""
    K = post.shape[1]
    leader, theta, rate = 0, -inf, 0.0
    for k in range(K):
        a, n = post[A, k], post[N, k]
        depth = DEPTH * sqrt(max(log(n) / 7.0, 1.0))
        low = a / n * exp(-depth * sqrt((n - a) / (a * (n + 1.0)))) / post[COST, k]
        if low > theta:
            leader, theta = k, low
    for k in range(K):
        post[LEVEL, k] = theta * post[COST, k]
        measure(k, -1 if k == leader else 1, post)
        post[RATE, k] = post[CHANCE, k]
        if k == leader:
            post[RATE, k] = max(ROOM * post[CHANCE, k], CALM / sqrt(post[N, k]))
        rate += post[RATE, k]
    quiet = rate < LOUD
    look_ahead(clock, rng, t, np.int64(0.3 * post[N, leader]) + 8 if quiet else MOMENT, rate if quiet else 0.0)
    clock.arm = leader if quiet else ALL


@jit
def candidate(clock, post, rng):
    """The arm of a round that is a candidate."""
    leader, u, first = clock.arm, rng.random() * clock.rate, 0
    while first < post.shape[1] - 1 and u >= post[RATE, first]:
        u -= post[RATE, first]
        first += 1
    a, n, s, h = post[A, first], post[N, first], post[TILT, first], post[LEVEL, first]
    if u >= post[CHANCE, first]:            # a candidate of the leader's cap
        return leader
    x = rng.beta(a + s, n - a)
    if (x < h) != (first == leader) or (x / h)**-s <= rng.random():
        return leader
    arm, best = first, x / post[COST, first]
    for k in range(post.shape[1]):
        if k != first:
            x = rng.beta(post[A, k], post[N, k] - post[A, k])
            if k < first and (x < post[LEVEL, k]) == (k == leader):
                return leader
            if x / post[COST, k] > best:
                arm, best = k, x / post[COST, k]
    return arm


@jit
def leap(arm, m, money, own, arms, outcomes, rng):
    """Pull the leader's next block of up to m outcomes, if its chance stays below the cap whatever their order."""
    scale, post, _ = own
    # A success lowers the chance; a failure multiplies it by N/(N + s), which falls as N grows.
    grows = -log1p(post[TILT, arm] / post[N, arm])
    space = (1.0 - 1e-9) * log(post[RATE, arm] / post[CHANCE, arm])
    while m >= LEAF:
        m = block(arm, arms.n[arm], m, outcomes)
        cost = total(arm, 1, outcomes)
        if cost < money.due - money.spent and how_many(arm, 0, -inf, scale, outcomes) * grows <= space:
            reward = total(arm, 0, outcomes)
            post[A, arm] += trials(arm, 0, scale, outcomes, rng)
            post[N, arm] += m
            skip(arm, arms, outcomes)
            post[CHANCE, arm] = bound(post[A, arm], post[N, arm], post[TILT, arm], post[LEVEL, arm])
            return Money(money.spent + cost, money.collected + reward, money.due)
        m >>= 1
    return money


@step
def choose(t, money, own, arms, limits, rng):
    """The leader until the next candidate, or the best in that round. Near the ceiling what is affordable is drawn."""
    _, post, clock = own
    arm, m = ALL, 1
    if money.spent < limits.pause:
        if t >= clock.until:
            prepare(t, post, clock, rng)
        arm = clock.arm
        if arm != ALL and t == clock.candidate:
            arm = candidate(clock, post, rng)
        elif arm != ALL:
            m = min(clock.candidate, limits.last_round) - t
    if arm == ALL:
        arm, best = END, -1.0
        for k in range(post.shape[1]):
            if money.spent + post[COST, k] <= limits.ceiling:
                score = rng.beta(post[A, k], post[N, k] - post[A, k]) / post[COST, k]
                if score > best:
                    arm, best = k, score
    return arm, m


@step
def advance(arm, m, t, money, own, arms, outcomes, rng):
    """Pull the arm by a block, else once."""
    i = arms.n[arm]
    if m >= LEAF and i == outcomes.filled[arm] and is_counted(arm, outcomes):
        money = leap(arm, m, money, own, arms, outcomes, rng)
    if arms.n[arm] == i:
        money, _ = one(arm, m, t, money, own, arms, outcomes, rng)
    return money, arms.n[arm] - i


@step
def learn(arm, m, t, own, arms, outcomes, rng):
    """Bring posterior and chance up to date with a single reward; look around anew if the chance exceeds the cap."""
    scale, post, clock = own
    if m == 1:
        share = last_outcome(arm, arms, outcomes).reward / scale
        won = share if share == 0.0 or share == 1.0 else 1.0 * (rng.random() < share)
        post[CHANCE, arm] *= (1.0 + won * post[TILT, arm] / post[A, arm]) / (1.0 + post[TILT, arm] / post[N, arm])
        post[A, arm], post[N, arm] = post[A, arm] + won, post[N, arm] + 1.0
    if arm == clock.arm and post[CHANCE, arm] > post[RATE, arm]:
        clock.until = t


by_events = loop(choose, advance, learn, if_counted)


@kernel(KnownCostTS, same="law", when=lambda policy: not policy.naive)
def play(policy: KnownCostTS, run: Run, problem: Problem, rng: np.random.Generator) -> int:
    """Nearly every round pulls the leader, by blocks where that is possible."""
    post, costs = np.zeros((RATE + 1, problem.K)), problem.cost_means
    post[A], post[N], post[COST] = 1.0, 2.0, costs
    return run.play(by_events, Events(float(policy.reward_scale), post, new_record(CLOCK)), rng,
                    pause=all_affordable_below(run.limits))
