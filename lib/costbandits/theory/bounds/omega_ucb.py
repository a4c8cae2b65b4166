"""What Heyden et al., "Budgeted Multi-Armed Bandits with Asymmetric Confidence Intervals", promise.

Theorems 4 to 6 as printed, Lemma 1 corrected, and what judges them: exact probabilities, and plays of wrong arms.

In all functions expected rewards are in [0, 1] and expected costs in (0, 1]; rho, the exploration, is above 0. t, 1 or
more, is a round; tau, at least the number of arms K, is the round up to which plays are counted.
"""

from collections.abc import Callable
from math import ceil, exp, expm1, floor, inf, log, log1p, sqrt
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import binom

from ...checks import ROUNDING, count, number, numbers, positive, require
from ...environments.bandits import Bandit
from ...environments.distributions import Bernoulli
from ..intervals import asymmetric_interval

_SUMMED = 1000                                          # terms of xi's sum added one by one
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)  # of the quadrature that replaces the others


def _means(reward_mean, cost_mean):
    return (numbers("reward_mean", reward_mean, 0, 1, "must be in [0, 1]"),
            numbers("cost_mean", cost_mean, 0, 1, "must be in (0, 1]", above=0))


def _rounds(tau, K):
    return count("tau", tau, low=count("K", K))


def bandit_means(bandit: Bandit) -> tuple[np.ndarray, np.ndarray]:
    """Expected rewards, in [0, 1], and costs, in (0, 1], of a bandit; ValueError for any other.

    >>> bandit_means(Bandit([Bernoulli(0.5)], [Bernoulli(0.25)]))
    (array([0.5]), array([0.25]))
    """
    require(isinstance(bandit, Bandit), "bandit", bandit, "must be a Bandit")
    return _means(bandit.reward_means, bandit.cost_means)


def alpha(t: ArrayLike, rho: float) -> float | np.ndarray:
    """1 - sqrt(1 - t^-rho), the probability of Theorem 3 (Heyden et al.), without cancellation for large t.

    >>> alpha([10, 100], rho=1.0).round(4)
    array([0.0513, 0.005 ])
    """
    rho = positive("rho", rho)
    log_u = -rho * np.log(numbers("t", t, 1, allowed="must be finite, 1 or more"))
    return np.exp(log_u) / (1 + np.sqrt(-np.expm1(log_u)))


def proportional_gap(reward_mean: ArrayLike, cost_mean: ArrayLike, best_ratio: ArrayLike) -> float | np.ndarray:
    """delta_k (Heyden et al., A.4): which share of its room an arm must improve by to reach the best ratio.

    The solution of (mu_r + delta (1 - mu_r)) / (mu_c - delta mu_c) = best_ratio, Delta / (Delta + 1 / mu_c) in the
    paper, here as g / (1 + g) with g = mu_c best_ratio - mu_r. Below 1; negative for an arm above `best_ratio`.

    Numbers or arrays: an arm's expected reward and cost, and the best arm's ratio of them, mu^r_1 / mu^c_1.

    >>> float(proportional_gap(0.5, 0.5, best_ratio=3.0))
    0.5
    """
    rewards, costs = _means(reward_mean, cost_mean)
    shortfall = costs * numbers("best_ratio", best_ratio, 0, allowed="must be finite, 0 or more") - rewards
    with np.errstate(divide="ignore"):                  # at a reward of 1 and a best ratio of 0
        return shortfall / (1 + shortfall)


def _odds(rewards, costs):
    # Reward as odds of its mean, cost as odds against; an arm that always pays leaves no room for its reward.
    with np.errstate(divide="ignore"):
        return rewards / (1 - rewards), (1 - costs) / costs


