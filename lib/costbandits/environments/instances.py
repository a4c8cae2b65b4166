"""The papers' random instances of K arms, each a function rng -> Bandit that can be sent to other processes."""

from collections.abc import Callable
from functools import partial
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike

from ..checks import count, number, numbers, positive, require
from . import ads as data
from .bandits import Bandit, LinearBandit
from .distributions import Bernoulli, Beta, Constant, Discrete, TruncatedNormal

MOST_ARMS = 10**6
Maker = Callable[[np.random.Generator], Bandit]


def bernoulli(K: int, cost_low: float = 0.01) -> Maker:
    """S-Br (Heyden et al., Table 1): Bernoulli rewards U(0, 1) and costs U(cost_low, 1).

    The paper prints U(0, 1) for costs, its public code draws from U(0.01, 1). With cost_low = 0 the smallest
    expected cost, and with it the budget, can be arbitrarily close to 0.

    Parameters
    ----------
    K : int
        Arms, 1 or more.
    cost_low : float in [0, 1]
        The smallest expected cost that can be drawn.

    Examples
    --------
    >>> bernoulli(2)(np.random.default_rng(0)).reward_means.round(2)
    array([0.64, 0.27])
    """
    cost_low = number("cost_low", cost_low, 0, 1, "must be in [0, 1]")
    return partial(_bernoulli, K=count("K", K, high=MOST_ARMS), cost_low=cost_low)


def _bernoulli(rng, K, cost_low):
    return Bandit([Bernoulli(p) for p in rng.random(K)], [Bernoulli(p) for p in rng.uniform(cost_low, 1, K)])


def generalized_bernoulli(K: int, values: ArrayLike = (0.0, 0.25, 0.5, 0.75, 1.0)) -> Maker:
    """S-GBr (Heyden et al., Table 1): weights U(0, 1), normalised, on five values; rewards and costs alike.

    Parameters
    ----------
    K : int
        Arms, 1 or more.
    values : sequence of float
        Two or more: what a reward or a cost can be.

    Examples
    --------
    >>> generalized_bernoulli(2, values=(0, 1))(np.random.default_rng(0)).cost_means.round(2)
    array([0.53, 0.55])
    """
    values = tuple(numbers("values", values, shape=("m",)).tolist())
    require(len(values) > 1, "values", values, "must be at least two numbers")
    return partial(_generalized_bernoulli, K=count("K", K, high=MOST_ARMS), values=values)


def _generalized_bernoulli(rng, K, values):
    weights = rng.random((2, K, len(values)))
    weights /= weights.sum(axis=2, keepdims=True)
    return Bandit(*([Discrete(values, row) for row in half] for half in weights))


def beta(K: int, low: float = 0.0, high: float = 5.0) -> Maker:
    """S-Bt (Heyden et al., Table 1): Beta rewards and costs, all parameters U(low, high).

    Parameters
    ----------
    K : int
        Arms, 1 or more.
    low, high : float
        Range of the Beta laws' shape parameters, 0 <= low < high.

    Examples
    --------
    >>> beta(2)(np.random.default_rng(0)).reward_means.round(2)
    array([0.27, 0.43])
    """
    low = number("low", low, 0, allowed="must be a finite number, 0 or more")
    high = number("high", high, allowed=f"must be a finite number above low = {low!r}", above=low)
    return partial(_beta, K=count("K", K, high=MOST_ARMS), low=low, high=high)


def _beta(rng, K, low, high):
    # 1 - random() lies in (0, 1]: a parameter of exactly 0 is not allowed.
    return _beta_bandit(low + (high - low) * (1 - rng.random((2, 2, K))))


def _beta_bandit(shapes):
    return Bandit(*([Beta(a, b) for a, b in zip(*half, strict=True)] for half in np.asarray(shapes).tolist()))


def knapsack(K: int, cost_low: float = 1.0, cost_high: float = 20.0) -> Maker:
    """Known costs U(cost_low, cost_high); normal rewards, means m from U(10, 20), variance m/2, cut off at 0 and 2m.

    Tran-Thanh et al. (2012), section 5: homogeneous costs in [5, 10], moderately diverse ones in [1, 10], extremely
    diverse ones in [1, 20]. The variance is that of the normal law before it is cut off, which takes less than 0.02 %.

    Parameters
    ----------
    K : int
        Arms, 1 or more.
    cost_low, cost_high : float
        Range of the costs of a pull, 0 < cost_low < cost_high.

    Examples
    --------
    >>> knapsack(3)(np.random.default_rng(0)).cost_means.round(2)
    array([ 1.31, 16.45, 18.34])
    """
    low = positive("cost_low", cost_low)
    high = number("cost_high", cost_high, allowed=f"must be a finite number above cost_low = {low!r}", above=low)
    return partial(_knapsack, K=count("K", K, high=MOST_ARMS), low=low, high=high)


