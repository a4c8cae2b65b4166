"""What Sinha et al., "Multi-Armed Bandits with Cost Subsidy", promise.

Theorems 1 to 4 with their proofs' constants, repaired where they need it, and the instances on which they fail.

Regret is quality plus cost regret, both in units of [0, 1] per round, unless a function says otherwise. K is the number
of arms, in the family of the lower bound that of expensive ones, so that there are K + 1. In all functions alpha, in
[0, 1), is the share of the best reward that may be lost, and T (`horizon`), a number of rounds, is at least K.
"""

from collections.abc import Callable
from math import ceil, exp, inf, log, pi, sqrt
from typing import NamedTuple

import numpy as np
from numba import types
from numpy.typing import ArrayLike
from scipy.optimize import brentq, minimize_scalar
from scipy.special import ndtr
from scipy.stats import binom

from ...checks import ROUNDING, count, number, numbers, positive, require, share
from ...engine.compilation import compiled_for
from ...engine.numerics import bent
from ...environments.bandits import Bandit
from ...environments.distributions import Bernoulli, Constant
from ..factory import GUARANTEE
from .kl_ucb import divergence as kl
from .shared import first_from, steepest

_WEIGHT = 1 / 3             # of the instance without a better arm, at which the floor is largest for T >> K


def _pair(means):
    """The means of the cheap and of the expensive arm."""
    return numbers("means", means, 0, 1, "must be in [0, 1]", shape=(2,)).tolist()


def _game(K, horizon):
    K = count("K", K)
    return K, count("horizon", horizon, low=K)


# ---- Theorem 2: the lower bound ----------------------------------------------------------------------

def family(K: int, theta: float, p: float, epsilon: float, better: int = 0) -> Bandit:
    """Phi^a_(theta, p, epsilon) (Sinha et al., Definition 1): the instances of the lower bound, K + 1 Bernoulli arms.

    Arm 0 is free and has mean p; K arms cost 1 and have mean p / (1 - theta), arm a has (p + epsilon) / (1 - theta).
    With alpha = theta arm 0 is exactly good enough if there is no such arm, and not if there is. a (`better`) is 1 to
    K, or 0 for none; theta is in [0, 1), p in (0, 1/2], epsilon above 0 with (p + epsilon) / (1 - theta) below 1.

    >>> family(2, theta=0.5, p=0.25, epsilon=0.125, better=1).reward_means
    array([0.25, 0.75, 0.5 ])
    """
    K, theta = count("K", K), share("theta", theta)
    usual, best = _family_means(theta, p, epsilon)
    better = count("better", better, low=0)
    require(better <= K, "better", better, f"must be at most {K}, the number of expensive arms")
    others = [Bernoulli(best if a == better else usual) for a in range(1, K + 1)]
    return Bandit([Bernoulli(p), *others], [Constant(0.0), *[Constant(1.0)] * K])


def _family_means(theta, p, epsilon):
    # The expensive arms' means, the usual and the better one.
    p = number("p", p, 0, 0.5, "must be in (0, 1/2]", above=0)
    epsilon = number("epsilon", epsilon, allowed="must be above 0, and (p + epsilon) / (1 - theta) below 1", above=0,
                     below=1 - theta - p)
    return p / (1 - theta), (p + epsilon) / (1 - theta)


def divergence(p: ArrayLike, q: ArrayLike) -> float | np.ndarray:
    """kl(p, q), the divergence of Bernoulli(p) from Bernoulli(q), in nats; p and q in (0, 1), scalars or arrays.

    >>> round(float(divergence(0.25, 0.5)), 4)
    0.1308
    """
    p, q = (numbers(name, value, 0, np.nextafter(1, 0), "must be in (0, 1)", above=0)
            for name, value in (("p", p), ("q", q)))
    return kl(p, q)[()]


