"""Thompson sampling over a known cost: the definition, and an exact way to draw almost nothing of it.

After Luedtke, Kaufmann and Chambaz, "Asymptotically Optimal Algorithms for Budgeted Multiple Play Bandits" (2019). The
mean reward of each arm has a posterior R ~ Beta(a, N - a); a round draws the score R/c of every arm, c its known cost,
and pulls the largest of those that can be afforded.

Few draws. For a threshold theta let h = theta c. It is an *event* that a rival's R is above its h, or the leader's
below. In a round without events the leader is pulled, whatever the scores are. Only the first event in the order of the
arms is looked for: arm k's comes first with probability p_k prod_{j<k} (1 - p_j), with p_j that of its event. So

* with probability q_k, Chernoff's bound E[R^s] h^-s >= p_k, the round is a candidate of arm k;
* then R is drawn from Beta(a + s, N - a) and kept with probability (R/h)^-s if it lies on the event's side: what is
  kept has the law of R there, and is kept with probability p_k/q_k;
* then all other arms are drawn. If one before k has its event, too, then k's was not the first, and the round counts as
  one without events. Else all scores are there, with their law, and the best is pulled.

All candidates together come at the rate sum q_k, and the round of the next is drawn at once (`engine.thinning`). The
leader learns in the meantime; a cap takes the place of its q, and each of its candidates counts with
probability q/cap. While q stays below the cap, which is known for whole blocks of pulls, nothing need be drawn.
"""

from dataclasses import dataclass
from math import exp, inf, log, log1p, sqrt

import numba as nb
import numpy as np
from numba import types as T

from ..checks import positive, require, rounding
from ..engine.loops import (
    RUNNING,
    Run,
    afresh,
    all_affordable_below,
    approach,
    checkpoint,
    end_run,
    goes_on,
    kernel,
    pull,
)
from ..engine.state import new_record
from ..engine.thinning import CLOCK, look_ahead
from ..engine.trees import KIND, LEAF, block, read_on, settle, skip, total
from .base import ChoiceRule, Problem, choose, require_known_costs
from .thompson import bent, tail


@choose
def known_cost_ts(t, n, reward, cost, reward_sq, cost_sq, problem, params, memory, rng):
    """Thompson sampling over the cost by its definition; memory: successes, the last arm and its sum of rewards."""
    K, ceiling, costs, won = len(n), problem[0], problem[1:], memory[:len(n)]
    if t > 1:
        # The last outcome, as what its arm's sum has grown by, becomes one trial.
        last = int(memory[K])
        won[last] += rng.random() * params[0] < reward[last] - memory[K + 1]
    arm, best, spent = -1, -1.0, 0.0
    for k in range(K):
        spent += cost[k]
    for k in range(K):
        if spent + costs[k] <= ceiling:
            score = rng.beta(won[k] + 1.0, n[k] - won[k] + 1.0) / costs[k]
            if score > best:
                arm, best = k, score
    memory[K], memory[K + 1] = arm, reward[arm]
    return arm


# Rows of the arms: posterior a and N; the cost; the level h; exponent s and Chernoff's bound q; the rate at which
# candidates come, which is q but for the leader, whose cap it is.
A, N, COST, LEVEL, TILT, CHANCE, RATE = range(7)
ALL = -1            # in place of the leader: all arms are drawn in every round

# What only speed depends on: how many standard errors below the leader's centre theta lies; above which rate of
# candidates all arms are drawn, and for how many rounds; how far the leader's cap is above its chance, at least, and
# how high it is, divided by the root of its pulls.
DEPTH, LOUD, MOMENT, ROOM, CALM = 3.2, 0.25, 16, 1.5, 0.06


@nb.njit(error_model="numpy")
def bound(a, N, s, h):
    """Chernoff's bound E[R^s] h^-s for R ~ Beta(a, N - a), by differences that do not cancel after 1e12 pulls."""
    return exp(s * log1p((a + s - (N + s) * h) / ((N + s) * h)) + (a - 0.5) * bent(s / a) - (N - 0.5) * bent(s / N)
               + 0.5 * s * (1.0 / N - 1.0 / a) + tail(a + s) - tail(a) + tail(N) - tail(N + s))


@nb.njit(error_model="numpy")
def measure(k, side, arms):
    """Exponent and chance of an arm's event, R above its level (side 1) or below (-1); 1 without a useful bound.

    s is the saddle point, with log(x - 1/2) in place of digamma: (a - 1/2 + s) = h (N - 1/2 + s).
    """
    a, n, h = arms[A, k], arms[N, k], arms[LEVEL, k]
    if h >= 1.0:
        arms[TILT, k], arms[CHANCE, k] = 0.0, 0.0 if side > 0 else 1.0
        return
    s = (h * (n - 0.5) - (a - 0.5)) / (1.0 - h)
    q = bound(a, n, s, h) if s * side > 0.0 else 1.0
    arms[TILT, k], arms[CHANCE, k] = (s, q) if q < 1.0 else (0.0, 1.0)


