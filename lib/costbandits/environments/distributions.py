"""The law of one arm's reward or cost.

Samplers must *concatenate*: drawing 3 and then 5 values gives the same 8 values as drawing 8 at once. Only then does
the n-th pull of an arm not depend on how many values are drawn at a time. Samplers that reject in vectorised rounds
break this rule; `check_sampler` finds out.
"""

from dataclasses import dataclass
from functools import cache, cached_property
from math import inf, log
from numbers import Real

import numpy as np

from ..checks import FINITE, frozen, number, numbers, positive, require

__all__ = ["Bernoulli", "Beta", "ClippedLogNormal", "Constant", "Discrete", "Empirical", "TruncatedNormal",
           "check_sampler"]


class Distribution:
    """Base of all laws; a law of your own needs these three attributes and `sample`.

    Outcomes of your own law are added up one by one, rounded each time: after a million pulls at a cost of 0.3 the sum
    is off in its eleventh digit, which decides where a budget is met. `Discrete` and `Constant` are counted.

    >>> isinstance(Bernoulli(0.5), Distribution)
    True

    Attributes
    ----------
    mean, variance : float
    support : tuple of float
        No value is smaller, or larger: (low, high).
    """
    mean: float
    variance: float
    support: tuple

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Draw `size` independent values as a float64 array of shape (size,)."""
        raise NotImplementedError(f"{type(self).__name__} has no sample(rng, size)")


@dataclass(frozen=True)
class Bernoulli(Distribution):
    """1 with probability p in [0, 1], else 0.

    >>> Bernoulli(0.5).variance
    0.25
    """
    p: float

    def __post_init__(self):
        vars(self).update(p=number("Bernoulli p", self.p, 0, 1, "must be a probability in [0, 1]"))

    @property
    def mean(self) -> float:
        return self.p

    @property
    def variance(self) -> float:
        return self.p * (1 - self.p)

    support = (0.0, 1.0)

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        return (rng.random(size) < self.p).astype(np.float64)


@dataclass(frozen=True)
class Beta(Distribution):
    """Beta law on [0, 1], with shape parameters a, b above 0 and mean a / (a + b).

    Sums of its outcomes have no law that could be drawn and then split, so every outcome that is pulled is drawn.

    >>> Beta(1, 3).mean
    0.25
    """
    a: float
    b: float

    def __post_init__(self):
        vars(self).update(a=positive("Beta a", self.a), b=positive("Beta b", self.b))
        require(self.a + self.b <= FINITE, "Beta (a, b)", (self.a, self.b), "must have a finite sum")

    @property
    def mean(self) -> float:
        return self.a / (self.a + self.b)

    @property
    def variance(self) -> float:
        return self.mean * (1 - self.mean) / (self.a + self.b + 1)

    support = (0.0, 1.0)

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        return rng.beta(self.a, self.b, size)


@dataclass(frozen=True)
class Constant(Distribution):
    """Always the same finite value; the way to state a cost that is known in advance.

    >>> Constant(2).sample(np.random.default_rng(0), 3)
    array([2., 2., 2.])
    """
    value: float

    def __post_init__(self):
        vars(self).update(value=number("Constant value", self.value))

    @property
    def mean(self) -> float:
        return self.value

    variance = 0.0

    @property
    def support(self) -> tuple[float, float]:
        return (self.value, self.value)

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        return np.full(size, self.value)


@dataclass(frozen=True)
class Discrete(Distribution):
    """Finitely many values, each with its probability.

    `values` are m finite floats, and `probabilities` as many in [0, 1] that sum to 1 up to 1e-9.

    >>> Discrete([0, 10], [0.75, 0.25]).mean
    2.5
    """
    values: tuple
    probabilities: tuple

    def __post_init__(self):
        values = numbers("Discrete values", self.values, shape=("m",))
        weights = numbers("Discrete probabilities", self.probabilities, 0, 1, "must be numbers in [0, 1]",
                          shape=values.shape)
        require(abs(weights.sum() - 1) <= 1e-9, "Discrete probabilities", self.probabilities, "must sum to 1")
        vars(self).update(values=tuple(values.tolist()), probabilities=tuple(weights.tolist()))

    @cached_property
    def mean(self) -> float:
        return min(max(float(np.dot(self.values, self.probabilities)), self.support[0]), self.support[1])

    @cached_property
    def variance(self) -> float:
        return float(np.dot(np.square(np.subtract(self.values, self.mean)), self.probabilities))

    @property
    def support(self) -> tuple[float, float]:
        return (min(self.values), max(self.values))

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        # The last edge of a value that there is is left out: a sum that is below 1 must not open one that isn't there.
        edges = np.cumsum(self.probabilities)[:np.flatnonzero(self.probabilities)[-1]]
        return np.asarray(self.values)[np.searchsorted(edges, rng.random(size), side="right")]


@dataclass(frozen=True, eq=False)
class Empirical(Distribution):
    """One of the values of a sample, all equally likely: what a log says of a reward or a cost.

    `values` are m finite numbers, kept as a read-only array; if at most 32 differ, outcomes are counted (`Discrete`).

    >>> Empirical([12.5, 0, 0, 0]).mean
    3.125
    """
    values: np.ndarray

    def __post_init__(self):
        vars(self).update(values=frozen(numbers("Empirical values", self.values, shape=("m",)) + 0.0))   # -0.0 is 0.0

    @cached_property
    def mean(self) -> float:
        mean = self.values.mean() if np.abs(self.values).max() < 1e290 else (self.values / self.values.size).sum()
        return min(max(float(mean), self.support[0]), self.support[1])      # however the sum rounds

    @cached_property
    def variance(self) -> float:
        return float(np.square(self.values - self.mean).mean())

    @cached_property
    def support(self) -> tuple[float, float]:
        return (float(self.values.min()), float(self.values.max()))

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        # Unlike `rng.integers` these calls concatenate.
        return self.values[(rng.random(size) * len(self.values)).astype(np.int64)]

    def __repr__(self):
        low, high = self.support
        return f"Empirical({len(self.values):,} values from {low:g} to {high:g}, mean {self.mean:g})"


@dataclass(frozen=True)
class ClippedLogNormal(Distribution):
    """Money: exp(mean_log + sd_log Z) with Z standard normal, and what lies outside [low, high] moved to its ends.

    Parameters
    ----------
    mean_log, sd_log : float
        Of the logarithm before it is clipped; sd_log above 0. exp(mean_log) is the median.
    low, high : float
        What less and what more than that count as, 0 <= low < high.

    Mean and variance have closed forms. The variance is a difference, and off by about 1e-15 of the squared mean.

    Examples
    --------
    >>> law = ClippedLogNormal(0, 1, low=0, high=1e9)
    >>> round(law.mean, 6), round(float(np.exp(0.5)), 6)
    (1.648721, 1.648721)
    """
    mean_log: float
    sd_log: float
    low: float
    high: float

    def __post_init__(self):
        name = type(self).__name__
        vars(self).update(
            mean_log=number(f"{name} mean_log", self.mean_log), sd_log=positive(f"{name} sd_log", self.sd_log),
            low=number(f"{name} low", self.low, 0, allowed="must be a finite number, 0 or more"),
            high=number(f"{name} high", self.high, allowed=f"must be a finite number above low = {self.low!r}",
                        above=self.low))

    def _moment(self, power):
        """The expectation of a power, relatively exact: tails are taken where they are small, by logarithms."""
        from scipy.special import log_ndtr
        m, s = self.mean_log, self.sd_log
        a, b = ((log(end) - m) / s if end > 0 else -inf for end in (self.low, self.high))
        below, above = np.exp(log_ndtr(a)), np.exp(log_ndtr(-b))
        start, end = a - power * s, b - power * s
        if start > 0:
            start, end = -end, -start
        far, near = log_ndtr(end), log_ndtr(start)
        inside = far + np.log1p(-np.exp(near - far)) if near < far else -inf
        middle = np.exp(min(power * m + (power * s) ** 2 / 2 + inside, power * log(self.high)))
        return float(self.low**power * below + self.high**power * above + middle)

    @cached_property
    def mean(self) -> float:
        return min(max(self._moment(1), self.low), self.high)

    @cached_property
    def variance(self) -> float:
        # Never 0: a cost without variance is one that is known.
        return max(self._moment(2) - self.mean**2, np.finfo(float).tiny)

    @property
    def support(self) -> tuple[float, float]:
        return (self.low, self.high)

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        x = np.minimum(self.mean_log + self.sd_log * rng.standard_normal(size), log(self.high))
        return np.clip(np.exp(x), self.low, self.high)


@dataclass(frozen=True, init=False)
class TruncatedNormal(Distribution):
    """A normal law conditioned to [low, high].

    Sampling inverts the cdf, one uniform per value, so that calls concatenate.

    Parameters
    ----------
    mean, sd : float
        Of the parent law, sd above 0; the attributes `mean` and `variance` are those of the truncated one.
    low, high : float
        Ends of the interval; it must hold some of the parent's probability.

    Examples
    --------
    >>> round(TruncatedNormal(0, 1, low=0, high=5).mean, 3)
    0.798
    """
    parent_mean: float
    sd: float
    low: float
    high: float

    def __init__(self, mean: float, sd: float, low: float, high: float):
        fields = {"parent_mean": number("TruncatedNormal mean", mean), "sd": positive("TruncatedNormal sd", sd),
                  "low": number("TruncatedNormal low", low), "high": number("TruncatedNormal high", high)}
        require(low < high, "TruncatedNormal high", high, f"must be above low = {low!r}")
        vars(self).update(fields)
        start, end = self._ends
        require(end - start > 1e-300, "TruncatedNormal (low, high)", (low, high),
                "must hold some of the parent's probability")
        require(end - start > 1e-12 * end, "TruncatedNormal (low, high)", (low, high),
                f"must be further apart, for a law with sd = {sd!r}: too few numbers lie between their probabilities")

    @property
    def _side(self):
        # Work in the tail that keeps precision: mirrored, when the interval lies above the mean.
        return -1.0 if self.low > self.parent_mean else 1.0

    @cached_property
    def _ends(self):
        # The parent's probabilities below the ends of the (mirrored) interval, in increasing order.
        from scipy.special import ndtr
        ends = [float(ndtr(self._side * (end - self.parent_mean) / self.sd)) for end in (self.low, self.high)]
        return min(ends), max(ends)

    @cached_property
    def _moments(self):
        # By Gauss-Legendre quadrature over where the density is above e^-40 of its largest value: the closed
        # forms subtract nearly equal numbers when the interval is narrow or far from the parent's mean.
        a, b = (self.low - self.parent_mean) / self.sd, (self.high - self.parent_mean) / self.sd
        peak = min(max(a, 0.0), b)
        reach = (peak**2 + 80) ** 0.5
        left, right = max(a, -reach), min(b, reach)
        nodes, weights = _quadrature(100)
        z = left + (right - left) * (nodes + 1) / 2
        weights = weights * np.exp((peak - z) * (peak + z) / 2)
        # From where the quadrature begins: `low` may be so far out that distances from it have no digits left.
        begin = self.low if left == a else self.parent_mean + self.sd * left
        mean = np.dot(weights, z - left) / weights.sum()
        variance = np.dot(weights, (z - left - mean) ** 2) / weights.sum()
        return float(begin + self.sd * mean), float(self.sd**2 * variance)

    @property
    def mean(self) -> float:
        return self._moments[0]

    @property
    def variance(self) -> float:
        return self._moments[1]

    @property
    def support(self) -> tuple[float, float]:
        return (self.low, self.high)

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        from scipy.special import ndtri
        start, end = self._ends
        z = self._side * ndtri(start + (end - start) * rng.random(size))
        return np.clip(self.parent_mean + self.sd * z, self.low, self.high)


_quadrature = cache(np.polynomial.legendre.leggauss)


def check_law(name: str, law: Distribution) -> None:
    """Raise ValueError unless a user's law has what a distribution needs; `name` says where it stands.

    >>> check_law("costs[0]", Beta(1, 2))
    """
    lacks = [part for part in ("mean", "variance", "support", "sample") if not hasattr(law, part)]
    lacks += ["sample"] * (getattr(type(law), "sample", None) is Distribution.sample)
    require(not isinstance(law, type), name, law, "must be a distribution, not its class: call it")
    require(not lacks, name, law, "must be a distribution, with mean, variance, support = (low, high) and "
                                  f"sample(rng, size); it has no {' and no '.join(lacks)}")
    for part in ("mean", "variance"):
        require(not callable(getattr(law, part)), f"{name}.{part}", getattr(law, part),
                "must be a number, not a function: write @property above its def")
    number(f"{name}.mean", law.mean, allowed="must be finite")
    require(isinstance(law.variance, Real) and law.variance >= 0, f"{name}.variance", law.variance,
            "must be a number, 0 or more")
    ends = tuple(law.support) if np.shape(law.support) == (2,) else ()
    require(ends and all(isinstance(end, Real) for end in ends) and ends[0] <= law.mean <= ends[1],
            f"{name}.support", law.support, f"must be (low, high) with the mean, {law.mean:g}, between them")


def check_sampler(distribution: Distribution, seed: int = 0) -> None:
    """Raise ValueError unless `sample(rng, size)` gives what its attributes promise, and its calls concatenate.

    Draws 8 values in one call and as 3 + 5 from generators of this seed; then 10,000 values, which have to lie in the
    support, with its mean and variance. A law that is right is refused with a probability of at most 5e-7 by
    Bernstein's inequality, which asks for a bounded support; others are not tested for mean and variance.

    >>> check_sampler(Beta(1, 2))
    """
    check_law("distribution", distribution)
    name = f"{type(distribution).__name__}.sample"
    rngs = [np.random.default_rng(seed) for _ in range(3)]
    try:
        whole, again = (draw(name, distribution, rng, 8) for rng in rngs[:2])
        parts = [draw(name, distribution, rngs[2], size) for size in (3, 5)]
    except TypeError as error:
        raise ValueError(f"{name}: {error}; it must take (rng, size) and return `size` numbers") from error
    require(np.array_equal(whole, again), name, distribution,
            "two generators of the same seed give different values: draw from rng alone, not from np.random")
    require(np.array_equal(whole, np.concatenate(parts)), name, distribution,
            "calls must concatenate: sample(rng, 3) then sample(rng, 5) must equal sample(rng, 8)")
    _check_moments(name, distribution, draw(name, distribution, rngs[0], 10_000).astype(float))


def draw(name: str, law: Distribution, rng: np.random.Generator, size: int) -> np.ndarray:
    """What `sample` gives, an array of shape (size,), all of it in the support; else ValueError, under this `name`.

    >>> draw("Constant.sample", Constant(2.0), np.random.default_rng(0), 3)
    array([2., 2., 2.])
    """
    x = np.asarray(law.sample(rng, size))
    require(x.shape == (size,), name, x.shape, "must return an array of shape (size,)")
    require(x.dtype.kind in "biuf", name, x[0], "must return finite numbers")
    low, high = law.support
    # No comparison with NaN is true, and `argmin` finds it, in half the time of `min`.
    if not (max(low, -FINITE) <= x[x.argmin()] and x[x.argmax()] <= min(high, FINITE)):
        wrong = float(x[~(np.isfinite(x) & (low <= x) & (x <= high))][0])
        require(np.isfinite(wrong), name, wrong, "must return finite numbers")
        require(False, name, wrong, f"must lie in the support, ({low:g}, {high:g})")
    return x


def _check_moments(name, law, x):
    width = law.support[1] - law.support[0]
    for what, values, mean, sd, most in (("mean", x, law.mean, law.variance**0.5, width),
                                         ("variance", (x - law.mean) ** 2, law.variance,
                                          width * law.variance**0.5, width**2)):
        # P(|average - mean| > sd sqrt(2 L / n) + 2 most L / (3 n)) <= 2 exp(-L), here with L = 16
        off = sd * (32 / len(x)) ** 0.5 + 32 * most / (3 * len(x)) + 1e-9 * abs(mean)
        found = float(values.mean())
        require(width == np.inf or abs(found - mean) <= off, f"{name}, its {what}", round(found, 6),
                f"is too far from the {what} that the law states, {mean:g}")
