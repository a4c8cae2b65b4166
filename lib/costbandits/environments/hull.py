"""The best mixture of arms under an anytime budget, for policies and bounds: two arms on the upper hull.

They are the ends of the edge of the hull of the points (cost, reward), null arm included, that crosses cost = rate.
"""

import numba as nb
import numpy as np


@nb.njit(error_model="numpy")
def bridge(mu: np.ndarray, rho: np.ndarray, rate: float) -> tuple[int, int]:
    """The best base (low, high): of the mixtures with a mean cost of at most `rate`, one with the largest reward.

    `low` costs at most `rate` and `high` more; high = -1 if low is best alone, the lowest position if several are, but
    the null arm before any that pays no more. Each end in turn is chosen for the other, which never makes the mixture
    worse.

    `mu` and `rho`, of shape (K + 1,), are the expected reward and cost of a pull; the last entry is the null arm, which
    costs and pays 0. `rate` is what a round may cost on average.

    >>> bridge(np.array([0.9, 0.3, 0.0]), np.array([0.8, 0.2, 0.0]), 0.5)
    (1, 0)
    """
    low, high, slope = mu.size - 1, -1, 0.0
    for k in range(mu.size - 1):
        if rho[k] <= rate and mu[k] > mu[low]:
            low = k
    for _ in range(2 * mu.size):
        found = high
        for k in range(mu.size - 1):
            if rho[k] > rate and mu[k] - mu[low] > slope * (rho[k] - rho[low]):
                found, slope = k, (mu[k] - mu[low]) / (rho[k] - rho[low])
        if found == high:
            break
        high, found = found, low
        for k in range(mu.size):
            if rho[k] <= rate and mu[high] - mu[k] < slope * (rho[high] - rho[k]):
                found, slope = k, (mu[high] - mu[k]) / (rho[high] - rho[k])
        if found == low:
            break
        low = found
    return low, high
