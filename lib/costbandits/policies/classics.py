"""Rivals that several of the papers compare with.

m-, c-, i-UCB and b-greedy: Xia et al., "Finite budget analysis of multi-armed bandit problems" (2017). UCB-SC+:
Watanabe et al. (2018). UCB-B2: from the public code of the omega-UCB paper. Formulas of m-, c-, i-UCB and UCB-SC+ as in
Table 2 of the omega-UCB paper; r and c are an arm's mean reward and cost. An arm whose observed costs are all 0 has an
infinite index, but for UCB1. UCB1 and eps_n-greedy: Auer, Cesa-Bianchi and Fischer (2002). The examples show indices at
round 101, in which an arm has paid 10 and cost 5 in 25 pulls.
"""

from dataclasses import dataclass
from functools import partial
from math import inf, log, sqrt
from typing import NamedTuple

import numpy as np

from ..checks import number, positive
from .base import ChoiceRule, IndexRule, Problem, checked, choose, index, require_soft


class Alpha(NamedTuple):
    """The factor of eps; the defaults are those that Table 2 recommends."""
    alpha: float


@index
def m_ucb(t, arm, p: Alpha):
    """m-UCB (Xia et al., 2017), as in `MUCB`."""
    r, c = arm.reward / arm.n, arm.cost / arm.n
    eps = p.alpha * sqrt(log(t - 1) / arm.n)
    return inf if c <= eps or c <= 0.0 else min(r + eps, 1.0) / (c - eps)


@index
def c_ucb(t, arm, p: Alpha):
    """c-UCB (Xia et al., 2017), as in `CUCB`."""
    r, c = arm.reward / arm.n, arm.cost / arm.n
    eps = p.alpha * sqrt(log(t - 1) / arm.n)
    return inf if c <= 0.0 else r / c + eps / c


@index
def i_ucb(t, arm, p: Alpha):
    """i-UCB (Xia et al., 2017), as in `IUCB`."""
    r, c = arm.reward / arm.n, arm.cost / arm.n
    eps = p.alpha * sqrt(log(t - 1) / arm.n)
    return inf if c <= 0.0 else r / c + eps


@index
def ucb_sc_plus(t, arm, p):
    """UCB-SC+ (Watanabe et al., 2018), as in `UCBSCPlus`."""
    # A bound over a block of pulls asks for rounds before its last pull: t may be below n there.
    n, r, c = arm.n, arm.reward / arm.n, arm.cost / arm.n
    lead = log(max(t / n, 1.0))
    if 2.0 * n * c * c <= lead or c <= 0.0:
        return inf
    alpha = sqrt(lead / (2.0 * n * (r * r + c * c) - lead))
    # Both conditions say alpha r < c; near equality rounding could still turn the sign.
    return inf if c <= alpha * r else (r + alpha * c) / (c - alpha * r)


@index
def ucb_b2(t, arm, p):
    """UCB-B2 (public code of the omega-UCB paper), as in `UCBB2`."""
    n, r, c, x = arm.n, arm.reward / arm.n, arm.cost / arm.n, 2.01 * log(t)
    # Sample variances; 1/4, the largest possible, for a single sample.
    v_r = max(arm.reward_sq - n * r * r, 0.0) / (n - 1) if n > 1 else 0.25
    v_c = max(arm.cost_sq - n * c * c, 0.0) / (n - 1) if n > 1 else 0.25
    e_r = sqrt(2.0 * v_r * x / n) + 3.0 * x / n
    e_c = sqrt(2.0 * v_c * x / n) + 3.0 * x / n
    # Versions of the authors' code differ: one asks for e_c below the mean *reward*, a slip, for e_c bounds the cost's
    # error; another for e_c < c (1.28 - 1) / 1.28.
    if e_c >= c:
        return inf
    q = r / max(c, arm.told)
    return q + 1.4 * (e_r + q * e_c) / c


@dataclass(frozen=True)
class MUCB(IndexRule):
    """m-UCB: min(r + eps, 1) / max(c - eps, 0), eps = alpha sqrt(log(t-1) / n), alpha above 0.

    >>> round(cb.MUCB.rule(101, 25, 10.0, 5.0, 10.0, 5.0, 0.0, cb.MUCB().parameters), 3)
    2.465
    """
    alpha: float = checked(positive, 2.0**-4)
    rule = staticmethod(m_ucb)
    support = (0.0, 1.0)


@dataclass(frozen=True)
class CUCB(IndexRule):
    """c-UCB: r/c + eps/c, eps = alpha sqrt(log(t-1) / n), alpha above 0.

    >>> round(cb.CUCB.rule(101, 25, 10.0, 5.0, 10.0, 5.0, 0.0, cb.CUCB().parameters), 3)
    2.268
    """
    alpha: float = checked(positive, 2.0**-3)
    rule = staticmethod(c_ucb)
    support = (0.0, 1.0)