def lemma_1(K: int, horizon: int, p: float) -> float:
    """Lemma 1 (Sinha et al.) with the constant of its proof: epsilon T / 2 - epsilon^4 T^2 / (4 p K (1 - epsilon)).

    No policy's regret is less on all of Phi_(0, p, epsilon), epsilon = (p / 2) (K / T)^(1/3), with alpha = 0, p <= 1/2.

    >>> round(lemma_1(K=2, horizon=10_000, p=0.5), 1)
    71.9
    """
    (K, T), p = _game(K, horizon), number("p", p, 0, 0.5, "must be in (0, 1/2]", above=0)
    _family_means(0.0, p, epsilon := p / 2 * (K / T) ** (1 / 3))
    return epsilon * T / 2 - epsilon**4 * T**2 / (4 * p * K * (1 - epsilon))


def theorem_2(K: int, horizon: int, alpha: float) -> float:
    """Theorem 2 (Sinha et al.) with the constant of its proof: 0.004 (1 - alpha)^2 K^(1/3) T^(2/3).

    Lemma 1 with p = (1 - alpha) / 3, over the 9.5 C / delta coins that a Bernoulli factory takes in place of one, where
    C = 1 / (1 - alpha) and delta = 1/2. For alpha = 0 no factory is needed: Lemma 1 with p = 1/2.

    >>> round(theorem_2(K=2, horizon=10_000, alpha=0.1), 2)
    2.07
    """
    if share("alpha", alpha) == 0:
        return lemma_1(K, horizon, 0.5)
    return lemma_1(K, horizon, (1 - alpha) / 3) * 0.5 * (1 - alpha) / GUARANTEE


def floor_on(K: int, horizon: int, alpha: float, p: float, epsilon: float, weight: float = 0.5,
             price: float = 1.0) -> float:
    """A regret that every policy has on some instance of Phi_(alpha, p, epsilon); ours, without a factory.

    With w the weight of the instance without a better arm, C the price of an expensive pull, kl the divergence of an
    expensive arm's two means: (1 - w) epsilon T - ((1 - w) epsilon T)^2 kl / (8 K (w C - (1 - w) epsilon)), negative
    where T is too large for so large an epsilon.

    p and epsilon as in `family`; the price is in (0, 1], the weight in (0, 1), above epsilon / (C + epsilon).

    >>> round(floor_on(K=2, horizon=1000, alpha=0.1, p=0.4, epsilon=0.05), 2)
    24.49
    """
    K, T, alpha = count("K", K), count("horizon", horizon), share("alpha", alpha)
    (usual, _), epsilon = _family_means(alpha, p, epsilon), float(epsilon)
    number("price", price, 0, 1, "must be in (0, 1]", above=0)
    number("weight", weight, allowed="must be in (0, 1), above epsilon / (C + epsilon)",
           above=epsilon / (price + epsilon), below=1)
    gap, due = epsilon / (1 - alpha), (1 - weight) * epsilon * T
    apart = -usual * bent(gap / usual) - (1 - usual) * bent(-gap / (1 - usual))     # kl, also where the gap is tiny
    return float(due - due**2 * apart / (8 * K * (weight * price - (1 - weight) * epsilon)))


class Floor(NamedTuple):
    """A lower bound `value` of every policy's largest regret, and the family Phi_(alpha, p, epsilon) that shows it."""
    value: float
    p: float
    epsilon: float


