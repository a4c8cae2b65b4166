"""KL-UCB where pulls cost something: upper bounds by the divergence of Bernoulli laws.

KL-UCB-SC, for random costs: Watanabe, Komiyama, Nakamura and Kudo, "KL-UCB-Based Policy for Budgeted Multi-Armed
Bandits with Stochastic Action Costs" (2017). KL-UCB over the cost, for known ones: Luedtke, Kaufmann and Chambaz,
"Asymptotically Optimal Algorithms for Budgeted Multiple Play Bandits" (2019), after Garivier and Cappé, "The KL-UCB
Algorithm for Bounded Stochastic Bandits and Beyond" (2011). The divergence is
kl(p, q) = p log(p/q) + (1 - p) log((1 - p)/(1 - q)).

How the index of KL-UCB-SC is found (by our own derivation). Let G(V) be the least kl(r, x) + kl(c, y) with x/y = V. The
index is the V >= r/c with G(V) = L/n. Where the least is attained, (x - r)/(1 - x) and (c - y)/(1 - y) are one and the
same number s in [0, c). So x = (r + s)/(1 + s) and y = (c - s)/(1 - s), and x = V y is a quadratic equation for s. As V
moves, dG = s dlog V: as a function of log V, G is convex, flat at r/c, and its slope is s. Methods that use more
derivatives than Newton's find such a root in one to three steps. Where all costs were 1, y stays 1 until s is 1; then
x stays (1 + r)/2, and y falls.
"""

from dataclasses import dataclass
from math import exp, expm1, inf, log, log1p, sqrt
from typing import NamedTuple

from ..checks import flag, positive
from ..engine.driver import jit
from .base import IndexRule, Scale, _PerCost, checked, index
from .omega_ucb import Rho

STEPS = 60          # of a search for a root: one to three are usual, more than five only at costs next to 1
# Relative errors of a divergence. From the first on a step makes four times as many digits right (Householder's method
# of order 3), elsewhere three times as many (Halley's). After a step from below the second, or third, all are; at mean
# costs between 0.999 and 1 an error of up to 1e-8 of the ratio may be left.
NEAR, ALMOST, CLOSE = 0.2, 5e-4, 1e-5
SERIES = 0.3        # below this, s relative to r and c, a series is a better guess
ULP = 2.0**-50        # relative; a smaller step is rounding
ENDLESS = 650.0     # a ratio above exp(this) counts as infinite,
TINY = 1e-200       # and a mean reward below this as 0


@jit
def divergence(p, q):
    """kl(p, q) for 0 < q < 1, or p = q = 1; in logarithms of 1 + u, for its error must be small where it is."""
    more = q - p
    kl = p * log1p(more / p) if p > TINY else 0.0
    kl += (1.0 - p) * log1p(-more / (1.0 - p)) if p < 1.0 else 0.0
    return -kl


@jit
def upper_bound(r, d):
    """sup {x : kl(r, x) <= d} for r in [0, 1].

    The divergence as a function of b = -log(1 - x) is convex, flat at r, and its slope is 1 - r/x.
    """
    if r >= 1.0 or d <= 0.0:
        return min(r, 1.0)
    if r <= TINY:
        return -expm1(-d)
    half = d * (1.0 - 2.0 * r) / 3.0        # a guess: (x - r)^2 = 2 d v, v the variance at a third of the way
    guess = (half + sqrt(half * half + 2.0 * d * r * (1.0 - r) * (1.0 + 2.0 / 9.0 * d))) / (1.0 + 2.0 / 9.0 * d)
    least = d / (1.0 - r) - log1p(-r)       # the slope is at most 1 - r, and the reward's part at least r log r
    b = least - r * log(r) / (1.0 - r)
    b = min(max(-log1p(-r - guess), least), b) if r + guess < 1.0 else b
    for _ in range(STEPS):
        x = -expm1(-b)
        more, slope = x - r, (x - r) / x
        if not slope > 0.0:                 # pragma: no cover - r but for rounding
            break
        lost = -log1p(-more / (1.0 - r)) if more < 0.5 * (1.0 - r) else b + log1p(-r)
        f = (1.0 - r) * lost - r * log1p(more / r) - d
        step = 2.0 * f * slope / (2.0 * slope * slope - f * r * (1.0 - x) / (x * x))
        b -= step
        if abs(f) <= CLOSE * d or abs(step) * (1.0 - x) <= ULP * x:
            break
    return max(-expm1(-b), r)


