"""What IMED weighs where pulls cost something: divergences of one arm from being the best, and rates that they give.

At the best ratio rho* a pull of an arm is worth X = R - rho* C, of which the mean is negative, and nothing is above
`top`, the largest reward. Of all laws whose mean is 0 or more, none above `top`, the closest one to a law P has the
divergence max {E_P log(1 - l X) : 0 <= l <= 1 / top} (Honda and Takemura, 2015, Theorem 2). Of all laws P with a given
mean and variance, that is least for the one with two values, of which one is `top` (Honda and Takemura, "Stochastic
Bandit Based on Empirical Moments", 2012, for rewards in [0, 1]): `moment_divergence`.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from ...checks import ROUNDING, numbers, positive, require
from ...environments.bandits import Bandit
from .shared import bent_each

KINDS = ("independent", "any", "sample")        # of dependence of reward and cost: what their correlation is taken for

_TINY = 1e-300      # a variance that is smaller in comparison counts as 0


class TwoPoints(NamedTuple):
    """Two laws on the points `low` and `top`: the chances of `top` under each."""
    low: np.ndarray
    chance: np.ndarray          # with the given mean and variance
    needed: np.ndarray          # for a mean of 0


def _moments(mean, variance, top):
    return np.broadcast_arrays(numbers("mean", mean), numbers("variance", variance, 0, allowed="must be 0 or more"),
                               positive("top", top))


def two_points(mean: ArrayLike, variance: ArrayLike, top: float) -> TwoPoints:
    """The law on `top` and one lower point with this mean below 0 and this variance, and the one there with mean 0.

    Mean and variance are numbers or arrays, in units of reward and its square; `top` is above 0.

    >>> [round(float(part), 3) for part in two_points(mean=-1.0, variance=2.0, top=1.0)]
    [-2.0, 0.333, 0.667]
    """
    mean, variance, top = _moments(mean, variance, top)
    require(bool((mean < 0).all()), "mean", mean, "must be below 0")
    low = mean - variance / (top - mean)
    return TwoPoints(low, variance / (variance + (top - mean)**2), -low / (top - low))


def moment_divergence(mean: ArrayLike, variance: ArrayLike, top: float) -> np.ndarray:
    """The least divergence of a law with this mean and variance, none above `top`, to one with a mean of 0 or more.

    kl(p, q) of `two_points`; 0 where the mean is 0 or more. With u = -mean and w = top + u it is, in the moments,
    (w^2 log(w / top) - variance log(1 + u w / variance)) / (w^2 + variance), both logarithms being taken without their
    linear terms, which cancel. Parameters as in `two_points`, but for any mean.

    >>> round(float(moment_divergence(mean=-1.0, variance=2.0, top=1.0) / np.log(2)), 12)      # log(2) / 3
    0.333333333333
    """
    mean, variance, top = _moments(mean, variance, top)
    u = np.maximum(-mean, 0.0)
    w = top + u
    some = variance > _TINY * u * w
    v = np.where(some, variance, 1.0)
    found = (w * w * np.abs(bent_each(-u / w)) + v * np.abs(bent_each(u * w / v))) / (w * w + v)
    return np.where(some, found, np.log1p(u / top))         # without variance `top` has no chance: kl(0, q)


def exact_divergence(values: ArrayLike, probabilities: ArrayLike, top: float) -> float:
    """The least divergence of a law with finitely many values to one with a mean of 0 or more and none above `top`.

    `values` and `probabilities` have one shape, no value is above `top`, which is above 0.

    >>> round(exact_divergence([-2.0, 1.0], [2 / 3, 1 / 3], top=1.0) / float(np.log(2)), 12)
    0.333333333333
    """
    top, x = positive("top", top), numbers("values", values, shape=("n",))
    p = numbers("probabilities", probabilities, 0, 1, "must be in [0, 1]", shape=x.shape)
    require(abs(p.sum() - 1) < 1e-9, "probabilities", p, "must add up to 1")
    require(x.max() <= top, "values", x, f"must be at most {top!r}")
    x, p = x[p > 0], p[p > 0]

    def slope(share):                                   # of the dual E log(1 - l X), which is concave; l is share / top
        return -(p * x / (1 - share * x / top)).sum()

    if slope(0.0) <= 0:
        return 0.0
    ends = 1 / top
    last = 1.0 if x.max() < top else 1 - 2.0**-50       # a chance of `top` that is next to nothing changes nothing
    share = last if slope(last) >= 0 else brentq(slope, 0.0, last, xtol=1e-300, rtol=1e-15)
    return float((p * np.log1p(-share * ends * x)).sum())


def rare_events(mean: ArrayLike, variance: ArrayLike, top: float) -> np.ndarray:
    """What `moment_divergence` is next to where `top` is a rare event.

    With x = u top / variance it is variance / top^2 (x - log(1 + x)), the divergence of two Poisson laws. With the
    variance v of the closest law whose mean is 0, that is v / top^2 times Bennett's h(-u top / v), where
    h(y) = (1 + y) log(1 + y) - y. Parameters as in `two_points`.

    >>> u, variance = 1e-6, 2e-6
    >>> round(float(moment_divergence(-u, variance, 1.0) / rare_events(-u, variance, 1.0)), 5)
    1.0
    """
    mean, variance, top = _moments(mean, variance, top)
    require(bool((mean < 0).all()), "mean", mean, "must be below 0")
    some = variance > _TINY * -mean * top
    v = np.where(some, variance, 1.0)
    return np.where(some, v / top**2 * np.abs(bent_each(-mean * top / v)), -mean / top)


def rates(bandit: Bandit, max_reward: float = 1.0, dependence: str = "independent") -> np.ndarray:
    """1 / D_k at the best ratio, shape (K,): pulls of a worse arm per logarithm of the rounds, by `cb.MomentIMED()`.

    0 for the best arm, and for those that tie with it but for rounding. D_k is `moment_divergence` of R - rho* C; where
    no cost varies, with max_reward - rho* c for the top, and no pull at all where that is 0 or less. By `dependence`,
    as in the policy, the variance is that of independent rewards and costs, the largest one, or the bandit's own. What
    no consistent policy can go below for outcomes 0 and 1 that are independent is `cb.bounds.kl_ucb.rates`; `cb.IMED()`
    needs that many. ValueError where an arm is free, or a reward is below 0 or above `max_reward`.

    >>> bandit = cb.Bandit([cb.Bernoulli(0.8), cb.Bernoulli(0.2)], [cb.Bernoulli(0.4), cb.Bernoulli(0.6)])
    >>> rates(bandit).round(3)
    array([0.  , 3.15])
    """
    require(bandit.cost_means.min() > 0, "bandit", bandit, "must have expected costs above 0")
    max_reward, best = positive("max_reward", max_reward), float(bandit.ratios.max())
    require(dependence in KINDS, "dependence", dependence, f"must be one of {KINDS}")
    for arm, law in enumerate(bandit.rewards):
        require(0 <= law.support[0] and law.support[1] <= max_reward, f"reward of arm {bandit.label(arm)}", law,
                f"must be in [0, max_reward], which is [0, {max_reward:g}]")
    known, found = all(law.variance == 0 for law in bandit.costs), np.zeros(bandit.K)
    for k in np.flatnonzero(bandit.ratios < best * (1 - ROUNDING)).tolist():
        root_r, root_c = bandit.rewards[k].variance**0.5, best * bandit.costs[k].variance**0.5
        pairs = None if bandit.outcomes is None else bandit.outcomes[k]
        alike = (0.0, -1.0, np.nan_to_num(getattr(pairs, "correlation", 0.0)))[KINDS.index(dependence)]
        variance = max(root_r**2 + root_c**2 - 2 * alike * root_r * root_c, 0.0)
        top = max_reward - best * bandit.cost_means[k] * known
        mean = bandit.reward_means[k] - best * bandit.cost_means[k]
        found[k] = 1 / moment_divergence(mean, variance, top) if top > 0 else 0.0
    return found
