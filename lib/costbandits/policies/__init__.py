"""Policies: one module per paper, and the classics that several papers compare with."""

from .base import ChoosePolicy, IndexPolicy, choose, index
from .budget_ucb import UCBBV1, VUCBBV1, BudgetUCB
from .classics import CUCB, IUCB, MUCB, UCB1, UCBB2, BGreedy, EpsilonGreedy, UCBSCPlus
from .cost_subsidy import CSETC, CSTS, CSUCB, BlindETC, CommitOnce, PairwiseElimination
from .imed import IMED, MomentIMED
from .kl_ucb import KLUCB, KLUCBSC, OmegaKLUCB
from .known_cost_ts import KnownCostTS
from .kube import KUBE, EpsilonFirst, FractionalKUBE
from .linear import CB, BudgetCB
from .omega_ucb import OmegaStarUCB, OmegaUCB
from .pd_bwk import PDBwK
from .rules import tally
from .suak import SUAK, SUAK2, ControlBudget, KnownMeans, OnePhaseSkip, PrimalDualSkip, UCBSimplexSkip
from .subsidy_repairs import CSVOI, CSElimination
from .thompson import BTS

__all__ = ["BTS", "CB", "CSETC", "CSTS", "CSUCB", "CSVOI", "CUCB", "IMED", "IUCB", "KLUCB", "KLUCBSC", "KUBE", "MUCB",
           "SUAK", "SUAK2", "UCB1", "UCBB2", "UCBBV1", "VUCBBV1", "BGreedy", "BlindETC", "BudgetCB", "BudgetUCB",
           "CSElimination", "ChoosePolicy", "CommitOnce", "ControlBudget", "EpsilonFirst", "EpsilonGreedy",
           "FractionalKUBE", "IndexPolicy", "KnownCostTS", "KnownMeans", "MomentIMED", "OmegaKLUCB", "OmegaStarUCB",
           "OmegaUCB", "OnePhaseSkip", "PDBwK", "PairwiseElimination", "PrimalDualSkip", "UCBSCPlus", "UCBSimplexSkip",
           "choose", "index", "tally"]


def __dir__():
    return sorted(__all__)