@jit
def lower_bound(c, d):
    """inf {y : kl(c, y) <= d} for c in (0, 1], with all digits of a small one.

    The divergence as a function of u = log(c/y) is convex, flat at 0, and its slope is (c - y)/(1 - y).
    """
    if c >= 1.0 or d <= 0.0:
        return min(c, 1.0) if d <= 0.0 else exp(-d)
    least, room = d / c, -(1.0 - c) * log1p(-c) / c     # The slope is at most c, so u is between these two, added up.
    u = least - room * expm1(-sqrt(2.0 * d * (1.0 - c) / c) / room)       # right at both ends, for d small and large
    for _ in range(STEPS):
        y, less = c * exp(-u), -c * expm1(-u)
        slope = less / (1.0 - y)
        if not slope > 0.0:                 # pragma: no cover - c but for rounding
            break
        f = c * u - (1.0 - c) * log1p(less / (1.0 - c)) - d
        step = 2.0 * f * slope / (2.0 * slope * slope - f * (1.0 - c) * y / (1.0 - y)**2)
        u -= step
        if abs(f) <= CLOSE * d or abs(step) <= ULP * u:
            break
    return c * exp(-u)


@jit
def first_guess(r, c, d):
    """Where to look for y/x: by a series where s is small beside r and c, else by either divergence alone."""
    i, j = 1.0 / max(r, TINY), 1.0 / c
    A = i + j - 2.0                     # d = A s^2/2 + B s^3/3 + C s^4/4 + ..., from dlog V/ds = A + B s + C s^2 + ...
    small = sqrt(2.0 * d / A)
    if small * max(i, j) < SERIES:
        p, q = (j * j - i * i) / (3.0 * A), 0.25 * (i * i * i + j * j * j - 2.0) / A
        s = small * (1.0 - small * (p - small * (2.5 * p * p - q)))
    else:                               # s as if d were all of the reward's, or all of the cost's; both matter
        s_r = 2.0 / 3.0 * d + sqrt(4.0 / 9.0 * d * d + 2.0 * r * d)
        s_c = c / sqrt(1.0 + 0.5 * c * (1.0 - c) / d)
        s = min(s_r / sqrt(1.0 + (s_r / s_c)**2), 0.999 * c)
    ratio = (1.0 + s) * (c - s) / ((r + s) * (1.0 - s))
    # The slope of G is at most c, so the ratio is at least r/c exp(d/c); that helps where c is next to 1.
    return min(ratio, c / r * exp(-d / c)) if r > TINY and c > 0.9 else ratio


@jit
def largest_ratio(r, c, d):
    """sup {x/y : kl(r, x) + kl(c, y) <= d} for r in [0, 1], c in (0, 1]."""
    if d <= 0.0:
        return r / c
    if d > ENDLESS * c:
        return inf
    if c >= 1.0:
        x = 0.5 * (1.0 + r)
        rest = d - divergence(r, x)
        return x * exp(rest) if rest >= 0.0 else upper_bound(r, d)
    q = first_guess(r, c, d)                                            # y/x = 1/V
    for _ in range(STEPS):
        b, e = 1.0 - c + (1.0 - r) * q, c - r * q
        s = min(2.0 * e / (b + sqrt(b * b + 4.0 * (1.0 - q) * e)), c)
        if not s > 0.0:                     # pragma: no cover - r/c but for rounding
            break
        up, down = (r + s) * (1.0 + s), 1.0 - s                         # (1 + s)^2 x, (c - s) / y
        y = q * (r + s) / (1.0 + s)
        f = log1p(-s * s) - c * (log1p(-s / c) if 2.0 * s < c else log(y * down / c)) - d
        f -= r * log1p(s / r) if r > TINY else 0.0
        # Derivatives of G by log V: s, bend, third. dlog V/ds = (1 - r)/up + (1 - c)/((c - s) (1 - s)).
        left, right = (1.0 - r) * y * down * down, (1.0 - c) * up
        bend = up * y * down * down / (left + right)
        if abs(f) > NEAR * d:
            step = 2.0 * f * s / (2.0 * s * s - f * bend)
        else:
            third = left * (1.0 + r + 2.0 * s) / up - right * (1.0 + y) / (y * down)
            third *= bend * bend / (left + right)
            step = f * (6.0 * s * s - 3.0 * f * bend) / (6.0 * s * s * s - 6.0 * f * s * bend + f * f * third)
        q *= exp(step)
        if abs(f) <= ALMOST * d or abs(step) <= ULP:
            break
    return 1.0 / q


class Tuned(NamedTuple):
    """Whether L is log(t/n), and its factor."""
    plus: float
    exploration: float


