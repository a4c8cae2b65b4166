"""Bandits whose pulls cost something: policies, exact fast simulation, and five papers reproduced.

    import costbandits as cb
    runs = cb.simulate({"omega": cb.OmegaUCB(0.25), "BTS": cb.BTS()}, cb.instances.bernoulli(10),
                       lambda bandit: cb.Budget(1000 * bandit.cost_means.min()), replications=100)
    cb.regret.budgeted(runs)[:, :, -1].mean(axis=1)
"""

import difflib
import importlib

from . import policies
from .engine.stops import AnytimeBudget, Budget, HardBudget, Horizon
from .environments import distributions, instances
from .environments.bandits import Bandit, LinearBandit
from .environments.distributions import *  # noqa: F403
from .environments.joint import Pairs
from .policies import *  # noqa: F403
from .studies.runs import Reduced, Runs, join
from .studies.simulate import simulate
from .studies.store import StoreError

__version__ = "0.2.0"

# Loaded when first used: they bring pandas, matplotlib or scipy along.
_ROOMS = {"environments": ("ads", "distributions", "polytopes"), "studies": ("progress",),
          "studies.replay": ("replay",), "studies.trace": ("trace",),
          "theory": ("bounds", "coverage", "factory", "intervals", "optimum"),
          "analysis": ("figures", "regret", "statistics"),
          "studies.agent": ("Agent",), "theory.intervals": ("asymmetric_interval",), "analysis.statistics": ("paired",)}
_LATER = {name: f"{__name__}.{room}" for room, names in _ROOMS.items() for name in names}

__all__ = ["AnytimeBudget", "Bandit", "Budget", "HardBudget", "Horizon", "LinearBandit", "Pairs", "Reduced", "Runs",
           "StoreError", "instances", "join", "simulate", *distributions.__all__, *policies.__all__, *_LATER]


def __getattr__(name):
    if name not in _LATER:
        known = {each.lower(): each for each in __all__}
        near = [] if name.startswith("_") else difflib.get_close_matches(name.lower(), known, n=1)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}"
                             + "".join(f"; did you mean {known[each]}?" for each in near))
    room = importlib.import_module(_LATER[name])
    return getattr(room, name, None) or importlib.import_module(f"{room.__name__}.{name}")


# What `dir(cb)` and completion show: enough to begin with. `cb.policies` shows policies; other names are there, too.
_FRONT = {*__all__} - {*policies.__all__, *_LATER, "StoreError", "check_sampler"} | {
    "Agent", "ChoosePolicy", "IndexPolicy", "bounds", "choose", "figures", "index", "optimum", "paired", "policies",
    "polytopes", "regret", "replay", "statistics", "trace"}


def __dir__():
    return sorted(_FRONT)
