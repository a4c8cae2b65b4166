"""What policies with bounds by divergences promise under a budget; ours, derived in the audit of omega-UCB.

Lemmas and theorems are numbered on from those of the omega-UCB paper (Heyden et al.), which end with 1 and with 6.

Two policies: KL-UCB-SC (`cb.KLUCBSC`) with exploration a log t, and omega-UCB with such bounds (`cb.OmegaKLUCB`) with
rho = a. Rewards and costs lie in [0, 1]. kl is the divergence of Bernoulli laws, and rho* the best ratio. An arm is
hard to tell from the best where d_h(r, c), the least kl(r, x) + kl(c, y) with x >= h y, is small: the level h close to
rho* is what the best arm's index seldom falls below, and d_h what it takes a worse arm to reach it.
"""

from functools import partial
from math import ceil, exp, inf, log, log1p
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import logit, rel_entr

from ...checks import ROUNDING, count, number, numbers, positive, require
from ...environments.bandits import Bandit
from .omega_ucb import bandit_means, bernoulli_rivals, locked_out
from .shared import bent_each

_GRID = 400         # places at which bounds that leave a choice are tried

_mean = partial(number, low=0, high=1, allowed="must be in (0, 1]", above=0)


def divergence(p: ArrayLike, q: ArrayLike) -> np.ndarray:
    """kl(p, q) = p log(p/q) + (1 - p) log((1 - p)/(1 - q)) of numbers or arrays in [0, 1]; may be infinite.

    >>> round(float(np.exp(divergence(0.5, 0.8))), 12)
    1.25
    """
    p, q = np.broadcast_arrays(numbers("p", p, 0, 1, "must be in [0, 1]"), numbers("q", q, 0, 1, "must be in [0, 1]"))
    near = np.abs(q - p) < 0.9 * np.minimum(p, 1 - p)       # there the two terms may cancel but for a small part
    found, safe, far = rel_entr(p, q) + rel_entr(1 - p, 1 - q), np.where(near, p, 0.5), np.where(near, q - p, 0.0)
    found = np.where(near, -safe * bent_each(far / safe) - (1 - safe) * bent_each(-far / (1 - safe)), found)
    return np.maximum(found, 0.0)                           # rounding may leave -1e-17