@index
def kl_ucb_sc(t, arm, p: Tuned):
    """KL-UCB-SC (Watanabe et al., 2017), as in `KLUCBSC`."""
    # A bound over a block of pulls asks for all of its costs over fewer pulls, and for rounds before its last pull.
    n, r, c = arm.n, min(arm.reward / arm.n, 1.0), min(arm.cost / arm.n, 1.0)
    L = log(max(t / n, 1.0)) if p.plus else log(t)
    return largest_ratio(r, c, p.exploration * L / n) if c > 0.0 else inf


@dataclass(frozen=True)
class KLUCBSC(IndexRule):
    """KL-UCB-SC: sup {x/y : n (kl(r, x) + kl(c, y)) <= L}, L = log t, or log(t/n) for the tuned "KL-UCB-SC+".

    kl is the divergence of Bernoulli laws, and outcomes lie in [0, 1]. An arm whose observed costs are all 0 has an
    infinite index. For all other arms it is finite; a ratio above exp(650) is returned as infinite. Only the paper's
    abstract was at hand: L, and what its "tuned variant" changes, are our reading.

    Parameters
    ----------
    plus : bool
        Whether L is log(t/n).
    exploration : float
        Multiplies L; above 0.

    Examples
    --------
    At round 101, of an arm that has paid 10 and cost 5 in 25 pulls:

    >>> round(cb.KLUCBSC.rule(101, 25, 10.0, 5.0, 10.0, 5.0, 0.0, cb.KLUCBSC().parameters), 3)
    11.694
    """
    plus: bool = checked(flag, False)
    exploration: float = checked(positive, 1.0)
    rule = staticmethod(kl_ucb_sc)
    support = (0.0, 1.0)


@index
def omega_kl_ucb(t, arm, p: Rho):
    """omega-UCB with bounds by divergences, as in `OmegaKLUCB`."""
    n, r, c = arm.n, min(arm.reward / arm.n, 1.0), min(arm.cost / arm.n, 1.0)      # means as in `kl_ucb_sc`
    d = p.rho * log(t) / n
    lower = lower_bound(c, d) if c > 0.0 else 0.0
    return upper_bound(r, d) / lower if lower > 0.0 else inf


@dataclass(frozen=True)
class OmegaKLUCB(IndexRule):
    """omega-UCB with bounds by divergences: sup {x : n kl(r, x) <= L} / inf {y : n kl(c, y) <= L}, L = rho log t.

    The index of omega-UCB (Heyden et al., Eq. 2) with Chernoff's bounds in place of those of a normal limit. It keeps
    the promise that omega-UCB breaks: its regret is O(B^(1 - rho)) for rho < 1 and O(log B) from rho = 1 on, however
    rewards and costs depend on each other. (Ours; the lesson has the proof.) An arm whose observed costs are all 0 has
    an infinite index; so has one whose lower bound is below the smallest number. rho, above 0, is how much to explore.

    At round 101, of an arm that has paid 0.4 and cost 0.2 in each of its 50 pulls:

    >>> round(cb.OmegaKLUCB.rule(101, 50, 20.0, 10.0, 8.0, 2.0, 0.0, np.array([1.0])), 2)
    8.93
    """
    rho: float = checked(positive, 1.0)
    rule = staticmethod(omega_kl_ucb)
    support = (0.0, 1.0)


@index
def kl_ucb(t, arm, p: Scale):
    """KL-UCB over the known cost (after Luedtke et al., 2019), as in `KLUCB`."""
    r, c = arm.reward / arm.n / p.reward_scale, arm.told
    return upper_bound(r, log(t) / arm.n) / c


@dataclass(frozen=True)
class KLUCB(_PerCost, IndexRule):
    """KL-UCB over the known cost c: sup {x : n kl(r, x) <= log t} / c; under a hard budget of the arms that it affords.

    Luedtke et al. (2019) prove this kind of index optimal where a budget is set for each round; to fill one hard budget
    by it is our reading. L = log t is what Garivier and Cappé (2011) recommend; their proofs add 3 log log t.

    Parameters
    ----------
    reward_scale : float
        Rewards lie between 0 and this, and are divided by it first.

    Examples
    --------
    At round 101, of an arm at cost 2 that has paid 10 in 25 pulls:

    >>> round(cb.KLUCB.rule(101, 25, 10.0, 50.0, 10.0, 100.0, 2.0, np.array([1.0])), 3)
    0.347
    """
    rule = staticmethod(kl_ucb)

    @property
    def reward_support(self) -> tuple[float, float]:
        return 0.0, float(self.reward_scale)
