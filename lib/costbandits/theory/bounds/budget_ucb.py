"""What Xia et al., "Budgeted Bandit Problems with Continuous Random Costs", promise.

Lemmas and theorems as printed and as their proofs give them; exact games and probabilities to judge them by.

In all functions the expected rewards of a bandit are in [0, 1], its expected costs mu^c_i in (0, 1]; gamma is the best
ratio of the two, Delta_i an arm's gap to it. B (`budget`), in units of cost, is above 0, and lambda (`min_cost`) at
most the smallest expected cost, which is the default. Regrets and their bounds are in units of reward.
"""

from collections.abc import Callable, Sequence
from math import exp, inf, log, sqrt
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import zeta

from ...checks import ROUNDING, count, number, numbers, positive, require
from ...environments.bandits import Bandit, LinearBandit
from .omega_ucb import excess_rounds


def _arms(bandit):
    """Expected rewards and costs, gaps of ratios, in which rounding must not tell equals apart, and the best ratio."""
    require(isinstance(bandit, Bandit), "bandit", bandit, "must be a Bandit")
    rewards = numbers("bandit.reward_means", bandit.reward_means, 0, 1, "must be in [0, 1]")
    costs = numbers("bandit.cost_means", bandit.cost_means, 0, 1, "must be in (0, 1]", above=0)
    best = (rewards / costs).max()
    gap = best - rewards / costs
    return rewards, costs, np.where(gap > ROUNDING * best, gap, 0.0), float(best)


def _lowest(min_cost, costs):
    smallest = float(costs.min())
    allowed = f"must be in (0, {smallest!r}], no more than any expected cost"
    return smallest if min_cost is None else number("min_cost", min_cost, 0, smallest, allowed, above=0)


def gaps(bandit: Bandit) -> pd.DataFrame:
    """The gaps Delta_i of ratios, and what a pull loses (Xia et al., section 3.3).

    A row per arm, zeros for the best ones. `gap`: Delta_i, best ratio minus the arm's, in reward per unit of cost.
    `loss`: mu^c_i Delta_i, what a pull loses in expectation against spending its cost on the best arm.

    >>> bandit = Bandit([cb.Bernoulli(0.75), cb.Bernoulli(0.5)], [cb.Bernoulli(0.25), cb.Bernoulli(0.5)])
    >>> gaps(bandit).loss.to_numpy()
    array([0., 1.])
    """
    _, costs, gap, _ = _arms(bandit)
    return pd.DataFrame({"gap": gap, "loss": costs * gap})


def _lost(bandit, pulls):
    """What pulls lose against spending their costs on the best arm, and the best ratio."""
    _, costs, gap, best = _arms(bandit)
    pulls = numbers("pulls", pulls, 0, allowed="must be finite numbers, 0 or more")
    require(pulls.shape[-1:] == gap.shape, "pulls", pulls, f"must have the {bandit.K} arms as its last axis")
    return pulls @ (costs * gap), best


def lemma_1(bandit: Bandit, pulls: ArrayLike) -> np.ndarray:
    """Lemma 1 (Xia et al.): upper bound of the regret of any policy that spends a budget.

    sum_i mu^c_i Delta_i E[n_i] + gamma. `pulls`, of shape (..., K), are expected: E[n_i], the crossing pull included.

    >>> float(lemma_1(cb.Bandit([cb.Constant(1), cb.Constant(0.5)], [cb.Constant(0.5)] * 2), pulls=[40, 10]))
    7.0
    """
    lost, best = _lost(bandit, pulls)
    return lost + best


def lemma_4(bandit: Bandit, wrong_pulls: float) -> float:
    """Lemma 4 (Xia et al.): Delta_max E[tau] + gamma, the same with every wrong pull at the highest price.

    The arms of a linear bandit are its vertices; `wrong_pulls` is E[tau], expected pulls of all arms but the best.

    >>> lemma_4(cb.Bandit([cb.Constant(1), cb.Constant(0.5)], [cb.Constant(0.5)] * 2), wrong_pulls=10)
    12.0
    """
    wrong = number("wrong_pulls", wrong_pulls, 0, allowed="must be a finite number of 0 or more")
    _, _, gap, best = _arms(bandit)
    return float(gap.max() * wrong + best)


