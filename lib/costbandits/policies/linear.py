"""Budget-CB and CB: optimism over confidence balls, for arms whose means are linear.

Xia, Ding, Zhang, Yu and Qin, "Budgeted Bandit Problems with Continuous Random Costs", Algorithm 2; CB is the rival of
their experiments, OFUL of Abbasi-Yadkori, Pal and Szepesvari (2011), which looks at rewards alone.

A is rho I and the sum of x x' over all pulls, of arms x. The parameters of rewards are estimated by mu, which is A^-1
times the sum of x r, with r the reward that the pull paid; those of costs likewise.

For a fixed arm x the largest x . nu over a ball of radius eps around mu in the norm of A is x . mu + eps ||x||, in the
norm of A^-1, and the smallest is as far below. So the best pair of parameters need not be searched for, where the
largest reward is not negative: it is so for some arm while the true parameters are in the ball.
"""

from dataclasses import KW_ONLY, dataclass
from functools import partial
from math import inf, log, sqrt
from typing import NamedTuple

import numba as nb
import numpy as np

from ..checks import number, positive, require
from ..engine.driver import step
from .base import NamedRule, Problem, checked
from .budget_ucb import _LowestCost


class Told(NamedTuple):
    """C, S, rho, delta and L of the paper; the smallest expected cost; how the paper is read; and the arms."""
    noise: float
    size: float
    ridge: float
    delta: float
    length: float
    smallest: float
    printed: bool               # the radius is that of Algorithm 2, not of Lemma 5
    ratio: bool                 # rewards per cost count, not rewards
    vertices: np.ndarray        # (K, d)
    coordinates: np.ndarray     # (d, K)    the same, for loops over many arms at a time


class Estimates(NamedTuple):
    """Of each arm x, shape (K,): x . estimated reward and cost vectors, x' A^-1 x, and x' A^-1 times the last arm."""
    reward: np.ndarray
    cost: np.ndarray
    squared_norm: np.ndarray
    product: np.ndarray


class Memory(NamedTuple):
    """What is worked out from the pulls."""
    inverse: np.ndarray         # (d, d)    A^-1
    estimates: Estimates
    volume: np.ndarray          # (1,)      log(det A / rho^d); (0,) where the radius does not look at it
    local: np.ndarray           # (d,)      A^-1 times the last arm


class Pull(NamedTuple):
    """A pull of an arm x: u = A^-1 x and s = 1 + x' u; what the estimates missed of its reward and cost."""
    u: np.ndarray
    s: float
    reward: float
    cost: float


# Most of this is inlined: to hand over so many arrays at a call would take longer than the rest of a round.

@step
def radius(t, told, volume):
    """eps in round t, as in `BudgetCB`: by log det A / rho^d, where it is kept, or by the bound that Lemma 5 has."""
    d, confidence = told.vertices.shape[1], 2.0 * log(told.delta)
    growth = volume[0] if volume.size > 0 else d * log(1.0 + t * told.length * told.length / (told.ridge * d))
    noise = told.noise * sqrt(growth) - confidence if told.printed else told.noise * sqrt(growth - confidence)
    return told.size * sqrt(told.ridge) + noise


@step
def optimism(reward, cost, width, ratio, smallest):
    """The largest ratio, or reward, where the estimates are off by `width` at most."""
    return min(reward + width, 1.0) / max(cost - width, smallest) if ratio else reward + width


@step
def pull_of(k, outcome, estimates, u):
    """A pull of arm k, in the order of the estimates; u is worked out by `shrink`."""
    missed_r, missed_c = outcome.reward - estimates.reward[k], outcome.cost - estimates.cost[k]
    return Pull(u, 1.0 + estimates.squared_norm[k], missed_r, missed_c)


@step
def shrink(x, pull, memory):
    """Update A^-1 by a pull of an arm x, by rank one."""
    inverse, u, s, d = memory.inverse, pull.u, pull.s, x.size
    if memory.volume.size > 0:
        memory.volume[0] += log(s)
    for i in range(d):
        u[i] = 0.0
        for j in range(d):
            u[i] += inverse[i, j] * x[j]
    for i in range(d):
        for j in range(d):
            inverse[i, j] -= u[i] * u[j] / s


@nb.njit(error_model="numpy")
def update(number, pull, coordinates, estimates):
    """Update what depends on A^-1, of the first arms, by a pull."""
    (p, q, w, z), (u, s, missed_r, missed_c) = estimates, pull
    for k in range(number):
        z[k] = 0.0
    for i in range(u.size):
        for k in range(number):
            z[k] += coordinates[i, k] * u[i]
    for k in range(number):
        p[k] += z[k] * missed_r / s
        q[k] += z[k] * missed_c / s
        w[k] = max(w[k] - z[k] * z[k] / s, 0.0)


