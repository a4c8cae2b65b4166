"""Each paper's regret, from pull counts after the run.

All are pseudo-regrets, of the arms' expected rewards and costs: arrays of shape (policy, replication, checkpoint), in
units of reward (`cost`: of cost). ValueError says if runs were played under a stop rule for which one has no meaning.
"""

import functools

import numpy as np

from ..checks import ROUNDING, require, share
from ..engine.stops import AnytimeBudget, Budget, HardBudget, Horizon
from ..studies.runs import Runs
from ..theory import optimum


def budgeted(runs: Runs, against: str = "spent") -> np.ndarray:
    """Regret against always pulling the arm with the best ratio rho* = max_k mu^r_k / mu^c_k.

    Parameters
    ----------
    runs : Runs
        Under `Budget` or `HardBudget`.
    against : {"spent", "budget"}
        "spent": sum over pulls of mu^c_k (rho* - rho_k), never negative (Heyden et al., section 2).
        "budget": share of the budget times rho*, minus the expected reward of the pulls (Xia et al.).

    Examples
    --------
    >>> bandit = cb.Bandit([cb.Constant(0.9), cb.Constant(0.4)], [cb.Constant(1.0), cb.Constant(1.0)])
    >>> runs = cb.simulate({"m": cb.MUCB()}, bandit, cb.Budget(10), checkpoints=1)
    >>> runs.pulls[0, 0, 0].tolist(), cb.regret.budgeted(runs).round(2)
    ([9, 1], array([[[0.5]]]))
    """
    require(against in ("spent", "budget"), "against", against, "must be 'spent' or 'budget'")
    _require_under(runs, Budget, "must be Budget or HardBudget; others have regrets of their own (cb.regret.anytime, "
                                 "cb.regret.cost, ...), which cb.paired takes as values")
    best = np.array([bandit.ratios.max() for bandit in runs.bandits])
    if against == "spent":
        return _over_arms(runs, [b.cost_means * (b.ratios.max() - b.ratios) for b in runs.bandits])
    due = np.array([runs.fractions * stop.total for stop in runs.stops])
    return due * best[:, None] - _over_arms(runs, [b.reward_means for b in runs.bandits])


def knapsack(runs: Runs) -> np.ndarray:
    """What the best plan for the whole budget is worth, less the expected reward of the pulls so far.

    The best plan is the exact optimum of the unbounded knapsack problem (`optimum.knapsack`): with known costs and
    known means no policy can expect more (Tran-Thanh et al., Eq. 4). Only the last checkpoint, the end of the run, is
    a regret; before it, what is not spent yet is missing too. Runs must be under a `HardBudget`.

    >>> bandit = cb.Bandit([cb.Constant(0.9), cb.Constant(0.2)], [cb.Constant(2.0), cb.Constant(1.0)])
    >>> runs = cb.simulate({"KUBE": cb.KUBE()}, bandit, cb.HardBudget(9), checkpoints=1)
    >>> runs.pulls[0, 0, 0].tolist(), cb.regret.knapsack(runs).round(2)    # best: [4, 1]
    ([2, 5], array([[[1.]]]))
    """
    _require_under(runs, HardBudget, "must be a HardBudget: the regret compares whole plans")
    worth = functools.cache(lambda bandit, total: optimum.knapsack(bandit.reward_means, bandit.cost_means, total).value)
    best = [worth(bandit, stop.total) for bandit, stop in zip(runs.bandits, runs.stops, strict=True)]
    return np.array(best)[:, None] - _over_arms(runs, [b.reward_means for b in runs.bandits])