def theorem_2_repaired(K: int, horizon: int, alpha: float, delta: float = inf) -> Floor:
    """Theorem 2 repaired: about 0.397 (1 - alpha)^(2/3) K^(1/3) T^(2/3) for T >> K / (1 - alpha); ours.

    `floor_on` with weight 1/3 and expensive arms of means (1 - e) / 2 and (1 + e) / 2, at the best e. With a finite
    delta the price is as high as delta-consistent costs allow: see `theorem_4_floor`.

    >>> np.round(theorem_2_repaired(K=2, horizon=10_000, alpha=0.1), 2)
    array([210.07,   0.43,   0.04])
    """
    K, T, alpha = count("K", K), count("horizon", horizon), share("alpha", alpha)
    if delta != inf:
        delta = positive("delta", delta)
        require(alpha > 0, "alpha", alpha, "must be above 0 where delta is finite")

    def price(e):
        return 1.0 if delta == inf else min(delta * alpha * (1 - e) / 2, 1.0)

    def at(e):
        return floor_on(K, T, alpha, (1 - alpha) * (1 - e) / 2, (1 - alpha) * e, _WEIGHT, price(e))

    # Concave in e, up to where a search pays no longer, (1 - alpha) e = C / 2; for large T best near this `middle`. The
    # minimum is looked for by log e, and so found to a part of e, however small that is.
    slope = delta * alpha / 4 if delta != inf else 1e300
    highest = (1 - 1e-6) * min(0.5 / (1 - alpha), slope / (1 - alpha + slope))
    middle = min((K * price(0.0) / ((1 - alpha) * T)) ** (1 / 3), highest)
    e = exp(minimize_scalar(lambda x: -at(exp(x)), bounds=(log(middle / 8), log(highest)), method="bounded").x)
    return Floor(at(e), (1 - alpha) * (1 - e) / 2, (1 - alpha) * e)


@compiled_for(types.float64(types.int64, types.float64, types.float64, types.float64, types.float64, types.float64))
def _stopping(T, usual, better, loss, weight, price):
    """Optimal stopping: after s successes in n pulls of the other arm, stay with the free arm or pull once more."""
    up, down = log(better / usual), log((1.0 - better) / (1.0 - usual))
    value, prior = np.zeros(T + 2), log((1.0 - weight) / weight)
    for n in range(T - 1, -1, -1):
        # Below `low` one pull costs more than it can ever save, after n - 1 pulls as well, and nobody asks for the
        # value. Above `high` all pulls that are left cost less than 1e-18 of what one does: 0 stands for it.
        low = (log(price / loss / (T - n + 1)) - prior - (n - 1) * down) / (up - down)
        high = (log(1e18 * T) - prior - n * down) / (up - down)
        for s in range(min(max(ceil(low), 0), n), min(ceil(high), n) + 1):
            chance = 1.0 / (1.0 + exp(-(prior + s * up + (n - s) * down)))      # probability that the arm is better
            q = (1.0 - chance) * usual + chance * better
            on = (1.0 - chance) * price + q * value[s + 1] + (1.0 - q) * value[s]
            value[s] = min(chance * loss * (T - n), on)
    return value[0]


def bayes_regret(horizon: int, alpha: float, p: float, epsilon: float, weight: float = 0.5,
                 price: float = 1.0) -> float:
    """The smallest mean regret over Phi^0 and Phi^1 with one expensive arm, of all policies, exactly.

    By dynamic programming over pulls and successes of the expensive arm, which the best policy pulls first, and stops
    for good when it pays no longer. No policy's larger regret of the two is below it.

    T is at most 20,000: it takes at most 5 ns times T^2. p and epsilon as in `family`; `weight`, in (0, 1), is the
    prior probability of Phi^0, `price`, in (0, 1], the expensive arm's cost.

    >>> print(round(bayes_regret(1000, alpha=0.1, p=0.4, epsilon=0.1), 2))
    37.72
    """
    T, alpha = count("horizon", horizon, high=20_000), share("alpha", alpha)
    (usual, better), epsilon = _family_means(alpha, p, epsilon), float(epsilon)
    number("weight", weight, allowed="must be in (0, 1)", above=0, below=1)
    number("price", price, 0, 1, "must be in (0, 1]", above=0)
    return _stopping(T, usual, better, float(epsilon), float(weight), float(price))


# ---- Theorem 1: Thompson sampling ---------------------------------------------------------------------