def regret_identity(bandit: Bandit, pulls: ArrayLike, spent: ArrayLike, optimum: float) -> np.ndarray:
    """The exact regret of any policy, which Lemmas 1 and 4 bound; ours.

    R* - gamma E[spent] + sum_i mu^c_i Delta_i E[n_i]. Pulls as in `lemma_1`; `spent`, a number or an array of shape
    (...), is the expected cost of all pulls, the crossing pull included; R* (`optimum`) is the expected reward of the
    best policy that knows the expectations (`exact_game` finds it for costs on a grid).

    >>> bandit = cb.Bandit([cb.Constant(1), cb.Constant(0.5)], [cb.Constant(0.5)] * 2)
    >>> float(regret_identity(bandit, pulls=[11, 10], spent=10.5, optimum=21))
    5.0
    """
    lost, best = _lost(bandit, pulls)
    return lost + number("optimum", optimum) - best * numbers("spent", spent)


class Game(NamedTuple):
    """Expectations of a game that spends a budget: `reward` and cost (`spent`) of all pulls, `pulls` of each arm.

    `arms`, an array of shape (steps + 1,), has the arm that is pulled with 0, 1, ..., `steps` steps of the budget left.
    """
    reward: float
    spent: float
    pulls: np.ndarray
    arms: np.ndarray


def exact_game(chances: ArrayLike, rewards: ArrayLike, steps: int, arms: ArrayLike | None = None,
               crossing: bool = True) -> Game:
    """The exact game of a policy that only looks at the money left, for costs on the grid 0, 1/m, ..., 1.

    `chances` and `rewards`, of shape (K, m + 1), are the probabilities of the costs 0, 1/m, ..., 1, one row per arm,
    that of 0 below 1, and the expected reward given each cost: rewards and costs of a pull may depend on each other.
    `steps` is the budget in steps of 1/m, 0 or more; the game goes on until more than that is spent. The policy
    (`arms`, of shape (steps + 1,)) is the arm for 0, 1, ... steps left, and again after a pull that costs nothing. By
    default it is the best: its reward is R*, since nothing but the money left matters to a player who knows the
    expectations. `crossing` says whether the reward of the pull that crosses the budget counts.

    >>> exact_game(chances=[[0.5, 0.5], [0.0, 1.0]], rewards=[[0.25, 0.25], [1.0, 1.0]], steps=3).reward
    4.0
    """
    p = numbers("chances", chances, 0, 1, "must be probabilities", shape=("K", "m + 1"))
    r = numbers("rewards", rewards, shape=p.shape)
    require(bool(np.allclose(p.sum(axis=1), 1) and np.all(p[:, 0] < 1)), "chances", chances,
            "must sum to 1 in each row, that of cost 0 being below 1")
    steps, (K, m) = count("steps", steps, low=0), (p.shape[0], p.shape[1] - 1)
    chosen = np.zeros(steps + 1, int) if arms is None else np.asarray(arms)
    require(chosen.shape == (steps + 1,) and chosen.dtype.kind in "iu" and bool(np.all((chosen >= 0) & (chosen < K))),
            "arms", arms, f"must be {steps + 1} positions of arms below {K}")
    first = np.c_[np.zeros(K), p @ np.arange(m + 1) / m, np.eye(K)]       # of one pull: reward, spent, pulls
    ahead = np.zeros((m + steps + 1, K + 2))                              # the same by money left, m entries below 0
    for left in range(steps + 1):
        counted = np.ones(m + 1) if crossing else np.arange(m + 1) <= left
        first[:, 0] = (p * r * counted).sum(axis=1)
        values = (first + p[:, 1:] @ ahead[left:left + m][::-1]) / (1 - p[:, :1])
        if arms is None:
            chosen[left] = values[:, 0].argmax()
        ahead[left + m] = values[chosen[left]]
    reward, spent, *pulls = ahead[-1]
    return Game(float(reward), float(spent), np.array(pulls), chosen)


