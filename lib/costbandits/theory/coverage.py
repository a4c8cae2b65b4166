"""How tight, and how often wrong, upper bounds of reward per cost are: Figure 1 of the omega-UCB paper.

Sample means in, bounds out; nothing here is played. Source: Heyden et al., as in `theory.intervals`.

The script `tightness_coverage_comparison.py` of the paper's public code has other bounds: omega-UCB's two fail with
probability delta / 4 each, not delta / 2; a lower bound of the cost below 0.001 becomes 0.001, not an infinite index;
Budget-UCB's denominator holds the lower bound of the *reward*; the radius of UCB-SC's disc is sqrt(delta / 2) whatever
n; UCB-B2 takes log(2 / delta), the variance without Bessel's factor, and no condition of validity.
"""

from collections.abc import Callable, Sequence
from math import log

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import ndtri
from scipy.stats import binomtest

from ..checks import count, number, numbers, positive
from .intervals import asymmetric_interval


def ratio_bounds(reward_mean: ArrayLike, cost_mean: ArrayLike, n: ArrayLike, delta: float = 0.01,
                 min_cost: float = 0.01) -> dict[str, float | np.ndarray]:
    """Upper confidence bounds of (expected reward / expected cost) at level 1 - delta, one per policy (Figure 1).

    Each policy's index with the exploration that makes its own inequality hold at level delta for a mean: Hoeffding's
    eps = sqrt(log(2 / delta) / (2 n)) for m-, c-, i-, Budget-UCB and the disc of UCB-SC+; empirical Bernstein's x =
    log(3 / delta) for UCB-B2; z such that each bound of omega-UCB fails with probability delta / 2 (Theorem 2).

    Numbers or arrays: sample means of n Bernoulli outcomes each (UCB-B2 needs their variance), in [0, 1], and n, 1 or
    more. delta, the probability of failure, is in (0, 1); `min_cost` is a known lower bound of the expected cost,
    lambda of Budget-UCB, and UCB-B2's floor. The bounds are floats or arrays of the broadcast shape, infinite where a
    policy has none: all at a cost mean of 0, m-UCB, UCB-SC+, UCB-B2 also where their lower bound of the cost is <= 0.

    >>> round(float(ratio_bounds(0.5, 0.5, n=100)["ω-UCB"]), 2)
    1.66
    """
    delta = number("delta", delta, allowed="must be in (0, 1)", above=0, below=1)
    min_cost = positive("min_cost", min_cost)
    r = numbers("reward_mean", reward_mean, 0, 1, "must be in [0, 1]")
    c = numbers("cost_mean", cost_mean, 0, 1, "must be in [0, 1]")
    n = numbers("n", n, 1, allowed="must be 1 or more")
    eps = np.sqrt(log(2 / delta) / (2 * n))
    x = log(3 / delta) / n
    z = -ndtri(delta / 2)
    bessel = n / np.maximum(n - 1, 1)
    v_r, v_c = (np.where(n > 1, bessel * m * (1 - m), 0.25) for m in (r, c))
    e_r, e_c = (np.sqrt(2 * v * x) + 3 * x for v in (v_r, v_c))
    q = r / np.maximum(c, min_cost)
    upper = np.minimum(r + eps, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        # The slope of the steepest ray through the disc around (c, r), times c^2 - eps^2.
        steepest = r * c + np.sqrt(eps**2 * (r**2 + c**2 - eps**2))
        bounds = {
            "ω-UCB": np.divide(asymmetric_interval(r, n, z)[1], asymmetric_interval(c, n, z)[0]),
            "m-UCB": np.where(c > eps, upper / (c - eps), np.inf),
            "c-UCB": (r + eps) / c,
            "i-UCB": r / c + eps,
            "Budget-UCB": r / c + eps / c * (1 + upper / np.maximum(c - eps, min_cost)),
            "UCB-SC+": np.where(c > eps, steepest / (c**2 - eps**2), np.inf),
            "UCB-B2": np.where(e_c < c, q + 1.4 * (e_r + q * e_c) / c, np.inf)}
    return {label: np.where(c > 0, bound, np.inf)[()] for label, bound in bounds.items()}


def violations(rng: np.random.Generator, sizes: Sequence[int] = (100, 1000, 10_000, 100_000), pairs: int = 10_000,
               delta: float = 0.01, cost_low: float = 0.01, bounds: Callable = ratio_bounds) -> pd.DataFrame:
    """How often, and by how much, upper bounds of the ratio miss it on random pairs of Bernoulli laws (Figure 1).

    Expected rewards are U(0, 1), expected costs U(cost_low, 1), the same pairs for every size. An infinite bound is
    never violated and counts as infinitely loose.

    `sizes` are the numbers of outcomes n. The probability of failure `delta` and the smallest expected cost `cost_low`
    are in (0, 1); `bounds` takes (reward means, cost means, n, delta) to a dict label -> array.

    A row per size and label. `violated`, the share of pairs whose ratio exceeds the bound, and its 95 % Clopper-Pearson
    interval (`low`, `high`; Wilson's is too short near 0); `median` and `finite_mean` of the looseness bound / ratio,
    the mean over finite bounds only; and `infinite`, the share of the others.

    >>> violations(np.random.default_rng(0), sizes=[100], pairs=1000)[["bound", "violated"]].head(2)
       bound  violated
    0  ω-UCB     0.001
    1  m-UCB     0.000
    """
    number("cost_low", cost_low, allowed="must be in (0, 1)", above=0, below=1)
    p_r, p_c = rng.random(count("pairs", pairs)), rng.uniform(cost_low, 1, pairs)
    rows = []
    for n in sizes:
        r, c = rng.binomial(count("n", n), p_r) / n, rng.binomial(n, p_c) / n
        for label, bound in bounds(r, c, n, delta).items():
            looseness, finite = bound * p_c / p_r, np.isfinite(bound)
            missed = int((looseness < 1).sum())
            low, high = binomtest(missed, pairs).proportion_ci()
            rows.append({"bound": label, "n": n, "violated": missed / pairs, "low": low, "high": high,
                         "median": np.median(looseness), "infinite": 1 - finite.mean(),
                         "finite_mean": looseness[finite].mean() if finite.any() else np.inf})
    return pd.DataFrame(rows)