def theorem_1_instance(K: int, alpha: float, horizon: int, quality: float = 0.5, shift: float = 0.0) -> Bandit:
    """Theorem 1's instance (Sinha et al., Appendix C) with any q: each works for every alpha.

    Arm 0 is free and always pays (1 - alpha) q + d / sqrt(T); the others cost 1 and pay q, d / ((1 - alpha) sqrt(T)) in
    the paper. K is 2 or more, q (`quality`) in (0, 1], d (`shift`) in [0, alpha q sqrt(T)]: d = 0 fits every T.

    >>> theorem_1_instance(3, alpha=0.5, horizon=100).reward_means
    array([0.25, 0.5 , 0.5 ])
    """
    mean, quality = _border(K, alpha, horizon, quality, shift)
    return Bandit([Constant(mean), *[Constant(quality)] * (K - 1)], [Constant(0.0), *[Constant(1.0)] * (K - 1)])


def _border(K, alpha, horizon, quality, shift):
    K, alpha = count("K", K, low=2), share("alpha", alpha)
    T = count("horizon", horizon, low=K)
    number("quality", quality, 0, 1, "must be in (0, 1]", above=0)
    most = alpha * quality * sqrt(T)
    number("shift", shift, 0, most, f"must be in [0, alpha q sqrt(T)] = [0, {most:g}]")
    return min((1 - alpha) * quality + shift / sqrt(T), quality), float(quality)


def theorem_1_repaired(K: int, horizon: int, alpha: float, quality: float = 0.5, shift: float = 0.0,
                       prior_sd: float = inf, noise_sd: float = 1.0) -> float:
    """Theorem 1 repaired: CS-TS with normal posteriors has at least this cost regret on `theorem_1_instance`; ours.

    K - 1 + (T - K) (1 - Phi(z)^(K - 1)) / 2 with z = d / (1 - alpha) sqrt(1 / (T s0^2) + 1 / sn^2)
    + q sn / (s0 sqrt(sn^2 + s0^2)).

    Parameters as in `theorem_1_instance`; s0 (`prior_sd`) is the standard deviation of the normal prior with mean 0,
    infinite for a flat one, and sn (`noise_sd`) that which the policy believes rewards to have.

    >>> theorem_1_repaired(K=2, horizon=1002, alpha=0.1)
    251.0
    """
    _border(K, alpha, horizon, quality, shift)
    noise = positive("noise_sd", noise_sd)
    z = shift / (1 - alpha) / noise
    if prior_sd != inf:
        prior = positive("prior_sd", prior_sd)
        z = (shift / (1 - alpha) * sqrt(1 / (horizon * prior**2) + 1 / noise**2)
             + quality * noise / (prior * sqrt(noise**2 + prior**2)))
    return K - 1 + (horizon - K) * (1 - float(ndtr(z)) ** (K - 1)) / 2


def theorem_1(K: int, horizon: int, alpha: float, shift: float, prior_sd: float = 1.0, noise_sd: float = 1.0) -> float:
    """T min{x / 2, g / 4}, the lower bound that Theorem 1's proof gives (Sinha et al., Appendix C), at its best s.

    Here x = s sqrt(K). The paper leaves s open; g falls with it, and the bound is largest where both agree. Parameters
    as in `theorem_1_repaired`; `shift` is above 0.

    >>> round(theorem_1(K=2, horizon=1000, alpha=0.1, shift=0.1), 1)
    17.4
    """
    K, alpha, T = count("K", K), share("alpha", alpha), count("horizon", horizon)
    precision = 1 / positive("prior_sd", prior_sd) ** 2 + 1 / positive("noise_sd", noise_sd) ** 2
    rate = 14 * precision * positive("shift", shift) ** 2 / (1 - alpha) ** 2

    def g(x):
        return -np.expm1((K - 1) * np.log1p(-exp(-rate * x) / (8 * sqrt(pi))))

    return T * brentq(lambda x: x / 2 - g(x) / 4, 0.0, 0.5) / 2