def closest(r: ArrayLike, c: ArrayLike, level: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The x >= level * y in [0, 1] with the least kl(r, x) + kl(c, y): that least, x and y.

    Where r < level * c, (x - r)/(1 - x) and (c - y)/(1 - y) are one number s in (0, c], and x = level y is a quadratic
    equation for it: the formula of `cb.KLUCBSC`.

    Mean reward r and cost c, in [0, 1], and the level, reward per unit of cost and above 0, are numbers or arrays.

    >>> [round(float(found), 3) for found in closest(0.5, 0.5, level=9 / 5)]        # log(75/64)/2
    [0.079, 0.6, 0.333]
    """
    r, c = np.broadcast_arrays(numbers("r", r, 0, 1, "must be in [0, 1]"), numbers("c", c, 0, 1, "must be in [0, 1]"))
    q = 1 / numbers("level", level, 0, allowed="must be finite and above 0", above=0)
    b, e = 1 - c + (1 - r) * q, np.maximum(c - r * q, 0.0)
    root = np.sqrt(np.maximum(b * b + 4 * (1 - q) * e, 0.0))
    s = np.minimum(np.divide(2 * e, b + root, out=np.ones_like(e), where=b + root > 0), c)
    reached = e == 0
    x = np.where(reached, r, (r + s) / (1 + s))
    y = np.where(reached, c, np.minimum(x * q, c))
    return divergence(r, x) + divergence(c, y), x, y


class Errors(NamedTuple):
    """Lemma 2's constants S and m for errors of a mean in one direction; 0 for a mean that no outcome differs from.

    `total` bounds the sum over n of E[exp(Y_n); Y_n > 0], `most` each term.
    """
    total: np.ndarray
    most: np.ndarray


def errors(mean: float, reference: ArrayLike) -> Errors:
    """Lemma 2: how often and how far the mean of n rewards lies below a `reference` that is below their true `mean`.

    Y_n = n kl(mean of n, reference) if that mean is lower, else 0. With theta = log(1 - mean) / log(1 - reference) and
    kappa = kl(reference, mean), Pr[Y_n > y] <= exp(-max(theta y, y + n kappa)). For costs, which err upwards, take 1
    less both. Infinite where the reference is not below the mean. Both are in [0, 1]; the reference may be an array.

    >>> [round(float(constant), 3) for constant in errors(0.8, 0.4)]
    [5.053, 1.465]
    """
    mean = number("mean", mean, 0, 1, "must be in [0, 1]")
    reference = numbers("reference", reference, 0, 1, "must be in [0, 1]")
    if mean in (0, 1):
        return Errors(np.zeros_like(reference), np.zeros_like(reference))
    below = (reference > 0) & (reference < mean)
    safe = np.where(below, reference, mean / 2)
    more, kappa = log1p(-mean) / np.log1p(-safe) - 1, divergence(safe, mean)
    return Errors(np.where(below, (1 + 2 / more) / kappa, inf), np.where(below, 1 + 1 / more, inf))


def low_rounds(reward_mean: float, cost_mean: float, level: float, box: bool = False) -> float:
    """Lemma 4's constant C: rounds in which the best arm's index is below `level`, in expectation; for a = 1.

    S_r + S_c for the box (omega-UCB's ratio of two bounds), whatever the dependence of reward and cost; for KL-UCB-SC
    with the two independent, min(m_c S_r, m_r S_c) more. The references x0 = level y0 are the best of a grid.

    The best arm's means are in (0, 1], the level is above 0 and below their ratio; `box`: whether the index is the box.

    >>> round(low_rounds(0.8, 0.4, level=1.0, box=True), 1) < round(low_rounds(0.8, 0.4, level=1.0), 1)
    True
    """
    ratio = _mean("reward_mean", reward_mean) / _mean("cost_mean", cost_mean)
    number("level", level, allowed=f"must be above 0 and below the ratio {ratio!r}", above=0, below=ratio)
    y = np.linspace(cost_mean, min(reward_mean / level, 1.0), _GRID)
    of_r, of_c = errors(reward_mean, np.minimum(level * y, 1.0)), errors(1 - cost_mean, 1 - y)
    total = of_r.total + of_c.total
    if not box:
        with np.errstate(invalid="ignore"):                     # infinity times 0, where the sum is infinite anyhow
            total = total + np.minimum(of_c.most * of_r.total, of_r.most * of_c.total)
    return float(np.nanmin(total))


class Distance(NamedTuple):
    """How far a worse arm is from a level: the least divergence, and the slopes of it in the two means.

    `divergence` is I_k = d_h(means), or J_k for the box. `reward` and `cost` are G_r and G_c of Lemma 5 (for the box
    weighted, v G_r and (1 - v) G_c), 0 for a mean that never errs.
    """
    divergence: float
    reward: float
    cost: float


def distance(reward_mean: float, cost_mean: float, level: float, box: bool = False) -> Distance:
    """Lemma 5: I_k(level) of an arm below the level, or J_k, the least max{kl(r, x), kl(c, y)} with x >= level y.

    The means are in [0, 1] and (0, 1], the level is above the arm's reward per unit of cost; `box` as in `low_rounds`.

    >>> [round(value, 3) for value in distance(0.5, 0.5, level=4.0, box=True)]      # kl(1/2, 4/5), kl(1/2, 1/5)
    [0.223, 0.277, 1.109]
    """
    r, c = number("reward_mean", reward_mean, 0, 1, "must be in [0, 1]"), _mean("cost_mean", cost_mean)
    number("level", level, above=r / c, allowed=f"must be above the arm's ratio {r / c!r}")
    weights = 1.0, 1.0
    if box:
        x, y, value = _box(r, c, level)
        # Where both are equal, neither side can gain on the other: weights at which the sum does not move on x = h y.
        pull_r, pull_c = (level * (x - r) / (x * (1 - x)) if r < 1 else inf), (c - y) / (y * (1 - y)) if y < 1 else inf
        v = 0.0 if r == 1 else 1.0 if y == 1 else pull_c / (pull_r + pull_c)
        weights = v, 1 - v
    else:
        value, x, y = map(float, closest(r, c, level))
    slope_r = weights[0] * float(logit(x) - logit(r)) if 0 < r < 1 else 0.0
    slope_c = weights[1] * float(logit(c) - logit(y)) if c < 1 else 0.0
    return Distance(value, slope_r, slope_c)


def _box(r, c, level):
    """The x = level y with kl(r, x) = kl(c, y), and the two; an arm that always pays needs no reward."""
    if r == 1:
        return 1.0, 1 / level, float(divergence(c, 1 / level))
    low, high = r / level, min(c, 1 / level)

    def more(y):
        return float(np.clip(divergence(r, min(level * y, 1.0)) - divergence(c, y), -1e300, 1e300))

    y = high if more(high) <= 0 else brentq(more, max(low, 1e-300), high, xtol=1e-300, rtol=1e-15)
    return level * y, y, float(divergence(c, y) if y < c else divergence(r, level * y))


def rates(bandit: Bandit, box: bool = False) -> np.ndarray:
    """1 / I_k (or 1 / J_k) at the best ratio, shape (K,): pulls of a worse arm per logarithm of the rounds.

    0 for arms that are best but for rounding. With exploration log t KL-UCB-SC needs that many asymptotically at most
    (Theorem 7), and for outcomes 0 and 1 no consistent policy fewer (Theorem 8). Rewards are in [0, 1] and costs in
    (0, 1], independent of each other; others are refused.

    >>> bandit = cb.Bandit([cb.Bernoulli(0.8), cb.Bernoulli(0.2)], [cb.Bernoulli(0.4), cb.Bernoulli(0.6)])
    >>> rates(bandit).round(3)
    array([0.   , 2.168])
    """
    require(not any(bandit.joint), "bandit", bandit,
            "must have independent rewards and costs: where they are drawn as pairs this bound does not hold")
    rewards, costs = bandit_means(bandit)
    best = float(bandit.ratios.max())
    means = zip(rewards.tolist(), costs.tolist(), bandit.ratios.tolist(), strict=True)
    return np.array([1 / distance(r, c, best, box).divergence if ratio < best * (1 - ROUNDING) else 0.0
                     for r, c, ratio in means])


def pulls(bandit: Bandit, tau: int, a: float = 1.0, box: bool = False, independent: bool = True) -> np.ndarray:
    """Theorem 7: upper bound of the expected pulls of each worse arm up to round tau, shape (K,); infinite for best.

    1 + C(h) g(tau) + (1 + eps) a log(tau) / I + (1 + eps)^2 V / (2 eps^2 I^2), where I is I_k(h) (J_k(h) for the
    box), at the best level h and eps of a grid. g is 1 for a >= 1, and 1 + tau^(1-a)/(1-a) below.

    Rewards are in [0, 1], costs in (0, 1], and two best arms count as one; tau is at least K, and a, which multiplies
    log t in the index, above 0. `box`: whether the policy is `cb.OmegaKLUCB` (with rho = a), or else `cb.KLUCBSC`.
    `independent`: whether reward and cost of a pull are; must be False for pairs. If not, KL-UCB-SC needs a >= 2.

    >>> bandit = cb.Bandit([cb.Bernoulli(0.8), cb.Bernoulli(0.2)], [cb.Bernoulli(0.4), cb.Bernoulli(0.6)])
    >>> pulls(bandit, tau=10**10).round()
    array([ inf, 530.])
    """
    tau, a = count("tau", tau, low=bandit.K), positive("a", a)
    require(not (independent and any(bandit.joint)), "independent", independent,
            "must be False: this bandit draws rewards and costs as pairs")
    require(box or independent or a >= 2, "a", a, "must be 2 or more for KL-UCB-SC where reward and cost depend")
    (r, c), first = (means.tolist() for means in bandit_means(bandit)), int(np.argmax(bandit.ratios))
    best, spread = float(bandit.ratios[first]), 1.0 if a >= 1 else 1 + tau**(1 - a) / (1 - a)
    eps, shares = np.geomspace(1e-3, 5, 100), np.geomspace(0.95, 1e-3, 80)
    found = np.full(bandit.K, inf)
    for k in np.flatnonzero(bandit.ratios < best * (1 - ROUNDING)).tolist():
        for h in (best - (best - bandit.ratios[k]) * shares).tolist():
            far, slope_r, slope_c = distance(r[k], c[k], h, box)
            V = slope_r**2 + slope_c**2 if independent else (slope_r + slope_c)**2
            seen = (1 + eps) * a * log(tau) / far + V / 2 * ((1 + eps) / eps / far)**2
            low = low_rounds(r[first], c[first], h, box or not independent)
            found[k] = min(found[k], 1 + low * spread + seen.min())
    return found


def locked_plays(bandit: Bandit, tau: int, a: float) -> float:
    """Theorem 9: lower bound of the expected pulls of other arms than the best, with exploration a log t.

    If the best arm's first s costs are all 1, its index is at most t^(a/s), for KL-UCB-SC and for the box: it is locked
    out after s = 1 + floor(a log(tau) / log h) pulls. The rest, and the bandit, as in `omega_ucb.locked_plays`.

    >>> trap = cb.Bandit([cb.Bernoulli(1.0), cb.Bernoulli(0.5)], [cb.Bernoulli(0.1), cb.Bernoulli(0.1)])
    >>> round(locked_plays(trap, tau=10**6, a=0.25), 2)
    222.22
    """
    reach = positive("a", a) * log(count("tau", tau, low=bandit.K))
    # The first level above exp(reach) takes one pull; levels beyond 1e9, below exp(30), are not looked at.
    return locked_out(bandit, tau, reach, log, exp(min(reach, 30.0)) + 1)


def locked_exponent(bandit: Bandit, a: float) -> float:
    """The power of tau with which `locked_plays` grows: 1 - a log(1/mu) / log h, 0 at least.

    mu is the best arm's expected cost, and h the largest integer below a rival's ratio, of the rival that gives most.

    >>> trap = cb.Bandit([cb.Bernoulli(1.0), cb.Bernoulli(0.96)], [cb.Bernoulli(0.005), cb.Bernoulli(0.016)])
    >>> [round(locked_exponent(trap, a), 3) for a in (1.0, 0.25)]
    [0.0, 0.675]
    """
    mu, rivals = bernoulli_rivals(bandit)
    a = positive("a", a)
    return float(max([0.0, *(1 + a * log(mu) / log(ceil(ratio) - 1) for *_, ratio in rivals)]))
