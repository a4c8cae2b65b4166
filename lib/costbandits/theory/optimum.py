"""What is the best that could be had within a budget, if all means were known.

With known costs that is the unbounded knapsack problem, max sum_k x_k v_k subject to sum_k x_k w_k <= B over whole
x_k >= 0: values v are expected rewards, weights w are costs. It is solved here exactly, and in the two approximate
ways of Tran-Thanh et al., "Knapsack based Optimal Policies for Budget-Limited Multi-Armed Bandits", section 3.1.

Rounding. Three pulls at a cost of 0.1 must fit a budget of 0.3, although their sum in floating point does not. So a
plan is affordable here if a run under `HardBudget` may spend as much: every plan that exceeds B by rounding alone is
considered, and none that exceeds it by more is returned. Whole costs are exact below a budget of 1 / SLACK.
"""

from math import floor
from typing import NamedTuple

import numpy as np
from numba import types as T
from numpy.typing import ArrayLike

from ..checks import number, numbers, positive, require, rounding
from ..engine.compilation import compiled_for
from ..environments.hull import bridge

SLACK = 2.0**-44            # relative; a few hundred roundings in the search
NODES = 100_000_000         # of the search, about half a second
TABLE = 2**23               # budgets in the table that takes over for whole costs: 100 MB

_floats, _ints = T.float64[::1], T.int64[::1]


class Plan(NamedTuple):
    """Pulls of each arm (`counts`), and the expected reward (`value`): `(counts * values).sum()`, to the last bit."""
    value: float
    counts: np.ndarray


def knapsack(values: ArrayLike, costs: ArrayLike, budget: float, tolerance: float = 0.0) -> Plan:
    """The best plan that the budget affords, by branch and bound.

    At the best density d = max_k v_k / w_k a pull of arm k forgoes g_k = d w_k - v_k >= 0 and a unit of budget left
    over forgoes d: the best plan forgoes least. The search goes through the bundles of other arms that forgo less than
    the best plan so far, which at first is greedy, and lets the densest arm fill the rest of the budget. Hard instances
    exist, such as real costs with (almost) equal densities. Whole costs are never hard if the budget, or the product of
    the densest arm's cost and the largest, is below `TABLE`: a table takes over.

    `values` and `costs`, of shape (K,), are the expected reward of a pull, 0 or more, and its cost, above 0. B
    (`budget`), in units of cost, is 0 or more. `tolerance` is how much less than the optimum will do, as a share of the
    fractional optimum; by default rounding alone. RuntimeError if no plan is proved to be optimal within `NODES` nodes.

    >>> knapsack([3, 2], [2, 1.5], budget=5)
    Plan(value=7.0, counts=array([1, 2]))
    """
    given, costs, limit = _instance(values, costs, budget)
    tolerance = number("tolerance", tolerance, 0, 1, "must be in [0, 1]")
    # Scaled by a power of two so that the largest value is about 1: differences of tiny values would underflow to 0.
    values = np.ldexp(given, -np.frexp(given.max())[1])
    plan = _greedy(values, costs, limit)
    best = np.argmax(np.where(costs <= limit, values / costs, -1.0))
    if costs[best] > limit:
        return _plan(given, slice(None), plan.counts)
    density = values[best] / costs[best]
    loss, gaps = density * limit - plan.value, np.maximum(density * costs - values, 0.0)
    # The densest arm, which has no gap, then by their gaps those that can help: near enough, and undominated.
    others = np.flatnonzero((costs <= limit) & (gaps < loss) & (np.arange(len(costs)) != best))
    arms = np.append(best, others[np.argsort(gaps[others], kind="stable")])
    arms = arms[_undominated(values[arms], costs[arms])]
    w, counts, size = costs[arms], np.zeros(len(arms), np.int64), _table_size(costs[arms], limit)
    most = min(NODES, len(arms) * size) if size else NODES
    padded = np.append(w, 1.0), np.append(gaps[arms], np.inf)
    loss, nodes = _search(*padded, density, limit, loss, tolerance, most, counts)
    if nodes >= most and not size:
        raise RuntimeError(f"no plan is proved to be optimal within {most} nodes: the best one found forgoes "
                           f"{loss / (density * limit):.1e} of the fractional optimum; a tolerance may help")
    if nodes >= most:
        counts = _table(values[arms], w.astype(np.int64), size, floor(limit))
    plan = max(plan, _plan(values, arms, counts), key=lambda plan: plan.value)
    return _plan(given, slice(None), plan.counts)


