"""Comparing policies on common random numbers, when a few runs hold most of the variance.

Regret has a heavy upper tail: a run may lock on a wrong arm. So next to means stand medians, tail quantiles and the
probability that one policy beats the other in a replication; intervals of means are bootstrapped (BCa), paired.
Bootstraps of samples of one size share their resamples, 80 kB of memory per replication: a table of a hundred pairs
costs little more than one. A sample has shape (replication,), and smaller values are better. `confidence` is the level
of an interval, in (0, 1), in a bootstrap at most 0.9996: one of the 4,999 resamples must remain on either side.
"""

import functools
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from ..checks import ROUNDING, affordable, count, floats, number, numbers, require
from ..studies.runs import Reduced, Results, Runs
from ..theory.intervals import asymmetric_interval
from . import regret

RESAMPLES = 4999
SUMS = "mean", "median", "p95", "p99", "worst_share"     # of a sample; quantiles of 95 and 99 %


@dataclass(frozen=True)
class Interval:
    """An estimate with its confidence interval.

    >>> print(cb.statistics.Interval(0.8, 0.7, 1.1))
    0.8 [0.7, 1.1]
    """
    estimate: float
    low: float
    high: float

    def __str__(self):
        return f"{self.estimate:.3g} [{self.low:.3g}, {self.high:.3g}]"

    def needed(self, n: int, border: float = 0.0) -> float:
        """About how many replications would move `border` out of the interval, which rests on n of them.

        If the estimate is the truth and intervals shrink like 1/sqrt(n); infinite if the estimate is the border.
        """
        gap, reach = abs(self.estimate - border), max(self.high - self.estimate, self.estimate - self.low)
        return float(n * (reach / gap) ** 2) if gap else np.inf

    def inverse(self) -> "Interval":
        """One over it, with ends that change places; the whole line if 0 lies between them.

        >>> print(cb.statistics.Interval(0.5, 0.25, 2.0).inverse())
        2 [0.5, 4]
        """
        with np.errstate(divide="ignore"):
            estimate, low, high = (float(np.divide(1.0, each)) for each in (self.estimate, self.high, self.low))
        return Interval(estimate, *((low, high) if self.low > 0 or self.high < 0 else (-np.inf, np.inf)))


