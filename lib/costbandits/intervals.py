"""The asymmetric confidence interval of omega-UCB, its exact coverage, and the rivals it is compared with.

Everything here works without a bandit: sample means in, bounds out. Source: Heyden, Arzamasov, Fouché and Böhm,
"Budgeted Multi-Armed Bandits with Asymmetric Confidence Intervals".
"""

from math import log

import numpy as np
import pandas as pd
from scipy.special import ndtri
from scipy.stats import beta, binom

from .checks import count, number, positive, require


def _numbers(name, value, ok, allowed):
    """`value` as float array of finite entries that all pass `ok`; else ValueError naming the first that does not."""
    try:
        array = np.asarray(value, float)
    except (TypeError, ValueError):
        require(False, name, value, allowed)
    bad = ~(ok(array) & np.isfinite(array))
    if bad.any():
        require(False, name, float(array[bad][0]), allowed)
    return array


def _mean(name, value):
    return _numbers(name, value, lambda v: (v >= 0) & (v <= 1), "must be a number, or numbers, in [0, 1]")


def _size(n):
    return _numbers("n", n, lambda v: v >= 1, "must be a number of samples, 1 or more")


def _unit(mean, n, z, eta, low, high):
    """Checked arguments, moved to the unit interval: mean, low, high, x and y = 1 - x, and w = eta z^2 / n."""
    low = _numbers("low", low, np.isfinite, "must be a finite number")
    high = _numbers("high", high, np.isfinite, "must be a finite number")
    n = _size(n)
    z = _numbers("z", z, lambda v: v >= 0, "must be a number of standard deviations, 0 or more")
    eta = _numbers("eta", eta, lambda v: (v >= 0) & (v <= 1), "must be in [0, 1]")
    mean = _numbers("mean", mean, np.isfinite, "must be a number in [low, high]")
    try:
        mean, low, high, n, z, eta = np.broadcast_arrays(mean, low, high, n, z, eta)
    except ValueError:
        require(False, "mean.shape", mean.shape, "must broadcast with the shapes of n, z, eta, low and high")
    _numbers("high", high, lambda v: (v > low) & np.isfinite(v - low), "must be above low, by a finite distance")
    _numbers("mean", mean, lambda v: (v >= low) & (v <= high), "must be a number in [low, high]")
    return mean, low, high, (mean - low) / (high - low), (high - mean) / (high - low), eta * z * z / n


def _lower_root(x, y, w):
    """Smaller root u of (x - u)^2 = w u (1 - u), with y = 1 - x.

    The roots are (b +- root) / (2 (1 + w)) with b = 2 x + w; their product is x^2 / (1 + w). So the smaller one is
    2 x^2 / (b + root): no difference of nearly equal numbers, exactly 0 at x = 0, never above x, monotone in w.
    """
    with np.errstate(over="ignore"):                                   # an infinite w is the right limit
        denominator = 2 * x + w + np.sqrt(w * (4 * x * y + w))
    return x * np.divide(2 * x, denominator, out=np.zeros_like(denominator), where=denominator > 0)


def asymmetric_interval(mean, n, z, eta=1.0, low=0.0, high=1.0):
    """Lower and upper confidence bound of the expectation of a bounded variable (Heyden et al., Theorem 1).

    The bounds are the two expectations mu whose standardised distance from the sample mean is exactly z when the
    variance is eta (high - mu)(mu - low): the roots of (mean - mu)^2 = eta (high - mu)(mu - low) z^2 / n (Eq. 7). With
    eta = 1 on [0, 1] this is Wilson's score interval. The coverage is that of a central limit: see `worst_miss`.

    Parameters
    ----------
    mean : float or array
        Sample mean, in [low, high].
    n : float or array
        Number of samples, 1 or more.
    z : float or array
        Number of standard deviations, 0 or more; 0 returns the mean itself.
    eta : float or array
        Variance over its largest possible value (high - mu)(mu - low), in [0, 1].
    low, high : float or array
        Range of the variable, low < high.

    Returns
    -------
    lower, upper : floats if all arguments are scalars, else arrays of the broadcast shape
        low <= lower <= mean <= upper <= high; lower is exactly `low` at mean = low (eta, z > 0), upper likewise.

    Raises
    ------
    ValueError
        If an argument lies outside the values above or is not a number.
    """
    mean, low, high, x, y, w = _unit(mean, n, z, eta, low, high)
    span = high - low
    # Mapping back to [low, high] rounds; the comparisons with the mean keep the order that the algebra promises.
    lower = np.where(w == 0, mean, np.minimum(low + span * _lower_root(x, y, w), mean))
    upper = np.where(w == 0, mean, np.maximum(high - span * _lower_root(y, x, w), mean))
    return (lower, upper) if mean.ndim else (float(lower), float(upper))