def minimum_plays(reward_mean: ArrayLike, cost_mean: ArrayLike, best_ratio: ArrayLike, tau: int, rho: float,
                  corrected: bool = False) -> float | np.ndarray:
    """n*_k(tau) as printed (Heyden et al., Theorem 4 and Lemma 1): the plays after which an arm should look its worth.

    8 rho log(tau) / delta^2 max{mu_r / (1 - mu_r), (1 - mu_c) / mu_c}, the paper's eta_r and eta_c being 1, with which
    omega-UCB computes its bounds whatever the truth. Infinite where mu_r = 1, for then the expression has no finite
    value, and for arms that are not below `best_ratio`, of which Lemma 1 does not speak.

    Means and best ratio as in `proportional_gap`; tau may be 1 or more. `corrected`: see `minimum_plays_corrected`.

    >>> round(float(minimum_plays(0.5, 0.5, best_ratio=3.0, tau=1000, rho=1.0)), 1)
    221.0
    """
    rewards, costs = _means(reward_mean, cost_mean)
    tau, rho = count("tau", tau), positive("rho", rho)
    gap, odds = proportional_gap(rewards, costs, best_ratio), np.maximum(*_odds(rewards, costs))
    if corrected:                                       # both factors grow with o: the larger odds decide
        odds = np.maximum(odds, (1 - gap) * (odds + gap))
    finite = (gap > 0) & (odds < inf)
    return np.where(finite, 8 * rho * log(tau) / np.where(finite, gap, 1.0)**2 * np.where(finite, odds, 1.0), inf)[()]


def minimum_plays_corrected(reward_mean: ArrayLike, cost_mean: ArrayLike, best_ratio: ArrayLike, tau: int,
                            rho: float) -> float | np.ndarray:
    """n*_k(tau) with the interval's width taken where Eq. (17) and (18) need it, at x = mu + (1 - mu) delta; ours.

    The odds o of the printed form become max{o, (1 - delta)(o + delta)}; parameters and result as in `minimum_plays`.

    >>> round(float(minimum_plays_corrected(0.1, 0.9, best_ratio=1.0, tau=1000, rho=1.0)), 1)
    86.3
    """
    return minimum_plays(reward_mean, cost_mean, best_ratio, tau, rho, corrected=True)


def _tail(start, tau, rho):
    """Sum of alpha(t) over start < t <= tau by Euler-Maclaurin; the integral over log t, where alpha is smooth."""
    panels = 1 + floor(log(tau / start))
    edges = np.linspace(log(start), log(tau), panels + 1)
    half = (edges[1] - edges[0]) / 2
    s = (edges[:-1, None] + half) + half * _NODES
    integral = half * np.sum(_WEIGHTS * np.exp(s) * alpha(np.exp(s), rho))
    slope = [-rho * exp(-rho * log(t)) / (2 * t * sqrt(-expm1(-rho * log(t)))) for t in (start, tau)]
    return integral + (alpha(tau, rho) - alpha(start, rho)) / 2 + (slope[1] - slope[0]) / 12


def xi(tau: int, K: int, rho: float) -> float:
    """Plays granted to confidence bounds that fail, xi(tau, rho) (Heyden et al., Theorem 4).

    (tau - K)(2 - sqrt(1 - tau^-rho)) - sum_{t=K+1}^tau sqrt(1 - t^-rho), computed as
    (tau - K) alpha(tau) + sum_{t=K+1}^tau alpha(t): no cancellation, and no loop longer than a thousand rounds.

    >>> round(xi(tau=1000, K=10, rho=1.0), 3)
    2.785
    """
    tau, rho = _rounds(tau, K), positive("rho", rho)
    start = max(K, _SUMMED)
    total = float(np.sum(alpha(np.arange(K + 1, min(start, tau) + 1), rho)))
    if tau > start:
        total += _tail(start, tau, rho)
    return float((tau - K) * alpha(tau, rho) + total)


def xi_bound(tau: int, K: int, rho: float) -> float:
    """The upper bound of xi in the proof of Theorem 6 (Heyden et al., A.6), by Eq. (21) and (22).

    >>> round(xi_bound(tau=1000, K=10, rho=1.0), 3)
    5.096
    """
    tau, rho = _rounds(tau, K), positive("rho", rho)
    first, power = K + 1.0, 1 - rho
    # (tau^power - first^power) / power, which is the logarithm at power 0.
    span = log(tau / first)
    integral = span if power == 0 else first**power * expm1(power * span) / power
    return float((tau - K) * alpha(tau, rho) + first**-rho + max(integral, 0.0))


