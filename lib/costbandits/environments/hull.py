"""The best mixture of arms, read off the upper hull of the points (cost, reward).

Policies and bounds for an anytime budget share it: both ask which two arms a budget per round is best spent on.
"""

import numba as nb


@nb.njit(error_model="numpy")
def bridge(mu, rho, rate):
    """The best base (low, high): of the mixtures with a mean cost of at most `rate`, one with the largest reward.

    The last entry of mu and rho is the null arm. `low` costs at most `rate` and `high` more; high = -1 if low is best
    alone, the lowest position if several are. Each end in turn is chosen for the other, which never makes the mixture
    worse.
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
