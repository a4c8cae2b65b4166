"""Policies: one module per paper, and the classics that several papers compare with."""

from .base import ChoosePolicy, IndexPolicy, Policy, Problem, choose, index
from .budget_ucb import BudgetUCB
from .classics import BTS, CUCB, IUCB, MUCB, UCBB2, BGreedy, UCBSCPlus
from .omega_ucb import OmegaStarUCB, OmegaUCB

__all__ = ["BTS", "BGreedy", "BudgetUCB", "CUCB", "ChoosePolicy", "IUCB", "IndexPolicy", "MUCB", "OmegaStarUCB",
           "OmegaUCB", "Policy", "Problem", "UCBB2", "UCBSCPlus", "choose", "index"]
