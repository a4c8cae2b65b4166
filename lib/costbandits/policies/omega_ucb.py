"""omega-UCB and omega*-UCB: Heyden, Arzamasov, Fouché and Böhm, "Budgeted Multi-Armed Bandits with Asymmetric
Confidence Intervals"."""

from dataclasses import dataclass
from math import inf, log, sqrt
from typing import NamedTuple

import numba as nb

from ..checks import positive
from .base import IndexRule, checked, index

_jit = nb.njit(inline="always", error_model="numpy")


@_jit
def omega_ratio(mean_r, mean_c, w_r, w_c):
    """omega_+^r / omega_-^c of Theorem 1 on [0, 1], with w = eta z^2 / n.

    The bounds solve (1 + w) x^2 - b x + m^2 = 0 with b = 2 m + w: the upper one as (b + root) / (2 (1 + w)), the
    lower one as 2 m^2 / (b + root), which is exactly 0 at m = 0 where centre minus half-width is rounding noise.
    """
    if mean_c <= 0.0:
        return inf
    root_r = sqrt(max(w_r * (4.0 * mean_r * (1.0 - mean_r) + w_r), 0.0))
    root_c = sqrt(max(w_c * (4.0 * mean_c * (1.0 - mean_c) + w_c), 0.0))
    upper = min((2.0 * mean_r + w_r + root_r) / (2.0 * (1.0 + w_r)), 1.0)
    lower = 2.0 * mean_c * mean_c / (2.0 * mean_c + w_c + root_c)
    return upper / lower


@_jit
def eta(mean, square, n):
    """Sample variance over its largest possible value m (1 - m), at most 1; 1 where that is 0."""
    largest = mean * (1.0 - mean)
    if largest <= 0.0:
        return 1.0
    return min(max(square - n * mean * mean, 0.0) / (n - 1) / largest, 1.0)


class Rho(NamedTuple):
    """The parameter of both policies."""
    rho: float


@index
def omega_ucb(t, arm, p: Rho):
    """omega-UCB (Heyden et al., Eq. 2), with eta = 1."""
    w = 2.0 * p.rho * log(t) / arm.n                 # z^2 / n with z = sqrt(2 rho log t)
    return omega_ratio(arm.reward / arm.n, arm.cost / arm.n, w, w)


@index
def omega_star_ucb(t, arm, p: Rho):
    """omega*-UCB (Heyden et al., section 5.2), with eta estimated from the 30th pull on."""
    n, r, c = arm.n, arm.reward / arm.n, arm.cost / arm.n
    w = 2.0 * p.rho * log(t) / n
    w_r, w_c = (w, w) if n < 30 else (eta(r, arm.reward_sq, n) * w, eta(c, arm.cost_sq, n) * w)
    return omega_ratio(r, c, w_r, w_c)


@dataclass(frozen=True)
class OmegaUCB(IndexRule):
    """omega-UCB (Eq. 2): the arm with the largest omega_+^r / omega_-^c, z = sqrt(2 rho log t), eta = 1.

    An arm whose observed costs are all 0 has an infinite index (the paper is silent; its lower bound is 0). rho, above
    0, is how much to explore; the paper uses 1 and recommends 1/4.

    At round 101, of an arm that has paid 0.4 and cost 0.2 in each of its 50 pulls:

    >>> round(cb.OmegaUCB.rule(101, 50, 20.0, 10.0, 8.0, 2.0, 0.0, np.array([0.25])), 2)
    3.96
    """
    rho: float = checked(positive, 0.25)
    rule = staticmethod(omega_ucb)
    support = (0.0, 1.0)


@dataclass(frozen=True)
class OmegaStarUCB(OmegaUCB):
    """omega*-UCB (section 5.2): omega-UCB with eta estimated for rewards and costs from an arm's 30th pull on.

    The estimate divides by n - 1, so that Bernoulli outcomes give eta = 1 exactly after the cap at 1. rho, and the arm
    of the example, as in `OmegaUCB`.

    >>> round(cb.OmegaStarUCB.rule(101, 50, 20.0, 10.0, 8.0, 2.0, 0.0, np.array([0.25])), 2)
    2.0
    """
    rule = staticmethod(omega_star_ucb)
    regular = False