@dataclass(frozen=True)
class Comparison:
    """How policy a does against b, replication by replication; smaller values are better.

    Attributes
    ----------
    a, b : str
    replications : int
    mean_a, mean_b, median_a, median_b, p95_a, p95_b, p99_a, p99_b, worst_share_a, worst_share_b : float
        Of either sample: mean, median, quantiles of 95 and 99 %, and `worst_share`.
    difference, ratio : Interval
        Mean of a - b, and mean of a over mean of b; BCa bootstrap of the pairs.
    median_difference : Interval
        Median of a - b with its order-statistic interval.
    improvement : Interval
        P(a < b) + P(a = b) / 2, with Wilson's interval (conservative when there are ties).
    p_value : float
        Two-sided sign test of the pairs that differ; correct it for several comparisons with `holm`.

    Examples
    --------
    >>> print(cb.statistics.compare(np.arange(100.0), np.arange(100.0) + 10, "mine", "theirs"))
    mean of mine over theirs: 0.832 [0.814, 0.847], smaller; mine wins 100% of 100 replications (ties half)
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

    def __str__(self):
        means = "smaller" if self.difference.high < 0 else "larger" if self.difference.low > 0 else "undecided"
        wins = f"{self.improvement.estimate:.0%} of {self.replications:,} replications"
        return f"mean of {self.a} over {self.b}: {self.ratio}, {means}; {self.a} wins {wins} (ties half)"

    @property
    def decisive(self) -> float:
        """About how many replications would keep 0 out of the interval of `difference` (`Interval.needed`)."""
        return self.difference.needed(self.replications)

    def as_dict(self) -> dict:
        """Flat dict of all numbers, a row of `table`; intervals become three."""
        row = {}
        for name, value in vars(self).items():
            parts = {f"{name}_{end}": each for end, each in vars(value).items()} if isinstance(value, Interval) else {}
            row |= parts or {name: value}
        return row | {"decisive": self.decisive}


def paired(runs: Runs | Reduced, a: str, b: str, values: ArrayLike | None = None,
           confidence: float = 0.95) -> Comparison:
    """Compare two policies of one study on the replications they share.

    Parameters
    ----------
    runs : Runs or Reduced
    a, b : str
        Labels of policies.
    values : array_like of shape (policy, replication), optional
        What to compare, smaller being better; by default the final budgeted regret (of a Reduced: its "regret").

    Examples
    --------
    >>> runs = cb.simulate({"m": cb.MUCB(), "c": cb.CUCB()}, cb.instances.bernoulli(3), cb.Budget(20), replications=9)
    >>> cb.paired(runs, "m", "c").replications
    9
    """
    require(isinstance(runs, Results), "runs", runs, "must be what cb.simulate returns, Runs or Reduced")
    shape = (len(runs.policies), len(runs.replications))
    require(shape[1] >= 2, "replications", shape[1], "must be 2 or more, to be compared")
    if values is None:
        values = runs["regret"] if isinstance(runs, Reduced) else regret.budgeted(runs)
        values = values if values.shape == shape else values[:, :, -1]
    values = np.asarray(values, float)
    require(values.shape == shape, "values.shape", values.shape, f"must be (policy, replication) = {shape}")
    return compare(values[runs.index(a)], values[runs.index(b)], a, b, confidence)


def compare(x: ArrayLike, y: ArrayLike, a: str = "a", b: str = "b", confidence: float = 0.95) -> Comparison:
    """Compare two paired samples, smaller values being better.

    The samples x and y, called a and b, have two values or more, in any unit. A pair ties if it differs by 5e-14 of the
    larger or less, and by more than 5e-13 it never does. As in all functions of samples, ValueError says if they differ
    in length, are too short or hold NaN.

    >>> comparison = cb.statistics.compare([1.0, 2.0, 3.0, 4.0, 9.0], [2.0, 2.0, 5.0, 8.0, 7.0])
    >>> print(comparison.difference, comparison.improvement, comparison.p_value)
    -1 [-2.8, 0.8] 0.7 [0.299, 0.927] 0.625
    """
    (x, y), confidence = _samples({"x": x, "y": y}), _level(confidence)
    d = _difference(x, y)
    improvement, p_value, _ = _who_wins(d, confidence)
    return Comparison(a, b, len(d), difference=mean(d, confidence), ratio=mean_ratio(x, y, confidence),
                      median_difference=median(d, confidence), improvement=improvement, p_value=p_value,
                      **_sums(x, "_a"), **_sums(y, "_b"))


def _sums(x, side=""):
    """What sums up a sample, by names that end in `side`."""
    values = (x.mean(), *np.quantile(x, [0.5, 0.95, 0.99]), worst_share(x))
    return {f"{name}{side}": float(value) for name, value in zip(SUMS, values, strict=True)}


def _who_wins(d, confidence):
    """Of paired differences: P(d < 0) + P(d = 0) / 2, the p-value of the sign test, and how many are 0."""
    wins, losses = int((d < 0).sum()), int((d > 0).sum())
    ties = len(d) - wins - losses
    p_value = float(stats.binomtest(wins, wins + losses).pvalue) if wins + losses else 1.0
    return share(wins + ties / 2, len(d), confidence), p_value, ties


def _sample(name, x, least=2):
    """A sample as an array, without NaN, which would pass for a tie; of one value an interval would have no width."""
    x = floats(x)
    told = "no numbers" if x is None else f"{x.shape} with {np.isnan(x).sum()} NaN"
    require(x is not None and x.ndim == 1 and len(x) >= least and not np.isnan(x).any(), name, told,
            f"must be a sample of shape (replication,), {least} or more, without NaN")
    return x


def _samples(values):
    """Paired samples of these names, shape (sample, replication)."""
    shapes = {name: np.shape(floats(x)) for name, x in values.items()}
    require(len(set(shapes.values())) == 1, "samples", shapes, "must be paired samples of equal length")
    return np.array([_sample(f"sample {name}", x) for name, x in values.items()])


def _level(value, name="confidence"):
    return number(name, value, allowed="must be in (0, 1)", above=0, below=1)


@functools.lru_cache(maxsize=4)
def resamples(n: int) -> np.ndarray:
    """How often each of n observations stands in each bootstrap resample, over n; shape (resample, n).

    >>> cb.statistics.resamples(3).shape
    (4999, 3)
    """
    affordable("replications", n, 16 * n * RESAMPLES)
    return np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), RESAMPLES) / n


@functools.lru_cache(maxsize=512)
def _resampled(sample):
    """Mean of each bootstrap resample; a table compares every sample, given by its bytes, with many others."""
    x = np.frombuffer(sample)
    return resamples(len(x)) @ x


def _means(samples):
    """Means of paired samples (sample, replication): of all, of each bootstrap resample, and with one left out."""
    samples = np.asarray(samples, float)
    left_out = (samples.sum(axis=1, keepdims=True) - samples) / (samples.shape[1] - 1)
    return samples.mean(axis=1), np.stack([_resampled(x.tobytes()) for x in samples], axis=-1), left_out.T


def _difference(x, y):
    """x less y, same shape, each rounded to 1e-12 of the larger of its pair, or a little less: else rounding decides.

    Samples that are equal but for rounding then tie, and differences that are equal but for rounding are equal.
    """
    with np.errstate(invalid="ignore"):     # infinite less infinite
        d, largest = x - y, np.clip(np.maximum(np.abs(x), np.abs(y)), 1e-280, 1e280)
        per_step = 10.0 ** -np.floor(np.log10(ROUNDING * largest))
        return np.where(np.isfinite(d), np.rint(d * per_step) / per_step + 0.0, d)      # + 0.0: no -0


def _bootstrap(statistic, means, confidence):
    """BCa interval (Efron 1987) of `statistic`, which takes means (..., sample), made by `_means`, to numbers (...)."""
    require(confidence <= 0.9996, "confidence", confidence,
            f"must be at most 0.9996: one of {RESAMPLES:,} resamples must remain on either side")
    with np.errstate(divide="ignore", invalid="ignore"):     # a resampled mean of 0 makes a ratio infinite: see below
        estimate, draws, jackknife = (statistic(each) for each in means)
    estimate = float(estimate)
    if not np.isfinite(draws).all():
        return Interval(estimate, -np.inf, np.inf)
    if np.ptp(draws) <= ROUNDING * abs(estimate):
        return Interval(estimate, estimate, estimate)
    bias, acceleration = _bias_and_acceleration(estimate, draws, jackknife)
    z = bias + stats.norm.ppf([(1 - confidence) / 2, (1 + confidence) / 2])
    slope = np.maximum(1 - acceleration * z, 1e-9)      # at 0 and beyond no level is far enough: the last resample
    low, high = np.quantile(draws, stats.norm.cdf(bias + z / slope))
    return Interval(estimate, float(low), float(high))


def _share_below(value, draws):
    """Share of the resamples below a value; those that equal it but for rounding count half."""
    scale = max(abs(value), np.median(np.abs(draws)))
    above, near = draws > value, np.abs(draws - value) <= ROUNDING * scale
    return 1 - np.where(near, 0.5, above).mean()


def _bias_and_acceleration(estimate, draws, jackknife):
    influence = jackknife.mean() - jackknife
    bias = stats.norm.ppf(np.clip(_share_below(estimate, draws), 1 / len(draws), 1 - 1 / len(draws)))
    spread = 6 * np.sum(influence**2) ** 1.5
    return bias, np.sum(influence**3) / spread if spread > 0 else 0.0


def _p_value(estimate, draws, jackknife):
    """Two-sided p-value of 0: the level at which the BCa interval ends there.

    Where no resample lies beyond 0 their normal tail is continued, so that many comparisons can still be corrected.
    """
    bias, acceleration = _bias_and_acceleration(estimate, draws, jackknife)
    below = _share_below(0, draws)
    w = (stats.norm.ppf(below) if 0 < below < 1 else -estimate / draws.std()) - bias
    slope = 1 + acceleration * w           # z solves the end of the interval in `_bootstrap` for its level
    return 2 * float(stats.norm.cdf(-abs(w / slope - bias))) if slope > 0 else 0.0


def mean(x: ArrayLike, confidence: float = 0.95) -> Interval:
    """Mean of a sample with its BCa bootstrap interval (Efron, 1987).

    >>> print(cb.statistics.mean([1.0, 2.0, 4.0]))
    2.33 [1.33, 4]
    """
    return _bootstrap(lambda means: means[..., 0], _means(_samples({"x": x})), _level(confidence))


def mean_ratio(x: ArrayLike, y: ArrayLike, confidence: float = 0.95) -> Interval:
    """Mean of x over mean of y, paired, with its BCa bootstrap interval.

    A ratio that is the same in all resamples is certain. Else the interval is the whole line if a resample of y has
    mean 0, or more than (1 - confidence) / 2 of them lie on either side of 0: numbers near both infinities fit then.

    >>> print(cb.statistics.mean_ratio([1.0, 2.0, 4.0], [2.0, 4.0, 9.0]))
    0.467 [0.444, 0.5]
    """
    means, confidence = _means(_samples({"x": x, "y": y})), _level(confidence)
    drawn_x, drawn_y = means[1].T
    nothing = ROUNDING * np.abs(drawn_y).max()
    with np.errstate(divide="ignore", invalid="ignore"):
        estimate = float(means[0][0] / means[0][1])
        same = float(drawn_x @ drawn_y / (drawn_y @ drawn_y))       # also where a resample has mean 0
    if np.abs(drawn_x - same * drawn_y).max() <= ROUNDING * np.abs(drawn_x).max():
        return Interval(same, same, same)
    if min((drawn_y < 0).mean(), (drawn_y > 0).mean()) > (1 - confidence) / 2 or np.abs(drawn_y).min() <= nothing:
        return Interval(estimate, -np.inf, np.inf)
    return _bootstrap(lambda means: means[..., 0] / means[..., 1], means, confidence)


@dataclass(frozen=True)
class Extreme(Interval):
    """The largest of several ratios, with an interval valid for all of them together.

    `rival` has the largest ratio; the interval of `far` reaches highest and so gives the upper end. `replications` are
    the fewest among those of the ratios that give estimate and ends. `pairs` has each ratio with its replications.
    """
    rival: str
    far: str
    replications: int
    pairs: dict[str, tuple[Interval, int]]

    def needed(self, n: int, border: float = 0.0) -> float:
        """As for an `Interval`, but from each ratio's own interval and replications; n is not used.

        If the largest estimate is above the border, that ratio decides; otherwise every ratio has to get below it.
        """
        largest, number = max(self.pairs.values(), key=lambda pair: pair[0].estimate)
        if largest.estimate > border:
            return largest.needed(number, border)
        above = [pair for pair in self.pairs.values() if pair[0].high >= border] or self.pairs.values()
        return max(each.needed(number, border) for each, number in above)


def extreme_ratio(x: ArrayLike, rivals: dict[str, ArrayLike], confidence: float = 0.95,
                  ratio: Callable[[ArrayLike, ArrayLike, float], Interval] = mean_ratio) -> Extreme:
    """The largest ratio of x to one of several rivals: over the least favourable rival, when x should be small.

    A `mean_ratio` or `median_ratio` of the replications both have (the first ones), at a Bonferroni-corrected level.

    >>> largest = cb.statistics.extreme_ratio([1.0, 2.0, 4.0], {"BTS": [2.0, 4.0, 8.0], "m-UCB": [3.0, 6.0, 12.0]})
    >>> print(largest, largest.rival)
    0.5 [0.5, 0.5] BTS
    """
    require(len(rivals) > 0, "rivals", rivals, "must be one or more")
    level = 1 - (1 - _level(confidence)) / len(rivals)
    sizes = {label: min(len(x), len(y)) for label, y in rivals.items()}
    pairs = {label: (ratio(x[:n], rivals[label][:n], level), n) for label, n in sizes.items()}
    ends = [{label: getattr(pair, end) for label, (pair, _) in pairs.items()} for end in ("estimate", "low", "high")]
    # A ratio of 0 to 0 may be any.
    rival, low, far = (max(values, key=lambda label: (np.isnan(values[label]), values[label])) for values in ends)
    return Extreme(ends[0][rival], ends[1][low], ends[2][far], rival, far, min(sizes[rival], sizes[low], sizes[far]),
                   pairs)


def typical_ratio(x: ArrayLike, y: ArrayLike, confidence: float = 0.95) -> Interval:
    """Geometric mean over families of instances of mean of x over mean of y, with its BCa bootstrap interval.

    x and y have shape (family, replication). Families count alike, whatever their units; resamples are common to all.

    >>> print(cb.statistics.typical_ratio([[1.0, 2.0, 4.0], [8.0, 9.0, 9.0]], [[2.0, 4.0, 8.0], [2.0, 2.0, 2.0]]))
    1.47 [1.41, 1.5]
    """
    x, y = ([_sample(f"{name}[{i}]", row) for i, row in enumerate(rows)] for name, rows in (("x", x), ("y", y)))
    require(len(x) == len(y) > 0, "families", (len(x), len(y)), "must be as many in x as in y, one or more")
    means = _means(_samples(dict(enumerate(x + y))))

    def statistic(means):
        logs = np.log(means)
        return np.exp((logs[..., :len(x)] - logs[..., len(x):]).mean(axis=-1))
    return _bootstrap(statistic, means, _level(confidence))


def median_ratio(x: ArrayLike, y: ArrayLike, confidence: float = 0.95) -> Interval:
    """Median of x / y over replications with its order-statistic interval; below 1 where a smaller x is the rule.

    x and y are not negative; where both are 0 their ratio counts as 1.

    >>> print(cb.statistics.median_ratio(np.arange(9.0), 2 * np.arange(9.0)))
    0.5 [0.5, 0.5]
    """
    x, y = _samples({"x": x, "y": y})
    least = float(min(x.min(), y.min()))
    require(least >= 0, "the smallest of x and y", least, "must be 0 or more, for a ratio to say which is smaller")
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(_difference(x, y) == 0, 1.0, x / y)       # where neither has lost anything, too
    return median(ratios, confidence)


def median(x: ArrayLike, confidence: float = 0.95) -> Interval:
    """Median of a sample with its order-statistic interval (distribution-free, conservative).

    The interval is the whole line where the sample is too small for the level: below 6 values at 95 %.

    >>> print(cb.statistics.median(range(1, 11)))
    5.5 [2, 9]
    """
    x, confidence = np.sort(_sample("x", x, least=1)), _level(confidence)     # of one value: the whole line
    n = len(x)
    depth = int(stats.binom.ppf((1 - confidence) / 2, n, 0.5))  # ranks depth and n + 1 - depth, counted from 1
    low, high = (x[depth - 1], x[n - depth]) if depth > 0 else (-np.inf, np.inf)
    return Interval(float(np.median(x)), float(low), float(high))


def share(successes: float, n: int, confidence: float = 0.95) -> Interval:
    """Share of successes among n trials with Wilson's interval; a tie may count half.

    >>> print(cb.statistics.share(8, 10))
    0.8 [0.49, 0.943]
    """
    n = count("n", n)
    won = number("successes", successes, 0, n, f"must be 0 to n = {n}")
    require((2 * won).is_integer(), "successes", successes, "must be whole, or end in .5 where a tie counts half")
    low, high = asymmetric_interval(successes / n, n, stats.norm.ppf((1 + _level(confidence)) / 2))
    return Interval(float(successes / n), float(low), float(high))


def worst_share(x: ArrayLike, worst: float = 0.01) -> float:
    """Share of the variance that comes from the largest values: `worst` of the runs, at least one; 0 if all are equal.

    >>> round(cb.statistics.worst_share([0.0] * 99 + [1.0]), 2)
    0.99
    """
    x, worst = np.sort(_sample("x", x, least=1)), _level(worst, "worst")
    squares = (x - x.mean()) ** 2
    return float(squares[-max(1, round(worst * len(x))) :].sum() / squares.sum()) if np.ptp(x) > 0 else 0.0


def holm(p_values: ArrayLike) -> np.ndarray:
    """Holm's step-down correction (1979): adjusted p-values, valid together for all comparisons, in the order given.

    >>> cb.statistics.holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    p = numbers("p_values", p_values, 0, 1, "must be numbers in [0, 1]", shape=("M",))
    order = np.argsort(p)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))
    return adjusted


