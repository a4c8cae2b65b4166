"""What a policy sees and does in the first rounds of a run, round by round."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..checks import count
from ..engine.stacks import Stacks
from ..engine.state import Arms
from ..engine.stops import StopRule
from ..environments.bandits import Bandit
from ..policies.base import IndexRule, Policy
from .simulate import new_study

if TYPE_CHECKING:
    import pandas as pd

LONGEST = 10_000      # rounds; the time that it takes grows with their square
COLUMNS = {"pulls": int, "mean_reward": float, "mean_cost": float, "index": float, "spent": float, "chosen": bool,
           "reward": float, "cost": float}      # of a round and an arm, in this order


def trace(policy: Policy, bandit: Bandit | Callable[[np.random.Generator], Bandit],
          stop: StopRule | Callable[[Bandit], StopRule], seed: int = 0, rounds: int = 300, replication: int = 0,
          checkpoints: int | Sequence[float] = 50, shuffle: bool = True, fast: bool = True) -> "pd.DataFrame":
    """The first rounds of the very run that `cb.simulate` plays with these arguments: a row for each round and arm.

    Up to each round the run is played anew, so 300 rounds take about a second, and 10,000, which are the most,
    minutes. Raises ValueError and RuntimeError as `cb.simulate` does.

    Parameters
    ----------
    policy : Policy
    bandit, stop, seed, checkpoints, shuffle, fast
        As in `cb.simulate`.
    rounds : int
        How many, or until the run ends.
    replication : int

    Returns
    -------
    DataFrame
        `round`, from 1; `arm`, by its name if the bandit has names, else its number; before the round, the arm's
        `pulls`, `mean_reward` and `mean_cost` (NaN without a pull), its `index` (NaN without a pull, and where the
        policy is not one of a single index) and what was spent on all arms; whether the arm was `chosen`,
        and then the `reward` and `cost` of its pull. In a round that is skipped, or passed, no arm is chosen.

    Examples
    --------
    >>> bandit = cb.Bandit([cb.Bernoulli(0.5), cb.Bernoulli(0.9)], [cb.Constant(0.5)] * 2, names=["red", "blue"])
    >>> seen = cb.trace(cb.UCB1(), bandit, cb.Budget(50), rounds=3)
    >>> seen[seen["chosen"]][["round", "arm", "reward", "cost", "spent"]]
       round   arm  reward  cost  spent
    1      1  blue     0.0   0.5    0.0
    2      2   red     1.0   0.5    0.5
    4      3   red     1.0   0.5    1.0
    """
    import pandas as pd
    study = new_study({"policy": policy}, bandit, stop, seed, checkpoints, shuffle, fast)
    rounds = count("rounds", rounds, high=LONGEST)
    study = replace(study, first=count("replication", replication, low=0, high=2**32 - 1)).rehearsed()
    game = study.game(replication, ["policy"])
    stacks = Stacks(game.bandit, study.seed, replication, game.order)
    play, names = study.player("policy", game, stacks), game.bandit.names or range(game.bandit.K)
    parts, before, places = [], None, np.argsort(game.order)        # from positions to the bandit's order
    for t in range(1, rounds + 1):
        state = play(t).state
        if state.now.rounds < t:        # the run was over
            break
        known = _round(t, before, state, policy, game, stacks)
        parts.append({name: column[places] for name, column in known.items()})
        before = state
    found = {name: np.concatenate([part[name] for part in parts] or [np.zeros(0, kind)])
             for name, kind in COLUMNS.items()}
    return pd.DataFrame({"round": np.repeat(np.arange(1, len(parts) + 1), len(names)),
                         "arm": [*names] * len(parts), **found})


def _round(t, before, after, policy, game, stacks):
    """What was known of each position before round t, and what came of it."""
    K = game.problem.K
    n, *sums = before.arms if before else Arms.of(K)
    sums, chosen, (index, reward, cost) = np.array(sums), after.arms.n > n, np.full((3, K), np.nan)
    for k in np.flatnonzero(chosen).tolist():
        reward[k], cost[k] = stacks.pairs(k, int(after.arms.n[k]))[-1]
    with np.errstate(all="ignore"):     # before its first pull an arm has no mean; a cost of 0 makes an index infinite
        if isinstance(policy, IndexRule):
            told = policy.constants(game.problem)
            for k in np.flatnonzero(n).tolist():
                index[k] = policy.rule(t, n[k], *sums[:, k], told[k], policy.parameters)
        return {"pulls": n, "mean_reward": sums[0] / n, "mean_cost": sums[1] / n, "index": index,
                "spent": np.full(K, sums[1].sum()), "chosen": chosen, "reward": reward, "cost": cost}
