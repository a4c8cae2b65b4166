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
        gaps = np.array([b.cost_means * (b.ratios.max() - b.ratios) for b in runs.bandits])
        return np.einsum("prca,ra->prc", runs.pulls, gaps, optimize=True)
    due = np.array([stop.marks(runs.fractions) for stop in runs.stops])
    gained = np.einsum("prca,ra->prc", runs.pulls, np.array([b.reward_means for b in runs.bandits]), optimize=True)
    return due * best[:, None] - gained
