"""Budget-CB and CB: optimism over confidence balls, for arms whose means are linear.

Xia, Ding, Zhang, Yu and Qin, "Budgeted Bandit Problems with Continuous Random Costs", Algorithm 2; CB is the rival of
their experiments, OFUL of Abbasi-Yadkori, Pal and Szepesvari (2011), which looks at rewards alone.

For a fixed arm x the largest x . nu over a ball of radius eps around mu in the norm of A is x . mu + eps ||x||, in the
norm of A^-1, and the smallest is as far below. So the best pair of parameters need not be searched for, where the
largest reward is not negative: it is so for some arm while the true parameters are in the ball.
"""

from dataclasses import dataclass, field
from math import inf, log, sqrt
from typing import NamedTuple

import numba as nb
import numpy as np

from ..checks import number, positive, require
from ..engine.compilation import compiled_for
from ..engine.loops import RUNNING, Run, checkpoint, pull
from ..engine.state import new_record
from .base import Policy, Problem
from .budget_ucb import lower_bound, warn_of_lower_bound


class Terms(NamedTuple):
    """What the loop is told: C, S, rho, delta and L of the paper; the smallest expected cost; how it is read."""

    noise: float
    size: float
    ridge: float
    delta: float
    length: float
    smallest: float
    printed: bool           # the radius is that of Algorithm 2, not of Lemma 5
    ratio: bool             # rewards per cost count, not rewards


class Estimates(NamedTuple):
    """Of each arm x, shape (K,): x . estimated reward and cost vectors, x' A^-1 x, and x' A^-1 times the last arm.

    `volume` is log(det A / rho^d), of shape (1,), or (0,) where the radius does not look at it.
    """

    reward: np.ndarray
    cost: np.ndarray
    squared_norm: np.ndarray
    product: np.ndarray
    volume: np.ndarray


@nb.njit(error_model="numpy")
def renew(ridge, vertices, coordinates, inverse, estimates, n, sums):
    """Work out A^-1 and what depends on it from the pulls so far, before roundings of the updates add up."""
    K, d = vertices.shape
    A, rewards, costs = ridge * np.eye(d), np.zeros(d), np.zeros(d)
    for k in range(K):
        for i in range(d if n[k] > 0 else 0):
            rewards[i] += vertices[k, i] * sums[0, k]
            costs[i] += vertices[k, i] * sums[1, k]
            for j in range(d):
                A[i, j] += n[k] * vertices[k, i] * vertices[k, j]
    inverse[:], estimates.volume[:] = np.eye(d), 0.0
    for i in range(d):                                     # Gauss-Jordan; A is positive definite
        estimates.volume[:] += log(A[i, i] / ridge)        # the product of these is the determinant
        inverse[i] /= A[i, i]
        A[i] /= A[i, i]
        for j in range(d):
            if j != i:
                inverse[j] -= A[j, i] * inverse[i]
                A[j] -= A[j, i] * A[i]
    p, q, w, z = estimates.reward, estimates.cost, estimates.squared_norm, np.empty(K)
    p[:], q[:], w[:] = 0.0, 0.0, 0.0
    for i in range(d):                                     # arms in the inner loops: many at a time
        z[:] = 0.0
        for j in range(d):
            for k in range(K):
                z[k] += inverse[i, j] * coordinates[j, k]
        for k in range(K):
            p[k] += z[k] * rewards[i]
            q[k] += z[k] * costs[i]
            w[k] += z[k] * coordinates[i, k]


@nb.njit(inline="always", error_model="numpy")
def shrink(inverse, x, s, u):
    """Update A^-1 by a pull of an arm x; u is A^-1 x, s is 1 + x' u."""
    d = x.size
    for i in range(d):
        u[i] = 0.0
        for j in range(d):
            u[i] += inverse[i, j] * x[j]
    for i in range(d):
        for j in range(d):
            inverse[i, j] -= u[i] * u[j] / s