def table(values: dict[str, ArrayLike], pairs: Iterable[tuple[str, str]], confidence: float = 0.95) -> pd.DataFrame:
    """Paired comparisons as a DataFrame, one row per pair of labels, with Holm's correction over all rows (`p_holm`).

    Samples may differ in length; each pair is compared on the replications both have (the first ones).

    >>> rows = cb.statistics.table({"BTS": [1.0, 2.0, 4.0], "m-UCB": [2.0, 4.0, 9.0]}, [("BTS", "m-UCB")])
    >>> rows[["a", "b", "mean_a", "mean_b", "p_holm"]].round(2).values.tolist()
    [['BTS', 'm-UCB', 2.33, 5.0, 0.25]]
    """
    pairs = [tuple(pair) for pair in pairs]
    require(len(pairs) > 0 and all(len(pair) == 2 and {*pair} <= {*values} for pair in pairs), "pairs", pairs,
            f"must be one or more pairs among {list(values)}")
    lengths = [min(len(values[a]), len(values[b])) for a, b in pairs]
    rows = pd.DataFrame([compare(values[a][:n], values[b][:n], a, b, confidence).as_dict()
                         for (a, b), n in zip(pairs, lengths, strict=True)])
    return rows.assign(p_holm=holm(rows.p_value))