class Mixture(NamedTuple):
    """The best mixture of arms and the prices that prove it: mu_k <= floor + price rho_k for every arm, floor >= 0.

    `value` is the expected reward per round, floor + price * rate. `shares` are those of the rounds in which to pull
    each arm; what is missing to 1 is the null arm's. A unit of cost is worth `price` (lambda), a round `floor` (alpha).
    """
    value: float
    shares: np.ndarray
    price: float
    floor: float


def mixture(rewards: ArrayLike, costs: ArrayLike, rate: float) -> Mixture:
    """The best mixture of arms with a mean cost of at most `rate` per round, null arm included.

    The linear program of Elumar et al., "Bandits with Anytime Knapsacks", Eq. (2), (3), and appendix C.1. Expected
    rewards and costs of a pull have shape (K,), costs are 0 or more, and the rate is above 0.

    >>> mixture([0.75, 0.25], [0.75, 0.25], rate=0.5).shares
    array([0.5, 0.5])
    """
    values = numbers("rewards", rewards, shape=("K",))
    weights = numbers("costs", costs, 0, allowed="must be finite numbers, 0 or more", shape=values.shape)
    rate, shares = positive("rate", rate), np.zeros(len(values) + 1)
    mu, rho = np.append(values, 0.0), np.append(weights, 0.0)
    low, high = bridge(mu, rho, rate)
    price, shares[low] = 0.0, 1.0
    if high >= 0:
        price = (mu[high] - mu[low]) / (rho[high] - rho[low])
        shares[high] = (rate - rho[low]) / (rho[high] - rho[low])
        shares[low] = 1.0 - shares[high]
    floor = mu[low] - price * rho[low]
    return Mixture(float(floor + price * rate), shares[:-1], float(price), float(floor))


def greedy(values: ArrayLike, costs: ArrayLike, budget: float) -> Plan:
    """Density-ordered greedy: as many pulls as fit of the densest arm, then of the next that fits, and so on.

    Tran-Thanh et al., section 3.1; arms of equal density in order of position. Parameters and result as in `knapsack`.

    >>> greedy([3, 2], [2, 1.5], budget=5).counts
    array([2, 0])
    """
    return _greedy(*_instance(values, costs, budget))


def fractional(values: ArrayLike, costs: ArrayLike, budget: float) -> float:
    """B max_k v_k / w_k, in units of reward: no plan, whole or fractional, is worth more (Tran-Thanh et al., 3.1).

    >>> fractional([3, 2], [2, 1.5], budget=5)
    7.5
    """
    values, costs, _ = _instance(values, costs, budget)
    return float(budget) * float((values / costs).max())