@nb.njit(error_model="numpy")
def prepare(t, arms, clock, rng):
    """Choose leader and threshold from the posteriors, and the round of the next candidate."""
    K = arms.shape[1]
    leader, theta, rate = 0, -inf, 0.0
    for k in range(K):
        a, n = arms[A, k], arms[N, k]
        depth = DEPTH * sqrt(max(log(n) / 7.0, 1.0))
        low = a / n * exp(-depth * sqrt((n - a) / (a * (n + 1.0)))) / arms[COST, k]
        if low > theta:
            leader, theta = k, low
    for k in range(K):
        arms[LEVEL, k] = theta * arms[COST, k]
        measure(k, -1 if k == leader else 1, arms)
        arms[RATE, k] = arms[CHANCE, k]
        if k == leader:
            arms[RATE, k] = max(ROOM * arms[CHANCE, k], CALM / sqrt(arms[N, k]))
        rate += arms[RATE, k]
    quiet = rate < LOUD
    look_ahead(clock, rng, t, np.int64(0.3 * arms[N, leader]) + 8 if quiet else MOMENT, rate if quiet else 0.0)
    clock.arm = leader if quiet else ALL


@nb.njit(error_model="numpy")
def draw_all(spent, ceiling, arms, rng):
    """The arm with the best score of those that are affordable; -1 if there is none."""
    arm, best = -1, -1.0
    for k in range(arms.shape[1]):
        if spent + arms[COST, k] <= ceiling:
            score = rng.beta(arms[A, k], arms[N, k] - arms[A, k]) / arms[COST, k]
            if score > best:
                arm, best = k, score
    return arm


@nb.njit(error_model="numpy")
def candidate(clock, arms, rng):
    """The arm of a round that is a candidate."""
    leader, u, first = clock.arm, rng.random() * clock.rate, 0
    while first < arms.shape[1] - 1 and u >= arms[RATE, first]:
        u -= arms[RATE, first]
        first += 1
    a, n, s, h = arms[A, first], arms[N, first], arms[TILT, first], arms[LEVEL, first]
    if u >= arms[CHANCE, first]:            # a candidate of the leader's cap
        return leader
    x = rng.beta(a + s, n - a)
    if (x < h) != (first == leader) or (x / h)**-s <= rng.random():
        return leader
    arm, best = first, x / arms[COST, first]
    for k in range(arms.shape[1]):
        if k != first:
            x = rng.beta(arms[A, k], arms[N, k] - arms[A, k])
            if k < first and (x < arms[LEVEL, k]) == (k == leader):
                return leader
            if x / arms[COST, k] > best:
                arm, best = k, x / arms[COST, k]
    return arm


@nb.njit(error_model="numpy")
def succeed(arm, scale, outcomes, rng):
    """How many rewards of the next block succeed in a trial each."""
    won, d = 0, outcomes.level[arm, 0]
    for v in range(outcomes.arms[arm, KIND]):
        share, often = outcomes.laws[arm, 0, v] / scale, outcomes.counts[arm, 0, d, v]
        if share >= 1.0:
            won += often
        elif share > 0.0:
            won += rng.binomial(often, share)
    return won


@nb.njit(error_model="numpy")
def may_fail(arm, scale, outcomes):
    """How many rewards of the next block are not sure to succeed."""
    often, d = 0, outcomes.level[arm, 0]
    for v in range(outcomes.arms[arm, KIND]):
        often += outcomes.counts[arm, 0, d, v] * (outcomes.laws[arm, 0, v] < scale)
    return often


@nb.njit(error_model="numpy")
def leap(arm, m, scale, left, arms, n, sums, outcomes, rng):
    """Pull the leader's next block of up to m outcomes, if its chance stays below the cap whatever their order.

    A success lowers the chance; a failure multiplies it by N/(N + s), which falls as N grows.
    """
    grows = -log1p(arms[TILT, arm] / arms[N, arm])
    space = (1.0 - 1e-9) * log(arms[RATE, arm] / arms[CHANCE, arm])
    while m >= LEAF:
        m = block(arm, n[arm], m, outcomes)
        cost = total(arm, 1, outcomes)
        if cost < left and may_fail(arm, scale, outcomes) * grows <= space:
            reward = total(arm, 0, outcomes)
            arms[A, arm] += succeed(arm, scale, outcomes, rng)
            arms[N, arm] += m
            skip(arm, n, sums, outcomes)
            arms[CHANCE, arm] = bound(arms[A, arm], arms[N, arm], arms[TILT, arm], arms[LEVEL, arm])
            return m, cost, reward
        m >>= 1
    return 0, 0.0, 0.0


@nb.njit(inline="always", error_model="numpy")
def learn(arm, reward, scale, arms, rng):
    """Bring an arm's posterior, and its chance, up to date with one reward."""
    share = reward / scale
    won = share if share == 0.0 or share == 1.0 else 1.0 * (rng.random() < share)
    arms[CHANCE, arm] *= (1.0 + won * arms[TILT, arm] / arms[A, arm]) / (1.0 + arms[TILT, arm] / arms[N, arm])
    arms[A, arm], arms[N, arm] = arms[A, arm] + won, arms[N, arm] + 1.0