def dominance(values: dict[str, ArrayLike], confidence: float = 0.95) -> pd.DataFrame:
    """`table` of all pairs of policies, in the order of the labels.

    >>> rows = cb.statistics.dominance({"a": [1.0, 2.0], "b": [2.0, 4.0], "c": [3.0, 3.0]})
    >>> [*zip(rows.a, rows.b)]
    [('a', 'b'), ('a', 'c'), ('b', 'c')]
    """
    return table(values, itertools.combinations(values, 2), confidence)


def tournament(values: dict[str, ArrayLike], confidence: float = 0.95) -> pd.DataFrame:
    """All pairs of policies, a row each, compared by who wins a replication and by who has the smaller mean.

    `values`, two or more samples of equal length, are smaller where better. `ties` are those of `compare`. `wins` is
    P(a < b) + P(a = b) / 2 with Wilson's interval (`wins_low`, `wins_high`), `difference` the mean of a less that of b
    with its BCa interval; `confidence` is of each interval by itself. Either question has p-values of its own,
    corrected by Holm's method over all pairs (`p_wins_holm`, `p_mean_holm`): the sign test of the replications that
    differ (`p_wins`), and the level at which the BCa interval ends at 0 (`p_mean`).

    >>> pairs = cb.statistics.tournament({"a": [1.0, 2.0, 3.0, 4.0, 9.0], "b": [2.0, 2.0, 5.0, 8.0, 7.0]})
    >>> pairs[["a", "b", "ties", "wins", "difference", "p_wins"]].values.tolist()
    [['a', 'b', 1, 0.7, -1.0, 0.625]]
    """
    require(len(values) > 1, "values", list(values), "must be samples of two or more policies")
    x, confidence = _samples(values), _level(confidence)
    rows = pd.DataFrame([{"a": a, "b": b, **_duel(_difference(x[i], x[j]), confidence)}
                         for (i, a), (j, b) in itertools.combinations(enumerate(values), 2)])
    return rows.assign(p_wins_holm=holm(rows.p_wins), p_mean_holm=holm(rows.p_mean))