def worst_miss(mean: float, rounds: Sequence[int], exploration: float = 1.0) -> np.ndarray:
    """Exact probability behind Lemma 2 (Xia et al.) for the policy that tries hardest to miss, on a Bernoulli arm.

    P(there is n <= t - 1 with |mean of n outcomes - mu| >= eps), eps = exploration sqrt(2 log(t - 1) / n): no policy
    can make an arm leave its interval at round t more often. Lemma 2 promises at most 2 / (t - 1)^3.

    mu (`mean`) is in [0, 1], `exploration` above 0. One probability per round t, 2 or more; time grows with t^2.

    >>> worst_miss(0.5, rounds=[5, 50], exploration=0.5).round(4)
    array([0.25  , 0.0334])
    """
    mean, factor = number("mean", mean, 0, 1, "must be in [0, 1]"), positive("exploration", exploration)
    missed = []
    for t in rounds:
        reach, total, inside = factor * sqrt(2 * log(count("rounds", t, low=2) - 1)), 0.0, np.ones(1)
        for n in range(1, t):
            after = np.r_[inside * (1 - mean), 0.0]
            after[1:] += inside * mean
            off = np.abs(np.arange(n + 1) - n * mean) >= reach * sqrt(n) - 1e-9
            total += after[off].sum()
            inside = np.where(off, 0.0, after)
        missed.append(float(total))
    return np.array(missed)


def chance_failures(K: int) -> float:
    """4 sum_{t > K} (t - K) / (t - 1)^4: expected rounds in which one of four one-sided bounds fails; ours.

    Reward and cost of two arms, each on the side that can mislead; after K first pulls (K, the number of arms, is 2 or
    more) an arm has at most t - K before round t. Stands where Theorem 3 (Xia et al.) has 3.

    >>> round(chance_failures(K=2), 3)
    0.479
    """
    K = count("K", K, low=2)
    return float(4 * (zeta(3, K) - (K - 1) * zeta(4, K)))


def bonus(reward: ArrayLike, cost: ArrayLike, width: ArrayLike, min_cost: ArrayLike) -> float | np.ndarray:
    """H = (eps / c) (1 + min(r + eps, 1) / max(c - eps, lambda)), what Budget-UCB adds to r / c (Xia et al., Eq. 2).

    Mean reward r, mean cost c, eps (`width`) and lambda (`min_cost`) are numbers or arrays. H is infinite at c = 0.

    >>> float(bonus(0.5, 0.5, width=0.25, min_cost=0.1))
    2.0
    """
    given = {"reward": reward, "cost": cost, "width": width}
    reward, cost, width = np.broadcast_arrays(*(numbers(name, value) for name, value in given.items()))
    min_cost = numbers("min_cost", min_cost, allowed="must be finite and above 0", above=0)
    safe = np.where(cost > 0, cost, 1.0)
    value = width / safe * (1 + np.minimum(reward + width, 1) / np.maximum(cost - width, min_cost))
    return np.where(cost > 0, value, inf)[()]


def printed_width(bandit: Bandit, min_cost: float | None = None) -> np.ndarray:
    """Delta_i mu^c_i / (2 + 2 / lambda + Delta_i), per arm: below it a worse arm stops looking best (Xia et al., S1-4).

    >>> printed_width(cb.Bandit([cb.Constant(1), cb.Constant(0.5)], [cb.Constant(0.5)] * 2)).round(3)
    array([0.   , 0.071])
    """
    _, costs, gap, _ = _arms(bandit)
    return gap * costs / (2 + 2 / _lowest(min_cost, costs) + gap)


def width(bandit: Bandit, min_cost: float | None = None) -> np.ndarray:
    """The largest eps at which a worse arm cannot look best while its means are within eps; ours, by bisection.

    The index at mu^r + eps and mu^c - eps is then the best ratio. Shape (K,), 0 for best arms, `printed_width` or more.

    >>> width(cb.Bandit([cb.Constant(1), cb.Constant(0.5)], [cb.Constant(0.5)] * 2)).round(3)
    array([0.   , 0.093])
    """
    rewards, costs, gap, best = _arms(bandit)
    lowest, low, high = _lowest(min_cost, costs), printed_width(bandit, min_cost), costs.copy()
    for _ in range(30):                                    # the lower end is safe after any number of steps
        eps = (low + high) / 2
        ratio = np.minimum(rewards + 2 * eps, 1) / np.maximum(costs - 2 * eps, lowest)
        fits = rewards + eps + eps * (1 + ratio) <= best * (costs - eps)      # the index times the mean cost
        low, high = np.where(fits, eps, low), np.where(fits, high, eps)
    return np.where(gap > 0, low, 0.0)


