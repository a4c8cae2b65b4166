"""What Elumar, Tekin and Yagan, "Bandits with Anytime Knapsacks", promise.

Theorem 3.2 and Lemma 3.1 as printed and repaired, Table 1 as numbers, and the exact law of what is unspent (D.4, D.7).

A base is one arm or two, mixed to cost at most c (`rate`) a round on average; the null arm, K, costs and pays nothing.

In all functions mu and rho (`reward_means`, `cost_means`) are K floats in [0, 1] each, c is in (0, 1], and T
(`horizon`) is a number of rounds, 1 or more. Bounds are in units of reward.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import combinations
from math import exp, expm1, inf, log, pi
from typing import NamedTuple

import numpy as np
import pandas as pd
from numba import types
from numpy.typing import ArrayLike

from ...checks import ROUNDING, count, number, numbers, positive, require
from ...engine.compilation import compiled_for
from ..optimum import mixture
from .shared import first_from, steepest

_floats = types.float64[::1]
_laws = types.Tuple((_floats, _floats))
_SHARES = "must be numbers in [0, 1]"

_rate = partial(number, "rate", low=0, high=1, allowed="must be a number in (0, 1]", above=0)


def _arms(reward_means, cost_means, rate):
    """Means and c, which a cost equals that differs from it by rounding alone."""
    rewards, rate = numbers("reward_means", reward_means, 0, 1, _SHARES, shape=("K",)), _rate(rate)
    costs = numbers("cost_means", cost_means, 0, 1, _SHARES, shape=rewards.shape)
    return rewards, np.where(np.abs(costs - rate) > ROUNDING, costs, rate), rate


# ---- the linear program ------------------------------------------------------------------------------

class Pair(NamedTuple):
    """The best mixtures of two arms: `value` per round, -inf where both are too expensive, and `share` of the first."""
    value: np.ndarray
    share: np.ndarray


def pair(rewards: ArrayLike, costs: ArrayLike, rate: float) -> Pair:
    """r_(i,j) (Elumar et al., Eq. 20 to 23): the best mixture of two arms, without a null arm unless it is one of them.

    `rewards` and `costs` are means or confidence bounds in [0, 1], of shape (..., 2).

    >>> np.array(pair([0.75, 0.25], [0.75, 0.25], rate=0.5))
    array([0.5, 0.5])
    """
    rewards, costs = numbers("rewards", rewards, 0, 1, _SHARES), numbers("costs", costs, 0, 1, _SHARES)
    for name, array in (("rewards", rewards), ("costs", costs)):
        require(array.ndim > 0 and array.shape[-1] == 2, name, array, "must be two in the last axis")
    rate = _rate(rate)
    (first, second), (x, y) = np.moveaxis(rewards, -1, 0), np.moveaxis(costs, -1, 0)
    tight = (np.minimum(x, y) <= rate) & (np.maximum(x, y) > rate)
    cut = (rate - y) / np.where(tight, x - y, 1.0)      # the share of the first arm at which the mixture costs c
    low, high = np.where(tight & (x < y), cut, 0.0), np.where(tight & (x > y), cut, 1.0)
    share = np.where(first > second, high, low)
    value = share * first + (1 - share) * second
    return Pair(np.where(np.minimum(x, y) <= rate, value, -inf)[()], share[()])


def bases(reward_means: ArrayLike, cost_means: ArrayLike, rate: float) -> pd.DataFrame:
    """All valid bases but the null arm alone: their arms can be mixed to a mean cost of c at most (section 2).

    A row per base. `arms`: a tuple, the null arm being K. `value`: r_I, reward per round of the best mixture of these
    arms. `gap`: Delta_I = r* - r_I, 0 where it is rounding (Definition 3.1). `optimal`: whether it is I*, the arms with
    a share in the best mixture. A base that contains I* has no gap either, but is not I*.

    >>> bases([0.75, 0.25], [0.75, 0.25], rate=0.5)
         arms  value   gap  optimal
    0    (1,)   0.25  0.25    False
    1  (0, 1)   0.50  0.00     True
    2  (0, 2)   0.50  0.00    False
    3  (1, 2)   0.25  0.25    False
    """
    rewards, costs, rate = _arms(reward_means, cost_means, rate)
    best, K = mixture(rewards, costs, rate), len(rewards)
    support = tuple(np.flatnonzero(np.append(best.shares, 1 - best.shares.sum()) > ROUNDING).tolist())
    arms = [*((k,) for k in range(K)), *combinations(range(K + 1), 2)]
    ends = np.array([(base[0], base[-1]) for base in arms])     # a single arm is a pair with itself
    value = pair(np.append(rewards, 0.0)[ends], np.append(costs, 0.0)[ends], rate).value
    gap = best.value - value
    table = pd.DataFrame({"arms": arms, "value": value, "gap": np.where(gap > ROUNDING, gap, 0.0),
                          "optimal": [base == support for base in arms]})
    return table[value > -inf].reset_index(drop=True)


def gaps(reward_means: ArrayLike, cost_means: ArrayLike, rate: float) -> pd.DataFrame:
    """The paper's gaps, arm by arm (Elumar et al., Definitions 3.1 to 3.3), and the one that regret is made of.

    A row per arm. `reward`: Delta_i = max mu - mu_i. `cost`: delta_i = |rho_i - c|, of which delta_min is the smallest.
    `base`: Delta_min,i, the smallest gap of a valid base with arm i other than I*; inf if there is none. `dual`, ours:
    alpha + lambda rho_i - mu_i, how far arm i lies below the program's dual line.

    >>> gaps([0.75, 0.25], [0.75, 0.25], rate=0.5).cost.to_numpy()
    array([0.25, 0.25])
    """
    rewards, costs, rate = _arms(reward_means, cost_means, rate)
    best, table = mixture(rewards, costs, rate), bases(rewards, costs, rate)
    dual = best.floor + best.price * costs - rewards
    least = table[~table.optimal].explode("arms").groupby("arms").gap.min()
    return pd.DataFrame({"reward": rewards.max() - rewards, "cost": np.abs(costs - rate),
                         "base": least.reindex(range(len(rewards)), fill_value=inf).to_numpy(),
                         "dual": np.where(np.abs(dual) > ROUNDING, dual, 0.0)})


def kappa(reward_means: ArrayLike, cost_means: ArrayLike, null_arm: bool = True) -> float:
    """The smallest kappa with |mu_i - mu_j| <= kappa |rho_i - rho_j| for all arms (Elumar et al., section 4).

    UCB Simplex is told it: its radii are multiplied by 1 + 2 kappa. Infinite if two arms differ in reward alone.
    `null_arm` says whether the null arm is one of the arms.

    >>> kappa([0.75, 0.5], [0.75, 0.25])
    2.0
    """
    rewards, costs, _ = _arms(reward_means, cost_means, 1.0)
    if null_arm:
        rewards, costs = np.append(rewards, 0.0), np.append(costs, 0.0)
    return steepest(rewards, costs)


# ---- Lemma 3.1 and Theorem 3.2 -----------------------------------------------------------------------

def omega(gap: ArrayLike, rate: float) -> float | np.ndarray:
    """omega as a function of the smallest cost gap, in [0, 1], or of its bound delta^L_min (Elumar et al., Eq. 6).

    >>> float(omega(0.5, rate=0.5))
    0.25
    """
    gap = numbers("gap", gap, 0, 1, _SHARES)
    return (gap / (2 + gap - _rate(rate)))[()]


def omega_interval(gap: ArrayLike, rate: float) -> tuple[float | np.ndarray, float | np.ndarray]:
    """Lemma 3.1 (Elumar et al.): the interval (omega_min, omega_max) of omega(t), given delta_min = `gap`.

    It is true while the cost estimates are within sqrt(1.5 log t / N) of their means, and not surely.

    >>> np.round(omega_interval(0.5, rate=0.5), 3)
    array([0.111, 0.25 ])
    """
    return 2 / 9 * numbers("gap", gap, 0, 1, _SHARES)[()], omega(gap, rate)


@dataclass(frozen=True)
class RegretBound:
    """Theorem 3.2's bound, term by term.

    `wrong_bases`: pulls from suboptimal bases. `learning`: pulls that tell on which side of c a cost is, their skips,
    and budget held back. `skips`: rounds skipped for the constraint. `failures`: bounds that fail, and constants.
    """
    wrong_bases: float
    learning: float
    skips: float
    failures: float

    @property
    def total(self) -> float:
        """The bound."""
        return self.wrong_bases + self.learning + self.skips + self.failures


def regret(reward_means: ArrayLike, cost_means: ArrayLike, rate: float, horizon: int) -> RegretBound:
    """Theorem 3.2 (Elumar et al., Eq. 11) as printed: upper bound of SUAK's regret.

    Infinite if an arm costs c (Assumption 1); `wrong_bases` also if I* is one arm: larger bases with it have no gap.

    >>> round(regret([0.75, 0.5], [0.75, 0.25], rate=0.5, horizon=1000).total)
    23940168
    """
    rewards, costs, rate = _arms(reward_means, cost_means, rate)
    log_t, K, best = log(count("horizon", horizon)), len(rewards), mixture(rewards, costs, rate).value
    table = gaps(rewards, costs, rate)
    delta = table["cost"].min()
    if delta == 0:
        return RegretBound(inf, inf, inf, 2 * pi**2 * K**2)
    wrong = inf
    if table["base"].min() > 0:
        wrong = (432 * best * (1 + 1 / table["cost"]) ** 2 / (delta * table["base"] ** 2)).sum() * log_t
    return RegretBound(float(wrong), float(241 * K * best * log_t / (rate * delta**2)),
                       float(3 * pi**2 * best / delta**2), 2 * pi**2 * K**2)


def _choices(mu, rho, rate):
    """Bases that an optimist may choose, null arm last in mu and rho: arms, gap, whether it is I*, their dual slope."""
    for arms, _, gap, optimal in bases(mu[:-1], rho[:-1], rate).itertuples(index=False):
        if (len(arms) == 2) == (rho[list(arms)].max() > rate):      # of two cheap arms one alone is better
            i, j = arms[0], arms[-1]
            yield arms, gap, optimal, max((mu[i] - mu[j]) / (rho[i] - rho[j]), 0.0) if i != j else 0.0


def wrong_bases_repaired(reward_means: ArrayLike, cost_means: ArrayLike, rate: float, horizon: int,
                         width: float = 3.0, share: float | None = None) -> float:
    """Upper bound of what SUAK loses by choosing wrong bases while the confidence bounds hold; ours.

    Replaces the first term of `regret`. A base I is chosen only while one of its arms has at most
    L_I = 12 log T (1 + s)^2 / Delta_I^2 pulls (the paper: 48), s the larger of 0 and the slope
    (mu_i - mu_j) / (rho_i - rho_j); if I* is a single arm and a part of I, while the other has 12 log T / Delta_j^2.
    A choice pulls such an arm with probability `share` or more, omega(3/4 delta_min) if it is not given, and loses at
    most the largest dual gap in I. Summed over arms, from the bases with small L_I to those with large. Infinite if two
    bases are best, or an arm costs c. `width` is that of `cb.SUAK`; 12 is four times this.

    >>> round(wrong_bases_repaired([0.75, 0.5], [0.75, 0.25], rate=0.5, horizon=1000))
    71623
    """
    rewards, costs, rate = _arms(reward_means, cost_means, rate)
    width = positive("width", width)
    if share is not None:
        share = number("share", share, 0, 1, "must be in (0, 1]", above=0)
    log_t, best = log(count("horizon", horizon)), mixture(rewards, costs, rate)
    mu, rho = np.append(rewards, 0.0), np.append(costs, 0.0)
    loss, delta = best.floor + best.price * rho - mu, np.abs(costs - rate).min()
    if delta == 0:
        return inf
    limits = [[] for _ in rewards]                      # of each arm: (L_I, what a choice of I loses)
    for arms, gap, optimal, slope in _choices(mu, rho, rate):
        if optimal:
            continue
        short = arms
        if gap == 0 and best.price == 0:                # I = I* and an expensive arm
            other = max(arms, key=rho.__getitem__)
            short, slope, gap = (other,), 0.0, best.value - mu[other]
        if gap <= ROUNDING:
            return inf
        for arm in set(short) - {len(rewards)}:
            limits[arm].append((4 * width * log_t * ((1 + slope) / gap) ** 2, loss[list(arms)].max()))
    return float(sum(_layers(sorted(own)) for own in limits) / (share or omega(0.75 * delta, rate)))


def _layers(limits):
    # Pulls of an arm times what a choice of a base with it can lose by then; one pull may exceed the largest limit.
    total, last = max((loss for _, loss in limits), default=0.0), 0.0
    for m, (limit, _) in enumerate(limits):
        total += (limit - last) * max(loss for _, loss in limits[m:])
        last = limit
    return total


def _limits(rewards, costs, rate, log_t):
    """L_i of `two_accounts`: a wrong base is chosen only while one of its arms has at most so many pulls."""
    best, limits = mixture(rewards, costs, rate), np.zeros(len(rewards) + 1)
    if best.price == 0:
        gap = best.value - rewards
        other = gap > ROUNDING
        return np.where(other, 6 * log_t / np.where(other, gap, 1.0) ** 2, np.where(costs > rate, inf, 0.0))
    for arms, gap, _, slope in _choices(np.append(rewards, 0.0), np.append(costs, 0.0), rate):
        if gap > 0:
            limits[list(arms)] = np.maximum(limits[list(arms)], 6 * log_t * ((1 + slope) / gap) ** 2)
    return limits[:-1]


def two_accounts(reward_means: ArrayLike, cost_means: ArrayLike, rate: float, horizon: int,
                 margin: float = 3.0) -> RegretBound:
    """Upper bound of the regret of `cb.SUAK(counting="two accounts", reserve="log t / 4 omega", width=1.5)`; ours.

    Section 3.16 of the chapter proves it. `wrong_bases` and `failures` are halves of its second term, `learning` is
    the first and the last, questions and unspent budget. Infinite if an arm costs c, or one arm alone is best and one
    above c pays as much. m (`margin`) is 2 or more: an arm is unsure while its mean cost is within m radii of c.

    >>> round(two_accounts([0.75, 0.5], [0.75, 0.25], rate=0.5, horizon=1000).total)
    336874
    """
    rewards, costs, c = _arms(reward_means, cost_means, rate)
    m = number("margin", margin, low=2.0, allowed="must be a number, 2 or more")
    log_t, best = log(count("horizon", horizon)), mixture(rewards, costs, c)
    require(best.value > 0, "reward_means", reward_means, "must allow a reward")
    gaps_, failures = np.abs(costs - c), 2.58 * len(rewards)
    delta = min(gaps_.min(), c)
    if delta == 0:
        return RegretBound(inf, inf, inf, inf)
    w, least = float(omega(delta, c)), float(omega((m - 1) / (m + 1) * delta, c))
    choices = (_limits(rewards, costs, c, log_t) + 1).sum() / least
    questions = (1.5 * (m + 1) ** 2 * log_t / gaps_**2 + 1).sum() + failures
    skips = exp(6 * w * (1 - c)) * (1 + 2.62 * exp(6 * w) + failures) / -expm1(-1.5 * w**2)
    unspent = log_t / (4 * least) + 1 + log(horizon + 1) / (16 * (1 - c) * w) if best.price > 0 else 0.0
    each = best.value / c + best.value
    return RegretBound(float(each * choices), float(best.value / c * (1 + 2 * questions) + best.price * unspent),
                       float(max(best.floor, 0.0) * skips), float(each * failures))


def informative_from(reward_means: ArrayLike, cost_means: ArrayLike, rate: float, bound: Callable = regret) -> float:
    """The first horizon at which a bound is below T r*, more than which no policy can lose; inf if the bound is.

    `bound` is like `regret`: its result, or the `total` of that, grows like log T.

    >>> informative_from([0.75, 0.5], [0.75, 0.25], rate=0.5, bound=lambda *arguments: 100)
    161
    """
    best = mixture(reward_means, cost_means, _rate(rate)).value

    def says_something(T):
        value = bound(reward_means, cost_means, rate, T)
        return getattr(value, "total", value) < T * best

    require(best > 0, "reward_means", reward_means, "must allow a reward")
    return first_from(says_something, 1, 2**1000)       # T r* - A log T - B falls, then rises: one crossing


def table_1(reward_means: ArrayLike, cost_means: ArrayLike, rate: float, horizon: int) -> pd.DataFrame:
    """Table 1 (Elumar et al.) as numbers: the argument of each O(.), constants 1, with the symbols it leaves open set.

    Set by us: m = d = 1; b = c; Delta the smallest positive gap of a base, in Li et al.'s row what the linear program
    loses if an arm of I* is removed; chi the smallest share of an arm in the best mixture; sigma_min and Li et al.'s
    sigma the smallest singular value of the two rows (costs; ones) of I*; delta_drift the smallest |rho_i - c|, null
    arm included; Flajolet and Jaillet's sigma 1 / max mu, and lambda = 1 + 2 kappa. They are not comparable, as the
    paper says: other models, other constants. Infinite where an arm costs c, or where an arm of I* would not be missed.
    A row per work: its `model`, and `value`.

    >>> table_1([0.75, 0.5], [0.75, 0.25], rate=0.5, horizon=1000).value.round().to_numpy()[:2]
    array([3759.,   32.])
    """
    rewards, costs, c = _arms(reward_means, cost_means, rate)
    horizon, K, best = count("horizon", horizon), len(rewards), mixture(rewards, costs, c)
    require(best.value > 0, "reward_means", reward_means, "must allow a reward")
    table = bases(rewards, costs, c)
    gap, delta = table.gap[table.gap > 0].min() if table.gap.any() else inf, np.abs(costs - c).min()
    support = table.arms[table.optimal].iloc[0]
    rho, alone = np.append(costs, 0.0)[list(support)], np.flatnonzero(best.shares > ROUNDING)
    removed = best.value - np.max([mixture(np.delete(rewards, k), np.delete(costs, k), c).value if K > 1 else 0.0
                                   for k in alone])
    singular = float(np.linalg.svd(np.array([rho, np.ones(len(rho))]), compute_uv=False).min())
    shares = np.append(best.shares, 1 - best.shares.sum())
    chi, lam, log_t = shares[shares > ROUNDING].min(), 1 + 2 * kappa(rewards, costs), log(horizon)
    with np.errstate(divide="ignore"):
        rows = [
            ("SUAK", "average budget", K * log_t / (delta * gap**2) + K * log_t / delta**2 + 1),
            ("Bernasconi et al. (2024c)", "replenishable, violations allowed", horizon**0.5),
            ("Kumar, Kleinberg (2022)", "total budget, drift", K * log_t / (gap**2 * min(delta, c, singular) ** 2)),
            ("Li et al. (2021)", "total budget", K * log_t / (c**3 * removed**2)
             + 1 / (c**2 * min(chi, removed) ** 2 * min(1.0, singular) ** 2)),
            ("Flajolet, Jaillet (2015)", "total budget", K**2 * log_t / delta**3 * (lam**2 / gap + 1 / rewards.max())),
        ]
    return pd.DataFrame(rows, columns=["work", "model", "value"])


# ---- a known pair of arms, exactly -------------------------------------------------------------------

class SlackLaw(NamedTuple):
    """Probabilities that each round is skipped (`skips`), and what is left of the budget after the last one.

    `unspent` has the possible values of c t - S_c(t), in units of cost, `probability` their probabilities.
    """
    skips: np.ndarray
    unspent: np.ndarray
    probability: np.ndarray


@compiled_for(_laws(types.float64, types.float64, types.int64, types.int64, types.float64, _floats, _floats))
def _slack(high, low, a, b, omega, held_back, forced):
    """Probabilities of a skip by round, and of the final slack in steps of 1 / b; c = a / b, costs 0 or 1."""
    mass, skips = np.zeros(a * (held_back.size + 1) + 1), np.zeros(held_back.size)
    new, top = np.zeros(mass.size), 0
    mass[0] = 1.0
    for t in range(held_back.size):
        new[:top + a + 1] = 0.0
        for x in range(top + 1):
            if mass[x] == 0.0:
                continue
            if x + a < b:                               # line 17: a cost of 1 would break the constraint
                skips[t] += mass[x]
                new[x + a] += mass[x]
            else:
                p = ((x + a) / b - held_back[t] - low) / (high - low)
                cost = low + min(max(p, omega), 1.0 - omega) * (high - low)
                if forced[t] >= 0.0:
                    cost = forced[t]
                new[x + a] += mass[x] * (1.0 - cost)
                new[x + a - b] += mass[x] * cost
        mass, new, top = new, mass, top + a
        while mass[top] < 1e-30:                        # nothing that a sum would notice
            mass[top] = 0.0
            top -= 1
    return skips, mass[:top + 1].copy()


def slack_law(cost_high: float, cost_low: float, rate: float, omega: float, held_back: ArrayLike,
              forced: ArrayLike | None = None) -> SlackLaw:
    """SUAK's phase 2 with a fixed base of two arms and known means: the exact law of skips and of unspent budget.

    Costs are 0 or 1, with means rho_j > rho_k (`cost_high`, `cost_low`) in [0, 1]; 0 is the null arm. Lines 17, 18 and
    26 to 36 of Algorithm 2 (Elumar et al.), with a constant omega, in [0, 1/2], and with any amount held back instead
    of log t / omega^2, from an empty account on. c (`rate`), in (0, 1], is a fraction with a denominator of at most
    100. Takes a few ns per round and state; there are as many states as steps of c in the unspent budget.

    `held_back`, of shape (rounds,), is what is not to be spent in each round, in units of cost. `forced`, of the same
    shape, is the expected cost of a pull in rounds in which an adversary chooses it, NaN in all others.

    >>> slack_law(0.75, 0.25, rate=0.5, omega=0.25, held_back=np.zeros(3)).skips
    array([1.   , 0.   , 0.625])
    """
    low = number("cost_low", cost_low, 0, 1, "must be in [0, 1]")
    high = number("cost_high", cost_high, low, 1, "must be above cost_low, at most 1", above=low)
    c = Fraction(_rate(rate)).limit_denominator(100)
    require(float(c) == float(rate), "rate", rate, "must be a fraction with a denominator of at most 100")
    omega = number("omega", omega, 0, 0.5, "must be in [0, 1/2]")
    held = numbers("held_back", held_back, shape=("rounds",))
    forced = np.full(held.size, np.nan) if forced is None else np.asarray(forced, float)
    numbers("forced", np.nan_to_num(forced, nan=0.0), 0, 1, _SHARES + " or NaN", shape=held.shape)
    skips, probability = _slack(high, low, c.numerator, c.denominator, omega,
                                *map(np.ascontiguousarray, (held, forced)))
    return SlackLaw(skips, np.arange(probability.size) / c.denominator, probability)