def asymmetry(mean, n, z, eta=1.0, low=0.0, high=1.0):
    """Distance from the interval's centre to the sample mean, in half widths of the interval (Heyden et al., C.1).

    In [-1, 1]: negative where the mean lies below the middle of the range, since the interval is shifted towards the
    middle. Eq. (23) of the paper is the square of this number, not the number itself. On [0, 1] it is
    (2 mean - 1) sqrt(eta) z / sqrt(4 n mean (1 - mean) + eta z^2).

    Parameters are those of `asymmetric_interval`, with eta and z above 0: an interval without width has no asymmetry.

    Returns
    -------
    float if all arguments are scalars, else an array of the broadcast shape
    """
    _numbers("z", z, lambda v: v > 0, "must be above 0")
    _numbers("eta", eta, lambda v: v > 0, "must be in (0, 1]")
    _, _, _, x, y, w = _unit(mean, n, z, eta, low, high)
    shift = (x - y) * np.sqrt(w / (4 * x * y + w))
    return shift if shift.ndim else float(shift)


def bernoulli_miss(p, n, z):
    """Exact probabilities that an interval from n Bernoulli(p) outcomes misses p: by its lower and by its upper bound.

    Parameters
    ----------
    p : float or array
        Expectation, in [0, 1].
    n : int
        Number of outcomes.
    z : float
        Number of standard deviations; eta = 1.

    Returns
    -------
    lower_miss, upper_miss : arrays of the shape of p (floats for a float)
        P(lower > p) and P(upper < p), binomial sums.
    """
    p, n = _mean("p", p), count("n", n)
    lower, upper = asymmetric_interval(np.arange(n + 1) / n, n, z)
    # Both bounds increase with the number of successes: a miss is a binomial tail.
    lower_miss = binom.sf(np.searchsorted(lower, p, side="right") - 1, n, p)
    upper_miss = binom.cdf(np.searchsorted(upper, p, side="left") - 1, n, p)
    return (lower_miss, upper_miss) if p.ndim else (float(lower_miss), float(upper_miss))


def lattice_miss(probabilities, n, z, eta=None):
    """As `bernoulli_miss`, for outcomes 0, 1/m, 2/m ... 1 with the given m + 1 probabilities.

    Parameters
    ----------
    probabilities : sequence of m + 1 floats
        Positive variance; they sum to 1.
    n : int
    z : float
    eta : float in [0, 1], optional
        What the interval uses; by default the law's own variance / (mean (1 - mean)).

    Returns
    -------
    lower_miss, upper_miss : float
        P(lower > mean) and P(upper < mean); the law of the sum is an n-fold convolution.
    """
    chances = _mean("probabilities", probabilities)
    require(chances.ndim == 1 and abs(chances.sum() - 1) < 1e-12, "probabilities", probabilities, "must sum to 1")
    values = np.linspace(0, 1, len(chances))
    mean = chances @ values
    variance = chances @ (values - mean) ** 2
    require(variance > 0, "probabilities", probabilities, "must leave some variance")
    total = np.ones(1)
    for _ in range(count("n", n)):
        total = np.convolve(total, chances)
    lower, upper = asymmetric_interval(np.linspace(0, 1, len(total)), n, z,
                                       min(variance / (mean * (1 - mean)), 1) if eta is None else eta)
    return float(total[lower > mean].sum()), float(total[upper < mean].sum())


def worst_miss(n, z, low=0.0, high=1.0):
    """Largest exact probability, over Bernoulli expectations p in [low, high], that the interval misses p.

    Between two values at which a bound is crossed, the probability P(X >= a) + P(X <= b), b < a, falls and then rises
    with p (the ratio of its two derivatives is monotone). So the supremum is approached at a crossing, from the side
    where one more outcome misses, or taken at low or high.

    Returns
    -------
    probability, p : float
        The supremum, up to rounding, and an expectation at which it is reached.
    """
    number("low", low, 0, 1, "must be in [0, 1]")
    require(number("high", high, 0, 1, "must be in [0, 1]") > low, "high", high, f"must be above low = {low!r}")
    lower, upper = asymmetric_interval(np.arange(count("n", n) + 1) / n, n, z)
    p = np.concatenate([np.nextafter(lower[1:], 0), np.nextafter(upper[:-1], 1), [low, high]])
    p = p[(p >= low) & (p <= high)]
    total = np.add(*bernoulli_miss(p, n, z))
    return float(total.max()), float(p[total.argmax()])