def _duel(d, confidence):
    """The row of `tournament` for the differences d of one pair, shape (replication,)."""
    wins, p_wins, ties = _who_wins(d, confidence)
    if np.ptp(d) <= 1e-9 * np.abs(d).max():      # the same difference but for rounding
        difference, p_mean = Interval(*[d.mean()] * 3), float(not d.any())
    else:
        difference, p_mean = mean(d, confidence), _p_value(*(each[..., 0] for each in _means([d])))
    return {"replications": len(d), "ties": ties,
            "wins": wins.estimate, "wins_low": wins.low, "wins_high": wins.high,
            "difference": difference.estimate, "difference_low": difference.low, "difference_high": difference.high,
            "p_wins": p_wins, "p_mean": p_mean}


def standings(values: dict[str, ArrayLike], pairs: pd.DataFrame, level: float = 0.05) -> pd.DataFrame:
    """How each policy ends, and how many of the others are better beyond doubt.

    `pairs` is `tournament(values)`, `level` that of all pairs. A row has mean, median, p95, p99 and worst, and how many
    policies have a significantly smaller mean (`better_mean`), or win significantly more than half of the replications
    against it (`better_wins`): 0 if no other beats it. By wins all may be beaten: a by c, b by a, c by b.

    >>> values = {"good": np.arange(20.0), "bad": np.arange(20.0) + 1}
    >>> cb.statistics.standings(values, cb.statistics.tournament(values)).better_mean.to_dict()
    {'good': 0, 'bad': 1}
    """
    x, level = _samples(values), _level(level, "level")
    table = pd.DataFrame([_sums(row) for row in x], pd.Index(values, name="policy"))
    table = table.drop(columns="worst_share").assign(worst=x.max(axis=1))
    for what, ahead in (("mean", pairs.difference < 0), ("wins", pairs.wins > 0.5)):
        worse = pairs.b.where(ahead, pairs.a)[pairs[f"p_{what}_holm"] < level]
        table[f"better_{what}"] = worse.value_counts().reindex(table.index, fill_value=0)
    return table


