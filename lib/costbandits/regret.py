"""Each paper's regret, from pull counts after the run.

All are pseudo-regrets: they use the arms' expected rewards and costs, not the noise of the outcomes.
"""

import numpy as np

from .checks import require


def budgeted(runs, against="spent"):
    """Regret against always pulling the arm with the best ratio rho* = max_k mu^r_k / mu^c_k.

    Parameters
    ----------
    runs : Runs
    against : {"spent", "budget"}
        "spent": sum over pulls of mu^c_k (rho* - rho_k), never negative (Heyden et al., section 2).
        "budget": share of the budget times rho*, minus the expected reward of the pulls (Xia et al.).

    Returns
    -------
    ndarray of shape (policy, replication, checkpoint), in units of reward
    """
    require(against in ("spent", "budget"), "against", against, "must be 'spent' or 'budget'")
    best = np.array([bandit.ratios.max() for bandit in runs.bandits])
    if against == "spent":
        return _over_arms(runs, [b.cost_means * (b.ratios.max() - b.ratios) for b in runs.bandits])
    due = np.array([stop.marks(runs.fractions) for stop in runs.stops])
    return due * best[:, None] - _over_arms(runs, [b.reward_means for b in runs.bandits])


def _over_arms(runs, per_pull):
    """Sum over arms of pulls times a value per pull (replication, arm); shape (policy, replication, checkpoint)."""
    # Not a matrix product: its rounding would depend on how many runs are summed at once.
    return np.stack([(pulls * np.array(per_pull)[:, None]).sum(axis=-1) for pulls in runs.pulls])