def bernoulli_ratio_miss(p_reward, p_cost, n, z):
    """Exact probability that the true ratio exceeds Omega = upper bound of the reward / lower bound of the cost.

    Rewards and costs are independent Bernoulli, n outcomes of each, eta = 1 (Theorems 2 and 3). Outcomes without any
    cost have an infinite Omega, which nothing exceeds.

    Parameters
    ----------
    p_reward, p_cost : float
        Expectations, in [0, 1] and (0, 1].
    n : int
    z : float

    Returns
    -------
    float
    """
    number("p_reward", p_reward, 0, 1, "must be in [0, 1]")
    require(number("p_cost", p_cost, 0, 1, "must be in (0, 1]") > 0, "p_cost", p_cost, "must be in (0, 1]")
    lower, upper = asymmetric_interval(np.arange(count("n", n) + 1) / n, n, z)
    # For each number of costs, the rewards' upper bound must fall below ratio x lower bound: a binomial tail.
    too_small = np.searchsorted(p_cost * upper, p_reward * lower, side="left") - 1
    return float(binom.pmf(np.arange(n + 1), n, p_cost) @ binom.cdf(too_small, n, p_reward))


def _checked_pairs(reward_mean, cost_mean, n, delta):
    require(0 < number("delta", delta) < 1, "delta", delta, "must be in (0, 1)")
    return _mean("reward_mean", reward_mean), _mean("cost_mean", cost_mean), _size(n)


