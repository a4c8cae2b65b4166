"""Reward and cost of a pull that depend on each other: a law of pairs, and the rows of a log."""

from decimal import Decimal
from numbers import Real
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..checks import FINITE, bare, frozen, numbers, positive, require
from .distributions import Constant, Discrete, Empirical

FEW = 32        # pairs that are merged if they are equal, and then counted


class Pairs:
    """A joint law of reward and cost of one pull: one of m pairs.

    What a pull pays may go with what it costs: whoever buys has clicked, and clicks cost. Means, and so ratios and
    regrets, are those of the two columns on their own. Runs are not: a policy sees pairs.

    Parameters
    ----------
    rewards, costs : array_like of shape (m,)
        Finite numbers; pair i is (rewards[i], costs[i]).
    probabilities : array_like of shape (m,), optional
        In [0, 1], summing to 1 up to 1e-9. By default all are equally likely, like a log's rows; order decides nothing.

    Attributes
    ----------
    rewards, costs : Distribution
        The two columns as laws of their own, of which means and supports are asked.
    rows : ndarray of shape (m, 2) or None
        The pairs, sorted and read-only, if no probabilities were given.

    Up to 32 different pairs are counted: an arm is pulled a million times at once. More are sampled one by one.

    Examples
    --------
    >>> law = Pairs([0, 0, 10], [0, 0.25, 0.25], [0.5, 0.25, 0.25])       # seldom a click, of which half buy
    >>> law.rewards.mean, law.costs.mean, round(law.correlation, 4)
    (2.5, 0.125, 0.5774)
    """

    def __init__(self, rewards: ArrayLike, costs: ArrayLike, probabilities: ArrayLike | None = None):
        rewards = numbers("Pairs rewards", rewards, shape=("m",))
        costs = numbers("Pairs costs", costs, shape=rewards.shape)
        pairs, self.rows = np.column_stack([rewards, costs]) + 0.0, None       # -0.0 is 0.0
        if probabilities is None:
            found, often = np.unique(pairs, axis=0, return_counts=True)
            self.rows = pairs = frozen(np.repeat(found, often, axis=0))
            if len(found) <= FEW:
                pairs, probabilities = found, often / len(self.rows)
        else:
            probabilities = numbers("Pairs probabilities", probabilities, 0, 1, "must be numbers in [0, 1]",
                                    shape=rewards.shape)
            require(abs(probabilities.sum() - 1) <= 1e-9, "Pairs probabilities", probabilities, "must sum to 1")
        self.rewards, self.costs = (_column(values, probabilities) for values in pairs.T)
        weights = np.full(len(pairs), 1 / len(pairs)) if probabilities is None else probabilities
        self._covariance = float(np.dot((pairs[:, 0] - self.rewards.mean) * (pairs[:, 1] - self.costs.mean), weights))

    @property
    def correlation(self) -> float:
        """Correlation of reward and cost; NaN if one of them is always the same."""
        scale = (self.rewards.variance * self.costs.variance) ** 0.5
        return self._covariance / scale if scale > 0 else float("nan")

    def __repr__(self):
        return f"Pairs(rewards={self.rewards!r}, costs={self.costs!r})"


def _column(values, probabilities):
    """One column as a law. The engine reads both by the same random numbers, so rows stay together."""
    if (values == values[0]).all():
        return Constant(float(values[0]))       # a known price is one, and depends on nothing
    if probabilities is not None:
        return Discrete(values, probabilities)
    return Empirical(values)


class Units(NamedTuple):
    """What a reward of 1 and a cost of 1 stand for: multiply by them to tell results in dollars.

    >>> cb.Bandit([cb.Bernoulli(0.5)], [cb.Constant(1.0)]).units
    Units(reward=1.0, cost=1.0)
    """
    reward: float = 1.0
    cost: float = 1.0


def _read_log(frame, arm, reward, cost, max_reward, max_cost):
    """What `Bandit.from_log` makes of a log: a law of pairs for each arm, the arms' names, sorted, and the units."""
    import pandas as pd
    require(isinstance(frame, pd.DataFrame), "frame", frame, "must be a DataFrame, with a row for each pull, as "
            "pd.read_csv makes")
    units = Units(*(1.0 if most is None else positive(name, most)
                    for name, most in (("max_reward", max_reward), ("max_cost", max_cost))))
    for name, column in (("arm", arm), ("reward", reward), ("cost", cost)):
        columns = frame.columns.tolist()
        require(columns.count(column) == 1, name, column, f"must be the name of one column, of {columns}")
    require(len({arm, reward, cost}) == 3, "arm, reward, cost", (arm, reward, cost), "must be three columns")
    require(len(frame) > 0, "frame", "no rows", "must have a row for each pull")
    for row in np.flatnonzero(frame[arm].isna().to_numpy())[:1].tolist():
        _refuse(arm, row, frame, "must say which arm was pulled")
    top_reward, top_cost = (FINITE if most is None else unit
                            for most, unit in zip((max_reward, max_cost), units, strict=True))
    pairs = np.column_stack([
        _numbers(frame, reward, -FINITE if max_reward is None else 0.0, top_reward) / units.reward,
        _numbers(frame, cost, 0.0, top_cost) / units.cost])
    try:
        codes, names = pd.factorize(frame[arm], sort=True)
    except TypeError:       # labels that have no order stand in that of the log
        codes, names = pd.factorize(frame[arm])
    alike = names[pd.Series(names).map(bare).duplicated(keep=False)].tolist()
    require(not alike, f"column {arm!r}", alike, "must be labels that differ by more than blanks at their ends: "
            "frame[...].str.strip() takes these off")
    ends = np.cumsum(np.bincount(codes))[:-1]
    rows = np.split(pairs[np.argsort(codes, kind="stable")], ends)
    return [Pairs(*part.T) for part in rows], tuple(names.tolist()), units


def _numbers(frame, column, low, high):
    """A column of a log as numbers in [low, high]; else ValueError with the first row that is wrong."""
    values = frame[column]
    plain = values.astype(object).to_numpy()
    real = np.array([isinstance(value, Real | Decimal | np.bool_) for value in plain])
    found = np.array([float(value) if good else np.nan for value, good in zip(plain, real, strict=True)])
    allowed = "must be a finite number" + (", 0 or more" if low == 0 else "") + (
        f", at most {high:g}" if high < FINITE else "")
    for row in np.flatnonzero(~((found >= low) & (found <= high)))[:1].tolist():
        _refuse(column, row, frame, allowed)
    return found


def _refuse(column, row, frame, allowed):
    import pandas as pd
    value = frame[column].iloc[row]
    if isinstance(value, str):      # of a file, one value that is none makes texts of a whole column
        worse = np.flatnonzero(pd.to_numeric(frame[column], errors="coerce").isna() & frame[column].notna())
        row = int(worse[0]) if worse.size else row
        value, allowed = frame[column].iloc[row], f"{allowed}, and no text" + (
            "" if worse.size else ": pd.to_numeric(frame[...]) makes numbers of a column")
    require(False, f"column {column!r}, row {row} (from 0)", value.item() if isinstance(value, np.generic) else value,
            allowed)