@nb.njit(error_model="numpy")
def update(number, u, s, missed_r, missed_c, coordinates, p, q, w, z):
    """Update what depends on A^-1 of the first arms by a pull; z = products of these arms with u."""
    for k in range(number):
        z[k] = 0.0
    for i in range(u.size):
        for k in range(number):
            z[k] += coordinates[i, k] * u[i]
    for k in range(number):
        p[k] += z[k] * missed_r / s
        q[k] += z[k] * missed_c / s
        w[k] = max(w[k] - z[k] * z[k] / s, 0.0)


@compiled_for()
def confidence_balls(terms, vertices, coordinates, inverse, estimates, rng, outcomes, state, record, limits):
    """Pull the arm with the largest optimistic ratio (or reward).

    A^-1 and what depends on it change by rank one, and are made anew after 1, 2, 4, 8, ... pulls.
    """
    pool, at, filled = outcomes.pool, outcomes.at, outcomes.filled
    n, sums, now = state
    K, d, status, last = n.size, vertices.shape[1], RUNNING, limits.last_round
    noise, size, ridge, delta, length, smallest, printed, ratio = terms
    t, spent, collected = now.rounds, now.spent, now.reward
    (p, q, w, z, volume), u = estimates, np.empty(d)
    while status == RUNNING:
        going, due, arm = True, record.due[now.checkpoint], 0
        while going:
            growth = volume[0] if volume.size > 0 else d * log(1.0 + (t + 1) * length * length / (ridge * d))
            eps = size * sqrt(ridge) + (noise * sqrt(growth) - 2.0 * log(delta) if printed
                                        else noise * sqrt(growth - 2.0 * log(delta)))
            if t == 0:
                arm = int(rng.random() * K)
            else:
                best = -inf
                for k in range(K):
                    width = eps * sqrt(w[k])
                    value = min(p[k] + width, 1.0) / max(q[k] - width, smallest) if ratio else p[k] + width
                    if value > best:
                        arm, best = k, value
            reward, cost = pull(arm, n, sums, pool, at)
            t, spent, collected = t + 1, spent + cost, collected + reward
            going = spent < due and t < last and n[arm] < filled[arm]
            missed_r, missed_c = reward - p[arm], cost - q[arm]
            s = 1.0 + w[arm]
            if volume.size > 0:
                volume[0] += log(s)
            shrink(inverse, vertices[arm], s, u)
            update(K, u, s, missed_r, missed_c, coordinates, p, q, w, z)
            if t & (t - 1) == 0:
                renew(ridge, vertices, coordinates, inverse, estimates, n, sums)
        status = checkpoint(arm, t, spent, collected, outcomes, state, record, limits)
        spent, collected = now.spent, now.reward
    return status


# ---- Without looking at every arm -------------------------------------------------------------------

# All arms are looked at in every round if there are few, or where x' A^-1 x begins so large that roundings could
# exceed the room that bounds leave them.
FEW, MOST = 32, 1e6
CLEAR = 1e-7            # this room, in units of reward and cost; estimates are off by less than 1e-9 (tested)
LONGEST = 2**16         # how many pulls are remembered for the arms that are not looked at

# Contenders; pulls remembered; evaluations since the last survey; the radius that the bounds of all other arms are made
# for, and the largest of these bounds; by which share the radius exceeds eps at a survey.
CONTEST = np.dtype([("contenders", "i8"), ("pulls", "i8"), ("work", "i8"), ("radius", "f8"), ("rest", "f8"),
                    ("spread", "f8")])


class Contest(NamedTuple):
    """The contenders, who may be pulled next, and what it takes to bring the other arms up to date.

    The arrays of contenders have room for all arms; `positions` are in order.
    """

    memory: np.record
    positions: np.ndarray       # (K,)
    coordinates: np.ndarray     # (d, K)        of the contenders
    estimates: np.ndarray       # (3, K)        of the contenders, as in `Estimates`
    known: np.ndarray           # (K,)          how many of the pulls remembered the `Estimates` of an arm know of
    u: np.ndarray               # (d, LONGEST)  of each of these pulls: A^-1 x of the arm,
    missed: np.ndarray          # (3, LONGEST)  what the estimates missed of reward and cost, and 1 + x' A^-1 x
    drift: np.ndarray           # (4, d)        since the survey: change of both estimated parameters; A times it
    scratch: np.ndarray         # (5, K)

    @classmethod
    def of(cls, K: int, coordinates: np.ndarray, squared_norm: np.ndarray) -> "Contest":
        """Before the first pull: all arms are contenders."""
        memory, estimates, d = new_record(CONTEST), np.zeros((3, K)), len(coordinates)
        memory.contenders, memory.radius, memory.rest, memory.spread, estimates[2] = K, inf, -inf, 0.1, squared_norm
        return cls(memory, np.arange(K), coordinates.copy(), estimates, np.zeros(K, np.int64), np.zeros((d, LONGEST)),
                   np.zeros((3, LONGEST)), np.zeros((4, d)), np.zeros((5, K)))