def ratio_bounds(reward_mean, cost_mean, n, delta=0.01, min_cost=0.01):
    """Upper confidence bounds of (expected reward / expected cost) at level 1 - delta, one per policy (Figure 1).

    Each policy's index with its t-dependent exploration replaced by what makes its own inequality hold at level
    delta for a mean: Hoeffding's eps = sqrt(log(2 / delta) / (2 n)) for m-, c-, i-, Budget-UCB and as the radius of
    UCB-SC+'s disc; the empirical Bernstein inequality's x = log(3 / delta) for UCB-B2; and for omega-UCB z such that
    each of its two bounds fails with probability delta / 2 (Theorem 2).

    Parameters
    ----------
    reward_mean, cost_mean : float or array
        Sample means of n Bernoulli outcomes each (UCB-B2 needs their variance), in [0, 1].
    n : int or array
    delta : float in (0, 1)
    min_cost : float
        Known lower bound of the expected cost: lambda of Budget-UCB, and UCB-B2's floor.

    Returns
    -------
    dict label -> float or array of the broadcast shape
        Infinite where a policy has no valid bound: all at a cost mean of 0, the lower bounds of the cost at 0 or less.
    """
    r, c, n = _checked_pairs(reward_mean, cost_mean, n, delta)
    positive("min_cost", min_cost)
    eps = np.sqrt(log(2 / delta) / (2 * n))
    x = log(3 / delta) / n
    z = ndtri(1 - delta / 2)
    bessel = n / np.maximum(n - 1, 1)
    v_r, v_c = (np.where(n > 1, bessel * m * (1 - m), 0.25) for m in (r, c))
    e_r, e_c = (np.sqrt(2 * v * x) + 3 * x for v in (v_r, v_c))
    q = r / np.maximum(c, min_cost)
    upper = np.minimum(r + eps, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        bounds = {
            "ω-UCB": np.divide(asymmetric_interval(r, n, z)[1], asymmetric_interval(c, n, z)[0]),
            "m-UCB": np.where(c > eps, upper / (c - eps), np.inf),
            "c-UCB": (r + eps) / c,
            "i-UCB": r / c + eps,
            "Budget-UCB": r / c + eps / c * (1 + upper / np.maximum(c - eps, min_cost)),
            "UCB-SC+": np.where(c > eps, _disc(r, c, eps**2) / (c**2 - eps**2), np.inf),
            "UCB-B2": np.where(e_c < c, q + 1.4 * (e_r + q * e_c) / c, np.inf)}
    return {label: np.where(c > 0, bound, np.inf)[()] for label, bound in bounds.items()}


def _disc(r, c, square):
    """Slope of the steepest ray through the disc around (c, r), times c^2 - radius^2: UCB-SC's numerator."""
    return r * c + np.sqrt(square * (r**2 + c**2 - square))


def ratio_bounds_public_code(reward_mean, cost_mean, n, delta=0.01):
    """Figure 1's bounds as the script `tightness_coverage_comparison.py` of the paper's public code states them.

    Differences from `ratio_bounds`: omega-UCB's two bounds fail with probability delta / 4 each, not delta / 2; a
    lower bound of the cost below 0.001 becomes 0.001, not an infinite index; Budget-UCB's denominator holds the lower
    bound of the *reward*; the radius of UCB-SC's disc is sqrt(delta / 2) whatever n; UCB-B2 takes log(2 / delta), the
    variance without Bessel's factor, and no condition of validity.

    Parameters and returned value as for `ratio_bounds`; infinite at a cost mean of 0, where the
    script draws again, and where UCB-SC's formula asks for the root of a negative number.
    """
    r, c, n = _checked_pairs(reward_mean, cost_mean, n, delta)
    floor = 0.001
    eps = np.sqrt(log(2 / delta) / (2 * n))
    x = log(2 / delta) / n
    z = ndtri(1 - delta / 4)
    e_r, e_c = (np.sqrt(2 * m * (1 - m) * x) + 3 * x for m in (r, c))
    upper = np.minimum(r + eps, 1)
    inside = r**2 + c**2 < delta / 2                                   # the origin lies in the disc: no steepest ray
    with np.errstate(divide="ignore", invalid="ignore"):
        bounds = {
            "ω-UCB": np.divide(asymmetric_interval(r, n, z)[1], asymmetric_interval(c, n, z)[0]),
            "m-UCB": upper / np.maximum(c - eps, floor),
            "c-UCB": (r + eps) / c,
            "i-UCB": r / c + eps,
            "Budget-UCB": r / c + eps / c * (1 + upper / np.maximum(r - eps, floor)),
            "UCB-SC+": np.where(inside, np.inf, _disc(r, c, delta / 2) / np.maximum(c**2 - delta / 2, floor)),
            "UCB-B2": r / c + 1.4 * (e_r + r / c * e_c) / c}
    return {label: np.where(c > 0, bound, np.inf)[()] for label, bound in bounds.items()}


def violations(rng, sizes=(100, 1000, 10_000, 100_000), pairs=10_000, delta=0.01, cost_low=0.01, bounds=ratio_bounds):
    """How often, and by how much, upper bounds of the ratio miss it on random pairs of Bernoulli laws (Figure 1).

    Expected rewards are U(0, 1), expected costs U(cost_low, 1), the same pairs for every size. An infinite bound is
    never violated and counts as infinitely loose; the share of infinite bounds is returned beside.

    Parameters
    ----------
    rng : numpy Generator
    sizes : sequence of int
        Numbers of outcomes n of each pair.
    pairs : int
    delta : float in (0, 1)
    cost_low : float in (0, 1)
        Smallest possible expected cost.
    bounds : callable
        (reward means, cost means, n, delta) -> dict label -> array, such as `ratio_bounds`.

    Returns
    -------
    DataFrame with a row per size and label
        `violated`, the share of pairs whose ratio exceeds the bound, and its 95 % Clopper-Pearson interval (`low`,
        `high`; Wilson's is too short near 0); `median` and `finite_mean` of the looseness bound / ratio, the mean over
        finite bounds only; and `infinite`, the share of the others.
    """
    require(0 < number("cost_low", cost_low) < 1, "cost_low", cost_low, "must be in (0, 1)")
    p_r, p_c = rng.random(count("pairs", pairs)), rng.uniform(cost_low, 1, pairs)
    rows = []
    for n in sizes:
        r, c = rng.binomial(count("n", n), p_r) / n, rng.binomial(n, p_c) / n
        for label, bound in bounds(r, c, n, delta).items():
            looseness, finite = bound * p_c / p_r, np.isfinite(bound)
            missed = int((looseness < 1).sum())
            low, high = _clopper_pearson(missed, pairs)
            rows.append({"bound": label, "n": n, "violated": missed / pairs, "low": low, "high": high,
                         "median": np.median(looseness), "infinite": 1 - finite.mean(),
                         "finite_mean": looseness[finite].mean() if finite.any() else np.inf})
    return pd.DataFrame(rows)


def _clopper_pearson(k, n, confidence=0.95):
    """Exact interval of a probability from k successes in n trials."""
    tail = (1 - confidence) / 2
    return beta.ppf(tail, k, n - k + 1) if k else 0.0, beta.isf(tail, k + 1, n - k) if k < n else 1.0
