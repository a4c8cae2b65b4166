"""Comparing policies on the same luck, when a few runs hold most of the variance.

Regret has a heavy upper tail: a run may lock on a wrong arm. So next to means stand medians, tail quantiles and the
probability that one policy beats the other in a replication; intervals of means are bootstrapped (BCa), paired.
All bootstraps of samples of one size share their resamples, so that a table of a hundred pairs costs little more
than one.
"""

import functools
import itertools
from dataclasses import asdict, dataclass

import numpy as np
from scipy import stats

from ..checks import ROUNDING, number, require
from . import regret

RESAMPLES = 4999


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
    shape = (len(runs.policies), len(runs.replications))
    if values is None:
        values = runs["regret"] if hasattr(runs, "values") else regret.budgeted(runs)
        values = values if values.shape == shape else values[:, :, -1]
    values = np.asarray(values, float)
    require(values.shape == shape, "values.shape", values.shape, f"must be (policy, replication) = {shape}")
    return compare(values[runs.index(a)], values[runs.index(b)], a, b, confidence)


def compare(x, y, a="a", b="b", confidence=0.95):
    """Compare two paired samples, smaller values being better.

    Parameters
    ----------
    x, y : array_like of shape (replication,)
        At least two replications, without NaN, in any unit.
    a, b : str
        What to call them.
    confidence : float in (0, 1)

    Returns
    -------
    Comparison
    """
    (x, y), confidence = _samples(x, y), _level(confidence)
    d = x - y
    wins, losses = int((d < 0).sum()), int((d > 0).sum())
    quantiles = {
        f"{name}_{who}": float(np.quantile(z, q))
        for name, q in (("median", 0.5), ("p95", 0.95), ("p99", 0.99))
        for who, z in (("a", x), ("b", y))
    }
    means = _means([x, y])
    difference = _bootstrap(lambda means: means[..., 0] - means[..., 1], means, confidence)
    reach = max(difference.high - difference.estimate, difference.estimate - difference.low)
    return Comparison(
        a=a,
        b=b,
        replications=len(d),
        mean_a=float(x.mean()),
        mean_b=float(y.mean()),
        **quantiles,
        difference=difference,
        ratio=_mean_ratio(means, confidence),
        median_difference=_median(d, confidence),
        improvement=share((wins + (len(d) - wins - losses) / 2), len(d), confidence),
        p_value=float(stats.binomtest(wins, wins + losses).pvalue) if wins + losses else 1.0,
        worst_share_a=worst_share(x),
        worst_share_b=worst_share(y),
        decisive=float(np.inf) if difference.estimate == 0 else len(d) * (reach / difference.estimate) ** 2,
    )


def _sample(name, x, least=2):
    """A sample as an array; an interval from one observation would be an exact number, and NaN a tie."""
    x = np.asarray(x, float)
    told = f"{x.shape} with {np.isnan(x).sum()} NaN"
    require(x.ndim == 1 and len(x) >= least and not np.isnan(x).any(), name, told,
            f"must be a sample of shape (replication,), {least} or more, without NaN")
    return x


def _samples(*samples):
    """Paired samples, shape (sample, replication)."""
    shapes = [np.shape(x) for x in samples]
    require(len(set(shapes)) == 1, "samples", shapes, "must be paired samples of equal length")
    return np.array([_sample("sample", x) for x in samples])


def _level(confidence):
    require(0 < number("confidence", confidence) < 1, "confidence", confidence, "must be in (0, 1)")
    return float(confidence)


@functools.lru_cache(maxsize=4)
def _resamples(n):
    """How often each of n observations stands in each bootstrap resample, over n; shape (resample, n)."""
    return np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), RESAMPLES) / n


@functools.lru_cache(maxsize=512)
def _resampled(sample):
    """Mean of each bootstrap resample; a table compares every sample, given by its bytes, with many others."""
    x = np.frombuffer(sample)
    return _resamples(len(x)) @ x


def _means(samples):
    """Means of paired samples (sample, replication): of all, of each bootstrap resample, and with one left out."""
    samples = np.asarray(samples, float)
    left_out = (samples.sum(axis=1, keepdims=True) - samples) / (samples.shape[1] - 1)
    return samples.mean(axis=1), np.stack([_resampled(x.tobytes()) for x in samples], axis=-1), left_out.T


