"""The asymmetric confidence interval of omega-UCB and its exact coverage: sample means in, bounds out.

Source: Heyden, Arzamasov, Fouché and Böhm, "Budgeted Multi-Armed Bandits with Asymmetric Confidence Intervals".
"""

from math import inf

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binom

from ..checks import ROUNDING, count, number, numbers, require

MOST = 10**7     # outcomes at most: every possible number of successes is looked at


def _unit(mean, n, z, eta, low, high):
    """Checked arguments, moved to the unit interval: mean, low, high, x and y = 1 - x, and w = eta z^2 / n."""
    low, high = numbers("low", low), numbers("high", high)
    n = numbers("n", n, 1, allowed="must be a number of samples, 1 or more")
    z = numbers("z", z, 0, allowed="must be a number of standard deviations, 0 or more")
    eta, mean = numbers("eta", eta, 0, 1, "must be in [0, 1]"), numbers("mean", mean)
    try:
        mean, low, high, n, z, eta = np.broadcast_arrays(mean, low, high, n, z, eta)
    except ValueError:
        require(False, "mean.shape", mean.shape, "must broadcast with the shapes of n, z, eta, low and high")
    with np.errstate(over="ignore"):
        numbers("high", np.where(np.isfinite(high - low), high, inf), above=low,
                allowed="must be above low, by a finite distance")
    numbers("mean", mean, low, high, "must be a number in [low, high]")
    return mean, low, high, (mean - low) / (high - low), (high - mean) / (high - low), eta * z * z / n


def _lower_root(x, y, w):
    """Smaller root u of (x - u)^2 = w u (1 - u), with y = 1 - x.

    In this form: no difference of nearly equal numbers, exactly 0 at x = 0, never above x, monotone in w.
    """
    with np.errstate(over="ignore"):                                   # an infinite w is the right limit
        denominator = 2 * x + w + np.sqrt(w * (4 * x * y + w))
    return x * np.divide(2 * x, denominator, out=np.zeros_like(denominator), where=denominator > 0)


def asymmetric_interval(mean: ArrayLike, n: ArrayLike, z: ArrayLike, eta: ArrayLike = 1.0, low: ArrayLike = 0.0,
                        high: ArrayLike = 1.0) -> tuple[float, float] | tuple[np.ndarray, np.ndarray]:
    """Lower and upper confidence bound of the expectation of a bounded variable (Heyden et al., Theorem 1).

    The bounds are the two expectations mu whose standardised distance from the sample mean is exactly z when the
    variance is eta (high - mu)(mu - low): the roots of (mean - mu)^2 = eta (high - mu)(mu - low) z^2 / n (Eq. 7). With
    eta = 1 on [0, 1] this is Wilson's score interval. The coverage is that of a central limit: see `worst_miss`.
    Floats if all arguments are scalars, else arrays of the broadcast shape, with low <= lower <= mean <= upper <= high;
    lower is exactly `low` at mean = low (eta, z > 0), upper likewise.

    Parameters
    ----------
    mean, n : float or array
        Sample mean, in [low, high], and number of samples, 1 or more.
    z : float or array
        Number of standard deviations, 0 or more; 0 returns the mean itself.
    eta : float or array
        Variance over its largest possible value (high - mu)(mu - low), in [0, 1].
    low, high : float or array
        Range of the variable, low < high.

    Examples
    --------
    >>> np.round(asymmetric_interval(0.1, n=100, z=1.96), 3)
    array([0.055, 0.174])
    """
    mean, low, high, x, y, w = _unit(mean, n, z, eta, low, high)
    span = high - low
    # Mapping back to [low, high] rounds; the comparisons with the mean keep the order that the algebra promises.
    lower = np.where(w == 0, mean, np.minimum(low + span * _lower_root(x, y, w), mean))
    upper = np.where(w == 0, mean, np.maximum(high - span * _lower_root(y, x, w), mean))
    return (lower, upper) if mean.ndim else (float(lower), float(upper))


def asymmetry(mean: ArrayLike, n: ArrayLike, z: ArrayLike, eta: ArrayLike = 1.0, low: ArrayLike = 0.0,
              high: ArrayLike = 1.0) -> float | np.ndarray:
    """Distance from the interval's centre to the sample mean, in half widths of the interval (Heyden et al., C.1).

    In [-1, 1], negative where the mean lies below the middle of the range; Eq. (23) of the paper is its square. On
    [0, 1] it is (2 mean - 1) sqrt(eta) z / sqrt(4 n mean (1 - mean) + eta z^2).

    Parameters are those of `asymmetric_interval`, with eta and z above 0: an interval without width has no asymmetry.

    >>> round(asymmetry(0.1, n=100, z=1.96), 3)
    -0.248
    """
    numbers("z", z, allowed="must be above 0", above=0)
    numbers("eta", eta, allowed="must be in (0, 1]", above=0)
    _, _, _, x, y, w = _unit(mean, n, z, eta, low, high)
    shift = (x - y) * np.sqrt(w / (4 * x * y + w))
    return shift if shift.ndim else float(shift)