def asymptotic_exponent(rho: float) -> float:
    """The power of the budget in Theorem 6 (Heyden et al.): 1 - rho below rho = 1, else 0, meaning log B.

    >>> asymptotic_exponent(rho=0.25)
    0.75
    """
    return max(1 - positive("rho", rho), 0.0)


def suboptimal_plays(bandit: Bandit, tau: int, rho: float) -> np.ndarray:
    """Theorem 4 (Heyden et al.): upper bound of the expected plays of each suboptimal arm up to round tau.

    1 + n*_k(tau) + xi(tau, rho), an array of shape (K,); infinite for arms that are best but for rounding, and where
    the expected reward is 1. The theorem is false as stated: see `locked_plays` and the notebook. A bound above tau
    says nothing.

    >>> bandit = Bandit([Bernoulli(0.75), Bernoulli(0.5)], [Bernoulli(0.25), Bernoulli(0.5)])
    >>> suboptimal_plays(bandit, tau=1000, rho=1.0).round(1)
    array([  inf, 225.6])
    """
    rewards, costs = bandit_means(bandit)
    extra = 1 + xi(tau, bandit.K, rho)
    plays = minimum_plays(rewards, costs, bandit.ratios.max(), tau, rho)
    return np.where(_gaps(bandit) > 0, plays + extra, inf)


def _gaps(bandit):
    """Delta_k, 0 for arms that are best but for rounding."""
    best = bandit.ratios.max()
    return np.where(bandit.ratios < best * (1 - ROUNDING), best - bandit.ratios, 0.0)


def excess_rounds(budget: float, min_cost: float) -> float:
    """X(B) of Theorem 5 (Heyden et al.), with a constant: upper bound of E max(T_B - tau_B, 0), in rounds; ours.

    exp(-tau_B kl(B / tau_B, mu)) / (1 - e^-s), where s is the slope of t kl(B / t, mu) at t = tau_B = floor(2 B / mu).
    mu (`min_cost`), the smallest expected cost of a pull, is in (0, 1], and B, in units of cost, at least mu. Holds for
    every policy; the paper leaves O(B / mu exp(-B mu / 2)).

    >>> round(excess_rounds(budget=10, min_cost=0.5), 3)
    0.016
    """
    mu = number("min_cost", min_cost, 0, 1, "must be in (0, 1]", above=0)
    budget = number("budget", budget, mu, allowed=f"must be finite and at least min_cost = {mu!r}")
    tau = floor(2 * budget / mu)
    p = budget / tau
    if mu == 1:                                         # every pull costs 1
        return 0.0
    fall = log1p(-p) - log1p(-mu)                       # derivative of t kl(B / t, mu) at t = tau
    return exp(-tau * (p * log(p / mu) + (1 - p) * fall)) / -expm1(-fall)


class RegretBound(NamedTuple):
    """Theorem 5's bound, term by term.

    `tau`: tau_B, the round that a game hardly ever outlasts. `gaps`: Delta_k, in reward per unit of cost, and `plays`:
    Theorem 4's bounds at tau_B, infinite for the best arm; both of shape (K,). `excess`: X(B) by `excess_rounds`, in
    rounds. `last`: 2 mu^r_1 / mu^c_1, in reward.
    """
    tau: int
    gaps: np.ndarray
    plays: np.ndarray
    excess: float
    last: float

    @property
    def total(self) -> float:
        """The bound, in units of reward."""
        worse = self.gaps > 0
        return float(self.gaps[worse] @ (self.plays[worse] + self.excess) + self.last)


def regret(bandit: Bandit, budget: float, rho: float) -> RegretBound:
    """Theorem 5 (Heyden et al., Eq. 3): upper bound of the regret, with our constant in X(B).

    With tau_B = floor(2 B / mu_min), at least K: sum_k Delta_k (1 + n*_k(tau_B) + xi(tau_B, rho)) + X(B) sum_k Delta_k
    + 2 mu^r_1 / mu^c_1. It inherits Theorem 4 and is false where that is. B is in units of cost.

    >>> bandit = Bandit([Bernoulli(0.75), Bernoulli(0.5)], [Bernoulli(0.25), Bernoulli(0.5)])
    >>> round(regret(bandit, budget=100, rho=1.0).total)
    443
    """
    min_cost = bandit_means(bandit)[1].min()
    budget = number("budget", budget, min_cost * max(bandit.K, 2) / 2,
                    allowed=f"must be finite and at least K / 2 times the smallest expected cost {float(min_cost)!r}")
    tau = max(floor(2 * budget / min_cost), bandit.K)
    return RegretBound(tau, _gaps(bandit), suboptimal_plays(bandit, tau, rho),
                       excess_rounds(budget, float(min_cost)), 2 * float(bandit.ratios.max()))