def _bootstrap(statistic, means, confidence):
    """BCa interval of a function of the means of paired samples (Efron 1987).

    `statistic` takes an array of means (..., sample) to an array (...); `means` is made by `_means`.
    """
    with np.errstate(divide="ignore", invalid="ignore"):     # a resampled mean of 0 makes a ratio infinite: told below
        estimate, draws, jackknife = (statistic(each) for each in means)
    estimate = float(estimate)
    if not np.isfinite(draws).all():
        return Interval(estimate, -np.inf, np.inf)
    if np.ptp(draws) <= ROUNDING * abs(estimate):
        return Interval(estimate, estimate, estimate)
    bias, acceleration = _bias_and_acceleration(estimate, draws, jackknife)
    z = bias + stats.norm.ppf([(1 - confidence) / 2, (1 + confidence) / 2])
    low, high = np.quantile(draws, stats.norm.cdf(bias + z / (1 - acceleration * z)))
    return Interval(estimate, float(low), float(high))


def _bias_and_acceleration(estimate, draws, jackknife):
    influence = jackknife.mean() - jackknife
    below = (np.sum(draws < estimate) + np.sum(draws == estimate) / 2) / len(draws)
    bias = stats.norm.ppf(np.clip(below, 1 / len(draws), 1 - 1 / len(draws)))
    return bias, np.sum(influence**3) / (6 * np.sum(influence**2) ** 1.5)


def _p_value(estimate, draws, jackknife):
    """Two-sided p-value of 0: the level at which the BCa interval ends there.

    Where no resample lies beyond 0 their normal tail is continued, so that many comparisons can still be corrected.
    """
    bias, acceleration = _bias_and_acceleration(estimate, draws, jackknife)
    below = (np.sum(draws < 0) + np.sum(draws == 0) / 2) / len(draws)
    w = (stats.norm.ppf(below) if 0 < below < 1 else -estimate / draws.std()) - bias
    slope = 1 + acceleration * w           # z solves the end of the interval in `_bootstrap` for its level
    return 2 * float(stats.norm.cdf(-abs(w / slope - bias))) if slope > 0 else 0.0


def mean(x, confidence=0.95):
    """Mean of a sample with its BCa bootstrap interval.

    Parameters
    ----------
    x : array_like of shape (replication,)
        At least two values, none NaN.
    confidence : float in (0, 1)

    Returns
    -------
    Interval
    """
    return _bootstrap(lambda means: means[..., 0], _means(_samples(x)), _level(confidence))


def mean_ratio(x, y, confidence=0.95):
    """Mean of x over mean of y, paired, with its BCa bootstrap interval.

    Parameters
    ----------
    x, y : array_like of shape (replication,)
    confidence : float in (0, 1)

    Returns
    -------
    Interval
        The whole line where a resample of y has mean 0.
    """
    return _mean_ratio(_means(_samples(x, y)), _level(confidence))


def _mean_ratio(means, confidence):
    draws = means[1]
    if np.array_equal(draws[:, 0], draws[:, 1]):      # equal samples, also where a resample has mean 0
        return Interval(1.0, 1.0, 1.0)
    return _bootstrap(lambda means: means[..., 0] / means[..., 1], means, confidence)


@dataclass(frozen=True)
class Extreme(Interval):
    """The largest of several ratios, with an interval valid for all of them together.

    Attributes
    ----------
    rival : str
        Whose ratio is the largest.
    far : str
        Whose ratio reaches highest: the upper end of the interval is the one of its own.
    replications : int
        The fewest behind a ratio that gives the estimate or an end.
    pairs : dict label -> (Interval, int)
        Each ratio with its interval and its replications.
    """

    rival: str
    far: str
    replications: int
    pairs: dict


def extreme_ratio(x, rivals, confidence=0.95, ratio=None):
    """The largest ratio of x to one of several rivals: over the least favourable rival, when x should be small.

    Each pair is compared on the replications both have (the first ones), at a Bonferroni-corrected level.

    Parameters
    ----------
    x : array of shape (replication,)
    rivals : dict label -> array of shape (replication,)
    ratio : callable (x, y, confidence) -> Interval
        `mean_ratio` by default, or `median_ratio`.

    Returns
    -------
    Extreme
    """
    require(len(rivals) > 0, "rivals", rivals, "must be one or more")
    ratio = ratio or mean_ratio
    level = 1 - (1 - _level(confidence)) / len(rivals)
    sizes = {label: min(len(x), len(y)) for label, y in rivals.items()}
    pairs = {label: (ratio(x[:n], rivals[label][:n], level), n) for label, n in sizes.items()}
    decide = [max(pairs, key=lambda label: getattr(pairs[label][0], which)) for which in ("estimate", "low", "high")]
    ends = (getattr(pairs[label][0], which) for label, which in zip(decide, ("estimate", "low", "high"), strict=True))
    return Extreme(*ends, decide[0], decide[2], min(sizes[label] for label in decide), pairs)


def median_ratio(x, y, confidence=0.95):
    """Median of x / y over replications with its order-statistic interval; below 1 where a smaller x is the rule.

    Parameters
    ----------
    x, y : array_like of shape (replication,)
        Where both are 0 their ratio counts as 1.
    confidence : float in (0, 1)

    Returns
    -------
    Interval
    """
    x, y = _samples(x, y)
    with np.errstate(divide="ignore", invalid="ignore"):
        return median(np.where(x == y, 1.0, x / y), confidence)     # where neither has lost anything, too