def growth_ratio(x: ArrayLike, values: ArrayLike, split: tuple[float, float, float],
                 confidence: float = 0.95) -> Interval:
    """Growth of the mean after `split` over its growth before, per unit of log x: 1 is a straight line, more is convex.

    x, of shape (C,), increases and is positive, such as shares of the budget; `values` have shape (replication, C).
    `split` is (start, middle, end), values of x of which the nearest checkpoints are used.

    >>> x = np.array([0.01, 0.1, 1.0])
    >>> print(cb.statistics.growth_ratio(x, [x, 2 * x], split=(0.01, 0.1, 1)))
    10 [10, 10]
    """
    x, (start, middle, end) = _at(x, values, split, "split")
    late = (end - middle) / np.log(x[2] / x[1])
    early = (middle - start) / np.log(x[1] / x[0])
    return mean_ratio(late, early, confidence)


def log_slope(x: ArrayLike, values: ArrayLike, ends: tuple[float, float], confidence: float = 0.95) -> Interval:
    """Slope of the mean over x, both in logarithms, between the checkpoints nearest to `ends`; else as `growth_ratio`.

    >>> x = np.array([0.01, 0.1, 1.0])
    >>> print(cb.statistics.log_slope(x, [x**0.5, 2 * x**0.5], ends=(0.01, 1)))
    0.5 [0.5, 0.5]
    """
    x, values = _at(x, values, ends, "ends")
    span = np.log(x[1] / x[0])
    means = _means(_samples(dict(zip(("at the start", "at the end"), values, strict=True))))
    return _bootstrap(lambda means: np.log(means[..., 1] / means[..., 0]) / span, means, _level(confidence))