def tail(budget: float, min_cost: float) -> float:
    """T(B) (Xia et al., Eq. 8) with the smallest expected cost, L(B) (Eq. 12) with lambda: rounds after 2 B / min_cost.

    exp(-mu (B - mu)^2 / B) + (3 B / mu) exp(-B mu / 2) + exp(1 - 2 B mu) / mu^2. An upper bound of the expected rounds
    from B = mu on; `excess_rounds` of `bounds.omega_ucb` is a smaller one. mu (`min_cost`) is in (0, 1].

    >>> round(tail(budget=20, min_cost=0.5), 3)
    0.809
    """
    budget = positive("budget", budget)
    mu = number("min_cost", min_cost, 0, 1, "must be in (0, 1]", above=0)
    return (exp(-mu * (budget - mu) * ((budget - mu) / budget)) + 3 * budget / mu * exp(-budget * mu / 2)
            + exp(1 - 2 * budget * mu) / mu**2)


def theorem_3(bandit: Bandit, budget: float, min_cost: float | None = None) -> float:
    """Theorem 3 (Xia et al., Eq. 9): upper bound of Budget-UCB's regret.

    sum_i 8 (1 + 1/lambda + Delta_i/2)^2 / (Delta_i mu^c_i) log(2B / mu_min) + (3 + T(B)) sum_i Delta_i mu^c_i + gamma,
    over the arms that are not best. Holds for B of at least mu_min, the smallest expected cost; can be negative below.
    The printed steps add up to 4 in place of 3; what they estimate is 1 + `chance_failures`(K).

    >>> round(theorem_3(cb.Bandit([cb.Constant(1), cb.Constant(0.5)], [cb.Constant(0.5)] * 2), budget=1000))
    1629
    """
    _, costs, gap, best = _arms(bandit)
    smallest, worse = float(costs.min()), gap > 0
    loss, eps = (costs * gap)[worse], printed_width(bandit, min_cost)[worse]
    learning = 2 * log(2 * positive("budget", budget) / smallest) * (loss / eps**2).sum()
    return float(learning + (3 + tail(budget, smallest)) * loss.sum() + best)


def theorem_3_sharper(bandit: Bandit, budget: float, min_cost: float | None = None) -> float:
    """Upper bound of Budget-UCB's regret by the same proof without its waste; ours.

    Pulls: 2 log(2B / mu_min) / eps^2 with `width` for eps, plus 1, `chance_failures` and `excess_rounds`. They cost
    B + 1 at most in expectation: the money goes to the worst arms first. Never above Theorem 3. B is at least mu_min.

    >>> round(theorem_3_sharper(cb.Bandit([cb.Constant(1), cb.Constant(0.5)], [cb.Constant(0.5)] * 2), budget=1000))
    960
    """
    _, costs, gap, best = _arms(bandit)
    smallest, worse = float(costs.min()), gap > 0
    budget = number("budget", budget, smallest, allowed=f"must be finite and at least {smallest!r}")
    wide = width(bandit, min_cost)[worse]
    if not worse.any():
        return best
    once = 1 + chance_failures(bandit.K) + excess_rounds(budget, smallest)
    pulls = 2 * log(2 * budget / smallest) / wide**2 + once
    order = np.argsort(-gap[worse])
    price, money = gap[worse][order], (costs[worse] * pulls)[order]
    spent = np.minimum(np.cumsum(money), budget + 1)
    return float(price @ np.diff(spent, prepend=0.0) + best)