def exceedance(reward_mean: float, cost_mean: float, ratio: float, n: int, t: int, rho: float) -> float:
    """Exact probability that omega-UCB's index of a Bernoulli arm is at least `ratio` at round t, after n plays.

    Event B of Theorem 4's proof (Heyden et al., A.3) for a suboptimal arm and the best ratio; 1 minus event A for the
    best arm and its own ratio. Rewards and costs independent, n fixed in advance.

    The ratio, reward per unit of cost, is above 0, t the coming round. Memory and time grow linearly with the plays n.

    >>> round(exceedance(0.5, 0.5, ratio=3.0, n=50, t=100, rho=1.0), 3)
    0.126
    """
    reward_mean, cost_mean = (float(mean) for mean in _means(reward_mean, cost_mean))
    n, t = count("n", n), count("t", t)
    z = sqrt(2 * positive("rho", rho) * log(t))
    successes = np.arange(n + 1)
    lower, upper = asymmetric_interval(successes / n, n, z)
    # For each number of rewarded plays: how many numbers of charged plays leave the index high enough.
    enough = np.searchsorted(positive("ratio", ratio) * lower, upper, side="right")
    return float(binom.pmf(successes, n, reward_mean) @ binom.cdf(enough - 1, n, cost_mean))


def lemma_cases(rng: np.random.Generator, cases: int = 1000, longest: int = 2000) -> pd.DataFrame:
    """Lemma 1 (Heyden et al.) against the exact probability, on random Bernoulli arms with n = n* rounded up.

    Expected reward U(0, 1), expected cost U(0.01, 1), best ratio U(1, 4) times the arm's own plus U(0, 1/2), tau
    log-uniform in 100 ... 100,000, rho 1/4 or 1; cases whose corrected n* exceeds `longest` are drawn again.

    A row per case. The arm: `reward`, `cost`, `best`, `tau`, `rho`, `delta`. `sound`: whether the widths in Eq. (17)
    and (18) suffice (larger odds at least 1 - delta). `printed_n`, `corrected_n`: n* as printed and corrected, rounded
    up. `printed`, `corrected`: the exact probability over the lemma's number at each; above 1 the lemma fails.

    >>> bool((lemma_cases(np.random.default_rng(0), cases=10).corrected <= 1).all())
    True
    """
    rows = []
    count("cases", cases), count("longest", longest)
    while len(rows) < cases:
        reward, cost = rng.random(), rng.uniform(0.01, 1)
        best, tau = reward / cost * rng.uniform(1, 4) + rng.uniform(0, 0.5), int(10 ** rng.uniform(2, 5))
        arm = (reward, cost, best)
        rho = float(rng.choice([0.25, 1.0]))
        plays = [max(1, ceil(min(f(*arm, tau, rho), 1e15))) for f in (minimum_plays, minimum_plays_corrected)]
        if plays[1] > longest:
            continue
        share = [exceedance(*arm, n, tau, rho) / float(alpha(tau, rho)) for n in plays]
        delta = float(proportional_gap(*arm))
        rows.append((*arm, tau, rho, delta, bool(max(_odds(reward, cost)) >= 1 - delta), *plays, *share))
    return pd.DataFrame(rows, columns=["reward", "cost", "best", "tau", "rho", "delta", "sound", "printed_n",
                                       "corrected_n", "printed", "corrected"])