@nb.njit(inline="always", error_model="numpy")
def reach(eps, drift):
    """The radius, around the estimates at the survey, of a ball that holds today's ball: for rewards and for costs."""
    square_r, square_c = 0.0, 0.0
    for i in range(drift.shape[1]):
        square_r += drift[0, i] * drift[2, i]
        square_c += drift[1, i] * drift[3, i]
    return eps + sqrt(max(square_r, square_c, 0.0))


@nb.njit(error_model="numpy")
def largest(number, eps, smallest, ratio, p, q, w, value):
    """The first of the contenders with the largest value, and that value."""
    for i in range(number):
        width = eps * sqrt(w[i])
        value[i] = min(p[i] + width, 1.0) / max(q[i] - width, smallest) if ratio else p[i] + width
    first, best = 0, -inf
    for i in range(number):
        if value[i] > best:
            first, best = i, value[i]
    return first, best


@nb.njit(inline="always", error_model="numpy")
def remember(x, u, s, missed_r, missed_c, memory, us, missed, drift):
    """Note a pull of an arm x."""
    h, d = memory.pulls, x.size
    missed[0, h], missed[1, h], missed[2, h] = missed_r, missed_c, s
    for i in range(d):
        us[i, h] = u[i]
    for j in range(2):
        along = missed[j, h]
        for i in range(d):
            along += x[i] * drift[j, i]
        for i in range(d):
            drift[j, i] += u[i] * missed[j, h] / s
            drift[2 + j, i] += x[i] * along
    memory.pulls = h + 1


@nb.njit(error_model="numpy")
def settle(k, known, pulls, coordinates, u, missed, p, q, w, scratch):
    """Bring an arm up to date: by the operations of `update`, from the pulls that its estimates do not know of."""
    z, r, c, p_k, q_k, w_k = scratch[0], scratch[1], scratch[2], p[k], q[k], w[k]
    for start in range(known[k], pulls, z.size):
        number = min(z.size, pulls - start)
        for m in range(number):
            z[m] = 0.0
        for i in range(u.shape[0]):
            for m in range(number):
                z[m] += coordinates[i, k] * u[i, start + m]
        for m in range(number):
            s = missed[2, start + m]
            r[m], c[m], z[m] = z[m] * missed[0, start + m] / s, z[m] * missed[1, start + m] / s, z[m] * z[m] / s
        for m in range(number):
            p_k, q_k, w_k = p_k + r[m], q_k + c[m], max(w_k - z[m], 0.0)
    p[k], q[k], w[k], known[k] = p_k, q_k, w_k, pulls


@nb.njit(error_model="numpy")
def put_back(estimates, contest):
    """Write the contenders' estimates back to where those of all arms are."""
    memory, positions, _, near, known, _, _, _, _ = contest
    p, q, w, _, _ = estimates
    for i in range(memory.contenders):
        k = positions[i]
        p[k], q[k], w[k], known[k] = near[0, i], near[1, i], near[2, i], memory.pulls


@nb.njit(error_model="numpy")
def take_out(coordinates, estimates, contest):
    """Bring the contenders up to date, and put what is known of them where they are updated together."""
    memory, positions, chosen, near, known, u, missed, _, scratch = contest
    (p, q, w, _, _), number, pulls = estimates, memory.contenders, memory.pulls
    for i in range(number):
        k = positions[i]
        if known[k] < pulls:
            settle(k, known, pulls, coordinates, u, missed, p, q, w, scratch)
        near[0, i], near[1, i], near[2, i] = p[k], q[k], w[k]
    for j in range(coordinates.shape[0]):
        for i in range(number):
            chosen[j, i] = coordinates[j, positions[i]]


