"""Each paper's theorems as functions that return the numbers they promise; one module per paper."""

from . import budget_ucb, cost_subsidy, kube, omega_ucb, suak

__all__ = ["budget_ucb", "cost_subsidy", "kube", "omega_ucb", "suak"]
