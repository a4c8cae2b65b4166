"""Policies: one module per paper, and the classics that several papers compare with."""

from .base import ChoosePolicy, IndexPolicy, Policy, Problem, choose, index
from .budget_ucb import BudgetUCB
from .classics import BTS, CUCB, IUCB, MUCB, UCBB2, BGreedy, UCBSCPlus
from .omega_ucb import OmegaStarUCB, OmegaUCB

__all__ = ["BTS", "CUCB", "IUCB", "MUCB", "UCBB2", "BGreedy", "BudgetUCB", "ChoosePolicy", "IndexPolicy",
           "OmegaStarUCB", "OmegaUCB", "Policy", "Problem", "UCBSCPlus", "choose", "index"]