@nb.njit(error_model="numpy")
def renew(arms, told, memory):
    """Work out A^-1 and what depends on it from the pulls so far, before roundings of the updates add up."""
    (K, d), (inverse, (p, q, w, _), volume, _) = told.vertices.shape, memory
    A, rewards, costs, z = told.ridge * np.eye(d), np.zeros(d), np.zeros(d), np.empty(K)
    for k in range(K):
        x = told.vertices[k]
        for i in range(d if arms.n[k] > 0 else 0):
            rewards[i] += x[i] * arms.reward[k]
            costs[i] += x[i] * arms.cost[k]
            for j in range(d):
                A[i, j] += arms.n[k] * x[i] * x[j]
    inverse[:], volume[:] = np.eye(d), 0.0
    for i in range(d):                                     # Gauss-Jordan; A is positive definite
        volume[:] += log(A[i, i] / told.ridge)             # the product of these is the determinant
        inverse[i] /= A[i, i]
        A[i] /= A[i, i]
        for j in range(d):
            if j != i:
                inverse[j] -= A[j, i] * inverse[i]
                A[j] -= A[j, i] * A[i]
    p[:], q[:], w[:] = 0.0, 0.0, 0.0
    for i in range(d):                                     # arms in the inner loops: many at a time
        z[:] = 0.0
        for j in range(d):
            for k in range(K):
                z[k] += inverse[i, j] * told.coordinates[j, k]
        for k in range(K):
            p[k] += z[k] * rewards[i]
            q[k] += z[k] * costs[i]
            w[k] += z[k] * told.coordinates[i, k]


@step
def confidence_balls(t, spent, arms, told, p, memory, rng):
    """The arm with the largest optimistic ratio, or reward (Algorithm 2); a random one to begin with."""
    estimates, ratio, smallest = memory.estimates, told.ratio, told.smallest
    if t == 1:
        return int(rng.random() * arms.n.size)
    eps, arm, best = radius(t, told, memory.volume), 0, -inf
    for k in range(arms.n.size):
        width = eps * sqrt(estimates.squared_norm[k])
        value = optimism(estimates.reward[k], estimates.cost[k], width, ratio, smallest)
        if value > best:
            arm, best = k, value
    return arm


@step
def rank_one(t, arm, outcome, arms, told, p, memory, rng):
    """A^-1 and what depends on it change by rank one, and are made anew after 1, 2, 4, 8, ... pulls."""
    pull = pull_of(arm, outcome, memory.estimates, memory.local)
    shrink(told.vertices[arm], pull, memory)
    update(arms.n.size, pull, told.coordinates, memory.estimates)
    if t & (t - 1) == 0:
        renew(arms, told, memory)


@dataclass(frozen=True)
class CB(NamedRule):
    """CB (OFUL): the arm with the largest reward over the confidence ball, x . mu_r + eps ||x||; costs are ignored.

    Every round has to be played: a pull moves the estimates of all arms, and its noise has infinitely many values.

    Parameters
    ----------
    delta : float, optional
        Probability with which the true parameters may leave the ball, in (0, 1); by default 1 / B, 1/2 at most.
    ridge : float
        A starts at ridge times the identity (rho in the paper), above 0.
    noise : float, optional
        The sub-Gaussian constant C of rewards and costs, above 0; by default the bandit's. C = 1/2 holds on [0, 1].

    Examples
    --------
    >>> cb.CB(delta=0.05)
    CB(delta=0.05, ridge=1.0, noise=None)
    """
    delta: float | None = checked(
        partial(number, above=0, below=1, allowed="must be a number in (0, 1), or None for 1 / B"), None)
    ridge: float = checked(positive, 1.0)
    _: KW_ONLY
    noise: float | None = checked(positive, None)
    radius, ratio = "proof", False
    rule, learn = staticmethod(confidence_balls), staticmethod(rank_one)
    support = (0.0, 1.0)

    def check(self, problem: Problem) -> None:
        label = type(self).__name__
        require(problem.linear is not None, f"{label}, bandit", "not linear", "the policy needs a LinearBandit")
        require(not problem.hard, "stop", "a hard budget", f"{label} may pull an arm that is not affordable any more")
        require(self.delta is not None or problem.budget < inf, "delta", None,
                f"without a budget B {label} can't take 1 / B: give a number in (0, 1)")

    def told(self, problem: Problem) -> Told:
        linear, x = problem.linear, problem.linear.vertices.copy()      # rules are compiled for what may be written
        delta = min(1 / problem.budget, 0.5) if self.delta is None else self.delta
        delta = delta / 2 if self.radius == "determinant" else delta    # two balls share it
        noise, length = linear.noise if self.noise is None else self.noise, (x * x).sum(axis=1).max() ** 0.5
        smallest = self.lowest_cost(problem) if self.ratio else 1.0      # for CB costs do not count
        floats = map(float, (noise, linear.size, self.ridge, delta, length, smallest))
        return Told(*floats, self.radius == "printed", self.ratio, x, np.ascontiguousarray(x.T))

    def remember(self, problem: Problem) -> Memory:
        x, estimates = problem.linear.vertices, Estimates(*np.zeros((4, problem.K)))
        estimates.squared_norm[:] = (x * x).sum(axis=1) / self.ridge
        volume, d = np.zeros(int(self.radius == "determinant")), x.shape[1]
        return Memory(np.eye(d) / self.ridge, estimates, volume, np.zeros(d))


@dataclass(frozen=True)
class BudgetCB(_LowestCost, CB):
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
    radius: str = checked(("proof", "printed", "determinant"), "proof")
    ratio = True