def median(x, confidence=0.95):
    """Median of a sample with its order-statistic interval (distribution-free, conservative).

    Parameters
    ----------
    x : array_like of shape (replication,)
    confidence : float in (0, 1)

    Returns
    -------
    Interval
        The whole line where the sample is too small for the level: below 6 values at 95 %.
    """
    return _median(_sample("sample", x, least=1), _level(confidence))     # of one value the interval is the whole line


def _median(x, confidence):
    x = np.sort(x)
    n = len(x)
    depth = int(stats.binom.ppf((1 - confidence) / 2, n, 0.5))  # ranks depth and n + 1 - depth, counted from 1
    low, high = (x[depth - 1], x[n - depth]) if depth > 0 else (-np.inf, np.inf)
    return Interval(float(np.median(x)), float(low), float(high))


def share(successes, n, confidence=0.95):
    """Share of successes among n trials with Wilson's interval.

    Parameters
    ----------
    successes : float
        0 to n; a tie may count half.
    n : int
        Trials, above 0.
    confidence : float in (0, 1)

    Returns
    -------
    Interval
    """
    from ..theory.intervals import asymmetric_interval

    require(0 <= successes <= n and n > 0, "successes, n", (successes, n), "must be 0 to n, and n above 0")
    low, high = asymmetric_interval(successes / n, n, stats.norm.ppf((1 + _level(confidence)) / 2))
    return Interval(float(successes / n), float(low), float(high))


def worst_share(x, worst=0.01):
    """Share of the sum of squared deviations that lies in the largest values.

    Parameters
    ----------
    x : array_like of shape (replication,)
    worst : float in (0, 1)
        Which share of the runs counts as worst, at least one run.

    Returns
    -------
    float, 0 where all values are equal
    """
    x = np.sort(np.asarray(x, float))
    squares = (x - x.mean()) ** 2
    return float(squares[-max(1, round(worst * len(x))) :].sum() / squares.sum()) if squares.sum() > 0 else 0.0


def holm(p_values):
    """Holm's step-down correction: adjusted p-values, valid together for all comparisons.

    Parameters
    ----------
    p_values : array_like of shape (M,)

    Returns
    -------
    ndarray of shape (M,), in the order given
    """
    p = np.asarray(p_values, float)
    order = np.argsort(p)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))
    return adjusted


def table(values, pairs, confidence=0.95):
    """Paired comparisons as a DataFrame, one row per pair, with Holm's correction over all rows (`p_holm`).

    Parameters
    ----------
    values : dict label -> array of shape (replication,)
        Arrays may differ in length; each pair is compared on the replications both have (the first ones).
    pairs : sequence of (label, label)
    """
    import pandas as pd

    rows = []
    for a, b in pairs:
        n = min(len(values[a]), len(values[b]))
        rows.append(compare(values[a][:n], values[b][:n], a, b, confidence).as_dict())
    rows = pd.DataFrame(rows)
    return rows.assign(p_holm=holm(rows.p_value))


def dominance(values, confidence=0.95):
    """`table` of all pairs of policies.

    Parameters
    ----------
    values : dict label -> array of shape (replication,)
    confidence : float in (0, 1)

    Returns
    -------
    DataFrame, one row per pair, in the order of the labels
    """
    return table(values, itertools.combinations(values, 2), confidence)


def wins(values):
    """Head-to-head matrix: in which share of replications the row's policy has the smaller value; ties count half.

    Parameters
    ----------
    values : dict label -> array of shape (replication,)

    Returns
    -------
    DataFrame of shape (policy, policy), 0.5 on the diagonal
    """
    import pandas as pd

    x = _together(values)
    shares = [((row < x).mean(axis=1) + (row == x).mean(axis=1) / 2) for row in x]
    return pd.DataFrame(shares, list(values), list(values))


def _together(values):
    sizes = {label: np.shape(x) for label, x in values.items()}
    require(len(values) > 1 and len(set(sizes.values())) == 1 and len(next(iter(sizes.values()))) == 1, "values", sizes,
            "must be two or more paired samples of equal length")
    return np.array([_sample(f"sample of {label}", x, least=1) for label, x in values.items()])