def informative_from(bound: Callable[[float], float], best_ratio: float) -> float:
    """The budget from which on a bound of the regret stays below (B + 1) gamma, all that a policy can miss.

    In units of cost: 2 if it holds from there, the smallest looked at; infinite if not by 1e30. gamma is `best_ratio`.

    >>> round(informative_from(lambda budget: 100 * np.log(budget), best_ratio=1.0))
    646
    """
    best = positive("best_ratio", best_ratio)

    def excess(log_budget):
        budget = exp(log_budget)
        least = bound(budget)
        return log(least) - log(best * (budget + 1)) if least > 0 else -inf

    grid = np.linspace(log(2), 30 * log(10), 31)
    last = next((i for i in range(30, -1, -1) if excess(grid[i]) > 0), None)
    if last is None or last == 30:
        return 2.0 if last is None else inf
    return exp(brentq(excess, grid[last], grid[last + 1]))


def radius(t: ArrayLike, d: int, noise: float, length: float, size: float, ridge: float, delta: float,
           printed: bool = False) -> float | np.ndarray:
    """eps(t), the radius of Budget-CB's confidence balls at round t (Xia et al., Algorithm 2 and Lemma 5).

    C sqrt(d log(1 + t L^2 / (rho d)) + 2 log(1 / delta)) + S sqrt(rho), as the proof has it; Algorithm 2 prints
    2 log(1 / delta) outside of the root (`printed`).

    t counts from 1, d is the dimension; C, L, S, rho (`noise`, `length`, `size`, `ridge`) are above 0, delta in (0, 1).

    >>> round(float(radius(100, d=2, noise=0.1, length=1, size=1, ridge=1, delta=0.1)), 3)
    1.353
    """
    d, noise, length = count("d", d), positive("noise", noise), positive("length", length)
    size, ridge = positive("size", size), positive("ridge", ridge)
    number("delta", delta, allowed="must be in (0, 1)", above=0, below=1)
    t, slack = numbers("t", t, 1, allowed="must be 1 or more"), 2 * log(1 / delta)
    growth = d * np.log1p(t * length**2 / (ridge * d))
    inside = noise * np.sqrt(growth) + slack if printed else noise * np.sqrt(growth + slack)
    return inside + size * sqrt(ridge)


class LinearBound(NamedTuple):
    """Theorem 7's bound, term by term.

    `learning`: Delta_max times Lemma 6's pulls, infinite if two arms share the best ratio. `failures`: 2 Delta_max /
    lambda per ball that may miss with probability 1 / B. `tail`: Delta_max L(B). `crossing`: gamma, the best ratio.
    """
    learning: float
    failures: float
    tail: float
    crossing: float

    @property
    def total(self) -> float:
        """The bound."""
        return sum(self)


def theorem_7(bandit: LinearBandit, budget: float, ridge: float | None = None, min_cost: float | None = None,
              balls: int = 1) -> LinearBound:
    """Theorem 7 (Xia et al.): upper bound of the regret of Budget-CB with delta = 1 / B.

    C and S are what the bandit tells policies, L is the length of its longest arm, B above 1. rho (`ridge`) is at least
    max(1, L^2), the default. `balls` may fail: the paper counts 1, there are 2. The bound is true with 1 all the same.

    >>> round(theorem_7(cb.LinearBandit([[0.5, 0.1], [0, 1]], [0.6, 0.2], [0.3, 0.4], 0.1), budget=100).crossing, 3)
    1.684
    """
    _, costs, gap, best = _arms(bandit)
    require(bandit.linear is not None, "bandit", bandit, "must be a LinearBandit")
    budget = number("budget", budget, allowed="must be a finite number above 1: delta = 1 / B", above=1)
    (vertices, noise, size), lowest = bandit.linear, _lowest(min_cost, costs)
    d, length = vertices.shape[1], float(np.linalg.norm(vertices, axis=1).max())
    least = max(1.0, length**2)
    rho = least if ridge is None else number("ridge", ridge, least, allowed=f"must be at least {least!r}, max(1, L^2)")
    smallest, largest = np.sort(gap)[1] if bandit.K > 1 else inf, float(gap.max())
    rounds = 2 * budget / lowest
    eps = radius(rounds, d, noise, length, size, rho, 1 / budget)
    pulls = 32 * d * eps**2 * log(1 + rounds * length**2 / (d * rho))
    learning = largest * pulls / (lowest**4 * smallest**2) if smallest > 0 else inf
    failures = count("balls", balls) * 2 * largest / lowest
    return LinearBound(float(learning), failures, tail(budget, lowest) * largest, best)