@dataclass(frozen=True)
class IUCB(IndexRule):
    """i-UCB: r/c + eps, eps = alpha sqrt(log(t-1) / n), alpha above 0.

    >>> round(cb.IUCB.rule(101, 25, 10.0, 5.0, 10.0, 5.0, 0.0, cb.IUCB().parameters), 3)
    2.107
    """
    alpha: float = checked(positive, 2.0**-2)
    rule = staticmethod(i_ucb)
    support = (0.0, 1.0)


@dataclass(frozen=True)
class UCBSCPlus(IndexRule):
    """UCB-SC+: (r + a c) / (c - a r), infinite unless 2 n c^2 > L.

    a = sqrt(L / (2 n (r^2 + c^2) - L)) with L = log(t/n).

    >>> round(cb.UCBSCPlus.rule(101, 25, 10.0, 5.0, 10.0, 5.0, 0.0, np.empty(0)), 3)
    12.366
    """
    rule = staticmethod(ucb_sc_plus)
    support = (0.0, 1.0)


@dataclass(frozen=True)
class UCBB2(IndexRule):
    """UCB-B2: q + 1.4 (e_r + q e_c) / c with q = r / max(c, smallest expected cost); infinite while e_c >= c.

    e = sqrt(2 V x / n) + 3 x / n with x = 2.01 log t and V the sample variance of rewards or costs.

    >>> cb.UCBB2.rule(101, 25, 10.0, 5.0, 10.0, 5.0, 0.1, np.empty(0))      # e_c = 1.46 is above c = 0.2
    inf
    """
    rule = staticmethod(ucb_b2)
    regular = False
    support = (0.0, 1.0)

    def prepare(self, problem: Problem) -> np.ndarray:
        return np.full(problem.K, problem.min_cost)


@index
def ucb1(t, arm, p):
    """UCB1 (Auer et al., 2002, Figure 1), as in `UCB1`."""
    return arm.reward / arm.n + sqrt(2.0 * log(t - 1) / arm.n)


@dataclass(frozen=True)
class UCB1(IndexRule):
    """UCB1: r + sqrt(2 log(t-1) / n); costs are ignored.

    >>> round(cb.UCB1.rule(101, 25, 10.0, 5.0, 10.0, 5.0, 0.0, np.empty(0)), 3)
    1.007
    """
    rule = staticmethod(ucb1)
    support = (0.0, 1.0)


@choose
def b_greedy(t, spent, arms, told, p, memory, rng):
    """b-greedy (Xia et al., 2017), as in `BGreedy`."""
    K = arms.n.size
    if t <= K:
        return t - 1
    if rng.random() < K / t:
        return int(rng.random() * K)
    arm, best = 0, -inf
    for k in range(K):
        ratio = arms.reward[k] / arms.cost[k] if arms.cost[k] > 0.0 else inf
        if ratio > best:
            arm, best = k, ratio
    return arm


@dataclass(frozen=True)
class BGreedy(ChoiceRule):
    """b-greedy: each arm once, then a random one with probability min(1, K/t), else the one with the largest r/c.

    >>> cb.simulate({"b": cb.BGreedy()}, cb.instances.bernoulli(3), cb.Budget(20)).pulls[0, 0, -1]
    array([13,  6,  4])
    """
    rule = staticmethod(b_greedy)
    check = require_soft


class Exploring(NamedTuple):
    """How much to explore, and a lower bound of the gap."""
    c: float
    d: float


@choose
def epsilon_greedy(t, spent, arms, told, p: Exploring, memory, rng):
    """eps_n-greedy (Auer et al., 2002, Figure 3), as in `EpsilonGreedy`."""
    K = arms.n.size
    if t <= K:
        return t - 1
    if rng.random() < p.c * K / (p.d * p.d * t):
        return int(rng.random() * K)
    return int(np.argmax(arms.reward / arms.n))


@dataclass(frozen=True)
class EpsilonGreedy(ChoiceRule):
    """eps_n-greedy: each arm once, then a random one with probability min(1, c K / (d^2 t)), else the largest r.

    Costs are ignored.

    Parameters
    ----------
    c : float
        How much to explore, above 0.
    d : float
        A lower bound of the gap between the best and the second best mean reward, in (0, 1].

    Examples
    --------
    >>> cb.EpsilonGreedy(c=5, d=0.25)
    EpsilonGreedy(c=5, d=0.25)
    """
    c: float = checked(positive)
    d: float = checked(partial(number, above=0, high=1, allowed="must be in (0, 1]"))
    rule = staticmethod(epsilon_greedy)
    check = require_soft