def _at(x, values, points, name):
    """The checkpoints nearest to some values of x, and the samples (checkpoint, replication) there."""
    x, values = np.asarray(x, float), np.asarray(values, float)
    require(values.ndim == 2 and x.shape == values.shape[1:] and _increases(x), "x.shape, values.shape",
            (x.shape, values.shape), "must be (C,) and (replication, C), and x above 0 and increasing")
    require(min(points) > 0, name, points, "must be values of x, above 0")
    at = [int(np.abs(np.log(x / point)).argmin()) for point in points]
    require(bool(np.all(np.diff(at) > 0)), name, points, f"must name {len(at)} checkpoints in increasing order")
    return x[at], values[:, at].T


def _increases(x):
    return x.size > 0 and bool(np.all(x > 0) and np.all(np.diff(x) > 0))


def crossing(x: ArrayLike, a: ArrayLike, b: ArrayLike) -> float:
    """Where the curve a, below b at first, rises above it for good, interpolated over log x; in units of x.

    It is inf if a ends below b, and 0 if a is above throughout. All have shape (C,); x increases and is positive.

    >>> round(cb.statistics.crossing([1, 10, 100], [0, 1, 2], [0.5, 0.5, 0.5]), 3)
    3.162
    """
    x, above = np.asarray(x, float), np.asarray(a, float) - np.asarray(b, float)
    require(x.ndim == 1 and x.shape == above.shape and _increases(x), "x.shape, (a - b).shape",
            (x.shape, above.shape), "must be (C,) both, and x above 0 and increasing")
    require(not np.isnan(above).any(), "a - b", above, "must be without NaN")
    x = np.log(x)
    if above[-1] <= 0:
        return np.inf
    below = np.flatnonzero(above <= 0)
    if len(below) == 0:
        return 0.0
    i = below[-1]
    return float(np.exp(x[i] + (x[i + 1] - x[i]) * -above[i] / (above[i + 1] - above[i])))