def anytime(runs: Runs) -> np.ndarray:
    """What the best mixture of arms with a mean cost of at most c would pay, less the expected reward of the pulls.

    The best mixture pays r* per round (`optimum.mixture`): the linear relaxation (Elumar et al., Eq. 2, 3). With its
    prices, alpha for a round and lambda for a unit of cost, the regret is
    sum_k n_k (alpha + lambda rho_k - mu_k) + alpha (rounds without a pull) + lambda (c t - sum_k n_k rho_k),
    where no term of the first two is negative; the third is what was not spent. Runs must be under an `AnytimeBudget`.

    >>> bandit = cb.Bandit([cb.Constant(0.8), cb.Constant(0.1)], [cb.Constant(0.4), cb.Constant(0.4)])
    >>> runs = cb.simulate({"SUAK": cb.SUAK()}, bandit, cb.AnytimeBudget(0.5, 10), checkpoints=1)
    >>> runs.pulls[0, 0, 0].tolist(), cb.regret.anytime(runs).round(2)     # best: [10, 0]
    ([4, 4], array([[[4.4]]]))
    """
    _require_under(runs, AnytimeBudget, "must be an AnytimeBudget")
    best = [optimum.mixture(bandit.reward_means, bandit.cost_means, stop.rate).value
            for bandit, stop in zip(runs.bandits, runs.stops, strict=True)]
    return runs.rounds * np.array(best)[:, None] - _over_arms(runs, [b.reward_means for b in runs.bandits])


def quality(runs: Runs, alpha: float) -> np.ndarray:
    """By how much pulls fall short of the tolerated reward, 1 - alpha times the largest expected one, pull by pull.

    The sum over pulls of max((1 - alpha) max_k mu_k - mu, 0) (Sinha et al., Eq. 1): a pull that pays more does not
    make up for others. An arm that misses the tolerated reward by rounding alone, 1e-12 of it, has no regret.

    Parameters
    ----------
    runs : Runs
        Under `Horizon`.
    alpha : float
        The subsidy factor, in [0, 1).

    Examples
    --------
    >>> bandit = cb.Bandit([cb.Constant(0.2), cb.Constant(0.5)], [cb.Constant(0.0), cb.Constant(1.0)])
    >>> runs = cb.simulate({"CS-UCB": cb.CSUCB(0.1)}, bandit, cb.Horizon(10), checkpoints=1)
    >>> runs.pulls[0, 0, 0].tolist(), cb.regret.quality(runs, 0.1).round(2)     # 0.45 - 0.2 a pull
    ([9, 1], array([[[2.25]]]))
    """
    return _over_arms(runs, [np.maximum(bar - bandit.reward_means, 0.0) * ~feasible
                             for bandit, bar, feasible in _tolerated(runs, alpha)])


def cost(runs: Runs, alpha: float) -> np.ndarray:
    """By how much pulls cost more than the cheapest arm without quality regret, pull by pull, in expectation.

    The sum over pulls of max(c - c_*, 0), c_* being that arm's cost (Sinha et al., Eq. 1). Parameters as in `quality`.

    >>> bandit = cb.Bandit([cb.Constant(0.5), cb.Constant(0.5)], [cb.Constant(0.0), cb.Constant(1.0)])
    >>> runs = cb.simulate({"CS-UCB": cb.CSUCB(0.1)}, bandit, cb.Horizon(10), checkpoints=1)
    >>> runs.pulls[0, 0, 0].tolist(), cb.regret.cost(runs, 0.1)
    ([9, 1], array([[[1.]]]))
    """
    return _over_arms(runs, [np.maximum(bandit.cost_means - bandit.cost_means[feasible].min(), 0.0)
                             for bandit, _, feasible in _tolerated(runs, alpha)])


def _tolerated(runs, alpha):
    """Each replication's bandit, its tolerated reward, and which arms reach it, shape (K,)."""
    alpha = share("alpha", alpha)
    _require_under(runs, Horizon, "must be a Horizon")
    for bandit in runs.bandits:
        best = bandit.reward_means.max()
        require(best >= 0, "largest expected reward", float(best), "must be 0 or more: a share of it is tolerated")
        bar = (1.0 - alpha) * best
        yield bandit, bar, bandit.reward_means >= bar - ROUNDING * bar


def _require_under(runs, kind, allowed):
    require(isinstance(runs, Runs), "runs", runs, "must be what cb.simulate returns without reduce, Runs")
    for stop in runs.stops:
        require(isinstance(stop, kind), "stop", stop, allowed)


def _over_arms(runs, per_pull):
    """Sum over arms of pulls times a value per pull (replication, arm); shape (policy, replication, checkpoint)."""
    # Not a matrix product: its rounding would depend on how many runs are summed at once.
    return np.stack([(pulls * np.array(per_pull)[:, None]).sum(axis=-1) for pulls in runs.pulls])
