"""Comparing policies on the same luck, when a few runs hold most of the variance.

Regret has a heavy upper tail: a run may lock on a wrong arm. So next to means stand medians, tail quantiles and the
probability that one policy beats the other in a replication; intervals of means are bootstrapped (BCa), paired.
"""

from dataclasses import asdict, dataclass

import numpy as np
from scipy import stats

from . import regret
from .checks import number, require

RESAMPLES = 2999


@dataclass(frozen=True)
class Interval:
    """An estimate with its confidence interval."""

    estimate: float
    low: float
    high: float

    def __str__(self):
        return f"{self.estimate:.3g} [{self.low:.3g}, {self.high:.3g}]"


@dataclass(frozen=True)
class Comparison:
    """How policy a does against b, replication by replication; smaller values are better.

    Attributes
    ----------
    replications : int
    mean_a, mean_b, median_a, median_b, p95_a, p95_b, p99_a, p99_b : float
    difference : Interval
        Mean of a - b, BCa bootstrap of the pairs.
    ratio : Interval
        Mean of a over mean of b, BCa bootstrap of the pairs.
    median_difference : Interval
        Median of a - b with its order-statistic interval.
    improvement : Interval
        P(a < b) + P(a = b) / 2, with Wilson's interval (conservative when there are ties).
    p_value : float
        Two-sided sign test of the pairs that differ; correct it for several comparisons with `holm`.
    worst_share_a, worst_share_b : float
        Share of the variance in the worst 1 % of runs.
    decisive : float
        About how many replications would keep 0 out of the interval of `difference` if the estimate were the truth.
    """

    a: str
    b: str
    replications: int
    mean_a: float
    mean_b: float
    median_a: float
    median_b: float
    p95_a: float
    p95_b: float
    p99_a: float
    p99_b: float
    difference: Interval
    ratio: Interval
    median_difference: Interval
    improvement: Interval
    p_value: float
    worst_share_a: float
    worst_share_b: float
    decisive: float

    def as_dict(self):
        """Flat dict of all numbers; intervals become three."""
        flat = {}
        for name, value in asdict(self).items():
            flat |= {f"{name}_{k}": v for k, v in value.items()} if isinstance(value, dict) else {name: value}
        return flat


def paired(runs, a, b, values=None, confidence=0.95):
    """Compare two policies of one study on the replications they share.

    Parameters
    ----------
    runs : Runs or Reduced
    a, b : str
        Labels of policies.
    values : array of shape (policy, replication), optional
        What to compare, smaller being better; by default the final budgeted regret (of a Reduced: its "regret").
    confidence : float in (0, 1)

    Returns
    -------
    Comparison
    """
    if values is None:
        values = (runs["regret"] if hasattr(runs, "values") else regret.budgeted(runs))[:, :, -1]
    values = np.asarray(values, float)
    shape = (len(runs.policies), len(runs.replications))
    require(values.shape == shape, "values.shape", values.shape, f"must be (policy, replication) = {shape}")
    return compare(values[runs.index(a)], values[runs.index(b)], a, b, confidence)


def compare(x, y, a="a", b="b", confidence=0.95):
    """The `Comparison` of two paired samples, each of shape (replication,)."""
    x, y, confidence = _pairs(x, y, confidence)
    d = x - y
    wins, losses = int((d < 0).sum()), int((d > 0).sum())
    quantiles = {f"{name}_{who}": float(np.quantile(z, q)) for name, q in (("median", 0.5), ("p95", 0.95), ("p99", 0.99))
                 for who, z in (("a", x), ("b", y))}
    difference = mean(d, confidence)
    reach = max(difference.high - difference.estimate, difference.estimate - difference.low)
    return Comparison(
        a=a, b=b, replications=len(d), mean_a=float(x.mean()), mean_b=float(y.mean()), **quantiles, difference=difference,
        ratio=mean_ratio(x, y, confidence), median_difference=median(d, confidence),
        improvement=share((wins + (len(d) - wins - losses) / 2), len(d), confidence),
        p_value=float(stats.binomtest(wins, wins + losses).pvalue) if wins + losses else 1.0,
        worst_share_a=worst_share(x), worst_share_b=worst_share(y),
        decisive=float(np.inf) if difference.estimate == 0 else len(d) * (reach / difference.estimate) ** 2)


def _pairs(x, y, confidence):
    x, y = np.asarray(x, float), np.asarray(y, float)
    require(x.ndim == 1 and x.shape == y.shape and len(x) > 1, "samples", (x.shape, y.shape),
            "must be two paired samples of equal length, 2 or more")
    require(0 < number("confidence", confidence) < 1, "confidence", confidence, "must be in (0, 1)")
    return x, y, float(confidence)