@kernel(T.float64, T.float64[:, ::1], nb.typeof(new_record(CLOCK)), T.npy_rng)
def by_events(scale, arms, clock, rng, outcomes, state, record, limits):
    """The law of `known_cost_ts`: nearly every round pulls the leader, by blocks where that is possible.

    Once the ceiling is near, and not every arm can still be afforded, all affordable arms are drawn in every round.
    """
    pool, at, filled, kinds = outcomes.pool, outcomes.at, outcomes.filled, outcomes.arms
    n, sums, now = state
    last, max_cost, ceiling, _ = limits
    status, pause = RUNNING, all_affordable_below(max_cost, ceiling)
    t, spent, collected = now.rounds, now.spent, now.reward
    while status == RUNNING:
        going, sure, due = True, spent < pause, record.due[now.checkpoint]
        due = min(due, pause) if sure else due
        near = approach(spent, due)
        while going:
            arm, m, done, paid, gained = ALL, 1, 0, 0.0, 0.0
            if sure:
                if t >= clock.until:
                    prepare(t, arms, clock, rng)
                arm = clock.arm
                if arm != ALL and t == clock.candidate:
                    arm = candidate(clock, arms, rng)
                elif arm != ALL:
                    m = min(clock.candidate, last) - t
            if arm == ALL:
                arm = draw_all(spent, ceiling, arms, rng)
                if arm < 0:
                    return end_run(t, state, record)
            if n[arm] == filled[arm]:
                if m >= LEAF and kinds[arm, KIND] > 0 and kinds[arm, KIND + 1] > 0:
                    done, paid, gained = leap(arm, m, scale, due - spent, arms, n, sums, outcomes, rng)
                if done == 0:
                    read_on(arm, n, sums, outcomes)
            if done == 0:
                gained, paid = pull(arm, n, sums, pool, at)
                learn(arm, gained, scale, arms, rng)
                if n[arm] == filled[arm]:
                    settle(arm, sums, kinds, outcomes.laws, outcomes.counts)
                done = 1
            t, spent, collected = t + done, spent + paid, collected + gained
            if arm == clock.arm and arms[CHANCE, arm] > arms[RATE, arm]:
                clock.until = t
            if spent > near:
                spent, collected, near = afresh(due, state)
            going = spent < due and t < last and goes_on(arm, n, filled, kinds)
        status = checkpoint(arm, t, spent, collected, outcomes, state, record, limits)
        spent, collected = now.spent, now.reward
    return status


@dataclass(frozen=True)
class KnownCostTS(ChoiceRule):
    """Thompson sampling over the known cost: the largest R/c, R from Beta(1 + successes, 1 + failures).

    Under a hard budget, of the arms that it affords. A reward becomes a Bernoulli trial, with its share of
    `reward_scale` as its probability. There are no forced first pulls. Luedtke et al. (2019) prove Thompson sampling
    over the cost optimal where a budget is set for each round; to fill one hard budget by it is our reading.

    Parameters
    ----------
    reward_scale : float
        Rewards lie between 0 and this.
    naive : bool
        Draw every arm in every round, as the definition says. By default the same law is played with few draws, and
        many pulls at once while one arm is ahead; the two use their random numbers differently, so runs agree in
        distribution and not one by one. While several arms contend, and near the end of a hard budget, every round is
        drawn.

    Examples
    --------
    >>> cb.KnownCostTS(reward_scale=5)
    KnownCostTS(reward_scale=5, naive=False)
    """

    reward_scale: float = 1.0
    naive: bool = False
    rule = staticmethod(known_cost_ts)

    @property
    def in_blocks(self) -> bool:
        return not self.naive

    @property
    def reward_support(self) -> tuple[float, float]:
        return 0.0, float(self.reward_scale)

    def __post_init__(self):
        positive("reward_scale", self.reward_scale)
        require(isinstance(self.naive, bool), "naive", self.naive, "must be True or False")

    def memory(self, K: int) -> int:
        return K + 2

    def check(self, problem: Problem) -> None:
        require_known_costs(self, problem)
        smallest = float(problem.cost_means.min())      # a score below -1 would never be the largest
        require(smallest >= 0, "smallest cost", smallest, "KnownCostTS needs costs of 0 or more")

    def prepare(self, problem: Problem) -> np.ndarray:
        ceiling = problem.budget + rounding(problem.budget) if problem.hard else inf
        return np.append(ceiling, problem.cost_means)

    def play(self, run: Run, problem: Problem, rng: np.random.Generator) -> int:
        if self.naive:
            return super().play(run, problem, rng)
        arms = np.zeros((RATE + 1, problem.K))
        arms[A], arms[N], arms[COST] = 1.0, 2.0, problem.cost_means
        return run.play(by_events, float(self.reward_scale), arms, new_record(CLOCK), rng)