def _knapsack(rng, K, low, high):
    means, costs = rng.uniform(10, 20, K).tolist(), rng.uniform(low, high, K).tolist()
    return Bandit([TruncatedNormal(m, (m / 2) ** 0.5, 0, 2 * m) for m in means], [Constant(cost) for cost in costs])


def linear(vertices: ArrayLike, low: float = 0.1, noise_sd: float = 0.1) -> Maker:
    """Linear arms with uniform parameters: each coordinate of both vectors U(low, 1), over the largest coordinate sum.

    Xia et al., section 5, give no more than "sampled from a uniform distribution". Divided by the largest sum of an
    arm's coordinates every expected reward and cost lies in (0, 1).

    Parameters
    ----------
    vertices : array_like of shape (K, d)
        The arms, the same for all instances; coordinates of 0 or more, not all 0.
    low : float
        In (0, 1): the smallest expected cost is no less than `low` times the smallest over the largest sum.
    noise_sd : float
        As in `LinearBandit`.

    Examples
    --------
    >>> linear([[0, 1], [1, 1]])(np.random.default_rng(0)).cost_means.round(2)
    array([0.06, 0.13])
    """
    x = numbers("vertices", vertices, 0, allowed="must have coordinates of 0 or more", shape=("K", "d"))
    require(bool(x.any(axis=1).all()), "vertices", vertices, "must not have an arm whose coordinates are all 0")
    low = number("low", low, allowed="must be in (0, 1)", above=0, below=1)
    return partial(_linear, vertices=x, low=low, noise_sd=positive("noise_sd", noise_sd))


def _linear(rng, vertices, low, noise_sd):
    reward, cost = rng.uniform(low, 1, (2, vertices.shape[1])) / vertices.sum(axis=1).max()
    return LinearBandit(vertices, reward, cost, noise_sd)


def ads(setting: data.Setting | int, kind: str = "bernoulli") -> Maker:
    """FB-Br and FB-Bt (Heyden et al., Table 1 and section 5.1): arms with the expected rewards and costs of real ads.

    Parameters
    ----------
    setting : ads.Setting or int
        One of `ads.settings(...)`, or a position 0 to 18 in the list that `ads.settings()` makes of the user's file.
    kind : {"bernoulli", "beta"}
        "bernoulli" (FB-Br): the same bandit every time. "beta" (FB-Bt): all parameters U(0, 5), drawn as in `beta`
        (the rewards' alphas, one per arm, their betas, then the costs' likewise); then alpha is adjusted to the mean
        where this is at most 1/2, else beta, so that the adjusted parameter never exceeds the other one. The authors'
        code multiplies the means by 0.99 once more here; we keep those of the setting, as the paper says.

    Raises
    ------
    FileNotFoundError, ValueError
        If a position is given and the file is missing or altered (see `ads.load`).

    Examples
    --------
    >>> ads(cb.ads.settings(standin=True)[0])(np.random.default_rng(0)).K
    7
    """
    require(isinstance(kind, str) and kind in _ADS, "kind", kind, f"must be one of {list(_ADS)}")
    if not isinstance(setting, data.Setting):
        known = isinstance(setting, Integral) and not isinstance(setting, bool) and 0 <= setting <= 18
        require(known, "setting", setting, "must be one of ads.settings(...), or a whole number from 0 to 18")
        setting = data.settings()[setting]
    return partial(_ADS[kind], setting=setting)


def _bernoulli_ads(rng, setting):
    return Bandit(*([Bernoulli(p) for p in means.tolist()] for means in (setting.reward_means, setting.cost_means)))


def _beta_ads(rng, setting):
    means = np.stack([setting.reward_means, setting.cost_means])
    a, b = np.moveaxis(5 * (1 - rng.random((2, 2, setting.K))), 1, 0)
    low = means <= 0.5
    return _beta_bandit(np.stack([np.where(low, b * means / (1 - means), a),
                                  np.where(low, b, a * (1 - means) / means)], axis=1))


_ADS = {"bernoulli": _bernoulli_ads, "beta": _beta_ads}
