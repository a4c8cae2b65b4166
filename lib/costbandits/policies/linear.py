"""Budget-CB and CB: optimism over confidence balls, for arms whose means are linear.

Xia, Ding, Zhang, Yu and Qin, "Budgeted Bandit Problems with Continuous Random Costs", Algorithm 2; CB is the rival of
their experiments, OFUL of Abbasi-Yadkori, Pal and Szepesvari (2011), which looks at rewards alone.

For a fixed arm x the largest x . nu over a ball of radius eps around mu in the norm of A is x . mu + eps ||x||, in the
norm of A^-1, and the smallest is as far below. So the best pair of parameters need not be searched for, where the
largest reward is not negative: it is so for some arm while the true parameters are in the ball.
"""

from dataclasses import dataclass
from math import inf, log, sqrt
from typing import NamedTuple

import numba as nb
import numpy as np

from ..checks import number, positive, require
from ..engine.compilation import compiled_for
from ..engine.loops import RUNNING, Run, checkpoint, pull
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
    """Of each arm x, shape (K,): x . estimated reward and cost vectors, x' A^-1 x, and x' A^-1 times the last arm."""

    reward: np.ndarray
    cost: np.ndarray
    squared_norm: np.ndarray
    product: np.ndarray


@nb.njit(error_model="numpy")
def renew(ridge, vertices, inverse, estimates, n, sums):
    """Work out A^-1 and what depends on it from the pulls so far, before roundings of the updates add up."""
    K, d = vertices.shape
    A, rewards, costs = ridge * np.eye(d), np.zeros(d), np.zeros(d)
    for k in range(K):
        for i in range(d):
            rewards[i] += vertices[k, i] * sums[0, k]
            costs[i] += vertices[k, i] * sums[1, k]
            for j in range(d):
                A[i, j] += n[k] * vertices[k, i] * vertices[k, j]
    inverse[:] = np.eye(d)
    for i in range(d):                                     # Gauss-Jordan; A is positive definite
        inverse[i] /= A[i, i]
        A[i] /= A[i, i]
        for j in range(d):
            if j != i:
                inverse[j] -= A[j, i] * inverse[i]
                A[j] -= A[j, i] * A[i]
    for k in range(K):
        p, q, w = 0.0, 0.0, 0.0
        for i in range(d):
            z = 0.0
            for j in range(d):
                z += inverse[i, j] * vertices[k, j]
            p, q, w = p + z * rewards[i], q + z * costs[i], w + z * vertices[k, i]
        estimates.reward[k], estimates.cost[k], estimates.squared_norm[k] = p, q, w


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
    (p, q, w, z), u = estimates, np.empty(d)
    while status == RUNNING:
        going, due, arm = True, record.due[now.checkpoint], 0
        while going:
            growth = d * log(1.0 + (t + 1) * length * length / (ridge * d))
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
            for i in range(d):                             # u = A^-1 x
                u[i] = 0.0
                for j in range(d):
                    u[i] += inverse[i, j] * vertices[arm, j]
            s = 1.0 + w[arm]
            for i in range(d):
                for j in range(d):
                    inverse[i, j] -= u[i] * u[j] / s
            z[:] = 0.0
            for i in range(d):                             # z = products of all arms with u
                for k in range(K):
                    z[k] += coordinates[i, k] * u[i]
            for k in range(K):
                p[k] += z[k] * missed_r / s
                q[k] += z[k] * missed_c / s
                w[k] = max(w[k] - z[k] * z[k] / s, 0.0)
            if t & (t - 1) == 0:
                renew(ridge, vertices, inverse, estimates, n, sums)
        status = checkpoint(arm, t, spent, collected, outcomes, state, record, limits)
    return status


@dataclass(frozen=True)
class CB(Policy):
    """CB (OFUL): the arm with the largest reward over the confidence ball, x . mu_r + eps ||x||; costs are ignored.

    Parameters
    ----------
    delta : float, optional
        Probability with which the true parameters may leave the ball, in (0, 1); by default 1 / B.
    ridge : float
        A starts at ridge times the identity (rho in the paper), above 0.

    Examples
    --------
    >>> cb.CB(delta=0.05)
    CB(delta=0.05, ridge=1.0)
    """

    delta: float | None = None
    ridge: float = 1.0
    support = (0.0, 1.0)
    loop = staticmethod(confidence_balls)

    def __post_init__(self):
        allowed = "must be a number in (0, 1), or None for 1 / B"
        if self.delta is not None:
            require(0 < number("delta", self.delta, allowed=allowed) < 1, "delta", self.delta, allowed)
        positive("ridge", self.ridge)

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
        x = linear.vertices
        norms = (x * x).sum(axis=1)
        delta = min(1 / problem.budget, 0.5) if self.delta is None else self.delta
        floats = map(float, (linear.noise, linear.size, self.ridge, delta, norms.max() ** 0.5))
        estimates = Estimates(*np.zeros((4, problem.K)))
        estimates.squared_norm[:] = norms / self.ridge
        return run.play(self.loop, Terms(*floats, *self.goal(problem)), x, np.ascontiguousarray(x.T),
                        np.eye(x.shape[1]) / self.ridge, estimates, rng)


@dataclass(frozen=True)
class BudgetCB(CB):
    """Budget-CB: the arm with the largest min(x . mu_r + eps ||x||, 1) / max(x . mu_c - eps ||x||, lambda).

    eps = C sqrt(d log(1 + t L^2 / (rho d)) + 2 log(1 / delta)) + S sqrt(rho), with the noise's constant C, the longest
    arm's norm L and the bound S on the parameters' norms.

    Parameters
    ----------
    delta, ridge
        As in `CB`.
    min_cost : float, optional
        lambda, a lower bound of the expected costs; by default the instance's smallest expected cost.
    radius : {"proof", "printed"}
        Algorithm 2 prints eps with 2 log(1 / delta) outside of the square root; Lemma 5 and Eq. (13) have it inside.

    Examples
    --------
    >>> cb.BudgetCB(min_cost=0.1)
    BudgetCB(delta=None, ridge=1.0, min_cost=0.1, radius='proof')
    """

    min_cost: float | None = None
    radius: str = "proof"

    def __post_init__(self):
        super().__post_init__()
        if self.min_cost is not None:
            positive("min_cost", self.min_cost)
        require(self.radius in ("proof", "printed"), "radius", self.radius, "must be 'proof' or 'printed'")

    def goal(self, problem: Problem) -> tuple[float, bool, bool]:
        return float(lower_bound(self, problem)), self.radius == "printed", True

    def rehearse(self, name: str, problem: Problem) -> None:
        super().rehearse(name, problem)
        warn_of_lower_bound(self, problem)