@nb.njit(error_model="numpy")
def survey(coordinates, inverse, n, sums, p, q, w, z):
    """The estimates of all arms, up to rounding, from scratch."""
    d, K = coordinates.shape
    parameters, seen = np.zeros((2, d)), np.zeros((2, d))
    for k in range(K):
        for i in range(d if n[k] > 0 else 0):
            seen[0, i] += coordinates[i, k] * sums[0, k]
            seen[1, i] += coordinates[i, k] * sums[1, k]
    p[:], q[:], w[:] = 0.0, 0.0, 0.0
    for i in range(d):
        for j in range(d):
            parameters[0, i] += inverse[i, j] * seen[0, j]
            parameters[1, i] += inverse[i, j] * seen[1, j]
        z[:] = 0.0
        for j in range(i + 1):                              # the inverse is symmetric
            entry = inverse[i, j] if i == j else 2.0 * inverse[i, j]
            for k in range(K):
                z[k] += coordinates[j, k] * entry
        for k in range(K):
            p[k] += coordinates[i, k] * parameters[0, i]
            q[k] += coordinates[i, k] * parameters[1, i]
            w[k] += coordinates[i, k] * z[k]


@nb.njit(error_model="numpy")
def elect(eps, smallest, ratio, p, q, w, bound, contest):
    """Make those arms contenders whose bound comes near to the largest value.

    A bound is the value of an arm for a larger radius. No ratio is above 1 / smallest; if arms have that value, the
    first few are enough, for the lowest position wins: all other arms that may have it stand behind all contenders.
    """
    memory, positions, top = contest.memory, contest.positions, 1.0 / smallest if ratio else inf
    radius, value, at_value, number, rest, leaders = memory.radius, -inf, 0.0, 0, -inf, 0
    for k in range(w.size):
        root = sqrt(max(w[k], 0.0))
        near, far = eps * root, radius * root * (1.0 + CLEAR) + CLEAR
        today, bound[k] = p[k] + near, p[k] + far
        if ratio:
            today = min(today, 1.0) / max(q[k] - near, smallest)
            bound[k] = max(min(bound[k], 1.0), 0.0) / max(q[k] - far, smallest)
        w[k] = today                                       # the norm is not needed any more
        if today > value:
            value, at_value = today, bound[k]
    floor = value - 0.5 * (at_value - value)
    for k in range(w.size):
        if bound[k] >= floor and leaders < 8:
            positions[number] = k
            number += 1
            leaders += w[k] >= top
        else:
            rest = max(rest, bound[k])
    memory.contenders, memory.rest = number, rest


@nb.njit(error_model="numpy")
def new_contest(tries, eps, smallest, ratio, coordinates, inverse, estimates, contest, n, sums):
    """Find out who the contenders are; after some failures all arms are.

    The wider the radius, the more contenders and the fewer surveys, one of which costs as much as to evaluate and
    update eight times as many contenders as there are arms.
    """
    memory, scratch, K = contest.memory, contest.scratch, n.size
    put_back(estimates, contest)
    step = min(max(sqrt(8.0 * K / (memory.work + 1.0)), 0.5), 2.0)
    memory.spread, memory.work = min(max(memory.spread * step, 1e-4), 4.0), 0
    memory.radius = eps * (1.0 + memory.spread)
    survey(coordinates, inverse, n, sums, scratch[0], scratch[1], scratch[2], scratch[3])
    elect(eps, smallest, ratio, scratch[0], scratch[1], scratch[2], scratch[4], contest)
    if tries == 3:      # pragma: no cover - in compiled runs of thousands of arms
        contest.positions[:] = np.arange(K)
        memory.contenders, memory.radius, memory.rest = K, inf, -inf
    take_out(coordinates, estimates, contest)
    contest.drift[:] = 0.0


