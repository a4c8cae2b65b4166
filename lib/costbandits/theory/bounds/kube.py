"""What Tran-Thanh et al., "Knapsack based Optimal Policies for Budget-Limited Multi-Armed Bandits", promise.

Theorems 1 and 7 as printed and repaired, 8 with a constant, 9 and 10 of ours, and the exact law of KUBE on two arms.

In all functions mu_i (`reward_means`) are K expected rewards, in [0, 1] if nothing else is said; c_i (`costs`) are the
known costs of a pull and B (`budget`) is in their units, both above 0. `fractional` tells fractional KUBE from KUBE.
I* is the arm with the highest density mu* / c*. Bounds are in units of reward.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from math import inf, log, sqrt

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import lambertw, logit, zeta

from ...checks import FINITE, ROUNDING, count, number, numbers, positive, require, rounding
from .kl_ucb import divergence, errors

_costs = partial(numbers, "costs", allowed="must be finite numbers above 0", above=0, shape=("K",))


def _arms(reward_means, costs, highest=1.0):
    rewards = numbers("reward_means", reward_means, 0, highest, f"must be numbers in [0, {highest:g}]", shape=("K",))
    return rewards, _costs(costs, shape=rewards.shape)


def _losses(rewards, costs):
    # I*, and what a pull of each arm loses against spending its cost on I*.
    best = int(np.argmax(rewards / costs))
    due = costs * (rewards[best] / costs[best])
    return best, np.where(due - rewards > ROUNDING * due, due - rewards, 0.0)  # rounding must not tell equals apart


def _game(reward_means, costs, budget, highest=1.0):
    rewards, costs = _arms(reward_means, costs, highest)
    return rewards, costs, positive("budget", budget), *_losses(rewards, costs)


def gaps(reward_means: ArrayLike, costs: ArrayLike) -> pd.DataFrame:
    """The paper's gaps to the densest arm I* (Tran-Thanh et al., section 4), arm by arm.

    A row per arm, zeros for I*. `reward`: Delta_j = mu* - mu_j. `cost`: delta_j = c_j - c*. `density`: the gap
    mu* / c* - mu_j / c_j, at least d_min for j != I*. `loss`: c_j times that, lost by not spending this cost on I*.

    >>> gaps([0.75, 0.5], [1, 2]).loss.to_numpy()
    array([0., 1.])
    """
    rewards, costs = _arms(reward_means, costs)
    best, loss = _losses(rewards, costs)
    return pd.DataFrame({"density": loss / costs, "reward": rewards[best] - rewards, "cost": costs - costs[best],
                         "loss": loss})


def kube(reward_means: ArrayLike, costs: ArrayLike, budget: float, fractional: bool = False) -> float:
    """Theorem 1 (Tran-Thanh et al.) as printed: upper bound of KUBE's regret.

    Its proof fails, but the statement holds when budget >= min(costs) and no pull, those of the initial phase included,
    overspends. For smaller budgets it can be negative. Infinite when two arms share the highest density (d_min = 0).
    Costs are 1 or more; the bound is not free of their scale: see `rescaled`.

    >>> round(kube([0.75, 0.5], [1, 2], budget=100))
    214
    """
    rewards, costs, budget, best, loss = _game(reward_means, costs, budget)
    require(costs.min() >= 1, "costs", costs, "must be 1 or more; `rescaled` takes any scale")
    d_min = min(np.delete(loss / costs, best), default=inf)
    if d_min == 0:
        return inf
    weight = np.maximum(rewards[best] - rewards, 0).sum() + np.maximum(costs - costs[best], 0).sum() / costs[best]
    end = 0.0 if fractional else (costs.max() / costs.min()) ** 2
    return float(weight * ((8 / d_min**2 + end) * log(budget / costs.min()) + np.pi**2 / 3 + 1) + 1)


def fractional_kube(reward_means: ArrayLike, costs: ArrayLike, budget: float) -> float:
    """Theorem 7 (Tran-Thanh et al.) as printed: upper bound of fractional KUBE's regret; the rest as in `kube`.

    >>> round(fractional_kube([0.75, 0.5], [1, 2], budget=100))
    191
    """
    return kube(reward_means, costs, budget, fractional=True)


def rescaled(bound: Callable, reward_means: ArrayLike, costs: ArrayLike, budget: float,
             reward_scale: float = 1.0) -> float:
    """A bound of this module for rewards on [0, reward_scale] and costs of any scale.

    The smallest cost becomes 1, which makes the printed bounds smallest; rewards are divided by their scale and the
    bound multiplied by it. The policy must use the same scale (`KUBE(reward_scale=...)`), or the theorems are silent.

    `bound` is `kube`, `fractional_kube` or one of their sharper versions; means are in [0, reward_scale].

    >>> round(rescaled(kube, [15, 10], [5, 10], budget=500, reward_scale=20))
    4272
    """
    scale = positive("reward_scale", reward_scale)
    rewards, costs = _arms(reward_means, costs, highest=scale)
    return scale * bound(rewards / scale, costs / costs.min(), positive("budget", budget) / costs.min())


def chance_failures(first_round: int) -> float:
    """2 sum_{t >= first_round} (t - 1) / t^4: expected rounds in which one of two confidence bounds fails.

    Stands where the paper has pi^2 / 3. `first_round` is 2 or more.

    >>> round(chance_failures(3), 4)
    0.1145
    """
    first = count("first_round", first_round, low=2)
    return float(2 * (zeta(3, first) - zeta(4, first)))


def _area(height, width):
    # The integral of min(1, height / x) over 0 < x < width.
    return float(min(width, height) + height * max(log(width / height), 0.0))


def off_leader_pulls(costs: ArrayLike, budget: float) -> float:
    """Upper bound of KUBE's expected pulls of arms that do not lead; replaces the paper's (c_max / c_min)^2 ln T.

    q + q ln(n / q) if n = B / c_min is at least q = (c_max / c_min)^2; at most q ln n + 1 for every n >= 1.

    >>> round(off_leader_pulls([1, 2], budget=100), 1)
    16.9
    """
    costs = _costs(costs)
    return _area((costs.max() / costs.min()) ** 2, positive("budget", budget) / costs.min())


def off_leader_cost(costs: ArrayLike, budget: float) -> float:
    """Upper bound of what KUBE spends in expectation on arms that do not lead, plus what it leaves unspent; ours.

    The integral of min(1, c_max / x) over 0 < x < B, c_max (1 + ln(B / c_max)) from B = c_max on, in units of cost.

    >>> round(off_leader_cost([1, 2], budget=100), 1)
    9.8
    """
    return _area(_costs(costs).max(), positive("budget", budget))


def _end(rewards, costs, budget, best, loss, fractional):
    """What is lost at most by arms that do not lead, and by what stays unspent."""
    density = rewards[best] / costs[best]
    if fractional:
        return density * min(budget, costs[best])
    return min(density * off_leader_cost(costs, budget),
               loss.max() * off_leader_pulls(costs, budget) + density * costs.min())


def kube_sharper(reward_means: ArrayLike, costs: ArrayLike, budget: float, fractional: bool = False) -> float:
    """Upper bound of KUBE's regret by the repaired proof, with each arm's own gap; ours.

    sum over arms with a loss l_j = c_j d_j > 0 of 8 ln(B / c_min) / l_j + l_j (1 + 0.115), plus the smaller of
    (mu* / c*) `off_leader_cost` and max_j l_j `off_leader_pulls` + c_min mu* / c*. Never above Theorem 1, free of the
    costs' scale, finite when arms tie; 0 below every cost. The policy must never overspend.

    >>> round(kube_sharper([0.75, 0.5], [1, 2], budget=100))
    45
    """
    rewards, costs, budget, best, loss = _game(reward_means, costs, budget)
    if budget < costs.min():                            # no pull, no regret
        return 0.0
    worse = loss[loss > 0]
    learning = 8 * log(budget / costs.min()) / worse + worse * (1 + chance_failures(3))
    return float(learning.sum() + _end(rewards, costs, budget, best, loss, fractional))


def fractional_kube_sharper(reward_means: ArrayLike, costs: ArrayLike, budget: float) -> float:
    """Upper bound of fractional KUBE's regret, if it pulls the densest affordable arm; ours.

    As `kube_sharper`, with mu* min(1, B / c*) in place of the last term.

    >>> round(fractional_kube_sharper([0.75, 0.5], [1, 2], budget=100))
    39
    """
    return kube_sharper(reward_means, costs, budget, fractional=True)


_SHARES = np.geomspace(0.01, 0.99, 100)         # of its gap that an arm's level leaves to I*, where a bound may choose
_EPS = np.geomspace(1e-3, 10, 100)


def low_rounds(shortfall: ArrayLike, rounds: float, reward_scale: float = 1.0,
               deviation: float = 0.5) -> float | np.ndarray:
    """Lemma 7 (ours): expected rounds in which an arm's mean plus its bonus is more than `shortfall` below its truth.

    The bonus after n pulls is R sqrt(2 ln t / n). With kappa = shortfall^2 / 2 sigma^2 and R >= sigma these are at most
    1/kappa + ln(1 + 1/kappa) / 2 kappa, for ever; with R < sigma and p = 1 - (R / sigma)^2, (1 + rounds^p / p) / kappa.

    `shortfall`, a number or an array, is in units of reward, above 0; `rounds` are those of the game. Rewards are
    sub-Gaussian with sigma (`deviation`): 1/2 for rewards on [0, 1]. R is `reward_scale`.

    >>> round(float(low_rounds(1.0, 1e6, reward_scale=1.0, deviation=1.0)), 2)
    3.1
    """
    R, sigma = positive("reward_scale", reward_scale), positive("deviation", deviation)
    kappa = (numbers("shortfall", shortfall, allowed="must be above 0", above=0) / sigma) ** 2 / 2
    power = 1 - (R / sigma) ** 2
    if power <= 0:
        return 1 / kappa + np.log1p(1 / kappa) / (2 * kappa)
    return (1 + positive("rounds", rounds) ** power / power) / kappa


def _by_levels(loss, low, high):
    # Each arm has the level h_j that is best for it: low and high are C(h_j) and P(h_j), by arm and level. A round in
    # which I* is low at some of the levels costs the largest loss of their arms at most, and counts once.
    pick = (low + high).argmin(axis=1)[:, None]
    low, high = (np.take_along_axis(each, pick, 1)[:, 0] for each in (low, high))
    order = np.argsort(-low)
    highest = np.maximum.accumulate(loss[order])
    return float(loss @ (1 + high) + low[order] @ np.diff(highest, prepend=0.0))


def theorem_9(reward_means: ArrayLike, costs: ArrayLike, budget: float, reward_scale: float = 1.0,
              deviation: float = 0.5, fractional: bool = True) -> float:
    """Theorem 9 (ours): upper bound of the regret of (fractional) KUBE with any scale R of its bonus.

    The index is mean reward plus R sqrt(2 ln t / n), per cost. With R >= sigma, at a level h < mu* / c*, an arm with
    g = c_j h - mu_j > 0 leads 1 + Q + (1 + eta) 2 R^2 ln(B / c_min) / g^2 + 2 sigma^2 / (g^2 (1 - (1 + eta)^(-1/2))^2)
    times at most, with Q of `low_rounds`. Levels and eta are the best of a grid. A round that is among
    those of Q for several arms counts once, with the largest of their losses.

    mu_i are 0 or more, rewards on any range; R and sigma as in `low_rounds`. With R < sigma the bound is a power of B.

    >>> [round(theorem_9([0.75, 0.5], [1, 2], 1e6, R)) for R in (1.0, 0.5)]
    [171, 85]
    """
    rewards, costs, budget, best, loss = _game(reward_means, costs, budget, FINITE)
    R, sigma = positive("reward_scale", reward_scale), positive("deviation", deviation)
    if budget < costs.min():                            # no pull, no regret
        return 0.0
    worse, rounds = loss > 0, budget / costs.min()
    seen = (1 + _EPS) * 2 * R**2 * log(rounds) + 2 * (sigma / (1 - (1 + _EPS) ** -0.5)) ** 2
    high = seen.min() / (loss[worse, None] * (1 - _SHARES)) ** 2
    low = low_rounds(costs[best] * (loss / costs)[worse, None] * _SHARES, rounds, R, sigma)
    return _by_levels(loss[worse], low, high) + float(_end(rewards, costs, budget, best, loss, fractional))


def theorem_10(reward_means: ArrayLike, costs: ArrayLike, budget: float) -> float:
    """Theorem 10 (ours): upper bound of the regret of KL-UCB over the cost (`cb.KLUCB`), rewards on [0, 1].

    At a level h below mu* / c* an arm with c_j h > 1 is pulled 1 + Q times at most, whatever the budget, and another
    1 + Q + (1 + eta) ln(B / c_min) / I + (1 + eta)^2 L^2 / (2 eta^2 I^2) times, with I = kl(mu_j, c_j h), L the
    difference of the logits of c_j h and mu_j, and Q of `kl_ucb.errors`. Levels, eta and Q as in `theorem_9`.

    >>> round(theorem_10([0.75, 0.5], [1, 2], 1e6))
    23
    """
    rewards, costs, budget, best, loss = _game(reward_means, costs, budget)
    if budget < costs.min():
        return 0.0
    worse = loss > 0
    mean, gap = rewards[worse, None], loss[worse, None]
    due = mean + gap * (1 - _SHARES)
    out, due = due > 1, np.minimum(due, 1 - 1e-12)      # an arm that is out is too expensive to reach the level
    far = np.where(out, inf, divergence(mean, due))
    slope = np.where(out | (mean == 0), 0.0, logit(due) - logit(mean))
    eps = _EPS[:, None, None]
    high = (1 + eps) * log(budget / costs.min()) / far + ((1 + eps) / eps * slope / far) ** 2 / 2
    low = errors(float(rewards[best]), rewards[best] - costs[best] * gap / costs[worse, None] * _SHARES).total
    return _by_levels(loss[worse], low, high.min(axis=0)) + float(_end(rewards, costs, budget, best, loss, True))


def worse_of_two(pulls: int, mean: float, gap: float) -> float:
    """Theorem 8 with a constant: every policy's regret is at least this on one of two instances; ours.

    (gap / kl) W(n kl / 8) with Lambert's W, kl = kl(mean - gap, mean + gap), n (`pulls`) the budget over the cost. Both
    have two arms of cost 1: Bernoulli(mean), and Bernoulli(mean - gap) or Bernoulli(mean + gap), in (0, 1); gap > 0.

    >>> round(worse_of_two(pulls=1000, mean=0.5, gap=0.1), 2)
    2.16
    """
    n, gap = count("pulls", pulls), positive("gap", gap)
    mean = number("mean", mean, allowed="must be a number in (0, 1)", above=0, below=1)
    require(gap < min(mean, 1 - mean), "gap", gap, f"must be below {min(mean, 1 - mean):g}: both means lie in (0, 1)")
    low, high = mean - gap, mean + gap
    kl = low * log(low / high) + (1 - low) * log((1 - low) / (1 - high))
    return float(gap / kl * lambertw(n * kl / 8).real)


def greedy_set(densities: Sequence, costs: Sequence, residual: float) -> list[int]:
    """Density-ordered greedy solution of the unbounded knapsack (Tran-Thanh et al., section 3.1), literally.

    Gives m*_i, how often each arm is in the set. Equal densities: the lower position first. Fractions stay exact.
    `densities` are K values per unit of cost (any order will do), costs are above 0, B_t (`residual`) is 0 or more.

    >>> greedy_set([0.9, 0.5], [2, 1], residual=5)
    [2, 1]
    """
    taken = [0] * len(costs)
    for arm in sorted(range(len(costs)), key=lambda k: -densities[k]):
        times, residual = divmod(residual, costs[arm])  # exact remainder, so that no rounding overfills the set
        taken[arm] = int(times)
    return taken


def draw(t: int, pulls: Sequence, rewards: Sequence, costs: Sequence, residual: float,
         fractional: bool = False) -> tuple[int, list[float]]:
    """One step of Algorithm 1 after its initial phase (Tran-Thanh et al., steps 9 and 10), as a distribution.

    Gives hat I(t), the arm of the highest index per cost, affordable or not, and the K probabilities of being pulled:
    by fractional KUBE the densest affordable arm, else an arm of the greedy set in proportion to its multiplicity.

    Per arm: pulls so far, 1 or more, sum of rewards, cost. t is the coming round, from 1, `residual` B_t >= min(costs).

    >>> draw(t=3, pulls=[1, 1], rewards=[1, 0], costs=[2, 1], residual=5)
    (1, [0.0, 1.0])
    """
    arms = range(len(costs))
    densities = [(rewards[k] / pulls[k] + sqrt(2 * log(t) / pulls[k])) / costs[k] for k in arms]
    return max(arms, key=lambda k: (densities[k], -k)), _chances(densities, costs, residual, fractional)


def _chances(densities, costs, residual, fractional):
    taken = greedy_set(densities, costs, residual)
    if fractional:
        chosen = max((k for k in range(len(costs)) if taken[k]), key=lambda k: (densities[k], -k))
        taken = [int(k == chosen) for k in range(len(costs))]
    return [m / sum(taken) for m in taken]


class TwoArms:
    """Exact law of KUBE or fractional KUBE on two Bernoulli arms.

    A decision does not depend on the arms' means. So the paths to a state are summed once, each weighted by its draws;
    any pair of means (`reward_means` in all methods) only weighs the states.

    B (`budget`) is enough for both first pulls and at most 1000 times the smaller cost. Memory and time grow with its
    fourth power: 160 with costs 1 and 2 takes half a second.

    >>> round(TwoArms((1, 2), budget=20).regret((0.5, 0.5)), 2)
    1.23
    """

    def __init__(self, costs: ArrayLike, budget: float, fractional: bool = False):
        self.costs, self.fractional = tuple(_costs(costs, shape=(2,)).tolist()), bool(fractional)
        least, most = sum(self.costs), 1000 * min(self.costs)   # weights reach 2^T, which must stay finite
        budget = number("budget", budget, least - rounding(least), most, f"must be in [{least:g}, {most:g}]")
        self.budget = budget + rounding(budget)         # what is left may round below a cost that it equals
        self._step = cache(self._rule)
        self._states, self._final = self._paths({(1, 1): np.ones((2, 2))})

    def _rule(self, n):
        """Where arm 2 leads and the probability of pulling arm 1, both by rewarded pulls; None at the end."""
        residual = self.budget - n[0] * self.costs[0] - n[1] * self.costs[1]
        if residual < min(self.costs):
            return None
        t = n[0] + n[1] + 1
        first, second = ((np.arange(n[k] + 1) / n[k] + sqrt(2 * log(t) / n[k])) / self.costs[k] for k in (0, 1))
        lead = second > first[:, None]
        # Of the densities only their order matters.
        leading, not_leading = (_chances(order, self.costs, residual, self.fractional)[0] for order in ((1, 0), (0, 1)))
        return lead, np.where(lead, not_leading, leading)

    def _paths(self, layer):
        """Weights of all states from a layer of states with equally many pulls on, and of those where games end."""
        states, final = {}, {}
        while layer:
            states |= layer
            following = {}
            for n, weights in layer.items():
                if (rule := self._step(n)) is None:
                    final[n] = weights
                else:
                    self._pull(following, n, weights * rule[1], 0)
                    self._pull(following, n, weights * (1 - rule[1]), 1)
            layer = following
        return states, dict(sorted(final.items()))

    @staticmethod
    def _pull(layer, n, weights, arm):
        if weights.any():
            after = n[0] + 1 - arm, n[1] + arm
            into = layer.setdefault(after, np.zeros((after[0] + 1, after[1] + 1)))
            into[:n[0] + 1, :n[1] + 1] += weights       # no reward; probabilities come with the means, in `_weigher`
            into[1 - arm:, arm:] += weights             # one more reward of the arm

    def _weigher(self, reward_means):
        """The function that gives a state's probability: its weights times the probabilities of its outcomes."""
        means, powers = _arms(reward_means, self.costs)[0], []
        for mean, cost in zip(means, self.costs, strict=True):
            exponents = np.arange(self.budget // cost + 2)        # one to spare, for rounding
            powers.append((mean**exponents, (1 - mean) ** exponents))

        def weigh(n, weights):
            first, second = (wins[:m + 1] * losses[m::-1] for (wins, losses), m in zip(powers, n, strict=True))
            return float(first @ weights @ second)
        return weigh

    def ends(self, reward_means: ArrayLike) -> pd.DataFrame:
        """Joint law of the pull counts at the end, in columns pulls_1, pulls_2, T (their sum), probability."""
        weigh = self._weigher(reward_means)
        rows = [(*n, sum(n), weigh(n, weights)) for n, weights in self._final.items()]
        return pd.DataFrame(rows, columns=["pulls_1", "pulls_2", "T", "probability"])

    def pulls(self, reward_means: ArrayLike) -> np.ndarray:
        """Expected pulls of each arm, an array of shape (2,)."""
        weigh = self._weigher(reward_means)
        return sum(weigh(n, weights) * np.array(n) for n, weights in self._final.items())

    def regret(self, reward_means: ArrayLike) -> float:
        """Expected regret against the optimum of the knapsack, in units of reward."""
        means = _arms(reward_means, self.costs)[0]
        first = np.arange(self.budget // self.costs[0] + 1)
        best = (first * means[0] + (self.budget - first * self.costs[0]) // self.costs[1] * means[1]).max()
        return float(best - self.pulls(means) @ means)

    def rounds(self, reward_means: ArrayLike) -> pd.DataFrame:
        """What happens in each round after the initial phase, arms numbered from 1.

        A row per t and `pulls_1`, the pulls of arm 1 before it. `played`: probability that the state is reached and
        round t is played. `leads_1`, `leads_2`: that the arm leads too. `off_leader`: that arm 1 is pulled although arm
        2 leads, or the other way round; `off_cost` that times the pulled arm's cost.
        """
        weigh, rows = self._weigher(reward_means), []
        for n, weights in self._states.items():
            if (rule := self._step(n)) is not None:
                lead, first = rule
                leads_1, leads_2, off_2, off_1 = (weigh(n, weights * part) for part in (
                    ~lead, lead, ~lead * (1 - first), lead * first))
                rows.append((sum(n) + 1, n[0], leads_1 + leads_2, leads_1, leads_2, off_1 + off_2,
                             off_1 * self.costs[0] + off_2 * self.costs[1]))
        return pd.DataFrame(rows, columns=["t", "pulls_1", "played", "leads_1", "leads_2", "off_leader", "off_cost"])

    def given_total(self, reward_means: ArrayLike, t: int) -> pd.DataFrame:
        """Lemma 5's probabilities for arm 1 in round t (3 or more), given the number of pulls T.

        A row per T >= t of positive `probability`; given T, `pulled`: P(i(t) = 1 | T), `leads`: P(hat I(t) = 1 | T).
        """
        t = count("t", t, low=3)
        layer = {n: weights for n, weights in self._states.items() if sum(n) == t - 1 and self._step(n) is not None}
        leads = {n: weights * ~self._step(n)[0] for n, weights in layer.items()}
        pulled = {}
        for n, weights in layer.items():
            self._pull(pulled, n, weights * self._step(n)[1], 0)
        weigh, law = self._weigher(reward_means), {}
        for column, start in enumerate((layer, pulled, leads)):
            for n, weights in self._paths(start)[1].items():
                law.setdefault(sum(n), np.zeros(3))[column] += weigh(n, weights)
        rows = {T: (total, part / total, lead / total) for T, (total, part, lead) in sorted(law.items()) if total > 0}
        return pd.DataFrame.from_dict(rows, orient="index", columns=["probability", "pulled", "leads"]).rename_axis("T")