def ucb_share(alpha: float) -> float:
    """Share of rounds in which CS-UCB pulls the expensive arm on `theorem_1_instance`, K = 2, d = 0, as T grows; ours.

    >>> ucb_share(alpha=0.5)
    0.2
    """
    odds = (1 - share("alpha", alpha)) ** 2         # the radii keep T_1 = (1 - alpha)^2 T_0
    return odds / (1 + odds)


# ---- Theorem 3: explore, then commit -------------------------------------------------------------------

class Regrets(NamedTuple):
    """Bounds or expectations of the two regrets, `quality` and `cost`."""
    quality: float
    cost: float

    @property
    def total(self) -> float:
        """Their sum."""
        return self.quality + self.cost


def _exploring(K, horizon, alpha, pulls, costs="known"):
    """Checked: number of arms, T, alpha, tau, and whether costs are known."""
    K, T = _game(K, horizon)
    require(costs in ("known", "unknown"), "costs", costs, "must be 'known' or 'unknown'")
    tau = (T / K) ** (2 / 3) if pulls is None else number(
        "pulls", pulls, 1, T / K, f"must be a number of pulls from 1 to T / K = {T / K:g}")
    return K, T, share("alpha", alpha), tau, costs == "known"


def theorem_3(K: int, horizon: int, alpha: float = 0.0, pulls: float | None = None, costs: str = "known") -> Regrets:
    """Theorem 3 (Sinha et al.) with the constants of its proof: upper bounds of CS-ETC's regrets.

    Quality: K tau + 4 T sqrt(2 log T / tau) + 2 / T. Cost: K tau + 2 / T, and for Algorithm 3, which the paper says has
    the same bound, 2 T sqrt(2 log T / tau) more, and 2 / T more in both.

    The printed bound does not depend on alpha. tau (`pulls`) are the exploration pulls of each arm, (T / K)^(2/3) by
    default, not rounded. Costs are "known" (Algorithm 2) or "unknown" (Algorithm 3).

    >>> np.round(theorem_3(K=2, horizon=10_000))
    array([10625.,   585.])
    """
    K, T, _, tau, known = _exploring(K, horizon, alpha, pulls, costs)
    error = T * sqrt(2 * log(T) / tau)
    failure = (1 if known else 2) * 2 / T
    return Regrets(K * tau + 4 * error + failure, K * tau + (0.0 if known else 2 * error) + failure)


def theorem_3_repaired(K: int, horizon: int, alpha: float, pulls: float | None = None,
                       costs: str = "known") -> Regrets:
    """Theorem 3 with alpha, and with the radius of the arm that is pulled, which shrinks; ours.

    Quality: (1 - alpha) (K tau + 2 (T - K tau) sqrt(2 log T / tau)) + R + 2 / T. Cost: K tau + 2 / T. With
    unknown costs R more in cost, and 2 / T more in both.
    R = 4 sqrt(2 log T) (sqrt(K (T - K)) - K sqrt(tau - 1)) is twice the sum of the pulled arms' radii.

    >>> np.round(theorem_3_repaired(K=2, horizon=10_000, alpha=0.1))
    array([6622.,  585.])
    """
    K, T, alpha, tau, known = _exploring(K, horizon, alpha, pulls, costs)
    width, failure = sqrt(2 * log(T)), (1 if known else 2) * 2 / T
    radii = max(4 * width * (sqrt(K * (T - K)) - K * sqrt(tau - 1)), 0.0)
    quality = (1 - alpha) * (K * tau + 2 * (T - K * tau) * width / sqrt(tau)) + radii
    return Regrets(quality + failure, K * tau + (0.0 if known else radii) + failure)


def best_pulls(K: int, horizon: int, alpha: float) -> float:
    """The tau at which the larger terms of `theorem_3_repaired` are smallest, at least 1, at most T / K.

    >>> round(best_pulls(K=2, horizon=10_000, alpha=0.1))
    469
    """
    K, T = _game(K, horizon)
    alpha = share("alpha", alpha)
    return min(max(((1 - alpha) * T * sqrt(2 * log(T)) / ((2 - alpha) * K)) ** (2 / 3), 1.0), T / K)