def bernoulli_miss(p: ArrayLike, n: int, z: float) -> tuple[float, float] | tuple[np.ndarray, np.ndarray]:
    """Exact probabilities that an interval from n Bernoulli(p) outcomes misses p: by its lower and by its upper bound.

    P(lower > p) and P(upper < p) for eta = 1, in the shape of p, in [0, 1]; z is the number of standard deviations.

    >>> np.round(bernoulli_miss(0.5, n=100, z=1.96), 4)
    array([0.0284, 0.0284])
    """
    p, n = numbers("p", p, 0, 1, "must be in [0, 1]"), count("n", n, high=MOST)
    lower, upper = asymmetric_interval(np.arange(n + 1) / n, n, z)
    # Both bounds increase with the number of successes: a miss is a binomial tail.
    lower_miss = binom.sf(np.searchsorted(lower, p, side="right") - 1, n, p)
    upper_miss = binom.cdf(np.searchsorted(upper, p, side="left") - 1, n, p)
    return (lower_miss, upper_miss) if p.ndim else (float(lower_miss), float(upper_miss))


def lattice_miss(probabilities: ArrayLike, n: int, z: float, eta: float | None = None) -> tuple[float, float]:
    """As `bernoulli_miss`, for outcomes 0, 1/m, 2/m ... 1 with the given m + 1 probabilities.

    They sum to 1 and leave some variance. By default the interval's `eta` is that variance / (mean (1 - mean)).

    >>> np.round(lattice_miss([0.25, 0.5, 0.25], n=50, z=1.96), 4)
    array([0.0284, 0.0284])
    """
    chances = numbers("probabilities", probabilities, 0, 1, "must be in [0, 1]", shape=("m + 1",))
    require(abs(chances.sum() - 1) < ROUNDING, "probabilities", probabilities, "must sum to 1")
    values = np.linspace(0, 1, len(chances))
    mean = chances @ values
    variance = chances @ (values - mean) ** 2
    require(variance > 0, "probabilities", probabilities, "must leave some variance")
    total = np.ones(1)
    for _ in range(count("n", n, high=MOST // len(chances))):
        total = np.convolve(total, chances)
    lower, upper = asymmetric_interval(np.linspace(0, 1, len(total)), n, z,
                                       min(variance / (mean * (1 - mean)), 1) if eta is None else eta)
    return float(total[lower > mean].sum()), float(total[upper < mean].sum())


def worst_miss(n: int, z: float, low: float = 0.0, high: float = 1.0) -> tuple[float, float]:
    """Largest exact probability, over Bernoulli expectations p in [low, high], that the interval misses p; and this p.

    Between two values at which a bound is crossed, the probability P(X >= a) + P(X <= b), b < a, falls and then rises
    with p (the ratio of its two derivatives is monotone). So the supremum is approached at a crossing, from the side
    where one more outcome misses, or taken at low or high. It is exact up to rounding.

    n and z as in `bernoulli_miss`; `low` and `high`, 0 <= low < high <= 1, are the range of p.

    >>> np.round(worst_miss(100, 1.96), 3)
    array([0.162, 0.002])
    """
    number("low", low, 0, 1, "must be in [0, 1]")
    require(number("high", high, 0, 1, "must be in [0, 1]") > low, "high", high, f"must be above low = {low!r}")
    lower, upper = asymmetric_interval(np.arange(count("n", n, high=MOST) + 1) / n, n, z)
    p = np.concatenate([np.nextafter(lower[1:], 0), np.nextafter(upper[:-1], 1), [low, high]])
    p = p[(p >= low) & (p <= high)]
    total = np.add(*bernoulli_miss(p, n, z))
    return float(total.max()), float(p[total.argmax()])


def bernoulli_ratio_miss(p_reward: float, p_cost: float, n: int, z: float) -> float:
    """Exact probability that the true ratio exceeds Omega = upper bound of the reward / lower bound of the cost.

    Rewards and costs are independent Bernoulli, n outcomes of each, eta = 1 (Theorems 2 and 3). Without any cost Omega
    is infinite: nothing exceeds it. The expectations are in [0, 1] and (0, 1]; n and z as in `bernoulli_miss`.

    >>> round(bernoulli_ratio_miss(0.5, 0.5, n=100, z=1.96), 4)
    0.0028
    """
    number("p_reward", p_reward, 0, 1, "must be in [0, 1]")
    number("p_cost", p_cost, 0, 1, "must be in (0, 1]", above=0)
    lower, upper = asymmetric_interval(np.arange(count("n", n, high=MOST) + 1) / n, n, z)
    # For each number of costs, the rewards' upper bound must fall below ratio x lower bound: a binomial tail.
    too_small = np.searchsorted(p_cost * upper, p_reward * lower, side="left") - 1
    return float(binom.pmf(np.arange(n + 1), n, p_cost) @ binom.cdf(too_small, n, p_reward))