def bernoulli_rivals(bandit: Bandit) -> tuple[float, list[tuple[float, float, float]]]:
    """The best arm's expected cost, and expected reward, expected cost and ratio of the arms that could lock it out.

    Arms of a ratio above 2, and none if one of them is as good as the best but for rounding; ValueError unless all are
    Bernoulli.

    >>> bernoulli_rivals(Bandit([Bernoulli(1.0), Bernoulli(0.5)], [Bernoulli(0.1), Bernoulli(0.125)]))
    (0.1, [(0.5, 0.125, 4.0)])
    """
    bandit_means(bandit)
    laws = (*bandit.rewards, *bandit.costs)
    require(all(isinstance(law, Bernoulli) for law in laws), "bandit", bandit,
            "must have Bernoulli rewards and costs, independent of each other")
    best, ratios, worse = np.argmax(bandit.ratios), bandit.ratios, _gaps(bandit) > 0
    alone = worse.sum() == bandit.K - 1                 # locking out one of two best arms costs nothing
    rivals = np.c_[bandit.reward_means, bandit.cost_means, ratios][(ratios > 2) & worse & alone]
    return float(bandit.cost_means[best]), [tuple(means) for means in rivals.tolist()]


def locked_out(bandit: Bandit, tau: int, reach: float, of_level: Callable[[int], float], highest: float) -> float:
    """Pulls of other arms than the best, at least, where s costs of 1 lock it out; what `locked_plays` has in common.

    The best arm's index stays below the level h up to round tau once s > reach / of_level(h). Above the level `highest`
    one pull suffices: a higher one only makes it rarer that a rival keeps above it.

    >>> trap = Bandit([Bernoulli(1.0), Bernoulli(0.5)], [Bernoulli(0.1), Bernoulli(0.1)])
    >>> round(locked_out(trap, 1000, reach=2.5, of_level=lambda h: h - 1, highest=5), 2)
    22.2
    """
    mu, rivals = bernoulli_rivals(bandit)
    plays = 0.0
    for reward, cost, ratio in rivals:
        for h in range(2, min(ceil(ratio), floor(min(highest, 1e9)) + 1)):
            s = 1 + floor(reach / of_level(h))
            plays = max(plays, (reward - h * cost) / (reward * (1 - cost)) * mu**s * max(tau - s, 0))
    return float(plays)


def locked_plays(bandit: Bandit, tau: int, rho: float) -> float:
    """Lower bound of the expected plays of arms other than the best under omega-UCB (eta = 1); ours.

    q mu_best^s (tau - s) plays at least. The best arm's first s = 1 + floor(2 rho log(tau) / (h - 1)) plays all cost 1,
    mu_best being its expected cost; and with probability q = (mu_r - h mu_c) / (mu_r (1 - mu_c)) another arm's rewards
    never fall below h times its costs. The largest such value over arms and whole levels h from 2 on, and 0 where
    nothing follows (no other arm with a ratio above 2, or two best arms). All outcomes are Bernoulli and independent.

    >>> trap = Bandit([Bernoulli(1.0), Bernoulli(0.5)], [Bernoulli(0.1), Bernoulli(0.1)])
    >>> round(locked_plays(trap, tau=10**6, rho=0.25), 2)
    222.22
    """
    tau, rho = _rounds(tau, bandit.K), positive("rho", rho)
    reach = 2 * rho * log(tau)
    return locked_out(bandit, tau, reach, lambda h: h - 1, reach + 2)


def locked_exponent(bandit: Bandit, rho: float) -> float:
    """The power of tau with which `locked_plays` grows: 1 - 2 rho log(1 / mu_best) / (h - 1), 0 at least; ours.

    h is the largest integer below a rival's ratio, the rival the one that gives most. The regret grows at least as fast
    in the budget, for a game lasts no fewer than B rounds. Above `asymptotic_exponent(rho)` it contradicts Theorem 6.

    >>> trap = Bandit([Bernoulli(1.0), Bernoulli(0.5)], [Bernoulli(0.1), Bernoulli(0.1)])
    >>> round(locked_exponent(trap, rho=0.25), 3)
    0.616
    """
    mu, rivals = bernoulli_rivals(bandit)
    rho = positive("rho", rho)
    return float(max([0.0, *(1 + 2 * rho * log(mu) / (ceil(ratio) - 2) for *_, ratio in rivals)]))