def etc_floor(K: int, horizon: int, alpha: float, pulls: float | None = None) -> float:
    """A regret that CS-ETC does have on `etc_hard`: the sqrt(log T) of Theorem 3 is the algorithm's; ours.

    (1 - alpha) sqrt(2 log T / tau) (T - (K - 1) tau) (1 - T^-3), tau as in `theorem_3`; 0 if there is no such instance.

    >>> round(etc_floor(K=2, horizon=10_000, alpha=0.1))
    2193
    """
    K, T, alpha, tau, _ = _exploring(K, horizon, alpha, pulls)
    radius = sqrt(2 * log(T) / tau)
    return (1 - alpha) * radius * (T - (K - 1) * tau) * (1 - T**-3.0) if radius <= 1 else 0.0


def etc_hard(K: int, horizon: int, alpha: float, pulls: int) -> Bandit:
    """Arms that CS-ETC cannot tell apart: a free one of mean (1 - alpha) (1 - sqrt(2 log T / tau)), others always pay.

    >>> etc_hard(K=2, horizon=10_000, alpha=0.1, pulls=100).reward_means.round(3)
    array([0.514, 1.   ])
    """
    K, T, alpha, tau, _ = _exploring(K, horizon, alpha, count("pulls", pulls))
    radius = sqrt(2 * log(T) / tau)
    require(radius <= 1, "pulls", pulls, f"must be at least 2 log T = {2 * log(T):g}")
    return Bandit([Bernoulli((1 - alpha) * (1 - radius)), *[Constant(1.0)] * (K - 1)],
                  [Constant(0.0), *[Constant(1.0)] * (K - 1)])


def informative_from(K: int, alpha: float, bound: Callable[[int, int, float], Regrets] = theorem_3) -> int:
    """The first T, from 100 K on, at which a bound is below (1 - alpha) T: always pulling the cheapest arm keeps that.

    `bound` is (K, T, alpha) -> Regrets, whose total over T falls once T is above 100 K.

    >>> informative_from(2, alpha=0.5, bound=lambda K, T, alpha: Regrets(T**0.5, 100 * K))
    443
    """
    K, alpha = count("K", K), share("alpha", alpha)
    first = first_from(lambda T: bound(K, T, alpha).total < (1 - alpha) * T, 100 * K, 2**200)
    require(first < inf, "bound", bound, "must fall below (1 - alpha) T for some T")
    return first


