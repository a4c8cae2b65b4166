"""IMED where pulls cost something: the arm whose being the best would explain its pulls at the least expense.

After Honda and Takemura, "Non-Asymptotic Analysis of a New Bandit Algorithm for Semi-Bounded Rewards" (2015). At a
ratio rho a pull is worth X = R - rho C, and an arm is as good as rho where X has a mean of 0 or more. Let rho be the
largest empirical ratio, and D_k the least divergence of what arm k has shown to a law as good as that. IMED pulls

    argmin_k  n_k D_k + log n_k.

`IMED` has the divergence of independent outcomes 0 and 1. `MomentIMED` knows of X its mean, its variance, and that it
is at most b, the largest reward; of all laws it takes the one whose divergence is least. That one has two values, of
which one is b: Honda and Takemura, "Stochastic Bandit Based on Empirical Moments" (2012), on rewards in [0, 1]. To play
it by ratios, under a budget and with costs that have no upper bound, is ours.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, log, log1p, sqrt
from typing import NamedTuple

import numpy as np

from ..checks import positive, rounding
from ..engine.driver import END, jit
from ..engine.numerics import bent
from .base import NamedRule, Problem, checked
from .kl_ucb import TINY, divergence

# Which variance X has, by what is said of rewards and costs of a pull; and IMED for outcomes 0 and 1.
DEPENDENCE = ("independent", "any", "sample")
INDEPENDENT, ANY, SAMPLE, BERNOULLI = range(4)


class Tuning(NamedTuple):
    """The factor of log n, the largest reward, and which divergence."""
    scale: float
    max_reward: float
    kind: int


class Told(NamedTuple):
    """Whether no cost varies; what each pull costs then, else 0; and the most that may be spent under a hard budget."""
    known: bool
    price: np.ndarray
    ceiling: float


class Products(NamedTuple):
    """Of each arm, the sum of reward times cost; kept for a sample variance alone."""
    sums: np.ndarray


@jit
def of_moments(u, variance, top):
    """The least divergence of a law with mean -u < 0 and this variance, nothing above `top`, to one of mean 0 or more.

    With w = top + u it is (w^2 log(w / top) - variance log(1 + u w / variance)) / (w^2 + variance). Both logarithms
    are taken without their linear terms, which cancel.
    """
    if top <= 0.0:
        return inf
    w = top + u
    if variance <= TINY * w * w:
        return log(w / top)
    return -(w * w * bent(-u / w) + variance * bent(u * w / variance)) / (w * w + variance)


@jit
def of_coins(r, c, rho):
    """The least kl(r, x) + kl(c, y) with x >= rho y, where r < rho c.

    As in `kl_ucb`: (x - r)/(1 - x) = (c - y)/(1 - y) = s, for which x = rho y is a quadratic equation; where all costs
    were 1, s is 1 at most.
    """
    one, ratio = 1.0 / max(rho, 1.0), min(rho, 1.0)         # the equation is divided by a large ratio
    more, b = ratio * c - one * r, one * (1.0 - r) + ratio * (1.0 - c)
    s = min(2.0 * more / (b + sqrt(max(b * b + 4.0 * (ratio - one) * more, 0.0))), c)
    of_reward = bent(s) - r * bent(s / r) if r > TINY else log1p(s)     # kl(r, x); 1 - x is lost where r is next to 1
    return of_reward + (divergence(c, min((r + s) / (1.0 + s) / rho, c)) if c < 1.0 or 2.0 * rho > 1.0 + r else 0.0)


@jit
def least_divergence(k, rho, arms, known, p, products):
    """D_k, how far arm k is from a law whose ratio is rho or more; 0 if its own is."""
    n = arms.n[k]
    r, c = arms.reward[k] / n, arms.cost[k] / n
    u = rho * c - r
    if arms.reward[k] / arms.cost[k] >= rho or not u > 0.0:
        return 0.0
    if p.kind == BERNOULLI:
        if known:
            return divergence(r, rho * c) if rho * c < 1.0 else inf
        return of_coins(r, c, rho)
    top = p.max_reward - rho * c if known else p.max_reward
    w = top + u                 # the unit in which X is told, for rho may be 1e200
    v_r, share = max(arms.reward_sq[k] / n - r * r, 0.0) / w / w, rho / w
    if known:
        return of_moments(u / w, v_r, top / w) if top > 0.0 else inf
    v_c = share * (share * max(arms.cost_sq[k] / n - c * c, 0.0))
    variance = v_r + v_c
    if p.kind == ANY:
        variance += 2.0 * sqrt(v_r * v_c)
    elif p.kind == SAMPLE:
        variance = max(variance - 2.0 * share * ((products[k] / n - r * c) / w), 0.0)
    return of_moments(u / w, variance, top / w)


@jit
def index(k, rho, arms, known, p, products):
    """n D + scale log n of arm k."""
    n = arms.n[k]
    return n * least_divergence(k, rho, arms, known, p, products) + p.scale * log(n)


@jit
def imed(t, spent, arms, told, p, memory, rng):
    """Of the arms that it affords: each once, unless its known cost rules it out; then the least n D + scale log n."""
    rho, first, free = 0.0, END, END
    for k in range(arms.n.size):
        if spent + told.price[k] <= told.ceiling:
            ratio = arms.reward[k] / arms.cost[k] if arms.cost[k] > 0.0 else inf
            if arms.n[k] == 0:
                first = k if first == END or told.price[k] < told.price[first] else first
            elif ratio == inf:
                free = k if free == END else free
            else:
                rho = max(rho, ratio)
    if free != END and (told.known or first == END):
        return free
    if first != END and (not told.known or rho * told.price[first] < p.max_reward):
        return first
    arm, least = END, inf
    for k in range(arms.n.size):
        if arms.n[k] > 0 and spent + told.price[k] <= told.ceiling:
            value = index(k, rho, arms, told.known, p, memory.sums)
            if value < least or arm == END:
                arm, least = k, value
    return arm


@jit
def multiply(t, arm, outcome, arms, told, p, memory, rng):
    """Add a pull's reward times its cost to the arm's sum."""
    memory.sums[arm] += outcome.reward * outcome.cost


class _Empirical(NamedRule):
    """What both policies share."""
    rule = staticmethod(imed)

    def told(self, problem: Problem) -> Told:
        ceiling = problem.budget + rounding(problem.budget) if problem.hard else inf
        price = problem.cost_means if problem.known_costs else np.zeros(problem.K)
        return Told(problem.known_costs, price, ceiling)

    def remember(self, problem: Problem) -> Products:
        return Products(np.zeros(problem.K))


@dataclass(frozen=True)
class IMED(_Empirical):
    """IMED for outcomes 0 and 1: the arm with the least n D + scale log n, D = min {kl(r, x) + kl(c, y) : x >= rho y}.

    r and c are an arm's mean reward and cost, rho is the largest r/c, and kl the divergence of Bernoulli laws; where
    costs are known, D = kl(r, rho c), infinite from rho c = 1 on. Each arm is pulled once to begin with; where costs
    are known the cheapest first, and only while rho c < 1. An arm whose observed costs are all 0 is pulled, and the
    lowest position wins a tie. Under a hard budget all is about the arms that it affords; an anytime budget is refused,
    for no round is skipped.

    Parameters
    ----------
    scale : float
        Multiplies log n; above 0. With 1, which is Honda and Takemura's, it is asymptotically optimal where outcomes
        are 0 and 1, and independent; below 1 there is no theorem.

    Examples
    --------
    >>> runs = cb.simulate({"IMED": cb.IMED()}, cb.instances.bernoulli(3), cb.Budget(20))
    >>> float(runs.spent[0, 0, -1])
    20.0
    """
    scale: float = checked(positive, 1.0)
    support = (0.0, 1.0)

    @property
    def p(self) -> Tuning:
        return Tuning(float(self.scale), 1.0, BERNOULLI)


@dataclass(frozen=True)
class MomentIMED(_Empirical):
    """Moment IMED: the arm with the least n D + scale log n, D from mean and variance of X = R - rho C.

    rho is the largest mean reward per mean cost, and D is the least divergence, among all laws with this mean and
    variance and nothing above b, to a law whose mean is 0 or more (`cb.bounds.imed.moment_divergence`). So it adapts to
    the variance, and needs to know of ranges the largest reward alone. Ours; the formula of D is Honda and Takemura's.
    With scale 1, bounded costs, and rewards and costs that are independent (for "sample", depend in any way), a worse
    arm is pulled log(tau) / D times in tau rounds, and o(log tau) more, at most (`cb.bounds.imed.rates`).

    First pulls, ties, free arms and budgets as in `IMED`. Variances divide by n; one that is 0 is taken for what it is.
    Where costs are known, X is at most b - rho c, and no arm is first pulled while rho c >= b.

    Parameters
    ----------
    scale : float
        Multiplies log n; above 0. Below 1 it explores less, and there is no theorem.
    max_reward : float
        b, in units of reward, above 0. Rewards lie between 0 and b; costs are 0 or more.
    dependence : {"independent", "any", "sample"}
        How reward and cost of a pull depend: not at all, so that variances add up; in a way that nobody knows, so that
        the standard deviations of R and rho C do; or as the sample variance of X says, for which sums of R C are kept.

    Examples
    --------
    >>> bandit = cb.Bandit([cb.Discrete([0, 5, 40], [0.5, 0.4, 0.1]), cb.Constant(3)], [cb.Beta(2, 2)] * 2)
    >>> runs = cb.simulate({"IMED": cb.MomentIMED(max_reward=40)}, bandit, cb.Budget(1000))
    >>> int(runs.pulls[0, 0, -1].argmax())
    0
    """
    scale: float = checked(positive, 1.0)
    max_reward: float = checked(positive, 1.0)
    dependence: str = checked(DEPENDENCE, "independent")
    support = (0.0, inf)

    @property
    def reward_support(self) -> tuple[float, float]:
        return 0.0, float(self.max_reward)

    @property
    def p(self) -> Tuning:
        return Tuning(float(self.scale), float(self.max_reward), DEPENDENCE.index(self.dependence))

    @property
    def learn(self) -> Callable | None:
        """What is done after each pull: products are added up where a sample variance needs them."""
        return multiply if self.dependence == "sample" else None