@compiled_for()
def contest_of_balls(terms, vertices, coordinates, inverse, estimates, contest, rng, outcomes, state, record, limits):
    """Pull the same arms as `confidence_balls`, to the last bit, but evaluate and update the contenders only.

    A survey finds them, and an upper bound for all other arms. The bound holds while today's balls are within larger
    ones around the parameters that were estimated then, since the norms ||x|| never grow. An arm that becomes a
    contender is brought up to date by the operations that it missed: so nothing depends on who was looked at when.
    """
    pool, at, filled = outcomes.pool, outcomes.at, outcomes.filled
    n, sums, now = state
    K, d, status, last = n.size, vertices.shape[1], RUNNING, limits.last_round
    noise, size, ridge, delta, length, smallest, printed, ratio = terms
    memory, positions, chosen, near, known, us, missed, drift, scratch = contest
    p, q, w, z, value, u = near[0], near[1], near[2], np.empty(K), np.empty(K), np.empty(d)
    volume, confidence = estimates.volume, 2.0 * log(delta)
    t, spent, collected = now.rounds, now.spent, now.reward
    while status == RUNNING:
        going, due, arm = True, record.due[now.checkpoint], 0
        while going:
            growth = volume[0] if volume.size > 0 else d * log(1.0 + (t + 1) * length * length / (ridge * d))
            eps = size * sqrt(ridge) + (noise * sqrt(growth) - confidence if printed
                                        else noise * sqrt(growth - confidence))
            place, best, tries = int(rng.random() * K) if t == 0 else -1, inf, 0
            while place < 0:
                if reach(eps, drift) <= memory.radius and (memory.work < 16 * K or tries > 0 or memory.rest == -inf):
                    place, best = largest(memory.contenders, eps, smallest, ratio, p, q, w, value)
                    memory.work += memory.contenders
                if place < 0 or not (best > memory.rest or (ratio and best == 1.0 / smallest) or tries >= 3):
                    place, tries = -1, tries + 1
                    new_contest(tries, eps, smallest, ratio, coordinates, inverse, estimates, contest, n, sums)
            arm = positions[place]
            reward, cost = pull(arm, n, sums, pool, at)
            t, spent, collected = t + 1, spent + cost, collected + reward
            going = spent < due and t < last and n[arm] < filled[arm]
            missed_r, missed_c, s = reward - p[place], cost - q[place], 1.0 + w[place]
            if volume.size > 0:
                volume[0] += log(s)
            shrink(inverse, vertices[arm], s, u)
            update(memory.contenders, u, s, missed_r, missed_c, chosen, p, q, w, z)
            remember(vertices[arm], u, s, missed_r, missed_c, memory, us, missed, drift)
            if t & (t - 1) == 0 or memory.pulls == missed.shape[1]:
                put_back(estimates, contest)
                if t & (t - 1) == 0:
                    renew(ridge, vertices, coordinates, inverse, estimates, n, sums)
                    memory.radius = 0.0                                     # a survey is due
                else:           # pragma: no cover - in compiled runs of thousands of pulls
                    for k in range(K):
                        settle(k, known, memory.pulls, coordinates, us, missed, *estimates[:3], scratch)
                known[:], memory.pulls = 0, 0
                take_out(coordinates, estimates, contest)
        status = checkpoint(arm, t, spent, collected, outcomes, state, record, limits)
        spent, collected = now.spent, now.reward
    return status