def rounded(values: ArrayLike, costs: ArrayLike, budget: float) -> Plan:
    """The fractional optimum rounded down: as many pulls of the densest arm as fit, none of the others.

    "Fractional relaxation based" in Tran-Thanh et al., section 3.1. Parameters and result as in `knapsack`.

    >>> rounded([3, 2], [2, 1.5], budget=5).counts
    array([2, 0])
    """
    values, costs, limit = _instance(values, costs, budget)
    best = np.argmax(values / costs)
    return _plan(values, best, limit // costs[best])


def _instance(values, costs, budget):
    """Arrays of values and costs, and the cost that a plan may not exceed."""
    values = numbers("values", values, 0, allowed="must be finite numbers, 0 or more", shape=("K",))
    costs = numbers("costs", costs, allowed="must be finite numbers above 0", above=0, shape=values.shape)
    budget = number("budget", budget, 0, allowed="must be a finite number, 0 or more")
    require(budget <= costs.min() * 2.0**50, "budget", budget, "must be at most 2**50 times the smallest cost")
    return values, costs, budget + max(rounding(budget), SLACK * budget)    # a large budget rounds more coarsely


def _plan(values, arms, pulls):
    counts = np.zeros(len(values), np.int64)
    counts[arms] = pulls
    return Plan(float((counts * values).sum()), counts)


def _greedy(values, costs, limit):
    order = np.argsort(-(values / costs), kind="stable")
    rest, pulls = limit, []
    for cost in costs[order].tolist():
        pulls.append(rest // cost)
        rest -= pulls[-1] * cost
    return _plan(values, order, pulls)


@compiled_for(T.boolean[::1](_floats, _floats))
def _undominated(values, costs):
    """Arms that no number of pulls of another replaces at the same cost or less and the same value or more."""
    kept = np.ones(costs.size, np.bool_)
    for j in range(1, costs.size):
        for i in range(costs.size):
            # Only arms that are kept replace others: of two that replace each other one must stay.
            if i != j and kept[i] and floor(costs[j] * (1 + SLACK / 2) / costs[i]) * values[i] >= values[j]:
                kept[j] = False
                break
    return kept


@compiled_for(T.Tuple((T.float64, T.int64))(_floats, _floats, *[T.float64] * 4, T.int64, _ints))
def _search(costs, gaps, density, limit, loss, tolerance, most, best):
    """Look for a plan that forgoes less than `loss`; `best` becomes its counts. Returns its loss and the nodes seen.

    Arm 0 is the densest, the others follow by gap, the last is a sentinel with an infinite gap. Depth first, in order
    of arms, through all bundles whose gaps sum to less than `reach`, which grows until the best plan lies within.
    A bundle that pulls of arm 0 replace at no loss is left out, and so are all that contain it.
    """
    counts, path = np.zeros(costs.size, np.int64), np.zeros(costs.size, np.int64)
    spent, gap = np.zeros(costs.size), np.zeros(costs.size)         # of the first `depth` arms in the bundle
    noise = 2 * SLACK * density * limit
    gain = max(noise, tolerance * density * limit)
    first, nodes, reach = costs[0], 0, density * costs[0] / 256
    while nodes < most:
        bound, depth, k = min(loss - gain, reach), 0, 1
        while nodes < most:
            n = counts[k] + 1
            W, G = spent[depth] + n * costs[k], gap[depth] + n * gaps[k]
            nodes += 1
            replaced = floor(W * (1 + SLACK / 2) / first) * first
            if G < bound and W <= limit and G < density * (W * (1 - SLACK / 2) - replaced):
                counts[k] = n
                pulls = floor((limit - W) / first)
                forgone = G + density * (limit - W - pulls * first)
                if forgone < loss - noise:
                    loss, bound = forgone, min(forgone - gain, reach)
                    best[:] = counts[:-1]
                    best[0] = pulls
                path[depth] = k                                     # go deeper: add arms behind k
                depth, k = depth + 1, k + 1
                spent[depth], gap[depth] = W, G
            elif G < bound or n > 1:                                # no more of k: take the next arm instead
                counts[k] = 0
                k += 1
            elif depth > 0:                                         # later arms have larger gaps: one more of the last
                depth -= 1
                k = path[depth]
            else:
                break
        if reach >= loss - gain:
            break
        reach *= 4
    return loss, nodes


def _table_size(costs, limit):
    """Budget up to which a table solves whole costs, arm 0 being the densest; 0 if costs are not whole or it is large.

    Among w_0 pulls of others some cost a multiple of w_0 together, and pulls of arm 0 replace them at no loss. So the
    others need never cost more than (w_0 - 1) max w: beyond that, the plan repeats in steps of w_0.
    """
    if (costs != np.floor(costs)).any():
        return 0
    size = min(limit, costs[0] * costs.max())
    return floor(size) if size <= TABLE else 0


@compiled_for(_ints(_floats, _ints, T.int64, T.int64))
def _table(values, costs, size, budget):
    """Counts of the best plan for whole costs: dynamic programming over budgets."""
    counts = np.zeros(costs.size, np.int64)
    counts[0] = (budget - size) // costs[0]
    rest = budget - counts[0] * costs[0]
    worth, last = np.zeros(rest + 1), np.full(rest + 1, -1, np.int32)
    for b in range(1, rest + 1):
        worth[b] = worth[b - 1]
        for k in range(costs.size):
            if costs[k] <= b and worth[b - costs[k]] + values[k] > worth[b]:
                worth[b], last[b] = worth[b - costs[k]] + values[k], k
    while rest > 0:
        k = last[rest]
        if k >= 0:
            counts[k] += 1
        rest -= costs[k] if k >= 0 else 1
    return counts
