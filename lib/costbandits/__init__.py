"""Bandits whose pulls cost something: policies, exact fast simulation, and five papers reproduced.

    import costbandits as cb
    runs = cb.simulate({"omega": cb.OmegaUCB(0.25), "BTS": cb.BTS()}, cb.instances.bernoulli(10),
                       lambda bandit: cb.Budget(1000 * bandit.cost_means.min()), replications=100)
    cb.regret.budgeted(runs)[:, :, -1].mean(axis=1)
"""

import importlib

from . import instances, regret
from .bandits import Bandit, LinearBandit
from .distributions import Bernoulli, Beta, Constant, Discrete, TruncatedNormal, check_sampler
from .policies import (
    BTS,
    CB,
    CSETC,
    CSTS,
    CSUCB,
    CUCB,
    IUCB,
    KUBE,
    MUCB,
    SUAK,
    UCB1,
    UCBB2,
    UCBBV1,
    VUCBBV1,
    BGreedy,
    BlindETC,
    BudgetCB,
    BudgetUCB,
    ChoosePolicy,
    CommitOnce,
    EpsilonFirst,
    EpsilonGreedy,
    FractionalKUBE,
    IndexPolicy,
    KnownMeans,
    OmegaStarUCB,
    OmegaUCB,
    OnePhaseSkip,
    PairwiseElimination,
    PrimalDualSkip,
    UCBSCPlus,
    UCBSimplexSkip,
    choose,
    index,
    tally,
)
from .simulate import Reduced, Runs, join, simulate
from .stops import AnytimeBudget, Budget, HardBudget, Horizon
from .store import StoreError

# Loaded when first used: they bring pandas, matplotlib or scipy along.
_LATER = {"ads": None, "bounds": None, "factory": None, "figures": None, "intervals": None, "ledger": None,
          "optimum": None, "polytopes": None, "progress": None, "statistics": None, "asymmetric_interval": "intervals",
          "paired": "statistics"}

__all__ = ["AnytimeBudget", "BGreedy", "BTS", "Bandit", "Bernoulli", "Beta", "BlindETC", "Budget", "BudgetCB",
           "BudgetUCB", "CB", "CSETC", "CSTS", "CSUCB", "CUCB", "ChoosePolicy", "CommitOnce", "Constant", "Discrete",
           "EpsilonFirst", "EpsilonGreedy", "FractionalKUBE", "HardBudget", "Horizon", "IUCB", "IndexPolicy", "KUBE",
           "KnownMeans", "LinearBandit", "MUCB", "OmegaStarUCB", "OmegaUCB", "OnePhaseSkip", "PairwiseElimination",
           "PrimalDualSkip", "Reduced", "Runs", "SUAK", "StoreError", "TruncatedNormal", "UCB1", "UCBB2", "UCBBV1",
           "UCBSCPlus", "UCBSimplexSkip", "VUCBBV1", "check_sampler", "choose", "index", "instances", "join", "regret",
           "simulate", "tally", *_LATER]


def __getattr__(name):
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f".{_LATER[name] or name}", __name__)
    return getattr(module, name) if _LATER[name] else module


def __dir__():
    return sorted({*globals(), *__all__})