@dataclass(frozen=True)
class CB(Policy):
    """CB (OFUL): the arm with the largest reward over the confidence ball, x . mu_r + eps ||x||; costs are ignored.

    Every round has to be played: a pull moves the estimates of all arms, and its noise has infinitely many values.

    Parameters
    ----------
    delta : float, optional
        Probability with which the true parameters may leave the ball, in (0, 1); by default 1 / B.
    ridge : float
        A starts at ridge times the identity (rho in the paper), above 0.
    noise : float, optional
        The sub-Gaussian constant C of rewards and costs that the policy is told, above 0; by default the bandit's.
        C = 1/2 holds for whatever lies in [0, 1].

    Examples
    --------
    >>> cb.CB(delta=0.05)
    CB(delta=0.05, ridge=1.0, noise=None)
    """

    delta: float | None = None
    ridge: float = 1.0
    noise: float | None = field(default=None, kw_only=True)
    support = (0.0, 1.0)

    def __post_init__(self):
        allowed = "must be a number in (0, 1), or None for 1 / B"
        if self.delta is not None:
            require(0 < number("delta", self.delta, allowed=allowed) < 1, "delta", self.delta, allowed)
        positive("ridge", self.ridge)
        if self.noise is not None:
            positive("noise", self.noise)

    @property
    def determinant(self) -> bool:
        """Whether the radius looks at the determinant of A, and shares delta between two balls."""
        return False

    def goal(self, problem: Problem) -> tuple[float, bool, bool]:
        """Smallest expected cost, whether the radius is the printed one, and whether ratios count."""
        return 1.0, False, False

    def check(self, problem: Problem) -> None:
        label = type(self).__name__
        require(problem.linear is not None, f"{label}, bandit", "not linear", "the policy needs a LinearBandit")
        require(not problem.hard, "stop", "a hard budget", f"{label} may pull an arm that is not affordable any more")
        require(self.delta is not None or problem.budget < inf, "delta", None,
                f"without a budget B {label} can't take 1 / B: give a number in (0, 1)")

    def play(self, run: Run, problem: Problem, rng: np.random.Generator) -> int:
        linear = problem.linear
        x = linear.vertices.copy()      # the loop is compiled for arrays that may be written
        norms = (x * x).sum(axis=1)
        delta = min(1 / problem.budget, 0.5) if self.delta is None else self.delta
        delta = delta / 2 if self.determinant else delta        # two balls share it
        noise = linear.noise if self.noise is None else self.noise
        floats = map(float, (noise, linear.size, self.ridge, delta, norms.max() ** 0.5))
        estimates = Estimates(*np.zeros((4, problem.K)), np.zeros(int(self.determinant)))
        estimates.squared_norm[:] = norms / self.ridge
        told = Terms(*floats, *self.goal(problem)), x, np.ascontiguousarray(x.T), np.eye(x.shape[1]) / self.ridge
        if problem.K <= FEW or norms.max() > MOST * self.ridge:
            return run.play(confidence_balls, *told, estimates, rng)
        return run.play(contest_of_balls, *told, estimates, Contest.of(problem.K, told[2], norms / self.ridge), rng)


@dataclass(frozen=True)
class BudgetCB(CB):
    """Budget-CB: the arm with the largest min(x . mu_r + eps ||x||, 1) / max(x . mu_c - eps ||x||, lambda).

    eps = C sqrt(d log(1 + t L^2 / (rho d)) + 2 log(1 / delta)) + S sqrt(rho), with the noise's constant C, the longest
    arm's norm L and the bound S on the parameters' norms. Every round has to be played, as in `CB`.

    Parameters
    ----------
    delta, ridge, noise
        As in `CB`.
    min_cost : float, optional
        lambda, a lower bound of the expected costs; by default the instance's smallest expected cost.
    radius : {"proof", "printed", "determinant"}
        Algorithm 2 prints eps with 2 log(1 / delta) outside of the square root; Lemma 5 and Eq. (13) have it inside.
        There are two balls, of which each may then fail with probability delta. "determinant", ours, is
        C sqrt(log(det A / rho^d) + 2 log(2 / delta)) + S sqrt(rho), with which both hold with probability 1 - delta;
        the printed term d log(1 + t L^2 / (rho d)) is an upper bound of the determinant's.

    Examples
    --------
    >>> cb.BudgetCB(min_cost=0.1)
    BudgetCB(delta=None, ridge=1.0, noise=None, min_cost=0.1, radius='proof')
    """

    min_cost: float | None = None
    radius: str = "proof"

    def __post_init__(self):
        super().__post_init__()
        if self.min_cost is not None:
            positive("min_cost", self.min_cost)
        require(self.radius in ("proof", "printed", "determinant"), "radius", self.radius,
                "must be 'proof', 'printed' or 'determinant'")

    @property
    def determinant(self) -> bool:
        return self.radius == "determinant"

    def goal(self, problem: Problem) -> tuple[float, bool, bool]:
        return float(lower_bound(self, problem)), self.radius == "printed", True

    def rehearse(self, name: str, problem: Problem) -> None:
        super().rehearse(name, problem)
        warn_of_lower_bound(self, problem)