def _bootstrap(samples, statistic, confidence):
    """BCa interval of a vectorised statistic of paired samples; a point where nothing varies."""
    estimate = float(statistic(*samples, axis=-1))
    if all(np.ptp(sample) == 0 for sample in samples):
        return Interval(estimate, estimate, estimate)
    result = stats.bootstrap(samples, statistic, paired=True, vectorized=True, n_resamples=RESAMPLES, batch=500,
                             confidence_level=confidence, method="BCa", rng=np.random.default_rng(0)).confidence_interval
    if np.isfinite([result.low, result.high]).all():
        return Interval(estimate, float(result.low), float(result.high))
    return Interval(estimate, -np.inf, np.inf)


def mean(x, confidence=0.95):
    """Mean of a sample with its BCa bootstrap interval."""
    return _bootstrap((np.asarray(x, float),), lambda x, axis: x.mean(axis=axis), confidence)


def mean_ratio(x, y, confidence=0.95):
    """Mean of x over mean of y, paired, with its BCa bootstrap interval."""
    if np.array_equal(x, y):
        return Interval(1.0, 1.0, 1.0)
    return _bootstrap((np.asarray(x, float), np.asarray(y, float)),
                      lambda x, y, axis: x.mean(axis=axis) / y.mean(axis=axis), confidence)


def median(x, confidence=0.95):
    """Median of a sample with its order-statistic interval (distribution-free, conservative)."""
    x = np.sort(np.asarray(x, float))
    n = len(x)
    depth = int(stats.binom.ppf((1 - confidence) / 2, n, 0.5))    # ranks depth and n + 1 - depth, counted from 1
    low, high = (x[depth - 1], x[n - depth]) if depth > 0 else (-np.inf, np.inf)
    return Interval(float(np.median(x)), float(low), float(high))


def share(successes, n, confidence=0.95):
    """Share of successes among n trials with Wilson's interval."""
    from .intervals import asymmetric_interval
    low, high = asymmetric_interval(successes / n, n, stats.norm.ppf((1 + confidence) / 2))
    return Interval(float(successes / n), float(low), float(high))


def worst_share(x, worst=0.01):
    """Share of the sum of squared deviations that lies in the largest values (the worst 1 % of runs, at least one)."""
    x = np.sort(np.asarray(x, float))
    squares = (x - x.mean()) ** 2
    return float(squares[-max(1, round(worst * len(x))):].sum() / squares.sum()) if squares.sum() > 0 else 0.0


def holm(p_values):
    """Holm's step-down correction: adjusted p-values, valid together for all comparisons."""
    p = np.asarray(p_values, float)
    order = np.argsort(p)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))
    return adjusted


def dominance(runs, values=None, confidence=0.95):
    """All pairs of policies: DataFrame a, b, improvement with interval, mean ratio with interval, Holm-adjusted p-value."""
    import pandas as pd
    pairs = [(a, b) for i, a in enumerate(runs.policies) for b in runs.policies[i + 1:]]
    rows = pd.DataFrame([paired(runs, a, b, values, confidence).as_dict() for a, b in pairs])
    return rows.assign(p_holm=holm(rows.p_value))


def growth_ratio(x, values, split, confidence=0.95):
    """Growth of the mean after `split` over its growth before, each per unit of log x: 1 is linear in log x, more is convex.

    Parameters
    ----------
    x : array of shape (C,)
        Increasing and positive, such as shares of the budget.
    values : array of shape (replication, C)
    split : (start, middle, end)
        Values of x; the nearest checkpoints are used.
    """
    x = np.asarray(x, float)
    i, j, k = (int(np.abs(np.log(x / s)).argmin()) for s in split)
    require(i < j < k, "split", split, "must name three different checkpoints in increasing order")
    late = (values[:, k] - values[:, j]) / np.log(x[k] / x[j])
    early = (values[:, j] - values[:, i]) / np.log(x[j] / x[i])
    return mean_ratio(late, early, confidence)


def crossing(x, a, b):
    """Where the curve a, below b at first, rises above it for good (linear in log x); inf if never, 0 if always above."""
    x, above = np.log(np.asarray(x, float)), np.asarray(a, float) - np.asarray(b, float)
    if above[-1] <= 0:
        return np.inf
    below = np.flatnonzero(above <= 0)
    if len(below) == 0:
        return 0.0
    i = below[-1]
    return float(np.exp(x[i] + (x[i + 1] - x[i]) * -above[i] / (above[i + 1] - above[i])))