def tournament(values, confidence=0.95):
    """All pairs of policies, compared by who wins a replication and by who has the smaller mean.

    Either question has p-values of its own, corrected by Holm's method over all pairs: the sign test of the
    replications that differ (`p_wins`), and the level at which the BCa interval of the paired difference of means ends
    at 0 (`p_mean`). One set of resamples serves all pairs.

    Parameters
    ----------
    values : dict label -> array of shape (replication,)
        Smaller is better.
    confidence : float in (0, 1)
        Of each interval by itself.

    Returns
    -------
    DataFrame, one row per pair
        a, b, replications, ties; wins, wins_low, wins_high: P(a < b) + P(a = b) / 2 with Wilson's interval; difference,
        difference_low, difference_high: mean of a less mean of b; p_wins, p_mean, p_wins_holm, p_mean_holm.
    """
    import pandas as pd

    x, confidence = _together(values), _level(confidence)
    require(x.shape[1] > 1, "replications", x.shape[1], "must be two or more")
    means = _means(x)
    rows = [{"a": a, "b": b, **_duel(x[i] - x[j], [each[..., i] - each[..., j] for each in means], confidence)}
            for (i, a), (j, b) in itertools.combinations(enumerate(values), 2)]
    rows = pd.DataFrame(rows)
    return rows.assign(p_wins_holm=holm(rows.p_wins), p_mean_holm=holm(rows.p_mean))


def _duel(d, means, confidence):
    """The row of `tournament` for the differences d of one pair, shape (replication,), and their `_means`."""
    won, lost = int((d < 0).sum()), int((d > 0).sum())
    ties, always = len(d) - won - lost, np.ptp(d) <= 1e-9 * np.abs(d).max()      # the same difference but for rounding
    parts = {"wins": share(won + ties / 2, len(d), confidence),
             "difference": Interval(*[d.mean()] * 3) if always else _bootstrap(lambda each: each, means, confidence)}
    ends = {f"{name}{end}": value for name, part in parts.items()
            for end, value in zip(("", "_low", "_high"), vars(part).values(), strict=True)}
    return {"replications": len(d), "ties": ties, **ends,
            "p_wins": float(stats.binomtest(won, won + lost).pvalue) if won + lost else 1.0,
            "p_mean": float(not d.any()) if always else _p_value(*means)}


def standings(values, pairs, level=0.05):
    """How each policy ends, and how many of the others are better beyond doubt.

    Parameters
    ----------
    values : dict label -> array of shape (replication,)
    pairs : DataFrame
        `tournament(values)`.
    level : float
        Of all pairs together. A policy that nobody is better than has a count of 0; by wins there may be none, since
        a can beat b, b beat c and c beat a.

    Returns
    -------
    DataFrame, one row per policy
        mean, median, p95, p99; better_mean, better_wins: how many policies have a significantly smaller mean, or win
        significantly more than half of the replications against it.
    """
    import pandas as pd

    x = _together(values)
    table = pd.DataFrame({"mean": x.mean(axis=1)}, pd.Index(values, name="policy"))
    for name, q in (("median", 0.5), ("p95", 0.95), ("p99", 0.99)):
        table[name] = np.quantile(x, q, axis=1)
    for what, ahead in (("mean", pairs.difference < 0), ("wins", pairs.wins > 0.5)):
        worse = pairs.b.where(ahead, pairs.a)[pairs[f"p_{what}_holm"] < level]
        table[f"better_{what}"] = worse.value_counts().reindex(table.index, fill_value=0)
    return table


def growth_ratio(x, values, split, confidence=0.95):
    """Growth of the mean after `split` over its growth before, per unit of log x: 1 is a straight line, more is convex.

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


def log_slope(x, values, ends, confidence=0.95):
    """Slope of the logarithm of the mean over the logarithm of x between two checkpoints.

    Parameters
    ----------
    x : array of shape (C,)
    values : array of shape (replication, C)
    ends : (start, end)
        Values of x; the nearest checkpoints are used.
    """
    x = np.asarray(x, float)
    i, j = (int(np.abs(np.log(x / end)).argmin()) for end in ends)
    require(i < j, "ends", ends, "must name two different checkpoints in increasing order")
    span = np.log(x[j] / x[i])
    means = _means(_samples(values[:, i], values[:, j]))
    return _bootstrap(lambda means: np.log(means[..., 1] / means[..., 0]) / span, means, _level(confidence))


def crossing(x, a, b):
    """Where the curve a, below b at first, rises above it for good, interpolated over log x.

    Parameters
    ----------
    x : array_like of shape (C,)
        Increasing and positive.
    a, b : array_like of shape (C,)

    Returns
    -------
    float
        In units of x; inf if a ends below b, 0 if it is above throughout.
    """
    x, above = np.log(np.asarray(x, float)), np.asarray(a, float) - np.asarray(b, float)
    if above[-1] <= 0:
        return np.inf
    below = np.flatnonzero(above <= 0)
    if len(below) == 0:
        return 0.0
    i = below[-1]
    return float(np.exp(x[i] + (x[i + 1] - x[i]) * -above[i] / (above[i + 1] - above[i])))