def leaves(means: ArrayLike, alpha: float, horizon: int, pulls: int | None = None) -> float:
    """Upper bound of the probability that CS-ETC pulls the expensive of two Bernoulli arms after exploring; ours.

    T^-3, and the probability that the expensive arm's mean of tau pulls is mu_cheap / (1 - alpha) + sqrt(2 log T / tau)
    or more. `means` are of the cheap and the expensive arm; tau (`pulls`) is (T / 2)^(2/3) rounded by default.

    >>> round(leaves((0.5, 0.9), alpha=0.1, horizon=5000), 3)
    0.954
    """
    (cheap, expensive), alpha, (_, T) = _pair(means), share("alpha", alpha), _game(2, horizon)
    tau = min(round((T / 2) ** (2 / 3)), T // 2) if pulls is None else count("pulls", pulls)
    require(2 * tau <= T, "pulls", pulls, f"must be at most T / 2 = {T / 2:g}")
    needed = tau * (cheap / (1 - alpha) + sqrt(2 * log(T) / tau))
    return min(float(binom.sf(ceil(needed - 1e-9) - 1, tau, expensive)) + T**-3.0, 1.0)


def sees_from(means: ArrayLike, alpha: float, at_once: bool = False) -> float:
    """The first T at which CS-ETC excludes a cheap arm that is not good enough, if estimates equal means; ours.

    A whole number, or inf if the cheap arm is good enough. Means as in `leaves`; `at_once` says whether right after the
    exploration, when the cheap arm has tau = (T / 2)^(2/3) pulls (not rounded), or by the end, when it has T - tau.

    >>> sees_from((0.25, 0.75), alpha=0.0)
    1738
    """
    (cheap, expensive), alpha = _pair(means), share("alpha", alpha)
    gap = (1 - alpha) * expensive - cheap
    if gap <= ROUNDING:
        return inf

    def excluded(T):
        tau, width = (T / 2) ** (2 / 3), sqrt(2 * log(T))
        return width * ((1 - alpha) / sqrt(tau) + 1 / sqrt(tau if at_once else T - tau)) < gap

    return first_from(excluded, 3, 2**400)


# ---- Theorem 4: consistent costs ---------------------------------------------------------------------

def consistency(reward_means: ArrayLike, costs: ArrayLike) -> float:
    """The smallest delta with |c_i - c_j| <= delta |mu_i - mu_j| for all arms (Sinha et al., Theorem 4).

    Takes K means and K costs; infinite if two arms differ in cost alone.

    >>> consistency([0.25, 0.75], [0.0, 1.0])
    2.0
    """
    means = numbers("reward_means", reward_means, shape=("K",))
    return steepest(numbers("costs", costs, shape=means.shape), means)


def theorem_4(K: int, horizon: int, delta: float) -> Regrets:
    """Theorem 4 (Sinha et al.) with the constants of its proof: upper bounds of CS-UCB's regrets.

    sqrt(8 K T log T) for quality, true for every alpha and whatever the costs; delta times that for cost, true if no
    more expensive arm is better than the optimal one, as with alpha = 0, and false in general. Both have K + 2 / T
    more, for the last pull of each arm and for confidence bounds that fail. delta as in `consistency`, above 0.

    >>> np.round(theorem_4(K=2, horizon=10_000, delta=2))
    array([1216., 2430.])
    """
    K, T = _game(K, horizon)
    root = sqrt(8 * K * T * log(T))
    return Regrets(root + K + 2 / T, positive("delta", delta) * root + K + 2 / T)


def theorem_4_floor(K: int, horizon: int, alpha: float, delta: float) -> Floor:
    """No policy has Theorem 4 for alpha above 0: a regret that every one has on delta-consistent instances; ours.

    The family of `theorem_2_repaired` where an expensive pull costs C = min(1, delta alpha r), and r = (1 - e) / 2 is
    the expensive arms' mean. About 0.397 (K C)^(1/3) ((1 - alpha) T)^(2/3) for T >> K / ((1 - alpha) C^2).

    alpha is in (0, 1); delta, as in `consistency`, above 0.

    >>> np.round(theorem_4_floor(K=2, horizon=10_000, alpha=0.5, delta=2), 2)
    array([110.67,   0.24,   0.02])
    """
    require(share("alpha", alpha) > 0, "alpha", alpha, "must be a number in (0, 1)")
    return theorem_2_repaired(K, horizon, alpha, positive("delta", delta))


def theorem_4_repaired(K: int, horizon: int, alpha: float, delta: float) -> float:
    """What can be promised in place of Theorem 4: upper bound of `cb.CSElimination`'s quality plus cost regret; ours.

    6 (K C log T)^(1/3) T^(2/3) + K C + (1 + delta) (6 sqrt(K T log T) + K) + 4 / T with C = min(1, delta alpha), if
    costs are delta-consistent and the policy is told so. For alpha = 0 it is of Theorem 4's order, else of the order of
    `theorem_4_floor` up to (log T)^(1/3) and (1 - alpha)^(2/3).

    >>> round(theorem_4_repaired(K=2, horizon=10_000, alpha=0.1, delta=5))
    21302
    """
    K, T = _game(K, horizon)
    delta, price = positive("delta", delta), min(1.0, delta * share("alpha", alpha))
    after = 6 * (K * price * log(T)) ** (1 / 3) * T ** (2 / 3) + K * price
    return after + (1 + delta) * (6 * sqrt(K * T * log(T)) + K) + 4 / T


class Margins(NamedTuple):
    """Logarithmic bounds of the two regrets, `quality` and `cost`, for a policy that may explore for `sweeps`."""
    quality: float
    cost: float
    sweeps: float


def theorem_4_margins(bandit: Bandit, alpha: float, horizon: int) -> Margins:
    """Logarithmic bounds of `cb.CSElimination`'s regrets on one bandit, whatever its costs; ours.

    Delta_i is by how much arm i is not good enough, g by how much the best of the cheapest good enough arms is better
    than needed, and gamma the smallest of g and the Delta_i of arms cheaper than that one. Quality: the sum of
    36 log T / Delta_i + Delta_i over arms that are not good enough, and 2 / T. Cost: 36 log T / gamma^2 + 1 sweeps, in
    each what all too expensive arms cost too much, and 2 / T. It holds if tau (`policies.subsidy_repairs.sweeps`) is at
    least that many sweeps; they are infinite if g is 0.

    >>> two = Bandit([Bernoulli(0.7), Bernoulli(0.5)], [Constant(0.0), Constant(1.0)])
    >>> np.round(theorem_4_margins(two, alpha=0.1, horizon=10**6))
    array([  3826., 101503., 101503.])
    """
    _, T = _game(bandit.K, horizon)
    mu, costs = bandit.reward_means, bandit.cost_means
    short = (1 - share("alpha", alpha)) * mu.max() - mu
    good = short <= ROUNDING * mu.max()
    cheapest = costs[good].min()
    gaps = [-short[good & (costs == cheapest)].min(), *short[~good & (costs < cheapest)]]
    gamma, log_T = max(min(gaps), 0.0), log(T)
    needed = 36 * log_T / gamma**2 + 1 if gamma > 0 else inf
    quality, extra = np.sum(36 * log_T / short[~good] + short[~good]), np.maximum(costs - cheapest, 0).sum()
    return Margins(float(quality) + 2 / T, float(extra * needed if extra else 0.0) + 2 / T, float(needed))


def ucb_two_arms(horizon: int, alpha: float, margin: float) -> float:
    """Upper bound of CS-UCB's expected pulls of the expensive one of two arms if the cheap one is good enough; ours.

    1 + 8 (1 - alpha)^2 log T / g^2 + 2 / T, at most T. The cheap arm's mean is g (`margin`) above what is tolerated.

    >>> round(ucb_two_arms(10_000, alpha=0.1, margin=0.25))
    956
    """
    T, alpha = count("horizon", horizon, low=2), share("alpha", alpha)
    return min(1 + 8 * ((1 - alpha) / positive("margin", margin)) ** 2 * log(T) + 2 / T, float(T))


def counterexample() -> Bandit:
    """Three fixed arms, consistent with delta = 5, on which CS-UCB's cost regret is linear if alpha = 0.1; ours.

    Means 0.82, 0.9 and 0.5 at costs 0, 0.4 and 1: arm 0 is optimal by a margin of 0.01.

    >>> counterexample().cost_means
    array([0. , 0.4, 1. ])
    """
    return Bandit([Bernoulli(0.82), Bernoulli(0.9), Bernoulli(0.5)], [Constant(0.0), Constant(0.4), Constant(1.0)])


def counterexample_pulls(horizon: int) -> float:
    """Lower bound of CS-UCB's expected pulls of arm 1 of `counterexample` in T = `horizon` rounds, alpha = 0.1; ours.

    >>> round(counterexample_pulls(100_000))
    85607
    """
    T = count("horizon", horizon, low=3)
    return max((1 - 2 / T**2) * (T - 2 - 8 * log(T) / 0.08**2), 0.0)       # arm 0 is 0.08 below the best
