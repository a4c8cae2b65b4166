"""Policies: one module per paper, and the classics that several papers compare with."""

from .base import ChoosePolicy, IndexPolicy, Policy, Problem, choose, index
from .budget_ucb import UCBBV1, BudgetUCB
from .classics import CUCB, IUCB, MUCB, UCBB2, BGreedy, UCBSCPlus
from .kube import KUBE, EpsilonFirst, FractionalKUBE
from .omega_ucb import OmegaStarUCB, OmegaUCB
from .thompson import BTS

__all__ = ["BTS", "CUCB", "IUCB", "KUBE", "MUCB", "UCBB2", "UCBBV1", "BGreedy", "BudgetUCB", "ChoosePolicy",
           "EpsilonFirst", "FractionalKUBE", "IndexPolicy", "OmegaStarUCB", "OmegaUCB", "Policy", "Problem",
           "UCBSCPlus", "choose", "index"]
